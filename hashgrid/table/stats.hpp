// SPDX-License-Identifier: Apache-2.0
// stats.hpp - a grid's statistics, for the statistics panel, `quarry info` and the benchmarks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace quarry::hashgrid {

constexpr uint32_t kDepthBins = 32;  // the last bin holds everything deeper

struct Stats {
  uint64_t live = 0;             // keys present
  uint64_t slots = 0;            // pairs: page_count * kQrySlotsPerPage; compact: slots of 8 bytes in as much memory
  uint64_t freed = 0;            // empty slots that once held a key (compact: slots reserved for an erased key)
  uint64_t overflow_live = 0;    // keys in the stash
  uint64_t spilled_buckets = 0;  // buckets whose "spilled" bit is set (compact: sectors whose overflow bit is set)
  uint64_t size_bytes = 0;
  uint32_t page_count = 0;
  uint32_t fullest_page_live = 0;
  uint64_t version = 0;    // rises with every change made through the owner
  double load_factor = 0;  // live / slots
  // Probe depth of a present key = 32-byte sectors of slots read to find it. Bin d counts keys of depth d+1.
  std::array<uint64_t, kDepthBins> depth_histogram{};
  std::array<uint64_t, 5> bucket_fill{};  // buckets of 0..4 keys (compact: the last counts sectors of four and more)
  double depth_mean = 0;
  uint32_t depth_p50 = 0, depth_p99 = 0, depth_max = 0;
};

// Adds the counts of one part of a table to those of others. Sizes, load factor and percentiles need the whole table.
inline void add(Stats& sum, const Stats& part) {
  sum.live += part.live;
  sum.freed += part.freed;
  sum.overflow_live += part.overflow_live;
  sum.spilled_buckets += part.spilled_buckets;
  sum.fullest_page_live = std::max(sum.fullest_page_live, part.fullest_page_live);
  for (size_t i = 0; i < sum.depth_histogram.size(); ++i) sum.depth_histogram[i] += part.depth_histogram[i];
  for (size_t i = 0; i < sum.bucket_fill.size(); ++i) sum.bucket_fill[i] += part.bucket_fill[i];
}

namespace detail {

// Computes what needs the whole table's counts: sizes, load factor, percentiles of depth. `slots_per_page`: what a load
// factor is counted against.
void finish_stats(Stats& stats, uint32_t page_count, uint64_t slots_per_page);

}  // namespace detail
}  // namespace quarry::hashgrid
