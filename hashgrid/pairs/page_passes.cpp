// SPDX-License-Identifier: Apache-2.0
// page_passes.cpp - one page of the pairs layout at a time, on words that one thread owns.
#include "hashgrid/pairs/page_passes.hpp"

#include <algorithm>

namespace quarry::hashgrid::detail {

void add_page_stats(Stats& stats, const uint64_t* words, uint32_t page, uint32_t page_count) {
  uint32_t live = 0;
  for (uint32_t sector = kQryStateSectors; sector < kQrySectorsPerPage; ++sector) {
    const auto [fill, freed] =
        sector_stats(PrivateWords::load_bucket(words + sector * kQrySlotsPerSector), page * kQrySectorsPerPage + sector,
                     page_count, [&](uint32_t depth) { ++stats.depth_histogram[depth - 1]; });
    stats.freed += freed;
    live += fill;
    if (sector >= kQryStashFirstSector) {
      stats.overflow_live += fill;
    } else {
      ++stats.bucket_fill[fill];
      stats.spilled_buckets += bucket_state<PrivateWords>(words, sector) & kQryBucketSpilled;
    }
  }
  stats.live += live;
  stats.fullest_page_live = std::max(stats.fullest_page_live, live);
}

namespace {

// The first empty slot of a bucket in the key's order, or kNoSlot.
uint32_t room_in(const uint64_t* page, uint32_t sector, const QryProbeSequence& probes) {
  for (uint32_t n = 0; n < kQrySlotsPerSector; ++n) {
    const uint32_t index = bucket_word(sector, probes, n);
    if (is_empty(page[index])) return index;
  }
  return kNoSlot;
}

}  // namespace

void sweep_page(const GridView& view, uint32_t page_index) {
  uint64_t* const page = view.words + size_t{page_index} * kQryPageWords;
  const uint32_t first_sector = page_index * kQrySectorsPerPage;
  for (uint32_t i = kFirstSlotWord; i < kQryOwnWords; ++i)
    if (is_empty(page[i])) page[i] = kNeverUsed;

  // Moves keys forward until no move is possible: then each key outside its home bucket has a full home bucket, which
  // is (I) of view_impl.hpp.
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t index = kFirstSlotWord; index < kQryOwnWords; ++index) {
      if (is_empty(page[index])) continue;
      const QryProbeSequence probes = qry_probe_sequence(low(page[index]), view.page_count);
      const uint32_t to =
          index / kQrySlotsPerSector == probes.home_sector ? kNoSlot : room_in(page, probes.home_sector, probes);
      if (to == kNoSlot) continue;
      page[to] = page[index];
      page[index] = kNeverUsed;
      moved = true;
    }
  }

  const bool in_stash = any_in_stash(page);
  std::fill(page, page + kFirstSlotWord, 0);
  for (uint32_t index = kFirstSlotWord; index < kQryOwnWords; ++index) {
    if (is_empty(page[index])) continue;
    const QryProbeSequence probes = qry_probe_sequence(low(page[index]), view.page_count);
    if (depth_at(probes, first_sector + index / kQrySlotsPerSector, view.page_count) != 1)
      ensure_state<PrivateWords>(page, probes.home_sector, kQryBucketSpilled);
  }
  if (!in_stash) return;
  // The page's keys in the stash: no other thread touches their slots.
  for_stash(view, qry_stash_group(page_index, view.page_count), [&](uint64_t* slot) {
    uint64_t word = SharedWords::load(slot);
    if (is_empty(word)) return;
    const QryProbeSequence probes = qry_probe_sequence(low(word), view.page_count);
    if (probes.page != page_index) return;
    uint32_t bits = 0, to = room_in(page, probes.home_sector, probes);
    if (to == kNoSlot) {
      bits = kQryBucketSpilled;
      to = room_in(page, probes.second_sector, probes);
    }
    if (to == kNoSlot) {
      bits |= kQryBucketToStash;
    } else {
      page[to] = word;
      SharedWords::exchange(slot, word, kNeverUsed, false);
    }
    ensure_state<PrivateWords>(page, probes.home_sector, bits);
  });
}

void sweep_stash(const GridView& view, uint32_t group_index) {
  const QryStashGroup group = qry_stash_group(group_index * kQryGroupPages, view.page_count);
  for_stash(view, group, [](uint64_t* slot) {
    if (is_empty(*slot)) *slot = kNeverUsed;
  });
  for (bool moved = true; moved;) {
    moved = false;
    for_stash(view, group, [&](uint64_t* slot) {
      if (is_empty(*slot)) return;
      const QryProbeSequence probes = qry_probe_sequence(low(*slot), view.page_count);
      const auto sector = uint32_t(size_t(slot - view.words) / kQrySlotsPerSector);
      for (uint32_t n = 0; n < kQryStashTries && qry_stash_sector(probes, group, n) != sector; ++n) {
        uint64_t* const first = stash_words(view, probes, group, n);
        uint64_t* const to = std::find_if(first, first + kQrySlotsPerSector, is_empty);
        if (to == first + kQrySlotsPerSector) continue;
        *to = *slot;
        *slot = kNeverUsed;
        moved = true;
        return;
      }
    });
  }
}

}  // namespace quarry::hashgrid::detail
