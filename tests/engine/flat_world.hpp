// SPDX-License-Identifier: Apache-2.0
// flat_world.hpp - a world as trace_ray() reads it, in host memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "voxel/rays/flat_world.hpp"
#include "voxel/worlds/world.hpp"

namespace quarry::test {

// Masks and materials are copied out of the slabs; the nodes are the world's own, which may not change meanwhile.
struct FlatWorld {
  std::vector<uint64_t> masks;
  std::vector<uint8_t> materials;
  std::span<const std::byte> nodes;
  RayWorld rays;

  explicit FlatWorld(const World& world) {
    const BrickPool& pool = world.pool();
    masks.resize(size_t(pool.high_water()) * 8);
    materials.resize(size_t(pool.high_water()) * kVoxelsPerBrick);
    pool.for_each_brick([&](uint32_t index) {
      const Brick brick = pool.get(index);
      std::ranges::copy(brick.mask, &masks[size_t(index) * 8]);
      std::ranges::copy(brick.materials, &materials[size_t(index) * kVoxelsPerBrick]);
    });
    rays.nodes = world.pyramid().nodes();
    nodes = {reinterpret_cast<const std::byte*>(rays.nodes), size_t(world.pyramid().used_bytes())};
    rays.level3 = world.pyramid().level3_granule();
    rays.masks = masks.data();
    rays.materials = materials.data();
    rays.brick_count = world.brick_count();
    rays.set_box(world.bounds());
  }
};

}  // namespace quarry::test
