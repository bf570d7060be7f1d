// SPDX-License-Identifier: Apache-2.0
// key_kernels.cuh - the kernels with one thread a key, over the one-key functions of any layout; and their launches on
// a caller's stream (enqueue.cuh), which each layout instantiates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/cuda/launch.cuh"
#include "hashgrid/cuda/enqueue.cuh"
#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/table/arguments.hpp"
#include "hashgrid/table/outcome.hpp"

namespace quarry::hashgrid::kernels {

template <class View>
struct InsertKey {
  View view;
  const uint32_t* keys;
  const uint32_t* values;
  __device__ Outcome operator()(size_t i) const { return insert(view, keys[i], values[i]); }
};

template <class View>
struct AssignKey {
  View view;
  const uint32_t* keys;
  const uint32_t* values;
  __device__ Outcome operator()(size_t i) const { return assign(view, keys[i], values[i]); }
};

template <class View>
struct FindOrInsertKey {
  View view;
  const uint32_t* keys;
  uint32_t* values;
  __device__ Outcome operator()(size_t i) const {
    uint32_t value = values[i];
    const Outcome outcome = find_or_insert(view, keys[i], &value);
    if (outcome == Outcome::present) values[i] = value;
    return outcome;
  }
};

template <class View>
struct FindKey {
  View view;
  const uint32_t* keys;
  uint32_t* values_out;
  __device__ Outcome operator()(size_t i) const {
    const Found found = find(view, keys[i]);
    values_out[i] = found.value;
    return found.hit ? Outcome::present : keys[i] == kQryReservedKey ? Outcome::reserved : Outcome::absent;
  }
};

template <class View>
struct EraseKey {
  View view;
  const uint32_t* keys;
  uint32_t* old_values;
  __device__ Outcome operator()(size_t i) const {
    uint32_t old = kQryReservedValue;
    const Outcome outcome = erase(view, keys[i], &old);
    if (old_values != nullptr) old_values[i] = old;
    return outcome;
  }
};

// Runs operation(i) for every i and counts the outcomes (totals may be null): in registers, then in the block, then by
// one atomic per block and outcome.
template <class Operation>
__global__ void __launch_bounds__(kKeyThreads)
    for_each_key(Operation operation, size_t count, Outcome* outcomes, unsigned long long* totals) {
  __shared__ uint32_t block_counts[kOutcomes];
  if (threadIdx.x < kOutcomes) block_counts[threadIdx.x] = 0;
  __syncthreads();
  uint32_t counts[kOutcomes] = {};
  for (size_t i = size_t{blockIdx.x} * kKeyThreads + threadIdx.x; i < count; i += size_t{gridDim.x} * kKeyThreads) {
    const Outcome outcome = operation(i);
    if (outcomes != nullptr) outcomes[i] = outcome;
#pragma unroll
    for (uint32_t o = 0; o < kOutcomes; ++o) counts[o] += uint32_t(outcome) == o;
  }
#pragma unroll
  for (uint32_t o = 0; o < kOutcomes; ++o) {
    uint32_t sum = counts[o];
    for (uint32_t step = 16; step != 0; step /= 2) sum += __shfl_down_sync(0xFFFFFFFFu, sum, step);
    if (threadIdx.x % 32 == 0 && sum != 0) atomicAdd(&block_counts[o], sum);
  }
  __syncthreads();
  if (totals != nullptr && threadIdx.x < kOutcomes && block_counts[threadIdx.x] != 0)
    atomicAdd(totals + threadIdx.x, (unsigned long long)block_counts[threadIdx.x]);
}

}  // namespace quarry::hashgrid::kernels

namespace quarry::hashgrid {

namespace detail {
template <class View>
Result<void> check_enqueued(const View& view, const uint32_t* keys, const uint32_t* inputs, size_t count) {
  QRY_TRY(check_arrays(keys, inputs, count));
  return check_memory(view.words, view.page_count);
}
}  // namespace detail

template <class Operation>
Result<void> enqueue_for_keys(const char* doing, cudaStream_t stream, const Operation& operation, size_t count,
                              Outcome* outcomes, OutcomeCounts* counts) {
  constexpr size_t kMostBlocks = 8192;  // kernels stride over the rest
  if (count == 0) return {};
  const size_t blocks = std::min((count + kernels::kKeyThreads - 1) / kernels::kKeyThreads, kMostBlocks);
  return gpu::launch(doing, {uint32_t(blocks), kernels::kKeyThreads}, stream, kernels::for_each_key<Operation>,
                     operation, count, outcomes, counts != nullptr ? counts->of : nullptr);
}

// The bodies of enqueue.cuh; the source of each layout instantiates them.
template <class View>
Result<void> enqueue_insert(cudaStream_t stream, const View& view, const uint32_t* keys, const uint32_t* values,
                            size_t count, Outcome* outcomes, OutcomeCounts* counts) {
  QRY_TRY(detail::check_enqueued(view, keys, values, count));
  return enqueue_for_keys("insert", stream, kernels::InsertKey<View>{view, keys, values}, count, outcomes, counts);
}
template <class View>
Result<void> enqueue_assign(cudaStream_t stream, const View& view, const uint32_t* keys, const uint32_t* values,
                            size_t count, Outcome* outcomes, OutcomeCounts* counts) {
  QRY_TRY(detail::check_enqueued(view, keys, values, count));
  return enqueue_for_keys("assign", stream, kernels::AssignKey<View>{view, keys, values}, count, outcomes, counts);
}
template <class View>
Result<void> enqueue_find_or_insert(cudaStream_t stream, const View& view, const uint32_t* keys, uint32_t* values,
                                    size_t count, Outcome* outcomes, OutcomeCounts* counts) {
  QRY_TRY(detail::check_enqueued(view, keys, values, count));
  return enqueue_for_keys("find_or_insert", stream, kernels::FindOrInsertKey<View>{view, keys, values}, count, outcomes,
                          counts);
}
template <class View>
Result<void> enqueue_find(cudaStream_t stream, const View& view, const uint32_t* keys, size_t count,
                          uint32_t* values_out, Outcome* outcomes, OutcomeCounts* counts) {
  QRY_TRY(detail::check_enqueued(view, keys, values_out, count));
  return enqueue_for_keys("find", stream, kernels::FindKey<View>{view, keys, values_out}, count, outcomes, counts);
}
template <class View>
Result<void> enqueue_erase(cudaStream_t stream, const View& view, const uint32_t* keys, size_t count,
                           uint32_t* old_values, Outcome* outcomes, OutcomeCounts* counts) {
  QRY_TRY(detail::check_enqueued(view, keys, keys, count));
  return enqueue_for_keys("erase", stream, kernels::EraseKey<View>{view, keys, old_values}, count, outcomes, counts);
}

}  // namespace quarry::hashgrid
