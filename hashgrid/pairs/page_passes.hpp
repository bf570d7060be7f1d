// SPDX-License-Identifier: Apache-2.0
// page_passes.hpp - whole-table operations on one page: statistics, sweep, and which pages a growing table reads from.
// Each host thread runs them on pages of its own. pairs/cuda/page_kernels.cuh has block-wide versions.
#pragma once

#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/stats.hpp"

namespace quarry::hashgrid::detail {

constexpr uint32_t kFirstSlotWord = kQryStateSectors * kQrySlotsPerSector;

// Sectors a find reads to reach a key in `sector`, counted from the table's start.
QRY_HD inline uint32_t depth_at(const QryProbeSequence& probes, uint32_t sector, uint32_t page_count) {
  const uint32_t in_page = sector - probes.page * kQrySectorsPerPage;
  if (in_page == probes.home_sector) return 1;
  if (in_page == probes.second_sector) return 2;
  const QryStashGroup group = qry_stash_group(probes.page, page_count);
  uint32_t n = 0;
  while (n < kQryStashTries && qry_stash_sector(probes, group, n) != sector) ++n;
  return 3 + n;
}

// Whether the page's states allow keys of it in the stash.
QRY_HD inline bool any_in_stash(const uint64_t* states) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < kFirstSlotWord; ++i) all |= states[i];
  return (all & 0xAAAAAAAAAAAAAAAAu) != 0;
}

// Pages [first, last] of a table of `from_pages` that hold every key of page `page` of a table of `to_pages`: a page is
// a range of mixed keys, in both tables in the same order.
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

// What one sector of slots adds to a table's statistics.
struct SectorStats {
  uint32_t live, freed;
};
// use(depth) for each key of a sector, which is counted from the table's start. One text for host threads and kernels.
template <class Use>
QRY_HD inline SectorStats sector_stats(const Bucket& bucket, uint32_t sector, uint32_t page_count, const Use& use) {
  SectorStats stats{0, 0};
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (uint32_t i = 0; i < kQrySlotsPerSector; ++i) {
    const uint64_t word = bucket.slot[i];
    if (is_empty(word)) {
      stats.freed += word != kNeverUsed;
      continue;
    }
    ++stats.live;
    use(depth_at(qry_probe_sequence(low(word), page_count), sector, page_count));
  }
  return stats;
}

// Adds page number `page`, of which `words` is a copy, to the counts. finish_stats() of table/stats.hpp computes load
// factor and depth percentiles.
void add_page_stats(Stats& stats, const uint64_t* words, uint32_t page, uint32_t page_count);

// use(word) for every slot of a group's stash.
template <class Use>
inline void for_stash(const GridView& view, const QryStashGroup& group, const Use& use) {
  for (uint32_t page = group.first; page < group.first + group.count; ++page)
    for (uint32_t i = kQryOwnWords; i < kQryPageWords; ++i) use(view.words + size_t{page} * kQryPageWords + i);
}

// Rebuilds the buckets of one page in place: freed slots become never-used, every key (those of the stash too) moves to
// the first bucket of its sequence that has room, and state bits become exact. It cannot run out of room: a key only
// ever moves to an earlier place. Several pages may be swept at once; sweep_stash() of their group must follow.
void sweep_page(const GridView& view, uint32_t page);
// The same for the stash of the group with this index.
void sweep_stash(const GridView& view, uint32_t group);

}  // namespace quarry::hashgrid::detail
