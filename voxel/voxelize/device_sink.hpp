// SPDX-License-Identifier: Apache-2.0
// device_sink.hpp - where the voxels of a mesh go that CUDA makes, if the world that will show them is in the same
// device's memory: they never come to the host.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.hpp"
#include "voxel/bricks/coords.hpp"

namespace quarry {

// Bricks in a CUDA device's memory, until the call that tells of them returns.
struct DeviceVoxels {
  uint32_t bricks = 0;
  const uint32_t* keys = nullptr;       // brick_key(), each once
  const uint64_t* materials = nullptr;  // 64 words a brick, in the order of its voxels; all 0: there is none
  Box3 box;                             // of all bricks, in bricks
  void* stream = nullptr;               // cudaStream_t: they are there after what it has got
};

// The mesh's voxels in pieces, each brick in one of them. An error of `take` ends the voxelising, and is its result.
struct DeviceSink {
  int device = -1;  // CUDA's ordinal
  std::function<Result<void>(const DeviceVoxels& voxels)> take;
};

}  // namespace quarry
