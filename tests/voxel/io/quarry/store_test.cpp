// SPDX-License-Identifier: Apache-2.0
// store_test.cpp - the .quarry file: saved data is read back, each call leaves its state on disk, and a damaged or
// hostile file does no harm.
#include "voxel/io/quarry/store.hpp"

#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <random>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/writer.hpp"
#include "voxel/io/vox/read.hpp"

namespace store_test {

using namespace quarry;
using io::Store;
using test::file_bytes, test::names_in, test::same_scene, test::write_bytes;
namespace fs = std::filesystem;

namespace {

// Runs SQL on a file without the store.
void sql(const fs::path& file, const std::string& text) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  char* message = nullptr;
  const int code = sqlite3_exec(db, text.c_str(), nullptr, nullptr, &message);
  INFO((message ? message : ""));
  CHECK(code == SQLITE_OK);
  sqlite3_free(message);
  sqlite3_close(db);
}
// All chunk rows as (place, bytes).
std::map<std::string, std::vector<uint8_t>> chunk_rows(const fs::path& file) {
  std::map<std::string, std::vector<uint8_t>> rows;
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  sqlite3_stmt* s = nullptr;
  REQUIRE(sqlite3_prepare_v2(db, "SELECT volume || ' ' || x || ' ' || y || ' ' || z, data FROM chunks", -1, &s,
                             nullptr) == SQLITE_OK);
  while (sqlite3_step(s) == SQLITE_ROW) {
    const auto* p = static_cast<const uint8_t*>(sqlite3_column_blob(s, 1));
    rows[reinterpret_cast<const char*>(sqlite3_column_text(s, 0))].assign(p, p + sqlite3_column_bytes(s, 1));
  }
  sqlite3_finalize(s);
  sqlite3_close(db);
  return rows;
}

Scene read_back(const fs::path& file) {
  auto scene = Store::read(file);
  INFO((scene ? std::string() : scene.error().message));
  REQUIRE(scene);
  return std::move(*scene);
}
Error read_error(const fs::path& file) {
  std::vector<UndoRecord> history;
  size_t position = 0;
  const auto scene = Store::read(file, {}, &history, &position);
  REQUIRE_FALSE(scene);
  return scene.error();
}

}  // namespace

TEST_CASE("store: what is read into a pool is there once: the world that has the pool copies no brick") {
  const fs::path file = test::scratch_dir("store-pool") / "a.quarry";
  const Scene scene = test::busy_scene();
  REQUIRE(Store::save(scene, file));
  WorldMemory memory;
  std::vector<UndoRecord> history;
  size_t position = 0;
  auto read = Store::read(file, {}, &history, &position, nullptr, &memory.new_pool());
  REQUIRE(read);
  CHECK(same_scene(*read, scene) == "");
  const BrickPool& pool = *memory.pool;
  uint32_t counted = 0;
  for (const Volume& volume : read->volumes)
    for (const BrickMap::Entry& entry : volume.bricks.bricks()) {
      REQUIRE((entry.handle->material() != 0 || pool.index_of(*entry.handle) != kNoBrick));
      counted += entry.handle->material() == 0;
    }
  CHECK(pool.live() == counted);
  // One volume at the origin is its world: nothing but full bricks comes in addition.
  read->instances.resize(1);
  read->instances[0] = Instance{};
  std::array<bool, 256> full{};
  for (const BrickMap::Entry& entry : read->volumes[0].bricks.bricks()) full[entry.handle->material()] = true;
  const auto materials = uint32_t(std::count(full.begin() + 1, full.end(), true));
  const auto document = Document::create(std::move(*read), memory);
  REQUIRE(document);
  CHECK(document->world().pool().live() == counted + materials);
}

