// SPDX-License-Identifier: Apache-2.0
// ceilings.cuh - the memory rates of this machine, measured in the same process as the table. The benchmark prints
// every figure as a ratio to one of them, because absolute figures differ between machines.
#pragma once

#include <cub/device/device_radix_sort.cuh>

#include "bench/hashgrid/timing.cuh"
#include "hashgrid/pairs/layout.h"

namespace quarry::bench {

__global__ void read_8(const uint64_t* words, uint32_t slots, uint32_t count, uint32_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    out[i] = uint32_t(__ldg(reinterpret_cast<const unsigned long long*>(words) + __umulhi(qry_mix(i), slots)));
}

// A 32-byte sector by two 16-byte loads that only the L2 cache serves.
__global__ void read_32(const uint64_t* words, uint32_t sectors, uint32_t count, uint32_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const uint64_t* p = words + size_t{__umulhi(qry_mix(i), sectors)} * 4;
  uint64_t a, b, c, d;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p));
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(c), "=l"(d) : "l"(p + 2));
  out[i] = uint32_t(a ^ b ^ c ^ d);
}

__global__ void swap_8(uint64_t* words, uint32_t slots, uint32_t count) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    atomicCAS(reinterpret_cast<unsigned long long*>(words) + __umulhi(qry_mix(i), slots), ~0ull, (unsigned long long)i);
}

__global__ void copy_16(const uint4* from, uint4* to, size_t count) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}

// Pairs placed in pages in shared memory in the simplest way: one counter and one store a key, nothing read, nothing
// written back.
__global__ void __launch_bounds__(256) fill_shared(const uint32_t* keys, uint32_t per_page, uint32_t* out) {
  __shared__ uint64_t words[3968];
  __shared__ uint32_t counters[992];
  for (uint32_t i = threadIdx.x; i < 992; i += 256) counters[i] = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < per_page; i += 256) {
    const uint32_t key = __ldcs(keys + size_t{blockIdx.x} * per_page + i), bucket = __umulhi(qry_mix(key), 992);
    words[bucket * 4 + ((atomicAdd(counters + bucket, 1u) + bucket / 4) & 3)] = key;
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = uint32_t(words[blockIdx.x % 3968]) + counters[0];
}

struct Ceilings {
  // 10^9 a second.
  double read_8 = 0, read_32 = 0, swap_8 = 0, swap_8_in_l2 = 0, shared_fill = 0, radix_8_bits = 0, radix_16_bits = 0;
  double copy_gb = 0;  // GB read and written a second
};

// `words`: 2 GiB of scratch memory. The random reads and swaps use `slots` of them. keys, values: `count` of each.
// Everything except keys is overwritten.
inline Ceilings measure_ceilings(uint64_t* words, uint32_t slots, const uint32_t* keys, const uint32_t* values,
                                 uint32_t* out, uint32_t* out_values, uint32_t count) {
  Ceilings c;
  c.read_8 = count /
             seconds_of([&] { launch_each("ceiling: read_8", count, nullptr, read_8, words, slots, count, out); }) *
             1e-9;
  c.read_32 =
      count /
      seconds_of([&] { launch_each("ceiling: read_32", count, nullptr, read_32, words, slots / 4, count, out); }) *
      1e-9;
  const auto reset = [&](size_t bytes) { return [words, bytes] { cudaMemset(words, 0xFF, bytes); }; };
  c.swap_8 = count /
             seconds_of([&] { launch_each("ceiling: swap_8", count, nullptr, swap_8, words, slots, count); },
                        reset(size_t{slots} * 8)) *
             1e-9;
  const auto swap_in_l2 = [&] { launch_each("ceiling: swap_8 in L2", count, nullptr, swap_8, words, 1u << 21, count); };
  c.swap_8_in_l2 = count / seconds_of(swap_in_l2, reset(size_t{16} << 20)) * 1e-9;
  const size_t half = (size_t{1} << 30) / sizeof(uint4);
  constexpr gpu::LaunchShape kCopyShape{2112, 512};
  auto* const from = reinterpret_cast<uint4*>(words);
  c.copy_gb = 2.0 * double(size_t{1} << 30) / seconds_of([&] {
                require(gpu::launch("ceiling: copy", kCopyShape, nullptr, copy_16, from, from + half, half));
              }) *
              1e-9;
  const auto fill = [&] { launch_blocks("ceiling: fill_shared", count / 2048, nullptr, fill_shared, keys, 2048, out); };
  c.shared_fill = double(count / 2048 * 2048) / seconds_of(fill) * 1e-9;
  for (const int bits : {8, 16}) {
    size_t bytes = 0;
    cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, out, values, out_values, count, 0, bits);
    void* temporary = nullptr;
    require(cudaMalloc(&temporary, bytes), "temporary memory of the radix sort");
    (bits == 8 ? c.radix_8_bits : c.radix_16_bits) =
        count / seconds_of([&] {
          cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, out, values, out_values, count, 0, bits);
        }) *
        1e-9;
    cudaFree(temporary);
  }
  return c;
}

}  // namespace quarry::bench
