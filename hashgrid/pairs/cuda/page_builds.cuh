// SPDX-License-Identifier: Apache-2.0
// page_builds.cuh - the second half of a bulk build: one block loads a page into shared memory, adds the page's list of
// pairs, and writes the page back in one piece. The first half, which makes the lists, is hashgrid/cuda/split.cuh.
//
// Counters hold how many slots of a bucket are taken. A pair claims one by adding to its home bucket's counter, so
// almost every pair costs one 32-bit atomic and one store in shared memory. Pairs with a full home bucket are listed
// (in the list's own memory) and tried in the second bucket. Pairs that fail there go on a random walk: the pair takes
// a random slot, and the pair evicted from it looks for its other bucket. What exceeds the page, and walks that get
// long, go to the stash of its group in global memory by compare-and-swap. Every walk ends after kWalkSteps. If a page
// of a table in use cannot take all of its list, it stays as it was and the list is refused: no key of the table is
// ever at risk.
//
// Between two barriers a word of shared memory is only touched by atomics, or only by one thread, or only read.
//
// Literature: random-walk cuckoo insertion: D. Fotakis, R. Pagh, P. Sanders, P. Spirakis, "Space efficient hash tables
// with worst case constant access time", 2005; building parts of a table in a GPU's shared memory: D. Alcantara et al.,
// "Real-time parallel hashing on the GPU", 2009. Ours: pages that stay self-contained, atomics that never wait, and the
// walk limited to what the two buckets refused.
#pragma once

#include "hashgrid/cuda/split.cuh"
#include "hashgrid/pairs/page_passes.hpp"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kWalkers = 1024;  // at a load of 0.95 a page has 450
// Walks get long where buckets are nearly full, but the stash must suffice for the fullest groups: simulated for loads
// of 0.9 to 0.97, then measured.
constexpr uint32_t kRoomyBucketKeys = 3850;  // 97.0% of the bucket slots: a page's further keys go to the stash
constexpr uint32_t kStashAfter = 75, kStashEach = 25, kWalkSteps = 400;

using Atomic64 = unsigned long long;

struct MergePage {
  uint64_t words[kQryOwnWords];
  uint32_t taken[kQryBucketsPerPage];  // claims on each bucket; 4 or more: full
  uint64_t walkers[kWalkers];          // pairs; later, keys that their walks put into the stash, with slot numbers
  uint32_t listed, walker_count, next_walker, stash_tickets, present, refused, live, leaving;
};

__device__ inline uint32_t bucket_of(uint32_t stored, uint32_t page_count) {
  return qry_home_bucket(stored, page_count);
}
// The slot of a bucket's n-th claim. Rotated from bucket to bucket, so that a warp's stores spread over the banks.
__device__ inline uint32_t claimed_slot(uint32_t bucket, uint32_t n) { return (n + (bucket >> 2)) & 3u; }
__device__ inline uint64_t* bucket_words(MergePage& page, uint32_t bucket) {
  return page.words + (kQryStateSectors + bucket) * kQrySlotsPerSector;
}
__device__ inline uint32_t claim(MergePage& page, uint32_t bucket) { return atomicAdd(&page.taken[bucket], 1u); }
__device__ inline uint32_t state_of(const MergePage& page, uint32_t sector) {
  return uint32_t(page.words[qry_state_word(sector)] >> qry_state_shift(sector)) & 3u;
}
__device__ inline void set_state(MergePage& page, uint32_t sector, uint32_t bits) {
  atomicOr(reinterpret_cast<Atomic64*>(page.words + qry_state_word(sector)), Atomic64{bits} << qry_state_shift(sector));
}

