// SPDX-License-Identifier: Apache-2.0
// long_history_test.cpp - histories of more bricks than the host has at a time: told to a file, and read from it.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/home/choice.hpp"
#include "engine/home/device_home.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/test_data.hpp"
#include "voxel/io/quarry/store.hpp"

namespace long_history_test {

using namespace quarry;
using namespace quarry::engine;
namespace fs = std::filesystem;

namespace {

// Of this process: how much more memory than before `work` had at its peak; 0 where that cannot be told.
template <class Work>
uint64_t grown_bytes(const Work& work) {
  const auto kilobytes = [](const std::string& wanted) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with(wanted)) return std::stoull(line.substr(wanted.size()));
    return 0ull;
  };
  const bool is_reset = bool(std::ofstream("/proc/self/clear_refs") << "5" << std::flush);
  const uint64_t before = kilobytes("VmRSS:");
  work();
  const uint64_t peak = kilobytes("VmHWM:");
  return is_reset && !test::kSanitized && peak > before ? (peak - before) * 1024 : 0;
}

// Layers of voxels, one a step: each cuts all bricks of its plane.
constexpr int32_t kEdge = 2048, kPlanes = 16;
constexpr uint64_t kBricks = uint64_t(kEdge / 8) * (kEdge / 8);
Edit plane(int32_t y) {
  Edit edit;
  edit.shape = Shape::box;
  edit.mode = Mode::fill;
  edit.material = uint8_t(1 + y);
  edit.a = {-kEdge / 2, y, -kEdge / 2};
  edit.b = {kEdge / 2 - 1, y, kEdge / 2 - 1};
  return edit;
}

Scene one_volume() {
  Scene scene;
  scene.volumes.resize(1);
  scene.instances.resize(1);
  return scene;
}

// What a brick of the planes 0 to y has.
uint32_t voxels_up_to(int32_t y) { return uint32_t(64 * (y % 8 + 1)); }

}  // namespace

