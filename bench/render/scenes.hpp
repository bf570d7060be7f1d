// SPDX-License-Identifier: Apache-2.0
// scenes.hpp - three worlds and three cameras each for comparing renderers: a terrain shell, a Menger sponge, a bumpy
// hollow sphere. Only integer arithmetic decides which voxels exist, so every machine makes the same worlds.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.hpp"
#include "engine/render/camera.hpp"
#include "voxel/worlds/world.hpp"

namespace quarry::bench {

constexpr int kSceneCount = 3, kCameraCount = 3;

struct RenderScene {
  const char* name;
  const char* title;
  int full_size;                // terrain: edge; sponge: edge, a power of 3; sphere: radius
  int small_size;               // the same picture in miniature, for machines without a GPU
  uint64_t voxels, bricks;      // at full size
  uint64_t hits[kCameraCount];  // primary rays of 1920x1080 that hit, at full size
};
const RenderScene& render_scene(int scene);
const char* camera_name(int camera);

// Fills an empty world. It calls `interrupted` between batches.
Result<void> fill_scene(World& world, int scene, int size, const std::function<bool()>& interrupted);

// The view of a camera for a scene of this `size`. Cameras keep their place in relation to the scene.
engine::View scene_view(int scene, int camera, int size, uint32_t width, uint32_t height);

}  // namespace quarry::bench
