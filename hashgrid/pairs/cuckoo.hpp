// SPDX-License-Identifier: Apache-2.0
// cuckoo.hpp - placing keys that plain insertion refused, by cuckoo moves inside one page with a single owner. One text
// for the host (a private page) and for one thread of a CUDA block (the page in shared memory).
//
// Literature: bucketised cuckoo hashing with breadth-first search for the shortest path of moves follows B. Fan, D.
// Andersen, M. Kaminsky, "MemC3", 2013, and X. Li et al., "Algorithmic improvements for fast concurrent cuckoo
// hashing", 2014; the stash follows A. Kirsch, M. Mitzenmacher, U. Wieder, "More robust hashing: cuckoo hashing with a
// stash", 2009.
#pragma once

#include "hashgrid/pairs/page_passes.hpp"

namespace quarry::hashgrid::detail {

constexpr uint16_t kDeadEnd = 0xFFFF;

// Search memory for one page; reset() before another page. Buckets are numbered from the page's first bucket.
struct CuckooScratch {
  uint16_t arrived_from[kQryBucketsPerPage];  // the word whose key would move into this bucket
  uint16_t queue[kQryBucketsPerPage];         // sectors to search
  uint16_t seen[kQryBucketsPerPage];          // the last search that visited this bucket, or kDeadEnd
  uint16_t search;

  QRY_HD void reset() {
    for (uint32_t i = 0; i < kQryBucketsPerPage; ++i) seen[i] = 0;
    search = 0;
  }
};

constexpr uint32_t kRoot = 0;  // no slot has word 0: it holds bucket states

QRY_HD inline uint32_t empty_word_of(const uint64_t* page, uint32_t sector) {
  for (uint32_t i = 0; i < kQrySlotsPerSector; ++i)
    if (is_empty(page[sector * kQrySlotsPerSector + i])) return sector * kQrySlotsPerSector + i;
  return kNoSlot;
}

// Sets the state bits for a key at `index` in one of its buckets; valid also if they are set already.
QRY_HD inline void note_place(uint64_t* page, const QryProbeSequence& probes, uint32_t index) {
  const uint32_t sector = index / kQrySlotsPerSector;
  if (sector == probes.home_sector) return;
  page[qry_state_word(probes.home_sector)] |= uint64_t{kQryBucketSpilled} << qry_state_shift(probes.home_sector);
}
QRY_HD inline bool place_in_stash(uint64_t* page, const GridView& view, const QryProbeSequence& probes, uint64_t pair) {
  if (claim_in_stash<SharedWords>(view, probes, pair).slot == nullptr) return false;
  page[qry_state_word(probes.home_sector)] |= uint64_t{kQryBucketSpilled | kQryBucketToStash}
                                              << qry_state_shift(probes.home_sector);
  return true;
}

// Frees a slot in one of the two buckets by moving other keys between their own two buckets. Returns the slot, or
// kNoSlot if no path of moves ends at an empty slot. Every bucket on the path stays full, so (I) of view_impl.hpp
// holds. A failed search has visited only full buckets whose keys cannot leave that set. Keys are only added here, so
// these buckets are dead ends for every later search. So all failing searches of a page together visit each bucket
// once: a full page costs little more than one search.
QRY_HD inline uint32_t make_room(uint64_t* page, const QryProbeSequence& probes, uint32_t page_count,
                                 CuckooScratch& scratch) {
  if (++scratch.search == kDeadEnd) scratch.reset(), scratch.search = 1;
  uint32_t head = 0, tail = 0;
  const uint32_t starts[2] = {probes.home_sector, probes.second_sector};
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t empty = empty_word_of(page, starts[i]);
    if (empty != kNoSlot) return empty;
    uint16_t& seen = scratch.seen[starts[i] - kQryStateSectors];
    if (seen == kDeadEnd) continue;
    seen = scratch.search;
    scratch.arrived_from[starts[i] - kQryStateSectors] = uint16_t(kRoot);
    scratch.queue[tail++] = uint16_t(starts[i]);
  }
  while (head != tail) {
    const uint32_t sector = scratch.queue[head++];
    for (uint32_t i = 0; i < kQrySlotsPerSector; ++i) {
      const uint32_t from = sector * kQrySlotsPerSector + i;
      const QryProbeSequence mover = qry_probe_sequence(low(page[from]), page_count);
      const uint32_t other = mover.home_sector == sector ? mover.second_sector : mover.home_sector;
      uint16_t& seen = scratch.seen[other - kQryStateSectors];
      if (seen == scratch.search || seen == kDeadEnd) continue;
      seen = scratch.search;
      scratch.arrived_from[other - kQryStateSectors] = uint16_t(from);
      uint32_t to = empty_word_of(page, other);
      if (to == kNoSlot) {
        scratch.queue[tail++] = uint16_t(other);
        continue;
      }
      // Moves back to front, until the freed slot is in a start bucket.
      for (uint32_t step = from; step != kRoot;) {
        page[to] = page[step];
        note_place(page, qry_probe_sequence(low(page[to]), page_count), to);
        to = step;
        step = scratch.arrived_from[step / kQrySlotsPerSector - kQryStateSectors];
      }
      return to;
    }
  }
  for (uint32_t i = 0; i < tail; ++i) scratch.seen[scratch.queue[i] - kQryStateSectors] = kDeadEnd;
  return kNoSlot;
}

