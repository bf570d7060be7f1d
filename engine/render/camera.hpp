// SPDX-License-Identifier: Apache-2.0
// camera.hpp - the view of a camera. Axes are right-handed with y up. The field of view is vertical.
#pragma once

#include <glm/vec3.hpp>

#include "voxel/bricks/coords.hpp"

namespace quarry::engine {

struct View {
  glm::vec3 origin;
  glm::vec3 forward;    // unit
  glm::vec3 right, up;  // scaled by tan(fov/2) and the aspect: direction = forward + a*right + b*up, a, b in [-1, 1]

  friend bool operator==(const View&, const View&) = default;
};

View look_at(const glm::dvec3& position, const glm::dvec3& target, double vertical_fov_degrees, uint32_t width,
             uint32_t height);
// The unit direction from the eye through the point (a, b) of the picture.
glm::dvec3 direction_through(const View& view, double a, double b);
// A pleasant three-quarter view of the whole box.
void fit_camera(const Box3& bounds, double vertical_fov_degrees, double aspect, double azimuth_degrees,
                double elevation_degrees, glm::dvec3& position, glm::dvec3& target);

}  // namespace quarry::engine
