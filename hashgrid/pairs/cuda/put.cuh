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

using detail::BucketOutcome;

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
      uint32_t value = pair[k].y;
      const BucketOutcome outcome = detail::put_into<detail::SharedWords, kIfPresent>(
          page + probes.home_sector * kQrySlotsPerSector, probes.home_slot, pair[k].x, value, view.phase, false);
      if (outcome == BucketOutcome::present) ++present;
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
    uint32_t value = pair.y;
    const auto put_into = [&](uint32_t sector, bool after_bit) {
      return detail::put_into<detail::SharedWords, kIfPresent>(page + sector * kQrySlotsPerSector, probes.home_slot,
                                                               pair.x, value, view.phase, after_bit);
    };
    BucketOutcome outcome = put_into(probes.home_sector, false);
    if (outcome == BucketOutcome::full) {
      const bool set_bit = detail::ensure_state<detail::SharedWords>(page, probes.home_sector, kQryBucketSpilled);
      outcome = BucketOutcome::undecided;
      if ((detail::bucket_state<detail::SharedWords>(page, probes.home_sector) & kQryBucketToStash) == 0)
        outcome = put_into(probes.second_sector, set_bit);
    }
    if (outcome == BucketOutcome::present) ++present;
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
