// SPDX-License-Identifier: Apache-2.0
// kernels.cuh - kernels that stream over the pages of a compact table: clear, sweep, statistics, enumeration.
// compact/cuda.cu launches them.
#pragma once

#include "hashgrid/compact/build.cuh"
#include "hashgrid/compact/find.cuh"
#include "hashgrid/cuda/sector_loads.cuh"
#include "hashgrid/table/stats_sums.hpp"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kSectorsPerThread = kQrySectorsPerPage / kCompactThreads;

__global__ void __launch_bounds__(kCompactThreads) clear_compact(CompactView view) {
  const size_t halves = size_t{view.page_count} * (kQryPageBytes / 16),
               of_table = size_t{view.layout.table.pages} * (kQryPageBytes / 16);
  const uint32_t tag_words = qry_compact_tag_words(view.layout.table.fields);
  for (size_t i = size_t{blockIdx.x} * kCompactThreads + threadIdx.x; i < halves;
       i += size_t{gridDim.x} * kCompactThreads)
    reinterpret_cast<uint4*>(view.words)[i] = empty_compact_half(uint32_t(i % 2), i < of_table ? tag_words : 4);
}

// Removes erased keys' entries, moves displaced entries closer to their homes, makes overflow bits exact: the same as
// sweep_page() of compact/host.cpp, by a block. Entries only move closer, so none can be left without a place. An
// unchanged page is not written.
//
// Each thread compacts its sectors in shared memory and lists their few displaced entries. Then each thread takes one
// listed entry at a time. A move leaves a hole, which other entries may fill; sectors with holes are compacted again at
// the end. While entries move, tags and values are only touched by atomics.
template <class Format>
__global__ void __launch_bounds__(kCompactThreads, 5)
    sweep_compact(CompactView view, QryCompactPart part, detail::CompactInverse inverse) {
  constexpr uint32_t kHalves = kQryPageBytes / 16 / kCompactThreads;  // 16 bytes each, of a thread
  constexpr uint16_t kAtHome = 0xFFFFu;
  extern __shared__ __align__(128) uint32_t page[];
  __shared__ uint16_t behind[kQrySectorsPerPage * Format::kEntries];  // sector * 8 + slot
  // A bit for each sector that an entry has left.
  __shared__ uint32_t listed, left[kQrySectorsPerPage / 32];
  uint32_t* const in_table = view.words + (size_t{part.first_page} + blockIdx.x) * kCompactPageWords;
  const auto words_of = [&](uint32_t sector) { return page + sector % kQrySectorsPerPage * detail::kSectorWords; };
  const auto load = [&](uint32_t(&words)[detail::kSectorWords], uint32_t sector) {
    const uint4 a = reinterpret_cast<const uint4*>(words_of(sector))[0],
                b = reinterpret_cast<const uint4*>(words_of(sector))[1];
    words[0] = a.x, words[1] = a.y, words[2] = a.z, words[3] = a.w, words[4] = b.x, words[5] = b.y, words[6] = b.z,
    words[7] = b.w;
  };

  uint4 halves[kHalves];
#pragma unroll
  for (uint32_t k = 0; k < kHalves; ++k)
    halves[k] = __ldcs(reinterpret_cast<const uint4*>(in_table) + threadIdx.x + k * kCompactThreads);
#pragma unroll
  for (uint32_t k = 0; k < kHalves; ++k) reinterpret_cast<uint4*>(page)[threadIdx.x + k * kCompactThreads] = halves[k];
  if (threadIdx.x == 0) listed = 0;
  if (threadIdx.x < kQrySectorsPerPage / 32) left[threadIdx.x] = 0;
  __syncthreads();

  bool changed = false;
  uint32_t overflow = 0;
  for (uint32_t k = 0; k < kSectorsPerThread; ++k) {
    const uint32_t sector = threadIdx.x + k * kCompactThreads;
    uint32_t words[detail::kSectorWords], before[Format::kTagWords];
    load(words, sector);
    if (words[0] >> 31 != 0) {
      overflow |= 1u << k;
      words[0] &= ~kQryCompactOverflow;
      words_of(sector)[0] = words[0];
    }
#pragma unroll
    for (uint32_t w = 0; w < Format::kTagWords; ++w) before[w] = words[w];
    const uint32_t count = detail::close_holes<Format>(words_of(sector), words);
    uint32_t slots = 0;
#pragma unroll
    for (uint32_t w = 0; w < Format::kTagWords; ++w) {
      changed |= words[w] != before[w];
      const uint32_t far = Format::at_least(words[w], part.remainders);
#pragma unroll
      for (uint32_t f = 0; f < Format::kFields; ++f)
        slots |= (far >> (f * Format::kBits + Format::kBits - 1) & 1u) << (w * Format::kFields + f);
    }
    slots &= (1u << count) - 1u;
    if (slots == 0) continue;
    uint32_t at = atomicAdd(&listed, detail::bits_in(slots));
    for (; slots != 0; slots &= slots - 1) behind[at++] = uint16_t(sector * 8 + detail::lowest_bit(slots));
  }
  __syncthreads();

  // use(entry of the list, sector, slot, its home)
  const uint32_t listed_here = listed;
  const auto for_behind = [&](const auto& use) {
    for (uint32_t i = threadIdx.x; i < listed_here; i += kCompactThreads) {
      if (behind[i] == kAtHome) continue;
      const uint32_t sector = behind[i] / 8u, slot = behind[i] % 8u;
      const uint32_t tag =
          Format::tag_at(atomicOr(words_of(sector) + slot / Format::kFields, 0u), slot % Format::kFields);
      use(behind[i], sector, slot, inverse.home_of_entry(sector, tag, part));
    }
  };
  for (;;) {
    bool moved = false;
    for_behind([&](uint16_t& entry, uint32_t sector, uint32_t slot, const detail::CompactHome& at) {
      for (uint32_t d = 0; d < at.distance; ++d) {
        uint32_t room = 0;
        const uint32_t nearer = (at.place.home + d) % kQrySectorsPerPage;
        if (claim_in_shared<Format>(words_of(nearer), at.place.tag + d * part.remainders, room) != Claim::claimed)
          continue;
        atomicExch(words_of(nearer) + Format::kTagWords + room,
                   atomicExch(words_of(sector) + Format::kTagWords + slot, kQryCompactNoValue));
        __threadfence_block();  // the value is visible before the slot can be claimed
        atomicOr(words_of(sector) + slot / Format::kFields, Format::kNoTag << slot % Format::kFields * Format::kBits);
        atomicOr(&left[sector / 32], 1u << sector % 32);
        entry = d == 0 ? kAtHome : uint16_t(nearer * 8 + room);
        moved = true;
        return;
      }
    });
    if (__syncthreads_or(moved) == 0) break;
    changed = true;
  }
  for_behind([&](uint16_t&, uint32_t, uint32_t, const detail::CompactHome& at) {
    for (uint32_t d = 0; d < at.distance; ++d) atomicOr(words_of(at.place.home + d), kQryCompactOverflow);
  });
  __syncthreads();
#pragma unroll
  for (uint32_t k = 0; k < kSectorsPerThread; ++k) {
    const uint32_t sector = threadIdx.x + k * kCompactThreads;
    if ((left[sector / 32] >> sector % 32 & 1u) != 0) {
      uint32_t words[detail::kSectorWords];
      load(words, sector);
      detail::close_holes<Format>(words_of(sector), words);
    }
    changed |= words_of(sector)[0] >> 31 != (overflow >> k & 1u);
  }
  if (__syncthreads_or(changed) != 0) write_compact_page(in_table, page);
}

