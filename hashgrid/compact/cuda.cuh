// SPDX-License-Identifier: Apache-2.0
// cuda.cuh - the bulk operations on tables of the compact layout on a CUDA device.
#pragma once

#include <memory>

#include "base/cuda/scratch.cuh"
#include "hashgrid/compact/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

// `stream` must outlive the result.
std::unique_ptr<BulkOperations<CompactView>> make_cuda_compact(const gpu::DeviceStream& stream,
                                                               uint32_t multiprocessors);

}  // namespace quarry::hashgrid
