// SPDX-License-Identifier: Apache-2.0
// fill_by_regions_test.cpp - cavities of scenes that are looked at region by region against those of whole scenes.
#include "voxel/operations/regions/fill_by_regions.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "tests/voxel/operations/scene_in_regions.hpp"
#include "voxel/operations/regions/parts_by_regions.hpp"

namespace fill_by_regions_test {

using namespace quarry;
using namespace quarry::test;

namespace {

// Enough for all of a scene, for some chunks of it, and for less than one.
constexpr uint64_t kRooms[] = {uint64_t(1) << 32, 300'000, 20'000};

Scene shown(BrickMap bricks) {
  Scene scene;
  scene.volumes.push_back({"only", std::move(bricks), {}});
  scene.instances.emplace_back();
  return scene;
}

// Returns how many voxels were added.
uint64_t check_filled(const Scene& scene, uint8_t material, uint64_t bytes) {
  INFO("material " << int(material) << ", room " << bytes);
  const auto pass = pass_by_regions([bytes] { return bytes; }, {});
  const auto expected = fill(scene, material);
  const auto filled = fill(begin(scene, source_of(scene)), material, pass, {});
  REQUIRE(expected);
  REQUIRE(filled);
  const auto made = made_of(*filled, bytes);
  REQUIRE(made);
  REQUIRE(same_scene(*made, *expected) == "");
  uint64_t added = 0;
  for (size_t v = 0; v < scene.volumes.size(); ++v) {
    CHECK(filled->bounds()[v] == expected->volumes[v].bricks.bounds());
    added += expected->volumes[v].bricks.voxel_count() - scene.volumes[v].bricks.voxel_count();
  }
  CHECK(filled->tight());
  return added;
}

// The six sides of a box, `thick` voxels deep.
void put_shell(BrickMap& bricks, const Box3& box, int32_t thick, uint8_t material) {
  const Box3 inner{box.min + Int3{thick, thick, thick}, box.max - Int3{thick, thick, thick}};
  for (int32_t x = box.min.x; x <= box.max.x; ++x)
    for (int32_t y = box.min.y; y <= box.max.y; ++y)
      for (int32_t z = box.min.z; z <= box.max.z; ++z)
        if (intersected({{x, y, z}, {x, y, z}}, inner).empty()) bricks.set({x, y, z}, material);
}

// So dense that some of what is empty is closed, about the corners of chunks.
BrickMap clouds(uint32_t seed) {
  std::mt19937 random(seed);
  BrickMap out;
  for (int32_t corner = 0; corner < 8; ++corner) {
    const Int3 at{corner & 1 ? 64 : -64, corner & 2 ? 64 : 0, corner & 4 ? 128 : -64};
    const auto empty = uint32_t(20 + random() % 60);  // percent
    for (int32_t x = -9; x < 9; ++x)
      for (int32_t y = -9; y < 9; ++y)
        for (int32_t z = -9; z < 9; ++z)
          if (random() % 100 >= empty) out.set(at + Int3{x, y, z}, uint8_t(1 + random() % 3));
  }
  return out;
}

}  // namespace

TEST_CASE("fill by regions: cavities are those of a whole scene, whatever room there is") {
  uint64_t added = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    INFO("seed " << seed);
    const Scene scene = seed % 4 ? shown(clouds(seed)) : wide_scene(seed);
    for (const uint8_t material : {uint8_t(0), uint8_t(9)}) added += check_filled(scene, material, kRooms[seed % 3]);
  }
  CHECK(added > 10'000);
}

TEST_CASE("fill by regions: a shell through many chunks is filled, chunks without a voxel too; a hole opens it") {
  BrickMap shell;
  const Box3 box{{-150, -70, -75}, {200, 140, 130}};
  put_shell(shell, box, 1, 4);
  shell.set({0, 0, 0}, 7);
  for (const uint64_t bytes : kRooms) {
    CHECK(check_filled(shown(shell), 0, bytes) == uint64_t(349) * 209 * 204 - 1);
    for (const Int3 hole : {Int3{-150, 3, 3}, {200, 3, 3}, {3, -70, 3}, {3, 140, 3}, {3, 3, -75}, {3, 3, 130}}) {
      BrickMap open = shell;
      open.set(hole, 0);
      CHECK(check_filled(shown(open), 5, bytes) == 0);
    }
    // Its corners and edges are not what closes it.
    BrickMap edges = shell;
    for (int32_t x = box.min.x; x <= box.max.x; ++x) edges.set({x, box.min.y, box.min.z}, 0);
    CHECK(check_filled(shown(edges), 5, bytes) == uint64_t(349) * 209 * 204 - 1);
  }
}

TEST_CASE("fill by regions: a shell that ends at the sides of chunks, and shells in shells") {
  BrickMap shells;
  put_shell(shells, {{0, 0, 0}, {191, 191, 191}}, 1, 2);
  put_shell(shells, {{63, 63, 63}, {128, 128, 128}}, 1, 3);
  put_shell(shells, {{-64, 0, 0}, {-1, 63, 63}}, 8, 4);  // of full bricks
  for (const uint64_t bytes : kRooms) {
    CHECK(check_filled(shown(shells), 1, bytes) > 190 * 190 * 180);
    BrickMap between = shells;  // what is between both is open, what is in the inner one is not
    between.set({191, 100, 100}, 0);
    CHECK(check_filled(shown(between), 1, bytes) == 64 * 64 * 64 + 48 * 48 * 48);
  }
}

TEST_CASE("fill by regions: steps before and after see what is filled, also where nothing was in a region") {
  BrickMap shell;
  put_shell(shell, {{-70, -70, -70}, {200, 200, 200}}, 3, 4);
  put_shell(shell, {{300, 0, 0}, {310, 9, 9}}, 1, 5);
  for (const uint64_t bytes : kRooms) {
    const auto pass = pass_by_regions([bytes] { return bytes; }, {});
    SceneByRegions::Pass roomy = pass;
    roomy.available_bytes = [] { return UINT64_MAX / 2; };
    Scene whole = shown(shell);
    SceneByRegions changing = begin(whole, source_of(whole));
    REQUIRE(changing.erode(Connectivity::faces, 1));  // opens neither but takes away the small one
    auto kept = keep_parts(std::move(changing), {Connectivity::faces, 1, 0}, roomy, {});
    REQUIRE(kept);
    auto filled = fill(std::move(*kept), 6, pass, {});
    REQUIRE(filled);
    REQUIRE(filled->erode(Connectivity::edges, 3));
    REQUIRE(filled->shrink(2));
    REQUIRE(filled->crop({{-20, -20, -20}, {40, 60, 300}}, pass));
    auto again = fill(std::move(*filled), 0, pass, {});
    REQUIRE(again);
    const auto made = made_of(*again, bytes);
    REQUIRE(made);

    whole = *keep_parts(*erode(whole, Connectivity::faces, 1), {Connectivity::faces, 1, 0});
    whole = *erode(*fill(whole, 6), Connectivity::edges, 3);
    whole = *fill(*crop(*shrink(whole, 2), {{-20, -20, -20}, {40, 60, 300}}), 0);
    REQUIRE(same_scene(*made, whole) == "");
    REQUIRE(whole.volumes.size() == 1);
    CHECK(whole.volumes[0].bricks.voxel_count() > 100'000);
  }
}

TEST_CASE("fill by regions: large cavities keep to the room, for their bricks count") {
  BrickMap shell;
  put_shell(shell, {{0, 0, 0}, {255, 255, 255}}, 1, 4);
  const Scene scene = shown(shell);
  const auto pass = pass_by_regions([] { return uint64_t(1) << 20; }, {});
  const auto filled = fill(begin(scene, source_of(scene)), 1, pass, {});
  REQUIRE(filled);
  const Box3 cavity{{8, 8, 8}, {23, 23, 23}};
  const auto held = filled->held(0, cavity);
  REQUIRE(held);
  CHECK(*held >= 8 * 512 / 8);  // 8 chunks without a voxel
}

TEST_CASE("fill by regions: what is spread too far is refused in the words of whole scenes, and work stops") {
  const auto pass = pass_by_regions([] { return uint64_t(1) << 30; }, {});
  Scene far = shown(clouds(1));
  far.volumes.push_back({"far", {}, {}});
  for (const int32_t x : {-2'000'000'000, 2'000'000'000}) far.volumes[1].bricks.set({x, x, x}, 1);
  const auto refused = fill(begin(far, source_of(far)), 1, pass, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == fill(far, 1).error().message);
  far.instances[0].volume = 5;
  CHECK(fill(begin(far, source_of(far)), 1, pass, {}).error().message == fill(far, 1).error().message);

  const std::atomic<bool> cancel{true};
  const Progress stop{.report = {}, .cancel = &cancel};
  const Scene good = shown(clouds(2));
  const auto stopped = fill(begin(good, source_of(good)), 1, pass, stop);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
  const Scene none;
  CHECK(fill(begin(none, source_of(none)), 0, pass, {}));
}

}  // namespace fill_by_regions_test
