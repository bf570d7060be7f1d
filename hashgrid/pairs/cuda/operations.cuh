// SPDX-License-Identifier: Apache-2.0
// operations.cuh - the bulk operations on tables of the pairs layout on a CUDA device.
#pragma once

#include <memory>

#include "base/cuda/scratch.cuh"
#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

// `stream` must outlive the result.
std::unique_ptr<BulkOperations<GridView>> make_cuda_pairs(const gpu::DeviceStream& stream, uint32_t multiprocessors);

// Whether this build has code for the current device.
bool cuda_pairs_run_here();

}  // namespace quarry::hashgrid
