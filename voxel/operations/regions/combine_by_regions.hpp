// SPDX-License-Identifier: Apache-2.0
// combine_by_regions.hpp - scenes whose bricks do not fit memory: several become one, one becomes several. Each call is
// its namesake of whole_scene.hpp: the same scenes, the same errors.
//
//   scenes, each with its source ─► joined(): one source, their volumes one after the other ─► a new scene
//
// A region of what comes out is read from every source that it depends on.
#pragma once

#include <string>
#include <vector>

#include "voxel/operations/regions/scene_by_regions.hpp"

namespace quarry {

// `progress` only stops the reading of what comes out, whose `cancel` must outlive it. Cost: a pass over each scene.
Result<SceneByRegions> merge(std::vector<SceneByRegions> scenes, const SceneByRegions::Pass& pass,
                             const Progress& progress, PaletteError* error = nullptr);
// Cost: for union_of a pass over each; for the others none, unless bounds are not tight.
Result<SceneByRegions> boolean(SceneByRegions a, SceneByRegions b, BooleanKind kind, const SceneByRegions::Pass& pass,
                               const Progress& progress, PaletteError* error = nullptr);

// What a scene shows, as one volume of that name: flatten() of its visible instances. Cost: a pass, unless bounds are
// tight.
Result<SceneByRegions> flattened(SceneByRegions scene, const char* name, const SceneByRegions::Pass& pass,
                                 const Progress& progress);

struct PartByRegions {
  std::string name;
  SceneByRegions scene;
};
// Cost: for materials a pass over the scene; for regions that and one over what each has.
Result<std::vector<PartByRegions>> split(SceneByRegions scene, SplitKind kind, int32_t edge,
                                         const SceneByRegions::Pass& pass);

}  // namespace quarry
