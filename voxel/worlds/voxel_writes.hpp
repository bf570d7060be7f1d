// SPDX-License-Identifier: Apache-2.0
// voxel_writes.hpp - edits that give voxels or bricks one by one: lists as a simulation or a scanner makes them, dense
// regions, stamps. Like plan_edit() (edit.hpp) they only plan: what is known afterwards is a record.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "voxel/worlds/edit.hpp"

namespace quarry {

// `count` voxels in any order: x, y, z and a material each, 0 removes. Of a voxel that occurs more than once the last
// counts.
struct VoxelWrites {
  const int32_t* xyz = nullptr;
  const uint8_t* materials = nullptr;
  uint64_t count = 0;
  Box3 box{};  // the tight box of the voxels, if it is known already
};

// The tight box of the voxels, by up to `threads` threads; empty for none. Traffic: 12 bytes a voxel.
Box3 bounds_of(const VoxelWrites& writes, uint32_t threads = 0);

// What the list would change: a record of the bricks that differ, with `volume` left 0. The same for any `threads`.
// Voxels are sorted by brick (by samples), then each brick is made once. Traffic: 12 bytes a voxel read twice, or once
// if the box is known, 1 read once, 4 (8 or 16 if the box has very many bricks) written and read twice, and each
// touched brick's 576 bytes once or twice. Memory meanwhile: 8 bytes a voxel (16 or 32). Errors: invalid_argument (over
// 2^32 - 1 voxels).
Result<UndoRecord> plan_voxels(const BrickMap& bricks, const VoxelWrites& writes, uint32_t threads = 0);

// What `change(i, brick)` would make of the bricks at `places`, which rise strictly: it gets each brick as it is. It is
// called from up to `threads` threads, once for each i, and must not throw.
UndoRecord plan_bricks(const BrickMap& bricks, std::span<const Int3> places,
                       const std::function<void(size_t, Brick&)>& change, uint32_t threads = 0);

}  // namespace quarry
