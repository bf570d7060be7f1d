// SPDX-License-Identifier: Apache-2.0
// page_kernels.cuh - the kernels that stream over whole pages, one block a page. operations.cu launches them.
//
// A page that is rebuilt is in shared memory. Between two barriers a word is only touched by atomics, or only by one
// thread: compute-sanitizer's racecheck must find nothing.
#pragma once

#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/pairs/cuckoo.hpp"
#include "hashgrid/table/stats_sums.hpp"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kWarpsPerBlock = kPageThreads / 32;
constexpr uint32_t kWordsPerThread = kQryPageWords / kPageThreads;

__device__ inline uint64_t fresh_word(uint32_t index) {
  return index < detail::kFirstSlotWord ? 0 : detail::kNeverUsed;
}

__device__ inline bool claim_shared(uint64_t* word, uint64_t desired) {
  return atomicCAS(reinterpret_cast<AtomicWord*>(word), AtomicWord{detail::kNeverUsed}, AtomicWord{desired}) ==
         detail::kNeverUsed;
}

__global__ void __launch_bounds__(kPageThreads) clear_pages(uint64_t* words, uint32_t page_count) {
  for (uint32_t page = blockIdx.x; page < page_count; page += gridDim.x) {
    ulonglong2* out = reinterpret_cast<ulonglong2*>(words + size_t{page} * kQryPageWords);
    for (uint32_t i = threadIdx.x; i < kQryPageWords / 2; i += kPageThreads)
      out[i] = make_ulonglong2(fresh_word(2 * i), fresh_word(2 * i + 1));
  }
}

