// SPDX-License-Identifier: Apache-2.0
// parts_by_regions.hpp - the connected parts of scenes whose bricks do not fit memory. Each call is its namesake of
// whole_scene.hpp: the same parts in the same order, the same errors.
//
// A pass finds the pieces of each chunk and joins them (chunk_pieces.hpp). What is made afterwards finds the pieces of
// those chunks again of which some stay and some go.
#pragma once

#include <vector>

#include "voxel/operations/regions/combine_by_regions.hpp"

namespace quarry {

// Cost: a pass over the scene, and one more for tight bounds if it shows several volumes. Memory: 16 bytes for each
// chunk and 4 for each piece of one while the scene lives; 8 more for each piece while it works, and 24 for each
// part. Errors besides: out_of_memory, if parts do not fit the pass's room.
Result<SceneByRegions> keep_parts(SceneByRegions scene, const PartChoice& choice, const SceneByRegions::Pass& pass,
                                  const Progress& progress);
// The same. Besides, 4 bytes for each part of each chunk, and a scene without bricks, some 20 KB, for each part.
Result<std::vector<PartByRegions>> split_parts(SceneByRegions scene, Connectivity neighbours,
                                               const SceneByRegions::Pass& pass, const Progress& progress);

}  // namespace quarry
