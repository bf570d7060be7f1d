// SPDX-License-Identifier: Apache-2.0
// shadow_order.hpp - the order and the workgroups in which a picture's shadow rays are cast
// (shaders/library/shadow_dispatch.glsl).
#pragma once

#include <cstdint>
#include <glm/vec3.hpp>

#include "engine/sharing/world_root.hpp"

namespace quarry::engine {

// Tells whether the shadow rays of a picture seen from `origin` are cast by columns, from the picture's middle to both
// sides, or by rows. From outside, a world ends within the picture or falls off to its sides. Then columns end with
// short rays or none, but the rows at the world's foot have rays that graze it. From inside, walls are all around, and
// the rows end with near surfaces.
inline bool shadows_by_columns(const QryWorldRoot& root, const glm::vec3& origin) {
  return !inside_tight_box(root, origin);
}
// A workgroup is 8 pixels wide and this many rows high, by rows and by columns.
constexpr uint32_t kShadowRows = 32, kShadowColumnRows = 16;

}  // namespace quarry::engine
