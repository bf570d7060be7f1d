// SPDX-License-Identifier: Apache-2.0
// ray_reference.hpp - the independent reference for the ray-marcher: a plain voxel-by-voxel traversal in double
// precision. It calls World::get at every step and skips only what is outside the set voxels' bounds.
#pragma once

#include "voxel/worlds/world.hpp"

namespace quarry::test {

struct ReferenceHit {
  bool hit = false;
  double t = 0;
  Int3 voxel;
  // The ray's smallest distance, in voxels, to an edge between voxels, on its way to the hit or out of the bounds.
  // Below 1e-3 a ray in single precision may take either neighbour.
  double edge_distance = 1e9;
};

ReferenceHit trace_reference(const World& world, const Box3& bounds, const float origin[3], const float direction[3]);

}  // namespace quarry::test
