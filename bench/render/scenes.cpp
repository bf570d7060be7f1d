// SPDX-License-Identifier: Apache-2.0
// scenes.cpp - value noise on an integer hash, the three scenes brick by brick, and their cameras.
#include "bench/render/scenes.hpp"

#include <algorithm>
#include <cmath>
#include <glm/geometric.hpp>
#include <mutex>
#include <vector>

#include "base/parallel.hpp"

namespace quarry::bench {
namespace {

constexpr RenderScene kScenes[kSceneCount] = {
    {"terrain", "terrain shell", 2048, 256, 14915546, 130479, {1162663, 1112399, 2067528}},
    {"sponge", "Menger sponge", 729, 81, 64000000, 398204, {1122899, 1146397, 1445634}},
    {"sphere", "bumpy hollow sphere", 900, 60, 20315461, 255388, {1095803, 853645, 2073600}},
};

// ---- noise: value noise over an integer hash, 16-bit fractions, smoothstep between lattice points

uint32_t mixed(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}
uint32_t hashed(uint32_t a, uint32_t b, uint32_t c) {
  return mixed((a * 0x8da6b343u) ^ (b * 0xd8163841u) ^ (c * 0xcb1ab31fu) ^ 0x9e3779b9u);
}

uint32_t smooth(uint32_t f) { return uint32_t((uint64_t(f) * f * (3ull * 65536 - 2ull * f)) >> 32); }
uint32_t between(uint32_t a, uint32_t b, uint32_t f) { return (a * (65536 - f) + b * f) >> 16; }

struct Lattice {  // a coordinate's cell, and the smoothed place in it
  uint32_t cell, in;
  Lattice(uint32_t x, uint32_t shift) : cell(x >> shift), in(smooth(((x & ((1u << shift) - 1)) << 16) >> shift)) {}
};

uint32_t noise2(uint32_t x, uint32_t z, uint32_t shift, uint32_t octave) {
  const Lattice i(x, shift), k(z, shift);
  const auto at = [&](uint32_t dx, uint32_t dz) { return hashed(i.cell + dx, k.cell + dz, octave) & 0xffffu; };
  return between(between(at(0, 0), at(1, 0), i.in), between(at(0, 1), at(1, 1), i.in), k.in);
}

uint32_t noise3(uint32_t x, uint32_t y, uint32_t z, uint32_t shift, uint32_t octave) {
  const Lattice i(x, shift), j(y, shift), k(z, shift);
  const auto at = [&](uint32_t dx, uint32_t dy, uint32_t dz) {
    return mixed(hashed(i.cell + dx, j.cell + dy, k.cell + dz) ^ (octave * 0x27d4eb2fu)) & 0xffffu;
  };
  const auto layer = [&](uint32_t dz) {
    return between(between(at(0, 0, dz), at(1, 0, dz), i.in), between(at(0, 1, dz), at(1, 1, dz), i.in), j.in);
  };
  return between(layer(0), layer(1), k.in);
}

uint8_t material_at(int x, int y, int z) {
  return uint8_t(1 + hashed(uint32_t(x >> 2), uint32_t(y >> 2), uint32_t(z >> 2)) % 255);
}

// ---- scenes

// Heights from 8 octaves, stretched about the middle so that hills use all 256 voxels.
std::vector<uint16_t> terrain_heights(int edge) {
  std::vector<uint16_t> heights(size_t(edge) * size_t(edge));
  parallel_for(size_t(edge), 8, [&](size_t begin, size_t end) {
    for (size_t z = begin; z < end; ++z)
      for (size_t x = 0; x < size_t(edge); ++x) {
        uint32_t sum = 0;
        for (uint32_t octave = 0; octave < 8; ++octave)
          sum += (noise2(uint32_t(x), uint32_t(z), 9 - octave, octave) * (32768u >> octave)) >> 16;
        const int stretched = std::clamp((int(sum) - 32640) * 2 + 32640, 0, 65279);
        heights[z * size_t(edge) + x] = uint16_t(8 + ((uint32_t(stretched) * 240) >> 16));
      }
  });
  return heights;
}

struct Maker {
  int scene, size;
  int extent[3];  // voxels, multiples of 8
  std::vector<uint16_t> heights;

