// SPDX-License-Identifier: Apache-2.0
// brick.hpp - 8^3 voxels: a 512-bit occupancy mask and 512 one-byte material indices.
//
//   mask       8 x 64 bits, one word per 4^3 octant (see coords.hpp for the order)      64 B
//   materials  512 x 8 bits in the same order; 0 wherever the mask has 0                512 B
// A set voxel has a material in 1..255; the two arrays always agree. In a pool they are stored apart: traversal reads
// only masks.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "voxel/bricks/coords.hpp"

namespace quarry {

using BrickMask = std::array<uint64_t, 8>;
using BrickMaterials = std::array<uint8_t, kVoxelsPerBrick>;

struct Brick {
  BrickMask mask{};
  BrickMaterials materials{};

  bool empty() const {
    uint64_t any = 0;
    for (uint64_t w : mask) any |= w;
    return any == 0;
  }
  uint32_t count() const {
    uint32_t n = 0;
    for (uint64_t w : mask) n += uint32_t(std::popcount(w));
    return n;
  }
  uint8_t get(uint32_t index) const { return materials[index]; }
  // Material 0 removes the voxel.
  void set(uint32_t index, uint8_t material) {
    const uint64_t bit = uint64_t(1) << (index & 63u);
    if (material) mask[index >> 6] |= bit;
    else mask[index >> 6] &= ~bit;
    materials[index] = material;
  }
  friend bool operator==(const Brick&, const Brick&) = default;
};

inline bool all_set(const BrickMask& mask) {
  for (const uint64_t word : mask)
    if (word != ~uint64_t(0)) return false;
  return true;
}

// The material that all 512 voxels of the brick have, or 0.
uint8_t full_material(const Brick& brick);
// The brick full of that material; the empty one for material 0. It lives as long as the process.
const Brick& full_brick(uint8_t material);

// The tight box of a brick's voxels, in voxel coordinates, for a brick at `brick`; empty for an empty mask.
Box3 voxel_bounds(Int3 brick, const BrickMask& mask);

}  // namespace quarry
