// SPDX-License-Identifier: Apache-2.0
// multi_grid.hpp - several values per key: the owner of a multi grid's memory and its bulk calls.
//
// It is made for batches. A batch into an empty grid builds it; a batch into a grid in use builds the whole anew with
// the batch, in time for all pairs: gather pairs before you insert them. In return a key's values lie side by side, a
// look-up reads one sector and then the values, and a key with a million values costs no more than they do. One key is
// looked up through the view (multi/view.hpp). Layout: multi/shape.hpp. Paper: docs/literature.md.
#pragma once

#include <cstdint>
#include <memory>

#include "hashgrid/executor.hpp"
#include "hashgrid/table/span.hpp"

namespace quarry::hashgrid {

struct MultiOptions {
  uint64_t capacity = 0;  // pairs whose memory is allocated at once: a batch of so many into the empty grid needs none
};

// Keys and values have 32 bits. Equal pairs are kept as often as they are inserted; the values of a key have no order.
// The reserved key 0xFFFFFFFF is an error (invalid_argument) when inserted, and absent otherwise; any value is allowed.
//
// Spans are memory that the executor dereferences: host memory, or device (or pinned) memory for CUDA. Outputs whose
// data() is null are not written; none may overlap an input or another output (invalid_argument). One changing call at
// a time, with no reader; any number of threads and kernels may read at once. Calls return when the work is done. A
// call that fails has written nothing and leaves the grid as it was. Errors of every call: also out_of_memory, device;
// of those that build, which clear() and create() do, unsupported (CUDA devices before compute capability 8.0).
class MultiGrid {
 public:
  // Empty. Allocates from `memory` (null: the executor's own). Executor and memory must outlive the grid. Errors: full
  // (2^32 - 1 pairs and more).
  static Result<MultiGrid> create(Executor& executor, const MultiOptions& options = {}, MemorySource* memory = nullptr);
  MultiGrid(MultiGrid&&) noexcept;
  MultiGrid& operator=(MultiGrid&&) noexcept;
  ~MultiGrid();

  MultiView view() const;       // valid until the next changing call
  uint64_t size() const;        // pairs
  uint64_t size_bytes() const;  // of its memory: 20 bytes for each pair that there is room for, and 40 for each 512
  uint64_t capacity() const;    // pairs that there is room for

  // Adds pairs. Errors: full (2^32 - 1 pairs and more). Cost and scratch memory: multi/operations.hpp.
  Result<void> insert(Span<const uint32_t> keys, Span<const uint32_t> values);
  // Takes keys away with all their values. Returns how many values. Their memory serves again after the next insert.
  Result<uint64_t> erase(Span<const uint32_t> keys);
  Result<void> clear();  // keeps the memory

  // How many values each key has, 0 if it is absent. `present` and `absent` of the report count the keys.
  Result<BulkReport> count(Span<const uint32_t> keys, Span<uint32_t> counts_out) const;
  // The values of each key: those of key i at [starts_out[i], starts_out[i + 1]). starts_out has one element more than
  // there are keys. Returns the number of all values. Errors: full, if that is more than fits; the message has it.
  Result<uint64_t> retrieve(Span<const uint32_t> keys, Span<uint64_t> starts_out, Span<uint32_t> values_out) const;
  // All pairs, those of a key side by side, in no other order. Returns size(). Errors: full, if that is more than fits.
  Result<uint64_t> list(Span<uint32_t> keys_out, Span<uint32_t> values_out) const;

 private:
  struct State;
  explicit MultiGrid(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::hashgrid
