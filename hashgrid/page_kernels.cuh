// page_kernels.cuh - the kernels that stream over whole pages, a block for each. Launches are in executor_cuda.cu.
//
// Where a page is rebuilt it lies in shared memory, and between two barriers a word is touched either by atomics alone or by one thread
// alone: compute-sanitizer's racecheck must have nothing to say.
#pragma once

#include "hashgrid/page_settle.hpp"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kPageThreads = 256;
constexpr uint32_t kWarpsPerBlock = kPageThreads / 32;
constexpr uint32_t kWordsPerThread = kQryPageWords / kPageThreads;

using AtomicWord = unsigned long long;  // what CUDA's atomics call a 64-bit word

__device__ inline uint64_t fresh_word(uint32_t index) { return index < detail::kFirstSlotWord ? 0 : detail::kNeverUsed; }

__device__ inline bool claim_shared(uint64_t* word, uint64_t desired) {
  return atomicCAS(reinterpret_cast<AtomicWord*>(word), AtomicWord{detail::kNeverUsed}, AtomicWord{desired}) == detail::kNeverUsed;
}

__global__ void __launch_bounds__(kPageThreads) clear_pages(uint64_t* words, uint32_t page_count) {
  for (uint32_t page = blockIdx.x; page < page_count; page += gridDim.x) {
    ulonglong2* out = reinterpret_cast<ulonglong2*>(words + size_t{page} * kQryPageWords);
    for (uint32_t i = threadIdx.x; i < kQryPageWords / 2; i += kPageThreads) out[i] = make_ulonglong2(fresh_word(2 * i), fresh_word(2 * i + 1));
  }
}

// Enumeration, first pass: pairs in each page.
__global__ void __launch_bounds__(kPageThreads) count_pairs(const uint64_t* words, uint32_t page_count, uint64_t* counts) {
  __shared__ uint32_t warp_counts[kWarpsPerBlock];
  for (uint32_t page = blockIdx.x; page < page_count; page += gridDim.x) {
    const uint64_t* w = words + size_t{page} * kQryPageWords;
    uint32_t live = 0;
    for (uint32_t i = threadIdx.x; i < kQryPageWords; i += kPageThreads) live += i >= detail::kFirstSlotWord && !detail::is_empty(w[i]);
    for (uint32_t step = 16; step != 0; step /= 2) live += __shfl_down_sync(0xFFFFFFFFu, live, step);
    if (threadIdx.x % 32 == 0) warp_counts[threadIdx.x / 32] = live;
    __syncthreads();
    if (threadIdx.x == 0) {
      uint32_t sum = 0;
      for (uint32_t i = 0; i < kWarpsPerBlock; ++i) sum += warp_counts[i];
      counts[page] = sum;
    }
    __syncthreads();
  }
}

// Second pass: writes the pairs of each page, in memory order, from begins[page] on.
__global__ void __launch_bounds__(kPageThreads) write_pairs(const uint64_t* words, uint32_t page_count, uint32_t locality, const uint64_t* begins, uint32_t* keys,
                                                            uint32_t* values, uint64_t capacity) {
  __shared__ uint32_t ranks[kWordsPerThread * kWarpsPerBlock];  // pairs before each warp's row of 32 words
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (uint32_t page = blockIdx.x; page < page_count; page += gridDim.x) {
    const uint64_t* w = words + size_t{page} * kQryPageWords;
    uint64_t word[kWordsPerThread];
    uint32_t live[kWordsPerThread];
#pragma unroll
    for (uint32_t r = 0; r < kWordsPerThread; ++r) {
      const uint32_t index = r * kPageThreads + threadIdx.x;
      word[r] = w[index];
      live[r] = __ballot_sync(0xFFFFFFFFu, index >= detail::kFirstSlotWord && !detail::is_empty(word[r]));
      if (lane == 0) ranks[r * kWarpsPerBlock + warp] = __popc(live[r]);
    }
    __syncthreads();
    if (warp == 0) {  // ranks: from counts to sums of what stands before
      constexpr uint32_t kPerLane = kWordsPerThread * kWarpsPerBlock / 32;
      uint32_t count[kPerLane], sum = 0;
#pragma unroll
      for (uint32_t i = 0; i < kPerLane; ++i) sum += count[i] = ranks[lane * kPerLane + i];
      uint32_t upto = sum;
      for (uint32_t step = 1; step < 32; step *= 2) {
        const uint32_t left = __shfl_up_sync(0xFFFFFFFFu, upto, step);
        if (lane >= step) upto += left;
      }
      uint32_t before = upto - sum;
#pragma unroll
      for (uint32_t i = 0; i < kPerLane; ++i) {
        ranks[lane * kPerLane + i] = before;
        before += count[i];
      }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t r = 0; r < kWordsPerThread; ++r) {
      if ((live[r] >> lane & 1) == 0) continue;
      const uint64_t at = begins[page] + ranks[r * kWarpsPerBlock + warp] + __popc(live[r] & ((1u << lane) - 1));
      if (at >= capacity) continue;
      if (keys != nullptr) keys[at] = qry_key_of_stored(detail::low(word[r]), locality);
      if (values != nullptr) values[at] = detail::high(word[r]);
    }
    __syncthreads();
  }
}

