// SPDX-License-Identifier: Apache-2.0
// build.cuh - pages of a multi grid built in shared memory, a block for each. The page's pairs lie side by side, in any
// order.
//
// A key claims a slot by one 32-bit swap, beginning with a slot of its home bucket drawn by hash, and a pair takes its
// place in the key's run by one addition. When all pairs have, the runs' lengths are summed up, and values go to their
// places: to the slot itself, if there is one. Buckets and values are written in one piece each.
//
// Between two barriers a word of shared memory is only touched by atomics, or only by one thread, or only read.
//
// Literature: D. Alcantara et al., "Real-time parallel hashing on the GPU", 2009 (parts of a table in shared memory).
#pragma once

#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/multi/bodies.hpp"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kMultiMostPairs =
    kMultiThreads * kMultiHeld;  // of a page: twice the most that pages have on average
constexpr uint32_t kMultiBuckets = kMultiMostPairs / 2 + 1;

// Slot `slot` of bucket `bucket` is word slot * buckets + bucket, so that neighbours are in different banks.
struct MultiPageBuild {
  uint32_t keys[kMultiBuckets * kMultiSlots];
  uint32_t words[kMultiBuckets * kMultiSlots];  // pairs so far, then the begin of the run, or the only value
  uint16_t counts[kMultiBuckets * kMultiSlots];
  uint32_t values[kMultiMostPairs];
  uint32_t went_on[(kMultiBuckets + 31) / 32];
  uint32_t before[kMultiThreads / 32];
};

__global__ void __launch_bounds__(kMultiThreads, kMultiBlocks)
    build_multi_pages(MultiView view, const uint32_t* stored_keys, const uint32_t* all_values,
                      unsigned long long* large_pairs) {
  __shared__ MultiPageBuild page;
  const uint32_t thread = threadIdx.x, number = blockIdx.x;
  const uint32_t first = view.pages[number].first, end = view.pages[number + 1].first, size = end - first;
  if (size == 0) return;  // cleared before
  if (size > kMultiMostPairs) {
    if (thread == 0) atomicAdd(large_pairs, (unsigned long long)size);
    return;
  }
  const uint32_t buckets = size / 2 + 1, slots = buckets * kMultiSlots;
  for (uint32_t i = thread; i < slots; i += kMultiThreads) {
    page.keys[i] = kQryReservedKey;
    page.words[i] = 0;
  }
  for (uint32_t i = thread; i < (kMultiBuckets + 31) / 32; i += kMultiThreads) page.went_on[i] = 0;

  uint32_t stored[kMultiHeld], value[kMultiHeld];
  uint32_t place[kMultiHeld];  // slot, and rank in its run
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j) {
    const uint32_t i = j * kMultiThreads + thread;
    if (i >= size) continue;
    stored[j] = __ldcs(stored_keys + first + i);
    value[j] = __ldcs(all_values + first + i);
  }
  __syncthreads();
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j) {
    if (j * kMultiThreads + thread >= size) continue;
    uint32_t bucket = multi_home(stored[j], buckets);
    uint32_t slot = stored[j] % kMultiSlots;
    for (uint32_t tried = 0;;) {
      const uint32_t at = slot * buckets + bucket;
      const uint32_t found = atomicCAS(&page.keys[at], kQryReservedKey, stored[j]);
      if (found == kQryReservedKey || found == stored[j]) {
        place[j] = at << 16 | atomicAdd(&page.words[at], 1u);
        break;
      }
      slot = slot + 1 == kMultiSlots ? 0 : slot + 1;
      if (++tried < kMultiSlots) continue;
      tried = 0;  // a page has half as many slots again as pairs: the next bucket, or one behind it, has room
      atomicOr(&page.went_on[bucket / 32], 1u << (bucket % 32));
      bucket = bucket + 1 == buckets ? 0 : bucket + 1;
    }
  }
  __syncthreads();

  // Each thread sums up an odd number of slots side by side: neighbours are in different banks.
  const uint32_t each = (slots + kMultiThreads - 1) / kMultiThreads | 1u;
  const uint32_t from = min(thread * each, slots), to = min(from + each, slots);
  uint32_t sum = 0;
  for (uint32_t i = from; i < to; ++i)
    if (page.words[i] > 1) sum += page.words[i];
  uint32_t upto = sum;
#pragma unroll
  for (uint32_t step = 1; step < 32; step *= 2) {
    const uint32_t left = __shfl_up_sync(0xFFFFFFFFu, upto, step);
    if (thread % 32 >= step) upto += left;
  }
  if (thread % 32 == 31) page.before[thread / 32] = upto;
  __syncthreads();
  uint32_t begin = upto - sum, in_runs = 0;
#pragma unroll
  for (uint32_t warp = 0; warp < kMultiThreads / 32; ++warp) {
    if (warp < thread / 32) begin += page.before[warp];
    in_runs += page.before[warp];
  }
  for (uint32_t i = from; i < to; ++i) {
    const uint32_t count = page.words[i];
    page.counts[i] = uint16_t(count);
    page.words[i] = begin;
    if (count > 1) begin += count;
  }
  __syncthreads();
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j) {
    if (j * kMultiThreads + thread >= size) continue;
    const uint32_t at = place[j] >> 16;
    if (page.counts[at] == 1) page.words[at] = value[j];
    else page.values[page.words[at] + (place[j] & 0xFFFFu)] = value[j];
  }
  __syncthreads();

  const size_t first_bucket = size_t{first / 2} + number;
  const uint32_t room = uint32_t(size_t{end / 2} + number + 1 - first_bucket);  // one more than `buckets` at most
  uint4* const out = reinterpret_cast<uint4*>(const_cast<MultiBucket*>(view.buckets) + first_bucket);
  for (uint32_t bucket = thread; bucket < room; bucket += kMultiThreads) {
    uint32_t key[kMultiSlots], word[kMultiSlots];
    uint64_t counts = 0;
#pragma unroll
    for (uint32_t slot = 0; slot < kMultiSlots; ++slot) {
      const uint32_t at = slot * buckets + bucket;
      const uint32_t count = bucket < buckets ? page.counts[at] : 0;
      key[slot] = count != 0 ? page.keys[at] : kQryReservedKey;
      word[slot] = count == 0 ? kQryReservedValue : count == 1 ? page.words[at] : first + page.words[at];
      counts |= uint64_t{count} << (slot * kMultiCountBits);
    }
    if (bucket < buckets && (page.went_on[bucket / 32] >> (bucket % 32) & 1u) != 0) counts |= kMultiWentOn;
    out[size_t{bucket} * 2] = make_uint4(key[0], key[1], key[2], word[0]);
    out[size_t{bucket} * 2 + 1] = make_uint4(word[1], word[2], uint32_t(counts), uint32_t(counts >> 32));
  }
  uint32_t* const values_out = const_cast<uint32_t*>(view.values) + first;
  for (uint32_t i = thread; i < in_runs; i += kMultiThreads) values_out[i] = page.values[i];
  if (thread == 0) const_cast<MultiPage*>(view.pages)[number].buckets = buckets;
}

}  // namespace quarry::hashgrid::kernels
