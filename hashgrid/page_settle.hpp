// page_settle.hpp - placing keys that plain insertion refused: cuckoo moves inside one page that nobody else touches.
// One text for the host (a private page) and for one thread of a CUDA block (the page in shared memory).
//
// Literature: bucketised cuckoo hashing with breadth-first search for the shortest row of moves follows B. Fan, D. Andersen,
// M. Kaminsky, "MemC3", 2013, and X. Li et al., "Algorithmic improvements for fast concurrent cuckoo hashing", 2014. The overflow area
// plays the part of the stash of A. Kirsch, M. Mitzenmacher, U. Wieder, "More robust hashing: cuckoo hashing with a stash", 2009.
#pragma once

#include "hashgrid/page_passes.hpp"

namespace quarry::hashgrid::detail {

constexpr uint16_t kDeadEnd = 0xFFFF;

// Search memory for one page; reset() when turning to another. Buckets are numbered from the page's first bucket.
struct SettleScratch {
  uint16_t arrived_from[kQryBucketsPerPage];  // the word whose key would move into this bucket
  uint16_t queue[kQryBucketsPerPage];         // sectors to look at
  uint16_t seen[kQryBucketsPerPage];          // the search that came here last, or kDeadEnd
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

// Says in the state bits that a key stands in `index`; true also for bits that are set already.
QRY_HD inline void note_place(uint64_t* page, const QryPlace& place, uint32_t index) {
  const uint32_t sector = index / kQrySlotsPerSector;
  if (sector == place.home_sector) return;
  const uint32_t bits = kQryBucketSpilled | (sector == place.next_sector ? 0u : kQryBucketToArea);
  page[qry_state_word(place.home_sector)] |= uint64_t{bits} << qry_state_shift(place.home_sector);
}

// Frees a slot in one of the two buckets by moving other keys between their own two buckets. Returns the slot, or kNoSlot if no
// row of moves ends at an empty slot. Every bucket on the way stays full, so (I) of view_impl.hpp holds.
// A search that fails has seen only full buckets whose keys cannot leave that set: they are dead ends for every later search, as keys are
// only added here. So all failing searches of a page together look at each bucket once: a full page costs little more than a look.
QRY_HD inline uint32_t make_room(uint64_t* page, const QryPlace& place, uint32_t page_count, SettleScratch& scratch) {
  if (++scratch.search == kDeadEnd) scratch.reset(), scratch.search = 1;
  uint32_t head = 0, tail = 0;
  const uint32_t starts[2] = {place.home_sector, place.next_sector};
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
      const QryPlace mover = qry_place_stored(low(page[from]), page_count);
      const uint32_t other = mover.home_sector == sector ? mover.next_sector : mover.home_sector;
      uint16_t& seen = scratch.seen[other - kQryStateSectors];
      if (seen == scratch.search || seen == kDeadEnd) continue;
      seen = scratch.search;
      scratch.arrived_from[other - kQryStateSectors] = uint16_t(from);
      uint32_t to = empty_word_of(page, other);
      if (to == kNoSlot) {
        scratch.queue[tail++] = uint16_t(other);
        continue;
      }
      // Move back to front, until the slot that came free lies in a start bucket.
      for (uint32_t step = from; step != kRoot;) {
        page[to] = page[step];
        note_place(page, qry_place_stored(low(page[to]), page_count), to);
        to = step;
        step = scratch.arrived_from[step / kQrySlotsPerSector - kQryStateSectors];
      }
      return to;
    }
  }
  for (uint32_t i = 0; i < tail; ++i) scratch.seen[scratch.queue[i] - kQryStateSectors] = kDeadEnd;
  return kNoSlot;
}

// insert with moves, for a key known to be absent: the two buckets, then a row of moves, then the overflow area.
QRY_HD inline Outcome place_absent(uint64_t* page, const QryPlace& place, uint32_t key, uint32_t value, uint32_t page_count, SettleScratch& scratch) {
  uint32_t index = make_room(page, place, page_count, scratch);
  for (uint32_t n = 0; index == kNoSlot && n < kQryAreaSlots; ++n)
    if (is_empty(page[area_word(place, n)])) index = area_word(place, n);
  if (index == kNoSlot) return Outcome::full;
  page[index] = pair_word(key, value);
  note_place(page, place, index);
  return Outcome::inserted;
}
QRY_HD inline Outcome place_with_moves(uint64_t* page, const QryPlace& place, uint32_t key, uint32_t value, uint32_t page_count, SettleScratch& scratch) {
  if (locate<PrivateWords>(page, place, key).index != kNoSlot) return Outcome::present;
  return place_absent(page, place, key, value, page_count, scratch);
}

// Moves keys of the overflow area into buckets where moves make room for them; what stays is probed again from an empty area, so that
// no never-used slot stands before a key. The state bits may say too much afterwards; mark_places() makes them exact.
QRY_HD inline void drain_area(uint64_t* page, uint32_t page_count, SettleScratch& scratch) {
  uint64_t left[kQryAreaSlots];
  for (uint32_t i = 0; i < kQryAreaSlots; ++i) {
    left[i] = page[kAreaFirstWord + i];
    page[kAreaFirstWord + i] = kNeverUsed;
  }
  for (uint32_t i = 0; i < kQryAreaSlots; ++i) {
    if (is_empty(left[i])) continue;
    const QryPlace place = qry_place_stored(low(left[i]), page_count);
    uint32_t index = make_room(page, place, page_count, scratch);
    for (uint32_t n = 0; index == kNoSlot; ++n)  // ends: no more keys come back than the area held
      if (is_empty(page[area_word(place, n)])) index = area_word(place, n);
    page[index] = left[i];
    note_place(page, place, index);
  }
}

}  // namespace quarry::hashgrid::detail
