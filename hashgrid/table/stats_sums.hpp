// SPDX-License-Identifier: Apache-2.0
// stats_sums.hpp - the sums of the statistics kernels: those of both layouts, and callers' own over a table of theirs.
#pragma once

#include <algorithm>
#include <iterator>

#include "hashgrid/table/page.h"
#include "hashgrid/table/stats.hpp"

namespace quarry::hashgrid::kernels {

using AtomicWord = unsigned long long;  // the 64-bit type of CUDA's atomics

// The sums of statistics; zero before the launch.
struct StatsSums {
  AtomicWord live, freed, overflow_live, spilled_buckets, fullest_page_live;
  AtomicWord depth_histogram[kDepthBins];
  AtomicWord bucket_fill[kQrySlotsPerSector + 1];
};

// On the host: the counts as Stats, without sizes, load factor and percentiles.
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
