// SPDX-License-Identifier: Apache-2.0
// build.cuh - pages of a multi grid built in shared memory, a block for each. The page's pairs lie side by side, in any
// order.
//
// A pair finds its key, or the first free slot, in a table with twice as many slots as there are pairs by one 32-bit
// swap. If a key was there already, those that were not the first with theirs count themselves. The first takes room
// for the run, if there are others, and a slot in the key's home bucket, or behind it, by counting: no slot is looked
// at twice. Buckets and values are written in one piece each. A page in which each key has one value needs neither runs
// nor values: that is most of what building a grid of distinct keys takes.
//
// Between two barriers a word of shared memory is only touched by atomics, or only by one thread, or only read.
//
// Literature: D. Alcantara et al., "Real-time parallel hashing on the GPU", 2009 (parts of a table in shared memory).
#pragma once

#include "hashgrid/cuda/block_list.cuh"
#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/multi/bodies.hpp"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kMultiMostPairs =
    kMultiThreads * kMultiHeld;  // of a page: twice the most that pages have on average
constexpr uint32_t kMultiBuckets = kMultiMostPairs / 2 + 1;
constexpr uint32_t kMultiTable = kMultiMostPairs * 2;
static_assert(kMultiMostPairs < 1u << 16);

struct MultiPageBuild {
  union {
    alignas(16) uint32_t table[kMultiTable];  // keys
    // Slot `slot` of bucket `bucket` is number slot * buckets + bucket, so that neighbours are in different banks.
    struct {
      uint2 keys[kMultiBuckets * kMultiSlots];  // and their words
      uint16_t counts[kMultiBuckets * kMultiSlots];
    } slots;
  };
  uint32_t runs[kMultiTable];    // of a key: pairs but the first, so far; then begin of its run << 16, and its length
  uint32_t used[kMultiBuckets];  // slots that keys have asked for; those beyond the third went on
  uint32_t values[kMultiMostPairs];
  uint32_t taken;  // of `values`
};

// The slots of a table of shared memory for so many pairs are 2^table_bits(): twice as many, at least.
__device__ inline uint32_t table_bits(uint32_t pairs) { return pairs <= 32 ? 6 : 33 - __clz(int(pairs - 1)); }
__device__ inline uint32_t table_home(uint32_t stored, uint32_t bits) { return stored * 0x9E3779B1u >> (32 - bits); }
__device__ inline void clear_table(uint32_t* words, uint32_t bits, uint32_t to) {
  for (uint32_t i = threadIdx.x; i < (1u << bits) / 4; i += blockDim.x)
    reinterpret_cast<uint4*>(words)[i] = make_uint4(to, to, to, to);
}
// The slot of a key, which is put there unless it is there: then *first is false.
__device__ inline uint32_t claim_slot(uint32_t* table, uint32_t bits, uint32_t stored, bool* first) {
  for (uint32_t slot = table_home(stored, bits);; slot = (slot + 1) & ((1u << bits) - 1)) {
    const uint32_t found = atomicCAS(&table[slot], kQryReservedKey, stored);
    *first = found == kQryReservedKey;
    if (*first || found == stored) return slot;
  }
}

