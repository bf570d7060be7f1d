// SPDX-License-Identifier: Apache-2.0
// limited_memory.hpp - a MemorySource for tests that refuses when told to, and counts what it has given out.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/memory_source.hpp"

namespace quarry::test {

class LimitedMemory final : public MemorySource {
 public:
  size_t refuse_after = size_t(-1);  // so many more blocks are given, then none
  size_t held_bytes = 0, most_held_bytes = 0;
  size_t blocks() const { return sizes_.size(); }

  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override {
    if (refuse_after == 0) return fail(ErrorCode::out_of_memory, std::string("test memory refuses ") + label);
    if (refuse_after != size_t(-1)) --refuse_after;
    const size_t rounded = (size_bytes + 4095) / 4096 * 4096;
    void* data = std::aligned_alloc(4096, rounded);
    std::memset(data, 0, rounded);
    sizes_[data] = rounded;
    held_bytes += rounded;
    most_held_bytes = std::max(most_held_bytes, held_bytes);
    return MemoryBlock{data, size_bytes, 0, nullptr};
  }
  bool shrink(MemoryBlock& block, size_t size_bytes) noexcept override {
    const size_t rounded = (size_bytes + 4095) / 4096 * 4096;
    size_t& counted = sizes_.at(block.data);
    if (rounded > counted) std::abort();  // nothing may grow this way
    held_bytes -= counted - rounded;
    counted = rounded;
    block.size_bytes = size_bytes;
    return true;
  }
  bool can_shrink() const noexcept override { return true; }
  void release(const MemoryBlock& block) noexcept override {
    const auto found = sizes_.find(block.data);
    if (found == sizes_.end()) std::abort();  // given back twice, or never given out
    held_bytes -= found->second;
    sizes_.erase(found);
    std::free(block.data);
  }

 private:
  std::map<void*, size_t> sizes_;
};

}  // namespace quarry::test
