// SPDX-License-Identifier: Apache-2.0
// journal_test.cpp - a world file knows its journal. Logs and journals of other states and of other files may be in a
// world's folder, because people copy half of a world, or its parts at different instants. Version 0.1.1 applied them:
// a restored backup took over the state that it was to replace, and another world was cut short. Each row of the table
// in docs/world-file.md has its case here.
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <random>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/killed_child.hpp"
#include "tests/voxel/io/quarry/salvaged.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/salvage.hpp"
#include "voxel/io/quarry/store.hpp"

namespace journal_test {

using namespace quarry;
using io::Store;
using test::file_bytes, test::names_in, test::same_scene, test::write_bytes;
namespace fs = std::filesystem;

namespace {

using Bytes = std::vector<uint8_t>;
using Names = std::vector<std::string>;

fs::path with_suffix(const fs::path& file, const char* suffix) { return file.string() + suffix; }

// A file and its sidecars, at one instant.
struct Snapshot {
  Bytes file, log;
  Scene scene;
};

// A world that is edited. Edits are big, so that a few fill a log.
class Edited {
 public:
  Edited(const fs::path& file, uint32_t seed) : file_(file), random_(seed) {
    scene_.volumes.resize(1);
    scene_.instances.resize(1);
    scene_.metadata["seed"] = std::to_string(seed);
    for (int32_t x = 0; x < 30; ++x) scene_.volumes[0].bricks.set({x, 0, 0}, uint8_t(1 + (uint32_t(x) + seed) % 200));
    REQUIRE(Store::save(scene_, file));
  }
  void open() {
    auto opened = Store::open(file_);
    REQUIRE(opened);
    CHECK(opened->warnings().empty());
    store_.emplace(std::move(*opened));
  }
  void close() { store_.reset(); }
  void edit(int32_t bricks = 4) {
    BrickMap wanted = scene_.volumes[0].bricks;
    const Int3 at{int32_t(random_() % 40) * 8, int32_t(random_() % 40) * 8, int32_t(random_() % 40) * 8};
    for (int32_t b = 0; b < bricks; ++b)
      for (int32_t i = 0; i < 512; ++i)
        wanted.set({at.x + b % 8 * 8 + (i & 7), at.y + b / 8 % 8 * 8 + (i >> 3 & 7), at.z + b / 64 * 8 + (i >> 6)},
                   uint8_t(1 + random_() % 255));
    const UndoRecord record = test::make_record(scene_, 0, wanted, "fill");
    test::apply_record(&scene_, record, true);
    REQUIRE(store_->commit_edit(scene_, record));
  }
  // Edits until the log has been folded into the file.
  void edit_across_checkpoint() {
    for (const Bytes before = file_bytes(file_); file_bytes(file_) == before;) edit(512);
  }
  Snapshot now() const { return {file_bytes(file_), file_bytes(with_suffix(file_, "-wal")), scene_}; }
  const Scene& scene() const { return scene_; }
  Store& store() { return *store_; }

 private:
  fs::path file_;
  std::mt19937 random_;
  Scene scene_;
  std::optional<Store> store_;
};

bool says(const Names& warnings, const std::string& words) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [&](const std::string& w) { return w.find(words) != std::string::npos; });
}

// A folder with the file `w.quarry` and its sidecars.
struct Folder {
  fs::path dir, file;
  explicit Folder(const std::string& name) : dir(test::scratch_dir(name)), file(dir / "w.quarry") {}
  void put(const Bytes& database, const Bytes& log, const char* suffix = "-wal") const {
    for (const std::string& name : names_in(dir)) fs::remove(dir / name);
    write_bytes(file, database);
    if (!log.empty()) write_bytes(with_suffix(file, suffix), log);
  }
  std::map<std::string, Bytes> all() const {
    std::map<std::string, Bytes> bytes;
    for (const std::string& name : names_in(dir)) bytes[name] = file_bytes(dir / name);
    return bytes;
  }