TEST_CASE("store: a scene comes back equal in every field, and saving it again gives the same file") {
  const fs::path dir = test::scratch_dir("store-roundtrip");
  const Scene scene = test::busy_scene();
  REQUIRE(Store::save(scene, dir / "a.quarry"));
  const Scene back = read_back(dir / "a.quarry");
  CHECK(same_scene(scene, back) == "");
  REQUIRE(Store::save(back, dir / "b.quarry"));
  CHECK(file_bytes(dir / "a.quarry") == file_bytes(dir / "b.quarry"));
  CHECK(names_in(dir) == std::vector<std::string>{"a.quarry", "b.quarry"});
  // An empty scene, and one without voxels.
  REQUIRE(Store::save(Scene{}, dir / "a.quarry"));
  CHECK(same_scene(Scene{}, read_back(dir / "a.quarry")) == "");
  // The comparison itself must notice every difference that it tests for.
  for (int field = 0; field < test::kSceneChanges; ++field) {
    Scene changed = test::busy_scene();
    test::change_scene(&changed, field);
    INFO(field);
    CHECK(same_scene(scene, changed) != "");
    REQUIRE(Store::save(changed, dir / "a.quarry"));
    CHECK(same_scene(changed, read_back(dir / "a.quarry")) == "");
  }
}

TEST_CASE("store: every real .vox scene survives the way through a world file") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no .vox files");
  const fs::path file = test::scratch_dir("store-vox") / "w.quarry";
  for (const auto& entry : fs::recursive_directory_iterator(data / "vox")) {
    if (entry.path().extension() != ".vox") continue;
    INFO(entry.path().string());
    const auto scene = io::parse_vox(file_bytes(entry.path()));
    REQUIRE(scene);
    REQUIRE(Store::save(*scene, file));
    CHECK(same_scene(*scene, read_back(file)) == "");
  }
}

TEST_CASE("store: the same bricks give the same chunk bytes, whatever the way to them") {
  const fs::path dir = test::scratch_dir("store-canonical");
  Scene forwards, backwards;
  forwards.volumes.resize(1), backwards.volumes.resize(1);
  std::vector<Int3> cells;
  std::mt19937 random(7);
  for (int i = 0; i < 4000; ++i)
    cells.push_back({int32_t(random() % 300) - 150, int32_t(random() % 90) - 40, int32_t(random() % 200)});
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  for (const Int3& c : cells) forwards.volumes[0].bricks.set(c, uint8_t(1 + (c.x & 127)));
  std::reverse(cells.begin(), cells.end());
  for (const Int3& c : cells) backwards.volumes[0].bricks.set(c, 200);
  for (const Int3& c : cells) backwards.volumes[0].bricks.set(c, uint8_t(1 + (c.x & 127)));
  REQUIRE(Store::save(forwards, dir / "a.quarry"));
  REQUIRE(Store::save(backwards, dir / "b.quarry"));
  CHECK(chunk_rows(dir / "a.quarry") == chunk_rows(dir / "b.quarry"));
  // The same by edits in an open file.
  Scene scene;
  scene.volumes.resize(1);
  REQUIRE(Store::save(scene, dir / "c.quarry"));
  {
    auto store = Store::open(dir / "c.quarry");
    REQUIRE(store);
    const UndoRecord record = test::make_record(scene, 0, forwards.volumes[0].bricks, "all");
    test::apply_record(&scene, record, true);
    REQUIRE(store->commit_edit(scene, record));
  }
  CHECK(chunk_rows(dir / "a.quarry") == chunk_rows(dir / "c.quarry"));
}

TEST_CASE("store: a file has the same bytes whatever the number of threads that write it") {
  const fs::path dir = test::scratch_dir("store-threads");
  Scene scene;
  scene.volumes.resize(2);
  std::mt19937 random(11);
  // More chunks than are compressed at once, some on the coordinates' negative side, most with several bricks.
  for (int i = 0; i < 6000; ++i) {
    const auto any = [&](int32_t span) { return int32_t(random() % uint32_t(span)) - span / 2; };
    scene.volumes[i % 3 == 0].bricks.set({any(1000), any(300), any(600)}, uint8_t(1 + random() % 255));
  }
  const auto saved = [&](const char* threads) {
    setenv("QUARRY_THREADS", threads, 1);
    const auto done = Store::save(scene, dir / "a.quarry");
    unsetenv("QUARRY_THREADS");
    REQUIRE(done);
    return file_bytes(dir / "a.quarry");
  };
  const std::vector<uint8_t> one = saved("1");
  CHECK(chunk_rows(dir / "a.quarry").size() > 600);
  CHECK(one == saved("2"));
  CHECK(one == saved("7"));
  CHECK(same_scene(scene, read_back(dir / "a.quarry")) == "");
}