struct FourWords {
  uint64_t word[4];
};
__device__ inline FourWords four_words(const uint64_t* first) {
  const ulonglong2 a = *reinterpret_cast<const ulonglong2*>(first), b = *reinterpret_cast<const ulonglong2*>(first + 2);
  return {{a.x, a.y, b.x, b.y}};
}
// Bit i: slot i has the key.
__device__ inline uint32_t slots_with(const uint64_t* first, uint32_t key) {
  const FourWords f = four_words(first);
  uint32_t mask = 0;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) mask |= uint32_t{detail::low(f.word[i]) == key} << i;
  return mask;
}
// Slots of the stash, numbered through the table.
constexpr uint32_t kPageStashSlots = kQryPageWords - kQryOwnWords;
__device__ inline uint32_t stash_number(const GridView& view, const uint64_t* slot) {
  const size_t word = size_t(slot - view.words);
  return uint32_t(word / kQryPageWords) * kPageStashSlots + uint32_t(word % kQryPageWords) - kQryOwnWords;
}
__device__ inline Atomic64* stash_slot_of(const GridView& view, uint32_t number) {
  return reinterpret_cast<Atomic64*>(view.words + size_t{number / kPageStashSlots} * kQryPageWords + kQryOwnWords +
                                     number % kPageStashSlots);
}

// Packs live pairs to the front of the bucket in the order of claims, without duplicates; freed slots become `gap`.
// Returns the number of live pairs.
__device__ inline uint32_t pack_bucket(uint64_t* first, uint32_t bucket, uint64_t gap) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kQrySlotsPerSector; ++i) {
    const uint64_t word = first[claimed_slot(bucket, i)];
    if (detail::is_empty(word)) continue;
    bool copy = false;
    for (uint32_t k = 0; k < count; ++k) copy |= detail::low(first[claimed_slot(bucket, k)]) == detail::low(word);
    if (!copy) first[claimed_slot(bucket, count++)] = word;
  }
  for (uint32_t i = count; i < kQrySlotsPerSector; ++i) first[claimed_slot(bucket, i)] = gap;
  return count;
}
// Whether two slots of a bucket hold the same key.
__device__ inline bool has_copies(const uint64_t* first) {
  const FourWords f = four_words(first);
  const uint32_t a = detail::low(f.word[0]), b = detail::low(f.word[1]), c = detail::low(f.word[2]),
                 d = detail::low(f.word[3]);
  return ((a == b || a == c || a == d) && a != kQryReservedKey) || ((b == c || b == d) && b != kQryReservedKey) ||
         (c == d && c != kQryReservedKey);
}

