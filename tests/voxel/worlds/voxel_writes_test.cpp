// SPDX-License-Identifier: Apache-2.0
// voxel_writes_test.cpp - lists of voxels and of bricks against one voxel after the other, for several thread numbers.
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "voxel/worlds/document.hpp"
#include "voxel/worlds/voxel_writes.hpp"

namespace voxel_writes_test {

using namespace quarry;

namespace {

struct List {
  std::vector<int32_t> xyz;
  std::vector<uint8_t> materials;
  void add(Int3 v, uint8_t material) {
    xyz.insert(xyz.end(), {v.x, v.y, v.z});
    materials.push_back(material);
  }
  VoxelWrites writes() const { return {xyz.data(), materials.data(), materials.size()}; }
};

// The voxels one after the other.
BrickMap naive(BrickMap bricks, const List& list) {
  for (size_t i = 0; i < list.materials.size(); ++i)
    bricks.set({list.xyz[3 * i], list.xyz[3 * i + 1], list.xyz[3 * i + 2]}, list.materials[i]);
  return bricks;
}

uint64_t differing(const BrickMap& a, const BrickMap& b) {
  uint64_t count = 0;
  const auto add = [&](const BrickMap& from, const BrickMap& other, bool both) {
    for (const auto& [at, brick] : from.bricks()) {
      const auto there = other.find(at);
      if (there && !both) continue;
      for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) count += brick.get(i) != (there ? there->get(i) : 0);
    }
  };
  add(a, b, true);
  add(b, a, false);
  return count;
}

void check_list(const BrickMap& before, const List& list) {
  const BrickMap expected = naive(before, list);
  for (const uint32_t threads : {1u, 2u, 7u}) {
    const auto record = plan_voxels(before, list.writes(), threads);
    REQUIRE(record);
    BrickMap after = before;
    for (size_t i = 0; i < record->changes.size(); ++i) {
      const BrickChange& change = record->changes[i];
      if (i) REQUIRE(record->changes[i - 1].last() < change.brick);
      REQUIRE_FALSE((change.before == change.after));
      for (uint32_t k = 0; k < change.count; ++k) {
        REQUIRE(change.before == before.share(change.at(k)));
        after.put(change.at(k), change.after);
      }
    }
    REQUIRE(after == expected);
    REQUIRE(record->voxels_changed == differing(before, expected));
  }
}

}  // namespace

TEST_CASE(
    "voxel_writes: a list leaves what its voxels leave one after the other: the last of a voxel counts, 0 removes") {
  std::mt19937 random(9);
  BrickMap before;
  for (const int reach : {3, 30, 400}) {
    List list;
    const auto pick = [&] { return int(random() % uint32_t(2 * reach)) - reach; };
    for (int i = 0; i < (test::kThreadSanitized ? 20000 : 150000); ++i)
      list.add({pick(), pick(), pick()}, uint8_t(random() % 4 ? 1 + random() % 5 : 0));
    check_list(before, list);
    before = naive(before, list);
  }
  check_list(before, {});
}

TEST_CASE("voxel_writes: a list in scan order over far corners of the coordinates, and one that changes nothing") {
  List list;
  for (int z = 0; z < 20; ++z)
    for (int y = 0; y < 20; ++y)
      for (int x = 0; x < 200; ++x) list.add({x - 100, y, z}, 5);
  list.add({INT32_MIN, INT32_MAX, 0}, 1);
  list.add({INT32_MAX, INT32_MIN, -1}, 2);
  check_list({}, list);
  CHECK((bounds_of(list.writes(), 3) == Box3{{INT32_MIN, INT32_MIN, -1}, {INT32_MAX, INT32_MAX, 19}}));
  CHECK(bounds_of({}).empty());
  const BrickMap after = naive({}, list);
  const auto again = plan_voxels(after, list.writes());
  REQUIRE(again);
  CHECK(again->changes.empty());
  CHECK(again->voxels_changed == 0);
}

TEST_CASE("voxel_writes: voxels far from each other beside many of one brick") {
  std::mt19937 random(4);
  for (const int reach : {4000, 1 << 20}) {  // cells of the box as numbers of 64 bits, and of more
    List list;
    const auto pick = [&](int below) { return int(random() % uint32_t(2 * below)) - below; };
    for (int i = 0; i < 12000; ++i) {
      list.add({pick(reach), pick(reach), pick(reach)}, uint8_t(1 + i % 255));
      list.add({pick(4), pick(4), pick(4)}, uint8_t(i % 7));
    }
    check_list({}, list);
  }
}

TEST_CASE("voxel_writes: a document takes lists and bricks as steps of its history, and undoes them") {
  auto document = Document::create_empty();
  REQUIRE(document);
  List list;
  for (int i = 0; i < 4096; ++i) list.add({i & 15, i >> 4 & 15, i >> 8}, 9);
  const auto record = document->write(0, list.writes(), "set voxels");
  REQUIRE(record);
  CHECK((*record)->voxels_changed == 4096);
  CHECK((*record)->label == "set voxels");
  CHECK(document->world().voxel_count() == 4096);
  CHECK(document->world().pool().live() == 1);  // eight bricks, full of one material
  const std::vector<Int3> places{{0, 0, 0}, {0, 0, 7}};
  const auto hollow = document->write(
      0, places, [](size_t i, Brick& brick) { brick.set(0, i ? uint8_t(3) : uint8_t(0)); }, "hollow");
  REQUIRE(hollow);
  CHECK((*hollow)->voxels_changed == 2);
  CHECK(document->world().get({0, 0, 0}) == 0);
  CHECK(document->world().get({0, 0, 56}) == 3);
  const auto nothing = document->write(
      0, places, [](size_t, Brick&) {}, "nothing");
  REQUIRE(nothing);
  CHECK((*nothing)->changes.empty());
  CHECK(document->step_count() == 2);
  REQUIRE(document->undo());
  REQUIRE(document->undo());
  CHECK(document->world().voxel_count() == 0);
  REQUIRE(document->redo());
  CHECK(document->world().voxel_count() == 4096);
  const std::vector<Int3> far{{1 << 28, 0, 0}};
  const auto refused = document->write(
      0, far, [](size_t, Brick& brick) { brick.set(0, 1); }, "far");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::out_of_bounds);
}

}  // namespace voxel_writes_test