  // Checks that every way of reading returns `own`, with a warning of these words, and changes nothing, and that
  // opening for editing sets the log or journal aside unchanged, reports it, and continues with `own`.
  void check_foreign(const Bytes& database, const Bytes& sidecar, const Scene& own, const char* words,
                     const char* suffix = "-wal") const {
    put(database, sidecar, suffix);
    const auto before = all();
    Names warnings;
    const auto read = Store::read(file, {}, nullptr, nullptr, &warnings);
    INFO((read ? "" : read.error().message) << (warnings.empty() ? "" : warnings.front()));
    REQUIRE(read);
    CHECK(same_scene(own, *read) == "");
    CHECK(says(warnings, "w.quarry" + std::string(suffix)));
    CHECK(says(warnings, "not applied"));
    CHECK(says(warnings, words));
    CHECK(says(warnings, "Opening the world for editing sets it aside"));
    Names of_reader;
    CHECK(io::StoreReader::open(file, &of_reader));
    CHECK(of_reader == warnings);
    CHECK((all() == before));
    const std::string name = "w.quarry" + std::string(suffix) + ".of-another-state-1";
    {
      auto store = Store::open(file);
      INFO((store ? "" : store.error().message));
      REQUIRE(store);
      CHECK(says(store->warnings(), words));
      CHECK(says(store->warnings(), "is called " + name + " now"));
      CHECK(same_scene(own, *store->read_scene({}, nullptr, nullptr)) == "");
    }
    CHECK(names_in(dir) == Names{"w.quarry", name});
    CHECK((file_bytes(dir / name) == sidecar));
    Names later;
    const auto again = Store::read(file, {}, nullptr, nullptr, &later);
    REQUIRE(again);
    CHECK(same_scene(own, *again) == "");
    CHECK(later.empty());
  }
  // Checks that the sidecar belongs to the file, and that readers and editors use it.
  void check_own(const Bytes& database, const Bytes& sidecar, const Scene& whole) const {
    put(database, sidecar);
    const auto before = all();
    Names warnings;
    const auto read = Store::read(file, {}, nullptr, nullptr, &warnings);
    INFO((read ? "" : read.error().message));
    REQUIRE(read);
    CHECK(warnings.empty());
    CHECK(same_scene(whole, *read) == "");
    CHECK((all() == before));
    {
      auto store = Store::open(file);
      REQUIRE(store);
      CHECK(store->warnings().empty());
      CHECK(same_scene(whole, *store->read_scene({}, nullptr, nullptr)) == "");
    }
    CHECK(names_in(dir) == Names{"w.quarry"});
    CHECK(same_scene(whole, *Store::read(file)) == "");
  }
  // Checks that the world can neither be read nor edited, and that all files stay unchanged, byte for byte.
  void check_refused(const char* words) const {
    const auto before = all();
    const auto read = Store::read(file);
    REQUIRE_FALSE(read);
    CHECK_THAT(read.error().message, Catch::Contains(words));
    const auto store = Store::open(file);
    REQUIRE_FALSE(store);
    CHECK_THAT(store.error().message, Catch::Contains(words));
    CHECK((all() == before));
  }
};

constexpr char kClosed[] = "the file was closed since it was last edited",
               kNumber[] = "the number that the file got when it was opened for editing";

}  // namespace

TEST_CASE("world journal: a backup of the closed world, copied over it while its log lies there, stays what it was") {
  const fs::path dir = test::scratch_dir("journal_backup");
  Edited world(dir / "live.quarry", 1);
  const Snapshot fresh = world.now();
  world.open();
  for (int i = 0; i < 3; ++i) world.edit();
  world.close();
  const Snapshot older = world.now();
  REQUIRE(older.log.empty());
  world.open();
  for (int i = 0; i < 3; ++i) world.edit();
  const Snapshot killed = world.now();
  const Folder folder("journal_backup_restored");
  folder.check_foreign(fresh.file, killed.log, fresh.scene, kClosed);  // from before the world was ever opened
  folder.check_foreign(older.file, killed.log, older.scene, kClosed);  // from right before this opening
  folder.check_own(killed.file, killed.log, killed.scene);
  world.edit_across_checkpoint();
  world.edit();
  const Snapshot later = world.now();
  folder.check_foreign(older.file, later.log, older.scene, kClosed);
  world.close();
  // A log that was kept longer than its world was open.
  folder.check_foreign(world.now().file, killed.log, world.scene(), kClosed);
}

