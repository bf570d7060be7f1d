// store_file.cpp - locks and opening; see store_file.hpp.
#include "voxel/io/store_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "voxel/io/file_bytes.hpp"

namespace quarry::io {
namespace fs = std::filesystem;
namespace {

constexpr char kInUse[] = "it is open for editing in another window or program; close it there first";

}  // namespace

LockedFile::~LockedFile() {
  if (fd >= 0) ::close(fd);
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

namespace {

// SQLite's own locks are on these bytes ("File Format", the lock-byte page). Another program's, for ours are flock's.
bool locked_by_sqlite(int fd) {
  struct flock bytes {};
  bytes.l_type = F_WRLCK;
  bytes.l_whence = SEEK_SET;
  bytes.l_start = 0x40000000;
  bytes.l_len = 512;
  return ::fcntl(fd, F_GETLK, &bytes) == 0 && bytes.l_type != F_UNLCK;
}

// Whether any page that the log has is another one in the file.
bool log_differs(int fd, const DatabaseView& view) {
  std::vector<uint8_t> page(view.page_bytes);
  for (const auto& [number, bytes] : view.pages.pages()) {
    const ssize_t n = ::pread(fd, page.data(), page.size(), off_t(uint64_t(number - 1) * view.page_bytes));
    if (n != ssize_t(page.size()) || !std::equal(page.begin(), page.end(), bytes.begin())) return true;
  }
  return false;
}

Result<void> damaged_beside(const fs::path& companion, const char* what, const std::string& why) {
  return fail(ErrorCode::malformed_input, std::string(what) + " beside it, " + companion.filename().string() + ", is damaged: " + why);
}

}  // namespace

Result<DatabaseView> view_with_leftovers(const LockedFile& locked, const fs::path& file, std::vector<std::string>* warnings) {
  const auto warn = [&](std::string sentence) {
    if (warnings) warnings->push_back(std::move(sentence));
  };
  DatabaseView view;
  struct stat info {};
  if (::fstat(locked.fd, &info) != 0) return tl::unexpected(error_from_errno("cannot ask for its size", errno));
  view.bytes = uint64_t(info.st_size);
  std::vector<uint8_t> first(100);
  if (::pread(locked.fd, first.data(), first.size(), 0) != ssize_t(first.size())) return fail(ErrorCode::io, "cannot read its header");
  view.page_bytes = database_page_bytes(first);
  if (view.page_bytes == 0) view.page_bytes = 4096;
  const fs::path log_file = beside(file, "-wal"), journal_file = beside(file, "-journal");
  std::error_code ignored;
  const bool log_there = fs::exists(log_file, ignored);
  // A file that was closed is in rollback mode again: bytes 18 and 19 are 1.
  if (!log_there && (first[18] == 2 || first[19] == 2))
    warn("it was left open for editing, and the log of the last edits, " + log_file.filename().string() + ", is not beside it: edits may be missing. Copies need both files");
  if (!log_there && !fs::exists(journal_file, ignored)) return view;
  if (locked_by_sqlite(locked.fd)) return fail(ErrorCode::conflict, "it is open in another program; close it there first");
  for (const auto& [bytes, companion] : {std::pair(&view.log, &log_file), std::pair(&view.journal, &journal_file)}) {
    if (!fs::exists(*companion, ignored)) continue;
    auto read = read_file(*companion, physical_memory());
    if (!read) return fail(read.error().code, companion->filename().string() + " beside it, which belongs to it: " + read.error().message);
    *bytes = std::move(*read);
  }
  first.resize(size_t(std::min<uint64_t>(view.page_bytes, view.bytes)));
  if (::pread(locked.fd, first.data(), first.size(), 0) != ssize_t(first.size())) return fail(ErrorCode::io, "cannot read its first page");
  view.pages = CompanionPages(first, view.page_bytes, uint32_t(view.bytes / view.page_bytes), UINT32_MAX - 1, {view.log, view.journal}, CompanionPages::BehindDamage::stop);
  const CompanionUse &journal = view.pages.journal(), &log = view.pages.log();
  if (!journal.broken.empty())
    if (auto r = damaged_beside(journal_file, "the journal of an edit that was not finished,", journal.broken + "; the world may be half as before that edit and half as after it"); !r)
      return tl::unexpected(r.error());
  if (journal.foreign) warn(journal_file.filename().string() + " " + journal.said.front());
  std::string broken = log.broken;
  if (broken.empty() && log.headless && log_differs(locked.fd, view)) broken = "its header (byte 0) is";
  if (!broken.empty())
    if (auto r = damaged_beside(log_file, "the log of the last edits", broken + "; read without these edits, the world would be of an older state"); !r) return tl::unexpected(r.error());
  if (log.headless) {  // SQLite would not read it either, and it has nothing that the file has not
    view.pages = {};
    return view;
  }
  if (!log.unfinished.empty())
    warn(log_file.filename().string() + ", the log of the last edits, ends in an edit that is not whole, from " + log.unfinished +
         " on: it was being written when its program or the machine stopped, or it was damaged or cut short since. The world is as before that edit");
  if (!view.pages.pages().empty()) view.bytes = uint64_t(view.pages.count()) * view.page_bytes;
  return view;
}

Result<Db> open_for_reading(const LockedFile& locked, const fs::path& file, std::vector<std::string>* warnings) {
  auto view = view_with_leftovers(locked, file, warnings);
  if (!view) return tl::unexpected(view.error());
  auto db = open_view(locked.fd, std::move(*view));
  if (!db) return db;
  if (auto r = db->run("PRAGMA temp_store=MEMORY", "set up the database"); !r) return tl::unexpected(r.error());
  return db;
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

Result<LockedFile> lock_replaced(const Destination& to) {
  const auto target = find_target(to);
  if (!target) return tl::unexpected(target.error());
  std::error_code ignored;
  return fs::exists(*target, ignored) ? lock_file(*target, O_RDONLY, LOCK_SH) : Result<LockedFile>();
}

Result<void> put_in_place(WholeFile& world, const LockedFile& old) {
  return world.commit([&]() -> Result<void> {
    if (old.fd >= 0) fold_in_leftovers(world.target());
    return {};
  });
}

}  // namespace quarry::io
