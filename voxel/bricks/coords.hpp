// SPDX-License-Identifier: Apache-2.0
// coords.hpp - voxel, brick and chunk coordinates, and 90-degree transforms.
//
// World axes: y up, right-handed, 1 unit = 1 voxel. Voxel (x,y,z) is the cube [x,x+1) x [y,y+1) x [z,z+1).
//   brick = voxel >> 3 (8^3 voxels)     chunk = brick >> 3 (8^3 bricks: the unit of the world file)
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "voxel/bricks/key.h"

namespace quarry {

struct Int3 {
  int32_t x = 0, y = 0, z = 0;
  friend auto operator<=>(const Int3&, const Int3&) = default;
  friend Int3 operator+(Int3 a, Int3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend Int3 operator-(Int3 a, Int3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
};

// Inclusive box of voxels; empty when max < min on any axis (the default).
struct Box3 {
  Int3 min{0, 0, 0}, max{-1, -1, -1};
  bool empty() const { return max.x < min.x || max.y < min.y || max.z < min.z; }
  friend bool operator==(const Box3&, const Box3&) = default;
};
Box3 united(const Box3& a, const Box3& b);
Box3 intersected(const Box3& a, const Box3& b);
inline Box3 moved(const Box3& box, Int3 by) { return {box.min + by, box.max + by}; }

// The world: x and z in [-8192, 8191], y in [-4096, 4095], without the corner brick whose key is reserved.
constexpr Int3 kWorldMin{-8192, -4096, -8192};
constexpr Int3 kWorldMax{8191, 4095, 8191};
// Where the voxels of a scene may be: anywhere that leaves 32 bits an axis for what is computed with them. A volume's
// bricks, a file's, and what flatten() makes are not limited to the world, which is what one grid holds.
constexpr Int3 kSceneMin{-(1 << 30), -(1 << 30), -(1 << 30)};
constexpr Int3 kSceneMax{(1 << 30) - 1, (1 << 30) - 1, (1 << 30) - 1};
constexpr int32_t kBrickEdge = 8;
constexpr uint32_t kVoxelsPerBrick = 512;

// constexpr, so that kernels may call these functions.
constexpr Int3 brick_of(Int3 voxel) { return {voxel.x >> 3, voxel.y >> 3, voxel.z >> 3}; }
constexpr Int3 chunk_of(Int3 brick) { return {brick.x >> 3, brick.y >> 3, brick.z >> 3}; }
// All voxels of a box of bricks, all bricks of a box of chunks, and the chunks that a box of bricks touches.
constexpr Box3 box_of_voxels(const Box3& bricks) {
  return {{bricks.min.x * 8, bricks.min.y * 8, bricks.min.z * 8},
          {bricks.max.x * 8 + 7, bricks.max.y * 8 + 7, bricks.max.z * 8 + 7}};
}
constexpr Box3 box_of_bricks(const Box3& chunks) { return box_of_voxels(chunks); }
constexpr Box3 chunks_of(const Box3& bricks) { return {chunk_of(bricks.min), chunk_of(bricks.max)}; }
// True if the brick has a key.
constexpr bool brick_in_world(Int3 b) {
  return b.x >= -1024 && b.x < 1024 && b.y >= -512 && b.y < 512 && b.z >= -1024 && b.z < 1024 &&
         !(b.x == 1023 && b.y == 511 && b.z == 1023);
}
constexpr bool brick_in_scene(Int3 b) {
  constexpr int32_t kEnd = 1 << 27;
  return b.x >= -kEnd && b.x < kEnd && b.y >= -kEnd && b.y < kEnd && b.z >= -kEnd && b.z < kEnd;
}
constexpr bool voxel_in_world(Int3 v) { return brick_in_world(brick_of(v)); }
QRY_FN uint32_t brick_key(Int3 b) { return qry_pack_brick(b.x, b.y, b.z); }
// A world brick as 32 bits whose order is the order of Int3; the key's is not.
inline uint32_t ordered_key(Int3 b) {
  return uint32_t(b.x + 1024) << 21 | uint32_t(b.y + 512) << 11 | uint32_t(b.z + 1024);
}
inline Int3 brick_from_ordered_key(uint32_t key) {
  return {int32_t(key >> 21) - 1024, int32_t(key >> 11 & 1023u) - 512, int32_t(key & 2047u) - 1024};
}
QRY_FN Int3 brick_from_key(uint32_t key) { return {qry_brick_x(key), qry_brick_y(key), qry_brick_z(key)}; }

// A voxel's place in its brick. The brick is 2x2x2 octants of 4^3 voxels; each octant is one 64-bit mask word. The bit
// order is that of the occupancy pyramid's words: bit = x | y<<2 | z<<4 of the coordinates' low two bits.
//   octant = (x>>2&1) | (y>>2&1)<<1 | (z>>2&1)<<2
//   voxel index in the brick = octant*64 + bit: materials use the same index
// constexpr, so that kernels may call these functions.
constexpr uint32_t octant_of(Int3 v) { return ((v.x >> 2) & 1u) | (((v.y >> 2) & 1u) << 1) | (((v.z >> 2) & 1u) << 2); }
constexpr uint32_t bit_of(Int3 v) { return (v.x & 3u) | ((v.y & 3u) << 2) | ((v.z & 3u) << 4); }
constexpr uint32_t voxel_index(Int3 v) { return octant_of(v) * 64u + bit_of(v); }
constexpr Int3 voxel_from_index(uint32_t i) {  // 0..7 on each axis
  return {int32_t((i & 3u) | ((i >> 6 & 1u) << 2)), int32_t((i >> 2 & 3u) | ((i >> 7 & 1u) << 2)),
          int32_t((i >> 4 & 3u) | ((i >> 8 & 1u) << 2))};
}

// Hashes for checksums that do not depend on the order of voxels: of numbers in turn, h(n0, n1 ..), where
// h() = kVoxelHash and h(.., n) = mixed_hash(h(..) + n). mixed_hash is the splitmix64 finaliser (Steele, Lea, Flood,
// "Fast splittable pseudorandom number generators", 2014). constexpr, so that kernels may call it.
constexpr uint64_t kVoxelHash = 0x9e3779b97f4a7c15u;
constexpr uint64_t mixed_hash(uint64_t h) {
  h ^= h >> 30;
  h *= 0xbf58476d1ce4e5b9u;
  h ^= h >> 27;
  h *= 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

// A rotation by multiples of 90 degrees, with or without mirroring: a signed permutation matrix. Row r has `sign[r]` in
// column `axis[r]`, zeros elsewhere: out[r] = sign[r] * in[axis[r]].
struct Rotation {
  std::array<uint8_t, 3> axis{0, 1, 2};
  std::array<int8_t, 3> sign{1, 1, 1};
  friend bool operator==(const Rotation&, const Rotation&) = default;
  bool identity() const { return *this == Rotation{}; }
  bool valid() const;  // one of the 48: each axis once, signs 1 or -1
  bool mirrored() const;
  Rotation inverse() const;
  friend Rotation operator*(const Rotation& outer, const Rotation& inner);
  // Cell transform: the rotation about the origin maps the centre of `cell` to the centre of the result.
  // (x -> floor(sign * (x + 0.5)): a negated axis maps cell c to -1 - c.)
  Int3 apply_to_cell(Int3 cell) const;
  Int3 apply_to_vector(Int3 v) const;
};

}  // namespace quarry