// Enumeration, first pass: pairs in each page.
__global__ void __launch_bounds__(kPageThreads)
    count_pairs(const uint64_t* words, uint32_t page_count, uint64_t* counts) {
  __shared__ uint32_t warp_counts[kWarpsPerBlock];
  for (uint32_t page = blockIdx.x; page < page_count; page += gridDim.x) {
    const uint64_t* w = words + size_t{page} * kQryPageWords;
    uint32_t live = 0;
    for (uint32_t i = threadIdx.x; i < kQryPageWords; i += kPageThreads)
      live += i >= detail::kFirstSlotWord && !detail::is_empty(w[i]);
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
__global__ void __launch_bounds__(kPageThreads)
    write_pairs(const uint64_t* words, uint32_t page_count, uint32_t locality, const uint64_t* begins, uint32_t* keys,
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
    if (warp == 0) {  // ranks: from counts to prefix sums
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
      const detail::SectorStats stats =
          detail::sector_stats(bucket, page * kQrySectorsPerPage + sector, page_count, [&](uint32_t depth) {
            if (depth == 1) ++first_sector;
            else atomicAdd(&depths[min(depth, kDepthBins) - 1], 1u);
          });
      const uint32_t here = stats.live;
      freed += stats.freed;
      live += here;
      if (sector >= kQryStashFirstSector) {
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
  if (threadIdx.x < kDepthBins && depths[threadIdx.x] != 0)
    atomicAdd(&sums->depth_histogram[threadIdx.x], AtomicWord{depths[threadIdx.x]});
  if (threadIdx.x <= kQrySlotsPerSector) atomicAdd(&sums->bucket_fill[threadIdx.x], AtomicWord{fill[threadIdx.x]});
  if (threadIdx.x == 0) {
    atomicAdd(&sums->live, live_all);
    atomicAdd(&sums->freed, AtomicWord{freed_all});
    atomicAdd(&sums->overflow_live, AtomicWord{area_all});
    atomicAdd(&sums->spilled_buckets, AtomicWord{spilled_all});
    atomicMax(&sums->fullest_page_live, AtomicWord{fullest});
  }
}

__device__ inline void mark_overflow(uint64_t* page, uint32_t sector, uint32_t bits) {
  atomicOr(reinterpret_cast<AtomicWord*>(page + qry_state_word(sector)), AtomicWord{bits} << qry_state_shift(sector));
}

__device__ inline bool claim_in_bucket(uint64_t* page, uint32_t sector, const QryProbeSequence& probes, uint64_t word) {
  for (uint32_t n = 0; n < kQrySlotsPerSector; ++n)
    if (claim_shared(page + detail::bucket_word(sector, probes, n), word)) return true;
  return false;
}

// A group's stash has group.count x kStashWords words; this is word number i.
constexpr uint32_t kStashWords = kQryPageWords - kQryOwnWords;
__device__ inline uint64_t* stash_slot(uint64_t* words, const QryStashGroup& group, uint32_t i) {
  return words + size_t{group.first + i / kStashWords} * kQryPageWords + kQryOwnWords + i % kStashWords;
}

// The same as detail::sweep_page, by a block. Only keys outside their home buckets, which are listed while the page is
// read, are looked at again: the rest of a page passes through.
__global__ void __launch_bounds__(kPageThreads, 5) sweep_pages(uint64_t* words, uint32_t page_count) {
  __shared__ alignas(16) uint64_t page[kQryOwnWords];
  __shared__ uint16_t away[kQryOwnWords];  // words of keys outside their home buckets; 0: moved
  __shared__ uint32_t away_count;
  constexpr uint32_t kVectors = kQryOwnWords / 2, kRounds = (kVectors + kPageThreads - 1) / kPageThreads, kAtOnce = 4;
  static_assert(kRounds * 2 <= 32);
  for (uint32_t p = blockIdx.x; p < page_count; p += gridDim.x) {
    ulonglong2* const in_table = reinterpret_cast<ulonglong2*>(words + size_t{p} * kQryPageWords);
    ulonglong2* const in_shared = reinterpret_cast<ulonglong2*>(page);
    ulonglong2 held[kRounds];
#pragma unroll
    for (uint32_t r = 0; r < kRounds; ++r)
      if (r * kPageThreads + threadIdx.x < kVectors) held[r] = __ldcs(in_table + r * kPageThreads + threadIdx.x);
    if (threadIdx.x == 0) away_count = 0;
    const bool in_stash = __syncthreads_or(threadIdx.x < detail::kFirstSlotWord / 2 &&
                                           ((held[0].x | held[0].y) & 0xAAAAAAAAAAAAAAAAu) != 0) != 0;
    uint32_t mine = 0;
#pragma unroll
    for (uint32_t r = 0; r < kRounds; ++r) {
      const uint32_t i = r * kPageThreads + threadIdx.x;
      if (i >= kVectors) continue;
      const auto note = [&](uint64_t word, uint32_t bit) {
        if (detail::is_empty(word)) return AtomicWord{detail::kNeverUsed};
        const uint32_t home = kQryStateSectors + qry_home_bucket(detail::low(word), page_count);
        mine |= uint32_t{i / 2 != home} << bit;
        return AtomicWord{word};
      };
      in_shared[i] = i < detail::kFirstSlotWord / 2
                         ? make_ulonglong2(0, 0)
                         : make_ulonglong2(note(held[r].x, 2 * r), note(held[r].y, 2 * r + 1));
    }
    if (mine != 0) {
      uint32_t at = atomicAdd(&away_count, uint32_t(__popc(mine)));
      for (; mine != 0; mine &= mine - 1) {
        const uint32_t bit = uint32_t(__ffs(int(mine))) - 1;
        away[at++] = uint16_t((bit / 2 * kPageThreads + threadIdx.x) * 2 + bit % 2);
      }
    }
    __syncthreads();
    // Moves keys forward until no move is possible. A chunk of words is read, then moved: reads and atomics never
    // overlap.
    const uint32_t count = away_count;
    for (int moved = count != 0; moved != 0;) {
      moved = 0;
      for (uint32_t chunk = 0; chunk < count; chunk += kAtOnce * kPageThreads) {
        uint64_t word[kAtOnce];
        uint32_t index[kAtOnce];
#pragma unroll
        for (uint32_t j = 0; j < kAtOnce; ++j) {
          const uint32_t e = chunk + j * kPageThreads + threadIdx.x;
          index[j] = e < count ? away[e] : 0;
          word[j] = page[index[j]];
        }
        __syncthreads();
#pragma unroll
        for (uint32_t j = 0; j < kAtOnce; ++j) {
          if (index[j] == 0) continue;
          const QryProbeSequence probes = qry_probe_sequence(detail::low(word[j]), page_count);
          if (!claim_in_bucket(page, probes.home_sector, probes, word[j])) continue;
          // Only the slot's own thread empties it.
          atomicExch(reinterpret_cast<AtomicWord*>(page + index[j]), AtomicWord{detail::kNeverUsed});
          away[chunk + j * kPageThreads + threadIdx.x] = 0;
          moved = 1;
        }
        __syncthreads();
      }
      moved = __syncthreads_or(moved);
    }
    for (uint32_t e = threadIdx.x; e < count; e += kPageThreads)
      if (away[e] != 0)
        mark_overflow(page, qry_probe_sequence(detail::low(page[away[e]]), page_count).home_sector, kQryBucketSpilled);
    __syncthreads();
    if (in_stash) {  // the page's keys in the stash: no other block touches their slots
      const QryStashGroup group = qry_stash_group(p, page_count);
      for (uint32_t i = threadIdx.x; i < group.count * kStashWords; i += kPageThreads) {
        uint64_t* const slot = stash_slot(words, group, i);
        const uint64_t word = detail::SharedWords::load(slot);
        if (detail::is_empty(word)) continue;
        const QryProbeSequence probes = qry_probe_sequence(detail::low(word), page_count);
        if (probes.page != p) continue;
        uint32_t bits = 0;
        bool placed = claim_in_bucket(page, probes.home_sector, probes, word);
        if (!placed) {
          bits = kQryBucketSpilled;
          placed = claim_in_bucket(page, probes.second_sector, probes, word);
        }
        if (placed) atomicExch(reinterpret_cast<AtomicWord*>(slot), AtomicWord{detail::kNeverUsed});
        else bits |= kQryBucketToStash;
        if (bits != 0) mark_overflow(page, probes.home_sector, bits);
      }
      __syncthreads();
    }
#pragma unroll
    for (uint32_t r = 0; r < kRounds; ++r)
      if (r * kPageThreads + threadIdx.x < kVectors)
        __stcs(in_table + r * kPageThreads + threadIdx.x, in_shared[r * kPageThreads + threadIdx.x]);
    __syncthreads();
  }
}

// The same as detail::sweep_stash, one block a group, in place.
__global__ void __launch_bounds__(kPageThreads) sweep_stashes(uint64_t* words, uint32_t page_count) {
  const QryStashGroup group = qry_stash_group(blockIdx.x * kQryGroupPages, page_count);
  const GridView view{words, page_count, 0};
  int keys = 0;
  for (uint32_t i = threadIdx.x; i < group.count * kStashWords; i += kPageThreads) {
    uint64_t* const slot = stash_slot(words, group, i);
    const uint64_t word = *slot;
    keys |= !detail::is_empty(word);
    if (detail::is_empty(word) && word != detail::kNeverUsed) *slot = detail::kNeverUsed;
  }
  for (int moved = __syncthreads_or(keys); moved != 0;) {
    moved = 0;
    for (uint32_t i = threadIdx.x; i < group.count * kStashWords; i += kPageThreads) {
      uint64_t* const slot = stash_slot(words, group, i);
      const uint64_t word = detail::SharedWords::load(slot);
      if (detail::is_empty(word)) continue;
      const QryProbeSequence probes = qry_probe_sequence(detail::low(word), page_count);
      bool done = false;
      for (uint32_t n = 0; n < kQryStashTries && !done; ++n) {
        uint64_t* const first = detail::stash_words(view, probes, group, n);
        if (slot >= first && slot < first + kQrySlotsPerSector) break;
        const detail::Bucket sector = detail::SharedWords::load_bucket(first);
#pragma unroll
        for (uint32_t s = 0; s < kQrySlotsPerSector; ++s) {
          uint64_t expected = detail::kNeverUsed;
          if (done || sector.slot[s] != detail::kNeverUsed ||
              !detail::SharedWords::exchange(first + s, expected, word, false))
            continue;
          atomicExch(reinterpret_cast<AtomicWord*>(slot), AtomicWord{detail::kNeverUsed});
          done = true;
        }
      }
      moved |= done;
    }
    moved = __syncthreads_or(moved);
  }
}

constexpr uint32_t kLeftoverWords = 512;
constexpr uint32_t kRehashAhead = 8;

// Moves a key that `to` does not hold yet to the stash of its group, if there is room. `page`: its page, in shared
// memory.
__device__ __noinline__ bool move_to_stash(uint64_t* page, const GridView& to, uint64_t word) {
  const QryProbeSequence probes = qry_probe_sequence(detail::low(word), to.page_count);
  if (detail::claim_in_stash<detail::SharedWords>(to, probes, word).slot == nullptr) return false;
  mark_overflow(page, probes.home_sector, kQryBucketSpilled | kQryBucketToStash);
  return true;
}

// Builds each page of `to` from the pages of `from` that can hold its keys, and their stashes. All keys differ, so no
// search for duplicates is needed: a bucket hands out its slots by a counter, the stash by compare-and-swap. One thread
// places the keys that fit neither by moves.
__global__ void __launch_bounds__(kPageThreads) rehash_pages(GridView from, GridView to, AtomicWord* refused) {
  __shared__ alignas(16) uint64_t page[kQryOwnWords];
  __shared__ uint64_t leftover[kLeftoverWords];
  __shared__ union {
    uint32_t taken[kQryBucketsPerPage];  // slots handed out, of each bucket
    detail::CuckooScratch scratch;
  } shared;
  __shared__ uint32_t leftover_count;
  for (uint32_t p = blockIdx.x; p < to.page_count; p += gridDim.x) {
    for (uint32_t i = threadIdx.x; i < kQryOwnWords; i += kPageThreads) page[i] = fresh_word(i);
    for (uint32_t i = threadIdx.x; i < kQryBucketsPerPage; i += kPageThreads) shared.taken[i] = 0;
    if (threadIdx.x == 0) leftover_count = 0;
    __syncthreads();
    const auto move = [&](uint64_t word) {
      if (qry_page(detail::low(word), to.page_count) != p) return;
      const QryProbeSequence probes = qry_probe_sequence(detail::low(word), to.page_count);
      // Slots are rotated from bucket to bucket, so that a warp's stores spread over the banks.
      uint32_t sector = probes.home_sector;
      uint32_t slot = atomicAdd(&shared.taken[sector - kQryStateSectors], 1u);
      if (slot >= kQrySlotsPerSector) {
        mark_overflow(page, probes.home_sector, kQryBucketSpilled);
        sector = probes.second_sector;
        slot = atomicAdd(&shared.taken[sector - kQryStateSectors], 1u);
      }
      if (slot < kQrySlotsPerSector) {
        page[sector * kQrySlotsPerSector + ((slot + (sector >> 2)) & 3u)] = word;
        return;
      }
      const uint32_t at = atomicAdd(&leftover_count, 1u);
      if (at < kLeftoverWords) leftover[at] = word;
      else if (!move_to_stash(page, to, word)) atomicAdd(refused, AtomicWord{1});
    };
    const detail::PageRange range = detail::source_pages(p, to.page_count, from.page_count);
    uint32_t gathered = kQryReservedKey;  // first page of the group whose stash was read last
    for (uint32_t source = range.first; source <= range.last; ++source) {
      const uint64_t* w = from.words + size_t{source} * kQryPageWords;
      bool in_stash = false;
      for (uint32_t first = 0; first < kQryOwnWords; first += kRehashAhead * kPageThreads) {
        uint64_t ahead[kRehashAhead];  // all loads of a round are issued before the first word is used
#pragma unroll
        for (uint32_t j = 0; j < kRehashAhead; ++j)
          if (first + j * kPageThreads + threadIdx.x < kQryOwnWords)
            ahead[j] = __ldcs(w + first + j * kPageThreads + threadIdx.x);
#pragma unroll
        for (uint32_t j = 0; j < kRehashAhead; ++j) {
          const uint32_t index = first + j * kPageThreads + threadIdx.x;
          if (index < detail::kFirstSlotWord) in_stash = (ahead[j] & 0xAAAAAAAAAAAAAAAAu) != 0;
          else if (index < kQryOwnWords && !detail::is_empty(ahead[j])) move(ahead[j]);
        }
      }
      const QryStashGroup group = qry_stash_group(source, from.page_count);
      if (__syncthreads_or(in_stash) == 0 || group.first == gathered) continue;
      gathered = group.first;
      for (uint32_t i = threadIdx.x; i < group.count * kStashWords; i += kPageThreads) {
        const uint64_t word = *stash_slot(from.words, group, i);
        if (!detail::is_empty(word)) move(word);
      }
    }
    __syncthreads();
    bool left = false;
    for (uint32_t i = threadIdx.x; i < min(leftover_count, kLeftoverWords); i += kPageThreads) {
      if (move_to_stash(page, to, leftover[i])) leftover[i] = detail::kNeverUsed;
      else left = true;
    }
    if (__syncthreads_or(left) && threadIdx.x == 0) {
      shared.scratch.reset();
      for (uint32_t i = 0; i < min(leftover_count, kLeftoverWords); ++i) {
        if (detail::is_empty(leftover[i])) continue;
        const QryProbeSequence probes = qry_probe_sequence(detail::low(leftover[i]), to.page_count);
        if (detail::place_absent(page, to, probes, leftover[i], shared.scratch) == Outcome::full)
          atomicAdd(refused, AtomicWord{1});
      }
    }
    __syncthreads();
    ulonglong2* out = reinterpret_cast<ulonglong2*>(to.words + size_t{p} * kQryPageWords);
    for (uint32_t i = threadIdx.x; i < kQryOwnWords / 2; i += kPageThreads)
      __stcs(out + i, reinterpret_cast<const ulonglong2*>(page)[i]);
    __syncthreads();
  }
}

// After this many keys in a row without a place, a page counts as full: each costs one thread 54 sectors of the stash.
constexpr uint32_t kCuckooMisses = 64;
constexpr uint32_t kBroughtBack = 512;  // most keys of the page that are brought back from the stash

// Refused keys sorted by page: group g has positions[begins[g]] .. positions[begins[g] + sizes[g] - 1], all of page
// pages[g]. One thread of a block places them, in the order of the batch, until the page is full; all threads then only
// look up the rest. Before that, the page's keys in the stash are brought back as far as moves allow.
__global__ void __launch_bounds__(kPageThreads)
    cuckoo_pages(GridView view, const uint32_t* keys, const uint32_t* values, Outcome* outcomes, const uint32_t* pages,
                 const uint64_t* begins, const uint64_t* sizes, const uint64_t* positions, uint64_t group_count) {
  __shared__ alignas(16) uint64_t page[kQryOwnWords];
  __shared__ detail::CuckooScratch scratch;
  __shared__ uint64_t placed;  // keys of the group that are done
  __shared__ uint64_t* in_stash[kBroughtBack];
  __shared__ uint32_t in_stash_count;
  for (uint64_t group = blockIdx.x; group < group_count; group += gridDim.x) {
    uint64_t* w = view.words + size_t{pages[group]} * kQryPageWords;
    for (uint32_t i = threadIdx.x; i < kQryOwnWords; i += kPageThreads) page[i] = w[i];
    if (threadIdx.x == 0) in_stash_count = 0;
    __syncthreads();
    if (detail::any_in_stash(page)) {
      const QryStashGroup stash = qry_stash_group(pages[group], view.page_count);
      for (uint32_t i = threadIdx.x; i < stash.count * kStashWords; i += kPageThreads) {
        uint64_t* const slot = stash_slot(view.words, stash, i);
        const uint64_t word = detail::SharedWords::load(slot);
        if (detail::is_empty(word) || qry_page(detail::low(word), view.page_count) != pages[group]) continue;
        const uint32_t at = atomicAdd(&in_stash_count, 1u);
        if (at < kBroughtBack) in_stash[at] = slot;
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      scratch.reset();
      for (uint32_t i = 0; i < min(in_stash_count, kBroughtBack); ++i)
        detail::bring_back(page, view, in_stash[i], scratch);
      uint64_t n = 0;
      for (uint32_t misses = 0; n < sizes[group] && misses < kCuckooMisses; ++n) {
        const uint64_t i = positions[begins[group] + n];
        outcomes[i] = detail::place_by_cuckoo(
            page, view, detail::pair_word(qry_stored_key(keys[i], view.locality), values[i]), scratch);
        misses = outcomes[i] == Outcome::full ? misses + 1 : 0;
      }
      placed = n;
    }
    __syncthreads();
    for (uint64_t n = placed + threadIdx.x; n < sizes[group]; n += kPageThreads) {
      const uint64_t i = positions[begins[group] + n];
      const uint32_t stored = qry_stored_key(keys[i], view.locality);
      const detail::Located at = detail::locate<detail::PrivateWords, detail::SharedWords>(
          page, view, qry_probe_sequence(stored, view.page_count), stored);
      outcomes[i] = at.slot == nullptr ? Outcome::full : Outcome::present;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < kQryOwnWords; i += kPageThreads) w[i] = page[i];
    __syncthreads();
  }
}

// For refused keys: which keys of a batch wait, their pages, and their outcomes.
struct IsFull {
  const Outcome* outcomes;
  __device__ bool operator()(uint64_t i) const { return outcomes[i] == Outcome::full; }
};

__global__ void __launch_bounds__(kSimpleThreads)
    pages_of_positions(const uint32_t* keys, const uint64_t* positions, uint64_t count, uint32_t page_count,
                       uint32_t locality, uint32_t* pages) {
  for (uint64_t i = uint64_t{blockIdx.x} * kSimpleThreads + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * kSimpleThreads)
    pages[i] = qry_page(qry_stored_key(keys[positions[i]], locality), page_count);
}

__global__ void __launch_bounds__(kSimpleThreads)
    count_outcomes_at(const Outcome* outcomes, const uint64_t* positions, uint64_t count, unsigned long long* totals) {
  for (uint64_t i = uint64_t{blockIdx.x} * kSimpleThreads + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * kSimpleThreads)
    atomicAdd(totals + uint32_t(outcomes[positions[i]]), 1ull);
}

}  // namespace quarry::hashgrid::kernels
