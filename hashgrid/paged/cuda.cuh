// SPDX-License-Identifier: Apache-2.0
// cuda.cuh - a CUDA executor's lanes, and pinned host memory for what they carry.
#pragma once

#include <memory>

#include "base/cuda/device.cuh"
#include "base/memory_source.hpp"
#include "hashgrid/paged/lane.hpp"

namespace quarry::hashgrid {

// Three streams (in, operations, out) and a memory pool of its own for the operations' scratch. Errors: device,
// unsupported.
Result<std::unique_ptr<Lane>> make_cuda_lane(const gpu::CudaDevice& device, uint32_t multiprocessors);

// Page-locked host memory, which every CUDA device copies at the bus's full rate. An allocation takes about a
// millisecond for each few MiB: keep blocks.
std::unique_ptr<MemorySource> make_pinned_memory(const gpu::CudaDevice& device);

}  // namespace quarry::hashgrid