  Maker(int which, int how_large) : scene(which), size(how_large) {
    const int cube = scene == 1 ? (size + 7) & ~7 : 2 * centre();
    extent[0] = extent[2] = scene == 0 ? size : cube;
    extent[1] = scene == 0 ? 256 : cube;
    if (scene == 0) heights = terrain_heights(size);
  }
  int centre() const { return size + size / 15; }
  int height(int x, int z) const { return heights[size_t(z) * size_t(size) + size_t(x)]; }

  // The shell is three voxels thick. Cliffs are closed down to the lowest neighbour.
  bool terrain(int x, int y, int z) const {
    const int top = height(x, z);
    if (y > top) return false;
    if (y > top - 3) return true;
    return y > lowest_about(x, z) - 3;
  }
  int lowest_about(int x, int z) const {
    int low = height(x, z);
    if (x > 0) low = std::min(low, height(x - 1, z));
    if (x + 1 < size) low = std::min(low, height(x + 1, z));
    if (z > 0) low = std::min(low, height(x, z - 1));
    if (z + 1 < size) low = std::min(low, height(x, z + 1));
    return low;
  }
  bool sponge(int x, int y, int z) const {
    if (x >= size || y >= size || z >= size) return false;
    for (int n = size; n > 1; n /= 3, x /= 3, y /= 3, z /= 3)
      if ((x % 3 == 1) + (y % 3 == 1) + (z % 3 == 1) >= 2) return false;
    return true;
  }
  // The shell reaches one voxel to each side of a radius. Two octaves of noise move the radius by up to 12 voxels. It
  // is computed in sixteenths of a voxel.
  bool sphere(int x, int y, int z) const {
    const int dx = x - centre(), dy = y - centre(), dz = z - centre();
    const uint32_t square = uint32_t(dx * dx + dy * dy + dz * dz), near_r = uint32_t(size - 14),
                   far_r = uint32_t(size + 14);
    if (square < near_r * near_r || square > far_r * far_r) return false;
    const auto octave = [&](uint32_t shift, uint32_t number) {
      return int(noise3(uint32_t(x), uint32_t(y), uint32_t(z), shift, number) >> 8) - 128;
    };
    const uint32_t r = uint32_t(16 * size + octave(6, 11) + (octave(4, 12) >> 1));
    return square * 256 >= (r - 16) * (r - 16) && square * 256 < (r + 16) * (r + 16);
  }
  bool solid(int x, int y, int z) const {
    return scene == 0 ? terrain(x, y, z) : scene == 1 ? sponge(x, y, z) : sphere(x, y, z);
  }

  // False only if no voxel of the brick can be solid.
  bool may_hold(Int3 brick) const {
    if (scene == 0) {
      int top = 0, low = 1 << 20;
      for (int z = brick.z * 8; z < brick.z * 8 + 8; ++z)
        for (int x = brick.x * 8; x < brick.x * 8 + 8; ++x)
          top = std::max(top, height(x, z)), low = std::min(low, lowest_about(x, z));
      return brick.y * 8 <= top && brick.y * 8 + 7 > low - 3;
    }
    if (scene == 1) return true;
    int nearest = 0, farthest = 0;
    for (int at : {brick.x, brick.y, brick.z}) {
      const int low = at * 8 - centre(), high = low + 7, close = low > 0 ? low : high < 0 ? high : 0;
      nearest += close * close;
      farthest += std::max(low * low, high * high);
    }
    return farthest >= (size - 14) * (size - 14) && nearest <= (size + 14) * (size + 14);
  }

