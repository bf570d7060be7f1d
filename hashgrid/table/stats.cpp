// SPDX-License-Identifier: Apache-2.0
// stats.cpp - what is derived from the counts of a table: its size, load factor and percentiles.
#include "hashgrid/table/stats.hpp"

#include "hashgrid/table/page.h"

namespace quarry::hashgrid::detail {

void finish_stats(Stats& stats, uint32_t page_count, uint64_t slots_per_page) {
  stats.page_count = page_count;
  stats.slots = page_count * slots_per_page;
  stats.size_bytes = uint64_t{page_count} * kQryPageBytes;
  stats.load_factor = stats.slots == 0 ? 0.0 : double(stats.live) / double(stats.slots);
  uint64_t seen = 0, weighted = 0;
  for (uint32_t bin = 0; bin < kDepthBins; ++bin) {
    const uint64_t here = stats.depth_histogram[bin];
    if (here == 0) continue;
    const uint32_t depth = bin + 1;
    // The p-th percentile: the smallest depth that at least p% of the keys do not exceed.
    if (seen * 2 < stats.live && (seen + here) * 2 >= stats.live) stats.depth_p50 = depth;
    if (seen * 100 < stats.live * 99 && (seen + here) * 100 >= stats.live * 99) stats.depth_p99 = depth;
    stats.depth_max = depth;
    seen += here;
    weighted += here * depth;
  }
  stats.depth_mean = seen == 0 ? 0.0 : double(weighted) / double(seen);
}

}  // namespace quarry::hashgrid::detail
