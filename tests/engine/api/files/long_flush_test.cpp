// SPDX-License-Identifier: Apache-2.0
// long_flush_test.cpp - worlds with more changes in their history than are in memory at once: flushed, opened, killed
// and with the disk full; the same at every home.
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/engine/api/files/full_disk.hpp"
#include "tests/engine/api/files/twin.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/killed_child.hpp"

namespace long_flush_test {

using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

using Place = std::array<int32_t, 3>;

void shape(qry_world* world, uint32_t shape, uint32_t mode, uint32_t material, Place a, Place b, double radius = 0) {
  qry_edit edit = QRY_EDIT_INIT;
  edit.shape = shape;
  edit.mode = mode;
  edit.material = material;
  std::copy(a.begin(), a.end(), edit.a);
  std::copy(b.begin(), b.end(), edit.b);
  edit.radius = radius;
  require_ok(qry_world_edit(world, &edit, nullptr));
}

// Every table's rows but the log's number, as text.
std::string rows_of(const fs::path& file) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  std::string text;
  for (const char* const query :
       {"SELECT volume, x, y, z, bricks, bytes, checksum, hex(data) FROM chunks ORDER BY volume, x, y, z",
        "SELECT record, part, volume, label, voxels, changes, bytes, checksum, hex(data) FROM journal ORDER BY record, "
        "part",
        "SELECT key, value FROM state WHERE key <> 'log_number' ORDER BY key", "PRAGMA user_version"}) {
    sqlite3_stmt* s = nullptr;
    REQUIRE(sqlite3_prepare_v2(db, query, -1, &s, nullptr) == SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW)
      for (int column = 0; column < sqlite3_column_count(s); ++column)
        (text += reinterpret_cast<const char*>(sqlite3_column_text(s, column))) += '|';
    sqlite3_finalize(s);
  }
  sqlite3_close(db);
  return text;
}

// Boxes of more than half a million bricks each, one half over the other, with edges across bricks. Under sanitizers of
// 280,000 and, by threads, of 72,000: still more than one piece of whatever is cut into pieces for threads.
constexpr int kBoxes = 2, kHalf = kThreadSanitized ? 128 : kSanitized ? 256 : 512;
void large_box(qry_world* world, int number) {
  shape(world, QRY_SHAPE_BOX, QRY_MODE_FILL, uint32_t(1 + number), {-300 + 300 * number, -kHalf, -kHalf},
        {219 + 300 * number, kHalf - 5, kHalf + 9});
}
// What they come to: counts, and voxels of a few places.
struct Counts {
  uint64_t voxels, bricks, length, position;
  std::vector<uint8_t> materials;
  friend bool operator==(const Counts&, const Counts&) = default;
};
Counts counts_of(qry_world* world) {
  const qry_world_state state = state_of(world);
  Counts counts{state.voxel_count, state.brick_count, state.history_length, state.history_position, {}};
  std::vector<int32_t> xyz;
  for (int32_t x = -320; x < 550; x += 7)
    for (const int32_t y : {-kHalf - 1, -kHalf, 0, kHalf - 5, kHalf - 4})
      xyz.insert(xyz.end(), {x, y, x % (kHalf - 12)});
  counts.materials.resize(xyz.size() / 3);
  require_ok(qry_world_get_voxels(world, xyz.data(), counts.materials.data(), counts.materials.size()));
  return counts;
}
// At every place of the history.
std::vector<Counts> all_counts(qry_world* world) {
  std::vector<Counts> all = {counts_of(world)};
  while (qry_world_undo(world, nullptr) == QRY_OK) all.push_back(counts_of(world));
  while (qry_world_redo(world, nullptr) == QRY_OK) all.push_back(counts_of(world));
  return all;
}

}  // namespace

TEST_CASE("c_api: a file as Quarry 0.2 wrote it opens at every home with all that its edits made, and goes on") {
  const Worlds worlds;
  const fs::path file = scratch_dir("api_old_file") / "w.quarry";
  for (const uint32_t home : homes(worlds)) {
    INFO("home " << home);
    fs::copy_file(asset("compat/world-0.2.quarry"), file, fs::copy_options::overwrite_existing);
    const OneWorld twin = new_world(worlds, QRY_HOME_HOST);
    shape(twin.get(), QRY_SHAPE_BOX, QRY_MODE_FILL, 5, {-40, 0, -40}, {63, 23, 63});
    shape(twin.get(), QRY_SHAPE_SPHERE, QRY_MODE_FILL, 9, {10, 20, 10}, {}, 24);
    shape(twin.get(), QRY_SHAPE_BOX, QRY_MODE_REMOVE, 0, {-8, 0, -8}, {7, 15, 47});
    shape(twin.get(), QRY_SHAPE_SPHERE, QRY_MODE_PAINT, 7, {40, 10, -20}, {}, 20);
    shape(twin.get(), QRY_SHAPE_SPHERE, QRY_MODE_ADD, 3, {-30, 40, -30}, {}, 14);
    require_ok(qry_world_undo(twin.get(), nullptr));
    const OneWorld world = opened(worlds, file, home);
    CHECK((all_facts(world.get()) == all_facts(twin.get())));
    require_ok(qry_world_attach(world.get(), file.c_str()));
    for (qry_world* const one : {world.get(), twin.get()}) {
      require_ok(qry_world_undo(one, nullptr));
      shape(one, QRY_SHAPE_BOX, QRY_MODE_FILL, 8, {0, 0, 0}, {40, 40, 40});
    }
    require_ok(qry_world_detach(world.get()));
    CHECK((all_facts(opened(worlds, file, home).get()) == all_facts(twin.get())));
    CHECK((all_facts(opened(worlds, file).get()) == all_facts(twin.get())));
  }
}

