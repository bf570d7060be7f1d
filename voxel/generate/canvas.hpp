// SPDX-License-Identifier: Apache-2.0
// canvas.hpp - the generators' tools: slabs of voxels painted in parallel, integer noise, a palette that fills itself.
// Results do not depend on threads or on a machine's mathematics library: only integers, and + - * / of doubles.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::generate_detail {

// Eight layers of voxels across the whole scene, x in [x0, x0 + 8). Painting outside of it, or of the scene, does
// nothing: so a painter may draw a whole tree and get the part in this slab. Coordinates: 0 .. size - 1.
class Slab {
 public:
  Slab(Int3 size, int32_t x0)
      : size_(size),
        x0_(x0),
        width_(uint32_t(std::min(8, size.x - x0))),
        cells_(size_t(8) * size_t(size.y) * size_t(size.z)) {}
  int32_t x0() const { return x0_; }
  // Whether some x of [low, high] is in this slab.
  bool meets(int32_t low, int32_t high) const { return low < x0_ + 8 && high >= x0_; }
  void set(int32_t x, int32_t y, int32_t z, uint8_t material) {
    if (uint32_t(x - x0_) < width_ && uint32_t(y) < uint32_t(size_.y) && uint32_t(z) < uint32_t(size_.z))
      cells_[at(x, y, z)] = material;
  }
  void set_if_empty(int32_t x, int32_t y, int32_t z, uint8_t material) {
    if (get(x, y, z) == 0) set(x, y, z, material);
  }
  uint8_t get(int32_t x, int32_t y, int32_t z) const {
    return uint32_t(x - x0_) < width_ && uint32_t(y) < uint32_t(size_.y) && uint32_t(z) < uint32_t(size_.z)
               ? cells_[at(x, y, z)]
               : uint8_t(0);
  }
  // Fills `w` x `h` x `d` voxels, beginning at (x, y, z).
  void box(int32_t x, int32_t y, int32_t z, int32_t w, int32_t h, int32_t d, uint8_t material);
  Brick brick(int32_t by, int32_t bz) const;

 private:
  size_t at(int32_t x, int32_t y, int32_t z) const {
    return (size_t(y) * size_t(size_.z) + size_t(z)) * 8 + size_t(x - x0_);
  }
  Int3 size_;
  int32_t x0_;
  uint32_t width_;  // 8, or less at the far side
  std::vector<uint8_t> cells_;
};

// A scene of one volume: `size` voxels painted slab by slab, then moved by whole bricks so that x and z are nearly
// centred on 0. `paint` is called from several threads at once, each time with a different slab. Errors: cancelled,
// out_of_memory.
Result<Scene> paint_scene(const char* name, Int3 size, uint32_t seed, const Palette& palette,
                          const std::function<void(Slab&)>& paint, const Progress& progress);
Camera camera_at(const std::string& name, std::array<double, 3> position, std::array<double, 3> target,
                 double fov_degrees);

inline uint64_t mixed(uint64_t h) {  // the splitmix64 finaliser
  h += 0x9e3779b97f4a7c15ull;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
  return h ^ (h >> 31);
}
inline uint64_t hashed(uint64_t seed, int64_t a, int64_t b = 0, int64_t c = 0) {
  return mixed(mixed(mixed(seed ^ uint64_t(a)) ^ uint64_t(b)) ^ uint64_t(c));
}
// 0 .. n - 1.
inline int32_t pick(uint64_t hash, int32_t n) { return int32_t((hash >> 32) * uint64_t(n) >> 32); }

// Gradient noise in fixed point (16 bits of fraction) in about [-1, 1]; x and z in lattice cells. Smooth, 0 on lattice
// points. After K. Perlin, "Improving Noise", 2002; ours takes eight gradients from a hash, in integers.
int32_t noise(int64_t x_16, int64_t z_16, uint64_t seed);
// The sum of `octaves` noises, each with twice the frequency and half the amplitude of the last.
int32_t fractal_noise(int64_t x_16, int64_t z_16, int octaves, uint64_t seed);
// The same sum of 1 - |noise|: ridges. In [0, 1].
int32_t ridged_noise(int64_t x_16, int64_t z_16, int octaves, uint64_t seed);
// 3 t^2 - 2 t^3 of (value - low) / (high - low), clamped to [0, 1], 16 bits of fraction.
int64_t smooth_step(int64_t low, int64_t high, int64_t value);

// Adds materials in the order in which a generator names them. More than 255 are a bug of the generator.
class Paints {
 public:
  uint8_t add(const char* name, uint32_t rgb, float roughness = 0.9f, float metalness = 0, float emission = 0);
  uint8_t add_glass(const char* name, uint32_t rgb, float transparency, float ior);
  // `count` shades from one colour to another. Returns the first one's index; the others follow.
  uint8_t ramp(const char* name, uint32_t from_rgb, uint32_t to_rgb, int32_t count, float roughness = 0.9f,
               float metalness = 0, float emission = 0);
  const Palette& palette() const { return palette_; }

 private:
  Palette palette_;
  uint32_t used_ = 0;
};

Result<Scene> terrain(int32_t size, uint32_t seed, const Progress& progress);
Result<Scene> city(int32_t size, uint32_t seed, const Progress& progress);
Result<Scene> menger(int32_t size, uint32_t seed, const Progress& progress);
Result<Scene> spheres(int32_t size, uint32_t seed, const Progress& progress);

}  // namespace quarry::generate_detail
