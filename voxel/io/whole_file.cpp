#include "voxel/io/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "voxel/io/file_bytes.hpp"
#include "voxel/io/temporary_name.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;
constexpr size_t kBufferBytes = size_t(1) << 20;
}  // namespace

Result<WholeFile> WholeFile::create(const fs::path& file) {
  WholeFile out;
  std::error_code ignored;
  out.target_ = fs::is_symlink(file, ignored) ? fs::weakly_canonical(file, ignored) : file;
  if (fs::is_directory(out.target_, ignored)) return fail(ErrorCode::io, "it is a folder; expected the name of a file");
  struct stat old {};
  const bool there = ::stat(out.target_.c_str(), &old) == 0;
  auto made = make_temporary_file(out.target_, there ? old.st_mode & 0777 : 0666);
  if (!made) return tl::unexpected(made.error());
  out.temporary_ = std::move(made->path);
  out.fd_ = made->fd;
  out.buffer_.reserve(kBufferBytes);
  return out;
}

WholeFile::WholeFile(WholeFile&& other) noexcept
    : target_(std::move(other.target_)), temporary_(std::move(other.temporary_)), fd_(std::exchange(other.fd_, -1)), error_number_(other.error_number_),
      flushed_(other.flushed_), buffer_(std::move(other.buffer_)) {
  other.temporary_.clear();
}

WholeFile::~WholeFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void WholeFile::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  while (!bytes.empty() && !error_number_) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), off_t(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error_number_ = n < 0 ? errno : EIO;
      return;
    }
    offset += uint64_t(n);
    bytes = bytes.subspan(size_t(n));
  }
}

void WholeFile::flush() {
  write_at(flushed_, buffer_);
  flushed_ += buffer_.size();
  buffer_.clear();
}

void WholeFile::put(std::span<const uint8_t> bytes) {
  if (error_number_) return;
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() < kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  } else {
    write_at(flushed_, bytes);
    flushed_ += bytes.size();
  }
}

void WholeFile::put_u32(uint32_t v) {
  const uint8_t bytes[4] = {uint8_t(v), uint8_t(v >> 8), uint8_t(v >> 16), uint8_t(v >> 24)};
  put(bytes);
}

void WholeFile::patch_u32(uint64_t offset, uint32_t v) {
  flush();
  const uint8_t bytes[4] = {uint8_t(v), uint8_t(v >> 8), uint8_t(v >> 16), uint8_t(v >> 24)};
  write_at(offset, bytes);
}

Result<void> WholeFile::commit() {
  flush();
  const int lock = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);  // while it has a temporary name, it must not look left behind
  const int closed = ::close(std::exchange(fd_, -1));
  if (!error_number_ && closed != 0) error_number_ = errno;
  Result<void> done;
  if (error_number_) done = tl::unexpected(error_from_errno("cannot write it", error_number_));
  else if (::rename(temporary_.c_str(), target_.c_str()) != 0) done = tl::unexpected(error_from_errno("cannot put the new file in its place", errno));
  else temporary_.clear();
  if (lock >= 0) ::close(lock);
  return done;
}

}  // namespace quarry::io
