// SPDX-License-Identifier: Apache-2.0
// steps_test.cpp - the history of a .quarry file: where steps begin, changes of the palette, which version of the file
// they need, and that a commit that fails leaves no trace.
#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "tests/engine/api/files/full_disk.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/killed_child.hpp"
#include "tests/voxel/io/quarry/salvaged.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/salvage.hpp"
#include "voxel/io/quarry/store.hpp"

namespace steps_test {

using namespace quarry;
using io::Store;
using test::file_bytes, test::same_scene, test::write_bytes;
namespace fs = std::filesystem;

namespace {

int64_t number_in(const fs::path& file, const char* text) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  sqlite3_stmt* s = nullptr;
  REQUIRE(sqlite3_prepare_v2(db, text, -1, &s, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_step(s) == SQLITE_ROW);
  const int64_t number = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  sqlite3_close(db);
  return number;
}
int64_t version_of(const fs::path& file) { return number_in(file, "PRAGMA user_version"); }

void change(const fs::path& file, const std::string& text) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  CHECK(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

struct Whole {
  Scene scene;
  std::vector<UndoRecord> history;
  size_t position = 0;
};
Whole world_in(const fs::path& file) {
  Whole world;
  auto scene = Store::read(file, {}, &world.history, &world.position);
  INFO((scene ? "" : scene.error().message));
  REQUIRE(scene);
  world.scene = std::move(*scene);
  return world;
}

std::string same_records(const std::vector<UndoRecord>& a, const std::vector<UndoRecord>& b) {
  if (std::string other = test::same_history(a, b); !other.empty()) return other;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].continues != b[i].continues || a[i].materials != b[i].materials) return "record " + std::to_string(i);
  return "";
}

Edit dab(int x, uint8_t material, Mode mode = Mode::add) {
  Edit edit;
  edit.shape = Shape::sphere;
  edit.mode = mode;
  edit.a = edit.b = {x, 0, 0};
  edit.radius = 3;
  edit.material = material;
  return edit;
}

// A document that writes every change to the file, too.
class Kept {
 public:
  explicit Kept(const fs::path& file) : store_(std::move(*Store::open(file))) {
    std::vector<UndoRecord> history;
    size_t position = 0;
    auto scene = store_.read_scene({}, &history, &position);
    REQUIRE(scene);
    auto made = Document::create(std::move(*scene));
    REQUIRE(made);
    document.emplace(std::move(*made));
    const auto restored = document->restore_history(std::move(history), position);
    REQUIRE(restored);
  }
  std::optional<Document> document;
  Store& store() { return store_; }
  Document::Persist edits() {
    return [this](std::span<const UndoRecord> r) { return store_.commit_edit(document->scene(), r); };
  }
  Document::Persist undos() {
    return [this](std::span<const UndoRecord> r) { return store_.commit_undo(document->scene(), r); };
  }
  Document::Persist redos() {
    return [this](std::span<const UndoRecord> r) { return store_.commit_redo(document->scene(), r); };
  }
  void stroke(std::initializer_list<int> places, uint8_t material) {
    bool first = true;
    for (const int x : places) REQUIRE(document->apply(0, dab(x, material), 0, !std::exchange(first, false), edits()));
  }
  void paint_over(uint8_t index, float roughness) {
    Palette palette = document->scene().palette;
    palette.materials[index].roughness = roughness;
    palette.names[index] += "x";
    REQUIRE(document->change_palette(palette, edits()));
  }

 private:
  Store store_;
};

fs::path new_world(const fs::path& dir) {
  Scene scene;
  scene.volumes.resize(1);
  scene.instances.resize(1);
  scene.palette = Palette::standard();
  REQUIRE(Store::save(scene, dir / "w.quarry"));
  return dir / "w.quarry";
}

}  // namespace

