// SPDX-License-Identifier: Apache-2.0
// rows.cuh - the look-ups that make use of neighbouring keys: bulk find in grids of rows, and the neighbours of many bricks.
//
// Lanes that follow each other in scan order ask for sectors of one line in one request, so find stays at device scope. Neighbours look at each
// sector several times: their loads go through L1. A line read since the launch may be out of date by what other kernels have done since;
// each look-up of the batch was called at the launch, so it may take effect at the instant its line was read. Caches are empty when a
// kernel begins.
//
// Where rows share lines, one key in eight has gone on to its second bucket: looked for at once, it would make nearly every warp wait for two
// more loads in a row, for four lanes' sake. So a block first asks all home sectors, lists what needs more, and then works on the list
// with all its lanes.
#pragma once

#include "hashgrid/pairs/neighbours.hpp"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kRowThreads = 128, kRowKeys = 4;  // measured against 256, 512 and 1024 threads of 1 to 8 keys
constexpr uint32_t kAroundThreads = 128;

// Loads that the L1 cache may serve.
struct CachedWords {
  __device__ static uint64_t load(const uint64_t* word) {
    uint64_t value;
    asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(value) : "l"(__cvta_generic_to_global(word)));
    return value;
  }
  __device__ static detail::Bucket load_bucket(const uint64_t* first) {
    detail::Bucket b;
    asm volatile("ld.global.ca.v2.u64 {%0, %1}, [%2];" : "=l"(b.slot[0]), "=l"(b.slot[1]) : "l"(__cvta_generic_to_global(first)));
    asm volatile("ld.global.ca.v2.u64 {%0, %1}, [%2];" : "=l"(b.slot[2]), "=l"(b.slot[3]) : "l"(__cvta_generic_to_global(first + 2)));
    return b;
  }
};

// Room for this lane's `count` entries in a list that the block shares.
__device__ inline uint32_t list_places(uint32_t* listed, uint32_t count) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t upto = count;
#pragma unroll
  for (uint32_t step = 1; step < 32; step *= 2) {
    const uint32_t left = __shfl_up_sync(0xFFFFFFFFu, upto, step);
    if (lane >= step) upto += left;
  }
  uint32_t begin = 0;
  if (lane == 31 && upto != 0) begin = atomicAdd(listed, upto);
  return __shfl_sync(0xFFFFFFFFu, begin, 31) + upto - count;
}

// values[i], depths[i]: as find_keys() of pairs/find_kernels.cuh. A block takes kRowThreads * kRowKeys keys.
__global__ void __launch_bounds__(kRowThreads, 12) find_in_rows(GridView view, const uint32_t* keys, size_t count, uint32_t* values, uint8_t* depths,
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
    const detail::InSector got = detail::look_in(detail::SharedWords::load_bucket(home.words), home.stored);
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
    const QryPlace place = qry_place_stored(stored, view.page_count);
    const detail::Located found = detail::locate_beyond_home<detail::SharedWords>(detail::page_of(view, place), view, place, stored);
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

// values[direction * count + i]: what the grid holds for the neighbour of bricks[i] in that direction (neighbours.hpp), or the reserved value.
template <Neighbourhood kWhich, bool kRows>
__global__ void __launch_bounds__(kAroundThreads, kWhich == Neighbourhood::faces ? 12 : 8) find_around(GridView view, const uint32_t* bricks, size_t count, uint32_t* values) {
  constexpr uint32_t kLocality = kRows ? kQryRows : kQryPlain;
  __shared__ uint16_t later[kAroundThreads * uint32_t(kWhich)];
  __shared__ uint32_t listed;
  const size_t base = size_t{blockIdx.x} * kAroundThreads, i = base + threadIdx.x;
  if (threadIdx.x == 0) listed = 0;
  const uint32_t brick = i < count ? bricks[i] : 0;
  __syncthreads();
  uint32_t wait = detail::look_around<CachedWords, kWhich>(view, kLocality, brick, [&](uint32_t direction, uint32_t value) {
    if (i < count) __stcs(values + direction * count + i, value);
  });
  if (i >= count) wait = 0;
  uint32_t at = list_places(&listed, __popc(wait));
  for (; wait != 0; wait &= wait - 1) later[at++] = uint16_t((__ffs(int(wait)) - 1) * kAroundThreads + threadIdx.x);
  __syncthreads();
  for (uint32_t n = threadIdx.x; n < listed; n += kAroundThreads) {
    const uint32_t direction = later[n] / kAroundThreads;
    const size_t whose = base + later[n] % kAroundThreads;
    const Step step = step_of<kWhich>(direction);
    const uint32_t stored = qry_stored_key(neighbour_key(bricks[whose], step.x, step.y, step.z), kLocality);
    values[direction * count + whose] = detail::value_beyond<CachedWords>(view, stored);
  }
}

}  // namespace quarry::hashgrid::kernels
