// SPDX-License-Identifier: Apache-2.0
// by_regions_test.cpp - steps of scenes that are made region by region against the same steps of whole scenes.
#include <catch2/catch.hpp>
#include <random>

#include "base/parallel.hpp"
#include "tests/voxel/operations/scene_in_regions.hpp"
#include "voxel/operations/regions/combine_by_regions.hpp"
#include "voxel/operations/whole_scene.hpp"

namespace by_regions_test {

using namespace quarry;
using namespace quarry::test;

namespace {

// A step of both kinds.
struct Both {
  std::function<Result<Scene>(const Scene&)> whole;
  std::function<Result<void>(SceneByRegions&, const SceneByRegions::Pass&)> by_regions;
};
Both some_step(std::mt19937& random) {
  const auto number = [&](int32_t low, int32_t high) { return low + int32_t(random() % uint32_t(high - low + 1)); };
  const Connectivity neighbours[] = {Connectivity::faces, Connectivity::edges, Connectivity::corners};
  const auto n = uint32_t(number(1, 3));
  const Connectivity by = neighbours[number(0, 2)];
  switch (number(0, 7)) {
    case 0: {
      const Rotation r = some_rotation(random);
      return {[r](const Scene& s) { return turn(s, r); }, [r](SceneByRegions& s, const auto&) { return s.turn(r); }};
    }
    case 1:
      return {[](const Scene& s) { return enlarge(s, 2); },
              [](SceneByRegions& s, const auto&) { return s.enlarge(2); }};
    case 2:
      return {[n](const Scene& s) { return shrink(s, n); },
              [n](SceneByRegions& s, const auto&) { return s.shrink(n); }};
    case 3:
      return {[n](const Scene& s) { return hollow(s, n); },
              [n](SceneByRegions& s, const auto&) { return s.hollow(n); }};
    case 4:
      return {[n, by](const Scene& s) { return dilate(s, by, n); },
              [n, by](SceneByRegions& s, const auto&) { return s.dilate(by, n); }};
    case 5:
      return {[n, by](const Scene& s) { return erode(s, by, n); },
              [n, by](SceneByRegions& s, const auto&) { return s.erode(by, n); }};
    case 6: {
      const auto count = uint32_t(number(1, 6));
      return {[count](const Scene& s) { return quantise(s, count); },
              [count](SceneByRegions& s, const auto& pass) { return s.quantise(count, pass); }};
    }
    default: {
      const Int3 low{number(-90, 40), number(-90, 40), number(-90, 40)};
      const Box3 box{low, low + Int3{number(0, 150), number(0, 150), number(0, 150)}};
      return {[box](const Scene& s) { return crop(s, box); },
              [box](SceneByRegions& s, const auto& pass) { return s.crop(box, pass); }};
    }
  }
}

}  // namespace

TEST_CASE("by regions: chains of steps make the scene that they make of a whole one, whatever room there is") {
  std::mt19937 random(7);
  for (uint32_t seed = 0; seed < 18; ++seed) {
    const Scene scene = wide_scene(seed);
    // Enough for all of it, for some chunks, and for less than one.
    const uint64_t bytes = std::array<uint64_t, 3>{uint64_t(1) << 32, 200'000, 100'000}[seed % 3];
    const BrickSource source = source_of(scene);
    const auto pass = pass_by_regions([bytes] { return bytes; }, {});
    SceneByRegions changing = begin(scene, source);
    Scene whole = scene;
    const auto steps = size_t(1 + random() % 3);
    for (size_t i = 0; i < steps; ++i) {
      const Both step = some_step(random);
      auto next = step.whole(whole);
      const auto done = step.by_regions(changing, pass);
      REQUIRE(next.has_value() == done.has_value());
      if (!next) {
        CHECK(next.error().message == done.error().message);
        break;
      }
      whole = std::move(*next);
    }
    const auto made = made_of(changing, bytes);
    REQUIRE(made);
    INFO("seed " << seed);
    REQUIRE(test::same_scene(*made, whole) == "");
    for (size_t v = 0; v < whole.volumes.size(); ++v) {
      const Box3 tight = whole.volumes[v].bricks.bounds();
      CHECK(intersected(tight, changing.bounds()[v]) == tight);
    }
  }
}

TEST_CASE("by regions: a smaller palette says how far off it is, and the same of a scene in memory") {
  const Scene scene = wide_scene(5);
  for (const uint32_t count : {1u, 3u, 255u}) {
    PaletteError whole, parts;
    SceneByRegions changing = begin(scene, source_of(scene));
    REQUIRE(changing.quantise(count, pass_by_regions([] { return uint64_t(100'000); }, {}), &parts));
    const auto expected = quantise(scene, count, &whole);
    const auto made = made_of(changing, 100'000);
    REQUIRE(made);
    CHECK(test::same_scene(*made, *expected) == "");
    CHECK(parts.before == whole.before);
    CHECK(parts.after == whole.after);
    CHECK(parts.rms == whole.rms);
    CHECK(parts.worst == whole.worst);
    CHECK(whole.before > 3);
  }
}

TEST_CASE("by regions: scenes that become one are the one that they become in memory, with steps before and after") {
  std::mt19937 random(11);
  size_t voxels = 0, lossy = 0;
  for (uint32_t seed = 0; seed < 24; ++seed) {
    const uint64_t bytes = std::array<uint64_t, 3>{uint64_t(1) << 32, 300'000, 100'000}[seed % 3];
    const auto pass = pass_by_regions([bytes] { return bytes; }, {});
    std::vector<Scene> scenes{wide_scene(2 * seed), wide_scene(2 * seed + 1)};
    scenes[1].overlap = OverlapRule::last_instance_wins;
    if (seed % 2)  // so many that some must become others
      for (size_t m = 1; m < 256; ++m) scenes[1].palette.materials[m].roughness = 0.25f;
    scenes[1].layers.push_back({"hidden", true});
    scenes[1].instances[0].layer = 0;
    std::vector<SceneByRegions> changing;
    for (const Scene& scene : scenes) changing.push_back(begin(scene, source_of(scene)));
    std::vector<Scene> whole = scenes;
    const Both before = some_step(random), after = some_step(random);
    auto next = before.whole(whole[1]);
    REQUIRE(next);
    REQUIRE(before.by_regions(changing[1], pass));
    whole[1] = std::move(*next);

    PaletteError error, expected_error;
    const auto kind = BooleanKind(seed / 3 % 4);
    const bool merges = uint8_t(kind) == 3;
    const Scene* both[2] = {&whole[0], &whole[1]};
    auto expected = merges ? merge(both, &expected_error) : boolean(whole[0], whole[1], kind, &expected_error);
    auto one = merges ? merge(std::move(changing), pass, {}, &error)
                      : boolean(changing[0], changing[1], kind, pass, {}, &error);
    INFO("seed " << seed);
    REQUIRE(expected);
    REQUIRE(one);
    CHECK(error.before == expected_error.before);
    CHECK(error.after == expected_error.after);
    CHECK(error.rms == expected_error.rms);
    lossy += error.after < error.before;
    REQUIRE(after.by_regions(*one, pass).has_value());
    const auto changed = after.whole(*expected);
    REQUIRE(changed);
    const auto made = made_of(*one, bytes);
    REQUIRE(made);
    REQUIRE(test::same_scene(*made, *changed) == "");
    for (size_t v = 0; v < changed->volumes.size(); ++v) {
      const Box3 tight = changed->volumes[v].bricks.bounds();
      CHECK(intersected(tight, one->bounds()[v]) == tight);
      if (one->tight()) CHECK(one->bounds()[v] == tight);
      voxels += changed->volumes[v].bricks.voxel_count();
    }
  }
  CHECK(voxels > 100'000);
  CHECK(lossy > 0);
}

TEST_CASE("by regions: a scene is split into the parts that it has in memory, whatever room there is") {
  size_t parts = 0;
  for (const uint64_t bytes : {uint64_t(1) << 32, uint64_t(150'000)}) {
    const auto pass = pass_by_regions([bytes] { return bytes; }, {});
    for (uint32_t seed = 30; seed < 33; ++seed) {
      Scene scene = wide_scene(seed);
      scene.layers = {{"a", false}, {"", false}};
      for (size_t i = 0; i < scene.instances.size(); ++i) scene.instances[i].layer = int32_t(i % 3) - 1;
      if (seed == 32) scene = *quantise(scene, 5);
      const auto eroded = erode(scene, Connectivity::faces, 1);
      REQUIRE(eroded);
      for (const SplitKind kind :
           {SplitKind::models, SplitKind::instances, SplitKind::layers, SplitKind::materials, SplitKind::regions}) {
        if (kind == SplitKind::materials && seed != 32) continue;  // hundreds of parts show no more
        INFO("seed " << seed << ", kind " << int(kind));
        SceneByRegions whole = begin(scene, source_of(scene));
        REQUIRE(whole.erode(Connectivity::faces, 1));  // so that bounds are not tight
        const auto expected = split(*eroded, kind, 100);
        auto made = split(std::move(whole), kind, 100, pass);
        REQUIRE(expected);
        REQUIRE(made);
        REQUIRE(made->size() == expected->size());
        for (size_t i = 0; i < made->size(); ++i) {
          CHECK((*made)[i].name == (*expected)[i].name);
          const auto part = made_of((*made)[i].scene, bytes);
          REQUIRE(part);
          REQUIRE(test::same_scene(*part, (*expected)[i].scene) == "");
          ++parts;
        }
      }
    }
  }
  CHECK(parts > 50);
  CHECK(split(begin(Scene{}, source_of(Scene{})), SplitKind::regions, 0, {}).error().message ==
        split(Scene{}, SplitKind::regions, 0).error().message);
}

TEST_CASE("by regions: what reaches outside a world is united all the same, and what is too far out is not") {
  Scene scene = wide_scene(1), far = wide_scene(2);
  far.instances[1].volume = 1;
  far.instances[1].offset = {8190, 0, 0};
  const auto pass = pass_by_regions([] { return uint64_t(1) << 30; }, {});
  for (const BooleanKind kind : {BooleanKind::union_of, BooleanKind::intersection, BooleanKind::difference}) {
    far.instances[1].offset = {8190, -5000, 1 << 20};
    const auto there = boolean(begin(scene, source_of(scene)), begin(far, source_of(far)), kind, pass, {});
    REQUIRE(there);
    CHECK(test::same_scene(*made_of(*there, uint64_t(1) << 30), *boolean(scene, far, kind)) == "");
    far.instances[1].offset = {1 << 30, 0, 0};
    const auto made = boolean(begin(scene, source_of(scene)), begin(far, source_of(far)), kind, pass, {});
    const auto expected = boolean(scene, far, kind);
    REQUIRE_FALSE(expected);
    REQUIRE_FALSE(made);
    CHECK(made.error().message == expected.error().message);
  }
  far.instances[1].hidden = true;
  CHECK(boolean(begin(scene, source_of(scene)), begin(far, source_of(far)), BooleanKind::union_of, pass, {}));
}

TEST_CASE("by regions: a crop after an erosion knows what is left: instances that keep all of it share a volume") {
  Scene scene;
  scene.volumes.push_back({"a", {}, {}});
  for (int32_t i = 0; i < 1000; ++i) scene.volumes[0].bricks.set({i % 10, i / 10 % 10, i / 100}, 3);
  scene.volumes[0].bricks.set({100, 0, 0}, 4);  // goes
  scene.instances.resize(2);
  scene.instances[1].offset = {20, 0, 0};
  const BrickSource source = source_of(scene);
  SceneByRegions changing = begin(scene, source);
  const Box3 box{{-5, -5, -5}, {60, 50, 50}};
  REQUIRE(changing.erode(Connectivity::faces, 1));
  REQUIRE(changing.crop(box, pass_by_regions([] { return uint64_t(1) << 30; }, {})));
  CHECK(changing.scene().volumes.size() == 1);
  const auto made = made_of(changing, uint64_t(1) << 30);
  REQUIRE(made);
  CHECK(test::same_scene(*made, *crop(*erode(scene, Connectivity::faces, 1), box)) == "");
}

TEST_CASE("by regions: what is read at once keeps to the room, also where many bricks become one") {
  const Scene scene = wide_scene(3);
  uint64_t all = 0;
  for (const Volume& volume : scene.volumes) all = std::max(all, uint64_t(volume.bricks.bricks().size()));
  uint64_t most_read = 0;
  const BrickSource source = source_of(scene, &most_read);
  SceneByRegions coarse = begin(scene, source);
  REQUIRE(coarse.shrink(16));
  const uint64_t bytes = 40'000;  // some 40 bricks, of which a step takes a second time as many
  const auto made = made_of(coarse, bytes);
  REQUIRE(made);
  CHECK(test::same_scene(*made, *shrink(scene, 16)) == "");
  CHECK(all > 100);
  CHECK(most_read < all / 2);
}

TEST_CASE("by regions: bad steps are refused with the words of whole scenes, and work stops when it is told to") {
  const Scene scene = wide_scene(1);
  const BrickSource source = source_of(scene);
  const auto pass = pass_by_regions([] { return uint64_t(1) << 30; }, {});
  SceneByRegions one = begin(scene, source);
  CHECK(one.enlarge(0).error().message == enlarge(scene, 0).error().message);
  CHECK(one.shrink(65).error().message == shrink(scene, 65).error().message);
  CHECK(one.hollow(0).error().message == hollow(scene, 0).error().message);
  CHECK(one.turn(Rotation{{0, 0, 1}, {1, 1, 1}}).error().code == ErrorCode::invalid_argument);
  Scene far = scene;
  far.volumes[0].bricks.set({INT32_MAX - 1, 0, 0}, 1);
  SceneByRegions edge = begin(far, source_of(far));
  CHECK(edge.dilate(Connectivity::faces, 3).error().message == dilate(far, Connectivity::faces, 3).error().message);
  CHECK(edge.enlarge(2).error().message == enlarge(far, 2).error().message);
  far.instances[0].volume = 9;
  CHECK(begin(far, source_of(far)).crop({{0, 0, 0}, {9, 9, 9}}, pass).error().code == ErrorCode::invalid_argument);

  REQUIRE(one.dilate(Connectivity::corners, 2));
  std::atomic<bool> cancel{false};
  const Progress progress{.report = {}, .cancel = &cancel};
  const auto stop = [&](uint32_t, const BrickMap&) -> Result<void> {
    cancel = true;
    return {};
  };
  CHECK(make_by_regions(
            one, [] { return uint64_t(100'000); }, progress, stop)
            .error()
            .code == ErrorCode::cancelled);
  const auto refuse = [](uint32_t, const BrickMap&) -> Result<void> { return fail(ErrorCode::io, "no room"); };
  CHECK(make_by_regions(
            one, [] { return uint64_t(1) << 30; }, {}, refuse)
            .error()
            .message == "no room");
  BrickSource broken = source;
  broken.read = [](uint32_t, const Box3&, BrickMap&) -> Result<void> { return fail(ErrorCode::io, "damaged"); };
  CHECK(make_by_regions(
            begin(scene, broken), [] { return uint64_t(1) << 30; }, {}, refuse)
            .error()
            .message == "damaged");
}

TEST_CASE("by regions: volumes that are far apart, or reach far, cost what their bricks do") {
  Scene scene;
  scene.volumes.push_back({"far", {}, {}});
  for (const int32_t x : {-2'000'000'000, 0, 2'000'000'000})
    for (const int32_t y : {-1'900'000'000, 1'900'000'000}) scene.volumes[0].bricks.set({x, y, -x}, 5);
  scene.instances.emplace_back();
  const BrickSource source = source_of(scene);
  SceneByRegions changing = begin(scene, source);
  REQUIRE(changing.dilate(Connectivity::edges, 3));
  REQUIRE(changing.shrink(2));
  for (const uint64_t bytes : {uint64_t(1) << 30, uint64_t(2000)}) {
    const auto made = made_of(changing, bytes);
    REQUIRE(made);
    CHECK(test::same_scene(*made, *shrink(*dilate(scene, Connectivity::edges, 3), 2)) == "");
  }
}

}  // namespace by_regions_test