// A sector at device scope: other threads may write it.
__device__ inline void load_sector(uint32_t (&words)[detail::kSectorWords], const uint32_t* sector) {
  const ulonglong2 a = load_two_words(reinterpret_cast<const uint64_t*>(sector)),
                   b = load_two_words(reinterpret_cast<const uint64_t*>(sector) + 2);
  words[0] = detail::low(a.x), words[1] = detail::high(a.x), words[2] = detail::low(a.y), words[3] = detail::high(a.y);
  words[4] = detail::low(b.x), words[5] = detail::high(b.x), words[6] = detail::low(b.y), words[7] = detail::high(b.y);
}

// The part of a page, and its first sector there.
struct CompactPage {
  bool stashed;
  uint32_t first_sector;
};
__device__ inline CompactPage compact_page(const CompactView& view, uint32_t page) {
  const bool stashed = page >= view.layout.table.pages;
  return {stashed, (page - (stashed ? view.layout.stash.first_page : 0)) * kQrySectorsPerPage};
}

template <class Format>
__device__ inline uint32_t live_in(const uint32_t (&words)[detail::kSectorWords]) {
  uint32_t live = 0;
  detail::for_entries<Format>(words, [&](uint32_t, uint32_t, uint32_t value) { live += value != kQryCompactNoValue; });
  return live;
}

