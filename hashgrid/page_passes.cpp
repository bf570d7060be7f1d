#include "hashgrid/page_passes.hpp"

#include <algorithm>

namespace quarry::hashgrid::detail {

void add_page_stats(Stats& stats, const uint64_t* page, uint32_t page_count) {
  uint32_t live = 0;
  for (uint32_t sector = kQryStateSectors; sector < kQrySectorsPerPage; ++sector) {
    uint32_t fill = 0;
    for (uint32_t i = 0; i < kQrySlotsPerSector; ++i) {
      const uint32_t index = sector * kQrySlotsPerSector + i;
      const uint64_t word = page[index];
      if (is_empty(word)) {
        stats.freed += word != kNeverUsed;
        continue;
      }
      ++fill;
      ++stats.depth_histogram[std::min(depth_at(qry_place_stored(low(word), page_count), index), kDepthBins) - 1];
    }
    live += fill;
    if (sector >= kQryAreaFirstSector) {
      stats.overflow_live += fill;
    } else {
      ++stats.bucket_fill[fill];
      stats.spilled_buckets += bucket_state<PrivateWords>(page, sector) & kQryBucketSpilled;
    }
  }
  stats.live += live;
  stats.fullest_page_live = std::max(stats.fullest_page_live, live);
}

void finish_stats(Stats& stats, uint32_t page_count) {
  stats.page_count = page_count;
  stats.slots = uint64_t{page_count} * kQrySlotsPerPage;
  stats.size_bytes = uint64_t{page_count} * kQryPageBytes;
  stats.load_factor = stats.slots == 0 ? 0.0 : double(stats.live) / double(stats.slots);
  uint64_t seen = 0, weighted = 0;
  for (uint32_t bin = 0; bin < kDepthBins; ++bin) {
    const uint64_t here = stats.depth_histogram[bin];
    if (here == 0) continue;
    const uint32_t depth = bin + 1;
    // The p-th percentile: the smallest depth that at least p% of the keys do not exceed.
    if (seen * 2 < stats.live && (seen + here) * 2 >= stats.live) stats.depth_p50 = depth;
    if (seen * 100 < stats.live * 99 && (seen + here) * 100 >= stats.live * 99) stats.depth_p99 = depth;
    stats.depth_max = depth;
    seen += here;
    weighted += here * depth;
  }
  stats.depth_mean = seen == 0 ? 0.0 : double(weighted) / double(seen);
}

namespace {

// The first empty slot of a bucket in the key's order, or kNoSlot.
uint32_t room_in(const uint64_t* page, uint32_t sector, const QryPlace& place) {
  for (uint32_t n = 0; n < kQrySlotsPerSector; ++n) {
    const uint32_t index = bucket_word(sector, place, n);
    if (is_empty(page[index])) return index;
  }
  return kNoSlot;
}

}  // namespace

void mark_places(uint64_t* page, uint32_t page_count) {
  for (uint32_t i = 0; i < kFirstSlotWord; ++i) page[i] = 0;
  for (uint32_t index = kFirstSlotWord; index < kQryPageWords; ++index) {
    if (is_empty(page[index])) continue;
    const QryPlace place = qry_place_stored(low(page[index]), page_count);
    const uint32_t depth = depth_at(place, index);
    if (depth > 1) ensure_state<PrivateWords>(page, place.home_sector, kQryBucketSpilled | (depth > 2 ? kQryBucketToArea : 0u));
  }
}

void sweep_page(uint64_t* page, uint32_t page_count) {
  for (uint32_t i = kFirstSlotWord; i < kQryPageWords; ++i)
    if (is_empty(page[i])) page[i] = kNeverUsed;

  // Forward moves until none is possible: then each key outside its home bucket has a full home bucket, which is (I) of view_impl.hpp.
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t index = kFirstSlotWord; index < kQryPageWords; ++index) {
      if (is_empty(page[index])) continue;
      const QryPlace place = qry_place_stored(low(page[index]), page_count);
      const uint32_t depth = depth_at(place, index);
      uint32_t to = depth > 1 ? room_in(page, place.home_sector, place) : kNoSlot;
      if (to == kNoSlot && depth > 2) to = room_in(page, place.next_sector, place);
      if (to == kNoSlot) continue;
      page[to] = page[index];
      page[index] = kNeverUsed;
      moved = true;
    }
  }

  // What stays in the area is probed again from an empty one: no gap may stand before a key.
  uint64_t left[kQryAreaSlots];
  std::copy(page + kAreaFirstWord, page + kQryPageWords, left);
  std::fill(page + kAreaFirstWord, page + kQryPageWords, kNeverUsed);
  for (const uint64_t word : left) {
    if (is_empty(word)) continue;
    const QryPlace place = qry_place_stored(low(word), page_count);
    uint32_t n = 0;
    while (!is_empty(page[area_word(place, n)])) ++n;
    page[area_word(place, n)] = word;
  }

  mark_places(page, page_count);
}

}  // namespace quarry::hashgrid::detail
