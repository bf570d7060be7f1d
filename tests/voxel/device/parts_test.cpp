// SPDX-License-Identifier: Apache-2.0
// parts_test.cpp - the connected parts of a world on a device, and what stays of it when only some stay: beside those
// that the host finds in the same bricks.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/device/store.hpp"
#include "voxel/operations/connected_parts.hpp"

namespace parts_test {

using namespace quarry;
using device::StepId;
using device::Store;
using test::taken;

namespace {

using Voxels = std::map<Int3, uint8_t>;
constexpr std::array<uint32_t, 3> kNeighbours{6, 18, 26};

BrickMap map_of(const Voxels& voxels) {
  std::map<Int3, Brick> bricks;
  for (const auto& [at, material] : voxels)
    bricks[brick_of(at)].set(voxel_index({at.x & 7, at.y & 7, at.z & 7}), material);
  BrickMap map;
  for (const auto& [at, brick] : bricks) map.put(at, brick);
  return map;
}
void write(Store& store, const Voxels& voxels) {
  std::vector<int32_t> xyz;
  std::vector<uint8_t> materials;
  for (const auto& [at, material] : voxels) {
    xyz.insert(xyz.end(), {at.x, at.y, at.z});
    materials.push_back(material);
  }
  taken(store.write_voxels({xyz.data(), materials.data(), materials.size()}));
}
BrickMap read(Store& store) {
  std::vector<uint32_t> keys;
  for (const Store::Entry& entry : taken(store.entries())) keys.push_back(entry.key);
  std::vector<BrickMaterials> materials(keys.size());
  REQUIRE(store.read(keys, materials));
  BrickMap map;
  for (size_t i = 0; i < keys.size(); ++i) {
    Brick brick;
    for (uint32_t n = 0; n < kVoxelsPerBrick; ++n)
      if (materials[i][n]) brick.set(n, materials[i][n]);
    map.put(brick_from_key(keys[i]), brick);
  }
  return map;
}
std::unique_ptr<Store> store_on(const test::DeviceHome& home) { return taken(Store::create(taken(home.make()))); }

// The same parts in the same order; it returns how many.
size_t check_parts(Store& store, const BrickMap& bricks, uint32_t neighbours) {
  INFO(neighbours << " neighbours");
  const auto expected = taken(ConnectedParts::find(bricks, Connectivity(neighbours)));
  const auto found = taken(store.find_parts(neighbours));
  REQUIRE(found.size() == expected.parts().size());
  for (size_t i = 0; i < found.size(); ++i) {
    const ConnectedPart& wanted = expected.parts()[i];
    const bool same =
        found[i].voxels == wanted.voxels && found[i].box == wanted.box && found[i].material == wanted.material;
    CAPTURE(i, found[i].voxels, wanted.voxels, int(found[i].material), int(wanted.material));
    if (!same) REQUIRE(same);
  }
  return found.size();
}
void check_all_parts(Store& store, const Voxels& voxels) {
  const BrickMap bricks = map_of(voxels);
  for (const uint32_t neighbours : kNeighbours) check_parts(store, bricks, neighbours);
}
// What is removed is a step, which is undone and redone.
void check_kept(Store& store, const BrickMap& before, uint32_t neighbours, uint64_t most, uint64_t least) {
  INFO("at most " << most << " of at least " << least << " voxels through " << neighbours);
  const auto parts = taken(ConnectedParts::find(before, Connectivity(neighbours)));
  const BrickMap after = parts.first(size_t(std::min<uint64_t>(parts.at_least(least), most)));
  const uint64_t steps = taken(store.state()).position;
  const uint64_t changed = before.voxel_count() - after.voxel_count();
  REQUIRE(taken(store.keep_parts(neighbours, most, least)).voxels == changed);
  REQUIRE(read(store) == after);
  REQUIRE(taken(store.state()).voxels == after.voxel_count());
  REQUIRE(taken(store.state()).position == steps + (changed ? 1 : 0));
  REQUIRE(taken(store.entries()).size() == taken(store.pyramid_entries()).size());
  if (!changed) return;
  REQUIRE(taken(store.wait(taken(store.undo()))).voxels == changed);
  REQUIRE(read(store) == before);
  REQUIRE(taken(store.wait(taken(store.redo()))).voxels == changed);
  REQUIRE(read(store) == after);
  REQUIRE(taken(store.wait(taken(store.undo()))).voxels == changed);
}

// Voxels by chance: `percent` of them, of so many materials; some bricks full of one, some full of several.
Voxels noise(std::mt19937& random, int32_t edge, uint32_t percent, uint32_t materials) {
  Voxels voxels;
  for (int32_t x = 0; x < edge; ++x)
    for (int32_t y = 0; y < edge; ++y)
      for (int32_t z = 0; z < edge; ++z) {
        const Int3 at{x - 13, y - 11, z - 18}, brick = brick_of(at);
        const auto kind = uint32_t(brick.x * 7 + brick.y * 5 + brick.z * 3) % 16;
        if (kind == 1) voxels[at] = uint8_t(5 + percent % 7);
        else if (kind == 2) voxels[at] = uint8_t(1 + random() % 2);
        else if (random() % 100 < percent) voxels[at] = uint8_t(1 + random() % materials);
      }
  return voxels;
}

// Through many bricks to and fro, with a wall of one voxel between its lanes.
Voxels snake(int32_t length, int32_t lanes) {
  Voxels voxels;
  for (int32_t lane = 0; lane < lanes; ++lane) {
    const auto material = uint8_t(1 + lane % 3);
    for (int32_t x = 0; x < length; ++x) voxels[{x - 50, 2 * lane - 20, 7}] = material;
    if (lane + 1 < lanes) voxels[{(lane % 2 ? 0 : length - 1) - 50, 2 * lane - 19, 7}] = material;
  }
  return voxels;
}

}  // namespace

TEST_CASE("find_parts: nothing, a voxel, full bricks, and bricks full of several materials are the host's parts") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_on(home);
    REQUIRE(taken(store->find_parts(6)).empty());
    REQUIRE(taken(store->keep_parts(6, 1, 0)).voxels == 0);
    Voxels voxels{{{-3, 5, 2}, 9}};
    write(*store, voxels);
    check_all_parts(*store, voxels);
    // Full bricks side by side, one that shares an edge, one a corner, one that is far; one of two materials in equal
    // numbers, and one of which one is more.
    const auto fill = [&](Int3 brick, const std::function<uint8_t(uint32_t)>& material) {
      for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
        voxels[Int3{brick.x * 8, brick.y * 8, brick.z * 8} + voxel_from_index(i)] = material(i);
    };
    for (const Int3 brick : {Int3{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {2, 2, 0}, {3, 3, 1}, {9, 9, 9}})
      fill(brick, [](uint32_t) { return uint8_t(4); });
    fill({20, 0, 0}, [](uint32_t i) { return uint8_t(i % 2 ? 200 : 100); });
    fill({30, 0, 0}, [](uint32_t i) { return uint8_t(i < 257 ? 255 : 1); });
    write(*store, voxels);
    check_all_parts(*store, voxels);
    const BrickMap bricks = map_of(voxels);
    for (const uint32_t neighbours : kNeighbours) check_kept(*store, bricks, neighbours, 2, 0);
  }
}

