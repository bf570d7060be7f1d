// SPDX-License-Identifier: Apache-2.0
// find.hpp - locates the keys of a batch, block by block: while a core compares, it prefetches the next block and the
// second buckets of this one. No branch depends on the content of a key's home bucket: undecided keys are listed, and
// the list is processed.
//
//   fill ─► home buckets fetched ─► looked at ─► open ones: state bits, second buckets fetched ─► looked at ─► stash
//   ─► use
//
// Not the key-by-key operations of view_impl.hpp. It follows their look-up step by step, so it may run beside any of
// them. Used by operations.cpp and pages.cpp.
#pragma once

#include <algorithm>
#include <bit>

#include "hashgrid/pairs/host/bucket_kernels.hpp"
#include "hashgrid/pairs/view.hpp"

namespace quarry::hashgrid::detail {

// A table of up to this many pages (1 MiB) stays in cache, where prefetching gains nothing.
constexpr uint32_t kPagesInCache = 32;

struct Block {
  // From `fill`: stored keys, and whether a reserved one is among them; `tags` are private to `fill`.
  size_t count = 0;
  bool some_refused = false;
  uint32_t stored[kKeysPerBlock], tags[kKeysPerBlock];
  // For `use`: the table's value for each key, or the reserved value; the sectors read for it (0 for a reserved key);
  // for present keys, whose masks & kMaskKeys is not 0, also their sector.
  uint32_t values[kKeysPerBlock], sectors[kKeysPerBlock];
  uint8_t depths[kKeysPerBlock], masks[kKeysPerBlock];

  bool there(size_t i) const { return (masks[i] & kMaskKeys) != 0; }
  uint64_t* slot(const GridView& view, size_t i) const {
    return view.words + size_t{sectors[i]} * kQrySlotsPerSector + std::countr_zero(masks[i] & kMaskKeys) / 2;
  }

 private:
  template <bool kWrites, class Fill, class Use>
  friend void for_blocks(const GridView& view, Fill&& fill, const Use& use);

  template <bool kWrites>
  static void fetch(const GridView& view, const uint32_t* sectors, size_t count) {
    if (view.page_count <= kPagesInCache) return;
    for (size_t j = 0; j < count; ++j)
      __builtin_prefetch(view.words + size_t{sectors[j]} * kQrySlotsPerSector, kWrites);
  }
  template <bool kWrites>
  void prepare(const GridView& view, const BucketKernels& kernels) {
    kernels.home_buckets(stored, count, view.page_count, sectors);
    fetch<kWrites>(view, sectors, count);
  }
  template <bool kWrites>
  void probe_home(const GridView& view, const BucketKernels& kernels) {
    const size_t opens = kernels.find(view.words, stored, sectors, count, values, masks, open_);
    std::fill_n(depths, kKeysPerBlock, uint8_t{1});
    // Only keys whose home bucket has overflowed go on.
    spilled_ = 0;
    for (size_t n = 0; n < opens; ++n) {
      const uint8_t i = open_[n];
      const uint32_t page = sectors[i] / kQrySectorsPerPage, sector = sectors[i] % kQrySectorsPerPage;
      const uint32_t state = bucket_state<SharedWords>(view.words + size_t{page} * kQryPageWords, sector);
      values[i] = kQryReservedValue;
      open_[spilled_] = i;
      states_[spilled_] = uint8_t(state);
      second_stored_[spilled_] = stored[i];
      spilled_ += state & kQryBucketSpilled;
    }
    kernels.second_buckets(second_stored_, spilled_, view.page_count, second_sectors_);
    fetch<kWrites>(view, second_sectors_, spilled_);
  }
  void probe_further(const GridView& view, const BucketKernels& kernels) {
    uint32_t second_values[kKeysPerBlock];
    uint8_t second_masks[kKeysPerBlock], found[kKeysPerBlock], neither[kKeysPerBlock];
    kernels.find(view.words, second_stored_, second_sectors_, spilled_, second_values, second_masks, neither);
    // Keys in neither bucket keep their current result; most absent keys end here.
    size_t founds = 0;
    for (size_t n = 0; n < spilled_; ++n) {
      depths[open_[n]] = 2;
      found[founds] = uint8_t(n);
      founds += ((second_masks[n] & kMaskKeys) | (states_[n] & kQryBucketToStash)) != 0;
    }
    for (size_t f = 0; f < founds; ++f) {
      const uint32_t n = found[f], i = open_[n];
      if ((second_masks[n] & kMaskKeys) == 0) {
        probe_stash(view, i);
        continue;
      }
      values[i] = second_values[n];
      masks[i] = second_masks[n] & kMaskKeys;
      sectors[i] = second_sectors_[n];
    }
    if (!some_refused) return;
    for (size_t i = 0; i < count; ++i) {
      if (stored[i] != kQryReservedKey) continue;
      values[i] = kQryReservedValue;
      masks[i] = depths[i] = 0;
    }
  }
  [[gnu::noinline]] void probe_stash(const GridView& view, size_t i) {
    const Located at = locate_in_stash<SharedWords>(view, qry_probe_sequence(stored[i], view.page_count), stored[i]);
    depths[i] = uint8_t(at.sectors);
    if (at.slot == nullptr) return;
    const auto word = size_t(at.slot - view.words);
    values[i] = high(at.word);
    sectors[i] = uint32_t(word / kQrySlotsPerSector);
    masks[i] = uint8_t(1u << word % kQrySlotsPerSector * 2);
  }

  // Keys that their home bucket leaves undecided; then those of them that may be in their second bucket or beyond.
  size_t spilled_ = 0;
  uint8_t open_[kKeysPerBlock], states_[kKeysPerBlock];
  uint32_t second_stored_[kKeysPerBlock], second_sectors_[kKeysPerBlock];
};

// fill(block) supplies the next keys, none at the end; use(block) gets them located, in the same order. A block is
// looked up before the previous one is used: if `use` changes slots, it must re-read the slot of a key that may occur
// twice. kWrites: `use` writes to slots.
template <bool kWrites, class Fill, class Use>
void for_blocks(const GridView& view, Fill&& fill, const Use& use) {
  const BucketKernels& kernels = bucket_kernels();
  Block blocks[3];
  const auto next = [&](Block& block) {
    fill(block);
    block.template prepare<kWrites>(view, kernels);
  };
  Block *ahead = &blocks[0], *now = &blocks[1], *before = &blocks[2];
  next(*ahead);
  while (ahead->count != 0 || now->count != 0) {
    Block* const done = before;
    before = now, now = ahead, ahead = done;
    if (now->count != 0) next(*ahead);
    now->template probe_home<kWrites>(view, kernels);
    before->probe_further(view, kernels);
    if (before->count != 0) use(*before);
    before->count = before->spilled_ = 0;
  }
}

}  // namespace quarry::hashgrid::detail
