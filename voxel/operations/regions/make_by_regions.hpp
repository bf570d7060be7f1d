// SPDX-License-Identifier: Apache-2.0
// make_by_regions.hpp - makes the bricks of a scene that does not fit memory, as many at a time as fit.
#pragma once

#include <cstdint>
#include <functional>

#include "voxel/operations/regions/scene_by_regions.hpp"

namespace quarry {

// Makes all bricks of all volumes, region by region: boxes of chunks (8^3 bricks), in the order of a world file, as
// large as `available_bytes` lets them be; the bricks of one chunk fit, and what it is made from is read in parts if
// that does not. All threads read, and make, a region's bricks. `take` gets them, by the caller's thread. Returns the
// number of regions. Errors: those of the source, of make(), of `take`; cancelled.
Result<uint64_t> make_by_regions(const SceneByRegions& scene, const std::function<uint64_t()>& available_bytes,
                                 const Progress& progress, const SceneByRegions::TakeRegion& take);
// A pass that does so.
SceneByRegions::Pass pass_by_regions(const std::function<uint64_t()>& available_bytes, const Progress& progress);

}  // namespace quarry
