// SPDX-License-Identifier: Apache-2.0
// expand.cuh - results of owners that have different numbers of them, each by one thread: blocks have equal numbers of
// owners and results together (bodies.hpp), and results are written side by side, however many each owner has.
//
// Literature: S. Baxter, "moderngpu", 2013 (load-balancing search): ours marks the first result of each owner in shared
// memory; a ballot finds the last mark before each.
#pragma once

#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/multi/bodies.hpp"

namespace quarry::hashgrid::kernels {

constexpr uint32_t kExpandTile = kExpandThreads * kExpandRows;

template <class Body>
__global__ void __launch_bounds__(kExpandThreads)
    expand_bodies(const uint64_t* starts, size_t count, uint64_t total, Body body) {
  __shared__ uint32_t marks[kExpandTile];  // of an owner's first result: the owner, counted from the tile's first
  __shared__ uint64_t ends[2];             // owners at the tile's begin and end
  __shared__ uint32_t lasts[kExpandThreads / 32];
  const uint32_t thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const uint64_t begin = uint64_t{blockIdx.x} * kExpandTile, steps = count + total;
  const uint64_t end = begin + kExpandTile < steps ? begin + kExpandTile : steps;
  if (lane == 0 && warp < 2) ends[warp] = bodies::owner_at(starts, count, warp == 0 ? begin : end);
#pragma unroll
  for (uint32_t row = 0; row < kExpandRows; ++row) marks[row * kExpandThreads + thread] = 0;
  __syncthreads();
  const uint64_t owner = ends[0], first = begin - owner, past = end - ends[1];
  const uint32_t results = uint32_t(past - first), owners = uint32_t(ends[1] - owner);
  if (results == 0) return;
  // An owner that has none shares its start with the next one that has some.
  for (uint32_t i = thread + 1; i <= owners; i += kExpandThreads) {
    if (owner + i >= count) continue;
    const uint64_t start = starts[owner + i];
    if (start < past && starts[owner + i + 1] != start) marks[start - first] = i;
  }
  __syncthreads();
  // A warp has 256 results side by side. Marks rise, so the last one is the largest.
  uint32_t mark[kExpandRows], last = 0;
#pragma unroll
  for (uint32_t row = 0; row < kExpandRows; ++row) {
    mark[row] = marks[warp * (kExpandRows * 32) + row * 32 + lane];
    last = max(last, mark[row]);
  }
#pragma unroll
  for (uint32_t step = 16; step != 0; step /= 2) last = max(last, __shfl_xor_sync(0xFFFFFFFFu, last, step));
  if (lane == 0) lasts[warp] = last;
  __syncthreads();
  uint32_t now = 0;  // the owner before the row
  for (uint32_t before = 0; before < warp; ++before) now = max(now, lasts[before]);
#pragma unroll
  for (uint32_t row = 0; row < kExpandRows; ++row) {
    const uint32_t marked = __ballot_sync(0xFFFFFFFFu, mark[row] != 0);
    const uint32_t upto = marked & (0xFFFFFFFFu >> (31 - lane));
    const uint32_t theirs = __shfl_sync(0xFFFFFFFFu, mark[row], upto == 0 ? 0 : 31 - __clz(int(upto)));
    mark[row] = upto == 0 ? now : theirs;
    now = __shfl_sync(0xFFFFFFFFu, mark[row], 31);
  }
  // All are got before one is put, without a branch: places behind the last result stand for it.
  const uint32_t mine = warp * (kExpandRows * 32) + lane;
  using Item = decltype(body.get(size_t{0}, 0u));
  Item items[kExpandRows];
#pragma unroll
  for (uint32_t row = 0; row < kExpandRows; ++row) {
    const size_t of = size_t(owner) + mark[row];
    items[row] = body.get(of, uint32_t(first + min(mine + row * 32, results - 1) - __ldg(starts + of)));
  }
#pragma unroll
  for (uint32_t row = 0; row < kExpandRows; ++row)
    if (mine + row * 32 < results) body.put(size_t(first + mine + row * 32), items[row]);
}

}  // namespace quarry::hashgrid::kernels