TEST_CASE(
    "store: strokes and changes of the palette are steps after closing as before it, and both ways give every state") {
  const fs::path file = new_world(test::scratch_dir("store-steps"));
  std::vector<Scene> states;
  std::vector<UndoRecord> records;
  {
    Kept kept(file);
    states.push_back(kept.document->scene());
    const auto note = [&] { states.push_back(kept.document->scene()); };
    kept.stroke({0, 5, 10}, 7), note();
    kept.paint_over(7, 0.25f), note();
    kept.stroke({20}, 8), note();
    kept.stroke({30, 33}, 9), note();
    kept.paint_over(9, 0.75f), note();
    records = kept.document->history();
  }
  CHECK(version_of(file) == 2);
  const Whole read = world_in(file);
  CHECK(same_records(records, read.history) == "");
  CHECK(read.position == records.size());
  {
    Kept kept(file);
    REQUIRE(kept.document->step_count() == 5);
    for (size_t at = 5; at-- > 0;) {
      REQUIRE(kept.document->undo(kept.undos()));
      CHECK(same_scene(states[at], kept.document->scene()) == "");
      const auto live = kept.store().read_scene({}, nullptr, nullptr);
      REQUIRE(live);
      CHECK(same_scene(states[at], *live) == "");
    }
    for (size_t at = 1; at <= 3; ++at) REQUIRE(kept.document->redo(kept.redos()));
  }
  CHECK(same_scene(states[3], world_in(file).scene) == "");
  Kept kept(file);
  REQUIRE(kept.document->step_position() == 3);
  REQUIRE(kept.document->redo(kept.redos()));
  REQUIRE(kept.document->redo(kept.redos()));
  CHECK(same_scene(states[5], kept.document->scene()) == "");
}

TEST_CASE(
    "store: a file keeps the version that older programs read until a step of several edits or a change of the "
    "palette is in it") {
  const fs::path dir = test::scratch_dir("store-version");
  const fs::path file = new_world(dir);
  {
    Kept kept(file);
    kept.stroke({0}, 7);
    kept.stroke({10}, 7);
    REQUIRE(kept.document->undo(kept.undos()));
  }
  CHECK(version_of(file) == 1);
  CHECK(number_in(file, "SELECT count(*) FROM journal WHERE part = 0 AND volume = 0") == 2);
  fs::copy_file(file, dir / "palette.quarry");
  {
    Kept kept(file);
    kept.stroke({20, 25}, 7);
  }
  CHECK(version_of(file) == 2);
  CHECK(number_in(file, "SELECT count(*) FROM journal WHERE part = 1") == 1);
  {
    Kept kept(dir / "palette.quarry");
    kept.paint_over(3, 0.5f);
  }
  CHECK(version_of(dir / "palette.quarry") == 2);
  // An old reader, which knows neither, must not take such rows for edits of voxels. This reader is as strict with a
  // file that states the old version.
  for (const fs::path& newer : {file, dir / "palette.quarry"}) {
    change(newer, "PRAGMA user_version=1");
    std::vector<UndoRecord> history;
    const auto read = Store::read(newer, {}, &history);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::malformed_input);
  }
}

TEST_CASE(
    "store: a world as Quarry 0.1.1 wrote it opens with each edit a step, can be undone to its beginning, and "
    "takes new steps") {
  const fs::path dir = test::scratch_dir("store-compat");
  const fs::path file = dir / "old.quarry";
  fs::copy_file(test::asset("compat/world-0.1.1.quarry"), file);
  REQUIRE(version_of(file) == 1);
  const Whole old = world_in(file);
  REQUIRE(old.history.size() == 5);
  CHECK(old.position == 4);
  std::vector<std::string> labels;
  for (const UndoRecord& record : old.history) labels.push_back(record.label);
  CHECK(labels == std::vector<std::string>{"add sphere", "paint sphere", "paint line", "add box", "remove line"});
  {
    Kept kept(file);
    REQUIRE(kept.document->undo(kept.undos()));
    REQUIRE(kept.document->redo(kept.redos()));
  }
  CHECK(version_of(file) == 1);
  {
    Kept kept(file);
    CHECK(kept.document->step_count() == 5);
    CHECK(kept.document->world().voxel_count() == 265);
    for (const uint64_t voxels : {257u, 257u, 257u, 0u}) {
      REQUIRE(kept.document->undo(kept.undos()));
      CHECK(kept.document->world().voxel_count() == voxels);
    }
    while (kept.document->can_redo()) REQUIRE(kept.document->redo(kept.redos()));
    CHECK(kept.document->world().voxel_count() == 265 - 29);
    kept.stroke({40, 45}, 5);
    kept.paint_over(5, 0.5f);
  }
  CHECK(version_of(file) == 2);
  Kept kept(file);
  CHECK(kept.document->step_count() == 7);
  while (kept.document->can_undo()) REQUIRE(kept.document->undo(kept.undos()));
  CHECK(kept.document->world().voxel_count() == 0);
}

