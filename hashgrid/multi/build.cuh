// SPDX-License-Identifier: Apache-2.0
// build.cuh - pages of a multi grid built in shared memory, a block for each. The page's pairs lie side by side, in any
// order.
//
// A key finds its place in a table with twice as many slots as there are pairs by one 32-bit swap, and a pair its place
// in the key's run by one addition. The thread that came first with a key then takes room for its run, if there are
// others, and a slot in its home bucket, or behind it, by counting: no slot is looked at twice. Buckets and values are
// written in one piece each.
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
constexpr uint32_t kMultiTable = kMultiMostPairs * 2;
static_assert(kMultiMostPairs < 1u << 16);

struct MultiPageBuild {
  uint32_t runs[kMultiTable];    // of a key: pairs so far; then begin of its run << 16, and its length
  uint32_t used[kMultiBuckets];  // slots that keys have asked for; those beyond the third went on
  uint32_t values[kMultiMostPairs];
  union {
    alignas(16) uint32_t table[kMultiTable];  // keys
    // Slot `slot` of bucket `bucket` is word slot * buckets + bucket, so that neighbours are in different banks.
    struct {
      uint32_t keys[kMultiBuckets * kMultiSlots];
      uint32_t words[kMultiBuckets * kMultiSlots];
      uint16_t counts[kMultiBuckets * kMultiSlots];
    } slots;
  };
  uint32_t taken;  // of `values`
};

// The slots of a table of shared memory for so many pairs are 2^table_bits(): twice as many, at least.
__device__ inline uint32_t table_bits(uint32_t pairs) { return pairs <= 32 ? 6 : 33 - __clz(int(pairs - 1)); }
__device__ inline uint32_t table_home(uint32_t stored, uint32_t bits) { return stored * 0x9E3779B1u >> (32 - bits); }
__device__ inline void clear_table(uint32_t* words, uint32_t bits, uint32_t to) {
  for (uint32_t i = threadIdx.x; i < (1u << bits) / 4; i += blockDim.x)
    reinterpret_cast<uint4*>(words)[i] = make_uint4(to, to, to, to);
}
// The slot of a key, which is put there unless it is there.
__device__ inline uint32_t claim_slot(uint32_t* table, uint32_t bits, uint32_t stored) {
  for (uint32_t slot = table_home(stored, bits);; slot = (slot + 1) & ((1u << bits) - 1)) {
    const uint32_t found = atomicCAS(&table[slot], kQryReservedKey, stored);
    if (found == kQryReservedKey || found == stored) return slot;
  }
}
// Room for `wanted` words of every lane, of which *taken are taken: where a lane's begin. All lanes of a warp call it.
__device__ inline uint32_t take_room(uint32_t wanted, uint32_t* taken) {
  if (__any_sync(0xFFFFFFFFu, wanted != 0) == 0) return 0;
  const uint32_t lane = threadIdx.x % 32;
  uint32_t upto = wanted;
#pragma unroll
  for (uint32_t step = 1; step < 32; step *= 2) {
    const uint32_t before = __shfl_up_sync(0xFFFFFFFFu, upto, step);
    if (lane >= step) upto += before;
  }
  uint32_t begin = 0;
  if (lane == 31) begin = atomicAdd(taken, upto);
  return __shfl_sync(0xFFFFFFFFu, begin, 31) + upto - wanted;
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
  uint2 pair[kMultiHeld];
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j) {
    const uint32_t i = j * kMultiThreads + thread;
    if (i < size) pair[j] = __ldcs(pairs + first + i);
  }
  const uint32_t bits = table_bits(size);
  clear_table(page.table, bits, kQryReservedKey);
  clear_table(page.runs, bits, 0);
  for (uint32_t i = thread; i < buckets; i += kMultiThreads) page.used[i] = 0;
  if (thread == 0) page.taken = 0;
  __syncthreads();

  uint32_t place[kMultiHeld];  // slot in the table, and rank in its run
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j) {
    if (j * kMultiThreads + thread >= size) continue;
    const uint32_t slot = claim_slot(page.table, bits, pair[j].x);
    place[j] = slot << 16 | atomicAdd(&page.runs[slot], 1u);
  }
  __syncthreads();

  const auto comes_first = [&](uint32_t j) { return j * kMultiThreads + thread < size && (place[j] & 0xFFFFu) == 0; };
  uint32_t wanted = 0;
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j) {
    const uint32_t length = comes_first(j) ? page.runs[place[j] >> 16] : 0;
    if (length > 1) wanted += length;
  }
  uint32_t begin = take_room(wanted, &page.taken);
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j) {
    if (!comes_first(j)) continue;
    uint32_t& run = page.runs[place[j] >> 16];
    const uint32_t length = run;
    uint32_t bucket = multi_home(pair[j].x, buckets), slot;
    // Slots are half as many again as pairs.
    while ((slot = atomicAdd(&page.used[bucket], 1u)) >= kMultiSlots) bucket = bucket + 1 == buckets ? 0 : bucket + 1;
    const uint32_t at = slot * buckets + bucket;
    page.slots.keys[at] = pair[j].x;
    page.slots.words[at] = length == 1 ? pair[j].y : first + begin;
    page.slots.counts[at] = uint16_t(length);
    if (length == 1) continue;
    run = begin << 16 | length;
    begin += length;
  }
  __syncthreads();
#pragma unroll
  for (uint32_t j = 0; j < kMultiHeld; ++j) {
    if (j * kMultiThreads + thread >= size) continue;
    const uint32_t run = page.runs[place[j] >> 16];
    if (run != 1) page.values[(run >> 16) + (place[j] & 0xFFFFu)] = pair[j].y;
  }
  __syncthreads();

  const size_t first_bucket = size_t{first / 2} + number;
  const uint32_t room = uint32_t(size_t{end / 2} + number + 1 - first_bucket);  // one more than `buckets` at most
  uint4* const out = reinterpret_cast<uint4*>(const_cast<MultiBucket*>(view.buckets) + first_bucket);
  for (uint32_t bucket = thread; bucket < room; bucket += kMultiThreads) {
    const uint32_t used = bucket < buckets ? page.used[bucket] : 0;
    uint32_t key[kMultiSlots], word[kMultiSlots];
    uint64_t counts = used > kMultiSlots ? kMultiWentOn : 0;
#pragma unroll
    for (uint32_t slot = 0; slot < kMultiSlots; ++slot) {
      const uint32_t at = slot * buckets + bucket;
      const bool taken = slot < used;
      key[slot] = taken ? page.slots.keys[at] : kQryReservedKey;
      word[slot] = taken ? page.slots.words[at] : kQryReservedValue;
      counts |= uint64_t{taken ? page.slots.counts[at] : 0u} << (slot * kMultiCountBits);
    }
    out[size_t{bucket} * 2] = make_uint4(key[0], key[1], key[2], word[0]);
    out[size_t{bucket} * 2 + 1] = make_uint4(word[1], word[2], uint32_t(counts), uint32_t(counts >> 32));
  }
  uint32_t* const values_out = const_cast<uint32_t*>(view.values) + first;
  const uint32_t in_runs = page.taken;
  for (uint32_t i = thread; i < in_runs; i += kMultiThreads) values_out[i] = page.values[i];
}

}  // namespace quarry::hashgrid::kernels