TEST_CASE("world journal: another world copied to a name beside which a log lies is neither cut nor changed") {
  const fs::path dir = test::scratch_dir("journal_other");
  Edited world(dir / "live.quarry", 1), small(dir / "small.quarry", 2), large(dir / "large.quarry", 3);
  world.open();
  small.open();
  small.edit();
  large.open();
  for (int i = 0; i < 4; ++i) large.edit(300);
  world.edit(40);
  const Snapshot killed = world.now();
  const Folder folder("journal_other_restored");
  for (Edited* other : {&small, &large}) {  // open worlds, whose own logs are missing, too
    const Snapshot open = other->now();
    folder.put(open.file, {});
    Names warnings;
    const auto own = Store::read(folder.file, {}, nullptr, nullptr, &warnings);
    REQUIRE(own);
    CHECK(says(warnings, "is not beside it: edits may be missing"));
    folder.check_foreign(open.file, killed.log, *own, kNumber);
    folder.put(open.file, killed.log);
    CHECK(says(Store::open(folder.file)->warnings(), "is not beside it: edits may be missing"));
    other->close();
    folder.check_foreign(other->now().file, killed.log, other->scene(), kClosed);
  }
}

TEST_CASE(
    "world journal: a copy that was made of the file alone while the world was open does not take a log of a "
    "later opening or a later fold") {
  const fs::path dir = test::scratch_dir("journal_open_copy");
  Edited world(dir / "live.quarry", 1);
  world.open();
  const Snapshot first = world.now();
  world.edit();
  world.close();
  world.open();
  const Snapshot second = world.now();
  for (int i = 0; i < 3; ++i) world.edit();
  const Snapshot before = world.now();
  world.edit_across_checkpoint();
  world.edit();
  const Snapshot after = world.now();
  const Folder folder("journal_open_copy_restored");
  // A log of an earlier opening.
  folder.check_foreign(first.file, before.log, first.scene, kNumber);
  folder.check_foreign(first.file, after.log, first.scene, kNumber);
  // A log of this opening, from before it was folded in and begun anew.
  folder.check_foreign(second.file, after.log, second.scene, kNumber);
  // A log from before that with a file from after it: a pair copied at different instants.
  const Scene folded = [&] {
    folder.put(after.file, {});
    return *Store::read(folder.file);
  }();
  folder.check_foreign(after.file, before.log, folded, kNumber);
  // A file and a log form the world if they are of the same instant, or if nothing was folded in between them.
  folder.check_own(second.file, before.log, before.scene);
  folder.check_own(before.file, before.log, before.scene);
  folder.check_own(after.file, after.log, after.scene);
}

TEST_CASE(
    "world journal: the file and the log of one instant are the world, at every edit of a session in which the "
    "log is folded in again and again") {
  const fs::path dir = test::scratch_dir("journal_folds");
  Edited world(dir / "live.quarry", 1);
  world.open();
  const Folder folder("journal_folds_copy");
  int folds = 0;
  Snapshot last = world.now();
  std::vector<Snapshot> earlier;
  for (int i = 0; i < 40 && folds < 3; ++i) {
    world.edit(400);
    const Snapshot now = world.now();
    if (now.file != last.file) {
      ++folds;
      earlier.push_back(last);
    }
    last = now;
    folder.put(now.file, now.log);
    write_bytes(with_suffix(folder.file, "-wal"), now.log);  // an empty one, too
    Names warnings;
    const auto read = Store::read(folder.file, {}, nullptr, nullptr, &warnings);
    REQUIRE(read);
    CHECK(same_scene(now.scene, *read) == "");
    CHECK(warnings.empty());
    for (const Snapshot& old : earlier) {
      if (now.log.empty()) continue;
      folder.put(old.file, now.log);
      warnings.clear();
      CHECK(Store::read(folder.file, {}, nullptr, nullptr, &warnings));
      CHECK(says(warnings, kNumber));
    }
  }
  CHECK(folds == 3);
}

