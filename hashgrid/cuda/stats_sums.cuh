// SPDX-License-Identifier: Apache-2.0
// stats_sums.cuh - what the statistics kernels of both layouts add up.
#pragma once

#include <algorithm>
#include <iterator>

#include "hashgrid/table/page.h"
#include "hashgrid/table/stats.hpp"

namespace quarry::hashgrid::kernels {

using AtomicWord = unsigned long long;  // what CUDA's atomics call a 64-bit word

// What statistics add up to; zero before the launch.
struct StatsSums {
  AtomicWord live, freed, overflow_live, spilled_buckets, fullest_page_live;
  AtomicWord depth_histogram[kDepthBins];
  AtomicWord bucket_fill[kQrySlotsPerSector + 1];
};

// On the host: what has been counted, without sizes, load factor and percentiles.
inline Stats stats_of(const StatsSums& sums) {
  Stats stats;
  stats.live = sums.live;
  stats.freed = sums.freed;
  stats.overflow_live = sums.overflow_live;
  stats.spilled_buckets = sums.spilled_buckets;
  stats.fullest_page_live = uint32_t(sums.fullest_page_live);
  std::copy(std::begin(sums.depth_histogram), std::end(sums.depth_histogram), stats.depth_histogram.begin());
  std::copy(std::begin(sums.bucket_fill), std::end(sums.bucket_fill), stats.bucket_fill.begin());
  return stats;
}

}  // namespace quarry::hashgrid::kernels
