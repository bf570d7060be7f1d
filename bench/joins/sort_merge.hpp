// SPDX-License-Identifier: Apache-2.0
// sort_merge.hpp - the join by sorting both sides, as CUB and Thrust do it: the rival on CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashgrid/executor.hpp"

namespace quarry::bench {

// All pairs of rows with equal keys; returns their number. `executor` is a CUDA executor, memory its own. Errors: full,
// out_of_memory, device; unsupported in a build without CUDA.
Result<uint64_t> sort_merge_join(hashgrid::Executor& executor, const uint32_t* left, size_t left_count,
                                 const uint32_t* right, size_t right_count, uint32_t* left_out, uint32_t* right_out,
                                 uint64_t room);
// Sorts pairs by their keys into other arrays.
Result<void> sort_pairs(hashgrid::Executor& executor, const uint32_t* keys, const uint32_t* values, size_t count,
                        uint32_t* keys_out, uint32_t* values_out);

}  // namespace quarry::bench