// Enumeration, first pass: pairs in each page.
__global__ void __launch_bounds__(kCompactThreads) count_compact(CompactView view, uint64_t* counts) {
  __shared__ uint32_t sum;
  for (uint32_t p = blockIdx.x; p < view.page_count; p += gridDim.x) {
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    const uint32_t* const page = view.words + size_t{p} * kCompactPageWords;
    const uint32_t live =
        detail::with_format_on_device(compact_page(view, p).stashed ? 1 : view.layout.table.fields, [&](auto format) {
          uint32_t here = 0;
#pragma unroll
          for (uint32_t k = 0; k < kSectorsPerThread; ++k) {
            uint32_t words[detail::kSectorWords];
            load_sector(words, page + (threadIdx.x + k * kCompactThreads) * detail::kSectorWords);
            here += live_in<decltype(format)>(words);
          }
          return here;
        });
    const uint32_t of_warp = __reduce_add_sync(0xFFFFFFFFu, live);
    if (threadIdx.x % 32 == 0) atomicAdd(&sum, of_warp);
    __syncthreads();
    if (threadIdx.x == 0) counts[p] = sum;
    __syncthreads();
  }
}

// Second pass: writes the pairs of each page, in memory order, from begins[page] on: 256 sectors at a time, gathered in
// shared memory.
__global__ void __launch_bounds__(kCompactThreads)
    write_compact(CompactView view, detail::CompactInverse of_table, detail::CompactInverse of_stash,
                  const uint64_t* begins, uint32_t* keys, uint32_t* values, uint64_t capacity) {
  constexpr uint32_t kWarps = kCompactThreads / 32;
  __shared__ uint2 row[kCompactThreads * 6];
  __shared__ uint32_t of_warp[kWarps];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (uint32_t p = blockIdx.x; p < view.page_count; p += gridDim.x) {
    const CompactPage here = compact_page(view, p);
    const detail::CompactInverse inverse = here.stashed ? of_stash : of_table;
    uint64_t begin = begins[p];
    detail::with_format_on_device(here.stashed ? 1 : view.layout.table.fields, [&](auto format) {
      using Format = decltype(format);
      uint32_t words[kSectorsPerThread][detail::kSectorWords];
#pragma unroll
      for (uint32_t k = 0; k < kSectorsPerThread; ++k)
        load_sector(words[k], view.words + size_t{p} * kCompactPageWords +
                                  (threadIdx.x + k * kCompactThreads) * detail::kSectorWords);
#pragma unroll
      for (uint32_t k = 0; k < kSectorsPerThread; ++k) {
        const uint32_t live = live_in<Format>(words[k]);
        uint32_t upto = live;
#pragma unroll
        for (uint32_t step = 1; step < 32; step *= 2) {
          const uint32_t left = __shfl_up_sync(0xFFFFFFFFu, upto, step);
          if (lane >= step) upto += left;
        }
        if (lane == 31) of_warp[warp] = upto;
        __syncthreads();
        uint32_t at = upto - live, total = 0;
#pragma unroll
        for (uint32_t w = 0; w < kWarps; ++w) {
          if (w < warp) at += of_warp[w];
          total += of_warp[w];
        }
        const uint32_t sector = here.first_sector + threadIdx.x + k * kCompactThreads;
        detail::for_entries<Format>(words[k], [&](uint32_t, uint32_t tag, uint32_t value) {
          if (value == kQryCompactNoValue) return;
          row[at++] =
              make_uint2(qry_unmix(detail::compact_key(view.layout, here.stashed, inverse, sector, tag).mixed), value);
        });
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < total && begin + i < capacity; i += kCompactThreads) {
          if (keys != nullptr) __stcs(keys + begin + i, row[i].x);
          if (values != nullptr) __stcs(values + begin + i, row[i].y);
        }
        begin += total;
        __syncthreads();
      }
    });
  }
}

