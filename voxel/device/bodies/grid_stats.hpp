// SPDX-License-Identifier: Apache-2.0
// grid_stats.hpp - the statistics of Memory::grid: one pass over its pages, a block of threads a page. What a sector
// adds is said where the host's and CUDA's passes over other grids have it (hashgrid/pairs/page_passes.hpp).
#pragma once

#include "hashgrid/pairs/page_passes.hpp"
#include "voxel/device/bodies/steps.hpp"

namespace quarry::device {

struct BeginGridStats {
  QRY_HD static void run(const Memory& m, const EditCall&) { m.control->grid = {}; }
};

// Reads each word of the table once.
struct SumGridStats {
  static constexpr uint32_t kThreads = 256, kResident = 8;
  struct Shared {
    uint32_t depths[hashgrid::kDepthBins], fill[kQrySlotsPerSector + 1];
    uint32_t live, freed, stashed, spilled;
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.grid.page_count; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    namespace passes = hashgrid::detail;
    constexpr uint32_t kFills = kQrySlotsPerSector + 1;
    const uint64_t* const page = m.grid.words + size_t(item) * kQryPageWords;
    block.each([&](uint32_t lane) {
      if (lane < hashgrid::kDepthBins) s.depths[lane] = 0;
      if (lane < kFills) s.fill[lane] = 0;
      if (lane == 0) s.live = s.freed = s.stashed = s.spilled = 0;
    });
    block.each([&](uint32_t lane) {
      // Depth 1 is by far the most frequent.
      uint32_t live = 0, freed = 0, stashed = 0, spilled = 0, at_home = 0, filled[kFills] = {};
      for (uint32_t sector = kQryStateSectors + lane; sector < kQrySectorsPerPage; sector += kThreads) {
        const auto bucket = passes::SharedWords::load_bucket(page + sector * kQrySlotsPerSector);
        const passes::SectorStats stats = passes::sector_stats(bucket, uint32_t(item) * kQrySectorsPerPage + sector,
                                                               m.grid.page_count, [&](uint32_t depth) {
                                                                 if (depth == 1) ++at_home;
                                                                 else fetch_add(s.depths[depth - 1], 1);
                                                               });
        live += stats.live;
        freed += stats.freed;
        if (sector >= kQryStashFirstSector) {
          stashed += stats.live;
          continue;
        }
        for (uint32_t f = 0; f < kFills; ++f) filled[f] += stats.live == f;
        spilled += passes::bucket_state<passes::SharedWords>(page, sector) & kQryBucketSpilled;
      }
      add_together(s.live, live);
      add_together(s.freed, freed);
      add_together(s.stashed, stashed);
      add_together(s.spilled, spilled);
      add_together(s.depths[0], at_home);
      for (uint32_t f = 0; f < kFills; ++f) add_together(s.fill[f], filled[f]);
    });
    block.each([&](uint32_t lane) {
      auto& sums = m.control->grid;
      if (lane < hashgrid::kDepthBins && s.depths[lane]) add(sums.depth_histogram[lane], s.depths[lane]);
      if (lane < kFills && s.fill[lane]) add(sums.bucket_fill[lane], s.fill[lane]);
      if (lane) return;
      add(sums.live, s.live);
      if (s.freed) add(sums.freed, s.freed);
      if (s.stashed) add(sums.overflow_live, s.stashed);
      if (s.spilled) add(sums.spilled_buckets, s.spilled);
      if (peek(sums.fullest_page_live) < s.live) raise(sums.fullest_page_live, s.live);
    });
  }
};

}  // namespace quarry::device