TEST_CASE("c_api: the same edits make the same rows of a file, whichever home they were flushed from") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_same_rows");
  std::string first;
  for (const uint32_t home : homes(worlds)) {
    INFO("home " << home);
    const fs::path file = dir / (std::to_string(home) + ".quarry");
    const OneWorld world = new_world(worlds, home);
    for (uint32_t i = 0; i < 8; ++i) change(world.get(), 21, i);
    require_ok(qry_world_attach(world.get(), file.c_str()));
    shape(world.get(), QRY_SHAPE_BOX, QRY_MODE_FILL, 5, {-100, 0, -100}, {120, 60, 140});
    shape(world.get(), QRY_SHAPE_SPHERE, QRY_MODE_FILL, 6, {30, 30, 30}, {}, 60.5);
    for (uint32_t i = 8; i < 20; ++i) change(world.get(), 21, i);
    shape(world.get(), QRY_SHAPE_SPHERE, QRY_MODE_REMOVE, 0, {0, 40, 90}, {}, 45);
    shape(world.get(), QRY_SHAPE_SPHERE, QRY_MODE_PAINT, 9, {90, 40, 0}, {}, 45);
    require_ok(qry_world_detach(world.get()));
    const std::string rows = rows_of(file);
    if (first.empty()) first = rows;
    CHECK((rows == first));
    CHECK(rows.ends_with("3|"));
    // Opened at this home and written whole, it has the same history.
    const OneWorld again = opened(worlds, file, home);
    const fs::path whole = dir / (std::to_string(home) + "-whole.quarry");
    require_ok(qry_world_attach(again.get(), whole.c_str()));
    require_ok(qry_world_detach(again.get()));
    CHECK((rows_of(whole) == first));
  }
}

TEST_CASE("c_api: a million changes are flushed and opened at every home, and each step is there") {
  const Worlds worlds;
  const fs::path file = scratch_dir("api_long_history") / "w.quarry";
  const OneWorld twin = new_world(worlds, QRY_HOME_HOST);
  for (int i = 0; i < kBoxes; ++i) large_box(twin.get(), i);
  require_ok(qry_world_undo(twin.get(), nullptr));
  const std::vector<Counts> expected = all_counts(twin.get());
  require_ok(qry_world_undo(twin.get(), nullptr));
  for (const uint32_t home : homes(worlds)) {
    if (home == QRY_HOME_HOST) continue;
    INFO("home " << home);
    fs::remove(file);
    const OneWorld world = new_world(worlds, home);
    require_ok(qry_world_attach(world.get(), file.c_str()));
    for (int i = 0; i < kBoxes; ++i) large_box(world.get(), i);
    require_ok(qry_world_undo(world.get(), nullptr));
    require_ok(qry_world_detach(world.get()));
    CHECK((all_counts(opened(worlds, file).get()) == expected));
    CHECK((all_counts(opened(worlds, file, home).get()) == expected));
  }
}

TEST_CASE(
    "c_api: a flush of a million changes that is killed at any instant, or fails with the disk full at any point, "
    "leaves the file as before or with all of it",
    "[one-caller]") {
  const fs::path dir = scratch_dir("api_long_flush"), file = dir / "w.quarry";
  std::mt19937 random(3);
  const auto begin = [&](const Worlds& worlds) {
    for (const auto& entry : fs::directory_iterator(dir)) fs::remove(entry.path());
    OneWorld world = new_world(worlds, QRY_HOME_EMULATED);
    require_ok(qry_world_attach(world.get(), file.c_str()));
    shape(world.get(), QRY_SHAPE_BOX, QRY_MODE_FILL, 40, {-350, 0, 0}, {-290, 20, 20});
    require_ok(qry_world_flush(world.get()));
    return world;
  };
  const auto edit = [](qry_world* world) {
    for (int i = 0; i < kBoxes; ++i) large_box(world, i);
  };
  Counts before, after;
  uint64_t log_bytes = 0, microseconds = 0;
  {
    const Worlds worlds;
    const OneWorld world = begin(worlds);
    before = counts_of(world.get());
    edit(world.get());
    after = counts_of(world.get());
    const auto start = std::chrono::steady_clock::now();
    require_ok(qry_world_flush(world.get()));
    microseconds = uint64_t(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count());
    log_bytes = fs::file_size(file);
  }
  int cut_short = 0;
  for (int round = 0; round < (kSanitized ? 2 : 4); ++round) {
    INFO("killed, round " << round);
    last_step_before_kill(-1, 0, uint32_t(microseconds), random, [&](const auto& report) {
      const Worlds worlds;
      const OneWorld world = begin(worlds);
      edit(world.get());
      report(0);
      require_ok(qry_world_flush(world.get()));
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    });
    const Worlds worlds;
    const Counts found = counts_of(opened(worlds, file).get());
    cut_short += found == before;
    CHECK((found == before || found == after));
  }
  CHECK(cut_short > 0);

  const Worlds worlds;
  const OneWorld world = begin(worlds);
  edit(world.get());
  for (int part = 1; part < 8; part += kSanitized ? 4 : 2) {
    INFO("full, part " << part);
    {
      const FullDisk full(log_bytes * uint64_t(part) / 8);
      CHECK(qry_world_flush(world.get()) == QRY_ERROR_IO);
    }
    CHECK((counts_of(world.get()) == after));
    const OneWorld found = copied(worlds, file, dir / "copy.quarry");
    CHECK((counts_of(found.get()) == before));
  }
  require_ok(qry_world_flush(world.get()));
  CHECK((counts_of(copied(worlds, file, dir / "copy.quarry").get()) == after));
}

}  // namespace long_flush_test
