// SPDX-License-Identifier: Apache-2.0
// own_kernels.hpp - look-ups through read-only views and batches on a stream, as a caller's own CUDA program has them.
#pragma once

#include <vector>

#include "hashgrid/executor.hpp"
#include "hashgrid/paged/view.hpp"

namespace quarry::hashgrid::test {

// Looks up every key through ReadOnly<View>, one thread a key; for a CUDA executor.
std::vector<Found> find_read_only(Executor& executor, const GridView& view, const std::vector<uint32_t>& keys);
std::vector<Found> find_read_only(Executor& executor, const CompactView& view, const std::vector<uint32_t>& keys);

// Looks up every key, region in its upper half, through a paged grid's view; likewise.
std::vector<PagedFound> find_paged(Executor& executor, const PagedView& view, const std::vector<uint64_t>& keys);
// The sum of each key's values in a multi grid, by a thread for each key; for a CUDA executor.
std::vector<uint64_t> sum_values(Executor& executor, const MultiView& view, const std::vector<uint32_t>& keys);

// What a batch of enqueue.cuh did.
struct Enqueued {
  bool accepted = false;
  std::vector<uint32_t> values;  // after it: what was found, was there, or was erased
  std::vector<Outcome> outcomes;
  uint64_t counts[kOutcomes] = {};  // by Outcome
};
enum class Batch { insert, assign, find_or_insert, find, erase };
// In a stream of the call's own, on the executor's device.
Enqueued enqueue(Executor& executor, const GridView& view, Batch batch, const std::vector<uint32_t>& keys,
                 const std::vector<uint32_t>& values);
Enqueued enqueue(Executor& executor, const CompactView& view, Batch batch, const std::vector<uint32_t>& keys,
                 const std::vector<uint32_t>& values);
// The same with null for the keys: whether it was refused without a launch.
bool null_keys_are_refused(Executor& executor, const GridView& view);

}  // namespace quarry::hashgrid::test
