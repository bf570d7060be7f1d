// SPDX-License-Identifier: Apache-2.0
// shapes.cpp - two scenes of pure geometry: the Menger sponge and spheres of many materials.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "voxel/generate/canvas.hpp"

namespace quarry::generate_detail {

Result<Scene> menger(int32_t size, uint32_t seed, const Progress& progress) {
  // A cell is a hole if at some level two of its three ternary digits are 1. Bit k of middle[c]: digit k of c is 1.
  std::vector<uint32_t> middle(size_t(size), 0);
  for (int32_t c = 0; c < size; ++c) {
    int32_t rest = c;
    for (uint32_t level = 0; rest > 0; ++level, rest /= 3)
      if (rest % 3 == 1) middle[size_t(c)] |= 1u << level;
  }
  // Sizes that are no power of three show the corner of the next larger sponge: digits beyond the size's would be 0,
  // which is solid.
  Paints paints;
  constexpr int32_t kShades = 64, kCore = 48;
  const uint8_t cool = paints.ramp("outside", 0x264F78, 0x4FB3A5, kShades / 2, 0.5f, 0.1f);
  paints.ramp("inside", 0x4FB3A5, 0xFFD166, kShades / 2, 0.45f, 0.2f);
  const uint8_t hot = paints.ramp("core", 0xF4A261, 0xFF3D1F, kCore, 0.6f, 0, 3.0f);
  const int32_t half = size / 2;
  auto scene = paint_scene(
      "menger", {size, size, size}, seed, paints.palette(),
      [&](Slab& slab) {
        for (int32_t y = 0; y < size; ++y)
          for (int32_t z = 0; z < size; ++z) {
            const uint32_t my = middle[size_t(y)], mz = middle[size_t(z)];
            if (my & mz) continue;
            const int32_t far_yz = std::max(std::abs(y - half), std::abs(z - half));
            for (int32_t x = slab.x0(); x < std::min(size, slab.x0() + 8); ++x) {
              if (middle[size_t(x)] & (my | mz)) continue;
              // 0 at the centre, 1000 in the corners: between the distance in a cube and in a ball, so that faces are
              // shaded too.
              const int64_t cube = std::max(far_yz, std::abs(x - half)), dx = x - half, dy = y - half, dz = z - half;
              const auto ball = int64_t(std::sqrt(double(dx * dx + dy * dy + dz * dz) / 3));
              const auto far = int32_t((cube + ball) * 500 / std::max(1, half));
              const int32_t grain = int32_t(hashed(seed, x / 3, y / 3, z / 3) % 3);
              uint8_t paint;
              if (far < 420) paint = uint8_t(hot + std::min(kCore - 1, far * kCore / 420));
              else paint = uint8_t(cool + std::clamp((1000 - far) * kShades / 580 + grain - 1, 0, kShades - 1));
              slab.set(x, y, z, paint);
            }
          }
      },
      progress);
  QRY_TRY(scene);
  const double s = size;
  scene->cameras.push_back(camera_at("corner", {s * 1.15, s * 1.35, s * 1.6}, {0, s * 0.44, 0}, 42));
  return scene;
}

Result<Scene> spheres(int32_t size, uint32_t seed, const Progress& progress) {
  Paints paints;
  const uint8_t light = paints.add("light tile", 0xC9C4BA, 0.35f), dark = paints.add("dark tile", 0x3B4048, 0.35f);
  struct Ball {
    int32_t x, z, r;
    uint8_t paint;
  };
  // In hundredths of the size.
  const Ball balls[] = {
      {50, 42, 22, paints.add("red lacquer", 0xB3201F, 0.15f)},
      {22, 60, 12, paints.add("gold", 0xFFC75F, 0.25f, 1.0f)},
      {78, 62, 13, paints.add("blue steel", 0x7FA6C9, 0.2f, 1.0f)},
      {44, 80, 8, paints.add("lamp", 0xFFD9A0, 0.5f, 0, 8.0f)},
      {84, 86, 6, paints.add("jade", 0x3FA66B, 0.3f)},
      {16, 28, 10, paints.add("chalk", 0xEDEAE2, 1.0f)},
      {84, 26, 9, paints.add("neon", 0x38D6FF, 0.5f, 0, 5.0f)},
      {28, 86, 5, paints.add("violet", 0x7A4FC0, 0.4f)},
      {64, 84, 8, paints.add_glass("glass", 0xF9FDFB, 0.98f, 1.5f)},
  };
  const int32_t tile = std::max(4, size / 8), floor = std::max(2, size / 24), tall = (size * 6 / 10 + 7) / 8 * 8;
  auto scene = paint_scene(
      "spheres", {size, tall, size}, seed, paints.palette(),
      [&](Slab& slab) {
        for (int32_t x = slab.x0(); x < std::min(size, slab.x0() + 8); ++x)
          for (int32_t z = 0; z < size; ++z) {
            for (int32_t y = 0; y < floor; ++y) slab.set(x, y, z, (x / tile + z / tile) % 2 ? light : dark);
            for (const Ball& b : balls) {
              // Twice the lengths, so that centres lie on voxel corners.
              const int64_t r = int64_t(b.r) * size * 2 / 100, dx = 2 * x + 1 - int64_t(b.x) * size * 2 / 100,
                            dz = 2 * z + 1 - int64_t(b.z) * size * 2 / 100;
              for (int32_t y = floor; y < tall; ++y) {
                const int64_t dy = 2 * y + 1 - (2 * floor + r);
                if (dx * dx + dy * dy + dz * dz <= r * r) slab.set(x, y, z, b.paint);
              }
            }
          }
      },
      progress);
  QRY_TRY(scene);
  const double s = size;
  scene->cameras.push_back(camera_at("front", {s * 0.55, s * 0.75, s * 1.25}, {0, s * 0.14, 0}, 36));
  return scene;
}

}  // namespace quarry::generate_detail
