// SPDX-License-Identifier: Apache-2.0
// orbit_camera.hpp - the editor's camera, which turns about a point. It knows pixels and voxels, but no windows.
#pragma once

#include <optional>

#include "engine/render/camera.hpp"

namespace quarry::app {

struct Ray {
  glm::dvec3 origin, direction;  // direction is unit
};

struct ScreenPoint {
  double x, y, depth;  // pixels, y down; depth along the view direction, in voxels
};

class OrbitCamera {
 public:
  glm::dvec3 target{0, 0, 0};
  double distance = 64;      // voxels from eye to target
  double azimuth = 35;       // degrees about y; 0 looks along -z
  double elevation = 25;     // degrees, kept within -89..89
  double vertical_fov = 45;  // degrees

  glm::dvec3 position() const;
  // Mouse movement in pixels of a viewport `height` pixels high.
  void orbit(double dx, double dy);
  void pan(double dx, double dy, double height);
  // A factor below 1 moves nearer. The point `towards`, if given, stays in its place on the screen.
  void zoom(double factor, const glm::dvec3* towards = nullptr);
  // Brings the whole box into view and keeps the direction of the view.
  void frame(const Box3& bounds, double aspect);

  // As seen in a grid whose voxel (0, 0, 0) is the world's voxel `origin`.
  engine::View view(uint32_t width, uint32_t height, Int3 origin = {}) const;
  // The ray through the middle of pixel (x, y) of a viewport.
  Ray ray(double x, double y, uint32_t width, uint32_t height) const;
  // Returns nothing for points behind the eye.
  std::optional<ScreenPoint> project(const glm::dvec3& point, uint32_t width, uint32_t height) const;

  friend bool operator==(const OrbitCamera&, const OrbitCamera&) = default;
};

}  // namespace quarry::app
