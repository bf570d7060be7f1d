// SPDX-License-Identifier: Apache-2.0
// arguments.hpp - argument checks of bulk operations on the pairs layout, before they touch memory.
#pragma once

#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/arguments.hpp"

namespace quarry::hashgrid::detail {

inline Result<void> check_view(const GridView& view) {
  QRY_TRY(check_memory(view.words, view.page_count));
  if (view.phase == kQryPhaseNever)
    return fail(ErrorCode::invalid_argument, "hash grid: phase 0xFFFFFFFF means never used; begin at 0");
  return {};
}

// `inputs`: a second input array, or the keys again.
inline Result<void> check_batch(const GridView& view, const uint32_t* keys, const uint32_t* inputs, size_t count) {
  QRY_TRY(check_arrays(keys, inputs, count));
  return check_view(view);
}

}  // namespace quarry::hashgrid::detail