// What statistics add up to; zero before the launch.
struct StatsSums {
  AtomicWord live, freed, overflow_live, spilled_buckets, fullest_page_live;
  AtomicWord depth_histogram[kDepthBins];
  AtomicWord bucket_fill[kQrySlotsPerSector + 1];
};

__global__ void __launch_bounds__(kPageThreads) sum_stats(const uint64_t* words, uint32_t page_count, StatsSums* sums) {
  __shared__ uint32_t depths[kDepthBins], fill[kQrySlotsPerSector + 1], page_live, freed_all, area_all, spilled_all;
  __shared__ uint32_t fullest;
  __shared__ AtomicWord live_all;
  if (threadIdx.x < kDepthBins) depths[threadIdx.x] = 0;
  if (threadIdx.x <= kQrySlotsPerSector) fill[threadIdx.x] = 0;
  if (threadIdx.x == 0) page_live = freed_all = area_all = spilled_all = fullest = 0, live_all = 0;
  __syncthreads();
  uint32_t first_sector = 0, freed = 0, area = 0, spilled = 0;  // of this thread; depth 1 is by far the most frequent
  uint32_t filled[kQrySlotsPerSector + 1] = {};
  for (uint32_t page = blockIdx.x; page < page_count; page += gridDim.x) {
    const uint64_t* w = words + size_t{page} * kQryPageWords;
    uint32_t live = 0;
    for (uint32_t sector = kQryStateSectors + threadIdx.x; sector < kQrySectorsPerPage; sector += kPageThreads) {
      const detail::Bucket bucket = detail::SharedWords::load_bucket(w + sector * kQrySlotsPerSector);
      uint32_t here = 0;
#pragma unroll
      for (uint32_t i = 0; i < kQrySlotsPerSector; ++i) {
        const uint64_t word = bucket.slot[i];
        if (detail::is_empty(word)) {
          freed += word != detail::kNeverUsed;
          continue;
        }
        ++here;
        const uint32_t depth = detail::depth_at(qry_place_stored(detail::low(word), page_count), sector * kQrySlotsPerSector + i);
        if (depth == 1)
          ++first_sector;
        else
          atomicAdd(&depths[min(depth, kDepthBins) - 1], 1u);
      }
      live += here;
      if (sector >= kQryAreaFirstSector) {
        area += here;
      } else {
#pragma unroll
        for (uint32_t f = 0; f <= kQrySlotsPerSector; ++f) filled[f] += here == f;
        spilled += detail::bucket_state<detail::SharedWords>(w, sector) & kQryBucketSpilled;
      }
    }
    for (uint32_t step = 16; step != 0; step /= 2) live += __shfl_down_sync(0xFFFFFFFFu, live, step);
    if (threadIdx.x % 32 == 0) atomicAdd(&page_live, live);
    __syncthreads();
    if (threadIdx.x == 0) {
      live_all += page_live;
      fullest = max(fullest, page_live);
      page_live = 0;
    }
    __syncthreads();
  }
  atomicAdd(&depths[0], first_sector);
#pragma unroll
  for (uint32_t f = 0; f <= kQrySlotsPerSector; ++f) atomicAdd(&fill[f], filled[f]);
  atomicAdd(&freed_all, freed);
  atomicAdd(&area_all, area);
  atomicAdd(&spilled_all, spilled);
  __syncthreads();
  if (threadIdx.x < kDepthBins && depths[threadIdx.x] != 0) atomicAdd(&sums->depth_histogram[threadIdx.x], AtomicWord{depths[threadIdx.x]});
  if (threadIdx.x <= kQrySlotsPerSector) atomicAdd(&sums->bucket_fill[threadIdx.x], AtomicWord{fill[threadIdx.x]});
  if (threadIdx.x == 0) {
    atomicAdd(&sums->live, live_all);
    atomicAdd(&sums->freed, AtomicWord{freed_all});
    atomicAdd(&sums->overflow_live, AtomicWord{area_all});
    atomicAdd(&sums->spilled_buckets, AtomicWord{spilled_all});
    atomicMax(&sums->fullest_page_live, AtomicWord{fullest});
  }
}