TEST_CASE("store: a world with steps goes on being read") {
  const fs::path file = test::scratch_dir("store-compat-steps") / "w.quarry";
  fs::copy_file(test::asset("compat/world-steps.quarry"), file);
  REQUIRE(version_of(file) == 2);
  Kept kept(file);
  CHECK(kept.document->history().size() == 7);
  CHECK(kept.document->step_count() == 4);
  CHECK(kept.document->step_position() == 3);
  CHECK(kept.document->history()[5].label == "material 7: roughness 0.9 to 0.35");
  while (kept.document->can_redo()) REQUIRE(kept.document->redo(kept.redos()));
  CHECK(kept.document->world().voxel_count() == 265);
  while (kept.document->can_undo()) REQUIRE(kept.document->undo(kept.undos()));
  CHECK(kept.document->world().voxel_count() == 0);
  CHECK(kept.document->scene().palette.materials[7].roughness == 0.9f);
}

TEST_CASE(
    "store: a world as Quarry 0.2 wrote it, each full brick voxel by voxel, has every voxel at every step, and goes on "
    "with rows of the new form beside those of the old one") {
  const fs::path file = test::scratch_dir("store-compat-full") / "w.quarry";
  fs::copy_file(test::asset("compat/world-0.2.quarry"), file);
  REQUIRE(version_of(file) == 1);
  // The five edits once more, voxel by voxel.
  constexpr int32_t kLow = -64, kEdge = 160;
  std::vector<uint8_t> voxels(size_t(kEdge) * kEdge * kEdge);
  const auto each = [&](const auto& visit) {
    for (int32_t z = 0; z < kEdge; ++z)
      for (int32_t y = 0; y < kEdge; ++y)
        for (int32_t x = 0; x < kEdge; ++x)
          visit(Int3{x + kLow, y + kLow, z + kLow}, voxels[(size_t(z) * kEdge + size_t(y)) * kEdge + size_t(x)]);
  };
  const auto within = [](int32_t v, int32_t low, int32_t high) { return v >= low && v <= high; };
  const auto in_ball = [](Int3 v, Int3 c, int32_t r) {
    return (v.x - c.x) * (v.x - c.x) + (v.y - c.y) * (v.y - c.y) + (v.z - c.z) * (v.z - c.z) <= r * r;
  };
  const auto apply = [&](int step) {
    each([&](Int3 v, uint8_t& m) {
      if (step == 0 && within(v.x, -40, 63) && within(v.y, 0, 23) && within(v.z, -40, 63)) m = 5;
      if (step == 1 && in_ball(v, {10, 20, 10}, 24)) m = 9;
      if (step == 2 && within(v.x, -8, 7) && within(v.y, 0, 15) && within(v.z, -8, 47)) m = 0;
      if (step == 3 && in_ball(v, {40, 10, -20}, 20) && m) m = 7;
      if (step == 4 && in_ball(v, {-30, 40, -30}, 14) && !m) m = 3;
    });
  };
  const auto differing = [&](const Document& document) {
    const BrickMap& bricks = document.scene().volumes[0].bricks;
    uint64_t count = 0, set = 0;
    each([&](Int3 v, uint8_t m) { count += bricks.get(v) != m, set += m != 0; });
    return count + (set == document.world().voxel_count() ? 0 : 1);
  };
  std::vector<UndoRecord> records;
  {
    Kept kept(file);
    CHECK(kept.document->step_position() == 4);
    while (kept.document->can_undo()) REQUIRE(kept.document->undo(kept.undos()));
    for (int step = 0; step < 5; ++step) {
      INFO("step " << step);
      REQUIRE(kept.document->redo(kept.redos()));
      apply(step);
      CHECK(differing(*kept.document) == 0);
    }
    records = kept.document->history();
  }
  // Its chunks were written anew.
  CHECK(version_of(file) == 3);
  {
    Kept kept(file);
    CHECK(same_records(records, kept.document->history()) == "");
    CHECK(differing(*kept.document) == 0);
    kept.stroke({40, 45}, 5);
    records = kept.document->history();
    while (kept.document->can_undo()) REQUIRE(kept.document->undo(kept.undos()));
    CHECK(kept.document->world().voxel_count() == 0);
  }
  Kept kept(file);
  CHECK(same_records(records, kept.document->history()) == "");
}

