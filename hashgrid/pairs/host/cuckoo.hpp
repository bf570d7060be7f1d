// SPDX-License-Identifier: Apache-2.0
// cuckoo.hpp - cuckoo moves in one page that a host thread owns, for many keys in a row. The other place of each key of
// the page is computed once, by vector arithmetic; a search then reads two bytes a key.
//
// The search and its dead ends are those of pairs/cuckoo.hpp (MemC3; "Algorithmic improvements for fast concurrent
// cuckoo hashing"), which runs on host and device, one key at a time. Used by pages.cpp.
#pragma once

#include "hashgrid/pairs/cuckoo.hpp"
#include "hashgrid/pairs/host/bucket_kernels.hpp"

namespace quarry::hashgrid::detail {

class PageCuckoo {
 public:
  // Selects a page and reads all of it. Until the next begin() its buckets must be changed through put() only.
  void begin(uint64_t* page, uint32_t page_count) {
    page_ = page;
    bucket_kernels().others(page, page_count, others_, room_);
    std::fill_n(seen_, kQrySectorsPerPage, uint16_t{0});
    search_ = 0;
  }

  // An empty slot in one of the two buckets, freed by moves if necessary; kNoSlot if no path of moves ends at one.
  uint32_t make_room(const QryProbeSequence& probes) {
    if (++search_ == kDeadEnd) {
      std::fill_n(seen_, kQrySectorsPerPage, uint16_t{0});
      search_ = 1;
    }
    uint32_t head = 0, tail = 0;
    for (const uint32_t start : {probes.home_sector, probes.second_sector}) {
      if (room_[start] != 0) return empty_word_of(page_, start);
      if (seen_[start] == kDeadEnd) continue;
      seen_[start] = search_;
      arrived_from_[start] = uint16_t(kRoot);
      queue_[tail++] = uint16_t(start);
    }
    while (head != tail) {
      const uint32_t sector = queue_[head++];
      for (uint32_t from = sector * kQrySlotsPerSector; from < (sector + 1) * kQrySlotsPerSector; ++from) {
        const uint32_t other = others_[from] & kOtherSector;
        if (room_[other] != 0) return move_row(from, empty_word_of(page_, other));
        // No branch on whether the search was here before: it would be unpredictable.
        const bool fresh = seen_[other] != search_ && seen_[other] != kDeadEnd;
        arrived_from_[other] = fresh ? uint16_t(from) : arrived_from_[other];
        seen_[other] = fresh ? search_ : seen_[other];
        queue_[tail] = uint16_t(other);
        tail += fresh;
      }
    }
    // Only full buckets whose keys cannot leave them: dead ends for every later search, because keys are only added.
    for (uint32_t i = 0; i < tail; ++i) seen_[queue_[i]] = kDeadEnd;
    return kNoSlot;
  }

  // Puts a pair into an empty slot of one of its buckets.
  void put(uint32_t index, uint64_t pair, const QryProbeSequence& probes) {
    const uint32_t sector = index / kQrySlotsPerSector;
    const bool at_home = sector == probes.home_sector;
    page_[index] = pair;
    others_[index] = uint16_t(at_home ? probes.second_sector | kAtHome : probes.home_sector);
    --room_[sector];
    note_place(page_, probes, index);
  }

 private:
  // Moves back to front, until the freed slot is in a start bucket.
  uint32_t move_row(uint32_t from, uint32_t to) {
    --room_[to / kQrySlotsPerSector];
    for (;;) {
      const uint32_t old_sector = from / kQrySlotsPerSector;
      const bool was_home = (others_[from] & kAtHome) != 0;
      page_[to] = page_[from];
      others_[to] = uint16_t(old_sector | (was_home ? 0u : kAtHome));
      if (was_home) page_[qry_state_word(old_sector)] |= uint64_t{kQryBucketSpilled} << qry_state_shift(old_sector);
      to = from;
      from = arrived_from_[old_sector];
      if (from == kRoot) break;
    }
    page_[to] = kNeverUsed;
    ++room_[to / kQrySlotsPerSector];
    return to;
  }

  uint64_t* page_ = nullptr;
  uint16_t search_ = 0;
  // By word: the other bucket of its key, and whether the key is in its home bucket.
  uint16_t others_[kQryPageWords];
  // By sector.
  uint8_t room_[kQrySectorsPerPage];           // empty slots
  uint16_t seen_[kQrySectorsPerPage];          // the last search that visited it, or kDeadEnd
  uint16_t arrived_from_[kQrySectorsPerPage];  // the word whose key would move here
  uint16_t queue_[kQrySectorsPerPage];
};

}  // namespace quarry::hashgrid::detail
