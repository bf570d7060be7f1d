// SPDX-License-Identifier: Apache-2.0
// enqueue.cuh - batches on the caller's own CUDA stream: each call launches one kernel and returns, and the counts stay
// in device memory. For small batches between a caller's other kernels, where a bulk call of an executor would wait.
//
// What it is not: the road for large batches. Each key is put or looked up by one thread; from 2^18 keys on the bulk
// calls (table/operations.hpp) go page by page, and are two to four times as fast. Nothing grows here: a key without a
// place is counted as `full`, and its outcome says so.
//
// The functions are those of the views (GridView, CompactView) over an array, under the same concurrency contract
// (pairs/view.hpp): all operations that overlap carry the same phase, so an owner's changing calls must not run
// meanwhile.
//
// All pointers are device memory (or pinned host memory) of the stream's device, valid until the stream has done the
// work. The device must be current. Nothing is allocated, nothing synchronises; calls are thread-safe. `outcomes` (one
// for each key) and `counts` may be null. Errors: invalid_argument for null or misaligned pointers, device for a failed
// launch. Cost: a launch, and per key what the view's function costs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "hashgrid/table/outcome.hpp"

namespace quarry::hashgrid {

// How many keys had each outcome, in device memory. The calls add to it; the caller clears it (cudaMemsetAsync).
struct OutcomeCounts {
  unsigned long long of[kOutcomes];  // by Outcome
  QRY_HD unsigned long long operator[](Outcome outcome) const { return of[size_t(outcome)]; }
};

template <class View>
Result<void> enqueue_insert(cudaStream_t stream, const View& view, const uint32_t* keys, const uint32_t* values,
                            size_t count, Outcome* outcomes, OutcomeCounts* counts);
template <class View>
Result<void> enqueue_assign(cudaStream_t stream, const View& view, const uint32_t* keys, const uint32_t* values,
                            size_t count, Outcome* outcomes, OutcomeCounts* counts);
// values[i]: in, the value to insert if absent; out, the table's value.
template <class View>
Result<void> enqueue_find_or_insert(cudaStream_t stream, const View& view, const uint32_t* keys, uint32_t* values,
                                    size_t count, Outcome* outcomes, OutcomeCounts* counts);
// values_out[i] = kQryReservedValue for an absent key. Outcomes: present, absent, reserved.
template <class View>
Result<void> enqueue_find(cudaStream_t stream, const View& view, const uint32_t* keys, size_t count,
                          uint32_t* values_out, Outcome* outcomes, OutcomeCounts* counts);
// old_values may be null.
template <class View>
Result<void> enqueue_erase(cudaStream_t stream, const View& view, const uint32_t* keys, size_t count,
                           uint32_t* old_values, Outcome* outcomes, OutcomeCounts* counts);

}  // namespace quarry::hashgrid