TEST_CASE(
    "world journal: a file of which a part is from before the log was folded in and a part from after is "
    "refused, and stays as it is") {
  const fs::path dir = test::scratch_dir("journal_half");
  Edited world(dir / "live.quarry", 1);
  world.open();
  world.edit(60);
  world.close();
  world.open();
  const Snapshot opened = world.now();
  world.edit(60);
  const Snapshot before = world.now();
  world.edit_across_checkpoint();
  const Snapshot folded = world.now();
  world.edit();
  const Snapshot after = world.now();
  const Folder folder("journal_half_copied");
  REQUIRE(after.file.size() > before.file.size());
  int refused = 0;
  const Snapshot* const states[4]{&opened, &before, &folded, &after};
  for (size_t cut = 4096; cut < before.file.size(); cut += 4096) {
    Bytes torn = after.file;
    std::copy_n(before.file.begin(), cut, torn.begin());
    for (const Bytes* log : {&before.log, &after.log}) {
      INFO("torn at " << cut << ", with the log from " << (log == &before.log ? "before" : "after"));
      folder.put(torn, *log);
      const auto all = folder.all();
      const auto read = Store::read(folder.file);
      if (read) {
        // If nothing of the other part is used, the result is one of the earlier states.
        CHECK(std::any_of(&states[0], &states[4],
                          [&](const Snapshot* state) { return same_scene(state->scene, *read) == ""; }));
      } else {
        ++refused;
        CHECK(read.error().code == ErrorCode::malformed_input);
        CHECK_FALSE(Store::open(folder.file));
      }
      CHECK((folder.all() == all));
    }
  }
  CHECK(refused > 4);
}

TEST_CASE(
    "world journal: a damaged world beside a log of another state is refused without a byte changed, and the log is "
    "named") {
  const fs::path dir = test::scratch_dir("journal_damaged");
  Edited world(dir / "live.quarry", 1);
  for (int i = 0; i < 2; ++i) {
    world.open();
    world.edit(60);
    world.close();
  }
  const Snapshot closed = world.now();
  world.open();
  world.edit();
  const Snapshot killed = world.now();
  const Folder folder("journal_damaged_restored");
  std::mt19937 random(8);
  int refused = 0;
  for (int round = 0; round < 40; ++round) {
    Bytes bytes = closed.file;
    const size_t at = 4096 + random() % (bytes.size() - 4096);
    bytes[at] ^= uint8_t(1u << random() % 8);
    folder.put(bytes, killed.log);
    const auto before = folder.all();
    INFO("byte " << at);
    if (auto store = Store::open(folder.file)) {
      CHECK(same_scene(closed.scene, *store->read_scene({}, nullptr, nullptr)) == "");
      continue;
    } else {
      CHECK_THAT(store.error().message, Catch::Contains("w.quarry-wal"));
    }
    ++refused;
    CHECK((folder.all() == before));
  }
  CHECK(refused > 20);
  // Without a foreign log, too, a file that cannot be read must not be changed for editing first.
  for (int round = 0; round < 40; ++round) {
    Bytes bytes = killed.file;
    bytes[4096 + random() % (bytes.size() - 4096)] ^= uint8_t(1u << random() % 8);
    folder.put(bytes, killed.log);
    const auto before = folder.all();
    if (!Store::open(folder.file)) CHECK((folder.all() == before));
  }
}

TEST_CASE("world journal: a log that lies where a world is saved belongs to no file, and is kept under another name") {
  const fs::path dir = test::scratch_dir("journal_orphan");
  Edited world(dir / "live.quarry", 1);
  world.open();
  world.edit();
  const Snapshot killed = world.now();
  const Folder folder("journal_orphan_saved");
  const Scene other = test::busy_scene();
  const std::string quarantined = "w.quarry-wal.of-another-state-1";
  write_bytes(with_suffix(folder.file, "-wal"), killed.log);
  write_bytes(with_suffix(folder.file, "-shm"), Bytes(32768, 1));
  CHECK_THAT(Store::foreign_sidecars(folder.file), Catch::Contains(quarantined));
  REQUIRE(Store::save(other, folder.file));
  CHECK(same_scene(other, *Store::read(folder.file)) == "");
  CHECK(names_in(folder.dir) == Names{"w.quarry", quarantined});
  CHECK((file_bytes(folder.dir / quarantined) == killed.log));
  CHECK(Store::foreign_sidecars(folder.file).empty());
  // The same for a copy, and for a replaced file with a foreign log. No file that was kept before is replaced.
  const fs::path from = dir / "from.quarry";
  REQUIRE(Store::save(other, from));
  write_bytes(with_suffix(folder.file, "-wal"), killed.log);
  CHECK_THAT(Store::foreign_sidecars(folder.file), Catch::Contains("w.quarry-wal.of-another-state-2"));
  CHECK(Store::damaged_sidecars(folder.file).empty());
  REQUIRE(Store::copy(from, folder.file));
  CHECK(names_in(folder.dir) == Names{"w.quarry", quarantined, "w.quarry-wal.of-another-state-2"});
  CHECK((file_bytes(folder.dir / "w.quarry-wal.of-another-state-2") == killed.log));
  CHECK(same_scene(other, *Store::read(folder.file)) == "");
  // The replaced file's own sidecars are removed with it.
  folder.put(killed.file, killed.log);
  CHECK(Store::foreign_sidecars(folder.file).empty());
  REQUIRE(Store::save(other, folder.file));
  CHECK(names_in(folder.dir) == Names{"w.quarry"});
  // A world with a log is not copied without it.
  folder.put(killed.file, killed.log);
  const auto copied = Store::copy(folder.file, dir / "copy.quarry");
  REQUIRE_FALSE(copied);
  CHECK_THAT(copied.error().message, Catch::Contains("w.quarry-wal"));
  CHECK_FALSE(fs::exists(dir / "copy.quarry"));
}

