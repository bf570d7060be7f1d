// SPDX-License-Identifier: Apache-2.0
// trim_test.cpp - what a world on a device gives back after much was removed: its bricks move together in place, also
// beside frames that still read the places which they leave.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/device/host_shaders.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/bricks/shared.hpp"
#include "voxel/device/store.hpp"

namespace trim_test {

using namespace quarry;
using device::Store;
using test::Bricks;
using test::HostShaders;
using test::seen_by_frame;
using test::taken;

namespace {

constexpr size_t kMany = test::kSanitized ? 34'000 : 40'000;  // bricks: more than a new world has room for

// Bricks of which no two are alike, somewhere in a box of 256 x 64 x 64, or of so many along x.
Bricks some_bricks(size_t count, uint64_t seed, uint32_t across = 256) {
  std::mt19937_64 random(seed);
  Bricks bricks;
  while (bricks.size() < count) {
    const uint64_t place = random();
    const Int3 at{int32_t(place % across) - 128, int32_t(place >> 8 & 63u) - 32, int32_t(place >> 16 & 63u) - 32};
    BrickMaterials materials{};
    const auto number = uint32_t(bricks.size());
    for (uint32_t i = 0; i < 4; ++i) materials[i * 100 + number % 50] = uint8_t(1 + (number >> (6 * i)) % 250);
    materials[511] = uint8_t(1 + (place >> 32) % 255);
    bricks.emplace(brick_key(at), materials);
  }
  return bricks;
}

void write(Store& store, const Bricks& bricks) {
  std::vector<uint32_t> keys;
  std::vector<BrickMaterials> materials;
  for (const auto& [key, its] : bricks) {
    keys.push_back(key);
    materials.push_back(its);
  }
  taken(store.write_bricks({{}, {}, keys, materials}));
}
// Three of four bricks go.
void thin_out(Store& store, Bricks& bricks) {
  std::vector<uint32_t> keys;
  size_t number = 0;
  for (auto it = bricks.begin(); it != bricks.end(); ++number) {
    if (number % 4 == 0) {
      ++it;
      continue;
    }
    keys.push_back(it->first);
    it = bricks.erase(it);
  }
  const std::vector<uint8_t> none(keys.size(), 0);
  taken(store.write_bricks({keys, none, {}, {}}));
}

bool same(Store& store, const Bricks& bricks) {
  const auto entries = taken(store.entries()), reached = taken(store.pyramid_entries());
  if (entries.size() != bricks.size() || reached.size() != bricks.size()) return false;
  std::vector<uint32_t> keys;
  for (const auto& [key, materials] : bricks) keys.push_back(key);
  std::vector<BrickMaterials> read(keys.size());
  REQUIRE(store.read(keys, read));
  size_t i = 0;
  for (const auto& [key, materials] : bricks) {
    const Store::Entry& entry = entries[i];
    if (entry.key != key || reached[i].key != key || entry.index != reached[i].index || read[i] != materials)
      return false;
    if (i++ % 16) continue;
    const Brick brick = taken(store.brick(entry.index));
    for (uint32_t voxel = 0; voxel < 512; ++voxel)
      if ((brick.mask[voxel >> 6] >> (voxel & 63u) & 1u) != (materials[voxel] != 0)) return false;
  }
  return true;
}
uint32_t highest_index(Store& store) {
  uint32_t highest = 0;
  for (const Store::Entry& entry : taken(store.entries())) highest = std::max(highest, entry.index);
  return highest;
}

}  // namespace

TEST_CASE("After much was removed a trim moves the bricks together, and gives the memory behind them back") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = taken(Store::create(taken(home.make())));
    Bricks bricks = some_bricks(kMany, 5);
    write(*store, bricks);
    const uint64_t full_bytes = taken(store->state()).size_bytes;
    thin_out(*store, bricks);
    REQUIRE(store->forget());
    const uint64_t version = taken(store->version());
    REQUIRE(highest_index(*store) > kMany / 2);
    REQUIRE(store->trim());
    REQUIRE(taken(store->version()) == version);
    REQUIRE(same(*store, bricks));
    const Store::State state = taken(store->state());
    REQUIRE(state.bricks == bricks.size());
    REQUIRE(highest_index(*store) < device::kFullBricks + bricks.size());
    // All that is behind the room of a new world and the bricks, as far as growths allow.
    REQUIRE(state.size_bytes + 8'000 * sizeof(Brick) < full_bytes);
    // What comes then has room, and none of it takes a place that is in use.
    const Bricks more = some_bricks(kMany, 6);
    write(*store, more);
    for (const auto& [key, materials] : more) bricks[key] = materials;
    REQUIRE(same(*store, bricks));
    REQUIRE(store->trim());
    REQUIRE(same(*store, bricks));
  }
}

