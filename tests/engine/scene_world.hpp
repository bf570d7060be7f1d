// SPDX-License-Identifier: Apache-2.0
// scene_world.hpp - worlds for the engine's tests, in memory that the test's device reads.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "engine/render/ray_marcher.hpp"
#include "tests/engine/scene_kinds.hpp"

namespace quarry::test {

class SceneWorld {
 public:
  explicit SceneWorld(engine::Device& device, engine::SharingMode mode = engine::SharingMode::automatic);
  Result<void> fill(const SceneKind& kind);
  Result<void> set(const std::vector<std::pair<Int3, uint8_t>>& voxels);  // material 0 removes
  engine::SharedWorld& shared() { return *shared_; }
  World& world() { return *world_; }
  engine::RenderedWorld rendered() { return {*shared_, *world_, palette}; }
  Palette palette = Palette::standard();

 private:
  Result<void> write(const std::function<void(const Put&)>& build);
  std::unique_ptr<engine::SharedWorld> shared_;
  std::optional<World> world_;  // destroyed before shared_
};

// A view from above and the side that shows all of `bounds`. For an empty world it shows the origin.
engine::View view_of(const Box3& bounds, uint32_t width, uint32_t height);

}  // namespace quarry::test