TEST_CASE("world journal: a file without its log is read and edited with a warning") {
  const fs::path dir = test::scratch_dir("journal_without");
  Edited world(dir / "live.quarry", 1);
  world.open();
  world.edit_across_checkpoint();
  world.edit();
  const Snapshot open = world.now();
  const Folder folder("journal_without_log");
  folder.put(open.file, {});
  Names warnings;
  const auto read = Store::read(folder.file, {}, nullptr, nullptr, &warnings);
  REQUIRE(read);
  CHECK(says(warnings, "w.quarry-wal, is not beside it"));
  {
    auto store = Store::open(folder.file);
    REQUIRE(store);
    CHECK(store->warnings() == warnings);
    CHECK(same_scene(*read, *store->read_scene({}, nullptr, nullptr)) == "");
  }
  // From then on it is a separate world, which does not accept the log that appears later.
  folder.check_foreign(file_bytes(folder.file), open.log, *read, kClosed);
}

TEST_CASE("world journal: worlds of version 0.1 keep what their killed editor left, and take no log of another state") {
  // That version wrote no number, so its logs have the table's page without one.
  const fs::path dir = test::scratch_dir("journal_old");
  const auto old_world = [&](const char* name, uint32_t seed) {
    fs::path file = dir / name;
    Edited world(file, seed);
    return file;
  };
  // This imitates what an editor of that version leaves: plain SQLite with the statements of one edit.
  struct Live {
    sqlite3* db = nullptr;
    explicit Live(const fs::path& file) {
      REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
      run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA wal_autocheckpoint=0; PRAGMA journal_mode=WAL");
    }
    ~Live() { close(); }
    void close() {
      if (db) sqlite3_exec(db, "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr);
      sqlite3_close(std::exchange(db, nullptr));
    }
    void run(const std::string& text) {
      REQUIRE(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    }
  };
  const fs::path file = old_world("live.quarry", 1);
  const Bytes fresh = file_bytes(file);
  const Scene fresh_scene = *Store::read(file);
  // The edit writes the instance's visibility and its checksum, as Store::commit_visibility() does, and pages that make
  // the file longer.
  Scene hidden = fresh_scene;
  hidden.instances[0].hidden = true;
  const fs::path model = dir / "model.quarry";
  REQUIRE(Store::save(hidden, model));
  const auto edit =
      "ATTACH '" + model.string() +
      "' AS m; BEGIN; UPDATE instances SET hidden = 1; UPDATE state SET "
      "value = (SELECT value FROM m.state WHERE key = 'check_scene') WHERE key = 'check_scene'; COMMIT; DETACH m";
  const std::string grow =
      "BEGIN; CREATE TABLE grown (x); INSERT INTO grown VALUES (zeroblob(90000)); DROP TABLE grown; COMMIT";
  Bytes open, open_log, open_grown_log;
  {
    Live live(file);
    open = file_bytes(file);
    live.run(edit);
    open_log = file_bytes(with_suffix(file, "-wal"));
    live.run(grow);
    open_grown_log = file_bytes(with_suffix(file, "-wal"));
  }
  const Bytes closed = file_bytes(file);
  const Folder folder("journal_old_restored");
  REQUIRE((open != fresh));
  folder.check_own(open, open_log, hidden);
  folder.check_own(open, open_grown_log, hidden);
  folder.check_foreign(fresh, open_log, fresh_scene, kClosed);
  // An open copy of another opening is recognised by the count of changes, if the log has one.
  Bytes later, later_log;
  {
    Live live(file);
    later = file_bytes(file);
    live.run(grow);
    later_log = file_bytes(with_suffix(file, "-wal"));
  }
  folder.check_foreign(open, later_log, fresh_scene, "another count of changes");
  // Another world is recognised by the checksums, with the log and without it.
  const fs::path other = old_world("other.quarry", 2);
  const Scene other_scene = *Store::read(other);
  Bytes other_open;
  {
    Live live(other);
    other_open = file_bytes(other);
  }
  folder.check_foreign(other_open, open_log, other_scene, "with it the world's checksums are wrong");
  // A file that has been opened since has the number, and accepts no log without one.
  const fs::path again = dir / "again.quarry";
  write_bytes(again, closed);
  auto store = Store::open(again);
  REQUIRE(store);
  REQUIRE(Store::save(fresh_scene, model));
  Bytes shown_log;
  {
    Live live(file);
    live.run("ATTACH '" + model.string() +
             "' AS m; BEGIN; UPDATE instances SET hidden = 0; UPDATE state SET value = "
             "(SELECT value FROM m.state WHERE key = 'check_scene') WHERE key = 'check_scene'; COMMIT; DETACH m");
    shown_log = file_bytes(with_suffix(file, "-wal"));
  }
  folder.check_foreign(file_bytes(again), shown_log, hidden, kNumber);
}

TEST_CASE("world journal: a log of another page size is of another file, and is set aside") {
  const fs::path dir = test::scratch_dir("journal_page_size"), strange = dir / "strange.db";
  Edited world(dir / "live.quarry", 1);
  world.open();
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(strange.c_str(), &db) == SQLITE_OK);
  REQUIRE(
      sqlite3_exec(
          db,
          "PRAGMA page_size=1024; PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(20000))",
          nullptr, nullptr, nullptr) == SQLITE_OK);
  const Bytes log = file_bytes(with_suffix(strange, "-wal"));
  sqlite3_close(db);
  REQUIRE(log.size() > 20000);
  Folder("journal_page_size_restored")
      .check_foreign(world.now().file, log, world.scene(), "its pages have 1024 bytes, the file's 4096");
}

TEST_CASE("world journal: a journal of another world is set aside, and no page of it is put into this one") {
  // Both were made and never opened. Their counts of changes are the same, so only the checksums distinguish them.
  const fs::path dir = test::scratch_dir("journal_undo");
  const fs::path a = dir / "a.quarry", b = dir / "b.quarry";
  Edited first(a, 1), second(b, 2);
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): as it is now
  const Scene own = second.scene();
  const Bytes database = file_bytes(b), unchanged = file_bytes(a);
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(a.c_str(), &db) == SQLITE_OK);
  REQUIRE(
      sqlite3_exec(db,
                   "PRAGMA cache_size=1; PRAGMA cache_spill=1; BEGIN; UPDATE palette SET name = 'x'; UPDATE "
                   "state SET value = value + 1; UPDATE meta SET value = 'y'; CREATE TABLE t (x); INSERT INTO t VALUES "
                   "(zeroblob(100000))",
                   nullptr, nullptr, nullptr) == SQLITE_OK);
  const Bytes half = file_bytes(a), journal = file_bytes(with_suffix(a, "-journal"));
  REQUIRE(sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
  REQUIRE(journal.size() > 4096);
  REQUIRE(journal[0] == 0xd9);
  const Folder folder("journal_undo_restored");
  folder.check_foreign(database, journal, own, "checksums are wrong", "-journal");
  // The file's own journal undoes the half edit.
  folder.put(half, journal, "-journal");
  Names warnings;
  const auto read = Store::read(folder.file, {}, nullptr, nullptr, &warnings);
  REQUIRE(read);
  CHECK(same_scene(first.scene(), *read) == "");
  CHECK(warnings.empty());
  REQUIRE(Store::open(folder.file));
  CHECK(same_scene(first.scene(), *Store::read(folder.file)) == "");
  CHECK(names_in(folder.dir) == Names{"w.quarry"});
}

