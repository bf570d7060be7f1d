// SPDX-License-Identifier: Apache-2.0
// source_units.hpp - the position of a scene's voxels in the units of its source file: two entries of its metadata.
// Readers set them, operations update them, and writers store them where their format allows it (docs/formats.md).
//
//   "voxel_size"  the edge of a voxel
//   "origin"      the place, in those units and in world axes (y up), of the corner of world cell (0, 0, 0): "x y z"
#pragma once

#include <array>
#include <optional>
#include <string>

#include "voxel/worlds/scene.hpp"

namespace quarry {

struct SourceUnits {
  double voxel_size = 1;
  std::array<double, 3> origin{0, 0, 0};
};

// Empty if either entry is missing or is not a (positive, finite) number.
std::optional<SourceUnits> source_units(const Scene& scene);
// The shortest texts that read back as the same numbers.
void set_source_units(Scene& scene, const SourceUnits& units);
std::string origin_text(const SourceUnits& units);  // "x y z"
std::string shortest_text(double value);

}  // namespace quarry
