// voxelize_fill.hpp - which voxels have their centre inside a mesh: crossings of centre lines with triangles, counted along three axes,
// layer by layer. What it is not: the surface (voxelize_host.cpp, voxelize_cuda.cu). Runs on host threads for either.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "voxel/voxelize_stage.hpp"

namespace quarry::voxelize_detail {

class InsideLayers {
 public:
  // Finds and sorts all crossings: 8 bytes each. `rule` is parity or winding (voxelize.hpp).
  InsideLayers(VoxelizeJob& job, FillRule rule);
  ~InsideLayers();

  int32_t first() const;  // brick x of the first layer
  int32_t count() const;  // layers
  // The bricks of the next layer that have inside voxels, in rising order, with those voxels. Layers come in rising order.
  // Memory: 3 to 6 words of 64 bytes a brick of the layer's bounds.
  std::vector<std::pair<Int3, BrickMask>> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quarry::voxelize_detail