TEST_CASE("Bricks that only the history has move too, and come back when steps are undone and redone", "[one-caller]") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = taken(Store::create(taken(home.make())));
    const size_t count = test::kSanitized ? 1'000 : 12'000;
    std::vector<Bricks> steps{{}};
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      // What is undone and left behind by another step is free.
      write(*store, some_bricks(count, 100 + seed, 4));
      taken(store->wait(taken(store->undo())));
      Bricks now = steps.back();
      const Bricks more = some_bricks(count / 2, seed, 4);
      write(*store, more);
      for (const auto& [key, materials] : more) now[key] = materials;
      steps.push_back(std::move(now));
    }
    const auto to_step = [&](size_t from, size_t to) {
      for (; from > to; --from) taken(store->wait(taken(store->undo())));
      for (; from < to; ++from) taken(store->wait(taken(store->redo())));
      REQUIRE(same(*store, steps[to]));
    };
    // At the end, in the middle, and at the beginning, where the history holds all bricks: what moved has left places
    // that the next step writes.
    for (const size_t at : {6, 4, 0}) {
      to_step(steps.size() - 1, at);
      REQUIRE(store->trim());
      REQUIRE(same(*store, steps[at]));
      if (at == 0) to_step(0, steps.size() - 1);
      else steps.resize(at + 1);
      Bricks now = steps.back();
      const Bricks more = some_bricks(count, 300 + at, 8);
      write(*store, more);
      for (const auto& [key, materials] : more) now[key] = materials;
      steps.push_back(std::move(now));
      for (size_t step = steps.size() - 1; step > 0; --step) to_step(step, step - 1);
      for (size_t step = 1; step < steps.size(); ++step) to_step(step - 1, step);
    }
  }
}

