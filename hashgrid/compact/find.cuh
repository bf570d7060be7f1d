// SPDX-License-Identifier: Apache-2.0
// find.cuh - look-ups in a compact table by whole warps, two lanes a sector: for the bulk find and for the caller's
// kernels.
//
// A lane pair reads both its sectors together, 16 bytes a lane in one instruction at device scope, and exchanges
// halves: the even half has all the tags. pairs/cuda/find_warp.cuh says why: a single lane that reads its sector
// (find() of compact/view.hpp) requests it twice from the L2 cache, and a kernel of only look-ups is a third slower.
#pragma once

#include "hashgrid/compact/view.hpp"
#include "hashgrid/cuda/sector_loads.cuh"

namespace quarry::hashgrid::kernels {

// The same result as find(view, key). All 32 lanes of a warp call it together; a lane without a key passes
// kQryReservedKey. Format: CompactFormat<view.layout.table.fields>.
template <class Format>
__device__ inline Found find_by_warp(const CompactView& view, uint32_t key) {
  constexpr uint32_t kNoSector = 0xFFFFFFFFu;
  const bool odd = threadIdx.x & 1;
  const QryCompactPart& part = view.layout.table;
  const uint32_t mixed = qry_mix(key);
  const QryCompactPlace place = qry_compact_place(mixed, part);
  bool looking = key != kQryReservedKey;
  Found found{kQryReservedValue, 0, false};
  uint32_t tag = place.tag;
  for (uint32_t distance = 0; __any_sync(0xFFFFFFFFu, looking && distance < part.reach && tag < Format::kNoTag);
       ++distance, tag += part.remainders) {
    const bool reads = looking && distance < part.reach && tag < Format::kNoTag;
    const uint32_t mine = reads ? qry_compact_sector(place.home, distance) : kNoSector;
    const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, mine, 1);
    const uint32_t of_even = odd ? other : mine, of_odd = odd ? mine : other;
    ulonglong2 a = make_ulonglong2(0, 0), b = a;
    const auto half_of = [&](uint32_t sector) {
      return load_two_words(reinterpret_cast<const uint64_t*>(view.words + size_t{sector} * 8) + (odd ? 2 : 0));
    };
    if (of_even != kNoSector) a = half_of(of_even);
    if (of_odd != kNoSector) b = half_of(of_odd);
    const ulonglong2 give = odd ? a : b;
    const ulonglong2 got =
        make_ulonglong2(__shfl_xor_sync(0xFFFFFFFFu, give.x, 1), __shfl_xor_sync(0xFFFFFFFFu, give.y, 1));
    if (!reads) continue;
    const ulonglong2 low_half = odd ? got : a, high_half = odd ? b : got;
    const uint32_t words[8] = {detail::low(low_half.x),  detail::high(low_half.x), detail::low(low_half.y),
                               detail::high(low_half.y), detail::low(high_half.x), detail::high(high_half.x),
                               detail::low(high_half.y), detail::high(high_half.y)};
    ++found.sectors;
    uint32_t any = 0;
#pragma unroll
    for (uint32_t w = 0; w < Format::kTagWords; ++w) {
      const uint32_t matches = Format::matches(words[w], tag);
      any |= matches;
#pragma unroll
      for (uint32_t field = 0; field < Format::kFields; ++field)
        if (w * Format::kFields + field < Format::kEntries &&
            (matches >> (field * Format::kBits + Format::kBits - 1) & 1u) != 0)
          found.value = words[Format::kTagWords + w * Format::kFields + field];
    }
    looking = any == 0 && (words[0] & kQryCompactOverflow) != 0;
  }
  if (looking && view.layout.stash.pages != 0) {  // every sector in reach is full
    detail::CompactEntry entry;
    detail::find_entry<detail::CompactFormat<1>>(view, view.layout.stash, qry_mix(mixed), entry);
    found.sectors += entry.sectors;
    if (entry.value != nullptr) found.value = detail::CompactWords::load(entry.value);
  }
  found.hit = found.value != kQryReservedValue;
  return found;
}

}  // namespace quarry::hashgrid::kernels
