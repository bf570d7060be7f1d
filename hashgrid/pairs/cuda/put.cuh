// SPDX-License-Identifier: Apache-2.0
// put.cuh - insert and assign of a large batch beside any other operations: split by page (page_lists.cuh), then one
// block a page, which fetches the page into the L2 cache and puts every key by its own compare-and-swap. merge.cu
// launches it. Erase by page is here too.
//
// The bottleneck is latency, so many threads are needed. All of put() takes 64 registers a thread: that leaves half of
// a multiprocessor's threads, and halves the rate. So one kernel handles the two paths that almost all keys take, with
// as few registers as erase. It leaves the other keys at the front of the page's list for a second kernel that handles
// everything.
//
// Each path is a part of put(): it claims the first claimable slot of the key's sequence from the word that it read,
// and is correct for the same reasons.
#pragma once

#include "hashgrid/cuda/page_lists.cuh"
#include "hashgrid/pairs/view.hpp"

namespace quarry::hashgrid {
namespace kernels {

// Fetches a page into the L2 cache; does not wait.
__device__ inline void fetch_page(const uint64_t* words) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(words)), "r"(kQryPageBytes)
               : "memory");
#endif
}

// The key was inserted; the bucket has it already; the bucket is full of other keys; put() must decide.
enum class BucketOutcome : uint32_t { inserted, present, full, undecided };

// Tries one bucket. `after_bit`: a state bit was just set for this key.
__device__ inline BucketOutcome put_into(uint64_t* first, const QryProbeSequence& probes, uint32_t stored,
                                         uint32_t value, uint32_t phase, bool after_bit) {
  const detail::Bucket bucket = detail::SharedWords::load_bucket(first);
  uint32_t never = 0, empty = 0, claimable = 0;
  bool there = false;
#pragma unroll
  for (uint32_t slot = 0; slot < kQrySlotsPerSector; ++slot) {
    const uint64_t word = bucket.slot[slot];
    there |= detail::low(word) == stored;
    never |= uint32_t{word == detail::kNeverUsed} << slot;
    empty |= uint32_t{detail::is_empty(word)} << slot;
    claimable |= uint32_t{detail::is_claimable(word, phase)} << slot;
  }
  if (there) return BucketOutcome::present;
  if (empty == 0) return BucketOutcome::full;
  if (never == 0) return BucketOutcome::undecided;
  const uint32_t turned = (claimable | claimable << kQrySlotsPerSector) >> probes.home_slot;
  const uint32_t slot = (probes.home_slot + uint32_t(__ffs(int(turned))) - 1) & 3u;
  uint64_t expected = detail::kNeverUsed;
  if ((never >> slot & 1u) == 0) return BucketOutcome::undecided;  // a freed slot comes first: its word is different
  return detail::SharedWords::exchange(first + slot, expected, detail::pair_word(stored, value), after_bit)
             ? BucketOutcome::inserted
             : BucketOutcome::undecided;
}