TEST_CASE("Where all frames are done, edits take what they have read before the pool of bricks grows") {
  HostShaders shaders;
  const auto store = taken(Store::create(device::make_emulated_executor({}, &shaders)));
  const Bricks bricks = some_bricks(20'000, 3);
  write(*store, bricks);
  const Store::Published shown = *taken(store->publish({1, 0}));
  bool done = false;
  store->set_frames([&] { return done ? std::optional(Store::Frames{1, 1}) : std::nullopt; });
  // Each round drops what the one before has left to be redone.
  uint32_t seed = 20;
  const auto rounds = [&] {
    for (int i = 0; i < 6; ++i) {
      write(*store, some_bricks(15'000, ++seed));
      REQUIRE(store->wait(taken(store->undo())));
    }
  };
  const size_t first = shaders.bytes;
  rounds();
  REQUIRE((seen_by_frame(shown) == bricks));
  const size_t then = shaders.bytes;
  REQUIRE(then > first + 50'000 * sizeof(Brick));
  done = true;
  rounds();
  REQUIRE(shaders.bytes < then + 20'000 * sizeof(Brick));
  const size_t last = shaders.bytes;
  rounds();
  REQUIRE(shaders.bytes == last);
  REQUIRE(same(*store, bricks));
}

TEST_CASE(
    "A frame that is not done sees what was published for it while bricks move, and the memory comes back after it") {
  HostShaders shaders;
  const auto store = taken(Store::create(device::make_emulated_executor({}, &shaders)));
  Bricks bricks = some_bricks(kMany, 9);
  write(*store, bricks);
  thin_out(*store, bricks);
  REQUIRE(store->forget());
  // For frame 2, which is recorded then, and is not done for long: its bricks stay where they are, though they move.
  const Bricks all = bricks;
  const Store::Published first = *taken(store->publish({1, 0}));
  REQUIRE((seen_by_frame(first) == all));
  REQUIRE(store->trim());
  REQUIRE(highest_index(*store) < device::kFullBricks + all.size());
  const size_t full = shaders.bytes;
  REQUIRE((seen_by_frame(first) == all));
  thin_out(*store, bricks);
  REQUIRE(store->forget());
  const Store::Published second = *taken(store->publish({2, 1}));  // for frame 3
  REQUIRE(store->trim());
  for (int i = 0; i < 3; ++i) {
    const Store::Published again = *taken(store->publish({3, 1}));
    REQUIRE((seen_by_frame(first) == all));
    REQUIRE((seen_by_frame(second) == bricks));
    REQUIRE((seen_by_frame(again) == bricks));
    REQUIRE(same(*store, bricks));
  }
  // Edits go on meanwhile.
  const Bricks before = bricks, more = some_bricks(test::kSanitized ? 5'000 : 20'000, 10);
  write(*store, more);
  for (const auto& [key, materials] : more) bricks[key] = materials;
  REQUIRE((seen_by_frame(first) == all));
  REQUIRE((seen_by_frame(second) == before));
  // Frame 2 is done, and later ones follow, each seen as it was published.
  for (uint64_t frame = 4; frame < 20; ++frame) {
    const Store::Published now = *taken(store->publish({frame, frame - 1}));
    REQUIRE((seen_by_frame(now) == bricks));
    if (frame == 8) {
      const Bricks few = some_bricks(500, 11);
      write(*store, few);
      REQUIRE((seen_by_frame(now) == bricks));  // the edit is not for this frame
      for (const auto& [key, materials] : few) bricks[key] = materials;
    }
  }
  REQUIRE(same(*store, bricks));
  REQUIRE(highest_index(*store) < device::kFullBricks + taken(store->state()).bricks);
  REQUIRE(shaders.bytes + 5'000 * sizeof(Brick) < full);
}

TEST_CASE("A trim that gets no memory leaves the world as it was, and one that gets it later succeeds",
          "[one-caller]") {
  constexpr uint64_t kLimit = uint64_t(1) << 30;
  size_t refused = 0, made = 0;
  for (const uint64_t left : test::kSanitized ? std::vector<uint64_t>{0u, 1u << 12, 1u << 22, 1u << 26}
                                              : std::vector<uint64_t>{0u, 1u << 12, 1u << 16, 1u << 18, 1u << 20,
                                                                      3u << 19, 1u << 22, 1u << 26}) {
    const auto store = taken(Store::create(device::make_emulated_executor({1, kLimit, {}})));
    Bricks bricks = some_bricks(test::kSanitized ? 4'000 : 30'000, 3);
    write(*store, bricks);
    REQUIRE(store->trim());  // nothing is left of what the list needed
    thin_out(*store, bricks);
    REQUIRE(store->forget());
    const uint64_t version = taken(store->version());
    // Something else has the memory.
    device::Executor& executor = store->executor();
    device::Range other = taken(executor.reserve(kLimit, "something else"));
    REQUIRE(executor.grow(other, kLimit - taken(store->state()).size_bytes - left));
    if (const auto trimmed = store->trim()) {
      ++made;
    } else {
      REQUIRE(trimmed.error().code == ErrorCode::out_of_memory);
      ++refused;
    }
    executor.release(other);
    REQUIRE(taken(store->version()) == version);
    REQUIRE(same(*store, bricks));
    REQUIRE(store->trim());
    REQUIRE(same(*store, bricks));
    REQUIRE(highest_index(*store) < device::kFullBricks + bricks.size());
    const Bricks few = some_bricks(100, 4);
    write(*store, few);
    for (const auto& [key, materials] : few) bricks[key] = materials;
    REQUIRE(same(*store, bricks));
  }
  REQUIRE(refused > 1);
  REQUIRE(made > 1);
}

TEST_CASE("A frame that is not done sees what was published for it while the steps are dropped that hold its bricks") {
  HostShaders shaders;
  const auto store = taken(Store::create(device::make_emulated_executor({}, &shaders)));
  REQUIRE(store->set_history_budget(1));  // the newest step alone
  Bricks bricks = some_bricks(1'000, 21, 4);
  write(*store, bricks);
  const Bricks all = bricks;
  const Store::Published first = *taken(store->publish({1, 0}));  // for frame 2
  // Each step replaces some of the bricks, and with the next one it goes.
  uint32_t replaced = 0;
  for (uint64_t seed = 22; seed < 27; ++seed) {
    const Bricks more = some_bricks(1'000, seed, 4);
    replaced = 0;
    for (const auto& [key, materials] : more) {
      replaced += bricks.contains(key);
      bricks[key] = materials;
    }
    write(*store, more);
    REQUIRE((seen_by_frame(first) == all));
  }
  REQUIRE(replaced > 100);
  REQUIRE(store->dropped_steps() == 5);
  const auto kept = uint32_t(bricks.size()) + replaced;
  REQUIRE(taken(store->state()).bricks > kept + 100);  // those of frame 2
  for (uint64_t frame = 2; frame < 6; ++frame) {
    const Store::Published now = *taken(store->publish({frame, frame}));
    REQUIRE((seen_by_frame(now) == bricks));
  }
  REQUIRE(taken(store->state()).bricks == kept);
  REQUIRE(same(*store, bricks));
  taken(store->wait(taken(store->undo())));
  REQUIRE(taken(store->wait(taken(store->undo()))).voxels == 0);
}

}  // namespace trim_test
