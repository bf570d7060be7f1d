// SPDX-License-Identifier: Apache-2.0
// byte_reader.hpp - reads numbers and text from untrusted bytes. It never reads outside them. After the first failure
// every read returns zeros, and error() says what was expected at which byte. The readers of small formats use it.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "voxel/io/files/bytes.hpp"

namespace quarry::io {

// "byte 12: " - the beginning of messages about a file's bytes.
inline std::string at_byte(size_t offset) { return "byte " + std::to_string(offset) + ": "; }

class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes, size_t at = 0)
      : bytes_(bytes), at_(at < bytes.size() ? at : bytes.size()), there_to_(bytes.size()) {}
  // Reads a file that is loaded while it is read. The results of bytes() and text() are valid until the next read.
  explicit ByteReader(ByteView& window, size_t at = 0)
      : bytes_(window.all()), at_(at < bytes_.size() ? at : bytes_.size()), window_(&window) {}

  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }
  Result<void> good() const { return error_ ? Result<void>(tl::unexpected(*error_)) : Result<void>(); }
  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

  // Little-endian. `what` is the field's name for people.
  uint8_t u8(const char* what) { return number<uint8_t>(what); }
  uint16_t u16(const char* what) { return number<uint16_t>(what); }
  uint32_t u32(const char* what) { return number<uint32_t>(what); }
  uint64_t u64(const char* what) { return number<uint64_t>(what); }
  int32_t i32(const char* what) { return number<int32_t>(what); }
  float f32(const char* what) { return number<float>(what); }
  double f64(const char* what) { return number<double>(what); }
  // Big-endian.
  uint16_t u16_big(const char* what) { return uint16_t(big(2, what)); }
  uint32_t u32_big(const char* what) { return uint32_t(big(4, what)); }
  uint64_t u64_big(const char* what) { return big(8, what); }

  std::string_view text(size_t count, const char* what) {
    const uint8_t* p = bytes(count, what);
    return p ? std::string_view(reinterpret_cast<const char*>(p), count) : std::string_view();
  }
  // The next `count` bytes; null after a failure.
  const uint8_t* bytes(size_t count, const char* what) {
    if (error_) return nullptr;
    if (count > left()) {
      fail_at(at_, std::string("expected ") + what + " (" + std::to_string(count) +
                       " bytes), but the data ends at byte " + std::to_string(bytes_.size()));
      return nullptr;
    }
    if (at_ + count > there_to_) {
      const auto there = window_->look(at_, at_ + count);
      if (!there) {
        error_ = there.error();
        at_ = bytes_.size();
        return nullptr;
      }
      there_to_ = window_->there_to();
    }
    const uint8_t* p = bytes_.data() + at_;
    at_ += count;
    return p;
  }
  void skip(size_t count, const char* what) {
    if (window_ && !error_ && count <= left()) {
      at_ += count;  // skipped bytes are not read
      there_to_ = 0;
      return;
    }
    bytes(count, what);
  }
  void fail_at(size_t offset, const std::string& what) {
    if (!error_) error_ = Error{ErrorCode::malformed_input, at_byte(offset) + what};
    at_ = bytes_.size();
  }

 private:
  template <class T>
  T number(const char* what) {
    T value{};
    if (const uint8_t* p = bytes(sizeof(T), what)) std::memcpy(&value, p, sizeof(T));
    return value;
  }
  uint64_t big(size_t count, const char* what) {
    uint64_t value = 0;
    if (const uint8_t* p = bytes(count, what))
      for (size_t i = 0; i < count; ++i) value = value << 8 | p[i];
    return value;
  }

  std::span<const uint8_t> bytes_;
  size_t at_;
  size_t there_to_ = 0;  // with a window: the end of the bytes that are loaded already
  ByteView* window_ = nullptr;
  std::optional<Error> error_;
};

}  // namespace quarry::io