TEST_CASE("store: an edit writes the chunks it touches and no others, and closing leaves one file") {
  const fs::path dir = test::scratch_dir("store-touched");
  const fs::path file = dir / "w.quarry";
  Scene scene = test::busy_scene();
  REQUIRE(Store::save(scene, file));
  const auto before = chunk_rows(file);
  REQUIRE(before.size() > 5);
  {
    auto store = Store::open(file);
    REQUIRE(store);
    CHECK(store->path() == file);
    BrickMap wanted = scene.volumes[1].bricks;
    wanted.set({70, 3, 3}, 99);  // chunk (1, 0, 0)
    const UndoRecord record = test::make_record(scene, 1, wanted, "dot");
    REQUIRE(record.changes.size() == 1);
    test::apply_record(&scene, record, true);
    REQUIRE(store->commit_edit(scene, record));
  }
  CHECK(names_in(dir) == std::vector<std::string>{"w.quarry"});
  auto after = chunk_rows(file);
  CHECK(after["1 1 0 0"] != before.at("1 1 0 0"));
  after["1 1 0 0"] = before.at("1 1 0 0");
  CHECK(after == before);
  CHECK(same_scene(scene, read_back(file)) == "");
}

TEST_CASE("store: undo, redo and their place survive closing; a new edit drops what could be redone") {
  const fs::path file = test::scratch_dir("store-history") / "w.quarry";
  test::EditScenario scenario;  // a deterministic sequence of edits, undos and redos
  REQUIRE(Store::save(scenario.scene(), file));
  for (int session = 0; session < 6; ++session) {
    auto store = Store::open(file);
    REQUIRE(store);
    for (int i = 0; i < 25; ++i) REQUIRE(scenario.next(&*store));
    std::vector<UndoRecord> history;
    size_t position = 0;
    const auto live = store->read_scene({}, &history, &position);
    REQUIRE(live);
    CHECK(same_scene(scenario.scene(), *live) == "");
  }
  std::vector<UndoRecord> history;
  size_t position = 99;
  const auto scene = Store::read(file, {}, &history, &position);
  REQUIRE(scene);
  CHECK(same_scene(scenario.scene(), *scene) == "");
  CHECK(test::same_history(scenario.history(), history) == "");
  CHECK(position == scenario.position());
  CHECK(scenario.dropped() > 0);
}

TEST_CASE("store: a document's edits go through the file and its history goes on where it stood") {
  const fs::path file = test::scratch_dir("store-document") / "w.quarry";
  Scene start;
  start.volumes.resize(1);
  start.instances.resize(1);
  REQUIRE(Store::save(start, file));
  const auto edit = [](int32_t i) {
    Edit e;
    e.shape = i % 2 ? Shape::box : Shape::sphere;
    e.mode = i % 3 ? Mode::add : Mode::fill;
    e.a = {i * 7 - 40, i, -i * 5};
    e.b = {i * 7 - 30, i + 6, -i * 5 + 9};
    e.radius = 5;
    e.material = uint8_t(1 + i);
    return e;
  };
  for (int session = 0; session < 3; ++session) {
    auto store = Store::open(file);
    REQUIRE(store);
    std::vector<UndoRecord> history;
    size_t position = 0;
    auto scene = store->read_scene({}, &history, &position);
    REQUIRE(scene);
    auto document = Document::create(std::move(*scene));
    REQUIRE(document);
    CHECK(position == size_t(session) * 3);
    const auto restored = document->restore_history(std::move(history), position);
    REQUIRE(restored);
    for (int i = 0; i < 4; ++i) {
      const auto record = document->apply(0, edit(session * 4 + i));
      REQUIRE(record);
      REQUIRE(store->commit_edit(document->scene(), **record));
    }
    const auto undone = document->undo();
    REQUIRE(undone);
    REQUIRE(store->commit_undo(document->scene(), *undone));
    const auto redone = document->redo();
    REQUIRE(redone);
    REQUIRE(store->commit_redo(document->scene(), *redone));
    const auto again = document->undo();
    REQUIRE(again);
    REQUIRE(store->commit_undo(document->scene(), *again));
    const auto live = store->read_scene({}, nullptr, nullptr);
    REQUIRE(live);
    CHECK(same_scene(document->scene(), *live) == "");
    if (session == 2) {  // back to the beginning, over edits of all three openings
      while (document->can_undo()) {
        const auto record = document->undo();
        REQUIRE(record);
        REQUIRE(store->commit_undo(document->scene(), *record));
      }
    } else {  // the next opening's first edit drops the undone one
      CHECK(document->history().size() == document->history_position() + 1);
    }
  }
  CHECK(same_scene(start, read_back(file)) == "");
}

