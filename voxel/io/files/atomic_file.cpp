// SPDX-License-Identifier: Apache-2.0
// atomic_file.cpp - write, check, fsync, rename, fsync of the folder. If nothing may be replaced, renameat2 or link is
// used.
#include "voxel/io/files/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/names.hpp"
#include "voxel/io/files/sidecar_marker.hpp"
#include "voxel/io/files/temporary_name.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as many as Linux follows
constexpr char kThere[] = "it is there already; give --overwrite to replace it";

constexpr char kOther[] = "it is there already, with other bytes; give --overwrite to replace it";

// Whether two open files have the same content. False if either cannot be read.
bool same_bytes(int a, int b) {
  constexpr size_t kPiece = size_t{1} << 16;
  struct stat first {
  }, second{};
  if (::fstat(a, &first) != 0 || ::fstat(b, &second) != 0 || !S_ISREG(first.st_mode) || first.st_size != second.st_size)
    return false;
  std::vector<char> from_a(kPiece), from_b(kPiece);
  const auto read_at = [](int fd, std::vector<char>& into, size_t size, off_t at) {
    for (size_t done = 0; done < size;) {
      const ssize_t got = ::pread(fd, into.data() + done, size - done, at + off_t(done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      done += size_t(got);
    }
    return true;
  };
  for (off_t at = 0; at < first.st_size; at += off_t(kPiece)) {
    const size_t size = std::min(kPiece, size_t(first.st_size - at));
    if (!read_at(a, from_a, size, at) || !read_at(b, from_b, size, at) ||
        std::memcmp(from_a.data(), from_b.data(), size) != 0)
      return false;
  }
  return true;
}

Error no_file(mode_t mode) {
  if (S_ISDIR(mode)) return {ErrorCode::io, "it is a folder; expected the name of a file"};
  const char* kind = S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                     : S_ISFIFO(mode)               ? "a FIFO (a named pipe)"
                     : S_ISSOCK(mode)               ? "a socket"
                                                    : "something else";
  return {ErrorCode::io,
          std::string("it is ") + kind + ", not a regular file, and would be gone if it were replaced; name a file"};
}

// Renames without replacing anything. Returns 0 or an errno, EEXIST if the target exists.
int rename_where_nothing_is(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return errno;
  // Some file systems do not support this (NFS, some of FUSE). link() does not replace an existing name either.
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return 0;
  }
  if (errno != EPERM && errno != ENOSYS && errno != ENOTSUP && errno != EMLINK) return errno;
  // The file system does not support links either. The process that creates the empty file owns the name and may rename
  // over it. If it is killed in between, the empty file stays. The next run then reports it as "there already", which
  // is better than replacing another file.
  const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno;
  ::close(fd);
  if (::rename(from.c_str(), to.c_str()) == 0) return 0;
  const int number = errno;
  ::unlink(to.c_str());
  return number;
}

}  // namespace

