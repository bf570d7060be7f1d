// SPDX-License-Identifier: Apache-2.0
// trace_without_cuda.cpp - replaces trace_cuda.cu in builds without a CUDA toolkit.
#include "voxel/rays/trace_on_cuda.hpp"

namespace quarry {

Result<void> trace_on_cuda(void*, const RayWorld&, const Ray*, uint64_t, RayHit*) {
  return fail(ErrorCode::unsupported, "this build of Quarry has no CUDA: trace the rays on host threads, or by Vulkan");
}

}  // namespace quarry
