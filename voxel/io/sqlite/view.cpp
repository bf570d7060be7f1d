// SPDX-License-Identifier: Apache-2.0
// view.cpp - a file system for SQLite (sqlite.org/vfs.html) with one read-only file.
#include "voxel/io/sqlite/view.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "voxel/io/files/bytes.hpp"

namespace quarry::io {
namespace {

constexpr char kName[] = "quarry-view";

class ViewSource {
 public:
  ViewSource(int fd, DatabaseView view) : fd_(fd), view_(std::move(view)) {}
  ViewSource(const ViewSource&) = delete;
  ViewSource& operator=(const ViewSource&) = delete;
  ~ViewSource() { ::close(fd_); }

  uint64_t bytes() const { return view_.bytes; }
  // SQLite expects zeros past the end.
  int read(uint8_t* to, size_t count, uint64_t at) const {
    const size_t there = at >= view_.bytes ? 0 : size_t(std::min<uint64_t>(count, view_.bytes - at));
    std::memset(to + there, 0, count - there);
    for (size_t done = 0; done < there;) {
      const uint64_t page = (at + done) / view_.page_bytes, in_page = (at + done) % view_.page_bytes;
      const size_t piece = size_t(std::min<uint64_t>(there - done, view_.page_bytes - in_page));
      const auto given = view_.pages.pages().find(uint32_t(page + 1));
      if (given != view_.pages.pages().end()) std::memcpy(to + done, given->second.data() + in_page, piece);
      else if (const int failed = read_file(to + done, piece, at + done)) return failed;
      done += piece;
    }
    return there == count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
  }

 private:
  int read_file(uint8_t* to, size_t count, uint64_t at) const {
    while (count > 0) {
      const ssize_t n = ::pread(fd_, to, count, off_t(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return SQLITE_IOERR_READ;
      if (n == 0) {
        std::memset(to, 0, count);
        return SQLITE_IOERR_SHORT_READ;
      }
      to += n, at += uint64_t(n), count -= size_t(n);
    }
    return SQLITE_OK;
  }

  int fd_;
  DatabaseView view_;
};

// The source that sqlite3_open_v2 opens on this thread.
thread_local std::unique_ptr<ViewSource> to_open;

struct ViewFile {
  sqlite3_file base;  // must be first: SQLite knows only this part
  ViewSource* source;
};
ViewSource& source_of(sqlite3_file* file) { return *reinterpret_cast<ViewFile*>(file)->source; }

int refuse_write(sqlite3_file*, const void*, int, sqlite3_int64) { return SQLITE_READONLY; }
int refuse_size(sqlite3_file*, sqlite3_int64) { return SQLITE_READONLY; }
int nothing_to_do(sqlite3_file*, int) { return SQLITE_OK; }

const sqlite3_io_methods kMethods = {
    1,
    [](sqlite3_file* file) {
      delete reinterpret_cast<ViewFile*>(file)->source;
      return SQLITE_OK;
    },
    [](sqlite3_file* file, void* to, int count, sqlite3_int64 at) {
      return source_of(file).read(static_cast<uint8_t*>(to), size_t(count), uint64_t(at));
    },
    refuse_write,
    refuse_size,
    nothing_to_do,  // sync
    [](sqlite3_file* file, sqlite3_int64* bytes) {
      *bytes = sqlite3_int64(source_of(file).bytes());
      return SQLITE_OK;
    },
    nothing_to_do,  // lock
    nothing_to_do,  // unlock
    [](sqlite3_file*, int* locked) {
      *locked = 0;
      return SQLITE_OK;
    },
    [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; },
    [](sqlite3_file*) { return 4096; },
    [](sqlite3_file*) { return SQLITE_IOCAP_IMMUTABLE; },
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

int open_file(sqlite3_vfs*, const char*, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if (!(flags & SQLITE_OPEN_MAIN_DB) || !to_open) return SQLITE_CANTOPEN;
  reinterpret_cast<ViewFile*>(file)->source = to_open.release();
  file->pMethods = &kMethods;
  if (out_flags) *out_flags = SQLITE_OPEN_READONLY;
  return SQLITE_OK;
}

// Time, random numbers and sleep are those of the default file system.
sqlite3_vfs make_vfs() {
  sqlite3_vfs vfs = *sqlite3_vfs_find(nullptr);
  vfs.zName = kName;
  vfs.szOsFile = int(sizeof(ViewFile));
  vfs.xOpen = open_file;
  vfs.xDelete = [](sqlite3_vfs*, const char*, int) { return SQLITE_READONLY; };
  vfs.xAccess = [](sqlite3_vfs*, const char*, int, int* yes) {
    *yes = 0;
    return SQLITE_OK;
  };
  vfs.xFullPathname = [](sqlite3_vfs*, const char* name, int count, char* out) {
    sqlite3_snprintf(count, out, "%s", name);
    return SQLITE_OK;
  };
  return vfs;
}

}  // namespace

Result<Db> open_view(int fd, DatabaseView view) {
  static sqlite3_vfs vfs = make_vfs();
  static const int registered = sqlite3_vfs_register(&vfs, 0);
  if (registered != SQLITE_OK) return fail(ErrorCode::out_of_memory, "no memory for a database connection");
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return tl::unexpected(error_from_errno("cannot open it", errno));
  to_open = std::make_unique<ViewSource>(copy, std::move(view));
  auto db = Db::open("view", SQLITE_OPEN_READONLY, kName);
  to_open.reset();
  return db;
}

}  // namespace quarry::io
