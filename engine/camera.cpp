#include "engine/camera.hpp"

#include <algorithm>
#include <cmath>

namespace quarry::engine {
namespace {

constexpr double kPi = 3.14159265358979323846;

struct V {
  double x, y, z;
};
V minus(V a, V b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
V cross(V a, V b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
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
  for (int i = 0; i < 3; ++i) target[i] = (lo[i] + hi[i]) / 2;
  const double azimuth = azimuth_degrees * kPi / 180, elevation = std::clamp(elevation_degrees, -89.9, 89.9) * kPi / 180;
  // From the target towards the camera; azimuth 0 looks along -z.
  const V back{std::cos(elevation) * std::sin(azimuth), std::sin(elevation), std::cos(elevation) * std::cos(azimuth)};
  V right = cross(scaled(back, -1), {0, 1, 0});
  right = scaled(right, 1 / length(right));
  const V up = cross(right, scaled(back, -1));
  const double tan_v = std::tan(std::clamp(vertical_fov_degrees, 0.01, 179.0) * kPi / 360), tan_h = tan_v * std::max(aspect, 1e-3);
  // The nearest distance from which all eight corners are inside the picture, and a little air around them.
  double distance = 1;
  for (int corner = 0; corner < 8; ++corner) {
    const V c{(corner & 1 ? hi[0] : lo[0]) - target[0], (corner & 2 ? hi[1] : lo[1]) - target[1], (corner & 4 ? hi[2] : lo[2]) - target[2]};
    const double along = c.x * back.x + c.y * back.y + c.z * back.z;
    const double x = std::abs(c.x * right.x + c.y * right.y + c.z * right.z), y = std::abs(c.x * up.x + c.y * up.y + c.z * up.z);
    distance = std::max({distance, along + x / tan_h, along + y / tan_v});
  }
  distance *= 1.06;
  position[0] = target[0] + back.x * distance;
  position[1] = target[1] + back.y * distance;
  position[2] = target[2] + back.z * distance;
}

}  // namespace quarry::engine