// Nothing is written if `fault` says that a key is reserved.
__global__ void __launch_bounds__(kMultiThreads, kMultiBlocks)
    build_multi_pages(MultiView view, const uint2* pairs, const uint32_t* begins, const uint64_t* fault,
                      uint64_t* large_pairs) {
  extern __shared__ uint4 page_memory[];
  MultiPageBuild& page = *reinterpret_cast<MultiPageBuild*>(page_memory);
  const uint32_t thread = threadIdx.x, number = blockIdx.x;
  if (*fault != ~uint64_t{0}) return;
  const uint32_t first = begins[number], end = begins[number + 1], size = end - first;
  const uint32_t buckets = size / 2 + 1;
  const bool is_large = size > kMultiMostPairs;
  if (thread == 0) {
    MultiPage* const pages = const_cast<MultiPage*>(view.pages);
    pages[number] = MultiPage{first, is_large || size == 0 ? 0 : buckets};
    if (number + 1 == gridDim.x) pages[number + 1] = MultiPage{end, 0};
    if (number == 0) *const_cast<uint32_t*>(view.large) = 0;
    if (size == 0) bodies::clear_bucket(view, size_t{first / 2} + number);
    if (is_large) atomicAdd(reinterpret_cast<unsigned long long*>(large_pairs), (unsigned long long)size);
  }
  if (size == 0 || is_large) return;
  // Pairs of a thread that are there: the same for all of a warp but the last one's.
  const auto is_there = [size, thread](uint32_t j) { return j * kMultiThreads + thread < size; };
  uint2 pair[kMultiHeld];
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j)
    if (is_there(j)) pair[j] = __ldcs(pairs + first + j * kMultiThreads + thread);
  const uint32_t bits = table_bits(size);
  clear_table(page.table, bits, kQryReservedKey);
  for (uint32_t i = thread; i < buckets; i += kMultiThreads) page.used[i] = 0;
  if (thread == 0) page.taken = 0;
  __syncthreads();

  constexpr uint32_t kFirst = 0;
  uint32_t slot[kMultiHeld];  // in the table
  uint32_t rank[kMultiHeld];  // in the run
  bool any_other = false;
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j) {
    if (!is_there(j)) break;
    bool is_first;
    slot[j] = claim_slot(page.table, bits, pair[j].x, &is_first);
    rank[j] = is_first ? kFirst : 1;
    any_other |= !is_first;
  }
  const bool has_runs = __syncthreads_or(any_other) != 0;
  if (has_runs) {
#pragma unroll
    for (uint32_t j = 0; j < kMultiHeld; ++j)
      if (is_there(j) && rank[j] == kFirst) page.runs[slot[j]] = 0;
    __syncthreads();
#pragma unroll
    for (uint32_t j = 0; j < kMultiHeld; ++j)
      if (is_there(j) && rank[j] != kFirst) rank[j] = 1 + atomicAdd(&page.runs[slot[j]], 1u);
    __syncthreads();
  }

  uint32_t wanted = 0, begin = 0;
  if (has_runs) {
#pragma unroll
    for (uint32_t j = 0; j < kMultiHeld; ++j) {
      const uint32_t others = is_there(j) && rank[j] == kFirst ? page.runs[slot[j]] : 0;
      if (others != 0) wanted += others + 1;
    }
    begin = list_places(&page.taken, wanted);
  }
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j) {
    if (!is_there(j)) break;
    if (rank[j] != kFirst) continue;
    uint32_t bucket = multi_home(pair[j].x, buckets), of_bucket;
    // Slots are half as many again as pairs.
    while ((of_bucket = atomicAdd(&page.used[bucket], 1u)) >= kMultiSlots)
      bucket = bucket + 1 == buckets ? 0 : bucket + 1;
    const uint32_t at = of_bucket * buckets + bucket;
    uint32_t word = pair[j].y;
    if (has_runs) {
      const uint32_t length = page.runs[slot[j]] + 1;
      page.slots.counts[at] = uint16_t(length);
      page.runs[slot[j]] = begin << 16 | length;
      if (length > 1) {
        word = first + begin;
        begin += length;
      }
    }
    page.slots.keys[at] = make_uint2(pair[j].x, word);
  }
  __syncthreads();
  if (has_runs) {
#pragma unroll
    for (uint32_t j = 0; j < kMultiHeld; ++j) {
      if (!is_there(j)) break;
      const uint32_t run = page.runs[slot[j]];
      if ((run & 0xFFFFu) != 1) page.values[(run >> 16) + rank[j]] = pair[j].y;
    }
    __syncthreads();
  }

  const size_t first_bucket = size_t{first / 2} + number;
  const uint32_t room = uint32_t(size_t{end / 2} + number + 1 - first_bucket);  // one more than `buckets` at most
  uint4* const out = reinterpret_cast<uint4*>(const_cast<MultiBucket*>(view.buckets) + first_bucket);
  for (uint32_t bucket = thread; bucket < room; bucket += kMultiThreads) {
    const uint32_t used = bucket < buckets ? page.used[bucket] : 0;
    uint2 key[kMultiSlots];
    uint64_t counts = used > kMultiSlots ? kMultiWentOn : 0;
#pragma unroll
    for (uint32_t i = 0; i < kMultiSlots; ++i) {
      key[i] = make_uint2(kQryReservedKey, kQryReservedValue);
      if (i >= used) continue;
      const uint32_t at = i * buckets + bucket;
      key[i] = page.slots.keys[at];
      counts |= uint64_t{has_runs ? page.slots.counts[at] : 1u} << (i * kMultiCountBits);
    }
    out[size_t{bucket} * 2] = make_uint4(key[0].x, key[1].x, key[2].x, key[0].y);
    out[size_t{bucket} * 2 + 1] = make_uint4(key[1].y, key[2].y, uint32_t(counts), uint32_t(counts >> 32));
  }
  uint32_t* const values_out = const_cast<uint32_t*>(view.values) + first;
  const uint32_t in_runs = page.taken;
  for (uint32_t i = thread; i < in_runs; i += kMultiThreads) values_out[i] = page.values[i];
}

}  // namespace quarry::hashgrid::kernels
