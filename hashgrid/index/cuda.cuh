// SPDX-License-Identifier: Apache-2.0
// cuda.cuh - the bulk operations on ordered indexes on a CUDA device.
#pragma once

#include <memory>

#include "base/cuda/scratch.cuh"
#include "hashgrid/index/operations.hpp"

namespace quarry::hashgrid {

// `stream` must outlive the result.
std::unique_ptr<IndexOperations<uint32_t>> make_cuda_index32(const gpu::DeviceStream& stream, uint32_t multiprocessors);
std::unique_ptr<IndexOperations<uint64_t>> make_cuda_index64(const gpu::DeviceStream& stream, uint32_t multiprocessors);

}  // namespace quarry::hashgrid
