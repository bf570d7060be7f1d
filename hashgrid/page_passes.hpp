// page_passes.hpp - what whole-table operations do to one page: statistics, sweep, and which pages a growing table draws from.
// Shared by the executors: executor_host.cpp runs them over private copies of pages, executor_cuda.cu has block-wide forms.
#pragma once

#include "hashgrid/stats.hpp"
#include "hashgrid/view.hpp"

namespace quarry::hashgrid::detail {

constexpr uint32_t kFirstSlotWord = kQryStateSectors * kQrySlotsPerSector;

// Sectors a find reads to reach `key` in word `index` of its page.
QRY_HD inline uint32_t depth_at(const QryPlace& place, uint32_t index) {
  const uint32_t sector = index / kQrySlotsPerSector;
  if (sector == place.home_sector) return 1;
  if (sector == place.next_sector) return 2;
  const uint32_t slot = index - kAreaFirstWord;
  return area_depth(place, slot >= place.area_slot ? slot - place.area_slot : slot + kQryAreaSlots - place.area_slot);
}

// Pages [first, last] of a table of `from_pages` that hold every key of page `page` of a table of `to_pages`: a page is a range of
// mixed keys, in both tables in the same order.
struct PageRange {
  uint32_t first, last;
};
QRY_HD inline PageRange source_pages(uint32_t page, uint32_t to_pages, uint32_t from_pages) {
  // Smallest and largest mixed key m with (m * to_pages) >> 32 == page.
  const uint64_t smallest = ((uint64_t{page} << 32) + to_pages - 1) / to_pages;
  const uint64_t largest = (((uint64_t{page} + 1) << 32) - 1) / to_pages;
  return {uint32_t((smallest * from_pages) >> 32), uint32_t((largest * from_pages) >> 32)};
}

inline void clear_page(uint64_t* page) {
  for (uint32_t i = 0; i < kFirstSlotWord; ++i) page[i] = 0;
  for (uint32_t i = kFirstSlotWord; i < kQryPageWords; ++i) page[i] = kNeverUsed;
}

// Adds one page to counts; load factor and depth percentiles come from finish_stats.
void add_page_stats(Stats& stats, const uint64_t* page, uint32_t page_count);
void finish_stats(Stats& stats, uint32_t page_count);

// Writes the state bits anew from where the keys stand.
void mark_places(uint64_t* page, uint32_t page_count);

// Rebuilds a private page: freed slots become never-used, every key goes to the first bucket of its sequence that has room, state bits
// say no more than the truth. Cannot run out of room: a key only ever moves to a place before its old one.
void sweep_page(uint64_t* page, uint32_t page_count);

}  // namespace quarry::hashgrid::detail
