// SPDX-License-Identifier: Apache-2.0
// grid.hpp - the owner of a table: its memory, its phase, its growth. Everything else works on views.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hashgrid/executor.hpp"
#include "hashgrid/table/span.hpp"

namespace quarry::hashgrid {

// How keys are laid out. `rows`: the eight keys 8n .. 8n+7 are stored side by side. Look-ups in the order of keys or of
// neighbours read one piece of memory for all of them, which doubles their speed. `plain`: every key is placed by
// itself; a few more keys keep their first place.
enum class Locality : uint32_t { plain = kQryPlain, rows = kQryRows };

// The memory layout of a table. The interface, the outcomes and the concurrency contract are the same.
//   pairs    pairs/view.hpp: 8 bytes a slot. One compare-and-swap publishes key and value; an erased key's slot serves
//            other keys at once. For tables under edit.
//   compact  compact/view.hpp: down to 5.3 bytes an entry in large tables; look-ups take the same time at any load
//            factor. An insert costs more. An erased key's slot stays reserved for it until a sweep, which the grid
//            does before it would grow.
// A load factor counts 8-byte slots in both layouts: equal load factors are equal memory.
enum class Layout : uint8_t { pairs, compact };

struct GridOptions {
  uint64_t capacity = 0;          // keys that fit at `max_load_factor` without growth; 0: one page
  double max_load_factor = 0.80;  // the next bulk insert beyond it grows the table first (by what the batch may need)
  Locality locality = Locality::plain;
  bool may_grow = true;           // false: a full table refuses keys and reports them
  Layout layout = Layout::pairs;  // fixed for the grid's life; compact has plain locality only
};

// Spans are host memory for the host executor and device (or pinned) memory for CUDA: what the executor dereferences.
// Thread safety: one bulk call of a Grid at a time. Any number of threads and kernels may *find* through its view, even
// during bulk calls that neither grow, sweep nor clear. They may *write* through it only between bulk calls, with a
// view taken after the last one: each changing call begins a new phase, and operations that overlap must carry the same
// phase (see pairs/view.hpp). size() does not count what they add or erase.
class Grid {
 public:
  // Allocates from `memory` (null: the executor's own). Executor and memory must outlive the grid. Errors: full (more
  // pages than 32-bit keys can fill), out_of_memory, device.
  static Result<Grid> create(Executor& executor, const GridOptions& options = {}, MemorySource* memory = nullptr);
  Grid(Grid&&) noexcept;
  Grid& operator=(Grid&&) noexcept;
  ~Grid();

  Layout layout() const;
  GridView view() const;             // of a pairs grid, with the current phase; valid until the next call that may grow
  CompactView compact_view() const;  // of a compact grid, valid as long; the view of the other layout is empty
  uint32_t page_count() const;
  const MemoryBlock& block() const;  // the memory that the view refers to
  uint64_t size() const;             // keys present, as counted by this owner's bulk calls
  uint64_t version() const;          // rises with every changing call

  // Each call begins a new phase: see pairs/view.hpp. Keys without a free place are placed by moves inside their page
  // or after a sweep (BulkOperations::insert_refused), then by growth unless that is off. If keys are still refused,
  // the call fails with `full`: the message has their number, `refused` (if given) gets their positions in the batch,
  // and all other keys are inserted. A reserved key or value fails with invalid_argument in the same way. The call
  // never waits and never loses a key.
  Result<BulkReport> insert(Span<const uint32_t> keys, Span<const uint32_t> values,
                            std::vector<uint64_t>* refused = nullptr);
  Result<BulkReport> assign(Span<const uint32_t> keys, Span<const uint32_t> values,
                            std::vector<uint64_t>* refused = nullptr);
  Result<BulkReport> find_or_insert(Span<const uint32_t> keys, Span<uint32_t> values,
                                    std::vector<uint64_t>* refused = nullptr);
  Result<BulkReport> find(Span<const uint32_t> keys, Span<uint32_t> values_out) const;
  Result<BulkReport> erase(Span<const uint32_t> keys);

  Result<void> clear();
  Result<void> reserve(uint64_t keys);  // makes room for this many keys at max_load_factor
  Result<void> sweep();
  Result<Stats> stats() const;
  // All pairs, copied to host memory. Sorted by key if `ordered`.
  struct Pairs {
    std::vector<uint32_t> keys, values;
  };
  Result<Pairs> enumerate(bool ordered) const;

 private:
  struct State;
  explicit Grid(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::hashgrid
