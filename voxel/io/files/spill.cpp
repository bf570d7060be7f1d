// SPDX-License-Identifier: Apache-2.0
// spill.cpp - a buffered temporary file that is unlinked as soon as it is open.
#include "voxel/io/files/spill.hpp"

#include <unistd.h>

#include <cerrno>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/temporary_name.hpp"

namespace quarry::io {
namespace {
constexpr size_t kSpillBufferBytes = size_t(1) << 18;
}

Result<std::unique_ptr<Spill>> Spill::create(const std::filesystem::path& beside) {
  QRY_TRY_ASSIGN(auto made, make_temporary_file(beside, 0600));
  ::unlink(made.path.c_str());
  std::unique_ptr<Spill> out(new Spill);
  out->fd_ = made.fd;
  return out;
}

Spill::~Spill() { ::close(fd_); }

void Spill::flush() {
  for (size_t done = 0; done < buffer_.size() && !error_;) {
    const ssize_t n = ::pwrite(fd_, buffer_.data() + done, buffer_.size() - done, off_t(flushed_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) error_ = error_from_errno("cannot write what does not fit memory beside it", n < 0 ? errno : EIO);
    else done += size_t(n);
  }
  flushed_ += buffer_.size();
  buffer_.clear();
}

void Spill::append(std::span<const uint8_t> bytes) {
  while (!bytes.empty() && !error_) {
    const size_t part = std::min(bytes.size(), kSpillBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + std::ptrdiff_t(part));
    bytes = bytes.subspan(part);
    if (buffer_.size() == kSpillBufferBytes) flush();
  }
}

bool Spill::read(uint64_t at, std::span<uint8_t> out) {
  if (!buffer_.empty()) flush();
  while (!out.empty() && !error_) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), off_t(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error_ = error_from_errno("cannot read again what did not fit memory", n < 0 ? errno : EIO);
    } else {
      at += uint64_t(n);
      out = out.subspan(size_t(n));
    }
  }
  return !error_;
}

}  // namespace quarry::io
