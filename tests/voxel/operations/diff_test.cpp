// SPDX-License-Identifier: Apache-2.0
// diff_test.cpp - comparing two scenes, against a comparison voxel by voxel on plain maps.
#include "voxel/operations/diff.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>

namespace diff_test {

using namespace quarry;

namespace {

Scene scattered(uint32_t seed, int count) {
  std::mt19937 random(seed);
  Scene s;
  s.volumes.resize(1);
  for (int i = 0; i < count; ++i)
    s.volumes[0].bricks.set({int32_t(random() % 21) - 9, int32_t(random() % 20) - 5, int32_t(random() % 22)},
                            uint8_t(1 + random() % 4));
  s.instances.resize(1);
  return s;
}

struct Counted {
  uint64_t voxels = 0;
  Box3 bounds;
  void add(Int3 v) { ++voxels, bounds = united(bounds, {v, v}); }
};

}  // namespace

TEST_CASE("scene diff: counts and boxes of each kind are those of a comparison voxel by voxel") {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    const Scene a = scattered(seed, 3000), b = scattered(seed / 2, 2500);
    Counted added, removed, recoloured, same;
    for (int32_t x = -10; x < 14; ++x)
      for (int32_t y = -8; y < 18; ++y)
        for (int32_t z = -2; z < 24; ++z) {
          const uint8_t m = a.volumes[0].bricks.get({x, y, z}), n = b.volumes[0].bricks.get({x, y, z});
          if (!m && !n) continue;
          (!m ? added : !n ? removed : m != n ? recoloured : same).add({x, y, z});
        }
    const auto diff = diff_scenes(a, b);
    REQUIRE(diff);
    CHECK(diff->added.voxels == added.voxels);
    CHECK(diff->removed.voxels == removed.voxels);
    CHECK(diff->recoloured.voxels == recoloured.voxels);
    CHECK(diff->same == same.voxels);
    CHECK(diff->added.bounds == added.bounds);
    CHECK(diff->removed.bounds == removed.bounds);
    CHECK(diff->recoloured.bounds == recoloured.bounds);
    CHECK(diff->bounds() == united(united(added.bounds, removed.bounds), recoloured.bounds));
    CHECK_FALSE(diff->equal());
    SceneDiffOptions shape;
    shape.shape_only = true;
    CHECK(diff_scenes(a, b, shape)->same == same.voxels + recoloured.voxels);
    CHECK(diff_scenes(a, a)->equal());
  }
}

TEST_CASE("scene diff: what counts is the look, not the palette's number nor how the scene is built") {
  const Scene a = scattered(3, 2000);
  Scene b;
  b.volumes.resize(1);
  b.palette = a.palette;
  for (size_t m = 1; m <= 4; ++m) b.palette.materials[200 + m] = a.palette.materials[m];
  b.palette.names[201] = "another name";
  for (const auto& [at, brick] : a.volumes[0].bricks.bricks())
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
      if (brick.materials[i])
        b.volumes[0].bricks.set(Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(i) - Int3{5, 6, 7},
                                uint8_t(200 + brick.materials[i]));
  b.instances.resize(1);
  b.instances[0].offset = {5, 6, 7};
  CHECK(diff_scenes(a, b)->equal());
  b.palette.materials[202].emission = 1;
  const auto diff = diff_scenes(a, b);
  uint64_t of_two = 0;
  for (const auto& [at, brick] : a.volumes[0].bricks.bricks())
    for (const uint8_t m : brick.materials) of_two += m == 2;
  CHECK(diff->recoloured.voxels == of_two);
  b.instances[0].hidden = true;
  CHECK(diff_scenes(a, b)->removed.voxels == a.volumes[0].bricks.voxel_count());
  SceneDiffOptions all;
  all.visible_only = false;
  CHECK(diff_scenes(a, b, all)->recoloured.voxels == of_two);
}

TEST_CASE("scene diff: empty scenes are equal; one that is far out counts; one too far is an error that says whose") {
  CHECK(diff_scenes(Scene{}, Scene{})->equal());
  CHECK(diff_scenes(Scene{}, Scene{})->bounds().empty());
  Scene far = scattered(1, 5);
  far.instances[0].offset = {1 << 20, 0, 0};
  const auto there = diff_scenes(Scene{}, far);
  REQUIRE(there);
  CHECK(there->added.voxels == far.volumes[0].bricks.voxel_count());
  far.instances[0].offset = {1 << 30, 0, 0};
  const auto refused = diff_scenes(Scene{}, far);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::out_of_bounds);
  CHECK_THAT(refused.error().message, Catch::StartsWith("the second scene: "));
}

}  // namespace diff_test
