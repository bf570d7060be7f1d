// SPDX-License-Identifier: Apache-2.0
// voxel_list.hpp - bricks and their hash grid from a plain list of voxels in any order, as a simulation or a scanner
// produces it.
//
//   host: positions --brick keys, one per run--> sorted, distinct --> grid: key -> rank
//         pass 2: each voxel into its brick's mask and materials
//   CUDA: positions --sorted by brick--> distinct keys --> grid: key -> rank
//         pass 2: each brick assembled and written as a whole
//
// The bricks are the same for any number of threads and any executor: a brick's index is its rank among the keys; of a
// position that occurs more than once the greatest material stays. It is not a World (world.hpp), which can be edited;
// these bricks are built once.
#pragma once

#include <cstdint>
#include <memory>

#include "hashgrid/grid.hpp"
#include "voxel/bricks/brick.hpp"

namespace quarry {

// Memory that the executor can dereference; `materials` may be null (all 1). Positions may repeat.
struct VoxelList {
  const Int3* positions = nullptr;
  const uint8_t* materials = nullptr;  // 1..255
  uint64_t count = 0;                  // at most 2^31
};

// Arrays of `brick_count` elements in the executor's memory, in the order of rising keys.
struct BrickArrays {
  uint32_t brick_count = 0;
  const uint32_t* keys = nullptr;  // brick_key()
  const BrickMask* masks = nullptr;
  const BrickMaterials* materials = nullptr;
};

// Owns the arrays and the grid, and keeps their memory between builds. One thread at a time. The executor must outlive
// it.
class VoxelListBuilder {
 public:
  explicit VoxelListBuilder(hashgrid::Executor& executor);
  VoxelListBuilder(VoxelListBuilder&&) noexcept;
  VoxelListBuilder& operator=(VoxelListBuilder&&) noexcept;
  ~VoxelListBuilder();

  // Replaces the previous build. Returns when it is done. Memory besides the result: on the host 8 bytes per run of
  // consecutive voxels in one brick, on CUDA 20 bytes a voxel. Traffic: the positions twice, the materials once or
  // twice; on the host each brick's 576 bytes once or a few times by locality, on CUDA once, and 16 bytes a voxel for
  // each 8 bits of a brick's place in the list's box. Errors: out_of_bounds (a position outside the world),
  // invalid_argument (material 0, no list, too long), out_of_memory, device; after an error there are no bricks.
  Result<void> build(const VoxelList& list);

  BrickArrays bricks() const;
  const hashgrid::Grid& grid() const;  // brick key -> index into the arrays; valid after a successful build

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quarry
