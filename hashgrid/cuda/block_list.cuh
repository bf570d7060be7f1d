// SPDX-License-Identifier: Apache-2.0
// block_list.cuh - a list in shared memory that the lanes of a block append to: the look-ups that the block continues
// together, or the values of a page.
#pragma once

#include <cstdint>

namespace quarry::hashgrid::kernels {

// Reserves `count` entries for this lane in the block's shared list; returns the first. All lanes of a warp call it.
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

}  // namespace quarry::hashgrid::kernels
