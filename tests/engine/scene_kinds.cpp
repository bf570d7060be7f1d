// SPDX-License-Identifier: Apache-2.0
// scene_kinds.cpp - the 20 kinds of worlds: single voxels, noise, shells, sponges, hills, and the corners of the
// world's extent.
#include "tests/engine/scene_kinds.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace quarry::test {
namespace {

// splitmix64 gives the same numbers on every machine.
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

void box(const Put& put, Int3 low, Int3 high, uint8_t material) {
  for (int z = low.z; z <= high.z; ++z)
    for (int y = low.y; y <= high.y; ++y)
      for (int x = low.x; x <= high.x; ++x) put({x, y, z}, material);
}

void random_voxels(const Put& put, Int3 low, Int3 size, int count, uint64_t seed) {
  for (int i = 0; i < count; ++i) {
    const uint64_t r = next_random(seed);
    put({low.x + int(r % uint64_t(size.x)), low.y + int((r >> 20) % uint64_t(size.y)),
         low.z + int((r >> 40) % uint64_t(size.z))},
        uint8_t(1 + (r >> 56) % 255));
  }
}

void shell(const Put& put, Int3 centre, int radius) {
  for (int z = -radius; z <= radius; ++z)
    for (int y = -radius; y <= radius; ++y)
      for (int x = -radius; x <= radius; ++x) {
        const int d = x * x + y * y + z * z;
        if (d <= radius * radius && d > (radius - 2) * (radius - 2))
          put(centre + Int3{x, y, z}, uint8_t(1 + ((x >> 2) + (y >> 2) + (z >> 2) + 300) % 250));
      }
}

void menger(const Put& put, Int3 at, int edge) {
  for (int z = 0; z < edge; ++z)
    for (int y = 0; y < edge; ++y)
      for (int x = 0; x < edge; ++x) {
        bool solid = true;
        for (int n = edge, a = x, b = y, c = z; n > 1 && solid; n /= 3, a /= 3, b /= 3, c /= 3)
          solid = (a % 3 == 1) + (b % 3 == 1) + (c % 3 == 1) < 2;
        if (solid) put(at + Int3{x, y, z}, uint8_t(1 + (x + y + z) % 200));
      }
}

void hills(const Put& put, Int3 at, int size) {
  for (int z = 0; z < size; ++z)
    for (int x = 0; x < size; ++x) {
      const int h = 8 + (x * x / 37 + z * 3 + (x ^ z)) % 23;
      for (int y = std::max(0, h - 3); y <= h; ++y) put(at + Int3{x, y, z}, uint8_t(1 + (x + z) % 255));
    }
}

constexpr SceneKind kKinds[] = {
    {"empty", 500, [](const Put&) {}},
    {"one voxel", 4000,
     [](const Put& put) {
       put({0, 0, 0}, 7);
     }},
    {"one voxel, odd place", 4000,
     [](const Put& put) {
       put({-13, 5, 1022}, 200);
     }},
    {"one full brick", 4000,
     [](const Put& put) {
       box(put, {0, 0, 0}, {7, 7, 7}, 3);
     }},
    {"full bricks", 4000,
     [](const Put& put) {
       box(put, {-16, -16, -16}, {23, 15, 15}, 9);
     }},
    {"checkerboard", 4000,
     [](const Put& put) {
       for (int z = -12; z < 12; ++z)
         for (int y = -12; y < 12; ++y)
           for (int x = -12; x < 12; ++x)
             if ((x + y + z) & 1) put({x, y, z}, uint8_t(1 + (x & 7)));
     }},
    {"world's corners", 1500,
     [](const Put& put) {
       for (int c = 0; c < 8; ++c) {
         const Int3 at{c & 1 ? 8176 : -8192, c & 2 ? 4080 : -4096, c & 4 ? 8160 : -8192};
         box(put, at, at + Int3{15, 15, 15}, uint8_t(1 + c));
       }
     }},
    {"low corner", 4000,
     [](const Put& put) {
       shell(put, {-8170, -4074, -8170}, 20);
     }},
    {"high corner", 4000,
     [](const Put& put) {
       shell(put, {8160, 4064, 8160}, 20);
     }},
    {"chunk seams", 4000,
     [](const Put& put) {
       box(put, {30, 62, -2}, {33, 65, 1}, 5);
       box(put, {-34, -33, 31}, {-31, -30, 32}, 6);
     }},
    {"region seams", 4000,
     [](const Put& put) {
       box(put, {126, 127, 255}, {129, 128, 256}, 5);
       box(put, {-130, -2, -1}, {-127, 1, 0}, 6);
     }},
    {"level 3 and 4 seams", 2500,
     [](const Put& put) {
       shell(put, {512, 512, 512}, 9);
       shell(put, {2048, 0, -2048}, 12);
       shell(put, {-512, 2048, 0}, 7);
     }},
    {"two far bricks", 1500,
     [](const Put& put) {
       box(put, {-8000, -4000, -8000}, {-7990, -3990, -7990}, 1);
       box(put, {8000, 4000, 8000}, {8010, 4010, 8010}, 2);
     }},
    {"sparse dust", 4000,
     [](const Put& put) {
       random_voxels(put, {-400, -200, -400}, {800, 400, 800}, 20000, 11);
     }},
    {"dense dust", 4000,
     [](const Put& put) {
       random_voxels(put, {-40, -40, -40}, {80, 80, 80}, 60000, 12);
     }},
    {"dust over the world", 600,
     [](const Put& put) {
       random_voxels(put, {-8192, -4096, -8192}, {16384, 8192, 16376}, 30000, 13);
     }},
    {"far dust", 4000,
     [](const Put& put) {
       random_voxels(put, {7800, 3900, 7700}, {300, 150, 300}, 20000, 14);
     }},
    {"hollow sphere", 4000,
     [](const Put& put) {
       shell(put, {100, -50, 7}, 40);
     }},
    {"menger sponge", 4000,
     [](const Put& put) {
       menger(put, {-40, -40, -40}, 81);
     }},
    {"hills", 4000,
     [](const Put& put) {
       hills(put, {-100, 0, -100}, 256);
     }},
};
static_assert(std::size(kKinds) == 20);

}  // namespace

std::span<const SceneKind> scene_kinds() { return kKinds; }

const SceneKind& scene_kind(std::string_view name) {
  for (const SceneKind& kind : kKinds)
    if (name == kind.name) return kind;
  FAIL("no scene " << name);
  return kKinds[0];
}

std::vector<World::BrickWrite> writes_of(const World& world, const std::function<void(const Put&)>& build) {
  std::map<Int3, Brick> bricks;
  build([&](Int3 voxel, uint8_t material) {
    const Int3 at = brick_of(voxel);
    auto [it, fresh] = bricks.try_emplace(at);
    if (fresh) world.find_brick(at, &it->second);
    it->second.set(voxel_index(voxel), material);
  });
  std::vector<World::BrickWrite> writes;
  writes.reserve(bricks.size());
  for (const auto& [at, brick] : bricks) writes.push_back({at, brick});
  return writes;
}

}  // namespace quarry::test
