// SPDX-License-Identifier: Apache-2.0
// pick.hpp - which voxel a ray meets first, found on the host: an answer within the same frame, whatever the GPU is
// busy with. The renderer's own traversal (shaders/passes/march.comp.glsl) finds the same voxels; tests compare both
// with a brute-force walk.
#pragma once

#include <optional>

#include "engine/render/orbit_camera.hpp"
#include "voxel/worlds/world.hpp"

namespace quarry::app {

struct Pick {
  Int3 voxel;
  Int3 normal;           // of the face entered: a unit step towards the eye; zero if the eye is inside the voxel
  double t = 0;          // distance along the ray
  uint8_t material = 0;  // 0 on the ground
  bool ground = false;   // nothing was hit but the plane y = 0; `voxel` lies under it
};

// The first voxel along the ray. Walks bricks, and voxels only inside bricks that exist. Nothing within `reach` voxels:
// none.
std::optional<Pick> pick_voxel(const World& world, const Ray& ray, double reach = 50000);
// The same, or else the ground plane: where one starts in an empty world.
std::optional<Pick> pick_or_ground(const World& world, const Ray& ray);

// Where a ray meets the plane (axis, coordinate), as the voxel on the side of `normal`'s back; none if parallel or
// behind.
std::optional<Int3> voxel_on_plane(const Ray& ray, int axis, double coordinate, bool positive_normal);

}  // namespace quarry::app
