// SPDX-License-Identifier: Apache-2.0
// fill.hpp - which voxels have their centre inside a mesh: crossings of centre lines with triangles, counted along
// three axes, layer by layer. What it is not: the surface (voxelize/host.cpp, voxelize/cuda.cu). Runs on host threads
// for either.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "voxel/voxelize/stage.hpp"

namespace quarry::voxelize_detail {

// The bricks of one layer that have inside voxels, rising by y, then z; most are full.
struct InsideLayer {
  static constexpr uint32_t kFull = ~uint32_t(0);
  std::vector<std::pair<Int3, uint32_t>> bricks;  // and the number of its mask, or kFull
  std::vector<BrickMask> masks;

  BrickMask mask(uint32_t number) const;
};

class InsideLayers {
 public:
  // Finds out which lines along x come out even. `rule` is parity or winding (voxelize/triangles.hpp). Memory: 1 to 4
  // words a line along x. The mesh must live as long. Look at job.going() after this and after load().
  InsideLayers(VoxelizeJob& job, const FixedMesh& mesh, FillRule rule);
  ~InsideLayers();

  int32_t first() const;  // brick x of the first layer
  int32_t count() const;  // layers
  // Finds and sorts the crossings of the next `layers` layers: 8 bytes each, twice while they are sorted. `triangles`
  // (null: all): at least those that touch these layers.
  void load(const uint32_t* triangles, size_t triangle_count, int32_t layers);
  // The next layer of those that were loaded. Layers come in rising order. Memory: 3 to 6 words of 64 bytes a brick of
  // the layer's bounds.
  InsideLayer next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quarry::voxelize_detail
