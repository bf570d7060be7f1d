// SPDX-License-Identifier: Apache-2.0
// scene_world.cpp - a world in memory that the test's device reads, and its voxels.
#include "tests/engine/scene_world.hpp"

#include <cstdio>
#include <cstdlib>

namespace quarry::test {
SceneWorld::SceneWorld(engine::Device& device, engine::SharingMode mode) {
  auto shared = engine::SharedWorld::create(device, mode);
  auto world = shared ? World::create((*shared)->memory()) : Result<World>(tl::unexpected(shared.error()));
  if (!world) {
    std::printf("no world: %s\n", world.error().message.c_str());
    std::abort();
  }
  shared_ = std::move(*shared);
  world_.emplace(std::move(*world));
}

Result<void> SceneWorld::write(const std::function<void(const Put&)>& build) {
  return world_->write(writes_of(*world_, build));
}

Result<void> SceneWorld::fill(const SceneKind& kind) { return write(kind.build); }

Result<void> SceneWorld::set(const std::vector<std::pair<Int3, uint8_t>>& voxels) {
  return write([&](const Put& put) {
    for (const auto& [voxel, material] : voxels) put(voxel, material);
  });
}

engine::View view_of(const Box3& bounds, uint32_t width, uint32_t height) {
  glm::dvec3 position, target;
  engine::fit_camera(bounds.empty() ? Box3{{0, 0, 0}, {8, 8, 8}} : bounds, 45, double(width) / height, 30, 25, position,
                     target);
  return engine::look_at(position, target, 45, width, height);
}

}  // namespace quarry::test
