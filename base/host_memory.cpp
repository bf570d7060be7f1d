// SPDX-License-Identifier: Apache-2.0
// host_memory.cpp - plain host memory by mmap, on huge pages if a block is large enough to benefit.
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/memory_source.hpp"

namespace quarry {
namespace {

constexpr size_t kPageBytes = 4096;

class HostMemory final : public MemorySource {
 public:
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override {
    if (size_bytes == 0)
      return fail(ErrorCode::invalid_argument, std::string("host memory for ") + label + ": 0 bytes asked for");
    void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
      return fail(ErrorCode::out_of_memory, "no host memory for " + std::string(label) + " (" +
                                                std::to_string(size_bytes) + " bytes): " + std::strerror(errno));
    // Tables are read at random places: larger pages avoid most address translations. If the kernel refuses, only speed
    // is lost.
    if (size_bytes >= (size_t{4} << 20)) madvise(data, size_bytes, MADV_HUGEPAGE);
    return MemoryBlock{.data = data, .size_bytes = size_bytes};
  }
  void release(const MemoryBlock& block) noexcept override {
    if (block.data != nullptr) munmap(block.data, block.size_bytes);
  }
  bool shrink(MemoryBlock& block, size_t size_bytes) noexcept override {
    const auto pages = [](size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; };
    const size_t kept = pages(size_bytes), there = pages(block.size_bytes);
    if (kept < there) munmap(static_cast<char*>(block.data) + kept, there - kept);
    block.size_bytes = size_bytes;
    return true;
  }
  bool can_shrink() const noexcept override { return true; }
};

}  // namespace

MemorySource& host_memory_source() {
  static HostMemory memory;
  return memory;
}

}  // namespace quarry
