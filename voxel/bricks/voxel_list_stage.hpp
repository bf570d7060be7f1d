// SPDX-License-Identifier: Apache-2.0
// voxel_list_stage.hpp - the two passes that host and CUDA do each in its way; voxel_list.cpp has what they share.
#pragma once

#include "base/memory_source.hpp"
#include "voxel/bricks/voxel_list.hpp"

namespace quarry::voxel_list_detail {

// A list on CUDA, sorted by brick: kept from one build to the next for its memory.
struct SortedVoxels {
  MemoryBlock memory;
  const uint32_t* voxels = nullptr;  // number in the brick << 8 | material
  const uint32_t* starts = nullptr;  // of each brick, in `voxels`
  uint32_t count = 0;                // voxels
};

// What a pass found wrong with a list.
struct ListFaults {
  uint64_t outside = 0, without_material = 0;
};

// The distinct brick keys of the list, rising, in `keys`, which is made larger if it must (its old content is lost).
// Returns their number; nothing is to be relied on if `faults` has any.
Result<uint32_t> list_keys_on_host(hashgrid::Executor& executor, const VoxelList& list, MemoryBlock& keys, ListFaults& faults);
Result<uint32_t> list_keys_on_cuda(hashgrid::Executor& executor, const VoxelList& list, MemoryBlock& keys, SortedVoxels& sorted, ListFaults& faults);

// Fills `indices` with 0, 1, 2, ...
Result<void> count_up_on_cuda(hashgrid::Executor& executor, uint32_t* indices, uint32_t count);

// Puts the list's voxels into `bricks` masks and materials, whatever was in those before.
Result<void> fill_on_host(const VoxelList& list, const hashgrid::GridView& grid, BrickMask* masks, BrickMaterials* materials, uint32_t bricks);
Result<void> fill_on_cuda(hashgrid::Executor& executor, const SortedVoxels& sorted, BrickMask* masks, BrickMaterials* materials, uint32_t bricks);

// At least `size_bytes` in `block`, which is replaced if it is smaller.
Result<void> make_room(MemorySource& memory, MemoryBlock& block, size_t size_bytes, const char* label);

}  // namespace quarry::voxel_list_detail
