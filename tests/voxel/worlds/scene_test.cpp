// SPDX-License-Identifier: Apache-2.0
// scene_test.cpp - scene flattening and facts against a model that places voxel after voxel into a std::map.
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "voxel/worlds/flatten.hpp"
#include "voxel/worlds/scene.hpp"

namespace scene_test {

using namespace quarry;

namespace {

using Model = std::map<Int3, uint8_t>;

Rotation random_rotation(std::mt19937& random) {
  static constexpr uint8_t kPermutations[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  Rotation r;
  const auto& p = kPermutations[random() % 6];
  for (size_t row = 0; row < 3; ++row) {
    r.axis[row] = p[row];
    r.sign[row] = int8_t((random() & 1) ? -1 : 1);
  }
  return r;
}

// Volumes of blobs and loose voxels; instances rotated, mirrored, shifted, hidden by themselves or by their layer,
// overlapping often.
Scene random_scene(uint32_t seed, size_t volumes, size_t instances) {
  std::mt19937 random(seed);
  Scene scene;
  scene.layers = {{"seen", false}, {"unseen", true}};
  for (size_t v = 0; v < volumes; ++v) {
    Volume volume;
    volume.name = "volume" + std::to_string(v);
    const Int3 corner{int(random() % 30) - 15, int(random() % 30) - 15, int(random() % 30) - 15};
    for (int z = 0; z < 9; ++z)
      for (int y = 0; y < 10; ++y)
        for (int x = 0; x < 11; ++x) volume.bricks.set(corner + Int3{x, y, z}, uint8_t(random() % 256));
    for (int n = 0; n < 100; ++n)
      volume.bricks.set({int(random() % 60) - 30, int(random() % 60) - 30, int(random() % 60) - 30}, uint8_t(random()));
    scene.volumes.push_back(std::move(volume));
  }
  for (size_t i = 0; i < instances; ++i) {
    Instance instance;
    instance.name = "instance" + std::to_string(i);
    instance.volume = uint32_t(random() % volumes);
    if (random() % 4) instance.rotation = random_rotation(random);
    instance.offset = {int(random() % 40) - 20, int(random() % 40) - 20, int(random() % 40) - 20};
    if (random() % 3 == 0) instance.offset = {instance.offset.x & ~7, instance.offset.y & ~7, instance.offset.z & ~7};
    instance.layer = int32_t(random() % 3) - 1;
    instance.hidden = random() % 5 == 0;
    scene.instances.push_back(instance);
  }
  scene.overlap = (seed & 1) ? OverlapRule::first_instance_wins : OverlapRule::last_instance_wins;
  return scene;
}

Model brute_force(const Scene& scene, bool visible_only) {
  Model cells;
  for (const Instance& instance : scene.instances) {
    const bool layer_hidden = instance.layer >= 0 && scene.layers[size_t(instance.layer)].hidden;
    if (visible_only && (instance.hidden || layer_hidden)) continue;
    for (const auto& [at, brick] : scene.volumes[instance.volume].bricks.bricks()) {
      for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
        if (!brick.get(i)) continue;
        const Int3 cell =
            instance.rotation.apply_to_cell(voxel_from_index(i) + Int3{at.x * 8, at.y * 8, at.z * 8}) + instance.offset;
        if (scene.overlap == OverlapRule::last_instance_wins) cells[cell] = brick.get(i);
        else cells.emplace(cell, brick.get(i));
      }
    }
  }
  return cells;
}

Model cells_of(const BrickMap& map) {
  Model cells;
  for (const auto& [at, brick] : map.bricks())
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
      if (brick.get(i)) cells[voxel_from_index(i) + Int3{at.x * 8, at.y * 8, at.z * 8}] = brick.get(i);
  return cells;
}

Scene one_voxel(Int3 at, Int3 offset) {
  Scene scene;
  scene.volumes.resize(1);
  scene.volumes[0].bricks.set(at, 1);
  scene.instances.push_back({});
  scene.instances[0].offset = offset;
  scene.instances[0].name = "tower";
  return scene;
}

}  // namespace

TEST_CASE("scene: flattening places every voxel of every instance, and overlaps go to whom the rule says") {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const Scene scene = random_scene(seed, 1 + seed % 4, 1 + seed);
    for (const bool visible_only : {false, true}) {
      const auto flat = flatten(scene, visible_only);
      REQUIRE(flat);
      REQUIRE((cells_of(*flat) == brute_force(scene, visible_only)));
    }
  }
}

TEST_CASE("scene: one brick flattened alone is that brick of the whole, also where there is none") {
  for (uint32_t seed = 20; seed < 24; ++seed) {
    const Scene scene = random_scene(seed, 3, 7);
    const auto flat = flatten(scene, true);
    REQUIRE(flat);
    const Box3 box = flat->brick_bounds();
    std::vector<BrickPut> places;
    for (int x = box.min.x - 1; x <= box.max.x + 1; ++x)
      for (int y = box.min.y - 1; y <= box.max.y + 1; ++y)
        for (int z = box.min.z - 1; z <= box.max.z + 1; ++z) places.push_back({{x, y, z}, {}});
    Flattener(scene, true).bricks(places);
    for (size_t i = 0; i < places.size(); ++i) {
      const auto& [at, brick] = places[i];
      const auto expected = flat->find(at);
      REQUIRE((*brick == (expected ? *expected : BrickView(Brick{}))));
      if (i % 7 == 0) REQUIRE((flatten_brick(scene, at, true) == *brick));
    }
  }
}

