// SPDX-License-Identifier: Apache-2.0
// bricks.hpp - the voxeliser's last stage: pieces of surface, and layers of what is inside, to bricks of a scene. What it is not:
// which voxels those are (voxelize/host.cpp, voxelize/cuda.cu, voxelize/fill.cpp).
#pragma once

#include <array>
#include <vector>

#include "voxel/worlds/scene.hpp"
#include "voxel/voxelize/fill.hpp"
#include "voxel/voxelize/stage.hpp"

namespace quarry::voxelize_detail {

// Volume, instance, palette and metadata; no brick yet.
Scene scene_without_bricks(const VoxelizeJob& job, const Palette& palette, size_t distinct, double rms_error);
Error too_thin();

// Walks the bricks of pieces [from, to), giving the memory of each piece back when it is past it.
class PieceWalk {
 public:
  PieceWalk(std::vector<SurfacePiece>& pieces, size_t from, size_t to) : pieces_(pieces), piece_(from), end_(to) { skip_empty(); }
  bool done() const { return piece_ == end_; }
  Int3 where() const { return pieces_[piece_].bricks[brick_].first; }
  Brick take();

 private:
  void skip_empty();
  std::vector<SurfacePiece>& pieces_;
  size_t piece_, end_, brick_ = 0, voxel_ = 0;
};

// The surface alone, over all threads, behind what `bricks` has.
Result<void> build_shell(VoxelizeJob& job, std::vector<SurfacePiece>& pieces, BrickMap& bricks);

// What the inside is made of.
uint8_t most_frequent(const std::vector<SurfacePiece>& pieces);
uint8_t most_frequent(const std::array<uint64_t, 256>& counts);  // voxels by material

// Surface and inside, layer by layer, in rising order.
class SolidBuilder {
 public:
  SolidBuilder(std::vector<SurfacePiece>& pieces, bool with_surface, uint8_t material, BrickMap& into)
      : walk_(pieces, 0, pieces.size()), with_surface_(with_surface), material_(material), into_(into) {}
  // The layer's bricks in the box (of bricks), and what surface comes before them.
  void add(const InsideLayer& layer, const Box3& box);
  void finish();  // the surface that is left

 private:
  void surface_until(const Int3* where);
  PieceWalk walk_;
  const bool with_surface_;
  const uint8_t material_;
  BrickMap& into_;
};

}  // namespace quarry::voxelize_detail
