// SPDX-License-Identifier: Apache-2.0
// flat_world.hpp - a world whose masks and materials are flat arrays, by pool index, without tables of slabs: what a
// ray reads of it, for host threads and CUDA kernels. The functions have the names and results of
// shaders/library/world.glsl, which reads worlds in slabs.
//
// Nobody may write the arrays while rays are traced: a kernel reads them through the cache that nobody keeps coherent.
#pragma once

#include "voxel/bricks/occupancy.hpp"
#include "voxel/rays/glsl_words.hpp"

namespace quarry {

struct RayWorld {
  const OccupancyNode* nodes = nullptr;  // the pyramid's arena (voxel/bricks/occupancy.hpp)
  uint32_t level3 = 0;                   // the granule at which its level 3 starts
  const uint64_t* masks = nullptr;       // 8 words a brick
  const uint8_t* materials = nullptr;    // 512 bytes a brick, if it is not packed
  const uint32_t* packed = nullptr;      // of a packed world (voxel/bricks/pool.hpp); else null
  uint32_t brick_count = 0;
  // The box at which rays start, in whole world coordinates: a box of every set voxel, with its corners moved out by
  // kRayBoxMargin. In an empty world it is only the margins.
  float box_low[3] = {}, box_high[3] = {};

  // The box for a box of every set voxel.
  void set_box(const Box3& bounds);
};

constexpr int32_t kRayBoxMargin = 2;

inline void RayWorld::set_box(const Box3& bounds) {
  const Int3 first = bounds.empty() ? kWorldMin : bounds.min,
             beyond = bounds.empty() ? kWorldMin : bounds.max + Int3{1, 1, 1};
  const int32_t low[3] = {first.x, first.y, first.z}, high[3] = {beyond.x, beyond.y, beyond.z};
  for (int i = 0; i < 3; ++i) {
    box_low[i] = float(low[i] - kRayBoxMargin);
    box_high[i] = float(high[i] + kRayBoxMargin);
  }
}

namespace ray_walk {

using QryWorldRoot = RayWorld;
using QryMasks = uint;  // a brick's masks: its pool index

// A node of the pyramid: its two half masks, and the start of its children's run.
QRY_WALK uvec3 qry_node(const QryWorldRoot& root, uint granule) {
#if defined(__CUDA_ARCH__)
  const uint4 node = __ldg(reinterpret_cast<const uint4*>(root.nodes) + granule);
  return {node.x, node.y, node.z};
#else
  const OccupancyNode& node = root.nodes[granule];
  return {uint(node.mask), uint(node.mask >> 32), node.child};
#endif
}

QRY_WALK uvec3 qry_level3(const QryWorldRoot& root, uint cell) { return qry_node(root, root.level3 + cell); }

// Counts the bits of the mask below `index`.
QRY_WALK uint qry_child_number(uint low, uint high, uint index) {
  const bool upper = (index & 32u) != 0u;
  return bitCount((upper ? high : low) & ((1u << (index & 31u)) - 1u)) + (upper ? bitCount(low) : 0u);
}

// Reads a node's child whose bit is set.
QRY_WALK uvec3 qry_child(const QryWorldRoot& root, const uvec3& node, uint index) {
  return qry_node(root, node.z + qry_child_number(node.x, node.y, index));
}

// Returns the pool index of a level-1 node's brick whose bit is set.
QRY_WALK uint qry_level1_brick(const QryWorldRoot& root, const uvec3& level1, uint index) {
  const uint32_t* const place =
      reinterpret_cast<const uint32_t*>(root.nodes) + (level1.z * 4u + qry_child_number(level1.x, level1.y, index));
#if defined(__CUDA_ARCH__)
  return __ldg(place);
#else
  return *place;
#endif
}

QRY_WALK QryMasks qry_mask_address(const QryWorldRoot&, uint brick) { return brick; }
QRY_WALK uvec2 qry_octant_words(const QryWorldRoot& root, QryMasks brick, uint octant) {
  const uint64_t* const word = root.masks + (uint64_t(brick) * 8u + octant);
#if defined(__CUDA_ARCH__)
  const uint2 halves = __ldg(reinterpret_cast<const uint2*>(word));
  return {halves.x, halves.y};
#else
  return {uint(*word), uint(*word >> 32)};
#endif
}

// Returns the material 1..255 of a set voxel of the brick.
QRY_WALK uint qry_material(const QryWorldRoot& root, uint brick, const ivec3& v) {
  const uint octant = (uint(v.x) >> 2 & 1u) | (uint(v.y) >> 1 & 2u) | (uint(v.z) & 4u),
             bit = (uint(v.x) & 3u) | (uint(v.y) & 3u) << 2 | (uint(v.z) & 3u) << 4;
  const uint8_t* material = nullptr;
  if (root.packed) {
    const uvec2 own = qry_octant_words(root, brick, octant);
    uint number = qry_child_number(own.x, own.y, bit);
    for (uint i = 0u; i < octant; ++i) {
      const uvec2 before = qry_octant_words(root, brick, i);
      number += uint(bitCount(before.x)) + uint(bitCount(before.y));
    }
    const uint32_t* const start = root.packed + brick;
#if defined(__CUDA_ARCH__)
    material = reinterpret_cast<const uint8_t*>(root.packed + __ldg(start)) + number;
#else
    material = reinterpret_cast<const uint8_t*>(root.packed + *start) + number;
#endif
  } else {
    material = root.materials + (uint64_t(brick) * 512u + octant * 64u + bit);
  }
#if defined(__CUDA_ARCH__)
  return __ldg(material);
#else
  return *material;
#endif
}

// There is no hash grid beside these arrays, so no probe depth.
QRY_WALK uint qry_key_of(const ivec3&) { return kQryReservedKey; }
QRY_WALK uint qry_find_brick(const QryWorldRoot&, uint, uint& sectors) {
  sectors = 0;
  return kQryReservedValue;
}

}  // namespace ray_walk
}  // namespace quarry
