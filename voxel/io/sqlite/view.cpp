// SPDX-License-Identifier: Apache-2.0
// view.cpp - a file system for SQLite (sqlite.org/vfs.html) with one file, which is not written to.
#include "voxel/io/sqlite/view.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "voxel/io/files/bytes.hpp"

namespace quarry::io {
namespace {

constexpr char kName[] = "quarry-view";

class ViewSource {
 public:
  ViewSource(int fd, DatabaseView view, ViewWrites writes) : fd_(fd), view_(std::move(view)), writes_(writes) {}
  ViewSource(const ViewSource&) = delete;
  ViewSource& operator=(const ViewSource&) = delete;
  ~ViewSource() { ::close(fd_); }

  bool refuses_writes() const { return writes_ == ViewWrites::refused; }
  uint64_t bytes() const { return view_.bytes; }
  void set_bytes(uint64_t bytes) { view_.bytes = bytes; }
  // SQLite writes whole pages.
  int write(const uint8_t* from, size_t count, uint64_t at) {
    if (refuses_writes()) return SQLITE_READONLY;
    if (count != view_.page_bytes || at % count != 0) return SQLITE_IOERR_WRITE;
    try {
      written_[at / count].assign(from, from + count);
    } catch (const std::bad_alloc&) {
      return SQLITE_IOERR_NOMEM;
    }
    view_.bytes = std::max<uint64_t>(view_.bytes, at + count);
    return SQLITE_OK;
  }
  // SQLite expects zeros past the end.
  int read(uint8_t* to, size_t count, uint64_t at) const {
    const size_t there = at >= view_.bytes ? 0 : size_t(std::min<uint64_t>(count, view_.bytes - at));
    std::memset(to + there, 0, count - there);
    for (size_t done = 0; done < there;) {
      const uint64_t page = (at + done) / view_.page_bytes, in_page = (at + done) % view_.page_bytes;
      const size_t piece = size_t(std::min<uint64_t>(there - done, view_.page_bytes - in_page));
      const auto written = written_.find(page);
      const auto given = view_.pages.pages().find(uint32_t(page + 1));
      if (written != written_.end()) std::memcpy(to + done, written->second.data() + in_page, piece);
      else if (const int failed = given != view_.pages.pages().end()
                                      ? read_page(given->second, in_page, {to + done, piece})
                                      : read_file(to + done, piece, at + done))
        return failed;
      done += piece;
    }
    // For SQLite there is no log beside a view: bytes 18 and 19 say that of a database that may be written to.
    for (const uint64_t mode : {18u, 19u})
      if (!refuses_writes() && mode >= at && mode < at + there) to[mode - at] = 1;
    return there == count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
  }

 private:
  int read_page(JournalPages::Place page, uint64_t from, std::span<uint8_t> to) const {
    return view_.pages.read(page, uint32_t(from), to) ? SQLITE_OK : SQLITE_IOERR_READ;
  }
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
  ViewWrites writes_;
  std::map<uint64_t, std::vector<uint8_t>> written_;  // by the page's number, from 0
};

// The source that sqlite3_open_v2 opens on this thread.
thread_local std::unique_ptr<ViewSource> to_open;

struct ViewFile {
  sqlite3_file base;  // must be first: SQLite knows only this part
  ViewSource* source;
};
ViewSource& source_of(sqlite3_file* file) { return *reinterpret_cast<ViewFile*>(file)->source; }

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
    [](sqlite3_file* file, const void* from, int count, sqlite3_int64 at) {
      return source_of(file).write(static_cast<const uint8_t*>(from), size_t(count), uint64_t(at));
    },
    [](sqlite3_file* file, sqlite3_int64 bytes) {
      if (source_of(file).refuses_writes()) return SQLITE_READONLY;
      source_of(file).set_bytes(uint64_t(bytes));
      return SQLITE_OK;
    },
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
    [](sqlite3_file* file) { return source_of(file).refuses_writes() ? SQLITE_IOCAP_IMMUTABLE : 0; },
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
  const bool refuses = to_open->refuses_writes();
  reinterpret_cast<ViewFile*>(file)->source = to_open.release();
  file->pMethods = &kMethods;
  if (out_flags) *out_flags = refuses ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
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

Result<Db> open_view(int fd, DatabaseView view, ViewWrites writes) {
  static sqlite3_vfs vfs = make_vfs();
  static const int registered = sqlite3_vfs_register(&vfs, 0);
  if (registered != SQLITE_OK) return fail(ErrorCode::out_of_memory, "no memory for a database connection");
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return tl::unexpected(error_from_errno("cannot open it", errno));
  to_open = std::make_unique<ViewSource>(copy, std::move(view), writes);
  auto db = Db::open("view", writes == ViewWrites::refused ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE, kName);
  to_open.reset();
  return db;
}

}  // namespace quarry::io
