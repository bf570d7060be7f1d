// SPDX-License-Identifier: Apache-2.0
// build.cuh - kernels that build pages of the compact layout in shared memory: from a batch's lists by page
// (page_lists.cuh), and from the pages of another table. compact/cuda.cu launches them.
//
// Between two barriers a word of shared memory is only touched by atomics, or only by one thread, or only read.
#pragma once

#include "hashgrid/compact/passes.hpp"
#include "hashgrid/cuda/page_lists.cuh"
#include "hashgrid/cuda/tuning.cuh"

namespace quarry::hashgrid::kernels {

using Atomic64 = unsigned long long;
constexpr uint32_t kCompactPageWords = kQryPageBytes / 4;

// The 16-byte half `i` of an empty page.
__device__ inline uint4 empty_compact_half(uint32_t i, uint32_t tag_words) {
  if (i % 2 != 0) return make_uint4(kQryCompactNoValue, kQryCompactNoValue, kQryCompactNoValue, kQryCompactNoValue);
  return make_uint4(kQryCompactEmptyTags, kQryCompactEmptyTags,
                    tag_words > 2 ? kQryCompactEmptyTags : kQryCompactNoValue,
                    tag_words > 3 ? kQryCompactEmptyTags : kQryCompactNoValue);
}

// Writes a page from shared memory to its place in one piece. After a barrier; the block must not write the page again.
__device__ inline void write_compact_page(uint32_t* in_table, const uint32_t* page) {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(in_table),
                 "r"(uint32_t(__cvta_generic_to_shared(page))), "r"(kQryPageBytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
#else
  for (uint32_t i = threadIdx.x; i < kQryPageBytes / 16; i += kCompactThreads)
    __stcs(reinterpret_cast<uint4*>(in_table) + i, reinterpret_cast<const uint4*>(page)[i]);
#endif
}

enum class Claim : uint8_t { claimed, there, no_room };

// Finds or claims a slot of a sector in shared memory. It first guesses that the tags are empty; if they are not, the
// compare-and-swap returns their content. Six entries' tags are two words, which one 64-bit swap covers.
template <class Format>
__device__ inline Claim claim_in_shared(uint32_t* sector, uint32_t tag, uint32_t& slot) {
  if constexpr (Format::kTagWords == 2) {
    uint32_t words[2] = {kQryCompactEmptyTags, kQryCompactEmptyTags};
    for (;;) {
      slot = Format::slot_with(words, Format::kNoTag);
      if (slot == Format::kEntries) return Claim::no_room;
      const Atomic64 known = Atomic64{words[1]} << 32 | words[0];
      const Atomic64 change = Atomic64{Format::change(slot % Format::kFields, tag)} << slot / Format::kFields * 32;
      const Atomic64 seen = atomicCAS(reinterpret_cast<Atomic64*>(sector), known, known ^ change);
      if (seen == known) return Claim::claimed;
      words[0] = detail::low(seen), words[1] = detail::high(seen);
      slot = Format::slot_with(words, tag);
      if (slot != Format::kEntries) return Claim::there;
    }
  } else {
#pragma unroll
    for (uint32_t w = 0; w < Format::kTagWords; ++w) {
      uint32_t word = kQryCompactEmptyTags;
      for (;;) {
        const uint32_t room = Format::matches(word, Format::kNoTag);
        if (room == 0) break;
        const uint32_t field = detail::lowest_bit(room) / Format::kBits;
        if (w * Format::kFields + field >= Format::kEntries) break;
        const uint32_t seen = atomicCAS(sector + w, word, word ^ Format::change(field, tag));
        if (seen == word) {
          slot = w * Format::kFields + field;
          return Claim::claimed;
        }
        word = seen;
        const uint32_t same = Format::matches(word, tag);
        if (same != 0) {
          slot = w * Format::kFields + detail::lowest_bit(same) / Format::kBits;
          return Claim::there;
        }
      }
    }
    return Claim::no_room;
  }
}

// One block a page: adds the page's list of pairs. kFresh: the table is known to be empty; it is not read.
template <class Format, bool kFresh>
__global__ void __launch_bounds__(kCompactThreads) merge_compact(CompactView view, PageLists pages) {
  extern __shared__ __align__(128) uint32_t page[];
  __shared__ uint32_t present;
  if (pages.totals->overflowed != 0) return;
  const uint32_t size = pages.sizes[blockIdx.x];
  if (!kFresh && size == 0) return;
  const QryCompactPart& part = view.layout.table;
  const uint2* const list = pages.lists + size_t{blockIdx.x} * pages.room;
  uint32_t* const in_table = view.words + size_t{blockIdx.x} * kCompactPageWords;
  for (uint32_t i = threadIdx.x; i < kQryPageBytes / 16; i += kCompactThreads)
    reinterpret_cast<uint4*>(page)[i] =
        kFresh ? empty_compact_half(i, Format::kTagWords) : __ldcs(reinterpret_cast<const uint4*>(in_table) + i);
  if (threadIdx.x == 0) present = 0;
  __syncthreads();

  for (uint32_t base = 0; base < size; base += kCompactHeld * kCompactThreads) {
    uint2 held[kCompactHeld];
#pragma unroll
    for (uint32_t j = 0; j < kCompactHeld; ++j)
      if (base + j * kCompactThreads + threadIdx.x < size)
        held[j] = __ldcs(list + base + j * kCompactThreads + threadIdx.x);
#pragma unroll
    for (uint32_t j = 0; j < kCompactHeld; ++j) {
      if (base + j * kCompactThreads + threadIdx.x >= size) continue;
      const QryCompactPlace place = qry_compact_place(held[j].x, part);
      Claim claim = Claim::no_room;
      uint32_t tag = place.tag, slot = 0;
      uint32_t* sector = nullptr;
      for (uint32_t distance = 0; distance < part.reach && tag < Format::kNoTag; ++distance, tag += part.remainders) {
        sector = page + (place.home + distance) % kQrySectorsPerPage * detail::kSectorWords;
        claim = claim_in_shared<Format>(sector, tag, slot);
        if (claim != Claim::no_room) break;
        atomicOr(sector, kQryCompactOverflow);
      }
      bool inserted = claim == Claim::claimed;
      if (claim != Claim::no_room) {
        uint32_t* const value = sector + Format::kTagWords + slot;
        if constexpr (kFresh) {  // only the thread that claimed the tag writes the value
          if (inserted) *value = held[j].y;
        } else {
          inserted = atomicCAS(value, kQryCompactNoValue, held[j].y) == kQryCompactNoValue;
        }
      } else {
        detail::CompactEntry entry;
        bool after_bit = true;
        if (view.layout.stash.pages != 0)
          detail::claim<detail::CompactFormat<1>>(view, view.layout.stash, qry_mix(held[j].x), entry, after_bit);
        uint32_t none = kQryCompactNoValue;
        if (entry.value == nullptr) {
          atomicAdd(&pages.totals->refused, Atomic64{1});
          continue;
        }
        inserted = detail::CompactWords::swap(entry.value, none, held[j].y);
      }
      if (!inserted) atomicAdd(&present, 1u);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0 && present != 0) atomicAdd(&pages.totals->present, Atomic64{present});
  write_compact_page(in_table, page);
}

// Places a live pair of another table, outside the pages that a block is building.
__device__ inline void place_in_stash(const CompactView& to, uint32_t mixed, uint32_t value, Atomic64* refused) {
  detail::CompactEntry entry;
  bool after_bit = true;
  if (to.layout.stash.pages != 0)
    detail::claim<detail::CompactFormat<1>>(to, to.layout.stash, qry_mix(mixed), entry, after_bit);
  if (entry.value != nullptr) *entry.value = value;
  else atomicAdd(refused, Atomic64{1});
}

// For the few pairs whose home had no slot left: the next sectors, then the stash.
template <class Format>
__device__ __noinline__ void place_further(uint32_t* page, uint32_t* taken, const CompactView& to, uint32_t mixed,
                                           uint32_t value, Atomic64* refused) {
  const QryCompactPart& part = to.layout.table;
  const QryCompactPlace place = qry_compact_place(mixed, part);
  atomicOr(page + place.home % kQrySectorsPerPage * detail::kSectorWords, kQryCompactOverflow);
  uint32_t tag = place.tag + part.remainders;
  for (uint32_t distance = 1; distance < part.reach && tag < Format::kNoTag; ++distance, tag += part.remainders) {
    const uint32_t sector = (place.home + distance) % kQrySectorsPerPage;
    uint32_t* const words = page + sector * detail::kSectorWords;
    const uint32_t slot = atomicAdd(taken + sector, 1u);
    if (slot < Format::kEntries) {
      atomicXor(words + slot / Format::kFields, Format::change(slot % Format::kFields, tag));
      words[Format::kTagWords + slot] = value;
      return;
    }
    atomicOr(words, kQryCompactOverflow);
  }
  place_in_stash(to, mixed, value, refused);
}

// Builds each page of the cleared table `to` from the sectors of `from` that can hold its keys: a page is a range of
// mixed keys, and both tables store them in that order except for their distances. All keys differ, so no search for
// duplicates is needed: a sector hands out its slots by a counter.
template <class Format>
__global__ void __launch_bounds__(kCompactThreads, 4)
    rehash_compact(CompactView from, detail::CompactInverse inverse, const __grid_constant__ CompactView to,
                   Atomic64* refused) {
  extern __shared__ __align__(128) uint32_t page[];
  __shared__ uint32_t first_home, last_home;         // in `from`, of the page's keys
  uint32_t* const taken = page + kCompactPageWords;  // of each sector
  const QryCompactPart &source = from.layout.table, &part = to.layout.table;
  if (threadIdx.x == 0) {
    first_home = qry_compact_place(uint32_t(((uint64_t{blockIdx.x} << 32) + part.pages - 1) / part.pages), source).home;
    last_home = qry_compact_place(uint32_t((((uint64_t{blockIdx.x} + 1) << 32) - 1) / part.pages), source).home;
  }
  for (uint32_t i = threadIdx.x; i < kQryPageBytes / 16; i += kCompactThreads)
    reinterpret_cast<uint4*>(page)[i] = empty_compact_half(i, Format::kTagWords);
  for (uint32_t i = threadIdx.x; i < kQrySectorsPerPage; i += kCompactThreads) taken[i] = 0;
  __syncthreads();

  const uint32_t first_page = first_home / kQrySectorsPerPage, last_page = last_home / kQrySectorsPerPage;
  for (uint32_t p = first_page; p <= last_page; ++p) {
    const uint32_t begin = p == first_page ? first_home % kQrySectorsPerPage : 0;
    const uint32_t end = (p == last_page ? last_home % kQrySectorsPerPage : kQrySectorsPerPage - 1) + source.reach;
    const uint32_t count = min(end - begin, kQrySectorsPerPage);
    detail::with_format_on_device(source.fields, [&](auto source_format) {
      using Source = decltype(source_format);
      constexpr uint32_t kAhead = 2;  // sectors loaded before the first is used
      for (uint32_t base = threadIdx.x; base < count; base += kAhead * kCompactThreads) {
        uint4 halves[kAhead][2];
#pragma unroll
        for (uint32_t j = 0; j < kAhead; ++j) {
          if (base + j * kCompactThreads >= count) continue;
          const uint32_t sector = p * kQrySectorsPerPage + (begin + base + j * kCompactThreads) % kQrySectorsPerPage;
          const uint4* const words = reinterpret_cast<const uint4*>(from.words + size_t{sector} * detail::kSectorWords);
          halves[j][0] = __ldg(words), halves[j][1] = __ldg(words + 1);
        }
#pragma unroll
        for (uint32_t j = 0; j < kAhead; ++j) {
          if (base + j * kCompactThreads >= count) continue;
          const uint32_t sector = p * kQrySectorsPerPage + (begin + base + j * kCompactThreads) % kQrySectorsPerPage;
          const uint4 a = halves[j][0], b = halves[j][1];
          const uint32_t words[detail::kSectorWords] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
          for (uint32_t e = 0; e < Source::kEntries; ++e) {
            const uint32_t value = words[Source::kTagWords + e];
            if (value == kQryCompactNoValue) continue;
            const uint32_t tag = Source::tag_at(words[e / Source::kFields], e % Source::kFields);
            const uint32_t mixed = inverse.mixed(inverse.home_of_entry(sector, tag, source).place, source);
            const QryCompactPlace place = qry_compact_place(mixed, part);
            if (place.home / kQrySectorsPerPage != blockIdx.x) continue;
            const uint32_t home = place.home % kQrySectorsPerPage, slot = atomicAdd(taken + home, 1u);
            if (slot < Format::kEntries) {
              atomicXor(page + home * detail::kSectorWords + slot / Format::kFields,
                        Format::change(slot % Format::kFields, place.tag));
              page[home * detail::kSectorWords + Format::kTagWords + slot] = value;
            } else {
              place_further<Format>(page, taken, to, mixed, value, refused);
            }
          }
        }
      }
    });
  }
  __syncthreads();
  write_compact_page(to.words + size_t{blockIdx.x} * kCompactPageWords, page);
}

// Moves the pairs of a stash, one thread a sector: to another table, or (to = from) back to the table where it has
// room.
__global__ void __launch_bounds__(kCompactThreads)
    empty_stash(CompactView from, detail::CompactInverse inverse, CompactView to, bool same, Atomic64* refused) {
  using Wide = detail::CompactFormat<1>;
  const QryCompactPart& stash = from.layout.stash;
  const uint32_t sector = blockIdx.x * kCompactThreads + threadIdx.x;
  if (sector >= stash.pages * kQrySectorsPerPage) return;
  uint32_t* const words = detail::compact_sector_words(from, stash, sector);
  for (uint32_t slot = 0; slot < Wide::kEntries; ++slot) {
    const uint32_t tag = words[slot] & Wide::kNoTag, value = words[Wide::kTagWords + slot];
    if (tag == Wide::kNoTag || value == kQryCompactNoValue) continue;
    uint32_t* const place =
        detail::claimed_entry_of(to, detail::compact_key(from.layout, true, inverse, sector, tag).mixed).value;
    if (place == words + Wide::kTagWords + slot) continue;
    if (place == nullptr) {
      atomicAdd(refused, Atomic64{1});
      continue;
    }
    if (same) words[Wide::kTagWords + slot] = kQryCompactNoValue;
    *place = value;
  }
}

}  // namespace quarry::hashgrid::kernels
