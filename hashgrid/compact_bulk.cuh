// compact_bulk.cuh - bulk calls on tables of the compact layout (compact_view.hpp) on a CUDA device. Launches are in compact_bulk.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "hashgrid/compact_view.hpp"
#include "hashgrid/executor.hpp"

namespace quarry::hashgrid {

// All of them wait for the stream. Errors: device, out_of_memory; invalid_argument for a view of too few pages.
// Empties the table. Cost: one streaming write.
Result<void> compact_clear(cudaStream_t stream, const CompactView& view);
// Fills a cleared table from a large batch: split by page, each page built in shared memory. No concurrent use. Copies of a key are
// `present`, which of them wins is not said. `full`: keys that found no place, or the whole batch if too many keys are equal: try
// compact_insert.
Result<BulkReport> compact_build(cudaStream_t stream, const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count);
// One key after the other, beside any other operation. outcomes may be null.
Result<BulkReport> compact_insert(cudaStream_t stream, const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                  Outcome* outcomes);
Result<BulkReport> compact_erase(cudaStream_t stream, const CompactView& view, const uint32_t* keys, size_t count, Outcome* outcomes);
// values_out[i] = kQryReservedValue for an absent key. depths_out may be null.
Result<BulkReport> compact_find(cudaStream_t stream, const CompactView& view, const uint32_t* keys, size_t count, uint32_t* values_out,
                                uint8_t* depths_out);

}  // namespace quarry::hashgrid
