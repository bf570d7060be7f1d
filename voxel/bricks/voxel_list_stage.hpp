// SPDX-License-Identifier: Apache-2.0
// voxel_list_stage.hpp - the two passes that host and CUDA implement each; voxel_list.cpp has the common part.
#pragma once

#include "base/memory_source.hpp"
#include "voxel/bricks/voxel_list.hpp"

namespace quarry::voxel_list_detail {

// A list on CUDA, sorted by brick. It is kept between builds to reuse its memory.
struct SortedVoxels {
  MemoryBlock memory;
  const uint32_t* voxels = nullptr;  // number in the brick << 8 | material
  const uint32_t* starts = nullptr;  // start of each brick in `voxels`
  uint32_t count = 0;                // voxels
};

// What a pass found wrong in a list.
struct ListFaults {
  uint64_t outside = 0, without_material = 0;
};

// Writes the distinct brick keys of the list, rising, to `keys`, which grows if necessary (its old content is lost).
// Returns their number; the result is undefined if `faults` has any.
Result<uint32_t> list_keys_on_host(hashgrid::Executor& executor, const VoxelList& list, MemoryBlock& keys,
                                   ListFaults& faults);
Result<uint32_t> list_keys_on_cuda(hashgrid::Executor& executor, const VoxelList& list, MemoryBlock& keys,
                                   SortedVoxels& sorted, ListFaults& faults);

// Fills `indices` with 0, 1, 2, ...
Result<void> count_up_on_cuda(hashgrid::Executor& executor, uint32_t* indices, uint32_t count);

// Writes the list's voxels into `bricks` masks and materials, whatever those held before.
Result<void> fill_on_host(const VoxelList& list, const hashgrid::GridView& grid, BrickMask* masks,
                          BrickMaterials* materials, uint32_t bricks);
Result<void> fill_on_cuda(hashgrid::Executor& executor, const SortedVoxels& sorted, BrickMask* masks,
                          BrickMaterials* materials, uint32_t bricks);

// Ensures at least `size_bytes` in `block`, which is replaced if it is smaller.
Result<void> make_room(MemorySource& memory, MemoryBlock& block, size_t size_bytes, const char* label);

}  // namespace quarry::voxel_list_detail