// kFresh: the table is known to be empty and never used; its content is not read. Otherwise `gap_phase` stamps slots
// that are freed.
template <uint32_t kThreads, uint32_t kHeld, uint32_t kBlocks, bool kFresh>
__global__ void __launch_bounds__(kThreads, kBlocks)
    merge_pages(GridView view, uint32_t gap_phase, uint2* lists, uint32_t room, uint32_t* sizes, MergeTotals* totals) {
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  MergePage& page = *reinterpret_cast<MergePage*>(shared_bytes);
  if (totals->overflowed != 0) return;
  const uint32_t thread = threadIdx.x;
  const uint32_t size = sizes[blockIdx.x];
  if (size == 0) return;
  const uint32_t page_count = view.page_count;
  uint2* const list = lists + size_t{blockIdx.x} * room;
  ulonglong2* const in_table = reinterpret_cast<ulonglong2*>(view.words + size_t{blockIdx.x} * kQryPageWords);
  ulonglong2* const in_shared = reinterpret_cast<ulonglong2*>(page.words);
  const uint64_t gap = detail::freed_word(gap_phase);

  uint2 held[kHeld];
#pragma unroll
  for (uint32_t j = 0; j < kHeld; ++j)
    if (j * kThreads + thread < size) held[j] = __ldcs(list + j * kThreads + thread);
  if (kFresh) {
    for (uint32_t i = thread; i < kQryOwnWords / 2; i += kThreads)
      in_shared[i] = i < detail::kFirstSlotWord / 2 ? make_ulonglong2(0, 0)
                                                    : make_ulonglong2(detail::kNeverUsed, detail::kNeverUsed);
    for (uint32_t i = thread; i < kQryBucketsPerPage; i += kThreads) page.taken[i] = 0;
  } else {
#pragma unroll 8
    for (uint32_t i = thread; i < kQryOwnWords / 2; i += kThreads) in_shared[i] = __ldcs(in_table + i);
  }
  if (thread == 0)
    page.listed = page.walker_count = page.next_walker = page.stash_tickets = page.present = page.refused = page.live =
        page.leaving = 0;
  __syncthreads();

  // A bucket that keys have overflowed must not have a never-used slot: (I) of view_impl.hpp.
  const auto gap_in = [&page, gap](uint32_t bucket) {
    return kFresh || state_of(page, kQryStateSectors + bucket) == 0 ? detail::kNeverUsed : gap;
  };
  if (!kFresh) {
    uint32_t live = 0;
    for (uint32_t bucket = thread; bucket < kQryBucketsPerPage; bucket += kThreads) {
      const uint32_t here = pack_bucket(bucket_words(page, bucket), bucket, gap_in(bucket));
      page.taken[bucket] = here;
      live += here;
    }
    atomicAdd(&page.live, live);
    __syncthreads();
  }

  // Home buckets.
  for (uint32_t base = 0; base < size; base += kHeld * kThreads) {
    if (base != 0) {
#pragma unroll
      for (uint32_t j = 0; j < kHeld; ++j)
        if (base + j * kThreads + thread < size) held[j] = __ldcs(list + base + j * kThreads + thread);
      __syncthreads();  // the list's memory is overwritten next
    }
    uint32_t known = 0;
    // A list longer than the page has duplicates: those of earlier rounds are dropped before they take other keys'
    // slots.
    if (!kFresh || (base != 0 && size > kQrySlotsPerPage)) {
#pragma unroll
      for (uint32_t j = 0; j < kHeld; ++j) {
        if (base + j * kThreads + thread >= size) continue;
        const uint32_t key = held[j].x, bucket = bucket_of(held[j].x, page_count);
        bool has = slots_with(bucket_words(page, bucket), key) != 0;
        const uint32_t state = state_of(page, kQryStateSectors + bucket);
        if (!has && state != 0) {
          const QryProbeSequence probes = qry_probe_sequence(held[j].x, page_count);
          has = slots_with(page.words + probes.second_sector * kQrySlotsPerSector, key) != 0 ||
                ((state & kQryBucketToStash) != 0 &&
                 detail::locate_in_stash<detail::SharedWords>(view, probes, key).slot != nullptr);
        }
        known |= uint32_t{has} << j;
      }
      if (known != 0) atomicAdd(&page.present, uint32_t(__popc(known)));
      __syncthreads();
    }
#pragma unroll
    for (uint32_t j = 0; j < kHeld; ++j) {
      if (base + j * kThreads + thread >= size || (known >> j & 1u) != 0) continue;
      const uint32_t bucket = bucket_of(held[j].x, page_count);
      const uint32_t n = claim(page, bucket);
      if (n < kQrySlotsPerSector)
        bucket_words(page, bucket)[claimed_slot(bucket, n)] = detail::pair_word(held[j].x, held[j].y);
      else list[atomicAdd(&page.listed, 1u)] = held[j];
    }
  }
  __syncthreads();
  // Duplicates within the batch.
  for (uint32_t bucket = thread; bucket < kQryBucketsPerPage; bucket += kThreads) {
    uint64_t* const first = bucket_words(page, bucket);
    if (!has_copies(first)) continue;
    const uint32_t before = min(page.taken[bucket], kQrySlotsPerSector),
                   now = pack_bucket(first, bucket, gap_in(bucket));
    page.taken[bucket] = now;
    atomicAdd(&page.present, before - now);
  }
  __syncthreads();

  // Second buckets, for pairs with a full home bucket.
  const uint32_t listed = page.listed;
  for (uint32_t base = 0; base < listed; base += kThreads) {
    const bool mine = base + thread < listed;
    uint2 pair = make_uint2(0, 0);
    uint32_t key = 0, home = 0, next = 0;
    bool copy = true, home_room = false, next_room = false;
    if (mine) {
      pair = list[base + thread];
      key = pair.x;
      const QryProbeSequence probes = qry_probe_sequence(pair.x, page_count);
      home = probes.home_sector - kQryStateSectors;
      next = probes.second_sector - kQryStateSectors;
      copy = (slots_with(bucket_words(page, home), key) | slots_with(bucket_words(page, next), key)) != 0;
      home_room = page.taken[home] < kQrySlotsPerSector;
      next_room = page.taken[next] < kQrySlotsPerSector;
      if (copy) atomicAdd(&page.present, 1u);
    }
    __syncthreads();
    if (!copy) {
      const uint64_t word = detail::pair_word(key, pair.y);
      uint32_t n = home_room ? claim(page, home) : kQrySlotsPerSector;
      uint32_t bucket = home;
      if (n >= kQrySlotsPerSector) {
        set_state(page, kQryStateSectors + home, kQryBucketSpilled);
        bucket = next;
        n = next_room ? claim(page, next) : kQrySlotsPerSector;
      }
      if (n < kQrySlotsPerSector) {
        bucket_words(page, bucket)[claimed_slot(bucket, n)] = word;
      } else {
        const uint32_t walker = atomicAdd(&page.walker_count, 1u);
        if (walker < kWalkers) page.walkers[walker] = word;
        else atomicAdd(&page.refused, 1u);
      }
    }
    __syncthreads();
  }

  // Walks. A lane takes the next walker as soon as it has none.
  const uint32_t walkers = min(page.walker_count, kWalkers);
  if (walkers != 0) {
    const uint32_t keys_here = page.live + size - page.present;
    const uint32_t for_stash = keys_here > kRoomyBucketKeys ? keys_here - kRoomyBucketKeys : 0;
    __syncthreads();
    uint32_t random = (blockIdx.x * kThreads + thread) * 0x9E3779B1u, bucket = 0, steps = 0, walker = 0;
    uint64_t hand = detail::kNeverUsed;
    const auto into_stash = [&](const QryProbeSequence& probes) {
      const detail::StashClaim claimed = detail::claim_in_stash<detail::SharedWords>(view, probes, hand);
      if (claimed.slot == nullptr) return false;
      if (claimed.was_there) {  // a duplicate, which took the same path
        atomicAdd(&page.present, 1u);
      } else {
        page.walkers[walker] = detail::pair_word(detail::low(hand), stash_number(view, claimed.slot));
        set_state(page, probes.home_sector, kQryBucketSpilled | kQryBucketToStash);
      }
      hand = detail::kNeverUsed;
      return true;
    };
    for (;;) {
      if (hand == detail::kNeverUsed) {
        walker = atomicAdd(&page.next_walker, 1u);
        if (walker >= walkers) break;
        hand = page.walkers[walker];
        page.walkers[walker] = detail::kNeverUsed;
        const QryProbeSequence probes = qry_probe_sequence(detail::low(hand), page_count);
        if (for_stash != 0 && atomicAdd(&page.stash_tickets, 1u) < for_stash && into_stash(probes)) continue;
        random = random * 1664525u + 1013904223u;
        bucket =
            (random >> 28 & 1u) != 0 ? probes.home_sector - kQryStateSectors : probes.second_sector - kQryStateSectors;
        steps = 0;
      }
      const uint32_t n = claim(page, bucket);
      random = random * 1664525u + 1013904223u;
      const uint32_t slot = n < kQrySlotsPerSector ? claimed_slot(bucket, n) : random >> 30;
      // The slot is taken by exchange even if the claim makes it ours: a walker may have been there first.
      hand = atomicExch(reinterpret_cast<Atomic64*>(bucket_words(page, bucket) + slot), Atomic64{hand});
      if (detail::is_empty(hand)) {
        hand = detail::kNeverUsed;
        continue;
      }
      const QryProbeSequence probes = qry_probe_sequence(detail::low(hand), page_count);
      // If all six stash sectors of a key are full, the walk continues: the next key has others.
      if (++steps >= kStashAfter && steps % kStashEach == 0) {
        if (into_stash(probes)) continue;
        if (steps >= kWalkSteps) {
          atomicAdd(&page.refused, 1u);
          hand = detail::kNeverUsed;
          continue;
        }
      }
      if (bucket + kQryStateSectors == probes.home_sector) {
        set_state(page, probes.home_sector, kQryBucketSpilled);
        bucket = probes.second_sector - kQryStateSectors;
      } else {
        bucket = probes.home_sector - kQryStateSectors;
      }
    }
    __syncthreads();
  }

  // Duplicates of a listed key may be in two places now: the first in probe order stays.
  for (uint32_t base = 0; base < listed; base += kThreads) {
    uint32_t slots = 0;
    QryProbeSequence probes{};
    if (base + thread < listed) {
      const uint32_t key = list[base + thread].x;
      probes = qry_probe_sequence(key, page_count);
      slots = slots_with(page.words + probes.home_sector * kQrySlotsPerSector, key) |
              slots_with(page.words + probes.second_sector * kQrySlotsPerSector, key) << 4;
      slots &= slots - 1;
    }
    __syncthreads();
    while (slots != 0) {
      const uint32_t i = uint32_t(__ffs(int(slots))) - 1;
      slots &= slots - 1;
      uint64_t* word = page.words + (i < 4 ? probes.home_sector : probes.second_sector) * kQrySlotsPerSector + i % 4;
      if (!detail::is_empty(atomicExch(reinterpret_cast<Atomic64*>(word), Atomic64{gap}))) atomicAdd(&page.present, 1u);
    }
    __syncthreads();
  }

  const bool write = kFresh || page.refused == 0;
  // A stash entry is removed again if a duplicate of it is in a bucket, or if the page stays as it was. leave_stash
  // does that after all pages are done: freed now, the slot could go to a second copy of another page's key that
  // already has a slot further on.
  for (uint32_t w = thread; w < walkers; w += kThreads) {
    const uint32_t key = detail::low(page.walkers[w]);
    if (key == kQryReservedKey) continue;
    const QryProbeSequence probes = qry_probe_sequence(key, page_count);
    const bool copy = (slots_with(page.words + probes.home_sector * kQrySlotsPerSector, key) |
                       slots_with(page.words + probes.second_sector * kQrySlotsPerSector, key)) != 0;
    if (copy) atomicAdd(&page.present, 1u);
    if (copy || !write) list[atomicAdd(&page.leaving, 1u)].y = detail::high(page.walkers[w]);
  }
  if (walkers != 0) __syncthreads();
  if (thread == 0) {
    sizes[blockIdx.x] = page.leaving;
    if (page.present != 0 && write) atomicAdd(&totals->present, Atomic64{page.present});
    if (page.refused != 0) atomicAdd(&totals->refused, Atomic64{write ? page.refused : size});
  }
  if (!write) return;
#if __CUDA_ARCH__ >= 900
  // One bulk copy by the copy engine: the block's threads are free at once.
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (thread == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(in_table),
                 "r"(uint32_t(__cvta_generic_to_shared(page.words))), "r"(kQryOwnWords * kQrySlotBytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
#else
  for (uint32_t i = thread; i < kQryOwnWords / 2; i += kThreads) __stcs(in_table + i, in_shared[i]);
#endif
}

// The end of merge_pages, for the whole table: frees the stash slots that it listed.
__global__ void __launch_bounds__(kLeaveThreads)
    leave_stash(GridView view, uint32_t gap_phase, const uint2* lists, uint32_t room, const uint32_t* sizes,
                const MergeTotals* totals) {
  if (totals->overflowed != 0) return;
  constexpr uint32_t kLanes = kLeaveThreads / kLeavePages;
  const uint32_t page = blockIdx.x * kLeavePages + threadIdx.x / kLanes;
  if (page >= view.page_count) return;
  for (uint32_t i = threadIdx.x % kLanes; i < sizes[page]; i += kLanes)
    *stash_slot_of(view, lists[size_t{page} * room + i].y) = detail::freed_word(gap_phase);
}

}  // namespace quarry::hashgrid::kernels