TEST_CASE("store: a record of more bricks than one row holds comes back whole") {
  const fs::path file = test::scratch_dir("store-big-record") / "w.quarry";
  Scene scene;
  scene.volumes.resize(1);
  REQUIRE(Store::save(scene, file));
  BrickMap wanted;
  Brick full;
  for (uint32_t i = 0; i < 512; ++i) full.set(i, uint8_t(1 + i % 255));
  for (int32_t x = 0; x < 32; ++x)
    for (int32_t y = 0; y < 17; ++y)
      for (int32_t z = -16; z < 0; ++z) wanted.put({x, y, z}, full);
  const UndoRecord record = test::make_record(scene, 0, wanted, "fill");
  REQUIRE(record.changes.size() == 32 * 17 * 16);
  test::apply_record(&scene, record, true);
  {
    auto store = Store::open(file);
    REQUIRE(store);
    REQUIRE(store->commit_edit(scene, record));
    test::apply_record(&scene, record, false);
    REQUIRE(store->commit_undo(scene, record));
  }
  std::vector<UndoRecord> history;
  size_t position = 9;
  const auto back = Store::read(file, {}, &history, &position);
  REQUIRE(back);
  CHECK(back->volumes[0].bricks.empty());
  CHECK(chunk_rows(file).empty());
  CHECK(position == 0);
  CHECK(test::same_history({record}, history) == "");
}

TEST_CASE("store: a palette is committed; calls that do not fit the file change nothing") {
  const fs::path file = test::scratch_dir("store-calls") / "w.quarry";
  Scene scene = test::busy_scene();
  REQUIRE(Store::save(scene, file));
  {
    auto store = Store::open(file);
    REQUIRE(store);
    scene.palette.materials[7].emission = 3.25f;
    scene.palette.names[7] = "lamp";
    REQUIRE(store->commit_palette(scene.palette));
    UndoRecord record;
    record.volume = 99;
    CHECK(store->commit_edit(scene, record).error().code == ErrorCode::invalid_argument);
    record.volume = 0;
    CHECK(store->commit_undo(scene, record).error().code == ErrorCode::invalid_argument);
    CHECK(store->commit_redo(scene, record).error().code == ErrorCode::invalid_argument);
    record.changes.resize(2);  // the same brick twice
    CHECK(store->commit_edit(scene, record).error().code == ErrorCode::invalid_argument);
    record.changes.resize(1);
    record.label = "nothing";
    REQUIRE(store->commit_edit(scene, record));
    record.label = "another";
    CHECK(store->commit_undo(scene, record).error().code == ErrorCode::conflict);
    Palette bad = scene.palette;
    bad.materials[3].ior = std::numeric_limits<float>::quiet_NaN();
    CHECK(store->commit_palette(bad).error().code == ErrorCode::invalid_argument);
  }
  CHECK(same_scene(scene, read_back(file)) == "");
  scene.palette.materials[3].ior = std::numeric_limits<float>::quiet_NaN();
  CHECK(Store::save(scene, file).error().code == ErrorCode::invalid_argument);
  scene.palette.materials[3].ior = 1.5f;
  CHECK(same_scene(scene, read_back(file)) == "");
}