TEST_CASE("scene: the flattening is the same with 1, 2 and 8 threads") {
  const Scene scene = random_scene(31, 4, 40);
  const Flattener flattener(scene, false);
  const auto one = flattener.all(false, BrickPool::loose(), 1);
  REQUIRE(one);
  for (const uint32_t threads : {2u, 8u}) {
    const auto many = flattener.all(false, BrickPool::loose(), threads);
    REQUIRE(many);
    REQUIRE((*many == *one));
  }
}

TEST_CASE("scene: one volume at the origin is its own flattening and shares its bricks") {
  Scene scene = one_voxel({5, 6, 7}, {0, 0, 0});
  const auto flat = flatten(scene, true);
  REQUIRE(flat);
  REQUIRE(flat->find({0, 0, 0}) == scene.volumes[0].bricks.find({0, 0, 0}));
}

TEST_CASE(
    "scene: voxels at the world's last cells are flattened for it, one further is refused by the instance's name") {
  struct Case {
    Int3 voxel, offset;
    bool fits;
  };
  const Case cases[] = {
      {{0, 0, 0}, {-8192, -4096, -8192}, true},
      {{0, 0, 0}, {8183, 4095, 8191}, true},
      {{0, 0, 0}, {8191, 4087, 8191}, true},
      {{0, 0, 0}, {8184, 4088, 8184}, false},
      {{0, 0, 0}, {8192, 0, 0}, false},
      {{0, 0, 0}, {0, 4096, 0}, false},
      {{0, 0, 0}, {0, 0, -8193}, false},
      {{1, 0, 0}, {8191, 0, 0}, false},
      {{7, 0, 0}, {8184, 0, 0}, true},
      {{2147483647, 0, 0}, {2147483647, 0, 0}, false},
      {{-2147483647 - 1, 0, 0}, {2147483647, 0, 0}, true},
      {{-2147483647 - 1, 0, 0}, {-5, 0, 0}, false},
  };
  for (const Case& c : cases) {
    const auto flat = flatten_for_world(one_voxel(c.voxel, c.offset), true);
    INFO(c.offset.x << ' ' << c.offset.y << ' ' << c.offset.z);
    REQUIRE(flat.has_value() == c.fits);
    if (c.fits) {
      REQUIRE(flat->get({c.voxel.x + c.offset.x, c.voxel.y + c.offset.y, c.voxel.z + c.offset.z}) == 1);
    } else {
      REQUIRE(flat.error().code == ErrorCode::out_of_bounds);
      REQUIRE(flat.error().message.find("\"tower\"") != std::string::npos);
    }
  }
}

TEST_CASE(
    "scene: voxels anywhere within 2^30 of the origin are flattened, one further is refused by the instance's name") {
  struct Case {
    Int3 voxel, offset;
    bool fits;
  };
  constexpr int32_t kEnd = 1 << 30;
  const Case cases[] = {
      {{0, 0, 0}, {-kEnd, -kEnd, -kEnd}, true}, {{0, 0, 0}, {kEnd - 1, kEnd - 1, kEnd - 1}, true},
      {{3, 4, 5}, {8192, 4096, -9000}, true},   {{2147483647, -5, 0}, {-1200000000, kEnd - 3, 12345}, true},
      {{0, 0, 0}, {kEnd, 0, 0}, false},         {{7, 0, 0}, {0, -kEnd - 1, 0}, false},
      {{0, 0, 1}, {0, 0, kEnd - 1}, false},     {{2147483647, 0, 0}, {2147483647, 0, 0}, false},
  };
  for (const Case& c : cases) {
    // Beside a voxel of the world, so that no volume is alone at the origin.
    Scene scene = one_voxel(c.voxel, c.offset);
    scene.volumes.push_back({"other", {}, {}});
    scene.volumes[1].bricks.set({1, 1, 1}, 2);
    scene.instances.emplace_back().volume = 1;
    const auto flat = flatten(scene, true);
    INFO(c.offset.x << ' ' << c.offset.y << ' ' << c.offset.z);
    REQUIRE(flat.has_value() == c.fits);
    if (c.fits) {
      CHECK(flat->voxel_count() == 2);
      CHECK(flat->get({c.voxel.x + c.offset.x, c.voxel.y + c.offset.y, c.voxel.z + c.offset.z}) == 1);
      CHECK(flat->get({1, 1, 1}) == 2);
    } else {
      CHECK(flat.error().code == ErrorCode::out_of_bounds);
      CHECK(flat.error().message.find("\"tower\"") != std::string::npos);
    }
  }
}

