// SPDX-License-Identifier: Apache-2.0
// parts_by_regions_test.cpp - connected parts of scenes that are looked at region by region against those of whole
// scenes.
#include "voxel/operations/regions/parts_by_regions.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "tests/voxel/operations/scene_in_regions.hpp"

namespace parts_by_regions_test {

using namespace quarry;
using namespace quarry::test;

namespace {

constexpr Connectivity kAllKinds[] = {Connectivity::faces, Connectivity::edges, Connectivity::corners};
// Enough for all of a scene, for some chunks of it, and for less than one.
constexpr uint64_t kRooms[] = {uint64_t(1) << 32, 300'000, 20'000};

Scene shown(BrickMap bricks) {
  Scene scene;
  scene.volumes.push_back({"only", std::move(bricks), {}});
  scene.instances.emplace_back();
  scene.instances[0].name = "shown";
  return scene;
}

// Regions of that room; there is enough for what is known of parts.
SceneByRegions::Pass pass_in(uint64_t bytes) {
  SceneByRegions::Pass pass = pass_by_regions([bytes] { return bytes; }, {});
  pass.available_bytes = [] { return UINT64_MAX / 2; };
  return pass;
}

void check_kept(const Scene& scene, const PartChoice& choice, uint64_t bytes) {
  INFO("neighbours " << int(choice.neighbours) << ", most " << choice.most << ", least " << choice.least << ", room "
                     << bytes);
  const auto pass = pass_in(bytes);
  const auto expected = keep_parts(scene, choice);
  const auto kept = keep_parts(begin(scene, source_of(scene)), choice, pass, {});
  REQUIRE(expected);
  REQUIRE(kept);
  const auto made = made_of(*kept, bytes);
  REQUIRE(made);
  REQUIRE(same_scene(*made, *expected) == "");
  const Box3 tight = expected->volumes[0].bricks.bounds();
  CHECK(intersected(tight, kept->bounds()[0]) == tight);
}

size_t check_split(const Scene& scene, Connectivity neighbours, uint64_t bytes) {
  INFO("neighbours " << int(neighbours) << ", room " << bytes);
  const auto pass = pass_in(bytes);
  const auto expected = split_parts(scene, neighbours);
  const auto parts = split_parts(begin(scene, source_of(scene)), neighbours, pass, {});
  REQUIRE(expected);
  REQUIRE(parts);
  REQUIRE(parts->size() == expected->size());
  // Of many, those at both ends and some between.
  for (size_t i = 0; i < parts->size(); i += i < 10 || i + 10 > parts->size() ? 1 : 1 + parts->size() / 20) {
    CHECK((*parts)[i].name == (*expected)[i].name);
    const auto made = made_of((*parts)[i].scene, bytes);
    REQUIRE(made);
    REQUIRE(same_scene(*made, (*expected)[i].scene) == "");
  }
  return parts->size();
}

// Clouds around the corners of chunks, some of them dense enough for parts that reach far.
BrickMap clouds(uint32_t seed) {
  std::mt19937 random(seed);
  BrickMap out;
  for (int32_t corner = 0; corner < 8; ++corner) {
    const Int3 at{corner & 1 ? 64 : -64, corner & 2 ? 64 : 0, corner & 4 ? 128 : -64};
    const auto one_of = uint32_t(2 + random() % 12);
    for (int32_t x = -9; x < 9; ++x)
      for (int32_t y = -9; y < 9; ++y)
        for (int32_t z = -9; z < 9; ++z)
          if (random() % one_of == 0) out.set(at + Int3{x, y, z}, uint8_t(1 + random() % 3));
  }
  return out;
}

}  // namespace

TEST_CASE("parts by regions: those that stay are those that stay of a whole scene, whatever room there is") {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    const Scene scene = seed < 3 ? shown(clouds(seed)) : wide_scene(seed);
    for (const Connectivity by : kAllKinds)
      for (const PartChoice& choice : {PartChoice{by, 1, 0},
                                       {by, 7, 0},
                                       {by, UINT64_MAX, 2},
                                       {by, UINT64_MAX, 0},
                                       {by, 3, 1000},
                                       {by, 9, 1 << 30}})
        check_kept(scene, choice, kRooms[(seed + uint32_t(choice.most)) % 3]);
  }
}

