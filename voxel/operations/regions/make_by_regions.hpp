// SPDX-License-Identifier: Apache-2.0
// make_by_regions.hpp - makes the bricks of a scene that does not fit memory, as many at a time as fit.
#pragma once

#include <cstdint>
#include <functional>

#include "voxel/operations/regions/scene_by_regions.hpp"

namespace quarry {

// Where the bricks are before all steps. Boxes are of brick coordinates, both corners included.
struct BrickSource {
  std::function<Result<uint64_t>(uint32_t volume, const Box3& bricks)> count;  // what read() would put
  // Puts at least the volume's bricks in the box.
  std::function<Result<void>(uint32_t volume, const Box3& bricks, BrickMap& into)> read;
};

// Makes all bricks of all volumes, region by region: boxes of chunks (8^3 bricks), in the order of a world file, as
// large as `available_bytes` lets them be; the bricks of one chunk fit, and what it is made from is read in parts if
// that does not. All threads read, and make, a region's bricks. `take` gets them, by the caller's thread. Returns the
// number of regions. Errors: those of the source, of make(), of `take`; cancelled.
using TakeRegion = std::function<Result<void>(uint32_t volume, BrickMap&& bricks)>;
Result<uint64_t> make_by_regions(const SceneByRegions& scene, const BrickSource& source,
                                 const std::function<uint64_t()>& available_bytes, const Progress& progress,
                                 const TakeRegion& take);
// A measure that does so.
SceneByRegions::Measure measure_by_regions(const BrickSource& source, const std::function<uint64_t()>& available_bytes,
                                           const Progress& progress);

}  // namespace quarry
