// SPDX-License-Identifier: Apache-2.0
// arguments.hpp - argument checks of bulk operations on every layout, before they touch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace quarry::hashgrid::detail {

// `inputs`: a second input array, or the keys again.
inline Result<void> check_arrays(const uint32_t* keys, const uint32_t* inputs, size_t count) {
  if (count != 0 && (keys == nullptr || inputs == nullptr))
    return fail(ErrorCode::invalid_argument,
                "hash grid: " + std::to_string(count) + " keys announced, but the key or value array is null");
  return {};
}
inline Result<void> check_memory(const void* words, uint32_t page_count) {
  if (words == nullptr || page_count == 0)
    return fail(ErrorCode::invalid_argument, "hash grid: the view has no memory or no page");
  return {};
}

}  // namespace quarry::hashgrid::detail