  Brick make(Int3 at) const {
    Brick brick;
    for (int z = 0; z < 8; ++z)
      for (int y = 0; y < 8; ++y)
        for (int x = 0; x < 8; ++x) {
          const Int3 v{at.x * 8 + x, at.y * 8 + y, at.z * 8 + z};
          if (solid(v.x, v.y, v.z)) brick.set(voxel_index(v), material_at(v.x, v.y, v.z));
        }
    return brick;
  }
};

}  // namespace

const RenderScene& render_scene(int scene) { return kScenes[scene]; }
const char* camera_name(int camera) {
  constexpr const char* kNames[kCameraCount] = {"overview", "grazing", "close"};
  return kNames[camera];
}

Result<void> fill_scene(World& world, int scene, int size, const std::function<bool()>& interrupted) {
  const Maker maker(scene, size);
  // Writes rows of bricks in batches, because a whole large scene at once would be in memory twice.
  const int rows = maker.extent[2] / 8, rows_a_batch = 32;
  std::mutex collecting;
  for (int first = 0; first < rows; first += rows_a_batch) {
    if (interrupted()) return fail(ErrorCode::cancelled, "interrupted");
    std::vector<World::BrickWrite> writes;
    parallel_for(size_t(std::min(rows_a_batch, rows - first)), 1, [&](size_t begin, size_t end) {
      std::vector<World::BrickWrite> made;
      for (int z = first + int(begin); z < first + int(end); ++z)
        for (int y = 0; y < maker.extent[1] / 8; ++y)
          for (int x = 0; x < maker.extent[0] / 8; ++x) {
            const Int3 at{x, y, z};
            if (!maker.may_hold(at)) continue;
            const Brick brick = maker.make(at);
            if (!brick.empty()) made.push_back({at, brick});
          }
      const std::lock_guard lock(collecting);
      writes.insert(writes.end(), made.begin(), made.end());
    });
    std::ranges::sort(writes, {}, [](const World::BrickWrite& w) { return brick_key(w.brick); });
    QRY_TRY(world.write(writes));
  }
  return {};
}

engine::View scene_view(int scene, int camera, int size, uint32_t width, uint32_t height) {
  static constexpr double kPlaces[kSceneCount][kCameraCount][6] = {{{1024.3, 700.7, -350.2, 1024.1, 40.3, 800.9},
                                                                    {20.4, 262.6, 30.7, 1500.2, 120.3, 1600.1},
                                                                    {1010.4, 190.3, 1000.6, 1100.2, 100.1, 1090.7}},
                                                                   {{-180.3, 640.7, -260.9, 364.5, 330.1, 364.5},
                                                                    {-200.7, 790.2, 300.3, 600.1, 660.4, 380.2},
                                                                    {364.7, 365.3, 364.1, 600.3, 420.9, 500.7}},
                                                                   {{-90.3, 1560.7, -190.9, 960.1, 960.3, 960.2},
                                                                    {960.3, 1885.6, 460.2, 970.1, 1840.7, 1860.3},
                                                                    {960.3, 961.7, 958.9, 1960.1, 1160.3, 1260.7}}};
  const double scale = double(size) / kScenes[scene].full_size, scale_y = scene == 0 ? 1.0 : scale;
  const double* at = kPlaces[scene][camera];
  const glm::dvec3 eye(at[0] * scale, at[1] * scale_y, at[2] * scale);
  glm::dvec3 f = glm::dvec3(at[3] * scale, at[4] * scale_y, at[5] * scale) - eye;
  f /= glm::length(f);
  const double length = std::sqrt(f.x * f.x + f.z * f.z);
  const glm::dvec3 right(-f.z / length, 0, f.x / length), up = glm::cross(right, f);
  // A vertical angle of 60 degrees.
  const double tan_half = 0.57735026918962576451, wide = tan_half * double(width) / double(height);
  return {glm::vec3(eye), glm::vec3(f), glm::vec3(right * wide), glm::vec3(up * tan_half)};
}

}  // namespace quarry::bench
