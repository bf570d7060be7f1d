// SPDX-License-Identifier: Apache-2.0
// cuda.cuh - the bulk operations on multi grids, and joins, on a CUDA device.
#pragma once

#include <memory>

#include "base/cuda/scratch.cuh"
#include "hashgrid/multi/operations.hpp"

namespace quarry::hashgrid {

// `stream` must outlive the result.
std::unique_ptr<MultiOperations> make_cuda_multi(const gpu::DeviceStream& stream, uint32_t multiprocessors);

}  // namespace quarry::hashgrid
