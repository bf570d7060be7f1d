// SPDX-License-Identifier: Apache-2.0
// find_kernels.cuh - bulk find in the pairs layout.
#pragma once

#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/pairs/cuda/find_warp.cuh"

namespace quarry::hashgrid::kernels {

// values[i]: the table's value, or the reserved value. Either output may be null. hits: added to.
__global__ void __launch_bounds__(kFindThreads)
    find_keys(GridView view, const uint32_t* keys, size_t count, uint32_t* values, uint8_t* depths,
              unsigned long long* hits, unsigned long long* refused) {
  uint32_t hit_count = 0, refused_count = 0;
  for (size_t base = size_t{blockIdx.x} * kFindThreads + threadIdx.x / 32 * 32; base < count;
       base += size_t{gridDim.x} * kFindThreads) {
    const size_t i = base + threadIdx.x % 32;
    const uint32_t key = i < count ? __ldcs(keys + i) : kQryReservedKey;
    const Found found = find_by_warp(view, key);
    if (i >= count) continue;
    if (key == kQryReservedKey) ++refused_count;
    hit_count += found.hit;
    if (values != nullptr) __stcs(values + i, found.value);
    if (depths != nullptr) depths[i] = uint8_t(found.sectors);
  }
  hit_count = __reduce_add_sync(0xFFFFFFFFu, hit_count);
  refused_count = __reduce_add_sync(0xFFFFFFFFu, refused_count);
  if (threadIdx.x % 32 == 0 && hit_count != 0) atomicAdd(hits, (unsigned long long)hit_count);
  if (threadIdx.x % 32 == 0 && refused_count != 0) atomicAdd(refused, (unsigned long long)refused_count);
}

}  // namespace quarry::hashgrid::kernels
