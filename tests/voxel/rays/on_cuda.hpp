// SPDX-License-Identifier: Apache-2.0
// on_cuda.hpp - rays of a test, traced in device memory by the first CUDA device.
#pragma once

#include <span>
#include <vector>

#include "voxel/rays/trace_on_cuda.hpp"

namespace quarry::test {

struct TracedOnCuda {
  std::vector<RayHit> hits;
  double milliseconds;  // of the fastest of a few launches, without copies
};

// `world` is in host memory: `nodes`, `masks` and `materials` are all of its arrays. Errors: not_found without a
// device, unsupported without CUDA, out_of_memory, device.
Result<TracedOnCuda> trace_on_first_device(const RayWorld& world, std::span<const std::byte> nodes,
                                           std::span<const uint64_t> masks, std::span<const uint8_t> materials,
                                           std::span<const Ray> rays);

}  // namespace quarry::test
