// SPDX-License-Identifier: Apache-2.0
// resize_test.cpp - whole-number changes of resolution, and splitting scenes, against the same operations voxel by
// voxel on plain maps.
#include <catch2/catch.hpp>
#include <set>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/scene_cells.hpp"
#include "voxel/operations/whole_scene.hpp"
#include "voxel/worlds/source_units.hpp"

namespace resize_test {

using namespace quarry;
using namespace quarry::test;

namespace {

int32_t floor_div(int32_t a, int32_t n) { return a >= 0 ? a / n : -((-a + n - 1) / n); }

}  // namespace

TEST_CASE("enlarge: every voxel of every instance becomes a cube, whatever its rotation and place") {
  for (uint32_t seed = 0; seed < (test::kSanitized ? 1u : 3u); ++seed)
    for (const int32_t n : {1, 2, 3, 5}) {
      Scene s = random_scene(seed);
      s.volumes[0].size = {9, 0, 4};
      set_source_units(s, {0.5, {1, 2, 3}});
      const auto done = enlarge(s, uint32_t(n));
      REQUIRE(done);
      const auto before = placed(s), after = placed(*done);
      REQUIRE(after.size() == before.size());
      for (size_t i = 0; i < before.size(); ++i) {
        Cells want;
        for (const auto& [at, m] : before[i])
          for (int32_t x = 0; x < n; ++x)
            for (int32_t y = 0; y < n; ++y)
              for (int32_t z = 0; z < n; ++z) want[{at.x * n + x, at.y * n + y, at.z * n + z}] = m;
        CHECK(after[i] == want);
      }
      CHECK(done->volumes[0].size == Int3{9 * n, 0, 4 * n});
      CHECK(done->cameras[0].target[1] == 5 * n);
      CHECK(source_units(*done)->voxel_size == Approx(0.5 / n));
      CHECK(source_units(*done)->origin == std::array<double, 3>{1, 2, 3});
      // And back again.
      CHECK(placed(*shrink(*done, uint32_t(n), uint32_t(n * n * n))) == before);
    }
  CHECK_FALSE(enlarge(Scene{}, 0));
  CHECK_FALSE(enlarge(Scene{}, 65));
  Scene far;
  far.volumes.resize(1);
  far.volumes[0].bricks.set({INT32_MAX / 2, 0, 0}, 1);
  CHECK(enlarge(far, 3).error().code == ErrorCode::out_of_bounds);
  far.volumes[0].bricks.clear();
  far.instances.resize(1);
  far.instances[0].offset = {0, INT32_MIN, 0};
  CHECK(enlarge(far, 2).error().code == ErrorCode::out_of_bounds);
}

TEST_CASE("shrink: world cells in cubes, for every rotation and offset, by count and commonest material") {
  for (uint32_t seed = 0; seed < 25; ++seed)
    for (const auto& [n, threshold] : {std::pair{2, 1u}, {2, 3u}, {2, 8u}, {3, 1u}, {3, 9u}, {5, 20u}, {8, 1u}}) {
      if (seed >= 5 && n != 2) continue;
      const Scene s = random_scene(seed);
      const auto done = shrink(s, uint32_t(n), threshold);
      REQUIRE(done);
      const auto before = placed(s), after = placed(*done);
      for (size_t i = 0; i < before.size(); ++i) {
        std::map<Int3, std::map<uint8_t, uint32_t>> groups;
        for (const auto& [at, m] : before[i]) ++groups[{floor_div(at.x, n), floor_div(at.y, n), floor_div(at.z, n)}][m];
        Cells want;
        for (const auto& [at, counts] : groups) {
          uint32_t all = 0, most = 0;
          for (const auto& [m, count] : counts) {
            all += count;
            if (count > most) most = count, want[at] = m;
          }
          if (all < threshold) want.erase(at);
        }
        CHECK(after[i] == want);
      }
    }
  Scene s = random_scene(1);
  set_source_units(s, {0.25, {0, 0, 0}});
  CHECK(source_units(*shrink(s, 4))->voxel_size == 1);
  CHECK(shrink(s, 2)->cameras[0].target[2] == 3);
  CHECK_FALSE(shrink(s, 0));
  CHECK_FALSE(shrink(s, 2, 9));
  CHECK_FALSE(shrink(s, 2, 0));
}

TEST_CASE("split: the parts together are the scene, and each is of one kind") {
  for (uint32_t seed = 0; seed < 3; ++seed) {
    const Scene s = random_scene(seed);
    const auto all = placed(s);
    size_t voxels = 0;
    for (const Cells& cells : all) voxels += cells.size();

    const auto models = split(s, SplitKind::models);
    REQUIRE(models);
    REQUIRE(models->size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK((*models)[i].name == s.volumes[i].name);
      CHECK(placed((*models)[i].scene) == std::vector<Cells>{cells_of(s.volumes[i].bricks)});
    }
    const auto instances = split(s, SplitKind::instances);
    REQUIRE(instances);
    REQUIRE(instances->size() == all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      CHECK((*instances)[i].name == s.instances[i].name);
      CHECK(placed((*instances)[i].scene) == std::vector<Cells>{all[i]});
      CHECK((*instances)[i].scene.volumes.size() == 1);
    }
    const auto layers = split(s, SplitKind::layers);
    REQUIRE(layers);
    REQUIRE(layers->size() == 2);
    CHECK((*layers)[0].name == "a");
    CHECK((*layers)[0].scene.instances.size() == 5);
    CHECK(placed((*layers)[1].scene) == std::vector<Cells>{all[4]});

    const auto materials = split(s, SplitKind::materials);
    REQUIRE(materials);
    CHECK(materials->size() == 5);
    size_t found = 0;
    for (size_t p = 0; p < materials->size(); ++p)
      for (const Cells& cells : placed((*materials)[p].scene)) {
        found += cells.size();
        for (const auto& [at, m] : cells) REQUIRE(m == p + 1);
      }
    CHECK(found == voxels);
    CHECK((*materials)[2].name == "colour-3");

    const auto regions = split(s, SplitKind::regions, 9);
    REQUIRE(regions);
    size_t inside = 0;
    std::set<Int3> cubes;
    for (const ScenePart& part : *regions) {
      std::set<Int3> of_part;
      size_t here = 0;
      for (const Cells& cells : placed(part.scene)) {
        here += cells.size();
        for (const auto& [at, m] : cells) of_part.insert({floor_div(at.x, 9), floor_div(at.y, 9), floor_div(at.z, 9)});
      }
      CHECK(here > 0);
      REQUIRE(of_part.size() == 1);
      const Int3 c = *of_part.begin();
      CHECK(part.name == std::to_string(c.x) + "_" + std::to_string(c.y) + "_" + std::to_string(c.z));
      CHECK(cubes.insert(c).second);
      inside += here;
    }
    CHECK(inside == voxels);
  }
}

TEST_CASE("split: names stay distinct, empty volumes give nothing, and impossible requests are refused") {
  Scene s = random_scene(1);
  for (Volume& v : s.volumes) v.name = "house";
  s.volumes.resize(5);
  s.volumes[4].bricks.set({0, 0, 0}, 9);  // no instance places it
  s.instances.push_back({3, {}, {}, -1, false, "", ""});
  const auto models = split(s, SplitKind::models);
  REQUIRE(models);
  REQUIRE(models->size() == 3);
  CHECK((*models)[0].name == "house");
  CHECK((*models)[1].name == "house-2");
  CHECK((*models)[2].name == "house-3");
  CHECK(split(s, SplitKind::materials)->size() == 5);
  CHECK(split(Scene{}, SplitKind::layers)->empty());
  CHECK_FALSE(split(s, SplitKind::regions, 0));
  s.instances[0].volume = 99;
  CHECK_FALSE(split(s, SplitKind::models));
  Scene wide;
  wide.volumes.resize(1);
  for (int32_t i = 0; i < 300; ++i) wide.volumes[0].bricks.set({i % 17, i / 17, (i * 7) % 300}, 1);
  wide.instances.resize(300);
  for (int32_t i = 0; i < 300; ++i) wide.instances[size_t(i)].offset = {i * 400, 0, 0};
  CHECK(split(wide, SplitKind::regions, 1).error().code == ErrorCode::unsupported);
}

TEST_CASE("turn: the place in the source's units turns with the scene") {
  Scene s = random_scene(3);
  set_source_units(s, {0.5, {1, 2, 3}});
  const auto turned = turn(s, Rotation{{2, 1, 0}, {1, 1, -1}});
  REQUIRE(turned);
  CHECK(source_units(*turned)->origin == std::array<double, 3>{3, 2, -1});
  s.metadata["origin"] = "1 2";
  CHECK_FALSE(source_units(s));
  s.metadata["origin"] = "1 2 3x";
  CHECK_FALSE(source_units(s));
  s.metadata["origin"] = "1 2 3";
  s.metadata["voxel_size"] = "-1";
  CHECK_FALSE(source_units(s));
}

}  // namespace resize_test
