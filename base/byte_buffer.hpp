// SPDX-License-Identifier: Apache-2.0
// byte_buffer.hpp - bytes that come one after another and of which the beginning may go before the end has come. It grows without copying (a vector
// that grows has all it holds twice for a while), and takes memory only for what is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace quarry {

// One thread.
class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(ByteBuffer&& other) noexcept : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)), capacity_(std::exchange(other.capacity_, 0)) {}
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
  operator std::span<const uint8_t>() const { return span(); }  // NOLINT(google-explicit-constructor): read like the vector it stands for
  // New bytes are zero; their memory is taken when they are written. Throws std::bad_alloc.
  void resize(size_t size);
  void append(std::span<const uint8_t> bytes);  // throws std::bad_alloc
  // Nobody looks at bytes [begin, end) any more: whole pages of them go.
  void drop(size_t begin, size_t end);

 private:
  uint8_t* bytes_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace quarry