template <detail::IfPresent kIfPresent>
__global__ void __launch_bounds__(kPutThreads, kPutBlocks) put_mostly(GridView view, PageLists pages) {
  __shared__ uint32_t full_homes, rest;
  if (pages.totals->overflowed != 0) return;
  const uint32_t size = pages.sizes[blockIdx.x];
  uint2* const list = pages.lists + size_t{blockIdx.x} * pages.room;
  uint64_t* const page = view.words + size_t{blockIdx.x} * kQryPageWords;
  if (threadIdx.x == 0) {
    full_homes = rest = 0;
    if (size != 0) fetch_page(page);
  }
  uint32_t present = 0;
  // The home bucket: a never-used slot in it means that no key overflowed it.
  for (uint32_t base = 0; base < size; base += kPutThreads * kPutHeld) {
    uint2 pair[kPutHeld];
#pragma unroll
    for (uint32_t k = 0; k < kPutHeld; ++k)
      if (base + k * kPutThreads + threadIdx.x < size) pair[k] = __ldcs(list + base + k * kPutThreads + threadIdx.x);
    __syncthreads();  // the list's front is overwritten next
#pragma unroll
    for (uint32_t k = 0; k < kPutHeld; ++k) {
      if (base + k * kPutThreads + threadIdx.x >= size) continue;
      const QryProbeSequence probes = qry_probe_sequence(pair[k].x, view.page_count);
      const BucketOutcome outcome =
          put_into(page + probes.home_sector * kQrySlotsPerSector, probes, pair[k].x, pair[k].y, view.phase, false);
      if (outcome == BucketOutcome::present && kIfPresent == detail::IfPresent::keep) ++present;
      else if (outcome != BucketOutcome::inserted) list[atomicAdd(&full_homes, 1u)] = pair[k];
    }
  }
  __syncthreads();
  // The second bucket, for keys with a full home bucket from which no key went to the stash.
  const uint32_t count = full_homes;
  for (uint32_t base = 0; base < count; base += kPutThreads) {
    const bool mine = base + threadIdx.x < count;
    const uint2 pair = mine ? list[base + threadIdx.x] : make_uint2(0, 0);
    __syncthreads();
    if (!mine) continue;
    const QryProbeSequence probes = qry_probe_sequence(pair.x, view.page_count);
    BucketOutcome outcome =
        put_into(page + probes.home_sector * kQrySlotsPerSector, probes, pair.x, pair.y, view.phase, false);
    if (outcome == BucketOutcome::full) {
      const bool set_bit = detail::ensure_state<detail::SharedWords>(page, probes.home_sector, kQryBucketSpilled);
      outcome = BucketOutcome::undecided;
      if ((detail::bucket_state<detail::SharedWords>(page, probes.home_sector) & kQryBucketToStash) == 0)
        outcome =
            put_into(page + probes.second_sector * kQrySlotsPerSector, probes, pair.x, pair.y, view.phase, set_bit);
    }
    if (outcome == BucketOutcome::present && kIfPresent == detail::IfPresent::keep) ++present;
    else if (outcome != BucketOutcome::inserted) list[atomicAdd(&rest, 1u)] = pair;
  }
  __syncthreads();
  if (threadIdx.x == 0) pages.sizes[blockIdx.x] = rest;
  present = __reduce_add_sync(0xFFFFFFFFu, present);
  if (threadIdx.x % 32 == 0 && present != 0) atomicAdd(&pages.totals->present, (unsigned long long)present);
}

// The keys that put_mostly left over.
template <detail::IfPresent kIfPresent>
__global__ void __launch_bounds__(kRestThreads) put_rest(GridView view, PageLists pages) {
  if (pages.totals->overflowed != 0) return;
  constexpr uint32_t kLanes = kRestThreads / kRestPages;
  const uint32_t page = blockIdx.x * kRestPages + threadIdx.x / kLanes;
  if (page >= view.page_count) return;
  const uint2* const list = pages.lists + size_t{page} * pages.room;
  uint32_t present = 0, refused = 0;
  for (uint32_t i = threadIdx.x % kLanes; i < pages.sizes[page]; i += kLanes) {
    const uint2 pair = list[i];
    uint32_t value = pair.y;
    const Outcome outcome =
        detail::put<detail::SharedWords, kIfPresent>(view, qry_probe_sequence(pair.x, view.page_count), pair.x, value);
    present += outcome == Outcome::present || outcome == Outcome::assigned;
    refused += outcome == Outcome::full;
  }
  if (present != 0) atomicAdd(&pages.totals->present, (unsigned long long)present);
  if (refused != 0) atomicAdd(&pages.totals->refused, (unsigned long long)refused);
}

// Erases the keys of each page's list, once the page is in the L2 cache, each by a compare-and-swap.
__global__ void __launch_bounds__(kWindowThreads) erase_in_pages(GridView view, PageLists pages) {
  if (pages.totals->overflowed != 0) return;
  const uint32_t size = pages.sizes[blockIdx.x];
  const uint2* const list = pages.lists + size_t{blockIdx.x} * pages.room;
  if (threadIdx.x == 0 && size != 0) fetch_page(view.words + size_t{blockIdx.x} * kQryPageWords);
  uint32_t absent = 0;
  for (uint32_t i = threadIdx.x; i < size; i += kWindowThreads) {
    const uint32_t stored = __ldcs(list + i).x;
    absent += detail::take<detail::SharedWords>(view, qry_probe_sequence(stored, view.page_count), stored, nullptr) ==
              Outcome::absent;
  }
  absent = __reduce_add_sync(0xFFFFFFFFu, absent);
  if (threadIdx.x % 32 == 0 && absent != 0) atomicAdd(&pages.totals->refused, (unsigned long long)absent);
}

}  // namespace kernels

}  // namespace quarry::hashgrid
