// SPDX-License-Identifier: Apache-2.0
// course.hpp - the numbers of shaders/shared/course.h for a direction.
#pragma once

#include <glm/vec3.hpp>

#include "shaders/shared/course.h"
#include "shaders/shared/world_root.h"

namespace quarry::engine {

QryOneWay one_way(const float (&direction)[3]);

// Whether a place is in the tight box of all voxels.
bool inside_bounds(const QryWorldRoot& root, const glm::vec3& place);

// Whether shadow rays of a picture seen from `origin` are cast by columns, from its middle to both sides (shaders/library/shadow_pixel.glsl), or by
// rows. From outside, a world ends within the picture or falls off to its sides, so columns end with short rays and with none at all, while
// the rows at its foot have those that graze it. From inside, walls are all around, and the rows end with what is near.
bool shadows_by_columns(const QryWorldRoot& root, const glm::vec3& origin);
constexpr uint32_t kShadowRows = 32, kShadowColumnRows = 16;  // a workgroup is 8 x so many pixels, in the one order and in the other

}  // namespace quarry::engine
