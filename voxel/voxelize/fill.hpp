// SPDX-License-Identifier: Apache-2.0
// fill.hpp - finds the voxels with their centre inside a mesh: crossings of centre lines with triangles are counted
// along three axes, layer by layer. The surface is found elsewhere (voxelize/host.cpp, voxelize/cuda.cu). The filling
// runs on host threads for both.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "voxel/voxelize/stage.hpp"

namespace quarry::voxelize_detail {

// The bricks of one layer that have inside voxels, rising by y, then z; most are full.
struct InsideLayer {
  static constexpr uint32_t kFull = ~uint32_t(0);
  std::vector<std::pair<Int3, uint32_t>> bricks;  // each with the number of its mask, or kFull
  std::vector<BrickMask> masks;

  BrickMask mask(uint32_t number) const;
};

class InsideLayers {
 public:
  // Finds the lines along x whose crossings balance. `rule` is parity or winding (voxelize/triangles.hpp). Memory: 1 to
  // 4 words a line along x. The mesh must outlive this object. Check job.going() after this and after load().
  InsideLayers(VoxelizeJob& job, const FixedMesh& mesh, FillRule rule);
  ~InsideLayers();

  int32_t first() const;  // brick x of the first layer
  int32_t count() const;  // layers
  // Finds and sorts the crossings of the next `layers` layers. Memory: 8 bytes each, twice that while they are sorted.
  // `triangles` must contain at least those that touch these layers (null: all).
  void load(const uint32_t* triangles, size_t triangle_count, int32_t layers);
  // Returns the next loaded layer. Layers are in rising order. Memory: 3 to 6 words of 64 bytes a brick of the layer's
  // bounds.
  InsideLayer next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quarry::voxelize_detail
