// SPDX-License-Identifier: Apache-2.0
// camera.cpp - look-at basis, and the tightest distance at which a box's eight corners are inside the frustum.
#include "engine/render/camera.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quarry::engine {
namespace {

constexpr double kPi = 3.14159265358979323846;

struct V {
  double x, y, z;
};
V minus(V a, V b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
V cross(V a, V b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
double dot(V a, V b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
double length(V a) { return std::sqrt(a.x * a.x + a.y * a.y + a.z * a.z); }
V scaled(V a, double s) { return {a.x * s, a.y * s, a.z * s}; }

}  // namespace

View look_at(const double position[3], const double target[3], double vertical_fov_degrees, uint32_t width, uint32_t height) {
  const V eye{position[0], position[1], position[2]};
  V forward = minus({target[0], target[1], target[2]}, eye);
  const double distance = length(forward);
  forward = distance > 1e-12 ? scaled(forward, 1 / distance) : V{0, 0, -1};
  // Straight up or down the horizon is undefined: any will do, so x.
  V right = cross(forward, {0, 1, 0});
  const double right_length = length(right);
  right = right_length > 1e-9 ? scaled(right, 1 / right_length) : V{1, 0, 0};
  const V up = cross(right, forward);
  const double tan_v = std::tan(std::clamp(vertical_fov_degrees, 0.01, 179.0) * kPi / 360);
  const double tan_h = tan_v * double(std::max(width, 1u)) / double(std::max(height, 1u));
  View view{};
  const auto put = [](float (&to)[3], V v) {
    to[0] = float(v.x);
    to[1] = float(v.y);
    to[2] = float(v.z);
  };
  put(view.origin, eye);
  put(view.forward, forward);
  put(view.right, scaled(right, tan_h));
  put(view.up, scaled(up, tan_v));
  return view;
}

void fit_camera(const Box3& bounds, double vertical_fov_degrees, double aspect, double azimuth_degrees, double elevation_degrees, double position[3],
                double target[3]) {
  const bool empty = bounds.empty();
  const double lo[3] = {empty ? -8.0 : bounds.min.x, empty ? -8.0 : bounds.min.y, empty ? -8.0 : bounds.min.z};
  const double hi[3] = {empty ? 8.0 : bounds.max.x + 1.0, empty ? 8.0 : bounds.max.y + 1.0, empty ? 8.0 : bounds.max.z + 1.0};
  const double azimuth = azimuth_degrees * kPi / 180, elevation = std::clamp(elevation_degrees, -89.9, 89.9) * kPi / 180;
  // From the target towards the camera; azimuth 0 looks along -z.
  const V back{std::cos(elevation) * std::sin(azimuth), std::sin(elevation), std::cos(elevation) * std::cos(azimuth)};
  V right = cross(scaled(back, -1), {0, 1, 0});
  right = scaled(right, 1 / length(right));
  const V up = cross(right, scaled(back, -1));
  const double tan_v = std::tan(std::clamp(vertical_fov_degrees, 0.01, 179.0) * kPi / 360), tan_h = tan_v * std::max(aspect, 1e-3);
  // A corner (x, y to the right and up, z towards the camera) is inside the picture of a camera at (cx, cy, cz) looking along -z if
  // |x - cx| <= tan_h * (cz - z) and |y - cy| <= tan_v * (cz - z). The four tightest of these say how near cz may come and where cx and
  // cy then are: the box fills the picture's width or height, and lies in its middle on the screen, not only in space.
  const double infinity = std::numeric_limits<double>::infinity();
  double x_plus = -infinity, x_minus = -infinity, y_plus = -infinity, y_minus = -infinity, nearest = -infinity;
  for (int corner = 0; corner < 8; ++corner) {
    const V c{corner & 1 ? hi[0] : lo[0], corner & 2 ? hi[1] : lo[1], corner & 4 ? hi[2] : lo[2]};
    const double x = dot(c, right), y = dot(c, up), z = dot(c, back);
    x_plus = std::max(x_plus, x + tan_h * z);
    x_minus = std::max(x_minus, -x + tan_h * z);
    y_plus = std::max(y_plus, y + tan_v * z);
    y_minus = std::max(y_minus, -y + tan_v * z);
    nearest = std::max(nearest, z);
  }
  const V centre{(lo[0] + hi[0]) / 2, (lo[1] + hi[1]) / 2, (lo[2] + hi[2]) / 2};
  const double cx = (x_plus - x_minus) / 2, cy = (y_plus - y_minus) / 2, middle = dot(centre, back);
  double cz = std::max({(x_plus + x_minus) / (2 * tan_h), (y_plus + y_minus) / (2 * tan_v), nearest + 1});
  cz = middle + (cz - middle) * 1.06;  // a little air around it
  for (int i = 0; i < 3; ++i) {
    const auto axis = [i](V v) { return i == 0 ? v.x : i == 1 ? v.y : v.z; };
    const double on_axis = axis(right) * cx + axis(up) * cy;
    position[i] = on_axis + axis(back) * cz;
    target[i] = on_axis + axis(back) * middle;
  }
}

}  // namespace quarry::engine
