// SPDX-License-Identifier: Apache-2.0
// growth.hpp - what the host launches between edits: a larger grid, and a history without steps.
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

// Frees what the history's records hold. The host then sets its counters to 0.
struct Forget {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->record_top; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    Control& c = *m.control;
    const Step* const last = c.step_position ? m.steps + (c.step_position - 1) : nullptr;
    const bool applied = last && item < last->first + last->count;
    const Record record = m.records[item];
    const uint32_t index = applied ? record.before : record.after;
    if (record.before != record.after && is_stored_index(index)) m.free_bricks[push(c.free_count)] = index;
  }
};

}  // namespace quarry::device
