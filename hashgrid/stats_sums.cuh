// stats_sums.cuh - what the statistics kernels of both layouts add up.
#pragma once

#include "hashgrid/layout.h"
#include "hashgrid/stats.hpp"

namespace quarry::hashgrid::kernels {

using AtomicWord = unsigned long long;  // what CUDA's atomics call a 64-bit word

// What statistics add up to; zero before the launch.
struct StatsSums {
  AtomicWord live, freed, overflow_live, spilled_buckets, fullest_page_live;
  AtomicWord depth_histogram[kDepthBins];
  AtomicWord bucket_fill[kQrySlotsPerSector + 1];
};

}  // namespace quarry::hashgrid::kernels
