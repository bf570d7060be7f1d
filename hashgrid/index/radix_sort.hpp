// SPDX-License-Identifier: Apache-2.0
// radix_sort.hpp - pairs sorted by their keys, by host threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"

namespace quarry::hashgrid {

// Sorts keys with their values (which may be null) from one pair of arrays into another; stable. The first are not
// changed. The result is the same for any number of threads. Memory: as much again. Errors: out_of_memory. Cost: sorted
// keys are copied; otherwise a pass for each 8 bits in which keys differ.
Result<void> radix_sort(const uint32_t* keys, const uint32_t* values, size_t count, uint32_t* keys_out,
                        uint32_t* values_out, uint32_t threads);
Result<void> radix_sort(const uint64_t* keys, const uint32_t* values, size_t count, uint64_t* keys_out,
                        uint32_t* values_out, uint32_t threads);

}  // namespace quarry::hashgrid
