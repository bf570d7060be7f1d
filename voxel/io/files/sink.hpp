// SPDX-License-Identifier: Apache-2.0
// sink.hpp - writes bytes into an open file, for our own writers and, through a stream, for libraries. No failure is
// ignored: short and interrupted writes are continued, the first error is kept, and at the end the file must have the
// length that was written.
#pragma once

#include <cstdint>
#include <span>
#include <streambuf>
#include <string_view>
#include <vector>

namespace quarry::io {

// Not thread-safe. After the first failure every call does nothing. The caller owns the descriptor.
class FileSink {
 public:
  explicit FileSink(int fd = -1) : fd_(fd) {}
  // Writes at position() and advances it.
  void put(std::span<const uint8_t> bytes);
  void put(std::string_view text) { put({reinterpret_cast<const uint8_t*>(text.data()), text.size()}); }
  // Sets the place of the next bytes: over earlier ones, or past the end.
  void seek(uint64_t position);
  uint64_t position() const { return buffer_at_ + buffer_.size(); }
  uint64_t size() const { return position() > size_ ? position() : size_; }  // up to the last written byte
  void flush();
  // Passes all bytes to the system and checks that the file's length is size(). Returns 0 or the errno of the first
  // failure.
  int settle();
  int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
  uint64_t buffer_at_ = 0, size_ = 0;
  std::vector<uint8_t> buffer_;
};

// The same for libraries that write into a std::ostream. Make the stream throw (exceptions()), because libraries do not
// check it. sink.error() gives the reason.
class SinkStreambuf : public std::streambuf {
 public:
  explicit SinkStreambuf(FileSink& sink) : sink_(sink) {}

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  pos_type seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode which) override;
  pos_type seekpos(pos_type to, std::ios_base::openmode which) override;
  int sync() override;

 private:
  FileSink& sink_;
};

}  // namespace quarry::io
