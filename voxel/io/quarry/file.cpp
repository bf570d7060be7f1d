// SPDX-License-Identifier: Apache-2.0
// file.cpp - locks a world file, checks its head, and puts a finished file in the place of an old one.
#include "voxel/io/quarry/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/quarry/sidecars.hpp"

namespace quarry::io {
namespace fs = std::filesystem;
namespace {

constexpr char kInUse[] = "it is open for editing in another window or program; close it there first";

}  // namespace

LockedFile::~LockedFile() {
  if (fd < 0) return;
  // close() alone leaves the lock to a child that another thread forked just now and that has not called exec() yet.
  ::flock(fd, LOCK_UN);
  ::close(fd);
}

Result<LockedFile> lock_file(const fs::path& file, int open_flags, int lock) {
  LockedFile locked;
  locked.fd = ::open(file.c_str(), open_flags | O_CLOEXEC | O_NONBLOCK);
  if (locked.fd < 0) return tl::unexpected(error_from_errno("cannot open it", errno));
  struct stat info {};
  if (::fstat(locked.fd, &info) != 0) return tl::unexpected(error_from_errno("cannot ask for its size", errno));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::io, "it is not a regular file");
  if (::flock(locked.fd, lock | LOCK_NB) != 0 && errno == EWOULDBLOCK) return fail(ErrorCode::conflict, kInUse);
  // A file system without flock returns another error. SQLite's own lock still protects the file there.
  struct stat now {};
  if (::stat(file.c_str(), &now) != 0 || now.st_ino != info.st_ino || now.st_dev != info.st_dev)
    return fail(ErrorCode::conflict, "it was replaced by another program just now; try again");
  return locked;
}

Result<void> check_header(const LockedFile& file) {
  uint8_t head[100] = {};
  const ssize_t n = ::pread(file.fd, head, sizeof head, 0);
  if (n < 0) return tl::unexpected(error_from_errno("cannot read it", errno));
  if (n < 100)
    return fail(ErrorCode::malformed_input,
                "it is " + std::to_string(n) + " bytes long; expected the 100 bytes with which a Quarry world begins");
  if (std::memcmp(head, "SQLite format 3", 16) != 0)
    return fail(ErrorCode::malformed_input, "byte 0: expected 'SQLite format 3', with which a Quarry world begins");
  return {};
}

uint64_t physical_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  uint64_t bytes = pages > 0 && size > 0 ? uint64_t(pages) * uint64_t(size) : UINT64_MAX;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  return bytes;
}

fs::path sidecar_path(const fs::path& file, const char* suffix) { return fs::path(file.string() + suffix); }

Result<LockedFile> lock_replaced(const Destination& to) {
  QRY_TRY_ASSIGN(const auto target, find_target(to));
  std::error_code ignored;
  return fs::exists(target, ignored) ? lock_file(target, O_RDONLY, LOCK_SH) : Result<LockedFile>();
}

Result<void> put_in_place(AtomicFile& world, const LockedFile& old) {
  std::optional<SidecarFiles> sidecars;
  return world.commit(
      [&]() -> Result<void> {
        sidecars.emplace(world.target(), old.fd >= 0);
        // A world with a log has been edited, whatever the bytes of its file are.
        if (world.may_keep() && old.fd >= 0 && sidecars->with_pages())
          return fail(ErrorCode::conflict, "it is there already, with edits beside it; give --overwrite to replace it");
        return {};
      },
      [&] { return world.kept() ? Result<void>() : sidecars->clear(); });
}

}  // namespace quarry::io
