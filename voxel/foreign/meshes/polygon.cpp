// SPDX-License-Identifier: Apache-2.0
// polygon.cpp - a quad is cut at a reflex corner. Larger polygons are cut by ear clipping, in the plane perpendicular
// to the axis nearest to Newell's normal.
#include "voxel/foreign/meshes/polygon.hpp"

#include <algorithm>
#include <cmath>
#include <glm/geometric.hpp>
#include <glm/vec2.hpp>
#include <glm/vec3.hpp>

namespace quarry::mesh_reader {
namespace {

using CornerPlace = std::array<float, 3>;
using FlatPoint = glm::dvec2;

glm::dvec3 way_between(const CornerPlace& a, const CornerPlace& b) {
  return glm::dvec3(b[0], b[1], b[2]) - glm::dvec3(a[0], a[1], a[2]);
}

double angle_between(const glm::dvec3& a, const glm::dvec3& b) {
  const double lengths = std::sqrt(glm::dot(a, a) * glm::dot(b, b));
  return lengths > 0 ? std::acos(std::clamp(glm::dot(a, b) / lengths, -1.0, 1.0)) : 0;
}

// The corner whose diagonal leaves both triangles inside: the reflex corner, if there is one. The quad need not be
// planar.
uint32_t first_of_four(std::span<const CornerPlace> p) {
  for (uint32_t i = 0; i < 4; ++i) {
    const glm::dvec3 across = way_between(p[i], p[(i + 2) % 4]);
    if (angle_between(way_between(p[i], p[(i + 1) % 4]), across) +
            angle_between(way_between(p[i], p[(i + 3) % 4]), across) >
        3.14159266)
      return i;
  }
  return 0;
}

// Twice the signed area of a, b, c. It is positive if they run counter-clockwise.
double twice_area(const FlatPoint& a, const FlatPoint& b, const FlatPoint& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

// The places projected along the axis nearest to the mean normal (Newell's), flipped so that they run
// counter-clockwise. Empty if they have no area.
std::vector<FlatPoint> in_plane(std::span<const CornerPlace> p) {
  glm::dvec3 normal{};
  for (size_t i = 0; i < p.size(); ++i)
    normal += glm::cross(way_between(p[0], p[i]), way_between(p[0], p[(i + 1) % p.size()]));
  int axis = 0;
  for (int k = 1; k < 3; ++k)
    if (std::abs(normal[k]) > std::abs(normal[axis])) axis = k;
  std::vector<FlatPoint> flat;
  if (!(std::abs(normal[axis]) > 0)) return flat;
  const auto u = size_t(axis + (normal[axis] > 0 ? 1 : 2)) % 3, v = size_t(axis + (normal[axis] > 0 ? 2 : 1)) % 3;
  for (const CornerPlace& place : p) flat.emplace_back(place[u], place[v]);
  return flat;
}

class EarClipper {
 public:
  explicit EarClipper(const std::vector<FlatPoint>& points)
      : points_(points), next_(points.size()), before_(points.size()) {
    const uint32_t n = uint32_t(points.size());
    for (uint32_t i = 0; i < n; ++i) next_[i] = (i + 1) % n, before_[i] = (i + n - 1) % n;
    for (uint32_t i = 0; i < n; ++i)
      if (turn(i) <= 0) reflex_.push_back(i);
  }
  bool convex() const {
    return std::none_of(reflex_.begin(), reflex_.end(), [&](uint32_t i) { return turn(i) < 0; });
  }

  void cut(std::vector<uint32_t>& triangles) {
    uint32_t at = 0;
    for (size_t left = points_.size(); left > 2; --left) {
      uint32_t ear = at;
      // If a whole round finds no ear, the polygon crosses itself, and any corner will do.
      for (size_t tried = 0; tried < left && !is_ear(ear); ++tried) ear = next_[ear];
      triangles.insert(triangles.end(), {before_[ear], ear, next_[ear]});
      next_[before_[ear]] = next_[ear];
      before_[next_[ear]] = before_[ear];
      at = next_[ear];
      std::erase_if(reflex_,
                    [&](uint32_t i) { return i == ear || ((i == before_[ear] || i == next_[ear]) && turn(i) > 0); });
    }
  }

 private:
  double turn(uint32_t i) const { return twice_area(points_[before_[i]], points_[i], points_[next_[i]]); }
  bool is_ear(uint32_t i) const {
    const FlatPoint &a = points_[before_[i]], &b = points_[i], &c = points_[next_[i]];
    if (twice_area(a, b, c) <= 0) return false;
    // Only reflex corners can lie inside an ear.
    return std::none_of(reflex_.begin(), reflex_.end(), [&](uint32_t d) {
      const FlatPoint& p = points_[d];
      return p != a && p != b && p != c && twice_area(a, b, p) >= 0 && twice_area(b, c, p) >= 0 &&
             twice_area(c, a, p) >= 0;
    });
  }

  const std::vector<FlatPoint>& points_;
  std::vector<uint32_t> next_, before_, reflex_;
};

}  // namespace

void triangulate(std::span<const CornerPlace> p, std::vector<uint32_t>& triangles) {
  const uint32_t n = uint32_t(p.size());
  uint32_t first = 0;
  if (n == 4) {
    first = first_of_four(p);
  } else if (n > 4 && std::all_of(p.begin(), p.end(), [](const CornerPlace& a) {
               return std::isfinite(a[0]) && std::isfinite(a[1]) && std::isfinite(a[2]);
             })) {
    const std::vector<FlatPoint> flat = in_plane(p);
    EarClipper ears(flat);
    if (!ears.convex()) return ears.cut(triangles);
  }
  for (uint32_t i = 1; i + 1 < n; ++i) triangles.insert(triangles.end(), {first, (first + i) % n, (first + i + 1) % n});
}

}  // namespace quarry::mesh_reader
