// look.hpp - a picture's settings as the shaders take them.
#pragma once

#include "engine/renderer.hpp"
#include "shaders/look.h"

namespace quarry::engine {

// Says which setting no picture can have.
Result<void> check_settings(const RenderSettings& settings);
// `root` for what follows the world's size: where the ground and the fog begin.
QryLook look_of(const RenderSettings& settings, const QryWorldRoot& root);

}  // namespace quarry::engine
