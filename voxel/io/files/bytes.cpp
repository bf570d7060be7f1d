// SPDX-License-Identifier: Apache-2.0
// bytes.cpp - reads in pieces, asks the budget before it allocates memory, and frees pages that a reader has passed.
#include "voxel/io/files/bytes.hpp"

#include <fcntl.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>

namespace quarry::io {
namespace {

struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

Result<uint64_t> open_file(const std::filesystem::path& file, File* out) {
  // It is opened non-blocking, because a pipe without a writer would block forever.
  out->fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (out->fd < 0) return tl::unexpected(error_from_errno("cannot open it", errno));
  struct stat info {};
  if (::fstat(out->fd, &info) != 0) return tl::unexpected(error_from_errno("cannot ask for its size", errno));
  if (S_ISDIR(info.st_mode)) return fail(ErrorCode::io, "it is a folder; expected a file");
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::io, "it is not a regular file");
  return uint64_t(info.st_size);
}

constexpr size_t kReadPieceBytes = size_t(1) << 20;

// Reads in pieces. After each piece `going(its bytes)` decides whether to go on.
template <class Continue>
Result<std::vector<uint8_t>> read_pieces(const File& file, uint64_t count, const Continue& going) {
  std::vector<uint8_t> bytes;
  try {
    bytes.reserve(count);  // reserves addresses only; memory is used piece by piece
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "no memory for its " + std::to_string(count) + " bytes");
  } catch (const std::length_error&) {
    return fail(ErrorCode::out_of_memory, "no memory for its " + std::to_string(count) + " bytes");
  }
  while (bytes.size() < count) {
    const size_t had = bytes.size();
    bytes.resize(size_t(std::min<uint64_t>(count, had + kReadPieceBytes)));
    size_t got = had;
    while (got < bytes.size()) {
      const ssize_t n = ::read(file.fd, bytes.data() + got, bytes.size() - got);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return tl::unexpected(error_from_errno("cannot read it", errno));
      if (n == 0) break;  // the file became shorter meanwhile
      got += size_t(n);
    }
    const bool ended = got < bytes.size();
    bytes.resize(got);
    if (!going(got - had)) return fail(ErrorCode::cancelled, "stopped");
    if (ended) break;
  }
  return bytes;
}

Result<std::vector<uint8_t>> read_up_to(const File& file, uint64_t count) {
  return read_pieces(file, count, [](size_t) { return true; });
}

}  // namespace

Error error_from_errno(const std::string& what, int number) {
  ErrorCode code = ErrorCode::io;
  if (number == ENOENT || number == ENOTDIR) code = ErrorCode::not_found;
  if (number == ENOMEM) code = ErrorCode::out_of_memory;
  if (number == EBUSY || number == EWOULDBLOCK) code = ErrorCode::conflict;
  return {code, what + ": " + std::strerror(number)};
}

Result<std::vector<uint8_t>> read_file_head(const std::filesystem::path& file, size_t limit) {
  File f;
  QRY_TRY_ASSIGN(const auto size, open_file(file, &f));
  return read_up_to(f, std::min<uint64_t>(size, limit));
}

Result<std::vector<uint8_t>> read_file(const std::filesystem::path& file, uint64_t limit) {
  File f;
  QRY_TRY_ASSIGN(const auto size, open_file(file, &f));
  if (size > limit)
    return fail(ErrorCode::unsupported,
                "it is " + std::to_string(size) + " bytes long; at most " + std::to_string(limit) + " are read");
  return read_up_to(f, size);
}

Result<std::vector<uint8_t>> read_input(const std::filesystem::path& file, uint64_t limit, const Progress& progress,
                                        const MemoryBudget* budget, uint64_t becomes) {
  progress.say("read", -1);
  File f;
  QRY_TRY_ASSIGN(const auto size, open_file(file, &f));
  if (size > limit)
    return fail(ErrorCode::unsupported,
                "it is " + std::to_string(size) + " bytes long; at most " + std::to_string(limit) + " are read");
  QRY_TRY_ASSIGN(auto promise, MemoryBudget::promise(budget, size + becomes, "reading it"));
  return read_pieces(f, size, [&](size_t piece) {
    promise.taken(piece);
    return !progress.cancelled();
  });
}

Result<void> ByteView::move(size_t begin, size_t end) {
  if (!file_) return {};
  if (progress_->cancelled()) return fail(ErrorCode::cancelled, "stopped");
  if (begin < from_ || begin > to_) {  // back to dropped bytes, or past bytes that were never loaded
    file_->drop(from_, to_);
    from_ = to_ = begin;
  }
  const size_t wanted = std::min(all_.size(), std::max(end, to_ + kReadPieceBytes));
  // Whole pages are dropped. The page of `begin` is kept.
  if (const size_t keep = begin / kReadPieceBytes * kReadPieceBytes; keep > from_) {
    file_->drop(from_, keep);
    from_ = keep;
  }
  QRY_TRY(file_->load(to_, wanted));
  to_ = wanted;
  return {};
}

Result<LazyFile> LazyFile::open(const std::filesystem::path& file, uint64_t limit) {
  File f;
  QRY_TRY_ASSIGN(const auto size, open_file(file, &f));
  if (size > limit)
    return fail(ErrorCode::unsupported,
                "it is " + std::to_string(size) + " bytes long; at most " + std::to_string(limit) + " are read");
  LazyFile out;
  out.fd_ = std::exchange(f.fd, -1);
  out.size_ = size_t(size);
  if (out.size_ == 0) return out;
  // The file itself is not mapped, because another program could truncate it while it is read.
  void* place = ::mmap(nullptr, out.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return fail(ErrorCode::out_of_memory, "no room for its " + std::to_string(size) + " bytes");
  out.bytes_ = static_cast<uint8_t*>(place);
  // Under AddressSanitizer, reading bytes that are not loaded is an error, not a zero.
  ASAN_POISON_MEMORY_REGION(out.bytes_, out.size_);
  return out;
}

LazyFile::~LazyFile() {
  if (bytes_) {
    ASAN_UNPOISON_MEMORY_REGION(bytes_, size_);
    ::munmap(bytes_, size_);
  }
  if (fd_ >= 0) ::close(fd_);
}

Result<void> LazyFile::load(size_t begin, size_t end) {
  ASAN_UNPOISON_MEMORY_REGION(bytes_ + begin, begin < end ? end - begin : 0);
  while (begin < end) {
    const ssize_t n = ::pread(fd_, bytes_ + begin, std::min<size_t>(end - begin, size_t(1) << 30), off_t(begin));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(error_from_errno("cannot read it", errno));
    if (n == 0) return fail(ErrorCode::io, "it became shorter while it was read");
    begin += size_t(n);
  }
  return {};
}

void LazyFile::drop(size_t begin, size_t end) {
  ASAN_POISON_MEMORY_REGION(bytes_ + begin, begin < end ? end - begin : 0);
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end) ::madvise(bytes_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace quarry::io
