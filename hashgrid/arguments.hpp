// SPDX-License-Identifier: Apache-2.0
// arguments.hpp - what every executor refuses before it touches memory.
#pragma once

#include <string>

#include "hashgrid/compact/view.hpp"
#include "base/result.hpp"
#include "hashgrid/view.hpp"

namespace quarry::hashgrid::detail {

inline Result<void> check_view(const GridView& view) {
  if (view.words == nullptr || view.page_count == 0) return fail(ErrorCode::invalid_argument, "hash grid: the view has no memory or no page");
  if (view.phase == kQryPhaseNever) return fail(ErrorCode::invalid_argument, "hash grid: phase 0xFFFFFFFF means never used; begin at 0");
  return {};
}

inline Result<void> check_view(const CompactView& view) {
  if (view.words == nullptr || view.page_count == 0) return fail(ErrorCode::invalid_argument, "hash grid: the view has no memory or no page");
  if (view.layout.table.pages + view.layout.stash.pages != view.page_count)
    return fail(ErrorCode::invalid_argument, "hash grid: the view's layout is not that of its pages; make it by compact_view()");
  return {};
}

// `inputs`: a second array the call reads, or the keys again.
template <class View>
inline Result<void> check_batch(const View& view, const uint32_t* keys, const uint32_t* inputs, size_t count) {
  if (count != 0 && (keys == nullptr || inputs == nullptr))
    return fail(ErrorCode::invalid_argument, "hash grid: " + std::to_string(count) + " keys announced, but the key or value array is null");
  return check_view(view);
}

}  // namespace quarry::hashgrid::detail