TEST_CASE("store: a step of several records is committed whole or not at all") {
  const fs::path file = new_world(test::scratch_dir("store-step-whole"));
  Kept kept(file);
  kept.stroke({0, 5, 10}, 7);
  const Scene with = kept.document->scene();
  const std::vector<UndoRecord> records = kept.document->history();
  const auto unchanged = [&] {
    std::vector<UndoRecord> history;
    size_t position = 0;
    const auto live = kept.store().read_scene({}, &history, &position);
    REQUIRE(live);
    CHECK(same_scene(with, *live) == "");
    CHECK(same_records(records, history) == "");
    CHECK(position == 3);
  };
  // The second of them is not what the file's history has there.
  std::vector<UndoRecord> other = records;
  other[1].label = "another";
  Scene without = with;
  for (const UndoRecord& record : records) test::apply_record(&without, record, false);
  CHECK(kept.store().commit_undo(without, other).error().code == ErrorCode::conflict);
  unchanged();
  other = records;
  other[1].continues = false;
  CHECK(kept.store().commit_undo(without, other).error().code == ErrorCode::conflict);
  CHECK(kept.store().commit_undo(without, std::span<const UndoRecord>()).error().code == ErrorCode::invalid_argument);
  unchanged();
  // A palette that cannot be saved, in a step after an edit that can.
  std::vector<UndoRecord> more(2);
  more[0] = test::make_record(with, 0, {}, "remove all");
  Palette bad = with.palette;
  bad.materials[4].ior = std::numeric_limits<float>::quiet_NaN();
  more[1] = plan_palette_change(with.palette, bad);
  Scene after = without;
  after.palette = bad;
  CHECK(kept.store().commit_edit(after, more).error().code == ErrorCode::invalid_argument);
  more[1].materials[0].after = with.palette.materials[4];
  more[1].materials[0].name_after = std::string(io::kPartBytesMax, 'n');
  after.palette = with.palette;
  CHECK(kept.store().commit_edit(after, more).error().code == ErrorCode::invalid_argument);
  unchanged();
  REQUIRE(kept.document->undo(kept.undos()));
  REQUIRE(kept.document->redo(kept.redos()));
  unchanged();
}

namespace {

// Commits the scene that is `scene` with some records of a step made, undone (back) or redone: those of `step`, which
// follow the first `kept` of the file.
struct PartOfStep {
  io::UnfinishedStep unfinished;
  uint64_t kept, position;
  std::span<const UndoRecord> step;
  bool back;
};
void commit_part(Store& store, Scene scene, const PartOfStep& part) {
  Store::Later rest;
  rest.position = part.position;
  std::set<Int3> chunks;
  for (const UndoRecord& record : part.step) {
    test::apply_record(&scene, record, !part.back);
    for (const MaterialChange& change : record.materials) {
      scene.palette.materials[change.index] = change.after;
      rest.palette = true;
    }
    for (const BrickChange& change : record.changes)
      for (uint32_t i = 0; i < change.count; ++i) chunks.insert(chunk_of(change.at(i)));
  }
  rest.chunks[0] = {chunks.begin(), chunks.end()};
  const bool is_new = part.unfinished.is_new;
  const auto committed = store.commit_later(
      scene, {part.kept, io::all_of(is_new ? part.step : std::span<const UndoRecord>()),
              [&]() -> Result<Store::Later> { return rest; },
              [&](uint32_t, std::span<const Int3>) -> Result<const BrickMap*> { return &scene.volumes[0].bricks; },
              part.unfinished});
  INFO((committed ? "" : committed.error().message));
  REQUIRE(committed);
}

void expect_same_world(const Whole& a, const Whole& b) {
  CHECK(same_scene(a.scene, b.scene) == "");
  CHECK(same_records(a.history, b.history) == "");
  CHECK(a.position == b.position);
}

}  // namespace

