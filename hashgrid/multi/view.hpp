// SPDX-License-Identifier: Apache-2.0
// view.hpp - look-ups of one key in a multi grid, from any host thread or CUDA kernel.
//
// It is not the owner (hashgrid/multi_grid.hpp), nor its bulk calls. Nothing here writes. Any number of threads and
// kernels may read at once; nobody may while the owner changes the grid.
//
//   const MultiRun run = find(view, key);
//   for (uint32_t i = 0; i < run.count; ++i) use(value_of(view, run, i));
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashgrid/multi/shape.hpp"

namespace quarry::hashgrid {

// A grid in the memory of its executor; valid until the owner's next changing call. Layout: shape.hpp.
struct MultiView {
  const MultiPage* pages = nullptr;
  const MultiBucket* buckets = nullptr;
  const uint32_t* values = nullptr;
  const uint32_t* large = nullptr;  // [0]: how many there are; then their counts
  MultiShape shape{};               // as it was built: erased pairs still have their places
};

// A key's values. count 0: it is absent.
struct alignas(8) MultiRun {
  uint32_t word = kQryReservedValue;  // the value, if there is one; else the first one's number
  uint32_t count = 0;
};

namespace detail {

QRY_HD inline MultiPage load_page(const MultiPage* page) {
#if defined(__CUDA_ARCH__)
  const uint2 both = __ldg(reinterpret_cast<const uint2*>(page));
  MultiPage copy;
  copy.first = both.x;
  copy.buckets = both.y;
  return copy;
#else
  return *page;
#endif
}
QRY_HD inline MultiBucket load_multi_bucket(const MultiBucket* bucket) {
#if defined(__CUDA_ARCH__)
  const uint4 a = __ldg(reinterpret_cast<const uint4*>(bucket)), b = __ldg(reinterpret_cast<const uint4*>(bucket) + 1);
  return {{a.x, a.y, a.z}, {a.w, b.x, b.y}, uint64_t{b.w} << 32 | b.z};
#else
  return *bucket;
#endif
}

}  // namespace detail

// Where a key's bucket and slot are; `run.count` 0: nowhere.
struct MultiPlace {
  size_t bucket = 0;
  uint32_t slot = 0;
  MultiRun run;
};

// Of a stored key. Cost: its page's 8 bytes, which are in the cache, and 1.15 sectors of 32 bytes on average.
QRY_HD inline MultiPlace place_of_stored(const MultiView& view, uint32_t stored) {
  MultiPlace place;
  const uint32_t number = multi_page(stored, view.shape.page_bits);
  const MultiPage page = detail::load_page(view.pages + number);
  if (page.buckets == 0) return place;
  const size_t first = size_t{page.first / 2} + number;
  uint32_t at = multi_home(stored, page.buckets);
  for (uint32_t step = 0; step < page.buckets; ++step) {
    const MultiBucket bucket = detail::load_multi_bucket(view.buckets + first + at);
    for (uint32_t slot = 0; slot < kMultiSlots; ++slot) {
      const uint32_t count = multi_count_field(bucket.counts, slot);
      if (bucket.keys[slot] != stored || count == 0) continue;
      place.bucket = first + at;
      place.slot = slot;
      place.run.word = bucket.words[slot];
      place.run.count = count < kMultiLarge ? count : view.large[count - kMultiLarge];
      return place;
    }
    if ((bucket.counts & kMultiWentOn) == 0) return place;
    at = at + 1 == page.buckets ? 0 : at + 1;
  }
  return place;
}

// The key's values, in no particular order. The reserved key is absent.
QRY_HD inline MultiRun find(const MultiView& view, uint32_t key) {
  return place_of_stored(view, qry_stored_key(key, kQryPlain)).run;
}
// How many values the key has.
QRY_HD inline uint32_t count(const MultiView& view, uint32_t key) { return find(view, key).count; }
// One of a run's values, i < run.count. Cost: none for a key with one value; else its sector.
QRY_HD inline uint32_t value_of(const MultiView& view, const MultiRun& run, uint32_t i) {
  return run.count <= 1 ? run.word : view.values[size_t{run.word} + i];
}
// Calls use(value) for each of the key's values. Returns how many there are.
template <class Use>
QRY_HD inline uint32_t for_each_value(const MultiView& view, uint32_t key, const Use& use) {
  const MultiRun run = find(view, key);
  for (uint32_t i = 0; i < run.count; ++i) use(value_of(view, run, i));
  return run.count;
}

}  // namespace quarry::hashgrid
