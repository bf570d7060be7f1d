// SPDX-License-Identifier: Apache-2.0
// box_facts.hpp - what is in a box of a flattened scene.
#pragma once

#include <array>
#include <cstdint>

#include "voxel/bricks/map.hpp"

namespace quarry {

struct BoxFacts {
  uint64_t voxels = 0, bricks = 0;          // bricks: those that have voxels in the box
  Box3 bounds;                              // of these voxels; empty if there are none
  std::array<uint64_t, 256> of_material{};  // voxels of each material
};
// Looks at the bricks that the box meets, by all threads; at voxels only of those that are not full of one material.
BoxFacts box_facts(const BrickMap& bricks, const Box3& voxels);

}  // namespace quarry
