// SPDX-License-Identifier: Apache-2.0
// buffered_reader.cpp - a buffer that is refilled by pread. The unused part of a piece moves to the front.
#include "voxel/io/files/buffered_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "voxel/io/files/bytes.hpp"

namespace quarry::io {
namespace {

constexpr size_t kFilePieceBytes = size_t(1) << 18;

}  // namespace

Result<BufferedReader> BufferedReader::open(const std::filesystem::path& file, uint64_t limit) {
  // It is opened non-blocking, because a pipe without a writer would block forever.
  BufferedReader out(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), 0);
  if (out.fd_ < 0) return tl::unexpected(error_from_errno("cannot open it", errno));
  struct stat info {};
  if (::fstat(out.fd_, &info) != 0) return tl::unexpected(error_from_errno("cannot ask for its size", errno));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::io, "it is not a regular file");
  out.size_ = uint64_t(info.st_size);
  if (out.size_ > limit)
    return fail(ErrorCode::unsupported,
                "it is " + std::to_string(out.size_) + " bytes long; at most " + std::to_string(limit) + " are read");
  return out;
}

BufferedReader::~BufferedReader() {
  if (fd_ >= 0) ::close(fd_);
}

std::span<const uint8_t> BufferedReader::refilled(size_t count) {
  const auto there = [&] {
    return at_ >= window_at_ && at_ - window_at_ < window_.size() ? window_.subspan(size_t(at_ - window_at_))
                                                                  : std::span<const uint8_t>();
  };
  if (fd_ < 0 || error_) return there();
  const std::span<const uint8_t> kept = there();
  const size_t wanted = size_t(std::min<uint64_t>(std::max(count, kFilePieceBytes), left()));
  std::vector<uint8_t> next;
  size_t got = kept.size();
  if (buffer_.size() >= wanted) {
    std::copy(kept.begin(), kept.end(), buffer_.begin());  // towards the front
  } else {
    next.resize(wanted);
    std::copy(kept.begin(), kept.end(), next.begin());
    buffer_ = std::move(next);
  }
  while (got < wanted) {
    const ssize_t n = ::pread(fd_, buffer_.data() + got, wanted - got, off_t(at_ + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error_ = error_from_errno("cannot read it", errno);
    if (n == 0) error_ = Error{ErrorCode::io, "it became shorter while it was read"};
    if (n <= 0) break;
    got += size_t(n);
  }
  window_at_ = at_;
  window_ = {buffer_.data(), got};
  return window_;
}

}  // namespace quarry::io
