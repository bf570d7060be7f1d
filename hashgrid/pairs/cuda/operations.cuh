// operations.cuh - the bulk operations on tables of the pairs layout on a CUDA device.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

// `stream` outlives it.
std::unique_ptr<BulkOperations<GridView>> make_cuda_pairs(int device, cudaStream_t stream, uint32_t multiprocessors);

// Whether this build has code for the current device.
bool cuda_pairs_run_here();

}  // namespace quarry::hashgrid