// State bits from where the keys stand. Barrier before and after.
__device__ inline void mark_shared_page(uint64_t* page, uint32_t page_count) {
  for (uint32_t i = threadIdx.x; i < detail::kFirstSlotWord; i += kPageThreads) page[i] = 0;
  __syncthreads();
  for (uint32_t index = detail::kFirstSlotWord + threadIdx.x; index < kQryPageWords; index += kPageThreads) {
    const uint64_t word = page[index];
    if (detail::is_empty(word)) continue;
    const QryPlace place = qry_place_stored(detail::low(word), page_count);
    const uint32_t depth = detail::depth_at(place, index);
    if (depth == 1) continue;
    const uint32_t bits = kQryBucketSpilled | (depth > 2 ? kQryBucketToArea : 0u);
    atomicOr(reinterpret_cast<AtomicWord*>(page + qry_state_word(place.home_sector)), AtomicWord{bits} << qry_state_shift(place.home_sector));
  }
  __syncthreads();
}

__device__ inline bool claim_in_bucket(uint64_t* page, uint32_t sector, const QryPlace& place, uint64_t word) {
  for (uint32_t n = 0; n < kQrySlotsPerSector; ++n)
    if (claim_shared(page + detail::bucket_word(sector, place, n), word)) return true;
  return false;
}

// The same as detail::sweep_page, by a block.
__global__ void __launch_bounds__(kPageThreads) sweep_pages(uint64_t* words, uint32_t page_count) {
  __shared__ alignas(16) uint64_t page[kQryPageWords];
  constexpr uint32_t kChunkWords = 4 * kPageThreads;
  for (uint32_t p = blockIdx.x; p < page_count; p += gridDim.x) {
    uint64_t* w = words + size_t{p} * kQryPageWords;
    for (uint32_t i = threadIdx.x; i < kQryPageWords; i += kPageThreads) {
      const uint64_t word = w[i];
      page[i] = i >= detail::kFirstSlotWord && detail::is_empty(word) ? detail::kNeverUsed : word;
    }
    __syncthreads();
    // Forward moves until none is possible. A chunk of words is read, then moved: reads and atomics never overlap.
    for (int moved = 1; moved != 0;) {
      moved = 0;
      for (uint32_t chunk = 0; chunk < kQryPageWords; chunk += kChunkWords) {
        uint64_t mine[kChunkWords / kPageThreads];
#pragma unroll
        for (uint32_t j = 0; j < kChunkWords / kPageThreads; ++j) mine[j] = page[chunk + j * kPageThreads + threadIdx.x];
        __syncthreads();
#pragma unroll
        for (uint32_t j = 0; j < kChunkWords / kPageThreads; ++j) {
          const uint32_t index = chunk + j * kPageThreads + threadIdx.x;
          if (index < detail::kFirstSlotWord || detail::is_empty(mine[j])) continue;
          const QryPlace place = qry_place_stored(detail::low(mine[j]), page_count);
          const uint32_t depth = detail::depth_at(place, index);
          if (depth == 1) continue;
          if (claim_in_bucket(page, place.home_sector, place, mine[j]) || (depth > 2 && claim_in_bucket(page, place.next_sector, place, mine[j]))) {
            atomicExch(reinterpret_cast<AtomicWord*>(page + index), AtomicWord{detail::kNeverUsed});  // only the slot's own thread empties it
            moved = 1;
          }
        }
        __syncthreads();
      }
      moved = __syncthreads_or(moved);
    }
    // What stays in the area is probed again from an empty one.
    uint64_t left = detail::kNeverUsed;
    if (threadIdx.x < kQryAreaSlots) left = page[detail::kAreaFirstWord + threadIdx.x];
    __syncthreads();
    if (threadIdx.x < kQryAreaSlots) page[detail::kAreaFirstWord + threadIdx.x] = detail::kNeverUsed;
    __syncthreads();
    if (!detail::is_empty(left)) {
      const QryPlace place = qry_place_stored(detail::low(left), page_count);
      for (uint32_t n = 0; !claim_shared(page + detail::area_word(place, n), left);) ++n;
    }
    __syncthreads();
    mark_shared_page(page, page_count);
    for (uint32_t i = threadIdx.x; i < kQryPageWords; i += kPageThreads) w[i] = page[i];
    __syncthreads();
  }
}

