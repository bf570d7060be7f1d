// SPDX-License-Identifier: Apache-2.0
// shadow_order.hpp - in which order, and in which workgroups, a picture's shadow rays are cast
// (shaders/library/shadow_dispatch.glsl).
#pragma once

#include <cstdint>
#include <glm/vec3.hpp>

#include "engine/sharing/world_root.hpp"

namespace quarry::engine {

// Whether shadow rays of a picture seen from `origin` are cast by columns, from its middle to both sides, or by rows.
// From outside, a world ends within the picture or falls off to its sides, so columns end with short rays and with none
// at all, while the rows at its foot have those that graze it. From inside, walls are all around, and the rows end with
// what is near.
inline bool shadows_by_columns(const QryWorldRoot& root, const glm::vec3& origin) {
  return !inside_tight_box(root, origin);
}
// A workgroup is 8 x so many pixels, in the one order and in the other.
constexpr uint32_t kShadowRows = 32, kShadowColumnRows = 16;

}  // namespace quarry::engine