TEST_CASE("parts by regions: a scene is split into the parts that it has in memory") {
  size_t parts = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    const Scene scene = seed % 2 ? shown(clouds(seed)) : wide_scene(seed);
    for (const Connectivity by : kAllKinds) parts += check_split(scene, by, kRooms[seed % 3]);
  }
  CHECK(parts > 1000);
  const auto none = split_parts(begin(Scene{}, source_of(Scene{})), Connectivity::faces,
                                pass_by_regions([] { return uint64_t(1) << 30; }, {}), {});
  REQUIRE(none);
  CHECK(none->empty());
}

TEST_CASE("parts by regions: a snake through many chunks is one part, and two if it is cut") {
  std::vector<Int3> bends;
  for (int32_t row = 0; row < 18; ++row) {
    const int32_t layer = row / 3, x = (layer % 2 ? 2 - row % 3 : row % 3) * 60 - 70, y = layer * 40 - 70;
    for (const int32_t z : {-150, 150}) bends.push_back({x, y, row % 2 ? -z : z});
  }
  BrickMap snake;
  for (size_t i = 0; i + 1 < bends.size(); ++i)
    for (Int3 at = bends[i]; at != bends[i + 1];) {
      snake.set(at, uint8_t(1 + i % 5));
      const Int3 left = bends[i + 1] - at;
      at = at + Int3{(left.x > 0) - (left.x < 0), (left.y > 0) - (left.y < 0), (left.z > 0) - (left.z < 0)};
    }
  snake.set({500, 500, 500}, 9);
  for (const uint64_t bytes : kRooms) {
    CHECK(check_split(shown(snake), Connectivity::faces, bytes) == 2);
    BrickMap cut = snake;
    cut.set(bends[bends.size() / 2], 0);
    CHECK(check_split(shown(cut), Connectivity::faces, bytes) == 3);
    check_kept(shown(cut), {Connectivity::faces, 1, 0}, bytes);
  }
}

TEST_CASE(
    "parts by regions: what touches by a face, an edge or a corner alone is joined across every side of a chunk") {
  for (int32_t x = -1; x <= 1; ++x)
    for (int32_t y = -1; y <= 1; ++y)
      for (int32_t z = -1; z <= 1; ++z) {
        const Int3 step{x, y, z};
        if (step == Int3{}) continue;
        // One voxel at that side of the chunk at the origin, one beside it in the next chunk; a third far away.
        const auto at = [](int32_t s) { return s < 0 ? 0 : s > 0 ? 63 : 31; };
        BrickMap two;
        two.set({at(x), at(y), at(z)}, 1);
        two.set(Int3{at(x), at(y), at(z)} + step, 2);
        two.set({200, 200, 200}, 3);
        const int axes = x * x + y * y + z * z;
        for (const Connectivity by : kAllKinds) {
          const int most = by == Connectivity::faces ? 1 : by == Connectivity::edges ? 2 : 3;
          CHECK(check_split(shown(two), by, 2000) == (axes <= most ? 2 : 3));
        }
      }
}

TEST_CASE("parts by regions: of parts of one size, the first by brick and voxel comes first, as in memory") {
  std::mt19937 random(3);
  for (int round = 0; round < 4; ++round) {
    // Pairs of voxels, most of them across the sides of bricks and chunks.
    BrickMap pairs;
    for (int i = 0; i < 150; ++i) {
      const auto near = [&] { return int32_t(random() % 5) * 64 - 128 + int32_t(random() % 4) - 2; };
      const Int3 at{near(), near(), near()};
      const Int3 beside = at + Int3{int32_t(random() % 2), int32_t(random() % 2), int32_t(random() % 2)};
      pairs.set(at, 1);
      pairs.set(beside, 2);
    }
    for (const Connectivity by : kAllKinds) {
      check_split(shown(pairs), by, kRooms[round % 3]);
      for (const uint64_t most : {1, 10, 60}) check_kept(shown(pairs), {by, most, 0}, kRooms[round % 3]);
    }
  }
}

