// SPDX-License-Identifier: Apache-2.0
// join.hpp - joins of two tables by one column of 32-bit keys each: which row of the one belongs to which of the other.
//
// Neither side need be sorted, and both may have a key in many rows. Results are numbers of rows; what else the rows
// hold is the caller's to gather. Both sides are divided by the hash of their keys, so that the part of a table that a
// row can find lies in the cache; a key with many rows costs what its results do.
//
// Literature: S. Manegold, P. Boncz, M. Kersten, "Optimizing Main-Memory Join on Modern Hardware", 2002
// (docs/literature.md).
#pragma once

#include <cstdint>

#include "hashgrid/executor.hpp"
#include "hashgrid/table/span.hpp"

namespace quarry::hashgrid {

// The right row of a left row without a partner.
constexpr uint32_t kNoRow = kQryReservedValue;

// Spans are memory that the executor dereferences. Outputs whose data() is null are not written: without any, a call
// only counts. None may overlap an input or another output. Each call returns the number of its results, when they are
// written. The reserved key 0xFFFFFFFF and more than 2^32 - 2 rows are errors (invalid_argument). Results that do not
// fit are one (full): the message has their number. A call that fails has written nothing. Errors of every call: also
// out_of_memory, device, unsupported (CUDA devices before compute capability 8.0). Scratch memory: 44 bytes for each
// row of the longer side (CUDA; host: 40).
//
// Cost on CUDA, where the right side does not fit in a cache: 40 bytes read or written for each row of both sides to
// divide them, 16 to count and then to list what they come to, and the results. If some key has more than some thousand
// rows, and elsewhere: 40 bytes for each row of the right side to divide it, its table, 20 bytes a row, written and
// read once; the left side divided, if the table does not fit in a cache; 40 bytes for each left row; the results.

// All pairs of a left and a right row with equal keys. Those of a left row stand side by side; there is no other order.
Result<uint64_t> inner_join(Executor& executor, Span<const uint32_t> left_keys, Span<const uint32_t> right_keys,
                            Span<uint32_t> left_rows_out, Span<uint32_t> right_rows_out);
// The same, and each left row without a partner once, with kNoRow.
Result<uint64_t> left_join(Executor& executor, Span<const uint32_t> left_keys, Span<const uint32_t> right_keys,
                           Span<uint32_t> left_rows_out, Span<uint32_t> right_rows_out);
// The left rows that have a partner, once each, in order.
Result<uint64_t> semi_join(Executor& executor, Span<const uint32_t> left_keys, Span<const uint32_t> right_keys,
                           Span<uint32_t> left_rows_out);
// The left rows that have none, in order.
Result<uint64_t> anti_join(Executor& executor, Span<const uint32_t> left_keys, Span<const uint32_t> right_keys,
                           Span<uint32_t> left_rows_out);

}  // namespace quarry::hashgrid
