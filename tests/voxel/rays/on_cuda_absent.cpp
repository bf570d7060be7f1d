// SPDX-License-Identifier: Apache-2.0
// on_cuda_absent.cpp - replaces on_cuda.cu in builds without CUDA: what trace_on_cuda() answers there.
#include "tests/voxel/rays/on_cuda.hpp"

namespace quarry::test {

Result<TracedOnCuda> trace_on_first_device(const RayWorld& world, std::span<const std::byte>, std::span<const uint64_t>,
                                           std::span<const uint8_t>, std::span<const Ray> rays) {
  QRY_TRY(trace_on_cuda(nullptr, world, rays.data(), rays.size(), nullptr));
  return TracedOnCuda{};
}

}  // namespace quarry::test
