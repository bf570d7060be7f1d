// SPDX-License-Identifier: Apache-2.0
// fill_by_regions.hpp - fill() of whole_scene.hpp for scenes whose bricks do not fit memory: the same cavities, the
// same errors.
//
// A pass finds the pieces of each chunk's empty voxels and joins them (chunk_pieces.hpp). A chunk without voxels is one
// piece, and is not looked at. Around all chunks is a layer of such: what is connected with it is outside.
#pragma once

#include "voxel/operations/regions/scene_by_regions.hpp"

namespace quarry {

// Cost: a pass over the scene, and one more if bounds are not tight. Memory: 16 bytes for each chunk of the bounds, and
// 4 bytes for each piece while it works.
Result<SceneByRegions> fill(SceneByRegions scene, uint8_t material, const SceneByRegions::Pass& pass,
                            const Progress& progress);

}  // namespace quarry