TEST_CASE(
    "store: a step of which a part alone came into the file is left out by who reads it and taken back by who opens it "
    "for editing, whether it was made, undone or redone; both say so, and the file has its version again") {
  const fs::path dir = test::scratch_dir("store-unfinished"), file = new_world(dir);
  std::vector<UndoRecord> added;  // a step of voxels and the palette, after four records
  {
    Kept kept(file);
    kept.stroke({0, 5}, 7);
    kept.stroke({20, 100}, 9);
    auto next = Document::create(kept.document->scene());
    REQUIRE(next);
    REQUIRE(next->apply(0, dab(2, 3)));
    REQUIRE(next->apply(0, dab(21, 0, Mode::remove)));
    Palette palette = next->scene().palette;
    palette.materials[9].roughness = 0.125f;
    REQUIRE(next->change_palette(palette));
    added.assign(next->history().begin(), next->history().end());
    for (UndoRecord& record : added) record.continues = &record != &added.front();
  }
  for (const std::string what : {"an edit", "an undo", "a redo"}) {
    INFO(what);
    if (what == "a redo") {
      Kept kept(file);
      REQUIRE(kept.document->undo(kept.undos()));
    }
    const Whole before = world_in(file);
    const int64_t version = version_of(file);
    {
      auto store = Store::open(file);
      REQUIRE(store);
      const std::span<const UndoRecord> history = before.history;
      if (what == "an edit") commit_part(*store, before.scene, {{4, true}, 4, 7, added, false});
      if (what == "an undo") commit_part(*store, before.scene, {{4, false}, 4, 3, history.subspan(3, 1), true});
      if (what == "a redo") commit_part(*store, before.scene, {{2, false}, 4, 3, history.subspan(2, 1), false});
      REQUIRE(store->unfinished());
    }
    CHECK(version_of(file) == 4);
    const std::vector<uint8_t> bytes = file_bytes(file);
    std::vector<std::string> warnings;
    Whole read;
    uint64_t fingerprint = 0;
    auto scene = Store::read(file, {}, &read.history, &read.position, &warnings, nullptr, &fingerprint);
    REQUIRE(scene);
    read.scene = std::move(*scene);
    expect_same_world(read, before);
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], Catch::StartsWith(what) && Catch::Contains("left out here"));
    {
      warnings.clear();
      auto reader = io::StoreReader::open(file, &warnings);
      REQUIRE(reader);
      CHECK(warnings.size() == 1);
      CHECK(reader->history_position() == before.position);
      REQUIRE(reader->check_history({}));
      const auto its = reader->fingerprint();
      REQUIRE(its);
      CHECK(*its == fingerprint);
    }
    {
      warnings.clear();
      io::Salvage salvage;
      REQUIRE(test::salvaged(file, salvage, &warnings));
      REQUIRE(warnings.size() == 1);
      CHECK_THAT(warnings[0], Catch::Contains("only in part"));
    }
    CHECK(file_bytes(file) == bytes);
    {
      // A disk without room for it.
      const test::FullDisk disk(1000);
      CHECK(Store::open(file).error().code == ErrorCode::io);
    }
    CHECK(file_bytes(file) == bytes);
    expect_same_world(world_in(file), before);
    for (const char* damage : {"UPDATE state SET value = value + 1 WHERE key = 'unfinished_from'",
                               "UPDATE state SET value = 1 - value WHERE key = 'unfinished_new'",
                               "DELETE FROM state WHERE key = 'unfinished_version'", "PRAGMA user_version=3"}) {
      INFO(damage);
      const fs::path damaged = dir / "damaged.quarry";
      write_bytes(damaged, bytes);
      change(damaged, damage);
      CHECK(Store::read(damaged).error().code == ErrorCode::malformed_input);
      CHECK(Store::open(damaged).error().code == ErrorCode::malformed_input);
    }
    // Killed while it is taken back.
    std::mt19937 random(1);
    for (int round = 0; round < 5; ++round) {
      const fs::path killed = dir / "killed.quarry";
      write_bytes(killed, bytes);
      for (const char* suffix : {"-wal", "-journal"}) fs::remove(killed.string() + suffix);
      test::last_step_before_kill(-1, 0, 20000, random, [&](const auto& report) {
        report(0);
        const auto opened = Store::open(killed);
        for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
      });
      expect_same_world(world_in(killed), before);
    }
    {
      auto store = Store::open(file);
      REQUIRE(store);
      REQUIRE(store->warnings().size() == 1);
      CHECK_THAT(store->warnings()[0], Catch::StartsWith(what) && Catch::Contains("taken back"));
      CHECK_FALSE(store->unfinished());
      const auto its = store->fingerprint();
      REQUIRE(its);
      CHECK(*its == fingerprint);
    }
    CHECK(version_of(file) == version);
    CHECK(number_in(file, "SELECT count(*) FROM state WHERE key LIKE 'unfinished%'") == 0);
    warnings.clear();
    REQUIRE(Store::read(file, {}, nullptr, nullptr, &warnings));
    CHECK(warnings.empty());
    expect_same_world(world_in(file), before);
  }
}

