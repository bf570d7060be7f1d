// store_file.cpp - locks, temporary names and opening; see store_file.hpp.
#include "voxel/io/store_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "voxel/io/file_bytes.hpp"

namespace quarry::io {
namespace fs = std::filesystem;
namespace {

constexpr char kInUse[] = "it is open for editing in another window or program; close it there first";

// A URI of SQLite's for a path with any characters.
std::string uri_of(const fs::path& file, const char* query) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string uri = "file:";
  for (const char c : fs::absolute(file).string()) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '.' || c == '-' || c == '_') uri += c;
    else uri += {'%', kHex[uint8_t(c) >> 4], kHex[uint8_t(c) & 15]};
  }
  return uri + query;
}

}  // namespace

LockedFile::~LockedFile() {
  if (fd >= 0) ::close(fd);
}

TemporaryFile::~TemporaryFile() {
  if (keep || path.empty()) return;
  ::unlink(path.c_str());
  ::unlink(beside(path, "-journal").c_str());
}

Result<LockedFile> lock_file(const fs::path& file, int open_flags, int lock) {
  LockedFile locked;
  locked.fd = ::open(file.c_str(), open_flags | O_CLOEXEC | O_NONBLOCK);
  if (locked.fd < 0) return tl::unexpected(error_from_errno("cannot open it", errno));
  struct stat info {};
  if (::fstat(locked.fd, &info) != 0) return tl::unexpected(error_from_errno("cannot ask for its size", errno));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::io, "it is not a regular file");
  if (::flock(locked.fd, lock | LOCK_NB) != 0 && errno == EWOULDBLOCK) return fail(ErrorCode::conflict, kInUse);
  // A file system without flock gives another error; SQLite's own lock still stands there.
  struct stat now {};
  if (::stat(file.c_str(), &now) != 0 || now.st_ino != info.st_ino || now.st_dev != info.st_dev)
    return fail(ErrorCode::conflict, "it was replaced by another program just now; try again");
  return locked;
}

Result<void> check_header(const LockedFile& file) {
  uint8_t head[100] = {};
  const ssize_t n = ::pread(file.fd, head, sizeof head, 0);
  if (n < 0) return tl::unexpected(error_from_errno("cannot read it", errno));
  if (n < 100) return fail(ErrorCode::malformed_input, "it is " + std::to_string(n) + " bytes long; expected the 100 bytes with which a Quarry world begins");
  if (std::memcmp(head, "SQLite format 3", 16) != 0) return fail(ErrorCode::malformed_input, "byte 0: expected 'SQLite format 3', with which a Quarry world begins");
  return {};
}

uint64_t physical_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  uint64_t bytes = pages > 0 && size > 0 ? uint64_t(pages) * uint64_t(size) : UINT64_MAX;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  return bytes;
}

fs::path beside(const fs::path& file, const char* suffix) { return fs::path(file.string() + suffix); }

Result<Db> open_for_reading(const fs::path& file) {
  std::error_code ignored;
  const bool leftovers = fs::exists(beside(file, "-wal"), ignored) || fs::exists(beside(file, "-journal"), ignored);
  const bool writable = ::access(file.c_str(), W_OK) == 0 && ::access(fs::absolute(file).parent_path().c_str(), W_OK) == 0;
  // Nothing to fold in and nobody who could write (we hold the lock): read the bytes as they are, without any file beside it.
  auto db = leftovers && writable ? Db::open(file.string(), SQLITE_OPEN_READWRITE) : Db::open(uri_of(file, leftovers ? "?mode=ro" : "?immutable=1"), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  if (!db) return db;
  sqlite3_busy_timeout(db->handle(), 2000);
  if (auto r = db->run("PRAGMA temp_store=MEMORY", "set up the database"); !r) return tl::unexpected(r.error());
  if (leftovers && writable)
    if (auto r = db->run("PRAGMA locking_mode=EXCLUSIVE", "set up the database"); !r) return tl::unexpected(r.error());
  // Closing would fold the log in and remove it, also after finding that the database is damaged: salvage needs it as it is.
  sqlite3_db_config(db->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return db;
}

Result<void> sync_path(const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return tl::unexpected(error_from_errno("cannot open " + path.string() + " to bring it to disk", errno));
  const int failed = ::fsync(fd);
  const int number = errno;
  ::close(fd);
  if (failed) return tl::unexpected(error_from_errno("cannot bring " + path.string() + " to disk", number));
  return {};
}

Result<void> make_temporary(const fs::path& file, TemporaryFile* out) {
  static std::atomic<uint32_t> counter{0};
  struct stat old {};
  const bool there = ::stat(file.c_str(), &old) == 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    fs::path path = file.parent_path() / ("." + file.filename().string() + ".new-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, there ? old.st_mode & 0777 : 0666);
    if (fd >= 0) {
      out->path.swap(path);  // takes no memory: the file that is there now has its owner
      if (there) (void)::fchmod(fd, old.st_mode & 0777);  // the umask may have taken bits away; where it is refused, the file is good all the same
      ::close(fd);
      return {};
    }
    if (errno != EEXIST) return tl::unexpected(error_from_errno("cannot write into the folder " + fs::absolute(file).parent_path().string(), errno));
  }
  return fail(ErrorCode::io, "cannot find a free name for the new file beside it");
}

void fold_in_leftovers(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(beside(file, "-wal"), ignored) && !fs::exists(beside(file, "-journal"), ignored)) return;
  if (auto db = Db::open(file.string(), SQLITE_OPEN_READWRITE)) {
    (void)db->run("PRAGMA locking_mode=EXCLUSIVE", "fold in");
    (void)db->run("PRAGMA journal_mode=DELETE", "fold in");
  }
  // What SQLite could not use belongs to a file that is beyond reading, and must not meet the new one.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) ::unlink(beside(file, suffix).c_str());
}

}  // namespace quarry::io
