// SPDX-License-Identifier: Apache-2.0
// trace_cuda.cu - many rays on CUDA.
#include "base/cuda/launch.cuh"
#include "voxel/rays/trace_kernel.cuh"
#include "voxel/rays/trace_on_cuda.hpp"

namespace quarry {

Result<void> trace_on_cuda(void* stream, const RayWorld& world, const Ray* rays, uint64_t count, RayHit* hits) {
  using namespace ray_kernels;
  if (count == 0) return {};
  return gpu::launch("trace rays", {uint32_t((count + kTraceThreads - 1) / kTraceThreads), kTraceThreads},
                     static_cast<cudaStream_t>(stream), trace_rays<kTraceThreads>, world, rays, count, hits,
                     TraceAsItIs{});
}

}  // namespace quarry