TEST_CASE("store: who comes second to a file that is open for editing hears `conflict`, and the first goes on") {
  const fs::path file = test::scratch_dir("store-lock") / "w.quarry";
  const Scene scene = test::busy_scene();
  REQUIRE(Store::save(scene, file));
  auto first = Store::open(file);
  REQUIRE(first);
  CHECK(Store::open(file).error().code == ErrorCode::conflict);
  CHECK(Store::read(file).error().code == ErrorCode::conflict);
  CHECK(Store::save(scene, file).error().code == ErrorCode::conflict);
  // Opening and closing the file by other means in this process must not free the lock.
  (void)file_bytes(file);
  CHECK(Store::open(file).error().code == ErrorCode::conflict);
  REQUIRE(first->commit_palette(scene.palette));
  { const Store gone = std::move(*first); }
  CHECK(Store::open(file));
}

TEST_CASE("store: cancelled or failed, a save leaves the old file and nothing else") {
  const fs::path dir = test::scratch_dir("store-cancel");
  const fs::path file = dir / "w.quarry";
  const Scene scene = test::busy_scene();
  std::atomic<bool> cancel{false};
  int calls = 0;
  Progress progress;
  progress.cancel = &cancel;
  progress.report = [&](std::string_view, double fraction) {
    CHECK(fraction <= 1);
    ++calls;
    cancel = true;
  };
  CHECK(Store::save(scene, file, progress).error().code == ErrorCode::cancelled);
  CHECK(calls == 1);
  CHECK(names_in(dir).empty());
  REQUIRE(Store::save(Scene{}, file));
  const auto before = file_bytes(file);
  cancel = false, calls = 0;
  CHECK(Store::save(scene, file, progress).error().code == ErrorCode::cancelled);
  CHECK(names_in(dir) == std::vector<std::string>{"w.quarry"});
  CHECK(file_bytes(file) == before);
  CHECK(Store::save(scene, dir / "no-such-folder" / "w.quarry").error().code == ErrorCode::not_found);
  CHECK(Store::save(scene, dir).error().code == ErrorCode::io);
  CHECK(Store::read(dir / "none.quarry").error().code == ErrorCode::not_found);
  CHECK(Store::open(dir / "none.quarry").error().code == ErrorCode::not_found);
  CHECK(names_in(dir) == std::vector<std::string>{"w.quarry"});
  cancel = true;
  REQUIRE(Store::save(scene, file));
  CHECK(Store::read(file, progress).error().code == ErrorCode::cancelled);
  // The file's mode and a link to it are kept.
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("w.quarry", dir / "link.quarry");
  REQUIRE(Store::save(Scene{}, dir / "link.quarry"));
  CHECK(fs::is_symlink(dir / "link.quarry"));
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(same_scene(Scene{}, read_back(file)) == "");
}

