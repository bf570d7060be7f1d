// SPDX-License-Identifier: Apache-2.0
// sink.hpp - bytes into a file that is open, by a writer of ours or through a stream by a library, with no failure that
// goes unheard: short and interrupted writes are gone on with, the first error is kept, and at the end the file must be
// as long as what was put.
#pragma once

#include <cstdint>
#include <span>
#include <streambuf>
#include <string_view>
#include <vector>

namespace quarry::io {

// One thread. After the first failure every call does nothing. The descriptor is the caller's.
class FileSink {
 public:
  explicit FileSink(int fd = -1) : fd_(fd) {}
  // At position(), which goes on behind it.
  void put(std::span<const uint8_t> bytes);
  void put(std::string_view text) { put({reinterpret_cast<const uint8_t*>(text.data()), text.size()}); }
  // Where the next bytes go: over earlier ones, or behind the end.
  void seek(uint64_t position);
  uint64_t position() const { return buffer_at_ + buffer_.size(); }
  uint64_t size() const { return position() > size_ ? position() : size_; }  // up to the last byte that was put
  void flush();
  // All of it is the system's, and the file as long as size(). 0, or the errno of the first failure.
  int settle();
  int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
  uint64_t buffer_at_ = 0, size_ = 0;
  std::vector<uint8_t> buffer_;
};

// The same for libraries that write into a std::ostream. Let it throw (exceptions()), for libraries do not look;
// sink.error() says why.
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
