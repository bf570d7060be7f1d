// SPDX-License-Identifier: Apache-2.0
// morphology.hpp - mathematical morphology of a volume's voxels: dilation and erosion by the 6, 18 or 26 neighbours.
// Bricks at a time on all threads; the result does not depend on their number. For whole scenes see whole_scene.hpp.
//
// Dilation by one step with a structuring element that is a product of rows is done row by row, as in van Herk, "A fast
// algorithm for local minimum and maximum filters on rectangular and octagonal kernels", 1992: the first of 26
// neighbours in an order with x fastest is the first of three planes, each the first of three rows, each the first of
// three voxels. So a brick takes some hundred operations on vectors of 16 bytes, and none on single voxels.
#pragma once

#include <cstdint>
#include <optional>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/bricks/map.hpp"

namespace quarry {

// Which voxels are neighbours: those that share a face, those that share a face or an edge, or those that share a
// corner too.
enum class Connectivity : uint8_t { faces = 6, edges = 18, corners = 26 };
// Along how many axes neighbours may differ, and two places a step apart do.
constexpr int32_t most_axes(Connectivity c) { return c == Connectivity::faces ? 1 : c == Connectivity::edges ? 2 : 3; }
constexpr int32_t axes_of(Int3 step) { return step.x * step.x + step.y * step.y + step.z * step.z; }
// None if the number is not 6, 18 or 26.
constexpr std::optional<Connectivity> connectivity_from(double number) {
  for (const Connectivity one : {Connectivity::faces, Connectivity::edges, Connectivity::corners})
    if (number == double(uint8_t(one))) return one;
  return {};
}

// The most steps that commands, scripts and the C interface take at once.
constexpr uint32_t kMostMorphologySteps = 4096;

// Each step adds the empty voxels that have a neighbour. A voxel that is added gets the material of its first neighbour
// in the order of voxel/neighbours: of 6: -x, +x, -y, +y, -z, +z; of 18 and 26: z slowest, x fastest, each from -1 to
// +1. Axes are the volume's own. A step looks at what the step before has made. Voxels that were there stay as they
// are, and bricks that gain none are shared. Free-threaded.
// Errors: out_of_bounds (a voxel beyond 32 bits), cancelled.
// Cost of a step: 3 to 5 us of a core for each brick that changes, about half of it the first touch of its memory; next
// to nothing for a full brick. Memory: 576 bytes a brick that changes, and two lists of 20 bytes a brick.
Result<BrickMap> dilate(const BrickMap& bricks, Connectivity neighbours, uint32_t steps, const Progress& progress = {});

// Each step takes away the voxels that have an empty neighbour; the others keep their materials. Bricks that lose none
// are shared, and full bricks among full bricks are not read. Free-threaded. Errors: cancelled. Cost: as dilate(), but
// only masks are read of bricks that lose none.
Result<BrickMap> erode(const BrickMap& bricks, Connectivity neighbours, uint32_t steps, const Progress& progress = {});

}  // namespace quarry
