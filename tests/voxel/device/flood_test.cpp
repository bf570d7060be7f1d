// SPDX-License-Identifier: Apache-2.0
// flood_test.cpp - what is connected with a voxel, found on a device: beside a document and a count of steps through
// faces, in every mode, through many bricks, to the borders of the world, and with room that is refused.
#include <array>
#include <catch2/catch.hpp>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/document.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace flood_test {

using namespace quarry;
using device::StepId;
using device::Store;
using test::taken;

namespace {

Edit bucket(Int3 at, Mode mode = Mode::paint, uint8_t material = 7, uint8_t from = 0) {
  Edit edit;
  edit.shape = Shape::connected;
  edit.mode = mode;
  edit.a = edit.b = at;
  edit.material = material;
  edit.from = from;
  return edit;
}
Edit box(Int3 a, Int3 b, uint8_t material = 1, Mode mode = Mode::fill) {
  Edit edit;
  edit.mode = mode;
  edit.a = a;
  edit.b = b;
  edit.material = material;
  return edit;
}

// A world on a device and a document, to which the same is done.
class Beside {
 public:
  explicit Beside(std::unique_ptr<device::Executor> executor)
      : store_(taken(Store::create(std::move(executor)))), document_(taken(Document::create_empty())) {}
  Store& store() { return *store_; }
  Document& document() { return document_; }

  void apply(const Edit& edit) {
    taken(store_->edit(*taken(EditShape::create(edit)).solid(), edit));
    taken(document_.apply(0, edit));
  }
  void write(const std::map<Int3, uint8_t>& voxels) {
    std::vector<int32_t> xyz;
    std::vector<uint8_t> materials;
    for (const auto& [at, material] : voxels) {
      xyz.insert(xyz.end(), {at.x, at.y, at.z});
      materials.push_back(material);
    }
    taken(store_->write_voxels({xyz.data(), materials.data(), materials.size()}));
    taken(document_.write(0, VoxelWrites{xyz.data(), materials.data(), materials.size()}, "set voxels"));
  }
  // How many voxels it has changed.
  uint64_t flood(const Edit& edit) {
    INFO("from " << edit.a.x << " " << edit.a.y << " " << edit.a.z << " in mode " << int(edit.mode));
    const uint64_t position = taken(store_->state()).position;
    const Store::Change change = taken(store_->edit_connected(edit, kMostBricksPerEdit));
    const uint64_t expected = taken(document_.apply(0, edit))->voxels_changed;
    REQUIRE(change.voxels == expected);
    REQUIRE(taken(store_->state()).position == position + (expected ? 1 : 0));
    require_same();
    return expected;
  }
  void undo() {
    REQUIRE(taken(store_->wait(taken(store_->undo()))).voxels > 0);
    taken(document_.undo());
    require_same();
  }
  void redo() {
    REQUIRE(taken(store_->wait(taken(store_->redo()))).voxels > 0);
    taken(document_.redo());
    require_same();
  }
  // Of full bricks only the indices are read.
  void require_same() {
    const Store::State state = taken(store_->state());
    REQUIRE(state.voxels == document_.world().voxel_count());
    REQUIRE(state.keys == document_.world().brick_count());
    if (state.keys) REQUIRE(state.bounds == document_.world().bounds());
    const auto entries = taken(store_->entries()), reached = taken(store_->pyramid_entries());
    REQUIRE(entries.size() == state.keys);
    REQUIRE(reached.size() == state.keys);
    size_t i = 0;
    bool same = true;
    document_.world().for_each_brick([&](Int3 at, const Brick& brick) {
      same = same && entries[i].key == brick_key(at) && reached[i].key == entries[i].key &&
             reached[i].index == entries[i].index;
      if (const uint8_t full = full_material(brick)) same = same && entries[i].index == device::full_index(full);
      else same = same && taken(store_->brick(entries[i].index)) == brick;
      ++i;
    });
    REQUIRE(same);
  }

