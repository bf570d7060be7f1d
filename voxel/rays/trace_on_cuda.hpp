// SPDX-License-Identifier: Apache-2.0
// trace_on_cuda.hpp - many rays against a world in flat arrays of device memory, on CUDA.
#pragma once

#include "base/result.hpp"
#include "voxel/rays/trace.hpp"

namespace quarry {

// Launches trace_ray() for each ray in `stream` (a cudaStream_t), on the current device, and returns before it has run.
// All pointers, those of `world` too, are of memory that the device reads. Both arrays begin at multiples of 16 bytes.
// Errors: device; unsupported in builds without CUDA.
Result<void> trace_on_cuda(void* stream, const RayWorld& world, const Ray* rays, uint64_t count, RayHit* hits);

}  // namespace quarry
