// SPDX-License-Identifier: Apache-2.0
// sector_loads.cuh - half a sector in one load at device scope, for look-ups by two lanes to a sector
// (pairs/cuda/find_warp.cuh says why).
#pragma once

#include <cstdint>

namespace quarry::hashgrid::kernels {

__device__ inline ulonglong2 load_two_words(const uint64_t* first) {
  ulonglong2 two;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(two.x), "=l"(two.y)
               : "l"(__cvta_generic_to_global(first))
               : "memory");
  return two;
}

}  // namespace quarry::hashgrid::kernels
