// SPDX-License-Identifier: Apache-2.0
// child.hpp - one region's table, and where it is.
#pragma once

#include <cstdint>

#include "base/memory_source.hpp"

namespace quarry::hashgrid::paged {

constexpr uint32_t kNowhere = UINT32_MAX;
constexpr uint64_t kMostChildPages = uint64_t{1} << 21;  // more slots than there are keys in a region

// A region's table. It is in the executor's memory, in the cache, or in both; without one, it is in neither. In the
// cache alone, it is always current.
struct Child {
  uint32_t region = 0, phase = 0;
  uint64_t keys = 0, least_keys = 0;
  bool counted = true;                // false: `keys` is of before a part that failed twice
  uint32_t at = kNowhere, pages = 0;  // its run in the executor's memory
  MemoryBlock cached;
  uint32_t cached_pages = 0;
  bool current = false;  // the cache has what the table has
  uint32_t users = 0;    // jobs that need it where it is
  bool moving = false;   // it is on its way in or out
  uint64_t last_use = 0;
  size_t among_residents = 0;  // its place in the list of those

  bool resident() const { return at != kNowhere; }
  bool has_table() const { return resident() || cached_pages != 0; }
};

}  // namespace quarry::hashgrid::paged