// Moves the page's key from this slot of the stash back into a bucket, if moves make room for it: plain insertion puts
// keys into the stash that need not be there, and other keys need the room.
QRY_HD inline void bring_back(uint64_t* page, const GridView& view, uint64_t* slot, CuckooScratch& scratch) {
  uint64_t word = SharedWords::load(slot);
  const QryProbeSequence probes = qry_probe_sequence(low(word), view.page_count);
  const uint32_t index = make_room(page, probes, view.page_count, scratch);
  if (index == kNoSlot) return;
  page[index] = word;
  note_place(page, probes, index);
  // Not "never used": keys of other pages may have gone past it.
  SharedWords::exchange(slot, word, freed_word(view.phase == 0 ? 1 : view.phase - 1), false);
}

// For an absent key whose two buckets are full and that no moves help: puts it into the stash. If its stash sectors are
// full, a key of its two buckets moves to the stash instead. `page` is the key's page, in the table or a copy; the
// caller owns it.
QRY_HD inline Outcome place_behind(uint64_t* page, const GridView& view, const QryProbeSequence& probes,
                                   uint64_t pair) {
  if (place_in_stash(page, view, probes, pair)) return Outcome::inserted;
  for (uint32_t i = 0; i < 2 * kQrySlotsPerSector; ++i) {
    const uint32_t sector = i < kQrySlotsPerSector ? probes.home_sector : probes.second_sector;
    const uint32_t from = sector * kQrySlotsPerSector + i % kQrySlotsPerSector;
    if (!place_in_stash(page, view, qry_probe_sequence(low(page[from]), view.page_count), page[from])) continue;
    page[from] = pair;
    note_place(page, probes, from);
    return Outcome::inserted;
  }
  return Outcome::full;
}

// insert with moves, for a key known to be absent: the two buckets, then a path of moves, then the stash.
QRY_HD inline Outcome place_absent(uint64_t* page, const GridView& view, const QryProbeSequence& probes, uint64_t pair,
                                   CuckooScratch& scratch) {
  const uint32_t index = make_room(page, probes, view.page_count, scratch);
  if (index == kNoSlot) return place_behind(page, view, probes, pair);
  page[index] = pair;
  note_place(page, probes, index);
  return Outcome::inserted;
}
QRY_HD inline Outcome place_by_cuckoo(uint64_t* page, const GridView& view, uint64_t pair, CuckooScratch& scratch) {
  const QryProbeSequence probes = qry_probe_sequence(low(pair), view.page_count);
  if (locate<PrivateWords, SharedWords>(page, view, probes, low(pair)).slot != nullptr) return Outcome::present;
  return place_absent(page, view, probes, pair, scratch);
}

}  // namespace quarry::hashgrid::detail
