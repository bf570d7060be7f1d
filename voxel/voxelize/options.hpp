// SPDX-License-Identifier: Apache-2.0
// options.hpp - the voxeliser's options that file formats and command lines pass on. voxelize/triangles.hpp explains
// them.
#pragma once

#include <cstdint>

namespace quarry {

enum class SurfaceVoxels : uint8_t { cover, thin, none };  // 26-separating, 6-separating, only the inside
enum class FillRule : uint8_t { none, parity, winding };
enum class VoxelizeExecutor : uint8_t {
  automatic,  // CUDA if there is a device with room and the job is large enough to be worth it, else the host
  host,
  cuda,  // an error if there is no device
};

}  // namespace quarry
