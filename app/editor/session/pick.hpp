// SPDX-License-Identifier: Apache-2.0
// pick.hpp - finds the first voxel that a ray meets, on the host. The answer is there within the same frame, even when
// the GPU is busy. The renderer's own traversal (shaders/passes/march.comp.glsl) finds the same voxels; tests compare
// both with a brute-force walk.
#pragma once

#include <functional>
#include <optional>

#include "engine/render/orbit_camera.hpp"
#include "voxel/worlds/world.hpp"

namespace quarry::app {

struct Pick {
  Int3 voxel;
  Int3 normal;           // of the face entered: a unit step towards the eye; zero if the eye is inside the voxel
  double t = 0;          // distance along the ray
  uint8_t material = 0;  // 0 on the ground
  bool ground = false;   // only the plane y = 0 was hit; `voxel` lies under it
};

// The first voxel along the ray. It walks bricks, and voxels only inside bricks that exist. None if there is nothing
// within `reach` voxels.
std::optional<Pick> pick_voxel(const World& world, const Ray& ray, double reach = 50000);
// The same of a world that is told by what finds it.
using PickVoxel = std::function<std::optional<Pick>(const Ray&)>;
// What was picked, or else the ground plane. In an empty world the user starts there.
std::optional<Pick> or_ground(std::optional<Pick> picked, const Ray& ray);

// Where a ray meets the plane (axis, coordinate). The result is the voxel behind the plane, as seen from `normal`; none
// if the ray is parallel to the plane or the plane is behind its origin.
std::optional<Int3> voxel_on_plane(const Ray& ray, int axis, double coordinate, bool positive_normal);

}  // namespace quarry::app