TEST_CASE("scene: what is farther apart than a world is flattened voxel by voxel as what is near, by any threads") {
  std::mt19937 random(77);
  const auto far = [&] { return int32_t(random() % (1u << 21)) - (1 << 20); };
  for (uint32_t seed = 40; seed < 48; ++seed) {
    Scene scene = random_scene(seed, 1 + seed % 4, 30);
    // Heaps of instances that overlap, the heaps far from each other.
    Int3 heap{};
    for (size_t i = 0; i < scene.instances.size(); ++i) {
      if (i % 5 == 0) heap = {far(), far(), far()};
      scene.instances[i].offset = scene.instances[i].offset + heap;
    }
    const Flattener flattener(scene, true);
    const auto flat = flattener.all(false);
    REQUIRE(flat);
    REQUIRE((cells_of(*flat) == brute_force(scene, true)));
    for (const uint32_t threads : {1u, 8u}) REQUIRE((*flattener.all(false, BrickPool::loose(), threads) == *flat));
    REQUIRE(flattener.all(true).error().code == ErrorCode::out_of_bounds);
    // A brick by itself, too, which is how edits make them.
    size_t nth = 0;
    for (const auto& [at, brick] : flat->bricks())
      if (nth++ % 11 == 0) REQUIRE((flatten_brick(scene, at, true) == brick));
  }
}

TEST_CASE("scene: an instance of a volume that is not there is refused") {
  Scene scene = one_voxel({0, 0, 0}, {});
  scene.instances[0].volume = 1;
  const auto flat = flatten(scene, true);
  REQUIRE_FALSE(flat);
  REQUIRE(flat.error().code == ErrorCode::invalid_argument);
  REQUIRE(flatten_brick(scene, {0, 0, 0}, true).empty());
}

TEST_CASE("scene: facts count placed and distinct voxels and colours, in either axes") {
  for (uint32_t seed = 40; seed < 44; ++seed) {
    const Scene scene = random_scene(seed, 3, 9);
    const Model all = brute_force(scene, false), visible = brute_force(scene, true);
    uint64_t placed = 0;
    std::set<uint8_t> colors;
    for (const Instance& instance : scene.instances) {
      for (const auto& [cell, material] : cells_of(scene.volumes[instance.volume].bricks)) {
        ++placed;
        colors.insert(material);
      }
    }
    for (const Axes axes : {Axes::y_up, Axes::z_up}) {
      const auto mix = [](uint64_t h) {
        h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
        h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
        return h ^ (h >> 31);
      };
      uint64_t pos_sum = 0, col_sum = 0;
      Box3 bounds;
      for (const auto& [cell, material] : all) {
        const Int3 v = axes == Axes::z_up ? Int3{cell.x, -1 - cell.z, cell.y} : cell;
        const uint64_t ph = mix(mix(mix(uint32_t(v.x) + 0x9e3779b97f4a7c15ull) + uint32_t(v.y)) + uint32_t(v.z));
        const Material& m = scene.palette.materials[material];
        pos_sum += ph;
        col_sum += mix(ph + (uint64_t(m.r) | uint64_t(m.g) << 8 | uint64_t(m.b) << 16 | uint64_t(m.a) << 24));
        bounds = united(bounds, {v, v});
      }
      const auto facts = scene_facts(scene, axes);
      REQUIRE(facts);
      REQUIRE(facts->volumes == 3);
      REQUIRE(facts->instances == 9);
      REQUIRE(facts->placed == placed);
      REQUIRE(facts->flat_all == all.size());
      REQUIRE(facts->flat_visible == visible.size());
      REQUIRE(facts->colors_used == colors.size());
      REQUIRE(facts->bounds == bounds);
      REQUIRE(facts->pos_sum == pos_sum);
      REQUIRE(facts->col_sum == col_sum);
    }
  }
}

TEST_CASE("scene: facts of one voxel are the published checksum") {
  // ph(0,0,0) with three rounds of the splitmix64 finaliser, and the colour sum for opaque white, computed by a
  // separate program.
  Scene scene = one_voxel({0, 0, -1}, {});
  scene.palette.materials[1] = Material{};
  const auto facts = scene_facts(scene, Axes::z_up);
  REQUIRE(facts);
  REQUIRE(facts->bounds == Box3{{0, 0, 0}, {0, 0, 0}});
  REQUIRE(facts->pos_sum == 0x33fe8bd4f9c57863ull);
  REQUIRE(facts->col_sum == 0x7c6641539df9767ull);
}

TEST_CASE("scene: the standard palette has 255 opaque colours, white first, no two alike among the matt ones") {
  const Palette palette = Palette::standard();
  std::set<uint32_t> seen;
  for (size_t m = 1; m < 241; ++m) {
    const Material& c = palette.materials[m];
    REQUIRE(c.a == 255);
    REQUIRE(seen.insert(uint32_t(c.r) << 16 | uint32_t(c.g) << 8 | c.b).second);
  }
  REQUIRE(*seen.rbegin() == 0xFFFFFFu);
  for (size_t m = 241; m < 256; ++m) REQUIRE_FALSE(palette.names[m].empty());
}

}  // namespace scene_test
