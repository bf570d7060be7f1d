// SPDX-License-Identifier: Apache-2.0
// bricks.hpp - the voxeliser's last stage: it converts blocks of surface and layers of the inside to bricks of a scene.
// The voxels are found elsewhere (voxelize/host.cpp, voxelize/cuda.cu, voxelize/fill.cpp).
#pragma once

#include <array>
#include <vector>

#include "voxel/voxelize/fill.hpp"
#include "voxel/voxelize/stage.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::voxelize_detail {

// Makes a scene with volume, instance, palette and metadata, without bricks.
Scene scene_without_bricks(const VoxelizeJob& job, const Palette& palette, size_t distinct, double rms_error);
Error too_thin();

// Walks the bricks of blocks [from, to). It frees the memory of each block once it has passed it.
class BlockWalk {
 public:
  BlockWalk(std::vector<SurfaceBlock>& blocks, size_t from, size_t to) : blocks_(blocks), block_(from), end_(to) {
    skip_empty();
  }
  bool done() const { return block_ == end_; }
  Int3 where() const { return blocks_[block_].bricks[brick_].first; }
  Brick take();

 private:
  void skip_empty();
  std::vector<SurfaceBlock>& blocks_;
  size_t block_, end_, brick_ = 0, voxel_ = 0;
};

// Appends the surface alone to `bricks`, in the map's pool, on all threads. `from`, `to`: see in_parallel().
Result<void> build_shell(VoxelizeJob& job, std::vector<SurfaceBlock>& blocks, BrickMap& bricks, double from = 0.94,
                         double to = 1);

// The most frequent material, which the inside gets.
uint8_t most_frequent(const std::vector<SurfaceBlock>& blocks);
uint8_t most_frequent(const std::array<uint64_t, 256>& counts);  // voxels by material

// Builds surface and inside, layer by layer, in rising order.
class SolidBuilder {
 public:
  SolidBuilder(std::vector<SurfaceBlock>& blocks, bool with_surface, uint8_t material, BrickMap& into)
      : walk_(blocks, 0, blocks.size()), with_surface_(with_surface), material_(material), into_(into) {}
  // Adds the layer's bricks in the box (of bricks), and the surface that precedes them.
  void add(const InsideLayer& layer, const Box3& box);
  void finish();  // adds the remaining surface

 private:
  void surface_until(const Int3* where);
  BlockWalk walk_;
  const bool with_surface_;
  const uint8_t material_;
  BrickMap& into_;
};

}  // namespace quarry::voxelize_detail