constexpr uint32_t kLeftoverWords = 512;
constexpr uint32_t kRehashAhead = 8;

__device__ inline void mark_gone_on(uint64_t* page, uint32_t sector, uint32_t bits) {
  atomicOr(reinterpret_cast<AtomicWord*>(page + qry_state_word(sector)), AtomicWord{bits} << qry_state_shift(sector));
}

// Builds each page of `to` from the pages of `from` that can hold its keys. Keys are all different, so nobody looks for them: a bucket
// hands out its slots by a counter, the area by CAS; what fits neither is placed by moves, by one thread.
__global__ void __launch_bounds__(kPageThreads) rehash_pages(const uint64_t* from_words, uint32_t from_pages, uint64_t* to_words, uint32_t to_pages,
                                                             AtomicWord* refused) {
  __shared__ alignas(16) uint64_t page[kQryPageWords];
  __shared__ uint64_t leftover[kLeftoverWords];
  __shared__ union {
    uint32_t taken[kQryBucketsPerPage];  // slots handed out, of each bucket
    detail::SettleScratch scratch;
  } shared;
  __shared__ uint32_t leftover_count;
  for (uint32_t p = blockIdx.x; p < to_pages; p += gridDim.x) {
    for (uint32_t i = threadIdx.x; i < kQryPageWords; i += kPageThreads) page[i] = fresh_word(i);
    for (uint32_t i = threadIdx.x; i < kQryBucketsPerPage; i += kPageThreads) shared.taken[i] = 0;
    if (threadIdx.x == 0) leftover_count = 0;
    __syncthreads();
    const detail::PageRange range = detail::source_pages(p, to_pages, from_pages);
    for (uint32_t source = range.first; source <= range.last; ++source) {
      const uint64_t* w = from_words + size_t{source} * kQryPageWords;
      for (uint32_t first = 0; first < kQryPageWords; first += kRehashAhead * kPageThreads) {
        uint64_t ahead[kRehashAhead];  // all loads of a round are on their way before the first word is looked at
#pragma unroll
        for (uint32_t j = 0; j < kRehashAhead; ++j) ahead[j] = __ldcs(w + first + j * kPageThreads + threadIdx.x);
#pragma unroll
        for (uint32_t j = 0; j < kRehashAhead; ++j) {
          const uint64_t word = ahead[j];
          if (first + j * kPageThreads + threadIdx.x < detail::kFirstSlotWord || detail::is_empty(word)) continue;
          const QryPlace place = qry_place_stored(detail::low(word), to_pages);
          if (place.page != p) continue;
          // Slots are turned from bucket to bucket, so that a warp's stores spread over the banks.
          uint32_t sector = place.home_sector;
          uint32_t slot = atomicAdd(&shared.taken[sector - kQryStateSectors], 1u);
          if (slot >= kQrySlotsPerSector) {
            mark_gone_on(page, place.home_sector, kQryBucketSpilled);
            sector = place.next_sector;
            slot = atomicAdd(&shared.taken[sector - kQryStateSectors], 1u);
          }
          if (slot < kQrySlotsPerSector) {
            page[sector * kQrySlotsPerSector + ((slot + (sector >> 2)) & 3u)] = word;
            continue;
          }
          mark_gone_on(page, place.home_sector, kQryBucketSpilled | kQryBucketToArea);
          uint32_t n = 0;
          while (n < kQryAreaSlots && !claim_shared(page + detail::area_word(place, n), word)) ++n;
          if (n < kQryAreaSlots) continue;
          const uint32_t at = atomicAdd(&leftover_count, 1u);
          if (at < kLeftoverWords)
            leftover[at] = word;
          else
            atomicAdd(refused, AtomicWord{1});
        }
      }
    }
    __syncthreads();
    if (threadIdx.x == 0 && leftover_count != 0) {
      shared.scratch.reset();
      for (uint32_t i = 0; i < min(leftover_count, kLeftoverWords); ++i) {
        const QryPlace place = qry_place_stored(detail::low(leftover[i]), to_pages);
        if (detail::place_absent(page, place, detail::low(leftover[i]), detail::high(leftover[i]), to_pages, shared.scratch) == Outcome::full)
          atomicAdd(refused, AtomicWord{1});
      }
      detail::drain_area(page, to_pages, shared.scratch);
    }
    __syncthreads();
    if (leftover_count != 0) mark_shared_page(page, to_pages);  // moves say too much or too little
    ulonglong2* out = reinterpret_cast<ulonglong2*>(to_words + size_t{p} * kQryPageWords);
    for (uint32_t i = threadIdx.x; i < kQryPageWords / 2; i += kPageThreads) __stcs(out + i, reinterpret_cast<const ulonglong2*>(page)[i]);
    __syncthreads();
  }
}

