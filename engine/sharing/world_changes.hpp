// SPDX-License-Identifier: Apache-2.0
// world_changes.hpp - the copy regions of a World's changes: regions of host memory, each with its place in the world's
// arrays. SharedWorld in staged mode copies them. host_import needs none.
#pragma once

#include <cstdint>
#include <vector>

#include "voxel/worlds/world.hpp"

namespace quarry::engine {

// The arrays of a world. `slab` counts slabs of the array; grid and pyramid are one block each.
enum class WorldPart : uint8_t { grid, masks, materials, pyramid };

struct CopyRegion {
  WorldPart part;
  uint32_t slab;
  uint64_t offset_bytes;  // in the slab
  uint64_t size_bytes;    // a multiple of 4
  const void* from;
};

struct WorldChanges {
  bool everything = false;       // the copy has nothing yet
  bool whole_grid = false;       // the grid's table is a new one
  bool whole_pyramid = false;    // so is the pyramid's block
  std::vector<uint32_t> keys;    // World::take_dirty_keys
  std::vector<uint32_t> level2;  // World::take_dirty_level2
};

// Regions that are adjacent in both places are joined.
std::vector<CopyRegion> collect_copy_regions(const World& world, const WorldChanges& changes);

}  // namespace quarry::engine
