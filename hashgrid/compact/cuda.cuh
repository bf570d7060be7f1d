// cuda.cuh - the bulk operations on tables of the compact layout on a CUDA device.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "hashgrid/compact/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

// `stream` outlives it.
std::unique_ptr<BulkOperations<CompactView>> make_cuda_compact(int device, cudaStream_t stream, uint32_t multiprocessors);

}  // namespace quarry::hashgrid
