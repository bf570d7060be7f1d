// SPDX-License-Identifier: Apache-2.0
// sidecars.cpp - finds the log or journal that belongs to this state of the file, opens the file with it, as it was
// before a step that is not whole, and puts foreign ones aside.
#include "voxel/io/quarry/sidecars.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/quarry/tables.hpp"

namespace quarry::io {
namespace fs = std::filesystem;
namespace {

constexpr char kWhatToDo[] =
    ". Opening the world for editing sets it aside under another name; to have its edits, "
    "put it beside the very file that it was written for";

constexpr char kQuarantineSuffix[] = ".of-another-state-";

// Whether another program has SQLite's own locks, which are on these bytes ("File Format", the lock-byte page). Quarry
// uses flock.
bool locked_by_sqlite(int fd) {
  struct flock bytes {};
  bytes.l_type = F_WRLCK;
  bytes.l_whence = SEEK_SET;
  bytes.l_start = 0x40000000;
  bytes.l_len = 512;
  return ::fcntl(fd, F_GETLK, &bytes) == 0 && bytes.l_type != F_UNLCK;
}

std::string name_of(const fs::path& path) { return path.filename().string(); }

Error damaged_journal(const fs::path& path, const char* what, const std::string& why) {
  return {ErrorCode::malformed_input, std::string(what) + " beside it, " + name_of(path) + ", is damaged: " + why};
}

std::string missing_log(const fs::path& log) {
  return "it was left open for editing, and the log of the last edits, " + name_of(log) +
         ", is not beside it: edits may be missing. Copies need both files";
}

// Returns the whole page of the file, or nothing.
std::vector<uint8_t> page_of(int fd, uint32_t page_bytes, uint32_t number) {
  std::vector<uint8_t> page(page_bytes);
  if (number == 0 ||
      ::pread(fd, page.data(), page.size(), off_t(uint64_t(number - 1) * page_bytes)) != ssize_t(page.size()))
    page.clear();
  return page;
}

// Whether a log or journal holds more than a header. One that is no longer used begins with zeros.
bool holds_pages(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return false;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return true;
  uint8_t head[40] = {};
  const ssize_t n = ::pread(fd, head, sizeof head, 0);
  ::close(fd);
  return n < 0 || (n == ssize_t(sizeof head) && std::any_of(head, head + 8, [](uint8_t b) { return b != 0; }));
}

}  // namespace

Result<ByteSource> open_sidecar(const fs::path& path) {
  // A log is folded in at 4 MiB, unless a single edit is larger.
  constexpr uint64_t kKept = uint64_t(8) << 20;
  return ByteSource::open(path, kKept);
}

Result<DatabaseView> view_with_journals(const LockedFile& locked, const fs::path& file,
                                        std::vector<std::string>* warnings) {
  const auto warn = [&](std::string sentence) {
    if (warnings) warnings->push_back(std::move(sentence));
  };
  DatabaseView view;
  struct stat info {};
  if (::fstat(locked.fd, &info) != 0) return tl::unexpected(error_from_errno("cannot ask for its size", errno));
  view.bytes = uint64_t(info.st_size);
  std::vector<uint8_t> first(100);
  if (::pread(locked.fd, first.data(), first.size(), 0) != ssize_t(first.size()))
    return fail(ErrorCode::io, "cannot read its header");
  view.page_bytes = database_page_bytes(first);
  if (view.page_bytes == 0) view.page_bytes = 4096;
  const fs::path log_file = sidecar_path(file, "-wal"), journal_file = sidecar_path(file, "-journal");
  std::error_code ignored;
  const bool log_there = fs::exists(log_file, ignored);
  DatabaseJournals journals;
  const std::initializer_list<std::pair<ByteSource*, const fs::path*>> beside = {{&journals.log, &log_file},
                                                                                 {&journals.journal, &journal_file}};
  const auto unreadable = [](const fs::path& path, const Error& error) {
    return fail(error.code, name_of(path) + " beside it, which may belong to it: " + error.message);
  };
  if (log_there || fs::exists(journal_file, ignored)) {
    if (locked_by_sqlite(locked.fd))
      return fail(ErrorCode::conflict, "it is open in another program; close it there first");
    for (const auto& [bytes, path] : beside) {
      if (!fs::exists(*path, ignored)) continue;
      auto read = open_sidecar(*path);
      if (!read) return unreadable(*path, read.error());
      *bytes = std::move(*read);
    }
  }
  first.resize(size_t(std::min<uint64_t>(view.page_bytes, view.bytes)));
  if (::pread(locked.fd, first.data(), first.size(), 0) != ssize_t(first.size()))
    return fail(ErrorCode::io, "cannot read its first page");
  view.pages = JournalPages(first, view.page_bytes, uint32_t(view.bytes / view.page_bytes), UINT32_MAX - 1, journals,
                            JournalPages::BehindDamage::stop,
                            [&](uint32_t number) { return page_of(locked.fd, view.page_bytes, number); });
  for (const auto& [bytes, path] : beside)
    if (const auto error = bytes->error()) return unreadable(*path, *error);
  const JournalUse &journal = view.pages.journal(), &log = view.pages.log();
  if ((!log_there || log.foreign) && !view.pages.closed()) warn(missing_log(log_file));
  if (!journal.broken.empty())
    return tl::unexpected(
        damaged_journal(journal_file, "the journal of an edit that was not finished,",
                        journal.broken + "; the world may be half as before that edit and half as after it"));
  std::string broken = log.broken;
  if (broken.empty() && log.headless && !log.nothing_new) broken = "its header (byte 0) is";
  if (!broken.empty())
    return tl::unexpected(damaged_journal(log_file, "the log of the last edits",
                                          broken + "; read without these edits, the world would be of an older state"));
  if (!log.unfinished.empty() && !log.headless)
    warn(name_of(log_file) + ", the log of the last edits, ends in an edit that is not whole, from " + log.unfinished +
         " on: it was being written when its program or the machine stopped, or it was damaged or cut short since. "
         "The world is as before that edit");
  if (!view.pages.pages().empty()) view.bytes = uint64_t(view.pages.count()) * view.page_bytes;
  return view;
}

Result<OpenedView> open_with_journals(const LockedFile& locked, const fs::path& file, ViewWrites writes) {
  OpenedView opened;
  QRY_TRY_ASSIGN(auto view, view_with_journals(locked, file, &opened.warnings));
  const JournalUse log = view.pages.log(), journal = view.pages.journal();
  const fs::path log_file = sidecar_path(file, "-wal"), journal_file = sidecar_path(file, "-journal");
  for (const auto& [use, path] : {std::pair(&log, &log_file), std::pair(&journal, &journal_file)})
    if (use->foreign) opened.foreign.push_back({*path, name_of(*path) + ": " + use->messages.front()});
  DatabaseView alone;
  alone.page_bytes = view.page_bytes;
  struct stat info {};
  if (::fstat(locked.fd, &info) != 0) return tl::unexpected(error_from_errno("cannot ask for its size", errno));
  alone.bytes = uint64_t(info.st_size);
  const bool counts = !view.pages.pages().empty(), closed = view.pages.closed();
  QRY_TRY_ASSIGN(auto db, open_view(locked.fd, std::move(view), writes));
  opened.db = std::move(db);
  if (!counts) return opened;
  const auto agrees = check_tables(opened.db, CheckBlobs::no);
  if (agrees) return opened;
  if (agrees.error().code != ErrorCode::malformed_input) return tl::unexpected(agrees.error());
  std::string names;
  bool known = false;
  for (const auto& [use, path] : {std::pair(&log, &log_file), std::pair(&journal, &journal_file)}) {
    if (use->used == 0) continue;
    names += (names.empty() ? "" : " and ") + name_of(*path);
    known = known || !use->unsure;
  }
  if (known)
    return fail(ErrorCode::malformed_input,
                "with " + names + ", which lies beside it and belongs to it, it is damaged: " + agrees.error().message +
                    ". Either one was damaged, or the two were copied at different instants");
  QRY_TRY_ASSIGN(auto other, open_view(locked.fd, std::move(alone), writes));
  if (!check_tables(other, CheckBlobs::no)) return tl::unexpected(agrees.error());
  opened.db = std::move(other);
  opened.warnings.clear();
  for (const auto& [use, path] : {std::pair(&log, &log_file), std::pair(&journal, &journal_file)})
    if (use->used > 0)
      opened.foreign.push_back(
          {*path, name_of(*path) +
                      ": it was not applied: it is of another state of this world, "
                      "or of another world (with it the world's checksums are wrong, without it they are right)"});
  if (log.used > 0 && !closed) opened.warnings.push_back(missing_log(log_file));
  return opened;
}

Result<Db> open_for_reading(const LockedFile& locked, const fs::path& file, std::vector<std::string>* warnings) {
  QRY_TRY_ASSIGN(auto opened, open_with_journals(locked, file));
  std::string taken_back;
  QRY_TRY_ASSIGN(const auto version, opened.db.integer("PRAGMA user_version", "read the database's header"));
  if (version == kUnfinished) {
    QRY_TRY_ASSIGN(opened, open_with_journals(locked, file, ViewWrites::in_memory));
    QRY_TRY(opened.db.run("PRAGMA journal_mode=MEMORY; PRAGMA temp_store=MEMORY", "set up the database"));
    QRY_TRY(check_schema(opened.db));
    QRY_TRY_ASSIGN(auto head, read_head(opened.db));
    QRY_TRY_ASSIGN(taken_back, take_back_unfinished(opened.db, &head));
  }
  if (warnings) {
    for (const OpenedView::Foreign& f : opened.foreign) warnings->push_back(f.sentence + kWhatToDo);
    warnings->insert(warnings->end(), opened.warnings.begin(), opened.warnings.end());
    if (!taken_back.empty())
      warnings->push_back(taken_back + ". It is left out here; opening the world for editing takes it back");
  }
  QRY_TRY(opened.db.run("PRAGMA temp_store=MEMORY", "set up the database"));
  return std::move(opened.db);
}

Result<void> check_single_file(const LockedFile& locked, const fs::path& file) {
  QRY_TRY(check_header(locked));
  QRY_TRY_ASSIGN(const auto view, view_with_journals(locked, file, nullptr));
  if (view.pages.pages().empty()) return {};
  return fail(ErrorCode::io, "its last edits are in " +
                                 name_of(sidecar_path(file, view.pages.log().used > 0 ? "-wal" : "-journal")) +
                                 " beside it and could not be folded in, so that a copy would be without them; make "
                                 "room where it lies, and try again");
}

fs::path quarantine_name(const fs::path& path) {
  std::error_code error;
  for (int number = 1;; ++number) {
    fs::path name = path.string() + kQuarantineSuffix + std::to_string(number);
    if (!fs::exists(fs::symlink_status(name, error))) return name;
  }
}

Quarantine::~Quarantine() {
  for (auto it = names_.rbegin(); it != names_.rend(); ++it) (void)::rename(it->second.c_str(), it->first.c_str());
}

Result<void> Quarantine::put(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return {};
  for (;;) {
    fs::path to = quarantine_name(path);
    names_.reserve(names_.size() + 1);  // a rename must be recorded, even if memory is short
    // The rename must not replace a file that has appeared meanwhile.
    if (::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
      if (errno == EEXIST) continue;
      if (errno != EINVAL && errno != ENOSYS)
        return tl::unexpected(error_from_errno("cannot set " + name_of(path) + " aside as " + name_of(to), errno));
      if (::rename(path.c_str(), to.c_str()) != 0)
        return tl::unexpected(error_from_errno("cannot set " + name_of(path) + " aside as " + name_of(to), errno));
    }
    names_.emplace_back(path, std::move(to));
    return {};
  }
}

Result<void> Quarantine::commit() {
  const auto names = std::exchange(names_, {});
  if (names.empty()) return {};
  const fs::path folder = fs::absolute(names.front().first).parent_path();
  if (const int number = sync_folder(folder))
    return tl::unexpected(error_from_errno("cannot bring " + folder.string() + " to disk", number));
  return {};
}

SidecarFiles::SidecarFiles(const fs::path& file, bool there) {
  const fs::path log_file = sidecar_path(file, "-wal"), journal_file = sidecar_path(file, "-journal"),
                 index = sidecar_path(file, "-shm");
  std::error_code ignored;
  for (const fs::path& path : {log_file, journal_file, index})
    if (fs::exists(fs::symlink_status(path, ignored))) gone_.push_back(path);
  const bool log = holds_pages(log_file), journal = holds_pages(journal_file);
  with_pages_ = log || journal;
  if (!with_pages_) return;
  bool log_kept = log, journal_kept = journal;
  if (there) {
    // In doubt a log is kept. Sidecars of this file are removed with it, damaged or not.
    if (const auto locked = lock_file(file, O_RDONLY, LOCK_SH); locked && check_header(*locked)) {
      const auto view = view_with_journals(*locked, file, nullptr);
      const bool damaged = !view && view.error().code == ErrorCode::malformed_input;
      log_kept = log && !damaged &&
                 (!view || view->pages.log().foreign || (view->pages.log().used > 0 && view->pages.log().unsure));
      journal_kept = journal && !damaged && (!view || view->pages.journal().foreign);
    }
  }
  for (const auto& [kept, path] : {std::pair(log_kept, &log_file), std::pair(journal_kept, &journal_file)}) {
    if (!kept) continue;
    std::erase(gone_, *path);
    kept_.push_back(*path);
  }
}

Result<void> SidecarFiles::clear() {
  Quarantine quarantine;
  for (const fs::path& path : kept_) QRY_TRY(quarantine.put(path));
  for (const fs::path& path : gone_) ::unlink(path.c_str());
  return quarantine.commit();
}

std::string SidecarFiles::message() const {
  std::string all;
  for (const fs::path& path : kept_)
    all += (all.empty() ? "" : "; ") + name_of(path) + ", which lies there and is not of " +
           "the file that is replaced or made, is kept under the name " + name_of(quarantine_name(path));
  return all;
}

}  // namespace quarry::io
