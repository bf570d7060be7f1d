// SPDX-License-Identifier: Apache-2.0
// scene_kinds.hpp - 20 kinds of worlds for rays.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "voxel/worlds/world.hpp"

namespace quarry::test {

// A kind of world. `build` calls `put(voxel, material)` for every set voxel, in any order.
using Put = std::function<void(Int3, uint8_t)>;
struct SceneKind {
  const char* name;
  size_t quick_rays;  // number of rays for a short test
  void (*build)(const Put& put);
};
std::span<const SceneKind> scene_kinds();
const SceneKind& scene_kind(std::string_view name);  // fails the test if there is none

// What is to be written so that the world has these voxels too; material 0 removes.
std::vector<World::BrickWrite> writes_of(const World& world, const std::function<void(const Put&)>& build);

}  // namespace quarry::test
