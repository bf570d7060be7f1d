// SPDX-License-Identifier: Apache-2.0
// orbit_camera.cpp - azimuth, elevation and distance about a target; pan and zoom keep what is under the mouse where it
// is.
#include "engine/render/orbit_camera.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace quarry::app {
namespace {

constexpr double kRadians = std::numbers::pi / 180;
constexpr double kNearest = 0.5, kFarthest = 40000;  // voxels; the world's diagonal is 24,600

double dot(const float a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
double dot(const float a[3], const float b[3]) {
  return static_cast<double>(a[0]) * b[0] + static_cast<double>(a[1]) * b[1] + static_cast<double>(a[2]) * b[2];
}

}  // namespace

void OrbitCamera::position(double out[3]) const {
  const double a = azimuth * kRadians, e = elevation * kRadians;
  out[0] = target[0] + distance * std::cos(e) * std::sin(a);
  out[1] = target[1] + distance * std::sin(e);
  out[2] = target[2] + distance * std::cos(e) * std::cos(a);
}

void OrbitCamera::orbit(double dx, double dy) {
  constexpr double kDegreesPerPixel = 0.35;
  azimuth = std::remainder(azimuth - dx * kDegreesPerPixel, 360.0);
  elevation = std::clamp(elevation + dy * kDegreesPerPixel, -89.0, 89.0);
}

void OrbitCamera::pan(double dx, double dy, double height) {
  // One pixel at the target's distance, in voxels: what is under the mouse stays under it.
  const double scale = 2 * distance * std::tan(vertical_fov * kRadians / 2) / std::max(1.0, height);
  const double a = azimuth * kRadians, e = elevation * kRadians;
  const double right[3] = {std::cos(a), 0, -std::sin(a)};
  const double up[3] = {-std::sin(e) * std::sin(a), std::cos(e), -std::sin(e) * std::cos(a)};
  for (int i = 0; i < 3; ++i) target[i] += (-dx * right[i] + dy * up[i]) * scale;
}

void OrbitCamera::zoom(double factor, const double* towards) {
  const double wanted = std::clamp(distance * factor, kNearest, kFarthest);
  const double real_factor = wanted / distance;
  distance = wanted;
  if (!towards) return;
  // Scaling the whole camera about the point keeps the point's place on the screen.
  for (int i = 0; i < 3; ++i) target[i] = towards[i] + (target[i] - towards[i]) * real_factor;
}

void OrbitCamera::frame(const Box3& bounds, double aspect) {
  const Box3 box = bounds.empty() ? Box3{{-16, 0, -16}, {15, 15, 15}} : bounds;
  double eye[3];
  engine::fit_camera(box, vertical_fov, aspect, azimuth, elevation, eye, target);
  distance = std::clamp(std::hypot(eye[0] - target[0], eye[1] - target[1], eye[2] - target[2]), kNearest, kFarthest);
}

engine::View OrbitCamera::view(uint32_t width, uint32_t height) const {
  double eye[3];
  position(eye);
  return engine::look_at(eye, target, vertical_fov, width, height);
}

Ray OrbitCamera::ray(double x, double y, uint32_t width, uint32_t height) const {
  const engine::View v = view(width, height);
  const double a = 2 * (x + 0.5) / width - 1, b = 1 - 2 * (y + 0.5) / height;
  Ray ray{};
  double length = 0;
  for (int i = 0; i < 3; ++i) {
    ray.origin[i] = v.origin[i];
    ray.direction[i] = v.forward[i] + a * v.right[i] + b * v.up[i];
    length += ray.direction[i] * ray.direction[i];
  }
  for (double& d : ray.direction) d /= std::sqrt(length);
  return ray;
}

std::optional<ScreenPoint> OrbitCamera::project(const double point[3], uint32_t width, uint32_t height) const {
  const engine::View v = view(width, height);
  const double relative[3] = {point[0] - v.origin[0], point[1] - v.origin[1], point[2] - v.origin[2]};
  const double depth = dot(v.forward, relative);
  if (depth < 1e-3) return {};
  const double a = dot(v.right, relative) / dot(v.right, v.right) / depth, b = dot(v.up, relative) / dot(v.up, v.up) / depth;
  return ScreenPoint{(a + 1) / 2 * width - 0.5, (1 - b) / 2 * height - 0.5, depth};
}

}  // namespace quarry::app