TEST_CASE("store: what is no Quarry world, or a newer one, is said to be so") {
  const fs::path dir = test::scratch_dir("store-foreign");
  const fs::path file = dir / "w.quarry";
  write_bytes(file, {});
  CHECK(read_error(file).code == ErrorCode::malformed_input);
  CHECK(Store::open(file).error().code == ErrorCode::malformed_input);
  write_bytes(file, std::vector<uint8_t>(5000, 'x'));
  CHECK_THAT(read_error(file).message, Catch::Contains("byte 0"));
  fs::remove(file);
  sql(file, "CREATE TABLE meta (key TEXT)");
  CHECK_THAT(read_error(file).message, Catch::Contains("not a Quarry world"));
  const auto tampered = [&](const std::string& text) {
    REQUIRE(Store::save(test::busy_scene(), file));
    sql(file, text);
    Error e = read_error(file);
    auto opened = Store::open(file);
    // Chunks and history are checked when they are read, not when the file is opened.
    if (opened) CHECK_FALSE(opened->read_scene({}, nullptr, nullptr));
    return e;
  };
  CHECK(tampered("PRAGMA user_version=5").code == ErrorCode::unsupported);
  CHECK_THAT(tampered("PRAGMA user_version=5").message, Catch::Contains("newer"));
  const std::vector<std::pair<std::string, std::string>> cases{
      {"PRAGMA user_version=0", "version is 0"},
      {"PRAGMA user_version=4", "where the step began"},
      {"INSERT INTO state VALUES ('unfinished_from', 0)", "where the step began"},
      {"CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM meta; END", "trigger 't'"},
      {"CREATE VIEW v AS SELECT 1", "view 'v'"},
      {"DROP TABLE layers", "layers"},
      {"ALTER TABLE layers ADD COLUMN extra INTEGER", "layers"},
      {"DROP TABLE meta; CREATE VIEW meta AS SELECT 'a' AS key, 'b' AS value", "meta"},
      {"CREATE INDEX i ON layers (name)", "index 'i'"},
      {"UPDATE chunks SET data = zeroblob(10) WHERE rowid = 1", "checksum"},
      {"UPDATE chunks SET data = zeroblob(3000000) WHERE rowid = 1", "chunks"},
      {"UPDATE chunks SET checksum = checksum + 1 WHERE rowid = 2", "checksum"},
      {"UPDATE chunks SET bricks = 0", "bricks"},
      {"UPDATE chunks SET bricks = 600", "bricks"},
      {"UPDATE chunks SET bytes = 2000000000", "bytes"},
      {"UPDATE chunks SET x = x + 1000 WHERE rowid = 1", "checksum"},
      {"UPDATE chunks SET volume = 77 WHERE rowid = 1", "volume"},
      {"DELETE FROM chunks WHERE rowid = 1", "chunks"},
      {"UPDATE volumes SET bricks = 900000000000 WHERE id = 0", "volumes"},
      {"UPDATE instances SET rotation = 0 WHERE id = 1", "rotation"},
      {"UPDATE instances SET volume = 5000 WHERE id = 1", "volume"},
      {"UPDATE instances SET x = 5000 WHERE id = 1", "checksum"},
      {"UPDATE instances SET x = 5000000000 WHERE id = 1", "x"},
      {"UPDATE layers SET name = 'other'", "checksum"},
      {"UPDATE layers SET hidden = 7", "hidden"},
      {"DELETE FROM palette WHERE id = 9", "palette"},
      {"UPDATE palette SET rgba = rgba + 1 WHERE id = 9", "palette"},
      {"DELETE FROM state WHERE key = 'overlap'", "overlap"},
      {"UPDATE state SET value = 2 WHERE key = 'overlap'", "overlap"},
      {"UPDATE state SET value = 5 WHERE key = 'history_position'", "history"},
      {"INSERT INTO meta VALUES ('new', 'row')", "checksum"},
      {"UPDATE cameras SET vertical_fov = 90.0", "checksum"},
  };
  for (const auto& [text, part] : cases) {
    INFO(text);
    const Error e = tampered(text);
    CHECK(e.code == ErrorCode::malformed_input);
    CHECK_THAT(e.message, Catch::Contains(part));
  }
}

TEST_CASE("store: flipped bits and cuts anywhere in the file are found or change nothing") {
  const fs::path dir = test::scratch_dir("store-flips");
  const fs::path file = dir / "w.quarry";
  test::EditScenario scenario;
  REQUIRE(Store::save(scenario.scene(), file));
  {
    auto store = Store::open(file);
    REQUIRE(store);
    for (int i = 0; i < 12; ++i) REQUIRE(scenario.next(&*store));
  }
  const std::vector<uint8_t> whole = file_bytes(file);
  std::mt19937 random(99);
  int found = 0, harmless = 0, checked = 0;
  const auto check = [&](const std::vector<uint8_t>& bytes) {
    write_bytes(file, bytes);
    std::vector<UndoRecord> history;
    size_t position = 0;
    const auto scene = Store::read(file, {}, &history, &position);
    if (!scene) {
      ++found;
      REQUIRE_FALSE(scene.error().message.empty());
    } else {
      ++harmless;
      REQUIRE(same_scene(scenario.scene(), *scene) == "");
      REQUIRE(test::same_history(scenario.history(), history) == "");
      REQUIRE(position == scenario.position());
    }
    // Editing must reject it, or succeed and leave it readable.
    if (++checked % 16 == 0)
      if (auto opened = Store::open(file)) (void)opened->commit_palette(scenario.scene().palette);
    for (const char* suffix : {"-wal", "-shm", "-journal"}) fs::remove(file.string() + suffix);
  };
  for (int round = 0; round < 700; ++round) {
    std::vector<uint8_t> bytes = whole;
    bytes[random() % bytes.size()] ^= uint8_t(1u << random() % 8);
    check(bytes);
  }
  for (int round = 0; round < 100; ++round) {  // the headers of the file and of its pages are damaged more densely
    std::vector<uint8_t> bytes = whole;
    bytes[random() % (bytes.size() / 4096) * 4096 + random() % 120] = uint8_t(random());
    check(bytes);
  }
  for (int round = 0; round < 100; ++round) {
    std::vector<uint8_t> bytes = whole;
    bytes.resize(round < 60 ? random() % bytes.size() : bytes.size() - 1 - size_t(round % 50));
    check(bytes);
  }
  INFO(harmless << " harmless");
  CHECK(found > 200);
}

