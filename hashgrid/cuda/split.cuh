// SPDX-License-Identifier: Apache-2.0
// split.cuh - the first half of a bulk build: splits a batch of pairs by page, in one or two streaming passes. The
// second half builds the pages and is specific to the layout. page_lists.cuh launches the kernels for grids of one
// value a key, and counted_split.cuh for batches with many equal keys.
//
// A pass is unordered. A block ranks its pairs by range with counters in shared memory, reserves room in every range's
// list with one global atomic a range, sorts the pairs in shared memory and writes each range's run in one piece. A
// pair is {stored key, value}, as in a slot.
//
// Lists have equal room, of which keys that fall at random leave some free; or they were counted before and lie side by
// side, whatever their lengths: that reads the keys once more for each pass.
//
// Measured on an H200: 256 ranges 185 G pairs/s, 1024 ranges 140, 4096 ranges 95; writing from registers without the
// sort 44. So two passes of at most 256 ranges beat one pass of many.
#pragma once

#include "hashgrid/cuda/block_list.cuh"
#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/table/key_hash.h"
#include "hashgrid/table/page.h"

namespace quarry::hashgrid::kernels {

// The totals of a merge; cleared before the first pass.
struct MergeTotals {
  uint32_t overflowed;  // a list was too short: too many keys in one place; nothing was changed
  uint32_t reserved;    // pairs with a reserved key or value
  unsigned long long present;
  unsigned long long refused;
};

// The length of the list of one of `ranges`, for `count` pairs that fall at random: ten standard deviations of slack,
// twice that if each key comes in up to four copies. A batch that needs more has many equal keys, and takes the
// ordinary insert.
inline uint32_t list_room(uint64_t count, uint32_t ranges) {
  const double mean = double(count) / double(ranges);
  return (uint32_t(mean + 24.0 * __builtin_sqrt(mean)) + 67u) & ~3u;
}

// The form of keys in their lists. `mixed`: qry_mix alone, for the compact layout; else the stored key of a locality.
enum class SplitForm : uint32_t { plain = kQryPlain, rows = kQryRows, mixed };

// The lists of a counted first pass.
struct CountedRanges {
  uint32_t number;
  const uint32_t* sizes;
  const uint32_t* begins;
  const uint32_t* tiles;  // of the lists before, and at last of all
};

struct SplitPass {
  const uint32_t* keys;    // first pass: the batch
  const uint32_t* values;  // counted, null: the numbers of the pairs
  const uint2* lists_in;   // second pass: lists of the first
  const uint32_t* sizes_in;
  uint32_t room_in;
  CountedRanges ranges_in;  // counted, instead of sizes and room
  uint32_t count;           // first pass: pairs of the batch
  uint32_t page_count;
  SplitForm form;
  uint32_t shift;   // pages of one range of the first pass, as a power of two
  uint32_t ranges;  // lists a block writes to
  uint2* lists;
  uint32_t* sizes;  // counted: where the next pair of each list goes
  uint32_t room;
  MergeTotals* totals;
};

inline size_t split_shared_bytes(uint32_t ranges) {
  return kSplitTile * sizeof(uint2) + size_t{ranges} * 2 * sizeof(uint32_t);
}

// The tile of a block among the lists of a counted first pass; `list` is `ranges.number` if there are fewer tiles. All
// threads call it.
struct SplitTile {
  uint32_t list, begin;
};
__device__ inline SplitTile counted_tile(const CountedRanges& ranges) {
  __shared__ uint32_t list, tiles_before;
  if (threadIdx.x == 0) list = ranges.number;
  __syncthreads();
  for (uint32_t r = threadIdx.x; r < ranges.number; r += blockDim.x) {
    const uint32_t before = ranges.tiles[r];
    if (before > blockIdx.x || blockIdx.x >= ranges.tiles[r + 1]) continue;
    list = r;
    tiles_before = before;
  }
  __syncthreads();
  return {list, (blockIdx.x - tiles_before) * kSplitTile};
}

// kFirst: from the batch to ranges of pages. Otherwise block row y splits list y of the first pass by page; kCounted:
// the block splits a tile of one of the lists.
template <bool kFirst, bool kCounted = false>
__global__ void __launch_bounds__(kSplitThreads, 2) split_pairs(SplitPass pass) {
  extern __shared__ uint2 staged[];
  uint32_t* const ranks =
      reinterpret_cast<uint32_t*>(staged + kSplitTile);  // per range: pairs so far, then its run's begin in `staged`
  uint32_t* const targets = ranks + pass.ranges;         // per range: index in `lists` less the index in `staged`
  __shared__ uint32_t taken, dropped;
  constexpr uint32_t kWide = kFirst ? 4 : 2;  // pairs of one 16-byte load
  constexpr uint32_t kNoRange = 0xFFFFFFFFu;
  const uint32_t thread = threadIdx.x;
  uint32_t begin = blockIdx.x * kSplitTile, list_in = blockIdx.y;
  size_t list_begin = 0;
  uint32_t size = pass.count;
  if constexpr (!kFirst && kCounted) {
    const SplitTile tile = counted_tile(pass.ranges_in);
    if (tile.list == pass.ranges_in.number) return;
    begin = tile.begin;
    list_in = tile.list;
    list_begin = pass.ranges_in.begins[list_in];
    size = pass.ranges_in.sizes[list_in];
  } else if constexpr (!kFirst) {
    list_begin = size_t{list_in} * pass.room_in;
    size = min(pass.sizes_in[list_in], pass.room_in);
  }
  if (begin >= size) return;
  if constexpr (!kFirst && !kCounted)
    if (pass.totals->overflowed != 0) return;  // by the first pass or a block of this one: lists have gaps
  const uint32_t count = min(size - begin, kSplitTile);
  const auto index_of = [thread](uint32_t j) { return (j / kWide * kSplitThreads + thread) * kWide + j % kWide; };
  const uint32_t row_mask = pass.form == SplitForm::mixed ? ~0u : ~7u;  // qry_page() of pairs/layout.h
  const auto range_of = [&pass, row_mask](uint32_t stored) {
    const uint32_t page = __umulhi(stored & row_mask, pass.page_count);
    return kFirst ? page >> pass.shift : page & ((1u << pass.shift) - 1u);
  };

  for (uint32_t r = thread; r < pass.ranges; r += kSplitThreads) ranks[r] = 0;
  if (thread == 0) taken = dropped = 0;
  uint2 pair[kSplitPerThread];
  uint32_t place[kSplitPerThread];  // range, and rank in it
  if constexpr (kFirst) {
    const bool aligned =
        ((reinterpret_cast<uintptr_t>(pass.keys) | reinterpret_cast<uintptr_t>(pass.values)) & 15u) == 0;
    const bool numbered = kCounted && pass.values == nullptr;
    if (count == kSplitTile && aligned) {
#pragma unroll
      for (uint32_t j = 0; j < kSplitPerThread; j += 4) {
        const uint32_t i = begin + index_of(j);
        const uint4 k = __ldcs(reinterpret_cast<const uint4*>(pass.keys + i));
        const uint4 v =
            numbered ? make_uint4(i, i + 1, i + 2, i + 3) : __ldcs(reinterpret_cast<const uint4*>(pass.values + i));
        pair[j] = make_uint2(k.x, v.x);
        pair[j + 1] = make_uint2(k.y, v.y);
        pair[j + 2] = make_uint2(k.z, v.z);
        pair[j + 3] = make_uint2(k.w, v.w);
      }
    } else {
#pragma unroll
      for (uint32_t j = 0; j < kSplitPerThread; ++j) {
        const uint32_t i = begin + index_of(j);
        if (index_of(j) < count) pair[j] = make_uint2(pass.keys[i], numbered ? i : pass.values[i]);
      }
    }
  } else {
    const uint2* const from = pass.lists_in + list_begin + begin;
    const bool aligned = !kCounted || list_begin % 2 == 0;
#pragma unroll
    for (uint32_t j = 0; j < kSplitPerThread; j += 2) {
      const uint32_t i = index_of(j);
      if (aligned && i + 1 < count) {
        const uint4 both = __ldcs(reinterpret_cast<const uint4*>(from + i));
        pair[j] = make_uint2(both.x, both.y);
        pair[j + 1] = make_uint2(both.z, both.w);
      } else {
        if (i < count) pair[j] = from[i];
        if (kCounted && i + 1 < count) pair[j + 1] = from[i + 1];
      }
    }
  }
  __syncthreads();

#pragma unroll
  for (uint32_t j = 0; j < kSplitPerThread; ++j) {
    place[j] = kNoRange;
    if (index_of(j) >= count) continue;
    if constexpr (kFirst) {
      if (!kCounted && (pair[j].x == kQryReservedKey || pair[j].y == kQryReservedValue)) {
        atomicAdd(&dropped, 1u);
        continue;
      }
      pair[j].x = pass.form == SplitForm::mixed ? qry_mix(pair[j].x) : qry_stored_key(pair[j].x, uint32_t(pass.form));
    }
    const uint32_t range = range_of(pair[j].x);
    place[j] = range << 16 | atomicAdd(&ranks[range], 1u);
  }
  __syncthreads();

  // Reserves for each range's run its place in `staged` (in any order) and in its list.
  bool too_long = false;
  for (uint32_t first = 0; first < pass.ranges; first += kSplitThreads) {
    const uint32_t range = first + thread;
    const uint32_t run = range < pass.ranges ? ranks[range] : 0;
    const uint32_t run_begin = list_places(&taken, run);
    if (run == 0) continue;
    const uint32_t list = kFirst ? range : (list_in << pass.shift) + range;
    const uint32_t at = atomicAdd(pass.sizes + list, run);
    if (!kCounted) too_long |= at + run > pass.room || at + run < at;
    ranks[range] = run_begin;
    targets[range] = (kCounted ? 0 : list * pass.room) + at - run_begin;
  }
  if (__syncthreads_or(too_long) != 0) {  // lists that overflowed are not read
    if (thread == 0) pass.totals->overflowed = 1;
    return;
  }

#pragma unroll
  for (uint32_t j = 0; j < kSplitPerThread; ++j)
    if (place[j] != kNoRange) staged[ranks[place[j] >> 16] + (place[j] & 0xFFFFu)] = pair[j];
  __syncthreads();
  const uint32_t kept = taken;
#pragma unroll 4
  for (uint32_t i = thread; i < kept; i += kSplitThreads) pass.lists[targets[range_of(staged[i].x)] + i] = staged[i];
  if (kFirst && !kCounted && thread == 0 && dropped != 0) atomicAdd(&pass.totals->reserved, dropped);
}

}  // namespace quarry::hashgrid::kernels

namespace quarry::hashgrid {

// A batch's pairs in lists by page, in scratch memory, and the totals: the input of kernels that go page by page.
struct PageLists {
  uint2* lists;
  uint32_t* sizes;
  uint32_t room;
  kernels::MergeTotals* totals;
};

}  // namespace quarry::hashgrid