TEST_CASE(
    "world journal: where nothing can be written, opening for editing fails, a log of another state has its "
    "name again, and the file's own log keeps all edits") {
  const fs::path dir = test::scratch_dir("journal_full");
  Edited world(dir / "live.quarry", 1);
  const Snapshot closed = world.now();
  world.open();
  for (int i = 0; i < 3; ++i) world.edit(20);
  const Snapshot killed = world.now();
  const Folder folder("journal_full_restored");
  // For this process it is like a full disk: no file may grow beyond 512 bytes.
  const auto open_without_room = [&] {
    struct rlimit before {};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{512, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
    const bool opened = Store::open(folder.file).has_value();
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
    return opened;
  };
  folder.put(closed.file, killed.log);
  const auto before = folder.all();
  CHECK_FALSE(open_without_room());
  CHECK(names_in(folder.dir) == Names{"w.quarry", "w.quarry-wal"});
  CHECK((folder.all() == before));
  folder.put(killed.file, killed.log);
  CHECK_FALSE(open_without_room());
  CHECK((file_bytes(with_suffix(folder.file, "-wal")) == killed.log));
  folder.check_own(file_bytes(folder.file), killed.log, killed.scene);
}

TEST_CASE("world journal: salvage leaves a log of another state out, and says so") {
  const fs::path dir = test::scratch_dir("journal_salvage");
  Edited world(dir / "live.quarry", 1);
  world.open();
  world.edit();
  const Snapshot first = world.now();
  world.close();
  const Snapshot closed = world.now();
  world.open();
  world.edit();
  const Snapshot killed = world.now();
  const Folder folder("journal_salvage_files");
  const auto salvaged = [&](const Bytes& database, const Bytes& log, Names* warnings) {
    folder.put(database, log);
    const auto before = folder.all();
    io::Salvage salvage;
    auto scene = test::salvaged(folder.file, salvage, warnings);
    REQUIRE(scene);
    CHECK((folder.all() == before));
    return std::move(*scene);
  };
  Names warnings;
  CHECK(same_scene(closed.scene, salvaged(closed.file, killed.log, &warnings)) == "");
  CHECK(says(warnings, kClosed));
  warnings.clear();
  CHECK(same_scene(killed.scene, salvaged(killed.file, killed.log, &warnings)) == "");
  CHECK(warnings.empty());
  (void)salvaged(first.file, killed.log, &warnings);
  CHECK(says(warnings, kNumber));
}

TEST_CASE(
    "world journal: kill -9 at any instant of a session that folds its log in again and again loses no acknowledged "
    "edit") {
  const fs::path dir = test::scratch_dir("journal_kill"), file = dir / "w.quarry";
  std::mt19937 random(4711);
  int folded = 0, with_log = 0;
  for (int round = 0; round < 8; ++round) {
    INFO("round " << round);
    for (const std::string& name : names_in(dir)) fs::remove(dir / name);
    const auto play = [&](Edited& world, int steps, const std::function<void(int32_t)>& report) {
      for (int i = 1; i <= steps; ++i) {
        world.edit(1200);
        report(i);
      }
    };
    const uint32_t seed = uint32_t(round + 1);
    const int32_t wait_for = 3 + int32_t(random() % 4);
    const int32_t reported = test::last_step_before_kill(0, wait_for, 60000, random, [&](const auto& report) {
      Edited world(file, seed);
      world.open();
      play(world, 1000, report);
    });
    with_log += !file_bytes(with_suffix(file, "-wal")).empty();
    folded += fs::file_size(file) > 1000000;
    Names warnings;
    const auto scene = Store::read(file, {}, nullptr, nullptr, &warnings);
    INFO((scene ? "" : scene.error().message));
    REQUIRE(scene);
    for (const std::string& warning : warnings)
      CHECK_THAT(warning, Catch::Contains("ends in an edit that is not whole"));
    auto store = Store::open(file);
    REQUIRE(store);
    CHECK(same_scene(*scene, *store->read_scene({}, nullptr, nullptr)) == "");
    // The file has the acknowledged edits, or one more that was on disk but not reported yet.
    const fs::path replayed = dir / "replayed.quarry";
    Edited again(replayed, seed);
    again.open();
    play(again, reported, [](int32_t) {});
    if (same_scene(again.scene(), *scene) != "") play(again, 1, [](int32_t) {});
    CHECK(same_scene(again.scene(), *scene) == "");
  }
  CHECK(folded > 2);
  CHECK(with_log > 2);
}

}  // namespace journal_test