TEST_CASE("parts by regions: steps before and after look through them, and they follow each other") {
  for (uint32_t seed = 0; seed < 9; ++seed) {
    INFO("seed " << seed);
    const Scene scene = seed % 2 ? shown(clouds(seed)) : wide_scene(seed);
    const uint64_t bytes = kRooms[seed % 3];
    const auto pass = pass_in(bytes);
    SceneByRegions changing = begin(scene, source_of(scene));
    REQUIRE(changing.dilate(Connectivity::faces, 1));
    auto large = keep_parts(std::move(changing), {Connectivity::faces, UINT64_MAX, 30}, pass, {});
    REQUIRE(large);
    REQUIRE(large->shrink(2));
    REQUIRE(large->dilate(Connectivity::edges, 3));
    auto largest = keep_parts(std::move(*large), {Connectivity::corners, 2, 0}, pass, {});
    REQUIRE(largest);
    REQUIRE(largest->quantise(2, pass));
    const Box3 box{{-40, -40, -40}, {50, 50, 50}};
    REQUIRE(largest->crop(box, pass));
    const auto made = made_of(*largest, bytes);
    REQUIRE(made);

    Scene whole = *dilate(scene, Connectivity::faces, 1);
    whole = *shrink(*keep_parts(whole, {Connectivity::faces, UINT64_MAX, 30}), 2);
    whole = *keep_parts(*dilate(whole, Connectivity::edges, 3), {Connectivity::corners, 2, 0});
    whole = *crop(*quantise(whole, 2), box);
    REQUIRE(same_scene(*made, whole) == "");
  }
}

TEST_CASE("parts by regions: chunks that keep all their voxels are not read voxel by voxel: bricks are shared") {
  BrickMap bricks;
  for (int32_t x = 0; x < 100; ++x)
    for (int32_t y = 0; y < 100; ++y) bricks.set({x, y, 7}, 4);
  bricks.set({300, 0, 0}, 1);
  const Scene scene = shown(bricks);
  const auto kept = keep_parts(begin(scene, source_of(scene)), {Connectivity::corners, 1, 0},
                               pass_by_regions([] { return uint64_t(1) << 30; }, {}), {});
  REQUIRE(kept);
  const auto made = made_of(*kept, uint64_t(1) << 30);
  REQUIRE(made);
  CHECK(made->volumes[0].bricks.share({5, 5, 0}).same_as(scene.volumes[0].bricks.share({5, 5, 0})));
  // Where nothing stays, nothing is read.
  CHECK(kept->needs(0, {{30, -8, -8}, {60, 60, 60}}).bricks.empty());
}

TEST_CASE("parts by regions: bad scenes are refused in the words of whole ones, and work stops when it is told to") {
  const auto pass = pass_by_regions([] { return uint64_t(1) << 30; }, {});
  Scene scene = shown(clouds(1));
  scene.volumes[0].bricks.set({(1 << 30) + 9, 0, 0}, 1);
  Scene behind = scene;  // an instance that does not show comes first
  behind.instances.insert(behind.instances.begin(), behind.instances[0]);
  behind.instances[0].hidden = true;
  Scene moved = scene;
  moved.instances[0].offset = {1, 0, 0};
  Scene none = scene;
  none.instances[0].volume = 7;
  for (const Scene& bad : {scene, behind, moved, none}) {
    const PartChoice all;
    const auto kept = keep_parts(begin(bad, source_of(bad)), all, pass, {});
    REQUIRE_FALSE(kept);
    CHECK(kept.error().message == keep_parts(bad, all).error().message);
    const auto split = split_parts(begin(bad, source_of(bad)), all.neighbours, pass, {});
    REQUIRE_FALSE(split);
    CHECK(split.error().message == split_parts(bad, all.neighbours).error().message);
  }
  const Scene many = shown([] {
    BrickMap lattice;
    for (int32_t i = 0; i < 82 * 82 * 10; ++i) lattice.set({i % 82 * 2, i / 82 % 82 * 2, i / (82 * 82) * 2}, 1);
    return lattice;
  }());
  const auto refused = split_parts(begin(many, source_of(many)), Connectivity::corners, pass, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == split_parts(many, Connectivity::corners).error().message);

  const auto narrow = pass_by_regions([] { return uint64_t(1) << 20; }, {});
  const auto no_room = keep_parts(begin(many, source_of(many)), PartChoice{}, narrow, {});
  REQUIRE_FALSE(no_room);
  CHECK(no_room.error().code == ErrorCode::out_of_memory);
  CHECK(no_room.error().message.find("are left of the memory") != std::string::npos);

  const std::atomic<bool> cancel{true};
  const Progress stop{.report = {}, .cancel = &cancel};
  const Scene good = shown(clouds(2));
  const auto stopped = keep_parts(begin(good, source_of(good)), PartChoice{}, pass, stop);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
}

}  // namespace parts_by_regions_test
