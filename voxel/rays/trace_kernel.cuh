// SPDX-License-Identifier: Apache-2.0
// trace_kernel.cuh - a ray a thread: the kernel of trace_on_cuda.hpp, for whoever launches it himself.
#pragma once

#include "voxel/rays/trace.hpp"

namespace quarry::ray_kernels {

constexpr uint32_t kTraceThreads = 128;  // of a block

// How trace_rays() traces one.
struct TraceAsItIs {
  __device__ RayHit operator()(const RayWorld& world, const Ray& ray) const { return trace_ray(world, ray); }
};

// The world is a parameter, so that its numbers are operands of instructions and cost no registers. A ray is three
// loads, a hit two stores of a sector's halves: both arrays begin at multiples of 16 bytes.
template <uint32_t kThreads, class Trace = TraceAsItIs>
__global__ void __launch_bounds__(kThreads)
    trace_rays(const __grid_constant__ RayWorld world, const Ray* __restrict__ rays, uint64_t count,
               RayHit* __restrict__ hits, const __grid_constant__ Trace trace = {}) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const float2* const from = reinterpret_cast<const float2*>(rays + i);
  const float2 a = __ldg(from), b = __ldg(from + 1), c = __ldg(from + 2);
  const RayHit hit = trace(world, {{a.x, a.y, b.x}, {b.y, c.x, c.y}});
  uint4* const to = reinterpret_cast<uint4*>(hits + i);
  to[0] = {__float_as_uint(hit.t), uint32_t(hit.voxel[0]), uint32_t(hit.voxel[1]), uint32_t(hit.voxel[2])};
  to[1] = {hit.face, hit.material, hit.steps, hit.probe_depth};
}

}  // namespace quarry::ray_kernels
