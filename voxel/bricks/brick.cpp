// SPDX-License-Identifier: Apache-2.0
// brick.cpp - bricks full of one material, and the tight box of a mask's voxels by the 64-bit words of its octants.
#include "voxel/bricks/brick.hpp"

#include <algorithm>
#include <cstring>

namespace quarry {

uint8_t full_material(const BrickView& brick) {
  if (!all_set(brick.mask)) return 0;
  const uint8_t* const m = brick.materials.data();
  return std::memcmp(m, m + 1, kVoxelsPerBrick - 1) == 0 ? m[0] : uint8_t(0);
}

const Brick& full_brick(uint8_t material) {
  static const auto all = [] {
    std::array<Brick, 256> bricks{};
    for (size_t m = 1; m < bricks.size(); ++m) {
      bricks[m].mask.fill(~uint64_t(0));
      bricks[m].materials.fill(uint8_t(m));
    }
    return bricks;
  }();
  return all[material];
}

Box3 voxel_bounds(Int3 brick, const BrickMask& mask) {
  uint32_t used[3] = {0, 0, 0};  // bit c: some voxel has coordinate c
  for (uint32_t octant = 0; octant < 8; ++octant) {
    const uint64_t word = mask[octant];
    if (!word) continue;
    const uint64_t halves = word | word >> 32;
    const auto plane = uint32_t((halves | halves >> 16) & 0xFFFFu);  // x | y<<2, any z
    const uint32_t columns = plane | plane >> 8;
    const uint32_t x = (columns | columns >> 4) & 0xFu;
    uint32_t y = 0, z = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      y |= uint32_t((plane >> (4 * i) & 0xFu) != 0) << i;
      z |= uint32_t((word >> (16 * i) & 0xFFFFu) != 0) << i;
    }
    used[0] |= x << ((octant & 1u) * 4);
    used[1] |= y << ((octant >> 1 & 1u) * 4);
    used[2] |= z << ((octant >> 2 & 1u) * 4);
  }
  if (!used[0]) return {};
  const auto low = [&](int axis) { return std::countr_zero(used[axis]); };
  const auto high = [&](int axis) { return 31 - std::countl_zero(used[axis]); };
  return {{brick.x * 8 + low(0), brick.y * 8 + low(1), brick.z * 8 + low(2)},
          {brick.x * 8 + high(0), brick.y * 8 + high(1), brick.z * 8 + high(2)}};
}

}  // namespace quarry
