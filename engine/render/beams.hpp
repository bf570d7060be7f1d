// SPDX-License-Identifier: Apache-2.0
// beams.hpp - the number of beams and when they pay. A beam is a tile of pixels whose primary rays start where the tile
// may first see something (shaders/library/beam.glsl).
#pragma once

#include <cstdint>
#include <glm/vec3.hpp>

#include "engine/vulkan/device.hpp"

struct QryWorldRoot;  // shaders/shared/world_root.h

namespace quarry::engine {

// The tiles of a picture, and the workgroups that find where their rays start. beam_groups() needs a device with
// beam_lanes.
uint64_t beam_tiles(uint32_t width, uint32_t height);
uint32_t beam_groups(const DeviceInfo& info, uint32_t width, uint32_t height);

// Tells whether beams save more than they cost, seen from `origin`. All rays start at the world's box. If the eye is
// outside a well-filled box, rays hit something within a few bricks, so beams do not pay.
bool beams_pay(const QryWorldRoot& root, const glm::vec3& origin);

}  // namespace quarry::engine
