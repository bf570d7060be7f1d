// SPDX-License-Identifier: Apache-2.0
// arguments.hpp - argument checks of bulk operations on the compact layout, before they touch memory.
#pragma once

#include "hashgrid/compact/view.hpp"
#include "hashgrid/table/arguments.hpp"

namespace quarry::hashgrid::detail {

inline Result<void> check_view(const CompactView& view) {
  QRY_TRY(check_memory(view.words, view.page_count));
  if (view.layout.table.pages + view.layout.stash.pages != view.page_count)
    return fail(ErrorCode::invalid_argument,
                "hash grid: the view's layout is not that of its pages; make it by compact_view()");
  return {};
}

// `inputs`: a second input array, or the keys again.
inline Result<void> check_batch(const CompactView& view, const uint32_t* keys, const uint32_t* inputs, size_t count) {
  QRY_TRY(check_arrays(keys, inputs, count));
  return check_view(view);
}

}  // namespace quarry::hashgrid::detail