TEST_CASE("store: a world written in pieces has the bytes of one saved at once, and comes whole or not at all") {
  const fs::path dir = test::scratch_dir("store-pieces");
  Scene scene;
  std::mt19937 random(7);
  scene.volumes.resize(4);
  for (const size_t v : {size_t(0), size_t(2)})  // empty ones are between and after them
    for (int i = 0; i < 4000; ++i)
      scene.volumes[v].bricks.set(
          {int32_t(random() % 900) - 400, int32_t(random() % 300), int32_t(random() % 500) - 250},
          uint8_t(1 + random() % 9));
  for (uint32_t v = 0; v < 4; ++v) {
    scene.volumes[v].name = "volume " + std::to_string(v);
    scene.instances.emplace_back().volume = v;
  }
  REQUIRE(Store::save(scene, dir / "whole.quarry"));
  Scene head = scene;
  for (Volume& v : head.volumes) v.bricks.clear();
  for (const size_t chunks : {size_t(1), size_t(7), size_t(100000)}) {
    const Progress progress;
    auto writer = io::StoreWriter::create(head, dir / "pieces.quarry", progress);
    REQUIRE(writer);
    for (uint32_t v = 0; v < 4; ++v) {
      std::map<Int3, BrickMap> by_chunk;
      for (const auto& [at, brick] : scene.volumes[v].bricks.bricks()) by_chunk[chunk_of(at)].put(at, brick);
      BrickMap piece;
      size_t in_piece = 0;
      for (const auto& [chunk, bricks] : by_chunk) {
        for (const auto& [at, brick] : bricks.bricks()) piece.put(at, brick);
        if (++in_piece % chunks) continue;
        REQUIRE(writer->append(v, piece));
        piece.clear();
      }
      REQUIRE(writer->append(v, piece));
    }
    CHECK(!fs::exists(dir / "pieces.quarry"));
    REQUIRE(writer->commit());
    CHECK((file_bytes(dir / "pieces.quarry") == file_bytes(dir / "whole.quarry")));
    fs::remove(dir / "pieces.quarry");
  }
  {
    const Progress progress;
    auto writer = io::StoreWriter::create(head, dir / "pieces.quarry", progress);
    REQUIRE(writer);
    REQUIRE(writer->append(2, scene.volumes[2].bricks));
    CHECK(writer->append(2, scene.volumes[2].bricks).error().code == ErrorCode::invalid_argument);
    CHECK(writer->append(0, scene.volumes[0].bricks).error().code == ErrorCode::invalid_argument);
    CHECK(writer->append(4, {}).error().code == ErrorCode::invalid_argument);
  }
  CHECK(names_in(dir) == std::vector<std::string>{"whole.quarry"});
}

TEST_CASE("store: a world that was closed can be opened while a child that was forked in between still runs") {
  const fs::path file = test::scratch_dir("store-forked") / "a.quarry";
  REQUIRE(Store::save(test::busy_scene(), file));
  std::optional<Result<Store>> store(Store::open(file));
  REQUIRE(store->has_value());
  const pid_t child = ::fork();  // it has a copy of every descriptor, as between fork() and exec()
  REQUIRE(child >= 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  CHECK(Store::open(file).error().code == ErrorCode::conflict);
  store.reset();
  const auto again = Store::open(file);
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  INFO((again ? std::string() : again.error().message));
  CHECK(again.has_value());
}

}  // namespace store_test
