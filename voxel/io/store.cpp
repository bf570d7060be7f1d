// store.cpp - the .quarry file as a file: who may have it open, what is on disk when, and how it is replaced.
//
// A saved file is one SQLite database in rollback mode: it may lie anywhere, read-only too. While a Store has it open for editing it is
// in WAL mode, where a commit is one append and one fsync; an acknowledged edit is in the -wal file, fsynced, and SQLite brings it
// back at the next opening after a crash. Closing folds the -wal file in and goes back to a single file.
// Who edits holds flock() on the file for that long, readers hold it shared while they read. SQLite's own locks would not do: POSIX
// drops them when any descriptor of the file is closed in the process (sqlite.org, "How To Corrupt An SQLite Database File", 2.2).
#include "voxel/io/store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>

#include "voxel/io/file_bytes.hpp"
#include "voxel/io/store_salvage.hpp"
#include "voxel/io/store_tables.hpp"

namespace quarry::io {
namespace fs = std::filesystem;
namespace {

constexpr char kInUse[] = "it is open for editing in another window or program; close it there first";

// The file, open and locked. Unlocked when closed or when the process ends, however it ends.
struct LockedFile {
  int fd = -1;
  LockedFile() = default;
  LockedFile(LockedFile&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  LockedFile& operator=(LockedFile&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~LockedFile() {
    if (fd >= 0) ::close(fd);
  }
};

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

// The first 16 bytes: a better message than SQLite's for what is no database at all.
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

fs::path beside(const fs::path& file, const char* suffix) { return fs::path(file.string() + suffix); }

// Opens the database for reading everything once. A crashed editor's -wal file is folded in on the way, where we may write.
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

// A name that nobody else uses, in the folder of `file`, with the file's mode if it is there. Gone again unless kept.
struct TemporaryFile {
  fs::path path;
  bool keep = false;
  ~TemporaryFile() {
    if (keep || path.empty()) return;
    ::unlink(path.c_str());
    ::unlink(beside(path, "-journal").c_str());
  }
};

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

Result<void> write_database(const Scene& scene, const fs::path& path, const Progress& progress) {
  auto db = Db::open(path.string(), SQLITE_OPEN_READWRITE);
  if (!db) return tl::unexpected(db.error());
  // No journal and no fsync while writing: nobody sees the file before it is whole and synced.
  for (const char* pragma : {"PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", "PRAGMA locking_mode=EXCLUSIVE", "PRAGMA temp_store=MEMORY", "BEGIN EXCLUSIVE"})
    if (auto r = db->run(pragma, "start the new file"); !r) return r;
  if (auto r = create_schema(*db); !r) return r;
  if (auto r = write_tables(*db, scene, progress); !r) return r;
  return db->run("COMMIT", "finish the new file");
}

// Before `file` is replaced: whatever a crashed editor left beside it is folded into it, so that at no instant is a new file beside an old log.
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

// What `work` gives, with the file's name before its message, and a lack of memory as an error like others.
template <class Work>
auto guarded(const fs::path& file, const Work& work) -> decltype(work()) {
  try {
    auto result = work();
    if (!result) {
      const std::string prefix = file.string() + ": ";
      if (result.error().message.compare(0, prefix.size(), prefix) != 0) result.error().message.insert(0, prefix);
    }
    return result;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, file.string() + ": not enough memory");
  }
}

}  // namespace

struct Store::State {
  LockedFile lock;  // first in, last out
  fs::path path;
  Db db;
  StoreHead head;

