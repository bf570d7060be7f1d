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
#include <concepts>
#include <cstdint>
#include <memory>

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
  uint32_t count() const;
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
inline uint32_t count_of(const BrickMask& mask) {
  uint32_t count = 0;
  for (const uint64_t word : mask) count += uint32_t(std::popcount(word));
  return count;
}

inline uint32_t Brick::count() const { return count_of(mask); }

// A brick whose mask and materials may be stored apart, for reading: valid as long as what it refers to. If its
// materials are packed, the view has a copy of them that is not. Assigning lets it refer to another brick.
struct BrickView {
  const BrickMask& mask;
  const BrickMaterials& materials;

  BrickView(const BrickMask& its_mask, const BrickMaterials& its_materials)
      : mask(its_mask), materials(its_materials) {}
  // NOLINTNEXTLINE(google-explicit-constructor): wherever a brick is only read, one of either kind may come
  BrickView(const Brick& brick) : mask(brick.mask), materials(brick.materials) {}
  // `unpack` writes all 512 materials to where it is told.
  template <class Unpack>
  requires std::invocable<Unpack, BrickMaterials&> BrickView(const BrickMask& its_mask, Unpack&& unpack)
      : mask(its_mask), materials(unpacked_) {
    unpack(unpacked_);
  }
  BrickView(const BrickView& other)
      : mask(other.mask), materials(&other.materials == &other.unpacked_ ? unpacked_ : other.materials) {
    if (&other.materials == &other.unpacked_) unpacked_ = other.unpacked_;
  }
  // Since C++20 an object with references may be replaced in place.
  BrickView& operator=(const BrickView& other) {
    std::construct_at(this, BrickView(other));
    return *this;
  }
  ~BrickView() = default;

  bool empty() const {
    uint64_t any = 0;
    for (const uint64_t word : mask) any |= word;
    return any == 0;
  }
  uint32_t count() const { return count_of(mask); }
  uint8_t get(uint32_t index) const { return materials[index]; }
  Brick copy() const { return {mask, materials}; }
  friend bool operator==(const BrickView& a, const BrickView& b) {
    return a.mask == b.mask && a.materials == b.materials;
  }

 private:
  BrickMaterials unpacked_;  // written only if `materials` is this
};

// The material that all 512 voxels of the brick have, or 0.
uint8_t full_material(const BrickView& brick);
// The brick full of that material; the empty one for material 0. It lives as long as the process.
const Brick& full_brick(uint8_t material);

// The tight box of a brick's voxels, in voxel coordinates, for a brick at `brick`; empty for an empty mask.
Box3 voxel_bounds(Int3 brick, const BrickMask& mask);

}  // namespace quarry
