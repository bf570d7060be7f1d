// SPDX-License-Identifier: Apache-2.0
// by_regions_test.cpp - steps of scenes that are made region by region against the same steps of whole scenes.
#include <catch2/catch.hpp>
#include <random>

#include "base/parallel.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "tests/voxel/scene_cells.hpp"
#include "voxel/operations/regions/make_by_regions.hpp"
#include "voxel/operations/whole_scene.hpp"

namespace by_regions_test {

using namespace quarry;
using namespace quarry::test;

namespace {

// Volumes over many chunks, some with large solid parts, one empty; turned, mirrored, hidden instances at odd offsets,
// several of one volume.
Scene wide_scene(uint32_t seed) {
  std::mt19937 random(seed);
  const auto number = [&](int32_t low, int32_t high) { return low + int32_t(random() % uint32_t(high - low + 1)); };
  Scene s;
  for (size_t v = 0; v < 4; ++v) {
    s.volumes.push_back({std::string(1, char('a' + v)), {}, {number(0, 200), 7, number(0, 9)}});
    if (v == 3) break;  // without a voxel
    BrickMap& bricks = s.volumes[v].bricks;
    for (int blob = 0; blob < 4; ++blob) {
      const Int3 low{number(-90, 80), number(-70, 60), number(-100, 60)};
      const Int3 size{number(1, 20), number(1, 20), number(1, 20)};
      const auto material = uint8_t(number(1, 255));
      for (int32_t x = 0; x < size.x; ++x)
        for (int32_t y = 0; y < size.y; ++y)
          for (int32_t z = 0; z < size.z; ++z) bricks.set(low + Int3{x, y, z}, material);
    }
    for (int i = 0; i < 60; ++i)
      bricks.set({number(-100, 90), number(-70, 70), number(-100, 90)}, uint8_t(number(1, 255)));
  }
  for (int i = 0; i < 6; ++i) {
    Instance n;
    n.volume = uint32_t(number(0, 3));
    n.rotation = some_rotation(random);
    n.offset = {number(-60, 60), number(-60, 60), number(-60, 60)};
    n.hidden = i == 4;
    n.name = "instance " + std::to_string(i);
    s.instances.push_back(n);
  }
  s.cameras.push_back({"camera", {1, 2, 3}, {-4, 5, 6}, 40});
  s.metadata["voxel_size"] = "0.5";
  return s;
}

BrickSource source_of(const Scene& scene, uint64_t* most_read = nullptr) {
  const auto within = [&scene](uint32_t volume, const Box3& bricks) {
    return scene.volumes.at(volume).bricks.within(bricks);
  };
  return {[within](uint32_t volume, const Box3& bricks) -> Result<uint64_t> { return within(volume, bricks).size(); },
          [within, most_read](uint32_t volume, const Box3& bricks, BrickMap& into) -> Result<void> {
            into.put(within(volume, bricks));
            if (most_read) *most_read = std::max(*most_read, uint64_t(into.bricks().size()));
            return {};
          }};
}

SceneByRegions begin(const Scene& scene) {
  Scene head = scene;
  std::vector<Box3> bounds;
  for (Volume& volume : head.volumes) {
    bounds.push_back(volume.bricks.bounds());
    volume.bricks.clear();
  }
  return {std::move(head), std::move(bounds)};
}

// A step of both kinds.
struct Both {
  std::function<Result<Scene>(const Scene&)> whole;
  std::function<Result<void>(SceneByRegions&, const SceneByRegions::Measure&)> by_regions;
};
Both some_step(std::mt19937& random) {
  const auto number = [&](int32_t low, int32_t high) { return low + int32_t(random() % uint32_t(high - low + 1)); };
  const Connectivity neighbours[] = {Connectivity::faces, Connectivity::edges, Connectivity::corners};
  const auto n = uint32_t(number(1, 3));
  const Connectivity by = neighbours[number(0, 2)];
  switch (number(0, 6)) {
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
    default: {
      const Int3 low{number(-90, 40), number(-90, 40), number(-90, 40)};
      const Box3 box{low, low + Int3{number(0, 150), number(0, 150), number(0, 150)}};
      return {[box](const Scene& s) { return crop(s, box); },
              [box](SceneByRegions& s, const auto& measure) { return s.crop(box, measure); }};
    }
  }
}

// Whole chunks, rising by x, y, z, each once, as a world file's writer wants them.
Result<Scene> made_of(const SceneByRegions& scene, const BrickSource& source, uint64_t bytes) {
  Scene out = scene.scene();
  std::vector<Int3> last(out.volumes.size(), Int3{INT32_MIN, 0, 0});
  uint32_t at = 0;
  const auto take = [&](uint32_t volume, const BrickMap& bricks) -> Result<void> {
    CHECK(volume >= at);
    at = volume;
    std::vector<Int3> chunks;
    for (const auto& [where, brick] : bricks.bricks())
      if (const Int3 chunk{where.x >> 3, where.y >> 3, where.z >> 3}; chunks.empty() || chunks.back() != chunk)
        chunks.push_back(chunk);
    std::ranges::sort(chunks);
    REQUIRE((chunks.empty() || last[volume] < chunks.front()));
    if (!chunks.empty()) last[volume] = chunks.back();
    out.volumes[volume].bricks.put(bricks.within(bricks.brick_bounds()));
    return {};
  };
  auto done = make_by_regions(
      scene, source, [bytes] { return bytes; }, {}, take);
  if (!done) return tl::unexpected(done.error());
  return out;
}

}  // namespace

TEST_CASE("by regions: chains of steps make the scene that they make of a whole one, whatever room there is") {
  std::mt19937 random(7);
  for (uint32_t seed = 0; seed < 18; ++seed) {
    const Scene scene = wide_scene(seed);
    // Enough for all of it, for some chunks, and for less than one.
    const uint64_t bytes = std::array<uint64_t, 3>{uint64_t(1) << 32, 200'000, 100'000}[seed % 3];
    const BrickSource source = source_of(scene);
    const auto measure = measure_by_regions(source, [bytes] { return bytes; }, {});
    SceneByRegions changing = begin(scene);
    Scene whole = scene;
    const auto steps = size_t(1 + random() % 3);
    for (size_t i = 0; i < steps; ++i) {
      const Both step = some_step(random);
      auto next = step.whole(whole);
      const auto done = step.by_regions(changing, measure);
      REQUIRE(next.has_value() == done.has_value());
      if (!next) {
        CHECK(next.error().message == done.error().message);
        break;
      }
      whole = std::move(*next);
    }
    const auto made = made_of(changing, source, bytes);
    REQUIRE(made);
    INFO("seed " << seed);
    REQUIRE(test::same_scene(*made, whole) == "");
    for (size_t v = 0; v < whole.volumes.size(); ++v) {
      const Box3 tight = whole.volumes[v].bricks.bounds();
      CHECK(intersected(tight, changing.bounds()[v]) == tight);
    }
  }
}

TEST_CASE("by regions: a crop after an erosion knows what is left: instances that keep all of it share a volume") {
  Scene scene;
  scene.volumes.push_back({"a", {}, {}});
  for (int32_t i = 0; i < 1000; ++i) scene.volumes[0].bricks.set({i % 10, i / 10 % 10, i / 100}, 3);
  scene.volumes[0].bricks.set({100, 0, 0}, 4);  // goes
  scene.instances.resize(2);
  scene.instances[1].offset = {20, 0, 0};
  const BrickSource source = source_of(scene);
  SceneByRegions changing = begin(scene);
  const Box3 box{{-5, -5, -5}, {60, 50, 50}};
  REQUIRE(changing.erode(Connectivity::faces, 1));
  REQUIRE(changing.crop(box, measure_by_regions(source, [] { return uint64_t(1) << 30; }, {})));
  CHECK(changing.scene().volumes.size() == 1);
  const auto made = made_of(changing, source, uint64_t(1) << 30);
  REQUIRE(made);
  CHECK(test::same_scene(*made, *crop(*erode(scene, Connectivity::faces, 1), box)) == "");
}

TEST_CASE("by regions: what is read at once keeps to the room, also where many bricks become one") {
  const Scene scene = wide_scene(3);
  uint64_t all = 0;
  for (const Volume& volume : scene.volumes) all = std::max(all, uint64_t(volume.bricks.bricks().size()));
  uint64_t most_read = 0;
  const BrickSource source = source_of(scene, &most_read);
  SceneByRegions coarse = begin(scene);
  REQUIRE(coarse.shrink(16));
  const uint64_t bytes = 40'000;  // some 40 bricks, of which a step takes a second time as many
  const auto made = made_of(coarse, source, bytes);
  REQUIRE(made);
  CHECK(test::same_scene(*made, *shrink(scene, 16)) == "");
  CHECK(all > 100);
  CHECK(most_read < all / 2);
}

TEST_CASE("by regions: bad steps are refused with the words of whole scenes, and work stops when it is told to") {
  const Scene scene = wide_scene(1);
  const BrickSource source = source_of(scene);
  const auto measure = measure_by_regions(source, [] { return uint64_t(1) << 30; }, {});
  SceneByRegions one = begin(scene);
  CHECK(one.enlarge(0).error().message == enlarge(scene, 0).error().message);
  CHECK(one.shrink(65).error().message == shrink(scene, 65).error().message);
  CHECK(one.hollow(0).error().message == hollow(scene, 0).error().message);
  CHECK(one.turn(Rotation{{0, 0, 1}, {1, 1, 1}}).error().code == ErrorCode::invalid_argument);
  Scene far = scene;
  far.volumes[0].bricks.set({INT32_MAX - 1, 0, 0}, 1);
  SceneByRegions edge = begin(far);
  CHECK(edge.dilate(Connectivity::faces, 3).error().message == dilate(far, Connectivity::faces, 3).error().message);
  CHECK(edge.enlarge(2).error().message == enlarge(far, 2).error().message);
  far.instances[0].volume = 9;
  CHECK(begin(far).crop({{0, 0, 0}, {9, 9, 9}}, measure).error().code == ErrorCode::invalid_argument);

  REQUIRE(one.dilate(Connectivity::corners, 2));
  std::atomic<bool> cancel{false};
  const Progress progress{.report = {}, .cancel = &cancel};
  const auto stop = [&](uint32_t, const BrickMap&) -> Result<void> {
    cancel = true;
    return {};
  };
  CHECK(make_by_regions(
            one, source, [] { return uint64_t(100'000); }, progress, stop)
            .error()
            .code == ErrorCode::cancelled);
  const auto refuse = [](uint32_t, const BrickMap&) -> Result<void> { return fail(ErrorCode::io, "no room"); };
  CHECK(make_by_regions(
            one, source, [] { return uint64_t(1) << 30; }, {}, refuse)
            .error()
            .message == "no room");
  BrickSource broken = source;
  broken.read = [](uint32_t, const Box3&, BrickMap&) -> Result<void> { return fail(ErrorCode::io, "damaged"); };
  CHECK(make_by_regions(
            one, broken, [] { return uint64_t(1) << 30; }, {}, refuse)
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
  SceneByRegions changing = begin(scene);
  REQUIRE(changing.dilate(Connectivity::edges, 3));
  REQUIRE(changing.shrink(2));
  for (const uint64_t bytes : {uint64_t(1) << 30, uint64_t(2000)}) {
    const auto made = made_of(changing, source, bytes);
    REQUIRE(made);
    CHECK(test::same_scene(*made, *shrink(*dilate(scene, Connectivity::edges, 3), 2)) == "");
  }
}

}  // namespace by_regions_test
