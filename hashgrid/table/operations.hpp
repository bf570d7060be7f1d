// SPDX-License-Identifier: Apache-2.0
// operations.hpp - the interface of the bulk operations on tables of one layout. Each layout implements it by host
// threads and by CUDA kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "hashgrid/table/outcome.hpp"
#include "hashgrid/table/stats.hpp"

namespace quarry::hashgrid {

// The counts of a bulk call over its keys.
struct BulkReport {
  uint64_t inserted = 0, present = 0, assigned = 0, erased = 0, absent = 0, full = 0, reserved = 0;
};
inline void add(BulkReport& sum, const BulkReport& part) {
  sum.inserted += part.inserted;
  sum.present += part.present;
  sum.assigned += part.assigned;
  sum.erased += part.erased;
  sum.absent += part.absent;
  sum.full += part.full;
  sum.reserved += part.reserved;
}
inline void add(BulkReport& sum, Outcome of_one_key) {
  switch (of_one_key) {
    case Outcome::inserted: ++sum.inserted; break;
    case Outcome::present: ++sum.present; break;
    case Outcome::assigned: ++sum.assigned; break;
    case Outcome::erased: ++sum.erased; break;
    case Outcome::absent: ++sum.absent; break;
    case Outcome::full: ++sum.full; break;
    case Outcome::reserved: ++sum.reserved; break;
  }
}

// The bulk operations on tables of one layout: View is GridView (pairs) or CompactView.
//
// All pointers are memory that the executor can dereference: host memory for `host`; device memory or pinned host
// memory for `cuda`. Optional outputs may be null. Calls return when the work is done (they synchronise the executor's
// own stream). To stay asynchronous, use pairs/view.hpp or compact/view.hpp inside your own kernels, or the executor's
// stream. Free-threaded.
template <class View>
class BulkOperations {
 public:
  virtual ~BulkOperations() = default;

  // Marks all pages empty and never used. Cost: one streaming write of the table.
  virtual Result<void> clear(const View& view) = 0;

  virtual Result<BulkReport> insert(const View& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                    Outcome* outcomes) = 0;
  // insert for a caller with exclusive use of the table: it may stream whole pages instead of visiting each key's
  // place. `fresh`: the table has not been written since it was cleared. `full` of the report: keys to retry with
  // `insert`; those that it refuses too have no place.
  virtual Result<BulkReport> insert_exclusive(const View& view, const uint32_t* keys, const uint32_t* values,
                                              size_t count, bool fresh) {
    (void)fresh;
    return insert(view, keys, values, count, nullptr);
  }
  // assign, find_or_insert and erase for a caller that is the table's only writer. As with insert_exclusive, the table
  // may be changed page by page: so assign_exclusive and find_or_insert_exclusive allow no readers either,
  // erase_exclusive does. `full` as above.
  virtual Result<BulkReport> assign_exclusive(const View& view, const uint32_t* keys, const uint32_t* values,
                                              size_t count) {
    return assign(view, keys, values, count, nullptr);
  }
  virtual Result<BulkReport> find_or_insert_exclusive(const View& view, const uint32_t* keys, uint32_t* values,
                                                      size_t count) {
    return find_or_insert(view, keys, values, count, nullptr);
  }
  virtual Result<BulkReport> erase_exclusive(const View& view, const uint32_t* keys, size_t count) {
    return erase(view, keys, count, nullptr, nullptr);
  }
  virtual Result<BulkReport> assign(const View& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                    Outcome* outcomes) = 0;
  // values[i]: in, the value to insert if absent; out, the table's value.
  virtual Result<BulkReport> find_or_insert(const View& view, const uint32_t* keys, uint32_t* values, size_t count,
                                            Outcome* outcomes) = 0;
  // values_out[i] = kQryReservedValue for an absent key.
  virtual Result<BulkReport> find(const View& view, const uint32_t* keys, size_t count, uint32_t* values_out,
                                  uint8_t* depths_out) = 0;
  virtual Result<BulkReport> erase(const View& view, const uint32_t* keys, size_t count, uint32_t* old_values,
                                   Outcome* outcomes) = 0;

  // Places the keys of a batch that `outcomes` marks `full`. Pairs: other keys of their pages are moved out of the way
  // (cuckoo moves), or to the stash, which works up to a load factor of about 0.96; the view carries a new phase.
  // Compact: a sweep, which frees what was reserved for erased keys. Their outcomes become `inserted`, `present` (a
  // duplicate in the batch) or stay `full`; the report counts only them. No concurrent use.
  virtual Result<BulkReport> insert_refused(const View& view, const uint32_t* keys, const uint32_t* values,
                                            size_t count, Outcome* outcomes) = 0;

  // Writes all pairs, page by page; within a page in memory order. Capacity in pairs. Returns the number of pairs in
  // the table; if it exceeds `capacity`, only `capacity` were written. Not to be run beside writers.
  virtual Result<uint64_t> enumerate(const View& view, uint32_t* keys, uint32_t* values, size_t capacity) = 0;
  // Moves every pair of `from` into the cleared table `to` (any page count), page by page, with cuckoo moves where a
  // page is tight. Returns the number of pairs that found no place (0: success). No concurrent use.
  virtual Result<uint64_t> rehash(const View& from, const View& to) = 0;
  // Rebuilds each page in place: freed slots (compact: those reserved for erased keys) become never-used, keys move to
  // the first free one of their places, state bits become exact. Needs no memory and cannot lose a key. No concurrent
  // use.
  virtual Result<void> sweep(const View& view) = 0;
  // Beside writers, the numbers do not belong to a single instant.
  virtual Result<Stats> stats(const View& view) = 0;
};

}  // namespace quarry::hashgrid
