// SPDX-License-Identifier: Apache-2.0
// camera.cpp - look-at basis, and the tightest distance at which a box's eight corners are inside the frustum.
#include "engine/render/camera.hpp"

#include <algorithm>
#include <cmath>
#include <glm/geometric.hpp>
#include <limits>

namespace quarry::engine {
namespace {

constexpr double kPi = 3.14159265358979323846;

constexpr glm::dvec3 kUp(0, 1, 0);

}  // namespace

View look_at(const glm::dvec3& position, const glm::dvec3& target, double vertical_fov_degrees, uint32_t width,
             uint32_t height) {
  glm::dvec3 forward = target - position;
  const double distance = glm::length(forward);
  forward = distance > 1e-12 ? forward * (1 / distance) : glm::dvec3(0, 0, -1);
  // Looking straight up or down, the horizon is undefined. Any direction works; x is taken.
  glm::dvec3 right = glm::cross(forward, kUp);
  const double right_length = glm::length(right);
  right = right_length > 1e-9 ? right * (1 / right_length) : glm::dvec3(1, 0, 0);
  const glm::dvec3 up = glm::cross(right, forward);
  const double tan_v = std::tan(std::clamp(vertical_fov_degrees, 0.01, 179.0) * kPi / 360);
  const double tan_h = tan_v * double(std::max(width, 1u)) / double(std::max(height, 1u));
  return {glm::vec3(position), glm::vec3(forward), glm::vec3(right * tan_h), glm::vec3(up * tan_v)};
}

glm::dvec3 direction_through(const View& view, double a, double b) {
  const glm::dvec3 direction = glm::dvec3(view.forward) + a * glm::dvec3(view.right) + b * glm::dvec3(view.up);
  return direction / glm::length(direction);
}

void fit_camera(const Box3& bounds, double vertical_fov_degrees, double aspect, double azimuth_degrees,
                double elevation_degrees, glm::dvec3& position, glm::dvec3& target) {
  const bool empty = bounds.empty();
  const glm::dvec3 lo = empty ? glm::dvec3(-8) : glm::dvec3(bounds.min.x, bounds.min.y, bounds.min.z);
  const glm::dvec3 hi = empty ? glm::dvec3(8) : glm::dvec3(bounds.max.x + 1.0, bounds.max.y + 1.0, bounds.max.z + 1.0);
  const double azimuth = azimuth_degrees * kPi / 180,
               elevation = std::clamp(elevation_degrees, -89.9, 89.9) * kPi / 180;
  // From the target towards the camera; azimuth 0 looks along -z.
  const glm::dvec3 back(std::cos(elevation) * std::sin(azimuth), std::sin(elevation),
                        std::cos(elevation) * std::cos(azimuth));
  glm::dvec3 right = glm::cross(-back, kUp);
  right *= 1 / glm::length(right);
  const glm::dvec3 up = glm::cross(right, -back);
  const double tan_v = std::tan(std::clamp(vertical_fov_degrees, 0.01, 179.0) * kPi / 360),
               tan_h = tan_v * std::max(aspect, 1e-3);
  // A corner (x, y to the right and up, z towards the camera) is inside the picture of a camera at (cx, cy, cz) looking
  // along -z if |x - cx| <= tan_h * (cz - z) and |y - cy| <= tan_v * (cz - z). The four tightest of these limit how
  // near cz may be, and then give cx and cy. The box fills the picture's width or height. Its middle is the middle of
  // the screen, not only of the space.
  const double infinity = std::numeric_limits<double>::infinity();
  double x_plus = -infinity, x_minus = -infinity, y_plus = -infinity, y_minus = -infinity, nearest = -infinity;
  for (int corner = 0; corner < 8; ++corner) {
    const glm::dvec3 c(corner & 1 ? hi.x : lo.x, corner & 2 ? hi.y : lo.y, corner & 4 ? hi.z : lo.z);
    const double x = glm::dot(c, right), y = glm::dot(c, up), z = glm::dot(c, back);
    x_plus = std::max(x_plus, x + tan_h * z);
    x_minus = std::max(x_minus, -x + tan_h * z);
    y_plus = std::max(y_plus, y + tan_v * z);
    y_minus = std::max(y_minus, -y + tan_v * z);
    nearest = std::max(nearest, z);
  }
  const double cx = (x_plus - x_minus) / 2, cy = (y_plus - y_minus) / 2, middle = glm::dot((lo + hi) / 2.0, back);
  double cz = std::max({(x_plus + x_minus) / (2 * tan_h), (y_plus + y_minus) / (2 * tan_v), nearest + 1});
  cz = middle + (cz - middle) * 1.06;  // a small margin around it
  const glm::dvec3 on_axis = right * cx + up * cy;
  position = on_axis + back * cz;
  target = on_axis + back * middle;
}

}  // namespace quarry::engine