// Refused keys sorted by page: group g has positions[begins[g]] .. positions[begins[g] + sizes[g] - 1], all of page pages[g]. One thread
// of a block places them, in the order of the batch, until the page has no empty slot; the rest is only looked up, by all threads.
__global__ void __launch_bounds__(kPageThreads) settle_pages(GridView view, const uint32_t* keys, const uint32_t* values, Outcome* outcomes,
                                                             const uint32_t* pages, const uint64_t* begins, const uint64_t* sizes,
                                                             const uint64_t* positions, uint64_t group_count) {
  __shared__ alignas(16) uint64_t page[kQryPageWords];
  __shared__ detail::SettleScratch scratch;
  __shared__ uint32_t room;    // empty slots of the page
  __shared__ uint64_t placed;  // keys of the group that are dealt with
  for (uint64_t group = blockIdx.x; group < group_count; group += gridDim.x) {
    uint64_t* w = view.words + size_t{pages[group]} * kQryPageWords;
    if (threadIdx.x == 0) room = 0;
    __syncthreads();
    uint32_t empty = 0;
    for (uint32_t i = threadIdx.x; i < kQryPageWords; i += kPageThreads) {
      page[i] = w[i];
      empty += i >= detail::kFirstSlotWord && detail::is_empty(page[i]);
    }
    atomicAdd(&room, empty);
    __syncthreads();
    if (threadIdx.x == 0) {
      scratch.reset();
      uint64_t n = 0;
      for (; n < sizes[group] && room != 0; ++n) {
        const uint64_t i = positions[begins[group] + n];
        const uint32_t stored = qry_stored_key(keys[i], view.locality);
        outcomes[i] = detail::place_with_moves(page, qry_place_stored(stored, view.page_count), stored, values[i], view.page_count, scratch);
        room -= outcomes[i] == Outcome::inserted;
      }
      placed = n;
    }
    __syncthreads();
    for (uint64_t n = placed + threadIdx.x; n < sizes[group]; n += kPageThreads) {
      const uint64_t i = positions[begins[group] + n];
      const uint32_t stored = qry_stored_key(keys[i], view.locality);
      const detail::Located at = detail::locate<detail::PrivateWords>(page, qry_place_stored(stored, view.page_count), stored);
      outcomes[i] = at.index == detail::kNoSlot ? Outcome::full : Outcome::present;
    }
    __syncthreads();
    if (threadIdx.x == 0) detail::drain_area(page, view.page_count, scratch);
    __syncthreads();
    mark_shared_page(page, view.page_count);
    for (uint32_t i = threadIdx.x; i < kQryPageWords; i += kPageThreads) w[i] = page[i];
    __syncthreads();
  }
}

}  // namespace quarry::hashgrid::kernels
