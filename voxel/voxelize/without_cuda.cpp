// SPDX-License-Identifier: Apache-2.0
// without_cuda.cpp - replaces voxelize/cuda.cu in builds without a CUDA toolkit.
#include "voxel/voxelize/stage.hpp"

namespace quarry::voxelize_detail {

Result<void> cuda_for_voxelize() {
  return fail(ErrorCode::unsupported,
              "this build of Quarry voxelises on the host only: configure with a CUDA toolkit (nvcc) installed");
}
bool cuda_has_started() { return false; }
Result<SurfaceMakers> makers_on_cuda(VoxelizeJob&, uint32_t) { return tl::unexpected(cuda_for_voxelize().error()); }
Result<SurfaceResult> surface_on_cuda(VoxelizeJob&) { return tl::unexpected(cuda_for_voxelize().error()); }
Result<SurfaceResult> surface_to_device(VoxelizeJob&, const DeviceSink&, bool&) {
  return tl::unexpected(cuda_for_voxelize().error());
}

}  // namespace quarry::voxelize_detail