  // Runs `work` as one transaction on a copy of the head; both count only if all of it is on disk.
  template <class Work>
  Result<void> transact(const Work& work) {
    if (auto r = db.run("BEGIN IMMEDIATE", "begin an edit"); !r) return r;
    StoreHead next;
    Result<void> result = guarded(path, [&]() -> Result<void> {
      next = head;
      if (auto r = work(next); !r) return r;
      return db.run("COMMIT", "bring the edit to disk");
    });
    if (!result) {
      if (!sqlite3_get_autocommit(db.handle())) sqlite3_exec(db.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
      return result;
    }
    head = std::move(next);
    return {};
  }

  Result<void> check_call(const Scene& scene, const UndoRecord& record) const {
    if (scene.volumes.size() != head.volumes.size() || record.volume >= head.volumes.size())
      return fail(ErrorCode::invalid_argument, "the scene has " + std::to_string(scene.volumes.size()) + " volumes and the edit is of volume " + std::to_string(record.volume) + ", but the file has " +
                                                   std::to_string(head.volumes.size()) + "; save the scene as a whole");
    for (const BrickChange& c : record.changes)
      if (!brick_storable(c.brick)) return fail(ErrorCode::invalid_argument, "the edit has a brick outside all coordinates");
    if (std::adjacent_find(record.changes.begin(), record.changes.end(), [](const BrickChange& a, const BrickChange& b) { return a.brick >= b.brick; }) != record.changes.end())
      return fail(ErrorCode::invalid_argument, "the changes of the edit are not in the order of their bricks, each once");
    return {};
  }

  Result<void> write_touched(const Scene& scene, const UndoRecord& record, StoreHead* next) {
    std::set<Int3> chunks;
    for (const BrickChange& c : record.changes) chunks.insert(chunk_of(c.brick));
    for (const Int3& chunk : chunks)
      if (auto r = write_chunk(db, scene.volumes[record.volume].bricks, chunk, record.volume, next); !r) return r;
    return write_head(db, *next, record.volume);
  }

  Result<void> move_in_history(const Scene& scene, const UndoRecord& record, int64_t number, int64_t position) {
    if (auto r = check_call(scene, record); !r) return r;
    if (number < 1 || number > head.length) return fail(ErrorCode::invalid_argument, "the file's history has no such edit");
    const auto same = record_is(db, number, record);
    if (!same) return tl::unexpected(same.error());
    if (!*same) return fail(ErrorCode::conflict, "edit " + std::to_string(number) + " of the file's history is another one; save the scene as a whole");
    return transact([&](StoreHead& next) {
      next.position = position;
      return write_touched(scene, record, &next);
    });
  }

  ~State() {
    if (!db.handle()) return;
    // Fold the log in and become a single file again. Where that fails, the log stays and the next opening does it.
    sqlite3_exec(db.handle(), "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr);
  }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

const fs::path& Store::path() const { return state_->path; }

namespace {

Result<void> save_as(const Scene& scene, const fs::path& file, const Progress& progress) {
  if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
  std::error_code error;
  fs::path target = file;
  if (fs::is_symlink(target, error)) target = fs::weakly_canonical(target, error);  // the link stays; what it points to is replaced
  if (fs::is_directory(target, error)) return fail(ErrorCode::io, "it is a folder; expected the name of a file");
  LockedFile old;
  if (fs::exists(target, error)) {
    auto locked = lock_file(target, O_RDONLY, LOCK_SH);  // not while it is being edited; readers keep the old file
    if (!locked) return tl::unexpected(locked.error());
    old = std::move(*locked);
  }
  TemporaryFile temporary;
  if (auto r = make_temporary(target, &temporary); !r) return r;
  if (auto r = write_database(scene, temporary.path, progress); !r) return r;
  if (auto r = sync_path(temporary.path, O_RDONLY); !r) return r;
  if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
  if (old.fd >= 0) fold_in_leftovers(target);
  if (::rename(temporary.path.c_str(), target.c_str()) != 0) return tl::unexpected(error_from_errno("cannot put the new file in its place", errno));
  temporary.keep = true;
  return sync_path(fs::absolute(target).parent_path(), O_RDONLY | O_DIRECTORY);
}

struct Opened {
  LockedFile lock;
  Db db;
  StoreHead head;
};
Result<Opened> open_for_editing(const fs::path& file) {
  auto locked = lock_file(file, O_RDWR, LOCK_EX);
  if (!locked) return tl::unexpected(locked.error());
  if (auto r = check_header(*locked); !r) return tl::unexpected(r.error());
  auto db = Db::open(file.string(), SQLITE_OPEN_READWRITE);
  if (!db) return tl::unexpected(db.error());
  if (auto r = db->run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY", "set up the database"); !r) return tl::unexpected(r.error());
  if (auto r = check_schema(*db); !r) return tl::unexpected(r.error());
  // A tree whose pages are wrong must not be written to. Reads the file once, as reading the scene does next.
  auto check = Statement::prepare(*db, "PRAGMA quick_check(1)", "sqlite_schema");
  if (!check) return tl::unexpected(check.error());
  const auto row = check->step();
  if (!row) return tl::unexpected(row.error());
  if (const std::string verdict = *row ? check->text(0, "quick_check") : "nothing"; verdict != "ok")
    return fail(ErrorCode::malformed_input, "the database's pages are damaged: " + verdict.substr(0, 200));
  check->reset();
  auto head = read_head(*db);
  if (!head) return tl::unexpected(head.error());
  // Extra is full in WAL mode, and in rollback mode (where WAL is not to be had) syncs the folder too.
  if (auto r = db->run("PRAGMA journal_mode=WAL; PRAGMA synchronous=EXTRA", "make it ready for editing"); !r) return tl::unexpected(r.error());
  return Opened{std::move(*locked), std::move(*db), std::move(*head)};
}

Result<Scene> read_whole(const fs::path& file, const Progress& progress, std::vector<UndoRecord>* history, size_t* history_position) {
  const auto locked = lock_file(file, O_RDONLY, LOCK_SH);
  if (!locked) return tl::unexpected(locked.error());
  if (auto r = check_header(*locked); !r) return tl::unexpected(r.error());
  auto db = open_for_reading(file);
  if (!db) return tl::unexpected(db.error());
  return read_world(*db, physical_memory(), progress, history, history_position);
}

}  // namespace

Result<void> Store::save(const Scene& scene, const fs::path& file, const Progress& progress) {
  return guarded(file, [&] { return save_as(scene, file, progress); });
}

Result<Store> Store::open(const fs::path& file) {
  return guarded(file, [&]() -> Result<Store> {
    auto opened = open_for_editing(file);
    if (!opened) return tl::unexpected(opened.error());
    auto state = std::make_unique<State>();
    state->path = file;
    state->lock = std::move(opened->lock);
    state->db = std::move(opened->db);
    state->head = std::move(opened->head);
    return Store(std::move(state));
  });
}

Result<Scene> Store::read(const fs::path& file, const Progress& progress, std::vector<UndoRecord>* history, size_t* history_position) {
  return guarded(file, [&] { return read_whole(file, progress, history, history_position); });
}

Result<Scene> Store::read_scene(const Progress& progress, std::vector<UndoRecord>* history, size_t* history_position) {
  return guarded(path(), [&] { return read_world(state_->db, physical_memory(), progress, history, history_position); });
}

Result<Scene> salvage_store(const fs::path& file, Salvage& salvage, std::vector<std::string>* warnings, const Progress& progress) {
  return guarded(file, [&]() -> Result<Scene> {
    const auto locked = lock_file(file, O_RDONLY, LOCK_SH);
    if (!locked) return tl::unexpected(locked.error());
    const auto database = read_file(file, physical_memory());
    if (!database) return tl::unexpected(database.error());
    const auto read_beside = [&](const char* suffix, const char* what) -> std::vector<uint8_t> {
      std::error_code ignored;
      if (!fs::exists(beside(file, suffix), ignored)) return {};
      auto bytes = read_file(beside(file, suffix), physical_memory());
      if (bytes) return std::move(*bytes);
      if (warnings) warnings->push_back(std::string(what) + " beside it was not read: " + bytes.error().message);
      return {};
    };
    const auto log = read_beside("-wal", "the log of the last edits"), journal = read_beside("-journal", "the journal of an unfinished edit");
    return salvage_database(*database, {log, journal}, physical_memory(), salvage, warnings, progress);
  });
}

Result<void> Store::commit_edit(const Scene& scene, const UndoRecord& record) {
  if (auto r = state_->check_call(scene, record); !r) return r;
  return state_->transact([&](StoreHead& next) -> Result<void> {
    if (auto r = write_record(state_->db, record, &next); !r) return r;
    return state_->write_touched(scene, record, &next);
  });
}

Result<void> Store::commit_undo(const Scene& scene, const UndoRecord& record) {
  return state_->move_in_history(scene, record, state_->head.position, state_->head.position - 1);
}

Result<void> Store::commit_redo(const Scene& scene, const UndoRecord& record) {
  return state_->move_in_history(scene, record, state_->head.position + 1, state_->head.position + 1);
}

Result<void> Store::commit_palette(const Palette& palette) {
  return state_->transact([&](StoreHead&) { return write_palette(state_->db, palette); });
}

Result<void> Store::commit_visibility(const Scene& scene) {
  return state_->transact([&](StoreHead&) { return write_visibility(state_->db, scene); });
}

}  // namespace quarry::io
