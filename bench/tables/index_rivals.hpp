// SPDX-License-Identifier: Apache-2.0
// index_rivals.hpp - CUB's radix sort and a binary search a thread, for `quarry bench index`
// (hashgrid/index_rivals.cu).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/result.hpp"

namespace quarry::bench {

// Rivals on a CUDA device; arrays in its memory; they wait until they are done. Without them their rows are left out.
struct IndexRivals {
  // Sorts pairs of a key and a value by the keys.
  std::function<Result<void>(const uint32_t* keys, const uint32_t* values, size_t count, uint32_t* keys_out,
                             uint32_t* values_out)>
      sort32;
  std::function<Result<void>(const uint64_t* keys, const uint32_t* values, size_t count, uint64_t* keys_out,
                             uint32_t* values_out)>
      sort64;
  // The value of each key asked for, by binary search in the sorted keys.
  std::function<Result<void>(const uint32_t* sorted, const uint32_t* values, size_t count, const uint32_t* asked,
                             size_t questions, uint32_t* values_out)>
      search32;
  std::function<Result<void>(const uint64_t* sorted, const uint32_t* values, size_t count, const uint64_t* asked,
                             size_t questions, uint32_t* values_out)>
      search64;
};

// In a build with CUDA.
IndexRivals cuda_index_rivals();

}  // namespace quarry::bench
