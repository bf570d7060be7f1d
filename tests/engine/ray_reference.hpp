// SPDX-License-Identifier: Apache-2.0
// ray_reference.hpp - the ray-marcher's independent judge: a plain voxel-by-voxel traversal in double precision, asking
// World::get at every step, with nothing skipped but what lies outside the set voxels' bounds.
#pragma once

#include "voxel/worlds/world.hpp"

namespace quarry::test {

struct ReferenceHit {
  bool hit = false;
  double t = 0;
  Int3 voxel;
  // How close (in voxels) the ray passes, on its way to the hit or out of the bounds, to an edge between voxels: under
  // 1e-3 a ray in single precision may take either neighbour.
  double edge_distance = 1e9;
};

ReferenceHit trace_reference(const World& world, const Box3& bounds, const float origin[3], const float direction[3]);

}  // namespace quarry::test
