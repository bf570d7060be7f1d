// SPDX-License-Identifier: Apache-2.0
// merge.cuh - inserting a large batch at the speed of streaming: kernels in hashgrid/cuda/split.cuh and
// page_builds.cuh, launches in merge.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "base/cuda/scratch.cuh"
#include "base/result.hpp"
#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

// Whether a batch is large enough for this many pages: streaming the table then costs less than visiting each key's
// sector.
bool worth_merging(uint32_t page_count, size_t count, bool fresh);

// Inserts the batch; present keys stay as they are. `full` of the report counts keys to retry with plain insertion:
// those of pages that could not take their whole share, or the whole batch if too many keys are equal. Waits for the
// stream. No concurrent use of the table. Memory traffic per key: 40 bytes, and of the table one write (and one read,
// unless `fresh`). Scratch memory: about 20 bytes a key from the stream's pool. Errors: device, out_of_memory (the
// table is unchanged).
Result<BulkReport> bulk_merge(const gpu::DeviceStream& stream, const GridView& view, const uint32_t* keys,
                              const uint32_t* values, size_t count, bool fresh);

// Whether a batch is dense enough to go page by page although every key is processed by itself.
bool worth_windows(uint32_t page_count, size_t count);

// insert or assign beside any other operations: split by page, each page fetched into the L2 cache, each key put by its
// own compare-and-swap. Of duplicates in the batch, one is inserted; any of them may be the last one assigned. Waits
// for the stream. Memory traffic per key: 40 bytes for the split, a sector read and written. Returns nothing if too
// many keys are equal for a page's list. Errors: device, out_of_memory. In both cases the table is unchanged.
Result<std::optional<BulkReport>> bulk_upsert(const gpu::DeviceStream& stream, const GridView& view,
                                              const uint32_t* keys, const uint32_t* values, size_t count, bool assigns);

// Erases the batch in the order of pages, each page fetched into the L2 cache before its keys are looked up: twice as
// fast as in the batch's order. Each key is erased by its own compare-and-swap, so it may run beside the same
// operations as erase. Waits for the stream. Empty result and errors as for bulk_upsert.
Result<std::optional<BulkReport>> bulk_erase(const gpu::DeviceStream& stream, const GridView& view,
                                             const uint32_t* keys, size_t count);

}  // namespace quarry::hashgrid
