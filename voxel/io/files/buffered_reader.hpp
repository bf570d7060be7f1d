// SPDX-License-Identifier: Apache-2.0
// buffered_reader.hpp - reads bytes in order, a piece at a time, from memory or from a file that need not fit memory.
// It is for readers of long files of small elements. Unlike ByteView it maps no memory of the file's length, which
// would count towards the limit of a reading process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace quarry::io {

// Not thread-safe.
class BufferedReader {
 public:
  // `bytes` must outlive the reader; nothing is copied.
  explicit BufferedReader(std::span<const uint8_t> bytes) : size_(bytes.size()), window_(bytes) {}
  // Opens a file. Memory: the longest run that is asked for, at least a quarter of a MiB. Errors: those of read_file
  // (file_bytes.hpp).
  static Result<BufferedReader> open(const std::filesystem::path& file, uint64_t limit);
  BufferedReader(BufferedReader&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        size_(other.size_),
        window_at_(other.window_at_),
        at_(other.at_),
        buffer_(std::move(other.buffer_)),
        window_(std::exchange(other.window_, {})),
        error_(std::move(other.error_)) {}
  BufferedReader(const BufferedReader&) = delete;
  BufferedReader& operator=(const BufferedReader&) = delete;
  ~BufferedReader();

  uint64_t size() const { return size_; }
  uint64_t at() const { return at_; }
  uint64_t left() const { return size_ - at_; }
  void seek(uint64_t at) { at_ = at < size_ ? at : size_; }
  // Returns a run of at least `count` bytes from here on. It has fewer only at the file's end, or if the file could not
  // be read; then there is an error. The run is valid until the next call of peek.
  std::span<const uint8_t> peek(size_t count) {
    const uint64_t skip = at_ - window_at_;
    if (at_ >= window_at_ && skip + count <= window_.size()) return window_.subspan(size_t(skip));
    return refilled(count);
  }
  void take(uint64_t count) { at_ += count < left() ? count : left(); }
  const std::optional<Error>& error() const { return error_; }
  Result<void> good() const { return error_ ? Result<void>(tl::unexpected(*error_)) : Result<void>(); }

 private:
  BufferedReader(int fd, uint64_t size) : fd_(fd), size_(size) {}
  std::span<const uint8_t> refilled(size_t count);

  int fd_ = -1;  // -1: all bytes are in window_
  uint64_t size_ = 0, window_at_ = 0, at_ = 0;
  std::vector<uint8_t> buffer_;
  std::span<const uint8_t> window_;
  std::optional<Error> error_;
};

}  // namespace quarry::io
