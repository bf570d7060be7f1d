// SPDX-License-Identifier: Apache-2.0
// rows.cuh - bulk find in grids of rows. Lanes with consecutive keys request sectors of one line together, so loads
// stay at device scope.
//
// Where rows share lines, one key in eight has moved on to its second bucket. Looking there at once would make nearly
// every warp wait for two more dependent loads, for the sake of four lanes. So a block first reads all home sectors,
// lists the keys that need more, and then works on the list with all its lanes.
#pragma once

#include "hashgrid/cuda/block_list.cuh"
#include "hashgrid/pairs/home.hpp"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kRowThreads = 128, kRowKeys = 4;  // faster than 256, 512 and 1024 threads of 1 to 8 keys

// values[i], depths[i]: as in find_keys() of find_kernels.cuh. A block takes kRowThreads * kRowKeys keys.
__global__ void __launch_bounds__(kRowThreads, 12)
    find_in_rows(GridView view, const uint32_t* keys, size_t count, uint32_t* values, uint8_t* depths,
                 unsigned long long* hits, unsigned long long* refused) {
  __shared__ uint16_t later[kRowThreads * kRowKeys];
  __shared__ uint32_t listed, hits_here, refused_here;
  const size_t base = size_t{blockIdx.x} * (kRowThreads * kRowKeys);
  if (threadIdx.x == 0) listed = hits_here = refused_here = 0;
  uint32_t key[kRowKeys], hit_count = 0, refused_count = 0, wait = 0;
#pragma unroll
  for (uint32_t j = 0; j < kRowKeys; ++j) {
    const size_t i = base + j * kRowThreads + threadIdx.x;
    key[j] = i < count ? __ldcs(keys + i) : kQryReservedKey;
  }
  __syncthreads();
#pragma unroll
  for (uint32_t j = 0; j < kRowKeys; ++j) {
    const size_t i = base + j * kRowThreads + threadIdx.x;
    const detail::Home home = detail::home_of(view, key[j], kQryRows);
    const detail::InSector got = detail::probe_bucket(detail::SharedWords::load_bucket(home.words), home.stored);
    const bool valid = key[j] != kQryReservedKey, go_on = valid && got.beyond;
    const uint32_t value = valid ? got.value : kQryReservedValue;
    wait |= uint32_t{go_on} << j;
    hit_count += value != kQryReservedValue;
    refused_count += !valid && i < count;
    if (i < count && !go_on) {
      if (values != nullptr) __stcs(values + i, value);
      if (depths != nullptr) depths[i] = valid;
    }
  }
  uint32_t at = list_places(&listed, __popc(wait));
  for (; wait != 0; wait &= wait - 1) later[at++] = uint16_t((__ffs(int(wait)) - 1) * kRowThreads + threadIdx.x);
  __syncthreads();
  for (uint32_t n = threadIdx.x; n < listed; n += kRowThreads) {
    const size_t i = base + later[n];
    const uint32_t stored = qry_stored_key(keys[i], kQryRows);
    const QryProbeSequence probes = qry_probe_sequence(stored, view.page_count);
    const detail::Located found =
        detail::locate_beyond_home<detail::SharedWords>(detail::page_of(view, probes), view, probes, stored);
    const uint32_t value = found.slot == nullptr ? kQryReservedValue : detail::high(found.word);
    hit_count += value != kQryReservedValue;
    if (values != nullptr) values[i] = value;
    if (depths != nullptr) depths[i] = uint8_t(found.sectors);
  }
  hit_count = __reduce_add_sync(0xFFFFFFFFu, hit_count);
  refused_count = __reduce_add_sync(0xFFFFFFFFu, refused_count);
  if (threadIdx.x % 32 == 0) {
    if (hit_count != 0) atomicAdd(&hits_here, hit_count);
    if (refused_count != 0) atomicAdd(&refused_here, refused_count);
  }
  __syncthreads();
  if (threadIdx.x == 0 && hits_here != 0) atomicAdd(hits, (unsigned long long)hits_here);
  if (threadIdx.x == 0 && refused_here != 0) atomicAdd(refused, (unsigned long long)refused_here);
}

}  // namespace quarry::hashgrid::kernels
