// SPDX-License-Identifier: Apache-2.0
// beams.cpp - the number of a picture's tiles, and whether the pass pays. It pays if the eye is inside the world's box
// or the box is mostly empty.
#include "engine/render/beams.hpp"

#include "engine/sharing/world_root.hpp"
#include "shaders/shared/frame.h"
#include "shaders/shared/world_root.h"

namespace quarry::engine {

uint64_t beam_tiles(uint32_t width, uint32_t height) {
  const auto tiles = [](uint32_t pixels, uint32_t tile) { return (uint64_t(pixels) + tile - 1) / tile; };
  return tiles(width, kQryBeamTileWide) * tiles(height, kQryBeamTileHigh);
}

uint32_t beam_groups(const DeviceInfo& info, uint32_t width, uint32_t height) {
  const uint64_t tiles_a_group = kQryBeamGroup / info.beam_lanes;
  return uint32_t((beam_tiles(width, height) + tiles_a_group - 1) / tiles_a_group);
}

bool beams_pay(const QryWorldRoot& root, const glm::vec3& origin) {
  // The share of the box's bricks that is filled: 0.06 in terrain, 0.02 in a hollow sphere, 0.5 in a sponge.
  constexpr double kFilled = 0.25;
  double bricks = 1;
  for (int i = 0; i < 3; ++i) {
    const float low = root.box_low[i] + float(kQryBoxMargin), high = root.box_high[i] - float(kQryBoxMargin);
    bricks *= double(((int32_t(high) - 1) >> 3) - (int32_t(low) >> 3) + 1);
  }
  return root.brick_count > 0 && (inside_tight_box(root, origin) || root.brick_count < kFilled * bricks);
}

}  // namespace quarry::engine
