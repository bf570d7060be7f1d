// SPDX-License-Identifier: Apache-2.0
// find_warp.cuh - look-ups in the pairs layout by whole warps, two lanes a sector, for the bulk find and for the
// caller's kernels. A lane pair reads both its sectors together, 16 bytes a lane in one instruction, and exchanges the
// results.
//
// Loads stay at device scope, served by the L2 cache: a find sees every insert that ended before it began, also of
// other kernels. A single lane that reads its sector by two such loads requests it twice from the L2 cache and is a
// third slower (24 against 39 G finds/s on an H200). Through L1 the same two loads reach 39 too, but may be out of
// date. The lane pair makes one request, so it does not need L1.
#pragma once

#include "hashgrid/cuda/sector_loads.cuh"
#include "hashgrid/pairs/view.hpp"

namespace quarry::hashgrid::kernels {

// The same result as find(view, key), for a view of plain keys. All 32 lanes of a warp call it together; a lane without
// a key passes kQryReservedKey. For the caller's kernels that look up keys beside other work.
__device__ inline Found find_by_warp(const GridView& view, uint32_t key) {
  const bool odd = threadIdx.x & 1;
  const uint32_t stored = qry_stored_key(key, kQryPlain);
  const QryProbeSequence probes = qry_probe_sequence(stored, view.page_count);
  const uint64_t* const page = detail::page_of(view, probes);
  const uint32_t other_stored = __shfl_xor_sync(0xFFFFFFFFu, stored, 1);
  // Each lane looks for its partner's key too, so one value is exchanged, not a sector. `wanted` is false if this lane
  // needs no sector; its partner may need one. Returns the value, or the reserved one, and whether the sector has a
  // never-used slot.
  const auto probe = [&](const uint64_t* mine, bool wanted) {
    const auto other =
        reinterpret_cast<const uint64_t*>(__shfl_xor_sync(0xFFFFFFFFu, reinterpret_cast<unsigned long long>(mine), 1));
    const bool other_wanted = __shfl_xor_sync(0xFFFFFFFFu, wanted, 1);
    ulonglong2 a = make_ulonglong2(0, 0), b = make_ulonglong2(0, 0);
    if (odd ? other_wanted : wanted) a = load_two_words((odd ? other : mine) + (odd ? 2 : 0));
    if (odd ? wanted : other_wanted) b = load_two_words((odd ? mine : other) + (odd ? 2 : 0));
    const auto value_in = [](const ulonglong2& two, uint32_t looked_for) {
      uint32_t value = kQryReservedValue;
      if (detail::low(two.x) == looked_for) value = detail::high(two.x);
      if (detail::low(two.y) == looked_for) value = detail::high(two.y);
      return value;
    };
    const auto never_in = [](const ulonglong2& two) {
      return uint32_t{two.x == detail::kNeverUsed || two.y == detail::kNeverUsed};
    };
    const uint32_t value_a = value_in(a, odd ? other_stored : stored),
                   value_b = value_in(b, odd ? stored : other_stored);
    const uint32_t never_a = never_in(a), never_b = never_in(b);
    const uint32_t got = __shfl_xor_sync(0xFFFFFFFFu, odd ? value_a : value_b, 1);
    const uint32_t got_never = __shfl_xor_sync(0xFFFFFFFFu, odd ? never_a : never_b, 1);
    // The reserved value is all ones, so the smaller of the two is the one that was found.
    return make_uint2(min(odd ? value_b : value_a, got), (odd ? never_b : never_a) | got_never);
  };
  const bool asked = key != kQryReservedKey;
  const uint2 home = probe(page + probes.home_sector * kQrySlotsPerSector, asked);
  uint32_t value = home.x, sectors = 1;
  const bool further = asked && value == kQryReservedValue && home.y == 0;
  if (__any_sync(0xFFFFFFFFu, further)) {
    const uint32_t state = further ? detail::bucket_state<detail::SharedWords>(page, probes.home_sector) : 0;
    const bool spilled = (state & kQryBucketSpilled) != 0;
    const uint32_t next = probe(page + probes.second_sector * kQrySlotsPerSector, spilled).x;
    if (spilled) {
      value = next;
      sectors = 2;
      if (value == kQryReservedValue && (state & kQryBucketToStash) != 0) {
        const detail::Located at = detail::locate_in_stash<detail::SharedWords>(view, probes, stored);
        sectors = at.sectors;
        if (at.slot != nullptr) value = detail::high(at.word);
      }
    }
  }
  if (!asked) return {kQryReservedValue, 0, false};
  return {value, sectors, value != kQryReservedValue};
}

}  // namespace quarry::hashgrid::kernels