 private:
  std::unique_ptr<Store> store_;
  Document document_;
};

// The voxels that steps through faces reach from one, by voxels of its material.
std::set<Int3> reached_by_steps(const std::map<Int3, uint8_t>& voxels, Int3 from) {
  const auto material = [&](Int3 at) {
    const auto found = voxels.find(at);
    return found == voxels.end() ? uint8_t(0) : found->second;
  };
  std::set<Int3> reached;
  std::vector<Int3> next;
  if (material(from)) reached.insert(from), next.push_back(from);
  while (!next.empty()) {
    const Int3 at = next.back();
    next.pop_back();
    for (const Int3 step : {Int3{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}})
      if (material(at + step) == material(from) && reached.insert(at + step).second) next.push_back(at + step);
  }
  return reached;
}

// A corridor of one voxel that goes to and fro over a plane of bricks, a wall of one voxel between its lanes.
std::map<Int3, uint8_t> corridor(int32_t length, int32_t lanes, uint8_t material) {
  std::map<Int3, uint8_t> voxels;
  for (int32_t lane = 0; lane < lanes; ++lane) {
    for (int32_t x = 0; x < length; ++x) voxels[{x, 2 * lane, 5}] = material;
    if (lane + 1 < lanes) voxels[{lane % 2 ? 0 : length - 1, 2 * lane + 1, 5}] = material;
  }
  return voxels;
}

// Voxels of a cube by chance. With about a third of them one shape just reaches from side to side: its ways are long
// and crooked.
std::map<Int3, uint8_t> maze(std::mt19937& random, uint32_t percent) {
  constexpr int32_t kEdge = test::kSanitized ? 40 : 72;
  std::map<Int3, uint8_t> voxels;
  for (int32_t x = 0; x < kEdge; ++x)
    for (int32_t y = 0; y < kEdge; ++y)
      for (int32_t z = 0; z < kEdge; ++z)
        if (random() % 100 < percent) voxels[{x - 30, y - 20, z - 10}] = 1;
  return voxels;
}

}  // namespace

TEST_CASE("What is connected with a voxel on a device is what steps through faces reach, in every mode") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    std::mt19937 random(31);
    for (int round = 0; round < (test::kSanitized ? 20 : 60); ++round) {
      // From caves of one material to dust of several, across the seams of bricks; some bricks full of one material.
      Beside beside(taken(home.make()));
      std::map<Int3, uint8_t> voxels;
      const uint32_t holes = uint32_t(round % 9) * 8, materials = 1 + uint32_t(round % 3);
      for (int x = -13; x < 13; ++x)
        for (int y = -11; y < 11; ++y)
          for (int z = -12; z < 14; ++z) {
            const bool full = round % 4 == 0 && x >= -8 && x < 8 && y >= 0 && y < 8 && z >= 0 && z < 8;
            if (full || random() % 100 >= holes)
              voxels[{x, y, z}] = full ? uint8_t(1) : uint8_t(1 + random() % materials);
          }
      beside.write(voxels);
      const auto at = [&] {
        const auto one = [&] { return int32_t(random() % 18) - 9; };
        return Int3{one(), one(), one()};
      }();
      const auto reached = reached_by_steps(voxels, at);
      const uint8_t there = voxels.contains(at) ? voxels[at] : uint8_t(0);
      for (const Mode mode : {Mode::add, Mode::replace, Mode::paint, Mode::fill, Mode::remove}) {
        // Of another material than that which is there nothing is replaced.
        if (mode == Mode::replace) REQUIRE(beside.flood(bucket(at, mode, 7, uint8_t(there + 1))) == 0);
        const uint64_t changed = beside.flood(bucket(at, mode, 7, there));
        REQUIRE(changed == (mode == Mode::add ? 0 : reached.size()));
        if (changed) beside.undo();
      }
      REQUIRE(beside.flood(bucket(at, Mode::paint, there)) == 0);  // it is of that material already
      if (!reached.empty()) {
        beside.flood(bucket(at, Mode::replace, 0, there));  // removed
        beside.undo();
        beside.redo();
      }
    }
  }
}

TEST_CASE("A flood follows a corridor of one voxel through all of its bricks, however long it is") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Beside beside(taken(home.make()));
    const auto voxels = corridor(400, test::kSanitized ? 9 : 40, 3);
    beside.write(voxels);
    REQUIRE(beside.flood(bucket({0, 0, 5}, Mode::paint, 9)) == voxels.size());
    beside.undo();
    // A wall in it ends the flood.
    taken(beside.document().apply(0, box({200, 8, 5}, {200, 8, 5}, 1)));
    const std::array<int32_t, 3> far_away{200, 8, 5};
    const uint8_t one = 1;
    taken(beside.store().write_voxels({far_away.data(), &one, 1}));
    const uint64_t before = beside.flood(bucket({0, 0, 5}, Mode::remove));
    REQUIRE(before == 4 * 401 + 200);
    REQUIRE(beside.flood(bucket({201, 8, 5}, Mode::remove)) == voxels.size() - before - 1);
    beside.undo();
    beside.undo();
  }
}

