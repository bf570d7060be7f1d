// SPDX-License-Identifier: Apache-2.0
// sink.cpp - buffered pwrite, repeated after short and interrupted writes, and a std::streambuf on top of it.
#include "voxel/io/files/sink.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace quarry::io {
namespace {
constexpr size_t kBufferBytes = size_t(1) << 20;

int write_at(int fd, uint64_t offset, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), off_t(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;
    offset += uint64_t(n);
    bytes = bytes.subspan(size_t(n));
  }
  return 0;
}

}  // namespace

void FileSink::flush() {
  if (!error_) error_ = write_at(fd_, buffer_at_, buffer_);
  buffer_at_ += buffer_.size();
  buffer_.clear();
  if (buffer_at_ > size_) size_ = buffer_at_;
}

void FileSink::put(std::span<const uint8_t> bytes) {
  if (error_) return;
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() < kBufferBytes) {
    if (buffer_.capacity() == 0) buffer_.reserve(kBufferBytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return;
  }
  if (!error_) error_ = write_at(fd_, buffer_at_, bytes);
  buffer_at_ += bytes.size();
  if (buffer_at_ > size_) size_ = buffer_at_;
}

void FileSink::seek(uint64_t position) {
  if (position == this->position()) return;
  flush();
  buffer_at_ = position;
}

int FileSink::settle() {
  flush();
  struct stat info {};
  if (!error_ && ::fstat(fd_, &info) != 0) error_ = errno;
  if (!error_ && uint64_t(info.st_size) != size_) error_ = EIO;
  return error_;
}

SinkStreambuf::int_type SinkStreambuf::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char letter = traits_type::to_char_type(c);
  return xsputn(&letter, 1) == 1 ? c : traits_type::eof();
}

std::streamsize SinkStreambuf::xsputn(const char* text, std::streamsize count) {
  sink_.put(std::string_view(text, size_t(count)));
  return sink_.error() ? 0 : count;
}

SinkStreambuf::pos_type SinkStreambuf::seekoff(off_type offset, std::ios_base::seekdir from,
                                               std::ios_base::openmode which) {
  const auto base = off_type(from == std::ios_base::beg   ? 0
                             : from == std::ios_base::cur ? sink_.position()
                                                          : sink_.size());
  return seekpos(pos_type(base + offset), which);
}

SinkStreambuf::pos_type SinkStreambuf::seekpos(pos_type to, std::ios_base::openmode which) {
  if (!(which & std::ios_base::out) || off_type(to) < 0) return pos_type(off_type(-1));
  sink_.seek(uint64_t(off_type(to)));
  return sink_.error() ? pos_type(off_type(-1)) : to;
}

int SinkStreambuf::sync() {
  sink_.flush();
  return sink_.error() ? -1 : 0;
}

}  // namespace quarry::io
