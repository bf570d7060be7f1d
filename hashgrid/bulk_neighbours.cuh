// bulk_neighbours.cuh - the six face neighbours of many bricks in one kernel, for grids of rows.
//
// Lanes that follow each other in scan order read the same sectors, and a brick's neighbours along x mostly its own: so the loads go
// through L1. A line read since the launch may be out of date by what other kernels have done since; each look-up of the batch was called
// at the launch, so it may take effect at the instant its line was read. Caches are empty when a kernel begins.
#pragma once

#include "hashgrid/view.hpp"

namespace quarry::hashgrid::kernels {

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

// use(i, side, value) for each of `count` packed bricks and its six sides (-x, +x, -y, +y, -z, +z): the neighbour's value, or the reserved
// one where there is none or the world ends.
template <class Use>
__global__ void __launch_bounds__(256) visit_neighbours(GridView view, const uint32_t* bricks, size_t count, Use use) {
  for (size_t i = size_t{blockIdx.x} * 256 + threadIdx.x; i < count; i += size_t{gridDim.x} * 256) {
    const uint32_t brick = __ldcs(bricks + i), x = brick & 2047u, y = brick >> 11 & 1023u, z = brick >> 21;
#pragma unroll
    for (uint32_t side = 0; side < 6; ++side) {
      const uint32_t step = side < 2 ? 1u : side < 4 ? 1u << 11 : 1u << 21;
      const uint32_t at = side < 2 ? x : side < 4 ? y : z, last = side < 2 || side >= 4 ? 2047u : 1023u;
      uint32_t value = kQryReservedValue;
      const uint32_t neighbour = side % 2 == 0 ? brick - step : brick + step;
      if ((side % 2 == 0 ? at != 0 : at != last) && neighbour != kQryReservedKey) {
        const uint32_t key = qry_stored_key(neighbour, view.locality);
        const QryPlace place = qry_place_stored(key, view.page_count);
        const detail::Located found = detail::locate<CachedWords>(view, place, key);
        if (found.slot != nullptr) value = detail::high(found.word);
      }
      use(i, side, value);
    }
  }
}

}  // namespace quarry::hashgrid::kernels
