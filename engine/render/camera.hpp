// SPDX-License-Identifier: Apache-2.0
// camera.hpp - where one looks from. Right-handed, y up; fov is vertical.
#pragma once

#include "voxel/bricks/coords.hpp"

namespace quarry::engine {

struct View {
  float origin[3];
  float forward[3];      // unit
  float right[3], up[3]; // scaled by tan(fov/2) and the aspect: direction = forward + a*right + b*up, a, b in [-1, 1]
};

View look_at(const double position[3], const double target[3], double vertical_fov_degrees, uint32_t width, uint32_t height);
// A pleasant three-quarter view of the whole box.
void fit_camera(const Box3& bounds, double vertical_fov_degrees, double aspect, double azimuth_degrees, double elevation_degrees,
                double position[3], double target[3]);

}  // namespace quarry::engine
