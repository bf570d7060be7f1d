// SPDX-License-Identifier: Apache-2.0
// byte_buffer.cpp - address space from mmap, grown by mremap. The kernel backs a page at its first write;
// MADV_DONTNEED frees it.
#include "base/byte_buffer.hpp"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace quarry {

ByteBuffer::~ByteBuffer() {
  if (!bytes_) return;
  ASAN_UNPOISON_MEMORY_REGION(bytes_, capacity_);
  ::munmap(bytes_, capacity_);
}

void ByteBuffer::resize(size_t size) {
  if (size > capacity_) {
    constexpr size_t kLeast = size_t(1) << 20;
    size_t wanted = std::max(kLeast, capacity_ * 2);
    while (wanted < size) {
      if (wanted > SIZE_MAX / 4) throw std::bad_alloc();
      wanted *= 2;
    }
    if (bytes_) ASAN_UNPOISON_MEMORY_REGION(bytes_, capacity_);
    void* const place =
        bytes_ ? ::mremap(bytes_, capacity_, wanted, MREMAP_MAYMOVE)
               : ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) throw std::bad_alloc();
    bytes_ = static_cast<uint8_t*>(place);
    capacity_ = wanted;
  }
  if (!bytes_) return;
  if (size < size_) {
    const auto page = size_t(::sysconf(_SC_PAGESIZE)), whole = std::min(size_, (size + page - 1) / page * page);
    std::memset(bytes_ + size, 0, whole - size);  // in the page that is kept
    drop(size, capacity_);
  }
  size_ = size;
  // AddressSanitizer reports reads past the end, as for a vector.
  ASAN_UNPOISON_MEMORY_REGION(bytes_, size_);
  ASAN_POISON_MEMORY_REGION(bytes_ + size_, capacity_ - size_);
}

void ByteBuffer::append(std::span<const uint8_t> bytes) {
  const size_t had = size_;
  resize(had + bytes.size());
  if (!bytes.empty()) std::memcpy(bytes_ + had, bytes.data(), bytes.size());
}

void ByteBuffer::drop(size_t begin, size_t end) {
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end) ::madvise(bytes_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace quarry
