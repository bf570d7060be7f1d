// SPDX-License-Identifier: Apache-2.0
// orbit_camera.cpp - azimuth, elevation and distance about a target. With pan and zoom, the point under the mouse stays
// there.
#include "engine/render/orbit_camera.hpp"

#include <algorithm>
#include <cmath>
#include <glm/geometric.hpp>
#include <numbers>

namespace quarry::app {
namespace {

constexpr double kRadians = std::numbers::pi / 180;
constexpr double kNearest = 0.5, kFarthest = 40000;  // voxels; the world's diagonal is 24,600

}  // namespace

glm::dvec3 OrbitCamera::position() const {
  const double a = azimuth * kRadians, e = elevation * kRadians;
  return target +
         glm::dvec3(distance * std::cos(e) * std::sin(a), distance * std::sin(e), distance * std::cos(e) * std::cos(a));
}

void OrbitCamera::orbit(double dx, double dy) {
  constexpr double kDegreesPerPixel = 0.35;
  azimuth = std::remainder(azimuth - dx * kDegreesPerPixel, 360.0);
  elevation = std::clamp(elevation + dy * kDegreesPerPixel, -89.0, 89.0);
}

void OrbitCamera::pan(double dx, double dy, double height) {
  // The size in voxels of one pixel at the target's distance. So the point under the mouse stays there.
  const double scale = 2 * distance * std::tan(vertical_fov * kRadians / 2) / std::max(1.0, height);
  const double a = azimuth * kRadians, e = elevation * kRadians;
  const glm::dvec3 right(std::cos(a), 0, -std::sin(a)),
      up(-std::sin(e) * std::sin(a), std::cos(e), -std::sin(e) * std::cos(a));
  target += (-dx * right + dy * up) * scale;
}

void OrbitCamera::zoom(double factor, const glm::dvec3* towards) {
  const double wanted = std::clamp(distance * factor, kNearest, kFarthest);
  const double real_factor = wanted / distance;
  distance = wanted;
  if (!towards) return;
  // Scaling the whole camera about the point keeps the point's place on the screen.
  target = *towards + (target - *towards) * real_factor;
}

void OrbitCamera::frame(const Box3& bounds, double aspect) {
  const Box3 box = bounds.empty() ? Box3{{-16, 0, -16}, {15, 15, 15}} : bounds;
  glm::dvec3 eye;
  engine::fit_camera(box, vertical_fov, aspect, azimuth, elevation, eye, target);
  const glm::dvec3 offset = eye - target;
  distance = std::max(std::hypot(offset.x, offset.y, offset.z), kNearest);
}

engine::View OrbitCamera::view(uint32_t width, uint32_t height, Int3 origin) const {
  const glm::dvec3 from(origin.x, origin.y, origin.z);
  return engine::look_at(position() - from, target - from, vertical_fov, width, height);
}

Ray OrbitCamera::ray(double x, double y, uint32_t width, uint32_t height) const {
  const engine::View v = view(width, height);
  return {position(), engine::direction_through(v, 2 * (x + 0.5) / width - 1, 1 - 2 * (y + 0.5) / height)};
}

std::optional<ScreenPoint> OrbitCamera::project(const glm::dvec3& point, uint32_t width, uint32_t height) const {
  const engine::View v = view(width, height);
  const glm::dvec3 relative = point - position(), right(v.right), up(v.up);
  const double depth = glm::dot(glm::dvec3(v.forward), relative);
  if (depth < 1e-3) return {};
  const double a = glm::dot(right, relative) / glm::dot(right, right) / depth,
               b = glm::dot(up, relative) / glm::dot(up, up) / depth;
  return ScreenPoint{(a + 1) / 2 * width - 0.5, (1 - b) / 2 * height - 0.5, depth};
}

}  // namespace quarry::app
