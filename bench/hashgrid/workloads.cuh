// SPDX-License-Identifier: Apache-2.0
// workloads.cuh - the keys of the benchmark, and the checks of every result.
//
// U: unique 32-bit keys in random order (a bijection of 0, 1, 2, ... unrelated to the grid's mixer), values made from
//    keys.
// V: about 16.7 million bricks, keys packed 11/10/11, in scan order: the shell of a rolling terrain 2048 x 2048 bricks
//    wide, three to five bricks thick, and a bumpy sphere of radius 380 above it.
#pragma once

#include <cstdint>
#include <cub/device/device_radix_sort.cuh>

#include "bench/hashgrid/timing.cuh"
#include "hashgrid/pairs/layout.h"

namespace quarry::bench {

__host__ __device__ inline uint32_t shuffled(uint32_t x) {  // the finalizer of MurmurHash3
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  x ^= x >> 16;
  return x;
}
__host__ __device__ inline uint32_t value_of(uint32_t key) { return (key * 0x9E3779B1u ^ 0x12345678u) & 0x7FFFFFFFu; }
// Never the reserved key for index < 2^32 - 1.
__host__ __device__ inline uint32_t uniform_key(uint32_t index) {
  const uint32_t key = shuffled(index ^ 0x3c6ef372u);
  return key == kQryReservedKey ? shuffled(0xFFFFFFFFu ^ 0x3c6ef372u) : key;
}

__global__ void make_uniform(uint32_t* keys, uint32_t* values, uint32_t count, uint32_t first) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  keys[i] = uniform_key(first + i);
  if (values != nullptr) values[i] = value_of(keys[i]);
}
inline void fill_uniform(uint32_t* keys, uint32_t* values, uint32_t count, uint32_t first) {
  launch_each("make keys", count, nullptr, make_uniform, keys, values, count, first);
}
// `count` draws from `distinct` keys: four copies of each on average where count = 4 x distinct.
__global__ void make_copies(uint32_t* keys, uint32_t* values, uint32_t count, uint32_t distinct) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  keys[i] = uniform_key(shuffled(i) % distinct);
  values[i] = value_of(keys[i]);
}

__device__ inline int terrain_height(float x, float z) {
  return int(130.f + 70.f * __sinf(x * .0041f) * __cosf(z * .0037f) + 14.f * __sinf(x * .019f + z * .013f) +
             2.f * __sinf(x * .083f) * __sinf(z * .071f));
}
__global__ void make_bricks(uint32_t* keys, uint32_t* count) {
  const uint32_t column = blockIdx.x * blockDim.x + threadIdx.x;
  const int x = int(column & 2047u), z = int(column >> 11);
  const auto add = [&](int y) { keys[atomicAdd(count, 1u)] = uint32_t(x) | uint32_t(y) << 11 | uint32_t(z) << 21; };
  const float fx = float(x), fz = float(z);
  const int top = terrain_height(fx, fz);
  const int around = min(min(terrain_height(fx + 1, fz), terrain_height(fx - 1, fz)),
                         min(terrain_height(fx, fz + 1), terrain_height(fx, fz - 1)));
  for (int y = min(around, top) - 2; y <= top; ++y) add(y);
  const float dx = fx - 1024.f, dz = fz - 1024.f, flat = dx * dx + dz * dz;
  if (flat > 400.f * 400.f) return;
  for (int y = 230; y < 1020; ++y) {
    const float dy = float(y) - 625.f, radius = 380.f + 6.f * __sinf(dx * .05f) * __sinf(dy * .05f) * __sinf(dz * .05f);
    if (fabsf(sqrtf(flat + dy * dy) - radius) < 0.87f) add(y);
  }
}
__global__ void make_values(const uint32_t* keys, uint32_t* values, uint32_t count) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = value_of(keys[i]);
}
// Bricks in scan order with their values; returns their number. Room for 2^25 in each array.
inline uint32_t make_scan(uint32_t* keys, uint32_t* values, uint32_t* unsorted) {
  uint32_t* counter = values;
  require(cudaMemset(counter, 0, sizeof(uint32_t)), "clear a counter");
  launch_each("make bricks", 2048 * 2048, nullptr, make_bricks, unsorted, counter);
  uint32_t count = 0;
  require(cudaMemcpy(&count, counter, sizeof(count), cudaMemcpyDeviceToHost), "make bricks");
  size_t bytes = 0;
  cub::DeviceRadixSort::SortKeys(nullptr, bytes, unsorted, keys, count);
  void* temporary = nullptr;
  require(cudaMalloc(&temporary, bytes), "temporary memory of the radix sort");
  cub::DeviceRadixSort::SortKeys(temporary, bytes, unsorted, keys, count);
  launch_each("make values", count, nullptr, make_values, keys, values, count);
  require(cudaDeviceSynchronize(), "sort bricks");
  cudaFree(temporary);
  return count;
}

__global__ void count_wrong(const uint32_t* keys, const uint32_t* got, uint32_t count, bool present,
                            unsigned long long* wrong) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && got[i] != (present ? value_of(keys[i]) : kQryReservedValue)) atomicAdd(wrong, 1ull);
}
inline uint64_t wrong_answers(const uint32_t* keys, const uint32_t* got, uint32_t count, bool present,
                              unsigned long long* scratch) {
  require(cudaMemset(scratch, 0, sizeof(*scratch)), "clear a counter");
  launch_each("check answers", count, nullptr, count_wrong, keys, got, count, present, scratch);
  unsigned long long wrong = 0;
  require(cudaMemcpy(&wrong, scratch, sizeof(wrong), cudaMemcpyDeviceToHost), "check answers");
  return wrong;
}

}  // namespace quarry::bench
