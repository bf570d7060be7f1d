// SPDX-License-Identifier: Apache-2.0
// bucket_kernels.hpp - many keys at once on a host core: the places and the content of their home buckets. A core waits
// for memory once a group, not once a key, and compares a bucket's four keys in one instruction if the processor has
// AVX2.
//
// Not the operations themselves: keys that the home bucket does not settle go on to view_impl.hpp, one by one. Used by
// operations.cpp, find.hpp and pages.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashgrid/pairs/view.hpp"

namespace quarry::hashgrid::detail {

constexpr size_t kKeysPerGroup = 32;  // about as many cache misses as a core keeps in flight
constexpr size_t kKeysPerBlock = 64;  // for look-ups, which take less work

// What a writer saw in a bucket: bits 0..1 the key's slot if kFoundKey, bits 4..7 the empty slots, bit 3 whether one of
// them is never-used.
constexpr uint8_t kFoundKey = 4, kFoundNeverUsed = 8;

// The bits of find()'s masks that stand for keys.
constexpr uint32_t kMaskKeys = 0x55;

struct PlacedInGroup {
  uint32_t present, open;  // keys that were there; keys that were listed. The others were placed
};

constexpr uint32_t kAtHome = 0x8000, kOtherSector = 0x3FF;

struct BucketKernels {
  // stored[i] = qry_stored_key(keys[i]). Any count. Returns whether one of the keys is the reserved one: it would match
  // empty slots, so the caller must filter it out.
  bool (*store)(const uint32_t* keys, size_t count, uint32_t locality, uint32_t* stored);
  // sectors[i] = the sector of a stored key's home bucket, or of its second bucket, counted from the table's start.
  void (*home_buckets)(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors);
  void (*second_buckets)(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors);
  // Looks up keys in their sectors, beside any writers. masks[i]: bit 2n for the key in slot n, bit 2n+1 for a
  // never-used slot n. values[i]: the sector's value for the key, or the reserved value; undefined if masks[i] is 0.
  // Keys with masks[i] = 0 are neither in their sector nor ruled out by it: they are listed in `open`, and their number
  // is returned. Each slot is read whole and once; a sector's four are not read at one instant. count <= kKeysPerBlock.
  size_t (*find)(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint32_t* values,
                 uint8_t* masks, uint8_t* open);
  // For writers: seen[i] as above, values[i] the sector's value or the reserved value. count <= kKeysPerGroup.
  void (*buckets)(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint8_t* seen,
                  uint32_t* values);
  // For a page that the caller owns; pairs in rising order of the array, none with a reserved key. Pair i goes into the
  // first never-used slot of sector sectors[i], unless its key is there. Pairs whose sector has neither are listed in
  // `open`. count <= kKeysPerBlock.
  PlacedInGroup (*place)(uint64_t* words, const uint64_t* pairs, const uint32_t* sectors, size_t count, uint8_t* open);
  // For a page that does not change. By word: the other bucket of its key, and kAtHome if the key is in its home bucket
  // (undefined for an empty slot). By sector: the number of empty slots. Sectors are counted from the page's start.
  void (*others)(const uint64_t* page, uint32_t page_count, uint16_t* others, uint8_t* room);
  // Selects from a batch's keys, `first_tag` and following, those whose page is one of `pages` from `first_page` on:
  // their stored keys and their numbers, in order. Room for `count` in both arrays. *refused becomes true if the
  // reserved key is among them. count <= kKeysPerBlock.
  size_t (*filter)(const uint32_t* keys, size_t count, const GridView& view, uint32_t first_page, uint32_t pages,
                   uint32_t first_tag, uint32_t* stored, uint32_t* tags, bool* refused);
  // The original keys and the values of the slots among these words that hold one. Returns their number. Room for
  // `count` in both arrays.
  size_t (*list)(const uint64_t* words, size_t count, uint32_t locality, uint32_t* keys, uint32_t* values);
  // How many slots among these words hold a key.
  size_t (*live)(const uint64_t* words, size_t count);
};

// The fastest version for this processor; chosen once.
const BucketKernels& bucket_kernels();

}  // namespace quarry::hashgrid::detail