__global__ void __launch_bounds__(kCompactThreads)
    sum_compact_stats(CompactView view, detail::CompactInverse of_stash, StatsSums* sums) {
  __shared__ uint32_t depths[kDepthBins], fill[5], page_live, fullest, freed_all, passed_all;
  __shared__ AtomicWord live_all, stashed_all;
  if (threadIdx.x < kDepthBins) depths[threadIdx.x] = 0;
  if (threadIdx.x < 5) fill[threadIdx.x] = 0;
  if (threadIdx.x == 0) page_live = fullest = freed_all = passed_all = 0, live_all = stashed_all = 0;
  __syncthreads();
  uint32_t at_home = 0, freed = 0, passed = 0, filled[5] = {};  // of this thread
  for (uint32_t p = blockIdx.x; p < view.page_count; p += gridDim.x) {
    const CompactPage here = compact_page(view, p);
    const QryCompactPart& part = here.stashed ? view.layout.stash : view.layout.table;
    uint32_t live = 0;
    detail::with_format_on_device(part.fields, [&](auto format) {
      using Format = decltype(format);
      uint32_t words[kSectorsPerThread][detail::kSectorWords];
#pragma unroll
      for (uint32_t k = 0; k < kSectorsPerThread; ++k)
        load_sector(words[k], view.words + size_t{p} * kCompactPageWords +
                                  (threadIdx.x + k * kCompactThreads) * detail::kSectorWords);
#pragma unroll
      for (uint32_t k = 0; k < kSectorsPerThread; ++k) {
        uint32_t in_sector = 0;
        detail::for_entries<Format>(words[k], [&](uint32_t, uint32_t tag, uint32_t value) {
          if (value == kQryCompactNoValue) {
            ++freed;
            return;
          }
          ++in_sector;
          if (!here.stashed && tag < part.remainders) {
            ++at_home;
            return;
          }
          uint32_t depth;
          if (here.stashed)
            depth = detail::compact_key(view.layout, true, of_stash,
                                        here.first_sector + threadIdx.x + k * kCompactThreads, tag)
                        .depth;
          else depth = tag / part.remainders + 1;
          atomicAdd(&depths[min(depth, kDepthBins) - 1], 1u);
        });
        live += in_sector;
        passed += words[k][0] >> 31;
#pragma unroll
        for (uint32_t f = 0; f < 5; ++f) filled[f] += min(in_sector, 4u) == f;
      }
    });
    live = __reduce_add_sync(0xFFFFFFFFu, live);
    if (threadIdx.x % 32 == 0) atomicAdd(&page_live, live);
    __syncthreads();
    if (threadIdx.x == 0) {
      live_all += page_live;
      if (here.stashed) stashed_all += page_live;
      fullest = max(fullest, page_live);
      page_live = 0;
    }
    __syncthreads();
  }
  atomicAdd(&depths[0], at_home);
#pragma unroll
  for (uint32_t f = 0; f < 5; ++f) atomicAdd(&fill[f], filled[f]);
  atomicAdd(&freed_all, freed);
  atomicAdd(&passed_all, passed);
  __syncthreads();
  if (threadIdx.x < kDepthBins && depths[threadIdx.x] != 0)
    atomicAdd(&sums->depth_histogram[threadIdx.x], AtomicWord{depths[threadIdx.x]});
  if (threadIdx.x < 5) atomicAdd(&sums->bucket_fill[threadIdx.x], AtomicWord{fill[threadIdx.x]});
  if (threadIdx.x == 0) {
    atomicAdd(&sums->live, live_all);
    atomicAdd(&sums->freed, AtomicWord{freed_all});
    atomicAdd(&sums->overflow_live, stashed_all);
    atomicAdd(&sums->spilled_buckets, AtomicWord{passed_all});
    atomicMax(&sums->fullest_page_live, AtomicWord{fullest});
  }
}