Result<fs::path> find_target(const Destination& to) {
  struct stat info {};
  // stat() follows links that only the system can follow (/dev/stdout).
  if (::stat(to.file.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) return tl::unexpected(no_file(info.st_mode));
    if (!to.replace && !to.same_is_fine) return fail(ErrorCode::conflict, kThere);
  } else if (errno == ELOOP) {
    return fail(ErrorCode::io, "it is a link that leads in a circle; take it away, or name another file");
  } else if (errno != ENOENT) {
    return tl::unexpected(error_from_errno("cannot be looked at", errno));
  }
  fs::path at = to.file;
  for (int links = 0; ::lstat(at.c_str(), &info) == 0 && S_ISLNK(info.st_mode); ++links) {
    std::error_code error;
    const fs::path next = fs::read_symlink(at, error);
    if (error || links == kMaxLinks)
      return tl::unexpected(error_from_errno("cannot follow the link " + at.string(), error ? error.value() : ELOOP));
    // The system resolves "..", because it knows the target of a folder's link.
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at;
}

Result<AtomicFile> AtomicFile::create(const Destination& to) {
  QRY_TRY_ASSIGN(auto target, find_target(to));
  AtomicFile out(to);
  out.target_ = std::move(target);
  struct stat old {};
  out.replaces_ = ::stat(out.target_.c_str(), &old) == 0;
  QRY_TRY_ASSIGN(auto made, make_temporary_file(out.target_, out.replaces_ ? old.st_mode & 0777 : 0666));
  out.temporary_ = std::move(made.path);
  out.fd_ = made.fd;
  out.sink_ = FileSink(out.fd_);
  if (out.replaces_) {
    struct stat own {};
    const bool same_owner = ::fstat(out.fd_, &own) == 0 && ((own.st_uid == old.st_uid && own.st_gid == old.st_gid) ||
                                                            ::fchown(out.fd_, old.st_uid, old.st_gid) == 0 ||
                                                            (own.st_uid == old.st_uid && own.st_gid == old.st_gid));
    // The umask may have removed bits. If fchmod() is refused (FAT), the file is good all the same. A file with a new
    // owner gets no set-user or set-group bit, so it lets nobody act as another user.
    (void)::fchmod(out.fd_, old.st_mode & (same_owner ? 07777 : 0777));
  }
  if (to.later) to.later->watch(out.temporary_);
  return out;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : to_(std::move(other.to_)),
      target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      replaces_(other.replaces_),
      settled_(other.settled_),
      kept_(other.kept_),
      fd_(std::exchange(other.fd_, -1)),
      by_name_(other.by_name_),
      sink_(std::move(other.sink_)) {
  other.temporary_.clear();
}

void AtomicFile::forget() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

AtomicFile::~AtomicFile() { forget(); }

void AtomicFile::put_u32(uint32_t v) {
  const std::array<uint8_t, 4> bytes = {uint8_t(v), uint8_t(v >> 8), uint8_t(v >> 16), uint8_t(v >> 24)};
  put(bytes);
}

void AtomicFile::patch_u32(uint64_t offset, uint32_t v) {
  const uint64_t end = size();
  sink_.seek(offset);
  put_u32(v);
  sink_.seek(end);
}

// Does everything except the rename.
Result<void> AtomicFile::settle() {
  folder_ = folder_of(target_);
  if (settled_) return {};
  int number = by_name_ ? 0 : sink_.settle();
  struct stat info {};
  if (!number && ::fstat(fd_, &info) != 0) number = errno;
  if (!number && by_name_ && uint64_t(info.st_size) != *by_name_)
    return fail(ErrorCode::io, "cannot write it: it should be " + std::to_string(*by_name_) + " bytes long, but " +
                                   std::to_string(info.st_size) +
                                   " were written: the disk is full, or there was a disk I/O error");
  if (!number && waits()) number = sync_file(fd_);
  if (!number) {
    // Some file systems (NFS) report a lack of space only on close. The duplicate keeps the lock, so that the file,
    // which still has its temporary name, does not look stale.
    const int lock = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
    if (lock < 0) number = errno;
    else if (::close(std::exchange(fd_, lock)) != 0 && errno != EINTR) number = errno;
  }
  if (number) return tl::unexpected(error_from_errno("cannot write it", number));
  settled_ = true;
  return {};
}

// Gives the file its name.
Result<void> AtomicFile::place() {
  struct stat now {};
  const bool there = ::lstat(target_.c_str(), &now) == 0;
  if (there && S_ISLNK(now.st_mode))
    return fail(ErrorCode::conflict, "another program has made a link of it meanwhile; try again");
  if (there && !S_ISREG(now.st_mode)) return tl::unexpected(no_file(now.st_mode));
  int number = EEXIST;
  if (!there || !to_.replace) number = rename_where_nothing_is(temporary_, target_);
  if (number == EEXIST) {
    if (!to_.replace) return to_.same_is_fine ? keep_same() : fail(ErrorCode::conflict, kThere);
    number = 0;
    if (!waits()) number = sync_file(fd_);  // the target did not exist at the beginning
    if (!number && ::rename(temporary_.c_str(), target_.c_str()) != 0) number = errno;
  }
  if (number) return tl::unexpected(error_from_errno("cannot put the new file in its place", number));
  temporary_.clear();
  return {};
}

// Keeps the existing target if it has the bytes of the new file, which is then not needed.
Result<void> AtomicFile::keep_same() {
  const int there = ::open(target_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (there < 0) return tl::unexpected(error_from_errno("is there already and cannot be compared", errno));
  const bool same = same_bytes(there, fd_);
  // Whoever wrote it may have been killed before it was on disk.
  const int number = same && !to_.later ? sync_file(there) : 0;
  ::close(there);
  if (number) return tl::unexpected(error_from_errno("cannot be brought to disk", number));
  if (!same) return fail(ErrorCode::conflict, kOther);
  kept_ = true;
  ::unlink(temporary_.c_str());
  temporary_.clear();
  return {};
}

// Brings the new name to disk, too.
Result<void> AtomicFile::sync_folder() {
  if (to_.later) {
    to_.later->add(target_);
    return {};
  }
  if (const int number = io::sync_folder(folder_, fd_))
    return tl::unexpected(error_from_errno(
        "the new file is in its place, but it could not be brought to disk that it is; its folder", number));
  return {};
}

Result<void> AtomicFile::commit(const std::function<Result<void>()>& before,
                                const std::function<Result<void>()>& after) {
  auto done = settle();
  if (done && before) done = before();
  if (done) done = place();
  if (done && after) done = after();
  if (done) done = sync_folder();
  forget();
  return done;
}

Result<void> AtomicFile::commit_after(AtomicFile& sidecar) {
  const auto named = [&](Result<void> result) {
    return result.map_error([&](const Error& e) {
      return Error{e.code, sidecar.target_.filename().string() + ", which belongs to it: " + e.message};
    });
  };
  auto done = named(sidecar.settle());
  if (done) done = settle();
  if (done) {
    SidecarMarker mark;
    done =
        mark.begin({sidecar.temporary_, sidecar.target_, temporary_, target_}, to_.replace, waits() || sidecar.waits());
    if (done) done = named(sidecar.place());
    if (done) done = place();
    if (!done) {
      if (auto back = mark.rollback(); !back) done.error().message += "; " + back.error().message;
    } else {
      mark.end();
    }
  }
  if (done) done = named(sidecar.sync_folder());
  if (done) done = sync_folder();
  sidecar.forget();
  forget();
  return done;
}

}  // namespace quarry::io
