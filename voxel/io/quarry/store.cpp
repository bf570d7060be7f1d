// SPDX-License-Identifier: Apache-2.0
// store.cpp - the .quarry file as a file: who may open it, what is on disk when, and how it is replaced.
//
// A saved file is one SQLite database in rollback mode, so it may be anywhere, even read-only. While a Store has it
// open for editing, it is in WAL mode, where a commit is one append and one fsync. An acknowledged edit is in the -wal
// file, fsynced, and SQLite restores it at the next opening after a crash. Closing folds the -wal file in and returns
// to a single file. Before the first log, and whenever the log is folded in meanwhile, the file gets a new number,
// which its log has from then on. The number tells to which file a log belongs (docs/world-file.md). Locks are in
// quarry/file.hpp, sidecars in quarry/sidecars.hpp, new files in quarry/writer.hpp.
#include "voxel/io/quarry/store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <vector>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/quarry/fields.hpp"
#include "voxel/io/quarry/file.hpp"
#include "voxel/io/quarry/salvage.hpp"
#include "voxel/io/quarry/sidecars.hpp"
#include "voxel/io/quarry/tables.hpp"
#include "voxel/io/quarry/writer.hpp"
#include "voxel/io/sqlite/journals.hpp"

namespace quarry::io {
namespace fs = std::filesystem;

namespace {

constexpr int kLogPages = 1000;  // a longer log is folded in; SQLite's own limit is the same

}  // namespace

struct Store::State {
  LockedFile lock;  // first in, last out
  fs::path path;
  Db db;
  StoreHead head;
  std::vector<std::string> warnings;
  int log_pages = 0;
  std::mutex use;  // of the database

  // Returns the result of `work`, which has the database to itself.
  template <class Work>
  auto alone(const Work& work) -> decltype(work()) {
    const std::lock_guard turn(use);
    return guarded(path, work);
  }

  Result<std::vector<UndoRecord>> read_step(uint64_t at, bool before);

  // SQLite would also fold the log in by itself, but without a new number. Then copies of the file from before and
  // after could not be distinguished.
  void watch_log() {
    sqlite3_wal_hook(
        db.handle(),
        [](void* pages, sqlite3*, const char*, int count) {
          *static_cast<int*>(pages) = count;
          return SQLITE_OK;
        },
        &log_pages);
  }