TEST_CASE("A flood through more bricks than it first has room for has all of them, and full bricks take no memory",
          "[one-caller]") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Beside beside(taken(home.make()));
    constexpr int32_t kEdge = test::kSanitized ? 34 * 8 : 52 * 8;
    beside.apply(box({0, 0, 0}, {kEdge - 1, kEdge - 1, kEdge - 1}, 4));
    beside.apply(box({kEdge / 2, 3, 3}, {kEdge / 2, kEdge + 40, kEdge + 40}, 5));  // a sheet of another, within it
    REQUIRE(beside.flood(bucket({1, 1, 1}, Mode::paint, 6)) > uint64_t(kEdge) * kEdge * kEdge - kEdge * kEdge);
    const Store::State state = taken(beside.store().state());
    REQUIRE(state.bricks < uint32_t(kEdge / 8 + 6) * uint32_t(kEdge / 8 + 6) * 2);
    // The sheet is as it was, and is a shape of its own.
    REQUIRE(beside.flood(bucket({kEdge / 2, kEdge + 40, kEdge + 40}, Mode::remove)) ==
            uint64_t(kEdge + 38) * (kEdge + 38));
    REQUIRE(beside.flood(bucket({kEdge - 1, kEdge - 1, kEdge - 1}, Mode::remove)) > 0);
    REQUIRE(taken(beside.store().state()).keys == 0);
    for (int i = 0; i < 3; ++i) beside.undo();
    REQUIRE(taken(beside.store().state()).voxels > uint64_t(kEdge) * kEdge * kEdge);
    for (int i = 0; i < 3; ++i) beside.redo();
  }
}

TEST_CASE("A flood finds its way through mazes, in which it comes back to bricks again and again", "[one-caller]") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    std::mt19937 random(77);
    for (int round = 0; round < 8; ++round) {
      Beside beside(taken(home.make()));
      const auto voxels = maze(random, uint32_t(33 + round));
      beside.write(voxels);
      for (int seed = 0; seed < 4; ++seed) {
        const auto at = std::next(voxels.begin(), std::ptrdiff_t(random() % voxels.size()))->first;
        beside.flood(bucket(at, Mode::paint, uint8_t(2 + seed)));
      }
    }
  }
}

TEST_CASE("A flood that begins with little room finds the same bricks and voxels, whatever part of them had none",
          "[one-caller]") {
  // Where all bricks take part in a round, neighbours do in the same one; else those of a round never touch each other.
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    std::mt19937 random(78);
    for (int round = 0; round < 8; ++round) {
      Beside beside(taken(home.make()));
      const auto voxels = maze(random, uint32_t(33 + round));
      beside.write(voxels);
      Store& store = beside.store();
      device::Executor& executor = store.executor();
      device::Range keys = taken(executor.reserve(size_t(1) << 24, "keys")),
                    masks = taken(executor.reserve(size_t(1) << 24, "masks"));
      device::Memory memory = store.memory();
      for (const uint64_t first_room : {1, 5, 30, 200}) {
        const auto scratch = taken(device::FloodScratch::create(executor, first_room));
        for (int seed = 0; seed < 4; ++seed) {
          const auto at = std::next(voxels.begin(), std::ptrdiff_t(random() % voxels.size()))->first;
          const auto expected =
              taken(EditShape::connected(beside.document().scene().volumes[0].bricks, at, kMostBricksPerEdit));
          const uint32_t count = taken(scratch->find_connected(memory, keys, masks, at, kMostBricksPerEdit));
          size_t bricks = 0;
          for (const EditShape::Row& row : taken(expected.rows(kMostBricksPerEdit))) bricks += row.count;
          REQUIRE(count == bricks);
          std::vector<uint32_t> its_keys(count);
          std::vector<BrickMask> its_masks(count);
          REQUIRE(executor.copy_out(its_keys.data(), keys.data, count * sizeof(uint32_t)));
          REQUIRE(executor.copy_out(its_masks.data(), masks.data, count * sizeof(BrickMask)));
          bool same = true;
          for (uint32_t i = 0; i < count; ++i)
            same = same && its_masks[i] == expected.mask(brick_from_key(its_keys[i]));
          REQUIRE(same);
          REQUIRE(std::set<uint32_t>(its_keys.begin(), its_keys.end()).size() == count);
        }
      }
      executor.release(keys);
      executor.release(masks);
    }
  }
}

