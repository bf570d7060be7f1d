// SPDX-License-Identifier: Apache-2.0
// byte_buffer.hpp - a byte queue: bytes are appended at the end, and pages at the beginning can be freed before the end
// has arrived. It grows without copying, so it never holds its content twice. It takes memory only for written bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace quarry {

// For one thread at a time.
class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(ByteBuffer&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~ByteBuffer();

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  uint8_t* data() { return bytes_; }
  std::span<const uint8_t> span() const { return {bytes_, size_}; }
  operator std::span<const uint8_t>() const { return span(); }  // NOLINT(google-explicit-constructor): like a vector
  // New bytes are zero. Their memory is taken at the first write. Throws std::bad_alloc.
  void resize(size_t size);
  void append(std::span<const uint8_t> bytes);  // throws std::bad_alloc
  // Bytes [begin, end) are no longer read: their whole pages are freed.
  void drop(size_t begin, size_t end);

 private:
  uint8_t* bytes_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace quarry
