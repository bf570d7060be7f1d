// SPDX-License-Identifier: Apache-2.0
// bucket_kernels.hpp - many keys at once on a host core: where their home buckets are, and what stands in them. A core
// waits for memory once a group, not once a key, and compares a bucket's four keys by one instruction where the
// processor has AVX2.
//
// Not the operations themselves: what the home bucket does not settle goes on to view_impl.hpp, key by key. Used by
// operations.cpp, find.hpp and pages.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashgrid/pairs/view.hpp"

namespace quarry::hashgrid::detail {

constexpr size_t kKeysPerGroup = 32;  // about as many cache misses as a core keeps in flight
constexpr size_t kKeysPerBlock = 64;  // of look-ups, which are quicker done

// What a writer's look into a bucket saw: bits 0..1 the key's slot if kFoundKey, bits 4..7 the empty slots, bit 3
// whether one is never-used.
constexpr uint8_t kFoundKey = 4, kFoundNeverUsed = 8;

// The bits of find()'s masks that speak of keys.
constexpr uint32_t kMaskKeys = 0x55;

struct PlacedInGroup {
  uint32_t present, open;  // keys that were there; keys that were listed. The rest is in
};

constexpr uint32_t kAtHome = 0x8000, kOtherSector = 0x3FF;

struct BucketKernels {
  // stored[i] = qry_stored_key(keys[i]). Any count. Returns whether one of the keys is the reserved one: such a key
  // "stands" in empty slots, and the caller sorts it out.
  bool (*store)(const uint32_t* keys, size_t count, uint32_t locality, uint32_t* stored);
  // sectors[i] = the sector, counted from the table's start, of a stored key's home bucket; of its second bucket.
  void (*home_buckets)(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors);
  void (*second_buckets)(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors);
  // Keys that stand in their sectors, beside any writers. masks[i]: bit 2n for the key in slot n, bit 2n+1 for a slot n
  // never used; values[i]: what the sector holds for the key, or the reserved value, or nothing of sense where masks[i]
  // is 0. Those, which their sector neither has nor rules out, are listed in `open`; how many they are is returned.
  // Each slot is read whole and once; a sector's four are not read at one instant. count <= kKeysPerBlock.
  size_t (*find)(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint32_t* values, uint8_t* masks, uint8_t* open);
  // For writers: seen[i] as above, values[i] what the sector holds or the reserved value. count <= kKeysPerGroup.
  void (*buckets)(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint8_t* seen, uint32_t* values);
  // For a page that the caller has to itself, pairs in rising order of the array, none with a reserved key: pair i goes
  // into the first never-used slot of sector sectors[i], unless its key stands there. Those whose sector has neither
  // are listed in `open`. count <= kKeysPerBlock.
  PlacedInGroup (*place)(uint64_t* words, const uint64_t* pairs, const uint32_t* sectors, size_t count, uint8_t* open);
  // Of a page that nobody changes: by word, the other bucket of the key that stands there, and kAtHome if it stands in
  // its home bucket (nothing of sense for an empty slot); by sector, how many slots are empty. Sectors are counted from
  // the page's start.
  void (*others)(const uint64_t* page, uint32_t page_count, uint16_t* others, uint8_t* room);
  // Of a batch's keys, `first_tag` and following, those whose page is one of `pages` from `first_page` on: their stored
  // keys and their numbers, in order. Room for `count` in both arrays. *refused becomes true if the reserved key is
  // among them. count <= kKeysPerBlock.
  size_t (*filter)(const uint32_t* keys, size_t count, const GridView& view, uint32_t first_page, uint32_t pages, uint32_t first_tag, uint32_t* stored,
                  uint32_t* tags, bool* refused);
  // The keys, as users know them, and values of the slots among these words that hold one; how many they are. Room for
  // `count` in both arrays.
  size_t (*list)(const uint64_t* words, size_t count, uint32_t locality, uint32_t* keys, uint32_t* values);
  // How many slots among these words hold a key.
  size_t (*live)(const uint64_t* words, size_t count);
};

// The fastest this processor can do; chosen once.
const BucketKernels& bucket_kernels();

}  // namespace quarry::hashgrid::detail
