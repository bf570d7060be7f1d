// SPDX-License-Identifier: Apache-2.0
// view.hpp - one key of a paged grid, from any host thread or kernel that reads the executor's memory: its value, or
// that there is none, or that its region is not resident.
//
// The directory is a table of the pairs layout, region -> place among the resident tables. It knows the regions that
// are away too, so that "absent" is known without them.
#pragma once

#include <cstdint>

#include "hashgrid/pairs/view.hpp"

namespace quarry::hashgrid {

enum class PagedAnswer : uint8_t { present, absent, not_resident };
struct PagedFound {
  uint32_t value;  // kQryReservedValue unless present
  PagedAnswer answer;
};

// A trivially copyable reference, to memory that this thread or kernel can dereference. Valid until the grid's next
// call that is not const; kernels that use it must be done by then. Nobody writes what it refers to meanwhile.
struct PagedView {
  static constexpr uint32_t kAway = 0xFFFFFFFEu;  // the directory's value for a region that is not resident
  GridView directory;
  const GridView* tables = nullptr;
};

// Two look-ups; those in the directory stay in cache.
QRY_HD inline PagedFound find(const PagedView& view, uint32_t region, uint32_t key) {
  const uint32_t place = find(ReadOnly<GridView>{view.directory}, region).value;
  if (place == kQryReservedValue) return {kQryReservedValue, PagedAnswer::absent};
  if (place == PagedView::kAway) return {kQryReservedValue, PagedAnswer::not_resident};
  const uint32_t value = find(ReadOnly<GridView>{view.tables[place]}, key).value;
  return {value, value == kQryReservedValue ? PagedAnswer::absent : PagedAnswer::present};
}

}  // namespace quarry::hashgrid
