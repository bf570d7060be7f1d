// SPDX-License-Identifier: Apache-2.0
// canvas.cpp - slabs painted in parallel, gradient noise in fixed point, ramps of colours.
#include "voxel/generate/canvas.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdlib>
#include <mutex>
#include <new>

#include "base/parallel.hpp"

namespace quarry::generate_detail {

void Slab::box(int32_t x, int32_t y, int32_t z, int32_t w, int32_t h, int32_t d, uint8_t material) {
  const int32_t x1 = std::max(x, x0_), x2 = std::min(x + w, x0_ + int32_t(width_));
  const int32_t y1 = std::max(y, 0), y2 = std::min(y + h, size_.y), z1 = std::max(z, 0), z2 = std::min(z + d, size_.z);
  for (int32_t j = y1; j < y2; ++j)
    for (int32_t k = z1; k < z2; ++k)
      for (int32_t i = x1; i < x2; ++i) cells_[at(i, j, k)] = material;
}

Brick Slab::brick(int32_t by, int32_t bz) const {
  Brick out;
  for (int32_t y = 0; y < 8; ++y)
    for (int32_t z = 0; z < 8; ++z) {
      if (by * 8 + y >= size_.y || bz * 8 + z >= size_.z) continue;
      const uint8_t* row = &cells_[at(x0_, by * 8 + y, bz * 8 + z)];
      for (int32_t x = 0; x < 8; ++x)
        if (row[x]) out.set(voxel_index({x, y, z}), row[x]);
    }
  return out;
}

Result<Scene> paint_scene(const char* name, Int3 size, uint32_t seed, const Palette& palette,
                          const std::function<void(Slab&)>& paint, const Progress& progress) {
  const Int3 bricks{(size.x + 7) / 8, (size.y + 7) / 8, (size.z + 7) / 8}, moved{-(size.x / 16), 0, -(size.z / 16)};
  std::vector<std::vector<std::pair<Int3, Brick>>> done(size_t(bricks.x));
  std::atomic<bool> out_of_memory{false};
  std::atomic<int32_t> finished{0};
  std::mutex reporting;
  parallel_for(done.size(), 1, [&](size_t begin, size_t) {
    if (progress.cancelled() || out_of_memory.load(std::memory_order_relaxed)) return;
    try {
      Slab slab(size, int32_t(begin) * 8);
      paint(slab);
      for (int32_t y = 0; y < bricks.y; ++y)
        for (int32_t z = 0; z < bricks.z; ++z) {
          Brick brick = slab.brick(y, z);
          if (!brick.empty()) done[begin].emplace_back(Int3{int32_t(begin), y, z} + moved, brick);
        }
    } catch (const std::bad_alloc&) {
      out_of_memory.store(true, std::memory_order_relaxed);
    }
    const int32_t now = finished.fetch_add(1, std::memory_order_relaxed) + 1;
    if (progress.report)
      if (const std::unique_lock lock(reporting, std::try_to_lock); lock)
        progress.say("generate", double(now) / bricks.x);
  });
  if (progress.cancelled()) return fail(ErrorCode::cancelled, "cancelled while generating");
  if (out_of_memory)
    return fail(ErrorCode::out_of_memory, "not enough memory to generate a scene of this size; use a smaller one");
  Scene scene;
  scene.palette = palette;
  Volume& volume = scene.volumes.emplace_back();
  volume.name = name;
  for (auto& part : done) {
    for (const auto& [where, brick] : part) volume.bricks.put(where, brick);
    std::vector<std::pair<Int3, Brick>>().swap(part);
  }
  Instance instance;
  instance.name = name;
  scene.instances.push_back(instance);
  scene.metadata["generator"] = name;
  scene.metadata["generator_size"] = std::to_string(size.x);
  scene.metadata["generator_seed"] = std::to_string(seed);
  return scene;
}

Camera camera_at(const std::string& name, std::array<double, 3> position, std::array<double, 3> target,
                 double fov_degrees) {
  Camera camera;
  camera.name = name;
  std::copy(position.begin(), position.end(), camera.position);
  std::copy(target.begin(), target.end(), camera.target);
  camera.vertical_fov_degrees = fov_degrees;
  return camera;
}

int32_t noise(int64_t x, int64_t z, uint64_t seed) {
  const int64_t cx = x >> 16, cz = z >> 16, fx = x & 65535, fz = z & 65535;
  // Dot product of a corner's gradient with the offset from it. Eight directions, the diagonal ones a little shorter
  // than the square's.
  const auto corner = [&](int64_t dx, int64_t dz) -> int64_t {
    const int64_t px = fx - (dx << 16), pz = fz - (dz << 16);
    switch (hashed(seed, cx + dx, cz + dz) >> 61) {
      case 0: return px;
      case 1: return -px;
      case 2: return pz;
      case 3: return -pz;
      case 4: return (px + pz) * 3 / 4;
      case 5: return (px - pz) * 3 / 4;
      case 6: return (pz - px) * 3 / 4;
      default: return (-px - pz) * 3 / 4;
    }
  };
  // 6 t^5 - 15 t^4 + 10 t^3.
  const auto fade = [](int64_t t) {
    const int64_t cube = (t * t >> 16) * t >> 16;
    return cube * (((t * 6 - (15 << 16)) * t >> 16) + (10 << 16)) >> 16;
  };
  const int64_t u = fade(fx), v = fade(fz);
  const auto mix = [](int64_t a, int64_t b, int64_t t) { return a + ((b - a) * t >> 16); };
  return int32_t(mix(mix(corner(0, 0), corner(1, 0), u), mix(corner(0, 1), corner(1, 1), u), v) * 3 / 2);
}

// Octaves are shifted against each other: noise is 0 on lattice points, and where those of all octaves coincide there
// would be a spike.
constexpr int64_t kApart = 0x5A3D7;

int32_t fractal_noise(int64_t x, int64_t z, int octaves, uint64_t seed) {
  int64_t sum = 0;
  for (int o = 0; o < octaves; ++o)
    sum += noise((x << o) + kApart * o, (z << o) + kApart * 2 * o, seed + uint64_t(o) * 1013) >> o;
  return int32_t(sum);
}

int32_t ridged_noise(int64_t x, int64_t z, int octaves, uint64_t seed) {
  int64_t sum = 0, weight = 65536, total = 0;
  for (int o = 0; o < octaves; ++o) {
    const int64_t ridge = std::max<int64_t>(
        0,
        65536 - std::abs(int64_t(noise((x << o) + kApart * o, (z << o) + kApart * 2 * o, seed + uint64_t(o) * 7919)) *
                         3 / 2));
    sum += (ridge * weight >> 16) >> o;
    total += 65536 >> o;
    // Fine ridges only on coarse ones.
    weight = std::clamp<int64_t>((ridge * ridge >> 16) * 3 / 2, 8192, 65536);
  }
  return int32_t(sum * 65536 / total);
}

int64_t smooth_step(int64_t low, int64_t high, int64_t value) {
  const int64_t t = std::clamp<int64_t>((value - low) * 65536 / (high - low), 0, 65536);
  return (t * t >> 16) * (3 * 65536 - 2 * t) >> 16;
}

uint8_t Paints::add(const char* name, uint32_t rgb, float roughness, float metalness, float emission) {
  assert(used_ < 255);
  Material& m = palette_.materials[++used_];
  m.r = uint8_t(rgb >> 16);
  m.g = uint8_t(rgb >> 8);
  m.b = uint8_t(rgb);
  m.roughness = roughness;
  m.metalness = metalness;
  m.emission = emission;
  palette_.names[used_] = name;
  return uint8_t(used_);
}

uint8_t Paints::add_glass(const char* name, uint32_t rgb, float transparency, float ior) {
  const uint8_t paint = add(name, rgb, 0);
  Material& m = palette_.materials[paint];
  m.transparency = transparency;
  m.ior = ior;
  return paint;
}

uint8_t Paints::ramp(const char* name, uint32_t from, uint32_t to, int32_t count, float roughness, float metalness,
                     float emission) {
  uint8_t first = 0;
  for (int32_t i = 0; i < count; ++i) {
    uint32_t rgb = 0;
    for (const int shift : {16, 8, 0}) {
      const auto a = int32_t(from >> shift & 255), b = int32_t(to >> shift & 255);
      rgb |= uint32_t(a + (b - a) * i / std::max(1, count - 1)) << shift;
    }
    const uint8_t index = add(name, rgb, roughness, metalness, emission);
    if (i == 0) first = index;
  }
  return first;
}

}  // namespace quarry::generate_detail