TEST_CASE("find_parts: two voxels are one part if they are neighbours, wherever the seams of bricks are") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_on(home);
    // Pairs far from each other, one for each way and place: in a brick, and across its faces, edges and corners.
    Voxels voxels;
    std::array<size_t, 4> pairs{};
    int32_t number = 0;
    for (int32_t i = 0; i < 27; ++i)
      for (const int32_t place : {0, 7}) {
        const Int3 step{i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
        const int32_t axes = step.x * step.x + step.y * step.y + step.z * step.z;
        if (axes == 0) continue;
        const Int3 at = Int3{(number % 6) * 32 - 96, (number / 6 % 4) * 32 - 64, (number / 24) * 32 - 32} +
                        Int3{place, place, place};
        voxels[at] = uint8_t(1 + number % 250);
        voxels[at + step] = uint8_t(1 + (number * 7) % 250);
        ++pairs[size_t(axes)];
        ++number;
      }
    write(*store, voxels);
    const BrickMap bricks = map_of(voxels);
    REQUIRE(check_parts(*store, bricks, 6) == pairs[1] + 2 * (pairs[2] + pairs[3]));
    REQUIRE(check_parts(*store, bricks, 18) == pairs[1] + pairs[2] + 2 * pairs[3]);
    REQUIRE(check_parts(*store, bricks, 26) == pairs[1] + pairs[2] + pairs[3]);
  }
}