TEST_CASE("A flood that has no room for the tips of its arms goes on with all of them when there is some",
          "[one-caller]") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Beside beside(taken(home.make()));
    // A comb: there is one way to each brick.
    beside.apply(box({0, -4096, 3}, {2047, -4096, 3}, 2));
    for (int32_t x = 0; x < 2048; x += 8) beside.apply(box({x, -4096, 3}, {x, -4096 + 200 * 8 - 1, 3}, 2));
    REQUIRE(taken(beside.store().state()).keys == 256 * 200);
    REQUIRE(beside.flood(bucket({2047, -4096, 3}, Mode::remove)) == 2048 + 256 * (200 * 8 - 1));
    beside.undo();
  }
}

TEST_CASE("A flood ends at the borders of the world, and begins in no voxel that is empty or outside of it") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Beside beside(taken(home.make()));
    // Across each border a key's neighbour by its bits would be at the other end of the world.
    for (const int32_t side : {-1, 1}) {
      const auto end = [&](int32_t low, int32_t high) { return side < 0 ? low : high; };
      for (const int32_t z : {-8192, -20, 8160}) {
        const Int3 corner{end(-8192, 8168), end(-4096, 4072), z};
        beside.apply(box(corner, corner + Int3{23, 23, 15}, 2));
      }
    }
    std::vector<uint64_t> changed;
    for (const Int3 at : {Int3{-8192, -4096, -8192}, {8191, 4095, -8192}, {8191, 4095, 8175}, {-8192, -4096, 8160}})
      REQUIRE(beside.flood(bucket(at, Mode::paint, 9)) == 24 * 24 * 16);
    // The brick at the upper corner is not of the world.
    beside.apply(box({8168, 4072, 8176}, {8191, 4095, 8183}, 9));
    REQUIRE(beside.flood(bucket({8191, 4095, 8183}, Mode::remove)) == 24 * 24 * 24);
    for (const Int3 at : {Int3{8190, 4094, 8190}, {8192, 0, 0}, {0, -4097, 0}, {0, 0, 2147483647}, {-2147483647, 0, 0}})
      for (const Mode mode : {Mode::paint, Mode::fill, Mode::remove}) REQUIRE(beside.flood(bucket(at, mode)) == 0);
    REQUIRE(beside.flood(bucket({0, 0, 0}, Mode::fill)) == 0);
    while (beside.document().can_undo()) beside.undo();
    REQUIRE(taken(beside.store().state()).keys == 0);
    REQUIRE(beside.flood(bucket({0, 0, 0}, Mode::fill)) == 0);  // in an empty world
  }
}

TEST_CASE("A flood begins in the world that the edits launched before it leave") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Beside beside(taken(home.make()));
    for (int32_t i = 0; i < 40; ++i) {
      Edit ball;
      ball.shape = Shape::sphere;
      ball.mode = i % 5 == 4 ? Mode::remove : Mode::add;
      ball.a = ball.b = {i * 13 % 200, i * 29 % 90, i * 7};
      ball.radius = 20 + i;  // some are larger than the room that a new world has
      ball.material = uint8_t(1 + i % 2);
      beside.apply(ball);
      if (i % 3 == 2)
        beside.flood(bucket(ball.a + Int3{15, 0, 0}, i % 2 ? Mode::paint : Mode::remove, uint8_t(3 + i % 2)));
    }
    while (beside.document().can_undo()) beside.undo();
  }
}

