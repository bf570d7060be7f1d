// SPDX-License-Identifier: Apache-2.0
// growth.hpp - the steps by which the host makes room between edits: a larger grid.
#pragma once

#include "voxel/device/steps.hpp"

namespace quarry::device {

// Memory::grid becomes a table without keys.
struct ClearGrid {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return uint64_t(m.grid.page_count) * kQryPageWords; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    m.grid.words[item] = item % kQryPageWords < kQryStateSectors * 4u ? 0 : ~uint64_t(0);
  }
};

// Puts the keys of Memory::old_grid into Memory::grid.
struct Rehash {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return uint64_t(m.old_grid.page_count) * kQryPageWords;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    if (item % kQryPageWords < kQryStateSectors * 4u) return;
    const uint64_t word = m.old_grid.words[item];
    if (uint32_t(word) == kQryReservedKey) return;
    const uint32_t key = qry_key_of_stored(uint32_t(word), m.old_grid.locality);
    if (hashgrid::assign(m.grid, key, uint32_t(word >> 32)) == hashgrid::Outcome::full)
      set_bits(m.control->missing, kMissingPlace);
  }
};

}  // namespace quarry::device
