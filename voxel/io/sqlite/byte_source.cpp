// SPDX-License-Identifier: Apache-2.0
// byte_source.cpp - pread() for files, and the first error of it.
#include "voxel/io/sqlite/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "voxel/io/files/bytes.hpp"

namespace quarry::io {

struct ByteSource::File {
  int fd = -1;
  bool owned = false;
  std::vector<uint8_t> kept;
  std::optional<Error> error;
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (owned) ::close(fd);
  }
};

ByteSource ByteSource::of_open(int fd, uint64_t size) {
  ByteSource source;
  source.file_ = std::make_shared<File>();
  source.file_->fd = fd;
  source.size_ = size;
  return source;
}

Result<ByteSource> ByteSource::open(const std::filesystem::path& file, uint64_t kept) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(file, error);
  if (error || size <= kept) {
    auto source = ByteSource();
    source.file_ = std::make_shared<File>();
    QRY_TRY_ASSIGN(source.file_->kept, read_file(file, kept));
    source.bytes_ = source.file_->kept;
    source.size_ = source.bytes_.size();
    return source;
  }
  auto opened = std::make_shared<File>();
  opened->fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened->fd < 0) return tl::unexpected(error_from_errno("cannot open it", errno));
  opened->owned = true;
  struct stat info {};
  if (::fstat(opened->fd, &info) != 0) return tl::unexpected(error_from_errno("cannot ask for its size", errno));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::io, "it is not a regular file");
  ByteSource source = of_open(opened->fd, uint64_t(info.st_size));
  source.file_ = std::move(opened);
  return source;
}

bool ByteSource::read(uint64_t at, std::span<uint8_t> to) const {
  const auto nothing = [&] {
    std::fill(to.begin(), to.end(), uint8_t(0));
    return false;
  };
  if (at > size_ || to.size() > size_ - at) return nothing();
  if (!file_ || file_->fd < 0) {
    std::copy_n(bytes_.begin() + std::ptrdiff_t(at), to.size(), to.begin());
    return true;
  }
  for (size_t done = 0; done < to.size();) {
    const ssize_t n = ::pread(file_->fd, to.data() + done, to.size() - done, off_t(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (!file_->error)
        file_->error = n < 0 ? error_from_errno("cannot read it", errno)
                             : Error{ErrorCode::io, "it became shorter while it was read"};
      return nothing();
    }
    done += size_t(n);
  }
  return true;
}

std::optional<Error> ByteSource::error() const { return file_ ? file_->error : std::nullopt; }

}  // namespace quarry::io