TEST_CASE("A flood of more bricks than it may have changes nothing, and of as many it is made") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Beside beside(taken(home.make()));
    beside.apply(box({0, 0, 0}, {79, 79, 47}, 4));
    beside.apply(box({80, 4, 4}, {200, 4, 4}, 4));
    const uint64_t bricks = 10 * 10 * 6 + 16;
    for (const Mode mode : {Mode::paint, Mode::add})
      for (const uint64_t most : {uint64_t(0), uint64_t(1), bricks / 2, bricks - 1}) {
        const auto refused = beside.store().edit_connected(bucket({3, 3, 3}, mode), most);
        REQUIRE(refused.error().code == ErrorCode::full);
        // As the host says it.
        const auto host = EditShape::connected(beside.document().scene().volumes[0].bricks, {3, 3, 3}, size_t(most));
        REQUIRE(host.error().code == ErrorCode::full);
        if (most) REQUIRE(refused.error().message == host.error().message);
        beside.require_same();
        REQUIRE(taken(beside.store().state()).steps == 2);
      }
    REQUIRE(taken(beside.store().edit_connected(bucket({3, 3, 3}), bricks)).voxels == 80 * 80 * 48 + 121);
    REQUIRE(taken(beside.document().apply(0, bucket({3, 3, 3})))->voxels_changed == 80 * 80 * 48 + 121);
    beside.undo();
  }
}

TEST_CASE("Room that is refused at any step of a flood's edit leaves its list there, and it is made again",
          "[one-caller]") {
  for (const test::DeviceHome& home : test::faulty_homes()) {
    INFO(home.name);
    // No key is new, so that none can lack a place.
    constexpr std::array<std::pair<StepId, uint32_t>, 6> kRefused{{{StepId::touch_list, device::kMissingRecords},
                                                                   {StepId::touch_list, device::kMissingScratch},
                                                                   {StepId::cut_list, device::kMissingBricks},
                                                                   {StepId::cut_list, device::kMissingNodes},
                                                                   {StepId::flood_round, device::kMissingKeys},
                                                                   {StepId::seed_flood, device::kMissingSteps}}};
    for (const auto& [step, missing] : kRefused) {
      INFO(device::name_of(step) << " lacks " << missing);
      int calls = 0;
      bool refuses = false;
      const auto refuse = [&, step = step, missing = missing](StepId now) {
        return refuses && now == step && calls++ % 2 == 0 ? missing : 0u;
      };
      Beside beside(taken(home.make_faulty({5, 0, refuse})));
      beside.apply(box({-20, -20, -20}, {40, 30, 20}, 3));
      beside.apply(box({0, 0, 0}, {3, 40, 40}, 2));
      for (int round = 0; round < 4; ++round) {
        refuses = true;
        const Edit edit = bucket({-10, 0, 0}, round == 3 ? Mode::remove : Mode::paint, uint8_t(5 + round));
        const uint64_t changed = taken(beside.store().edit_connected(edit, kMostBricksPerEdit)).voxels;
        refuses = false;
        REQUIRE(changed == taken(beside.document().apply(0, edit))->voxels_changed);
        beside.require_same();
      }
      REQUIRE(calls >= 4);
      while (beside.document().can_undo()) beside.undo();
    }
  }
}

TEST_CASE("A flood that gets no memory changes nothing, and one that needs less is made afterwards", "[one-caller]") {
  int refused = 0, done = 0;
  for (uint64_t limit = 48; limit < 200; limit += test::kSanitized ? 40 : 8) {
    auto opened = Store::create(device::make_emulated_executor({3, limit << 20, {}}));
    if (!opened) continue;
    Store& store = **opened;
    const auto make = [&](const Edit& edit) {
      return store.wait(taken(store.edit(*taken(EditShape::create(edit)).solid(), edit)));
    };
    // A sheet of one voxel, so that each brick takes memory.
    if (!make(box({0, 0, 0}, {1599, 0, 1599}, 4)) || !make(box({-40, 0, -40}, {-33, 7, -33}, 2))) continue;
    const Store::State before = taken(store.state());
    const auto change = store.edit_connected(bucket({0, 0, 0}), kMostBricksPerEdit);
    if (change) {
      REQUIRE(change->voxels == 1600 * 1600);
      ++done;
    } else {
      REQUIRE(change.error().code == ErrorCode::out_of_memory);
      REQUIRE(taken(store.state()).version == before.version);
      REQUIRE(taken(store.state()).steps == before.steps);
      ++refused;
      const auto few = store.edit_connected(bucket({-40, 0, -40}), kMostBricksPerEdit);
      if (few) REQUIRE(few->voxels == 512);
      else REQUIRE(few.error().code == ErrorCode::out_of_memory);
    }
  }
  REQUIRE(refused > 0);
  REQUIRE(done > 0);
}

}  // namespace flood_test
