// SPDX-License-Identifier: Apache-2.0
// operations.hpp - the interface of the bulk operations on multi grids, and of joins, which build one of their right
// side. Host threads and CUDA kernels run the same bodies (bodies.hpp) in the same order (passes.hpp); CUDA builds
// pages of usual size in shared memory (build.cuh).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "hashgrid/multi/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

// Which rows a join lists (hashgrid/join.hpp).
enum class JoinKind : uint8_t { inner, left, semi, anti };

// All pointers are memory that the executor can dereference, as in table/operations.hpp. Calls return when the work is
// done. They check what they are given before they write. Free-threaded, but nobody may read a grid that is changed.
// Errors of every call: also out_of_memory, device; unsupported (CUDA devices before compute capability 8.0).
class MultiOperations {
 public:
  virtual ~MultiOperations() = default;

  // Fills `memory`, of at least MultiShape::of(from_pairs + count).size_bytes(), with a batch and, unless `from` is
  // null, the `from_pairs` pairs of another grid. Errors: invalid_argument (a reserved key; the message says which is
  // the first), nothing written. Cost: every pair of both is divided by page, which is 44 bytes read or written, and
  // the new grid written: 20 bytes a pair. Scratch: 28 bytes a pair.
  virtual Result<MultiView> build(void* memory, const MultiView* from, uint64_t from_pairs, const uint32_t* keys,
                                  const uint32_t* values, size_t count) = 0;
  // How many values each key has. `present` and `absent` of the report are set.
  virtual Result<BulkReport> count(const MultiView& view, const uint32_t* keys, size_t count, uint32_t* counts_out) = 0;
  // The values of all keys, one key after the other: those of key i at starts_out[i] .. starts_out[i + 1]. Outputs may
  // be null. Returns their number. Errors: full (more than `room`), nothing written. Cost of a key: a look-up, 40 bytes
  // of scratch traffic, and its values read and written.
  virtual Result<uint64_t> retrieve(const MultiView& view, const uint32_t* keys, size_t count, uint64_t* starts_out,
                                    uint32_t* values_out, uint64_t room) = 0;
  // Takes keys away with all their values; returns the number of values. Cost of a key: a look-up and one swap.
  virtual Result<uint64_t> erase(const MultiView& view, const uint32_t* keys, size_t count) = 0;
  // All pairs, those of a key side by side. Outputs may be null. Errors: full (more than `room`), nothing written.
  virtual Result<uint64_t> list(const MultiView& view, uint32_t* keys_out, uint32_t* values_out, uint64_t room) = 0;

  // Outputs may be null. Returns the number of results. Errors: invalid_argument (a reserved key), full (more than
  // `room`), nothing written. semi and anti write left rows only.
  virtual Result<uint64_t> join(JoinKind kind, const uint32_t* left, size_t left_count, const uint32_t* right,
                                size_t right_count, uint32_t* left_rows_out, uint32_t* right_rows_out,
                                uint64_t room) = 0;
};

}  // namespace quarry::hashgrid
