#include "voxel/io/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "voxel/io/file_bytes.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;
constexpr size_t kBufferBytes = size_t(1) << 20;
}  // namespace

Result<WholeFile> WholeFile::create(const fs::path& file) {
  static std::atomic<uint32_t> counter{0};
  WholeFile out;
  std::error_code ignored;
  out.target_ = fs::is_symlink(file, ignored) ? fs::weakly_canonical(file, ignored) : file;
  if (fs::is_directory(out.target_, ignored)) return fail(ErrorCode::io, "it is a folder; expected the name of a file");
  struct stat old {};
  const bool there = ::stat(out.target_.c_str(), &old) == 0;
  for (int attempt = 0; attempt < 100 && out.fd_ < 0; ++attempt) {
    fs::path beside = out.target_.parent_path() / ("." + out.target_.filename().string() + ".new-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
    out.fd_ = ::open(beside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, there ? old.st_mode & 0777 : 0666);
    if (out.fd_ >= 0) out.temporary_ = std::move(beside);
    else if (errno != EEXIST) return tl::unexpected(error_from_errno("cannot make a new file in " + fs::absolute(out.target_).parent_path().string(), errno));
  }
  if (out.fd_ < 0) return fail(ErrorCode::io, "every name for a temporary file beside it is taken");
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
  const int closed = ::close(std::exchange(fd_, -1));
  if (!error_number_ && closed != 0) error_number_ = errno;
  if (error_number_) return tl::unexpected(error_from_errno("cannot write it", error_number_));
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return tl::unexpected(error_from_errno("cannot put the new file in its place", errno));
  temporary_.clear();
  return {};
}

}  // namespace quarry::io