TEST_CASE("find_parts: voxels at opposite borders of the world are not neighbours") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_on(home);
    Voxels voxels;
    for (const int32_t x : {kWorldMin.x, kWorldMin.x + 8, kWorldMax.x - 8, kWorldMax.x})
      for (const int32_t y : {kWorldMin.y, kWorldMax.y - 8, kWorldMax.y})
        for (const int32_t z : {kWorldMin.z, kWorldMin.z + 8, kWorldMax.z - 8, kWorldMax.z})
          if (voxel_in_world({x, y, z})) voxels[{x, y, z}] = uint8_t(1 + (x & 1) + (y & 2));
    write(*store, voxels);
    REQUIRE(check_parts(*store, map_of(voxels), 26) == voxels.size());
    check_all_parts(*store, voxels);
  }
}

TEST_CASE("find_parts: a snake through many bricks is one part, and two that it is cut into are two") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_on(home);
    Voxels voxels = snake(300, test::kSanitized ? 7 : 40);
    write(*store, voxels);
    REQUIRE(check_parts(*store, map_of(voxels), 6) == 1);
    voxels.erase({100, -20, 7});
    taken(store->write_voxels({std::array{100, -20, 7}.data(), std::array<uint8_t, 1>{0}.data(), 1}));
    REQUIRE(check_parts(*store, map_of(voxels), 6) == 2);
    check_all_parts(*store, voxels);
    check_kept(*store, map_of(voxels), 26, 1, 0);
  }
}

TEST_CASE("find_parts, keep_parts: of dust, of caves and of nearly solid worlds they are the host's, in its order") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    std::mt19937 random(41);
    const int32_t edge = test::kSanitized ? 17 : 34;
    for (const uint32_t percent : {2u, 12u, 30u, 50u, 97u}) {
      INFO(percent << " per cent");
      const auto store = store_on(home);
      const Voxels voxels = noise(random, edge, percent, percent == 30 ? 250 : 1 + percent % 4);
      write(*store, voxels);
      check_all_parts(*store, voxels);
      const BrickMap bricks = map_of(voxels);
      for (const uint32_t neighbours : kNeighbours) {
        check_kept(*store, bricks, neighbours, 1, 0);
        check_kept(*store, bricks, neighbours, UINT64_MAX, 2);
        check_kept(*store, bricks, neighbours, 20, 1);
      }
      check_kept(*store, bricks, 18, UINT64_MAX, 1);           // all stay
      check_kept(*store, bricks, 18, UINT64_MAX, UINT64_MAX);  // none does
    }
    // As many pieces as a brick can have.
    const auto store = store_on(home);
    Voxels voxels;
    for (int32_t i = 0; i < 24 * 16 * 16; ++i)
      if (const Int3 at{i % 24, i / 24 % 16, i / 384}; (at.x + at.y + at.z) % 2 == 0) voxels[at] = uint8_t(1 + i % 255);
    write(*store, voxels);
    REQUIRE(check_parts(*store, map_of(voxels), 6) == voxels.size());
    REQUIRE(check_parts(*store, map_of(voxels), 18) == 1);
    check_kept(*store, map_of(voxels), 6, 700, 0);
  }
}

