// SPDX-License-Identifier: Apache-2.0
// diff.hpp - compares two scenes voxel by voxel: flattened, by the properties of their materials instead of palette
// indices. Instances, layers and names are not compared.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry {

struct SceneDiff {
  struct Kind {
    uint64_t voxels = 0;
    Box3 bounds;  // of these voxels, world axes
  };
  uint64_t voxels_a = 0, voxels_b = 0, same = 0;
  Kind added;    // in b only
  Kind removed;  // in a only
  // In both, with materials that differ in colour, roughness, metalness, emission, transparency or refraction.
  Kind recoloured;

  // Adds the comparison of another part of the scenes, with which this one shares no voxel.
  void add(const SceneDiff& part);
  bool equal() const { return added.voxels == 0 && removed.voxels == 0 && recoloured.voxels == 0; }
  Box3 bounds() const { return united(united(added.bounds, removed.bounds), recoloured.bounds); }
};

struct SceneDiffOptions {
  bool visible_only = true;  // false: hidden instances and layers count too
  bool shape_only = false;   // materials are ignored
};

// By all threads; the result does not depend on their number. Errors: those of flatten().
Result<SceneDiff> diff_scenes(const Scene& a, const Scene& b, const SceneDiffOptions& options = {});
// The same of those of their world bricks, flattened already, that are in a box of bricks.
struct FlatScene {
  const BrickMap& bricks;
  const Palette& palette;
};
// A number for each material of `a`, then of `b`: equal ones are materials that are alike; all are if `shape_only`.
std::array<uint32_t, 512> material_looks(const Palette& a, const Palette& b, bool shape_only);
SceneDiff diff_bricks(const FlatScene& a, const FlatScene& b, const Box3& box, bool shape_only = false);

}  // namespace quarry