TEST_CASE("store: a world saved with its history is the one whose edits were committed") {
  const fs::path dir = test::scratch_dir("store-with-history");
  const fs::path file = new_world(dir);
  {
    Kept kept(file);
    kept.stroke({0, 5}, 7);
    kept.paint_over(7, 0.5f);
    kept.stroke({20}, 8);
    REQUIRE(kept.document->undo(kept.undos()));
    REQUIRE(Store::save_with_history(kept.document->scene(), kept.document->history(),
                                     kept.document->history_position(), dir / "copy.quarry"));
  }
  const Whole a = world_in(file), b = world_in(dir / "copy.quarry");
  CHECK(same_scene(a.scene, b.scene) == "");
  CHECK(same_records(a.history, b.history) == "");
  CHECK(a.position == b.position);
  CHECK(version_of(dir / "copy.quarry") == 2);
  Kept kept(dir / "copy.quarry");
  REQUIRE(kept.document->redo(kept.redos()));
  while (kept.document->can_undo()) REQUIRE(kept.document->undo(kept.undos()));
}

TEST_CASE("store: damage to steps and to changes of the palette is found, and salvage gives the voxels all the same") {
  const fs::path dir = test::scratch_dir("store-steps-damaged");
  const fs::path file = new_world(dir);
  {
    Kept kept(file);
    kept.stroke({0, 5, 10}, 7);
    kept.paint_over(7, 0.5f);
    kept.stroke({20}, 8);
  }
  const std::vector<uint8_t> whole = file_bytes(file);
  const Whole right = world_in(file);
  constexpr const char* kPartTwice =
      "INSERT INTO journal SELECT record, 1, volume, label, voxels, changes, bytes, checksum, data FROM journal "
      "WHERE record = 4";
  for (const char* text :
       {"UPDATE journal SET part = 0 WHERE record = 2", "UPDATE journal SET part = 1 WHERE record = 5",
        "UPDATE journal SET part = 2 WHERE record = 3", "UPDATE journal SET volume = 0 WHERE record = 4",
        "UPDATE journal SET volume = -1 WHERE record = 1", "UPDATE journal SET volume = -2 WHERE record = 4",
        "UPDATE journal SET changes = 2 WHERE record = 4", "UPDATE journal SET bytes = 100 WHERE record = 4",
        "UPDATE journal SET label = 'x' WHERE record = 4", kPartTwice,
        "UPDATE journal SET data = zeroblob(9) WHERE record = 4", "DELETE FROM journal WHERE record = 4"}) {
    INFO(text);
    write_bytes(file, whole);
    change(file, text);
    std::vector<UndoRecord> history;
    const auto read = Store::read(file, {}, &history);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::malformed_input);
    CHECK_THAT(read.error().message, Catch::Contains("journal"));
    io::Salvage salvage;
    const auto saved = test::salvaged(file, salvage, nullptr);
    REQUIRE(saved);
    CHECK(same_scene(right.scene, *saved) == "");
  }
  std::mt19937 random(3);
  int found = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<uint8_t> bytes = whole;
    bytes[random() % bytes.size()] ^= uint8_t(1u << random() % 8);
    write_bytes(file, bytes);
    Whole read;
    const auto scene = Store::read(file, {}, &read.history, &read.position);
    found += !scene;
    if (!scene) continue;
    REQUIRE(same_scene(right.scene, *scene) == "");
    REQUIRE(same_records(right.history, read.history) == "");
  }
  CHECK(found > 30);
}

TEST_CASE("store: changes of materials come back from their bytes, and other bytes are refused") {
  std::vector<MaterialChange> changes(2);
  changes[0] = {0, {1, 2, 3, 4, 0.5f, 0, 1e30f, -1e-40f, 1.5f, {6, 7}}, {}, "", std::string("odd \0 name", 10)};
  changes[1] = {255, {}, {9, 9, 9, 9}, "before", ""};
  const auto blob = io::encode_materials(changes, {});
  REQUIRE(blob);
  CHECK(blob->count == 2);
  std::vector<MaterialChange> back;
  REQUIRE(io::decode_materials(blob->data, blob->plain_bytes, 2, &back));
  CHECK((back == changes));
  const auto refused = [](const std::vector<MaterialChange>& list, uint32_t count) {
    const auto bytes = io::encode_materials(list, {});
    REQUIRE(bytes);
    std::vector<MaterialChange> out;
    return !io::decode_materials(bytes->data, bytes->plain_bytes, count, &out);
  };
  CHECK(refused(changes, 1));
  CHECK(refused(changes, 3));
  CHECK(refused({}, 0));
  CHECK(refused({changes[1], changes[0]}, 2));
  CHECK(refused({changes[0], changes[0]}, 2));
  changes[1].after.metalness = std::numeric_limits<float>::quiet_NaN();
  CHECK(refused(changes, 2));
}

}  // namespace steps_test
