// SPDX-License-Identifier: Apache-2.0
// frame_settings.hpp - a picture's settings and view as the shaders take them, and what is asked of both kinds of
// frame.
#pragma once

#include <algorithm>

#include "engine/render/ray_marcher.hpp"
#include "shaders/shared/environment.h"

namespace quarry::engine {

// Says which setting no picture can have.
Result<void> check_settings(const RenderSettings& settings);
constexpr uint32_t kFrames = 4, kOwnFrame = kFrames;  // frames in flight of record(), and the one of render()
// Says why a frame of these settings cannot be recorded now.
Result<void> check_frame(const RenderSettings& settings, const SharedWorld& world, uint32_t frame_index,
                         uint32_t frames = kFrames);

// Says why that is no tile of such a picture.
Result<void> check_tile(const RenderSettings& settings, const Tile& tile);

// `frame`: QryFrame or QryPathFrame.
void put_view(const View& view, auto& frame) {
  std::copy_n(&view.origin.x, 3, frame.origin);
  std::copy_n(&view.forward.x, 3, frame.forward);
  std::copy_n(&view.right.x, 3, frame.right);
  std::copy_n(&view.up.x, 3, frame.up);
}

// `root` for what follows the world's size: where the ground and the fog begin.
QryEnvironment environment_of(const RenderSettings& settings, const QryWorldRoot& root);

}  // namespace quarry::engine