TEST_CASE("find_parts: they are the same in any order of threads, and when they are looked for again", "[one-caller]") {
  std::mt19937 random(43);
  const Voxels voxels = noise(random, 26, 33, 3), more = noise(random, 30, 20, 200);
  for (uint64_t seed = 1; seed <= (test::kSanitized ? 2u : 6u); ++seed) {
    const auto store = taken(Store::create(device::make_emulated_executor({seed * 977, 0, {}})));
    write(*store, voxels);
    check_all_parts(*store, voxels);
    Voxels both = voxels;
    for (const auto& [at, material] : more) both[at] = material;
    write(*store, more);
    check_all_parts(*store, both);
    REQUIRE(store->trim());
    check_all_parts(*store, both);
  }
}

TEST_CASE("find_parts: materials of which there is no room are counted once more", "[one-caller]") {
  const auto store = taken(Store::create(device::make_emulated_executor()));
  // One part of all materials, of which few fit into a table of two.
  Voxels voxels;
  for (int32_t i = 0; i < 16 * 16 * 16; ++i) voxels[{i % 16, i / 16 % 16, i / 256}] = uint8_t(1 + i % 255);
  write(*store, voxels);
  device::Memory memory = store->memory();
  const auto scratch = taken(device::PartScratch::create(store->executor(), 2));
  const auto parts = taken(scratch->find(memory, taken(store->state()).keys, 6));
  const auto expected = taken(ConnectedParts::find(map_of(voxels), Connectivity::faces));
  REQUIRE(parts.size() == 1);
  REQUIRE(memory.parts.last_share + 1 >= 255);
  REQUIRE(parts[0].voxels == expected.parts()[0].voxels);
  REQUIRE(parts[0].material == expected.parts()[0].material);
}

TEST_CASE("keep_parts: whatever memory or room is missing, nothing changes or the result is the same", "[one-caller]") {
  std::mt19937 random(47);
  const Voxels voxels = noise(random, 26, 30, 5);
  const BrickMap bricks = map_of(voxels);
  for (const test::DeviceHome& home : test::faulty_homes()) {
    INFO(home.name);
    for (const auto& [step, missing] : std::array<std::pair<StepId, uint32_t>, 6>{{
             {StepId::label_bricks, device::kMissingKeys},
             {StepId::list_lost, device::kMissingNodes},
             {StepId::touch_list, device::kMissingRecords},
             {StepId::touch_list, device::kMissingScratch},
             {StepId::cut_list, device::kMissingBricks},
             {StepId::cut_list, device::kMissingNodes},
         }}) {
      INFO(device::name_of(step) << " lacks " << missing);
      bool armed = false;
      const auto refuse = [&, step = step, missing = missing](StepId now) {
        return now == step && std::exchange(armed, false) ? missing : 0u;
      };
      const auto store = taken(Store::create(taken(home.make_faulty({5, 0, refuse}))));
      write(*store, voxels);
      armed = true;
      check_kept(*store, bricks, 6, 3, 0);
      REQUIRE(!armed);
    }
  }
  // With more and more memory.
  uint64_t needed = 0;
  {
    const auto store = taken(Store::create(device::make_emulated_executor()));
    write(*store, voxels);
    needed = store->executor().size_bytes();
  }
  bool enough = false;
  int refused = 0;
  for (uint64_t limit = needed; !enough; limit += 16384) {
    const auto store = taken(Store::create(device::make_emulated_executor({5, limit, {}})));
    write(*store, voxels);
    const auto change = store->keep_parts(6, 3, 0);
    enough = bool(change);
    if (!enough) {
      ++refused;
      REQUIRE(change.error().code == ErrorCode::out_of_memory);
      REQUIRE(read(*store) == bricks);
      REQUIRE(taken(store->state()).steps == 1);
    }
  }
  REQUIRE(refused > 4);
}

}  // namespace parts_test
