// SPDX-License-Identifier: Apache-2.0
// beams.hpp - when and how many: tiles of pixels whose primary rays start where the tile first may see something
// (shaders/library/beam.glsl).
#pragma once

#include <cstdint>
#include <glm/vec3.hpp>

#include "engine/vulkan/device.hpp"

struct QryWorldRoot;  // shaders/shared/world_root.h

namespace quarry::engine {

// Of a picture: tiles, and workgroups that find out where they start, on a device with beam_lanes.
uint64_t beam_tiles(uint32_t width, uint32_t height);
uint32_t beam_groups(const DeviceInfo& info, uint32_t width, uint32_t height);

// Whether they save more than they cost, seen from `origin`. They do not from outside a world whose box is filled so
// well that rays which start at the box, as all do, hit something within a few bricks.
bool beams_pay(const QryWorldRoot& root, const glm::vec3& origin);

}  // namespace quarry::engine