  // The new number is written first, as an edit of the log. Until the whole log is in the file, the file has the old
  // number or the new one, and the log has both. If it fails, the log stays unchanged, and the next edit tries again.
  Result<void> fold_in_log() {
    QRY_TRY(db.run("BEGIN IMMEDIATE", "renew the log's number"));
    auto renewed = write_log_number(db);
    if (renewed) renewed = db.run("COMMIT", "renew the log's number");
    if (!renewed) {
      if (!sqlite3_get_autocommit(db.handle())) sqlite3_exec(db.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
      return renewed;
    }
    QRY_TRY(db.run("PRAGMA wal_checkpoint(TRUNCATE)", "fold in the log"));
    log_pages = 0;
    return {};
  }

  // Runs `work` as one transaction on a copy of the head. Both take effect only if everything is on disk.
  template <class Work>
  Result<void> transact(const Work& work) {
    const std::lock_guard turn(use);
    QRY_TRY(db.run("BEGIN IMMEDIATE", "begin an edit"));
    StoreHead next;
    Result<void> result = guarded(path, [&]() -> Result<void> {
      next = head;
      QRY_TRY(work(next));
      return db.run("COMMIT", "bring the edit to disk");
    });
    if (!result) {
      if (!sqlite3_get_autocommit(db.handle())) sqlite3_exec(db.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
      return result;
    }
    head = std::move(next);
    if (log_pages >= kLogPages) (void)fold_in_log();
    return {};
  }

  Result<void> check_call(const Scene& scene, const UndoRecord& record) const {
    if (scene.volumes.size() != head.volumes.size() || (record.volume >= head.volumes.size() && !record.of_palette()))
      return fail(ErrorCode::invalid_argument, "the scene has " + std::to_string(scene.volumes.size()) +
                                                   " volumes and the edit is of volume " +
                                                   std::to_string(record.volume) + ", but the file has " +
                                                   std::to_string(head.volumes.size()) + "; save the scene as a whole");
    for (const BrickChange& c : record.changes)
      if (!brick_storable(c.brick) || !brick_storable(c.last()))
        return fail(ErrorCode::invalid_argument, "the edit has a brick outside all coordinates");
    if (std::adjacent_find(record.changes.begin(), record.changes.end(),
                           [](const BrickChange& a, const BrickChange& b) { return a.last() >= b.brick; }) !=
        record.changes.end())
      return fail(ErrorCode::invalid_argument,
                  "the changes of the edit are not in the order of their bricks, each once");
    if (record.of_palette() && !record.changes.empty())
      return fail(ErrorCode::invalid_argument, "the edit is of voxels and of the palette at once");
    if (std::adjacent_find(record.materials.begin(), record.materials.end(),
                           [](const MaterialChange& a, const MaterialChange& b) { return a.index >= b.index; }) !=
        record.materials.end())
      return fail(ErrorCode::invalid_argument,
                  "the changes of the edit are not in the order of their materials, each once");
    return {};
  }

  Result<void> write_touched(const Scene& scene, std::span<const UndoRecord> records, StoreHead* next) {
    std::map<uint32_t, std::vector<Int3>> chunks;  // by volume
    bool palette = false;
    for (const UndoRecord& record : records) {
      palette |= record.of_palette();
      for (const BrickChange& c : record.changes) {
        const Int3 first = chunk_of(c.brick), last = chunk_of(c.last());
        for (int32_t z = first.z; z <= last.z; ++z) {
          std::vector<Int3>& of_volume = chunks[record.volume];
          if (const Int3 chunk{first.x, first.y, z}; of_volume.empty() || of_volume.back() != chunk)
            of_volume.push_back(chunk);
        }
      }
    }
    for (auto& [volume, of_volume] : chunks) {
      std::sort(of_volume.begin(), of_volume.end());
      of_volume.erase(std::unique(of_volume.begin(), of_volume.end()), of_volume.end());
    }
    return write_changed(scene, chunks, bricks_of(scene), palette, next);
  }

  using Bricks = decltype(LaterPieces::bricks);
  static Bricks bricks_of(const Scene& scene) {
    return [&scene](uint32_t volume, std::span<const Int3>) -> Result<const BrickMap*> {
      return &scene.volumes[volume].bricks;
    };
  }

  Result<void> write_changed(const Scene& scene, const std::map<uint32_t, std::vector<Int3>>& chunks,
                             const Bricks& bricks, bool palette, StoreHead* next) {
    std::set<uint32_t> volumes;
    for (const auto& one : chunks) {
      const uint32_t volume = one.first;
      volumes.insert(volume);
      const ChunkSource of_volume = [&](std::span<const Int3> some) { return bricks(volume, some); };
      QRY_TRY(write_chunks(db, of_volume, one.second, volume, next));
    }
    if (palette) QRY_TRY(write_palette(db, scene.palette));
    return write_head(db, *next, volumes);
  }

  // Moves back over the records before the file's place in the history, or forward over those after it.
  Result<void> move_in_history(const Scene& scene, std::span<const UndoRecord> records, bool back) {
    const auto count = int64_t(records.size());
    const int64_t first = back ? head.position - count + 1 : head.position + 1;
    for (const UndoRecord& record : records) QRY_TRY(check_call(scene, record));
    if (count == 0 || first < 1 || first + count - 1 > head.length)
      return fail(ErrorCode::invalid_argument, "the file's history has no such edit");
    for (int64_t i = 0; i < count; ++i) {
      QRY_TRY_ASSIGN(const auto same, record_is(db, first + i, records[size_t(i)]));
      if (!same)
        return fail(ErrorCode::conflict, "edit " + std::to_string(first + i) +
                                             " of the file's history is another one; save the scene as a whole");
    }
    return transact([&](StoreHead& next) {
      next.unfinished.reset();
      next.position = back ? first - 1 : first + count - 1;
      return write_touched(scene, records, &next);
    });
  }

  ~State() {
    if (!db.handle()) return;
    // This folds the log in and makes a single file again. If it fails, the log stays, and the next opening does it.
    sqlite3_exec(db.handle(), "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr);
  }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

std::string Store::damaged_sidecars(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(sidecar_path(file, "-wal"), ignored) && !fs::exists(sidecar_path(file, "-journal"), ignored))
    return {};
  try {
    const auto locked = lock_file(file, O_RDONLY, LOCK_SH);
    if (!locked) return {};  // the attempt to replace it reports the reason
    std::vector<std::string> warnings;
    const auto header = check_header(*locked);
    const auto view = header ? view_with_journals(*locked, file, &warnings) : tl::unexpected<Error>(header.error());
    if (!view) return view.error().code == ErrorCode::malformed_input ? view.error().message : std::string();
    if (view->pages.log().foreign || view->pages.journal().foreign) return {};  // kept: foreign_sidecars()
    return warnings.empty() ? std::string() : warnings.front();
  } catch (const std::bad_alloc&) {
    return "what is beside it is too large to be looked at";
  }
}

std::string Store::foreign_sidecars(const fs::path& file) {
  try {
    std::error_code ignored;
    const fs::path target = fs::is_symlink(file, ignored) ? fs::weakly_canonical(file, ignored) : file;
    const bool there = fs::exists(target, ignored);
    if (there && !lock_file(target, O_RDONLY, LOCK_SH)) return {};  // the attempt to replace it reports the reason
    return SidecarFiles(target, there).message();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

Result<void> Store::fold_in() {
  return state_->alone([&] { return state_->fold_in_log(); });
}

const fs::path& Store::path() const { return state_->path; }
const std::vector<std::string>& Store::warnings() const { return state_->warnings; }

namespace {

// Sets the journal mode. Returns the mode that the database has afterwards, by SQLite's name.
Result<std::string> set_journal_mode(Db& db, const char* sql) {
  QRY_TRY_ASSIGN(auto s, Statement::prepare(db, sql, "sqlite_schema"));
  QRY_TRY_ASSIGN(const auto row, s.step());
  std::string mode = row ? s.text(0, "journal_mode") : std::string();
  QRY_TRY(s.row_check());
  return mode;
}

// A tree with wrong pages must not be written to, nor a world with a damaged part. The check reads the file twice,
// without decompressing it.
Result<StoreHead> check_whole(Db& db) {
  QRY_TRY(check_schema(db));
  {
    QRY_TRY_ASSIGN(auto check, Statement::prepare(db, "PRAGMA quick_check(1)", "sqlite_schema"));
    QRY_TRY_ASSIGN(const auto row, check.step());
    if (const std::string result = row ? check.text(0, "quick_check") : "nothing"; result != "ok")
      return fail(ErrorCode::malformed_input, "the database's pages are damaged: " + result.substr(0, 200));
  }
  QRY_TRY(check_tables(db, CheckBlobs::yes));
  return read_head(db);
}

struct Opened {
  LockedFile lock;
  Db db;
  StoreHead head;
  std::vector<std::string> warnings;
};
// Nothing is written before everything is known to be right. SQLite would silently drop edits after damage in a log,
// and silently use the log of another file.
Result<Opened> open_for_editing(const fs::path& file) {
  QRY_TRY_ASSIGN(auto locked, lock_file(file, O_RDWR, LOCK_EX));
  QRY_TRY(check_header(locked));
  QRY_TRY_ASSIGN(auto view, open_with_journals(locked, file));
  auto head = check_whole(view.db);
  if (!head) {
    for (const OpenedView::Foreign& f : view.foreign) head.error().message += ". " + f.sentence;
    return tl::unexpected(head.error());
  }
  view.db = Db();  // closing any descriptor of the file drops SQLite's locks on it
  Quarantine quarantine;
  std::vector<std::string> warnings;
  for (const OpenedView::Foreign& f : view.foreign) {
    QRY_TRY(quarantine.put(f.path));
    warnings.push_back(f.sentence + ". It was set aside and is called " +
                       quarantine.names().back().second.filename().string() + " now");
  }
  if (!view.foreign.empty())  // -shm is the index of a log, which only other programs write
    QRY_TRY(quarantine.put(sidecar_path(file, "-shm")));
  warnings.insert(warnings.end(), view.warnings.begin(), view.warnings.end());
  QRY_TRY_ASSIGN(auto db, Db::open(file.string(), SQLITE_OPEN_READWRITE));
  // EXTRA is the same as FULL in WAL mode. In rollback mode (if WAL is not available) it syncs the folder too.
  QRY_TRY(db.run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY; PRAGMA synchronous=EXTRA",
                 "set up the database"));
  // First the file's own log or journal is folded in. Then a step that is not whole is taken back, and the file itself
  // gets a new number. Only then a new log may begin.
  QRY_TRY_ASSIGN(const auto single, set_journal_mode(db, "PRAGMA journal_mode=DELETE"));
  if (single != "delete")
    return fail(ErrorCode::io,
                "what is beside it could not be folded in: the database stays in the mode '" + single + "'");
  if (head->unfinished) {
    QRY_TRY_ASSIGN(const std::string taken_back, take_back_unfinished(db, &*head));
    warnings.push_back(taken_back + ". It was taken back");
  }
  QRY_TRY(write_log_number(db));
  QRY_TRY(set_journal_mode(db, "PRAGMA journal_mode=WAL"));
  QRY_TRY(quarantine.commit());
  return Opened{std::move(locked), std::move(db), std::move(*head), std::move(warnings)};
}

Result<Scene> read_whole(const fs::path& file, const Progress& progress, std::vector<UndoRecord>* history,
                         size_t* history_position, std::vector<std::string>* warnings, const BrickPool* pool,
                         uint64_t* fingerprint) {
  QRY_TRY_ASSIGN(const auto locked, lock_file(file, O_RDONLY, LOCK_SH));
  QRY_TRY(check_header(locked));
  QRY_TRY_ASSIGN(auto db, open_for_reading(locked, file, warnings));
  QRY_TRY_ASSIGN(auto scene, read_world(db, physical_memory(), progress, history, history_position, pool));
  if (fingerprint) {
    QRY_TRY_ASSIGN(*fingerprint, fingerprint_of(db));
  }
  return scene;
}

// The library's call is not used: libstdc++ 12's copy_file reports success for a copy that a full disk cut short.
Result<void> copy_bytes(int from, AtomicFile& to) {
  struct stat info {};
  if (::fstat(from, &info) != 0) return tl::unexpected(error_from_errno("cannot ask for its size", errno));
  std::vector<uint8_t> some(size_t(1) << 20);
  for (uint64_t at = 0;;) {
    const ssize_t n = ::pread(from, some.data(), some.size(), off_t(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(error_from_errno("cannot read it", errno));
    if (n == 0) break;
    to.put({some.data(), size_t(n)});
    if (to.sink().error()) return {};  // commit() reports the reason
    at += uint64_t(n);
  }
  if (to.size() != uint64_t(info.st_size))
    return fail(ErrorCode::io, "it was " + std::to_string(info.st_size) + " bytes long, and became " +
                                   std::to_string(to.size()) + " while it was copied");
  return {};
}

}  // namespace

Result<void> Store::save(const Scene& scene, const Destination& to, const Progress& progress) {
  return save_with_history(scene, {}, 0, to, progress);
}

Result<void> Store::save_with_history(const Scene& scene, const RecordSource& records,
                                      const std::function<size_t()>& position, const Destination& to,
                                      const Progress& progress) {
  QRY_TRY_ASSIGN(auto writer, StoreWriter::create(scene, to, progress));
  for (uint32_t i = 0; i < scene.volumes.size(); ++i) QRY_TRY(writer.append(i, scene.volumes[i].bricks));
  QRY_TRY(writer.append_history(records, position));
  return writer.commit();
}

Result<void> Store::save_with_history(const Scene& scene, std::span<const UndoRecord> records, size_t position,
                                      const Destination& to, const Progress& progress) {
  return save_with_history(
      scene, all_of(records), [position] { return position; }, to, progress);
}

Result<void> Store::copy(const fs::path& from, const Destination& to) {
  return guarded(to.file, [&]() -> Result<void> {
    const auto locked = lock_file(from, O_RDONLY, LOCK_SH);
    if (!locked) return fail(locked.error().code, from.string() + ": " + locked.error().message);
    if (auto single = check_single_file(*locked, from); !single)
      return fail(single.error().code, from.string() + ": " + single.error().message);
    QRY_TRY_ASSIGN(const auto old, lock_replaced(to));
    QRY_TRY_ASSIGN(auto world, AtomicFile::create(to));
    if (auto r = copy_bytes(locked->fd, world); !r)
      return fail(r.error().code, from.string() + ": " + r.error().message);
    return put_in_place(world, old);
  });
}

Result<Store> Store::open(const fs::path& file) {
  return guarded(file, [&]() -> Result<Store> {
    QRY_TRY_ASSIGN(auto opened, open_for_editing(file));
    auto state = std::make_unique<State>();
    state->path = file;
    state->lock = std::move(opened.lock);
    state->db = std::move(opened.db);
    state->head = std::move(opened.head);
    state->warnings = std::move(opened.warnings);
    state->watch_log();
    return Store(std::move(state));
  });
}

Result<Scene> Store::read(const fs::path& file, const Progress& progress, std::vector<UndoRecord>* history,
                          size_t* history_position, std::vector<std::string>* warnings, const BrickPool* pool,
                          uint64_t* fingerprint) {
  return guarded(file,
                 [&] { return read_whole(file, progress, history, history_position, warnings, pool, fingerprint); });
}

uint64_t Store::history_length() const { return uint64_t(state_->head.length); }
uint64_t Store::history_position() const { return uint64_t(state_->head.position); }
std::optional<UnfinishedStep> Store::unfinished() const { return state_->head.unfinished; }

Result<std::vector<UndoRecord>> Store::State::read_step(uint64_t at, bool before) {
  return alone([&]() -> Result<std::vector<UndoRecord>> {
    QRY_TRY_ASSIGN(const auto range, step_beside(db, head, int64_t(at), before));
    return read_history(db, head, physical_memory(), {}, nullptr, range);
  });
}
Result<std::vector<UndoRecord>> Store::step_before(uint64_t at) { return state_->read_step(at, true); }
Result<std::vector<UndoRecord>> Store::step_from(uint64_t at) { return state_->read_step(at, false); }

Result<std::vector<UndoRecord>> Store::record(uint64_t number) {
  return state_->alone([&] {
    const auto its = int64_t(number) + 1;
    return read_history(state_->db, state_->head, physical_memory(), {}, nullptr, {its, its});
  });
}

Result<std::vector<StepName>> Store::step_names(uint64_t first, uint64_t end) {
  return state_->alone([&] { return read_step_names(state_->db, state_->head, {int64_t(first) + 1, int64_t(end)}); });
}

Result<Scene> Store::read_scene(const Progress& progress, std::vector<UndoRecord>* history, size_t* history_position,
                                const BrickPool* pool) {
  return state_->alone(
      [&] { return read_world(state_->db, physical_memory(), progress, history, history_position, pool); });
}

uint64_t Store::bricks() const { return state_->head.bricks(); }

Result<std::vector<ChunkBricks>> Store::chunks(uint32_t volume) {
  return state_->alone([&] { return list_chunks(state_->db, state_->head, volume); });
}

Result<void> Store::visit_all(const StoreReader::Visit& visit, const Progress& progress) {
  return state_->alone([&] { return visit_all_chunks(state_->db, state_->head, progress, visit); });
}

Result<void> Store::visit_box(const ChunkBox& box, const StoreReader::Visit& visit, const Progress& progress) {
  return state_->alone([&] { return visit_some_chunks(state_->db, state_->head, box, progress, visit); });
}

Result<void> Store::read_pieces(std::span<const std::vector<ChunkBox>> pieces, const PieceSteps& steps,
                                const Progress& progress, size_t most_waiting) {
  return state_->alone(
      [&] { return read_chunk_pieces(state_->db, state_->head, pieces, steps, progress, most_waiting); });
}

Result<void> Store::commit_edit(const Scene& scene, std::span<const UndoRecord> records) {
  for (const UndoRecord& record : records) QRY_TRY(state_->check_call(scene, record));
  return state_->transact([&](StoreHead& next) -> Result<void> {
    next.unfinished.reset();
    QRY_TRY(write_records(state_->db, all_of(records), &next));
    return state_->write_touched(scene, records, &next);
  });
}

Result<void> Store::commit_undo(const Scene& scene, std::span<const UndoRecord> records) {
  return state_->move_in_history(scene, records, true);
}
Result<void> Store::commit_redo(const Scene& scene, std::span<const UndoRecord> records) {
  return state_->move_in_history(scene, records, false);
}

Result<uint64_t> Store::fingerprint() {
  return state_->alone([&] { return fingerprint_of(state_->db); });
}

Result<void> Store::commit_later(const Scene& scene, const Later& later) {
  return commit_later(scene, LaterPieces{later.kept, all_of(later.records), [&]() -> Result<Later> { return later; },
                                         State::bricks_of(scene)});
}

Result<void> Store::commit_later(const Scene& scene, const LaterPieces& later) {
  const auto no_such_edit = [] { return fail(ErrorCode::invalid_argument, "the file's history has no such edit"); };
  const RecordSource checked = [&]() -> Result<SomeRecords> {
    QRY_TRY_ASSIGN(const SomeRecords some, later.records());
    for (const UndoRecord& record : some.records) QRY_TRY(state_->check_call(scene, record));
    return some;
  };
  return state_->transact([&](StoreHead& next) -> Result<void> {
    if (later.kept > uint64_t(next.length)) return no_such_edit();
    next.position = int64_t(later.kept);
    if (next.unfinished && next.unfinished->is_new) QRY_TRY(drop_records(state_->db, &next));
    QRY_TRY(write_records(state_->db, checked, &next));
    QRY_TRY_ASSIGN(const Later rest, later.rest());
    if (rest.position > uint64_t(next.length)) return no_such_edit();
    next.position = int64_t(rest.position);
    next.unfinished = later.unfinished;
    if (next.unfinished && (next.unfinished->is_new ? next.position <= next.unfinished->position
                                                    : next.position == next.unfinished->position))
      next.unfinished.reset();  // nothing of it is here
    return state_->write_changed(scene, rest.chunks, later.bricks, rest.palette, &next);
  });
}

Result<void> Store::commit_palette(const Palette& palette) {
  return state_->transact([&](StoreHead&) { return write_palette(state_->db, palette); });
}

Result<void> Store::commit_visibility(const Scene& scene) {
  return state_->transact([&](StoreHead&) { return write_visibility(state_->db, scene); });
}

}  // namespace quarry::io