// values[i]: the table's value, or the reserved value. Either output may be null.
template <class Format>
__global__ void __launch_bounds__(kCompactThreads)
    find_compact(CompactView view, const uint32_t* keys, size_t count, uint32_t* values, uint8_t* depths,
                 Atomic64* hits, Atomic64* reserved) {
  uint32_t hit_count = 0, reserved_count = 0;
  for (size_t base = size_t{blockIdx.x} * kCompactThreads + threadIdx.x / 32 * 32; base < count;
       base += size_t{gridDim.x} * kCompactThreads) {
    const size_t i = base + threadIdx.x % 32;
    const uint32_t key = i < count ? __ldcs(keys + i) : kQryReservedKey;
    const Found found = find_by_warp<Format>(view, key);
    if (i >= count) continue;
    hit_count += found.hit;
    reserved_count += key == kQryReservedKey;
    if (values != nullptr) __stcs(values + i, found.value);
    if (depths != nullptr) depths[i] = uint8_t(min(found.sectors, 255u));
  }
  hit_count = __reduce_add_sync(0xFFFFFFFFu, hit_count);
  reserved_count = __reduce_add_sync(0xFFFFFFFFu, reserved_count);
  if (threadIdx.x % 32 == 0 && hit_count != 0) atomicAdd(hits, Atomic64{hit_count});
  if (threadIdx.x % 32 == 0 && reserved_count != 0) atomicAdd(reserved, Atomic64{reserved_count});
}

// insert or assign in the order of pages, each fetched into the L2 cache before its keys are put. They may run beside
// the same operations as insert and assign.
template <bool kAssigns>
__global__ void __launch_bounds__(kCompactWindowThreads) put_in_compact_pages(CompactView view, PageLists pages) {
  if (pages.totals->overflowed != 0) return;
  const uint32_t size = pages.sizes[blockIdx.x];
  const uint2* const list = pages.lists + size_t{blockIdx.x} * pages.room;
  if (threadIdx.x == 0 && size != 0) fetch_page(view.words + size_t{blockIdx.x} * kCompactPageWords);
  uint32_t present = 0, refused = 0;
  for (uint32_t i = threadIdx.x; i < size; i += kCompactWindowThreads) {
    const uint2 pair = __ldcs(list + i);
    uint32_t* const value = detail::claimed_value_of(view, pair.x);
    uint32_t none = kQryCompactNoValue;
    if (value == nullptr) ++refused;
    else if (kAssigns) present += detail::CompactWords::exchange(value, pair.y) != kQryCompactNoValue;
    else present += !detail::CompactWords::swap(value, none, pair.y);
  }
  present = __reduce_add_sync(0xFFFFFFFFu, present);
  refused = __reduce_add_sync(0xFFFFFFFFu, refused);
  if (threadIdx.x % 32 == 0 && present != 0) atomicAdd(&pages.totals->present, Atomic64{present});
  if (threadIdx.x % 32 == 0 && refused != 0) atomicAdd(&pages.totals->refused, Atomic64{refused});
}

// Erase in the order of pages, each fetched into the L2 cache before its keys are looked up. It may run beside the same
// operations as erase.
__global__ void __launch_bounds__(kCompactWindowThreads) erase_in_compact_pages(CompactView view, PageLists pages) {
  if (pages.totals->overflowed != 0) return;
  const uint32_t size = pages.sizes[blockIdx.x];
  const uint2* const list = pages.lists + size_t{blockIdx.x} * pages.room;
  if (threadIdx.x == 0 && size != 0) fetch_page(view.words + size_t{blockIdx.x} * kCompactPageWords);
  uint32_t absent = 0;
  for (uint32_t i = threadIdx.x; i < size; i += kCompactWindowThreads) {
    const detail::CompactEntry entry = detail::entry_of(view, __ldcs(list + i).x);
    absent +=
        entry.value == nullptr || detail::CompactWords::exchange(entry.value, kQryCompactNoValue) == kQryCompactNoValue;
  }
  absent = __reduce_add_sync(0xFFFFFFFFu, absent);
  if (threadIdx.x % 32 == 0 && absent != 0) atomicAdd(&pages.totals->refused, Atomic64{absent});
}

// insert, for keys that were refused before.
struct InsertRefused {
  CompactView view;
  const uint32_t* keys;
  const uint32_t* values;
  const Outcome* outcomes;
  __device__ Outcome operator()(size_t i) const {
    return outcomes[i] == Outcome::full ? insert(view, keys[i], values[i]) : outcomes[i];
  }
};

struct SameOutcome {
  const Outcome* outcomes;
  __device__ Outcome operator()(size_t i) const { return outcomes[i]; }
};

}  // namespace quarry::hashgrid::kernels
