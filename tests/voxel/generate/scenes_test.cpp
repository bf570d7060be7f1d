// SPDX-License-Identifier: Apache-2.0
// scenes_test.cpp - the generators: the same scene everywhere, of the requested size, with the content that its name
// promises.
#include "voxel/generate/scenes.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <set>

#include "tests/test_data.hpp"

namespace scenes_test {

using namespace quarry;

namespace {

struct Threads {  // $QUARRY_THREADS for the duration of a test
  explicit Threads(const char* n) { setenv("QUARRY_THREADS", n, 1); }
  ~Threads() { unsetenv("QUARRY_THREADS"); }
};

uint64_t mixed(uint64_t h) {
  h ^= h >> 30;
  h *= 0xbf58476d1ce4e5b9ull;
  h ^= h >> 27;
  h *= 0x94d049bb133111ebull;
  return h ^ (h >> 31);
}
// A hash of every voxel's place and colour, independent of order.
uint64_t fingerprint(const Scene& scene) {
  uint64_t sum = 0;
  for (const auto& [where, brick] : scene.volumes[0].bricks.bricks())
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
      if (const uint8_t m = brick.get(i)) {
        const Material& c = scene.palette.materials[m];
        uint64_t h = mixed(uint64_t(uint32_t(where.x)) << 32 | uint32_t(where.z));
        h = mixed(h + uint32_t(where.y) * 512u + i);
        sum += mixed(h + (uint64_t(c.r) | uint64_t(c.g) << 8 | uint64_t(c.b) << 16));
      }
  return sum;
}
Scene made(const char* name, int32_t size, uint32_t seed = 1) {
  auto scene = generate(name, size, seed);
  REQUIRE(scene);
  return std::move(*scene);
}

}  // namespace

TEST_CASE("generate: each scene is the same as the day it was made", "[one-caller]") {
  struct Golden {
    const char* name;
    int32_t size;
    uint64_t voxels, sum;
  };
  for (const Golden g :
       {Golden{"terrain", 512, 19809670, 0xa13a490d70e6ec99}, Golden{"terrain", 96, 129640, 0x66b727998bf7583e},
        Golden{"city", 456, 1857363, 0x5ed5db20f4c9140d}, Golden{"menger", 243, 3200000, 0x10edb15f9a99b054},
        Golden{"spheres", 128, 232588, 0x2f9e2bbf3548ac40}}) {
    const Scene scene = made(g.name, g.size);
    INFO(g.name << " " << g.size << ": " << scene.volumes[0].bricks.voxel_count() << " voxels, 0x" << std::hex
                << fingerprint(scene));
    CHECK(scene.volumes[0].bricks.voxel_count() == g.voxels);
    CHECK(fingerprint(scene) == g.sum);
  }
}

TEST_CASE("generate: the same scene whatever the number of threads, another one with another seed") {
  for (const Generator& g : generators()) {
    const int32_t size = std::max(g.min_size, 128);
    const auto with = [&](const char* n, uint32_t seed) {
      const Threads threads(n);
      return fingerprint(made(g.name, size, seed));
    };
    CHECK(with("1", 1) == with("7", 1));
    const std::string name = g.name;
    if (name == "terrain" || name == "city") CHECK(with("4", 1) != with("4", 2));
  }
}

TEST_CASE("generate: scenes have the size asked for, lie on the ground in the middle of the world and carry a camera") {
  for (const Generator& g : generators())
    for (const int32_t size : {g.min_size, std::max(g.min_size, 130)}) {
      const Scene scene = made(g.name, size);
      INFO(g.name << " " << size);
      const Box3 box = scene.volumes[0].bricks.bounds();
      CHECK(box.min.y == 0);
      CHECK(box.max.x - box.min.x + 1 == size);
      CHECK(box.max.z - box.min.z + 1 == size);
      CHECK(std::abs(box.min.x + box.max.x) <= 16);
      CHECK(std::abs(box.min.z + box.max.z) <= 16);
      CHECK(scene.instances.size() == 1);
      REQUIRE_FALSE(scene.cameras.empty());
      CHECK(scene.metadata.at("generator") == g.name);
      // Every voxel's material has a name, so it was defined.
      std::set<uint8_t> used;
      for (const auto& [where, brick] : scene.volumes[0].bricks.bricks())
        for (const uint8_t m : brick.materials) used.insert(m);
      for (const uint8_t m : used)
        if (m) CHECK_FALSE(scene.palette.names[m].empty());
    }
}

TEST_CASE("generate: the Menger sponge of level n has 20^n voxels and its holes go through") {
  uint64_t expected = 20;
  for (const int32_t size : {3, 9, 27, 81}) {
    const Scene scene = made("menger", size);
    CHECK(scene.volumes[0].bricks.voxel_count() == expected);
    expected *= 20;
  }
  const Scene scene = made("menger", 27);
  const Box3 box = scene.volumes[0].bricks.bounds();
  for (int32_t x = box.min.x; x <= box.max.x; ++x) CHECK(scene.volumes[0].bricks.get({x, 13, box.min.z + 13}) == 0);
}

TEST_CASE("generate: the terrain has water, sand, snow, trees and cabins; the city lit windows, lamps and cars",
          "[one-caller]") {
  const auto names_in = [](const Scene& scene) {
    std::set<std::string> names;
    for (const auto& [where, brick] : scene.volumes[0].bricks.bricks())
      for (const uint8_t m : brick.materials)
        if (m) names.insert(scene.palette.names[m]);
    return names;
  };
  const auto land = names_in(made("terrain", 384)), town = names_in(made("city", 384));
  for (const char* wanted : {"water", "sand", "snow", "fir", "leaf", "rock", "lit window", "grass", "plank"}) {
    INFO(wanted);
    CHECK(land.count(wanted) == 1);
  }
  for (const char* wanted :
       {"warm window", "cool window", "street lamp", "headlight", "asphalt", "lawn", "pond", "dark glass"}) {
    INFO(wanted);
    CHECK(town.count(wanted) == 1);
  }
}

TEST_CASE("generate: a wrong name gets the nearest right one, a wrong size its limits, a cancel no scene") {
  const auto unknown = generate("terain", 0, 1);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::not_found);
  CHECK(unknown.error().message.find("Did you mean 'terrain'") != std::string::npos);
  for (const int32_t size : {-1, 1, 63, 1025}) {
    const auto result = generate("terrain", size, 1);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::invalid_argument);
    CHECK(result.error().message.find("64 to 1024") != std::string::npos);
  }
  const std::atomic<bool> cancel{true};
  Progress progress;
  progress.cancel = &cancel;
  const auto cancelled = generate("city", 0, 1, progress);
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.error().code == ErrorCode::cancelled);
}

}  // namespace scenes_test
