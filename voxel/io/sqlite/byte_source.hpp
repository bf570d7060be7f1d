// SPDX-License-Identifier: Apache-2.0
// byte_source.hpp - bytes that are read at any place, a few at a time: in memory, or in a file that need not fit
// memory. For readers that go back and forth; those that read from front to back have ByteView (bytes.hpp) and
// BufferedReader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "base/result.hpp"

namespace quarry::io {

// Copies read the same bytes. For one thread at a time.
class ByteSource {
 public:
  ByteSource() = default;  // no bytes
  // `bytes` must outlive the source and its copies.
  explicit ByteSource(std::span<const uint8_t> bytes) : bytes_(bytes), size_(bytes.size()) {}
  // A file of this size that is open; it must stay so.
  static ByteSource of_open(int fd, uint64_t size);
  // Opens a file. One of at most `kept` bytes is read at once, so that what becomes of it does not matter. Errors:
  // those of read_file (bytes.hpp).
  static Result<ByteSource> open(const std::filesystem::path& file, uint64_t kept);

  uint64_t size() const { return size_; }
  // Fills `to` with the bytes from `at` on. False, and zeros: they are not all within the size, or cannot be read.
  bool read(uint64_t at, std::span<uint8_t> to) const;
  // Why bytes within the size could not be read; none if all could.
  std::optional<Error> error() const;

 private:
  struct File;
  std::shared_ptr<File> file_;  // null: all is in memory
  std::span<const uint8_t> bytes_;
  uint64_t size_ = 0;
};

}  // namespace quarry::io
