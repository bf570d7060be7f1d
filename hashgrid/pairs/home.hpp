// SPDX-License-Identifier: Apache-2.0
// home.hpp - look-ups in the home bucket first, without a branch: for kernels and loops that look up many keys at a
// time, then continue together with those that their home bucket does not settle.
#pragma once

#include "hashgrid/pairs/view.hpp"

namespace quarry::hashgrid::detail {

struct InSector {
  uint32_t value;  // the reserved value: the key is not in this sector
  bool beyond;     // in that case: the key may be further on
};
QRY_HD inline InSector probe_bucket(const Bucket& bucket, uint32_t stored) {
  uint32_t value = kQryReservedValue;
  bool never = false;
  for (uint32_t i = 0; i < kQrySlotsPerSector; ++i) {
    if (low(bucket.slot[i]) == stored) value = high(bucket.slot[i]);
    never |= bucket.slot[i] == kNeverUsed;
  }
  return {value, value == kQryReservedValue && !never};
}

// A stored key and the first word of its home sector.
struct Home {
  uint32_t stored;
  const uint64_t* words;
};
QRY_HD inline Home home_of(const GridView& view, uint32_t key, uint32_t locality) {
  const uint32_t stored = qry_stored_key(key, locality);
  const uint32_t sector = kQryStateSectors + qry_home_bucket(stored, view.page_count);
  return {stored, view.words + size_t{qry_page(stored, view.page_count)} * kQryPageWords + sector * kQrySlotsPerSector};
}

template <class Words>
QRY_HD inline uint32_t value_beyond(const GridView& view, uint32_t stored) {
  const QryProbeSequence probes = qry_probe_sequence(stored, view.page_count);
  const Located at = locate_beyond_home<Words>(page_of(view, probes), view, probes, stored);
  return at.slot == nullptr ? kQryReservedValue : high(at.word);
}

}  // namespace quarry::hashgrid::detail
