// SPDX-License-Identifier: Apache-2.0
// page_rays.hpp - lists of rays in a world of which some pages are not there: which of them each ray comes to, and the
// hits that it has in the whole world.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "engine/home/resident_pages.hpp"
#include "voxel/rays/trace.hpp"

namespace quarry::engine {

// Pages that are not there, with their cells of 32^3 voxels that may have some.
class AbsentPages {
 public:
  void add(uint32_t page, uint64_t cells);
  bool has(uint32_t page) const { return cells_.contains(page); }
  struct Met {
    uint32_t page;
    double exit;  // the distance at which the ray leaves it
  };
  // The first one of which the ray meets a cell at a distance of `from` to `until`, in voxels.
  std::optional<Met> first_met(const Ray& ray, double from, double until) const;

 private:
  std::unordered_map<uint32_t, uint64_t> cells_;
  Box3 bounds_;
};

// `trace` traces rays in what is there, on all threads. Each ray's page that is missed first comes, and the rays that
// missed one are traced again, until each has its hit. Errors: its own; out_of_memory (a single page does not fit); of
// reading.
using TraceThere = std::function<Result<void>(std::span<const Ray> rays, std::span<RayHit> hits)>;
Result<void> trace_in_parts(ResidentPages& pages, std::span<const Ray> rays, std::span<RayHit> hits,
                            const TraceThere& trace);

}  // namespace quarry::engine
