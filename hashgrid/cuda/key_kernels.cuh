// SPDX-License-Identifier: Apache-2.0
// key_kernels.cuh - the kernels with one thread a key, over the one-key functions of any layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/table/outcome.hpp"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kOutcomes = 7;  // values of Outcome

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

// Runs operation(i) for every i and counts the outcomes: in registers, then in the block, then by one atomic per block
// and outcome.
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
  if (threadIdx.x < kOutcomes && block_counts[threadIdx.x] != 0)
    atomicAdd(totals + threadIdx.x, (unsigned long long)block_counts[threadIdx.x]);
}

}  // namespace quarry::hashgrid::kernels