TEST_CASE("device home: a long history is told to a file some steps at a time, and read from it so", "[one-caller]") {
  const fs::path file = test::scratch_dir("long-history") / "w.quarry";
  const Scene scene = one_volume();
  auto memory = home_memory(Home::emulated, nullptr, SharingMode::automatic);
  REQUIRE(memory);
  auto home = DeviceHome::create(std::move(memory->executor), {scene, {}, 0, nullptr, {}}, 0, 0);
  REQUIRE(home);
  REQUIRE((*home)->follow(false));
  for (int32_t y = 0; y < kPlanes; ++y) {
    const auto ticket = (*home)->edit(plane(y));
    REQUIRE(ticket);
    REQUIRE((*home)->wait(*ticket));
  }
  auto unsaved = (*home)->unsaved();
  REQUIRE(unsaved);
  CHECK((unsaved->moved && unsaved->kept == 0));
  int pieces = 0, records = 0;
  uint64_t wrong = 0, bricks = 0;
  const uint64_t telling = grown_bytes([&] {
    for (bool last = false; !last; ++pieces) {
      const auto some = unsaved->records();
      REQUIRE(some);
      last = some->last;
      for (const UndoRecord& record : some->records) {
        const int32_t y = records++;
        CHECK((record.voxels_changed == uint64_t(kEdge) * kEdge && bricks_in(record.changes) == kBricks));
        for (const BrickChange& change : record.changes)
          wrong += change.brick.y != y / 8 || change.after.voxels() != voxels_up_to(y) ||
                   change.before.voxels() != change.after.voxels() - 64 ||
                   change.after->materials[voxel_index({0, y & 7, 0})] != y + 1;
      }
    }
    const std::vector<Int3> regions = unsaved->regions();
    CHECK(regions.size() == kBricks / 64);
    for (size_t first = 0; first < regions.size(); first += 256) {
      const auto map = unsaved->bricks(std::span(regions).subspan(first, 256));
      REQUIRE(map);
      for (const auto& [at, brick] : (*map)->bricks()) {
        ++bricks;
        wrong += brick.count() != 512;
      }
    }
  });
  CHECK(records == kPlanes);
  CHECK(pieces > kPlanes / 2);
  CHECK(wrong == 0);
  CHECK(bricks == 2 * kBricks);
  CHECK(unsaved->position() == uint64_t(kPlanes));
  CHECK(telling < 300'000'000);  // all at once: 610 MB, by 16 times 65,536 bricks

  // Written whole, and read.
  auto history = (*home)->history();
  REQUIRE(history);
  auto map = (*home)->bricks();
  REQUIRE(map);
  Scene whole = scene;
  whole.volumes[0].bricks = std::move(*map);
  const uint64_t writing = grown_bytes([&] {
    REQUIRE(io::Store::save_with_history(
        whole, [&] { return history->records(); }, [&] { return size_t(history->position()); }, file));
  });
  CHECK(writing < 400'000'000);
  home->reset();
  whole = {};
  auto reader = io::StoreReader::open(file);
  REQUIRE(reader);
  for (const io::HistorySide side : {io::HistorySide::before, io::HistorySide::after}) {
    const bool back = side == io::HistorySide::before;
    wrong = bricks = 0;
    int64_t expected = back ? kPlanes : 1;
    uint64_t of_record = 0;
    const uint64_t reading = grown_bytes([&] {
      REQUIRE(reader->visit_history(side,
                                    [&](io::HistoryPart part) -> Result<void> {
                                      if (part.record != expected) {
                                        wrong += of_record != kBricks;
                                        of_record = 0;
                                        expected += back ? -1 : 1;
                                      }
                                      wrong += part.record != expected || part.voxels != uint64_t(kEdge) * kEdge;
                                      for (const io::HistoryBricks::Row& row : part.bricks.full) of_record += row.count;
                                      of_record += part.bricks.at.size();
                                      bricks += part.bricks.at.size();
                                      return {};
                                    },
                                    {}));
    });
    CHECK(expected == (back ? 1 : kPlanes));
    CHECK(of_record == kBricks);
    CHECK(wrong == 0);
    CHECK(bricks == kBricks * uint64_t(kPlanes - (back ? 2 : 0)));  // before the first of each eight none was there
    CHECK(reading < 150'000'000);                                   // all at once: 540 MB
  }
}

TEST_CASE("device home: what is left of a step that is undone in part is redone, and then it is one step again") {
  const fs::path file = test::scratch_dir("half-undone") / "w.quarry";
  Scene scene = one_volume();
  std::vector<UndoRecord> records(3);
  for (int32_t i = 0; i < 3; ++i) {
    UndoRecord& record = records[size_t(i)];
    record.label = "part";
    record.voxels_changed = 512;
    record.continues = i == 2;
    record.changes.push_back({{i, 0, 0}, 1, {}, SharedBrick::full(7)});
    if (i < 2) scene.volumes[0].bricks.put({i, 0, 0}, SharedBrick::full(7));
  }
  for (const size_t position : {size_t(2), size_t(1)}) {
    if (position == 1) scene.volumes[0].bricks.put({1, 0, 0}, SharedBrick());
    REQUIRE(io::Store::save_with_history(scene, records, position, file));
    auto reader = io::StoreReader::open(file);
    REQUIRE(reader);
    auto memory = home_memory(Home::emulated, nullptr, SharingMode::automatic);
    REQUIRE(memory);
    const auto home =
        DeviceHome::create(std::move(memory->executor), {reader->scene(), {}, 0, &*reader, {}, false, true}, 0, 0);
    REQUIRE(home);
    const auto expect = [&](uint64_t its_position, uint64_t voxels) {
      const auto state = (*home)->state();
      REQUIRE(state);
      CHECK(state->history_length == 2);
      CHECK(state->history_position == its_position);
      CHECK(state->store.voxels == voxels);
    };
    expect(position, position * 512);
    // From there on it is one step again.
    REQUIRE((*home)->wait((*home)->redo()));
    expect(2, 3 * 512);
    REQUIRE((*home)->wait((*home)->undo()));
    expect(1, 512);
    REQUIRE((*home)->wait((*home)->redo()));
    expect(2, 3 * 512);
  }
}

}  // namespace long_history_test
