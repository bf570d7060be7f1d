// SPDX-License-Identifier: Apache-2.0
// pick.cpp - two nested walks, through bricks and through the voxels of a brick, after J. Amanatides and A. Woo (1987).
#include "app/editor/session/pick.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quarry::app {
namespace {

// A walk through cells of one size, after J. Amanatides and A. Woo, "A Fast Voxel Traversal Algorithm for Ray Tracing",
// 1987.
struct Walk {
  int32_t cell[3];
  int32_t step[3];
  double next[3];   // ray parameter at which the next face of each axis is crossed
  double delta[3];  // and from one face to the next
  double t;         // parameter at which the present cell was entered
  int axis = -1;    // axis of the face entered through, -1: began inside

  Walk(const Ray& ray, double edge, double start, const int32_t* first_cell) : t(start) {
    for (int i = 0; i < 3; ++i) {
      cell[i] = first_cell[i];
      const double d = ray.direction[i];
      step[i] = d > 0 ? 1 : -1;
      delta[i] = d != 0 ? edge / std::abs(d) : std::numeric_limits<double>::infinity();
      const double face = (cell[i] + (d > 0 ? 1 : 0)) * edge;
      next[i] = d != 0 ? (face - ray.origin[i]) / d : std::numeric_limits<double>::infinity();
    }
  }
  double leave() const { return std::min({next[0], next[1], next[2]}); }
  void advance() {
    axis = next[0] <= next[1] ? (next[0] <= next[2] ? 0 : 2) : (next[1] <= next[2] ? 1 : 2);
    t = next[axis];
    next[axis] += delta[axis];
    cell[axis] += step[axis];
  }
};

Int3 face_normal(const Walk& walk, int axis) {
  Int3 normal;
  if (axis == 0) normal.x = -walk.step[0];
  if (axis == 1) normal.y = -walk.step[1];
  if (axis == 2) normal.z = -walk.step[2];
  return normal;
}

// Walks the voxels of one brick between the parameters at which the ray enters and leaves it.
std::optional<Pick> pick_in_brick(const Ray& ray, Int3 brick, const Brick& value, double enter, double leave,
                                  int entry_axis) {
  const int32_t low[3] = {brick.x * kBrickEdge, brick.y * kBrickEdge, brick.z * kBrickEdge};
  int32_t first[3];
  for (int i = 0; i < 3; ++i) {
    const double at = std::floor(ray.origin[i] + ray.direction[i] * enter);
    // Rounding at the brick's faces must not lead into a neighbour.
    first[i] = int32_t(std::clamp(at, double(low[i]), double(low[i] + kBrickEdge - 1)));
    if (i == entry_axis) first[i] = ray.direction[i] > 0 ? low[i] : low[i] + kBrickEdge - 1;
  }
  Walk walk(ray, 1, enter, first);
  walk.axis = entry_axis;
  for (int steps = 0; steps < 3 * kBrickEdge && walk.t <= leave; ++steps) {
    const Int3 voxel{walk.cell[0], walk.cell[1], walk.cell[2]};
    if (brick_of(voxel) != brick) return {};
    if (const uint8_t material = value.get(voxel_index(voxel)))
      return Pick{voxel, face_normal(walk, walk.axis), walk.t, material, false};
    walk.advance();
  }
  return {};
}

}  // namespace

std::optional<Pick> pick_voxel(const World& world, const Ray& ray, double reach) {
  const Box3 bounds = world.bounds();
  if (bounds.empty()) return {};
  // Clip to the bounds of the voxels, one voxel wider so that rounding cannot cut off a face.
  const double low[3] = {bounds.min.x - 1.0, bounds.min.y - 1.0, bounds.min.z - 1.0};
  const double high[3] = {bounds.max.x + 2.0, bounds.max.y + 2.0, bounds.max.z + 2.0};
  double enter = 0, leave = reach;
  for (int i = 0; i < 3; ++i) {
    if (ray.direction[i] == 0) {
      if (ray.origin[i] < low[i] || ray.origin[i] > high[i]) return {};
      continue;
    }
    const double a = (low[i] - ray.origin[i]) / ray.direction[i], b = (high[i] - ray.origin[i]) / ray.direction[i];
    enter = std::max(enter, std::min(a, b));
    leave = std::min(leave, std::max(a, b));
  }
  if (enter > leave) return {};
  int32_t first[3];
  for (int i = 0; i < 3; ++i) first[i] = int32_t(std::floor((ray.origin[i] + ray.direction[i] * enter) / kBrickEdge));
  Walk walk(ray, kBrickEdge, enter, first);
  Brick value;
  while (walk.t <= leave) {
    const Int3 brick{walk.cell[0], walk.cell[1], walk.cell[2]};
    if (brick_in_world(brick) && world.find_brick(brick, &value))
      if (const auto hit = pick_in_brick(ray, brick, value, walk.t, walk.leave(), walk.axis)) return hit;
    walk.advance();
  }
  return {};
}

std::optional<Pick> or_ground(std::optional<Pick> picked, const Ray& ray) {
  if (picked) return picked;
  if (ray.direction[1] >= 0 || ray.origin[1] <= 0) return {};
  const auto voxel = voxel_on_plane(ray, 1, 0, true);
  if (!voxel) return {};
  return Pick{*voxel, {0, 1, 0}, -ray.origin[1] / ray.direction[1], 0, true};
}

std::optional<Int3> voxel_on_plane(const Ray& ray, int axis, double coordinate, bool positive_normal) {
  const double d = ray.direction[axis];
  if (std::abs(d) < 1e-6) return {};
  const double t = (coordinate - ray.origin[axis]) / d;
  if (t <= 0 || t > 50000) return {};
  int32_t cell[3];
  for (int i = 0; i < 3; ++i) cell[i] = int32_t(std::floor(ray.origin[i] + ray.direction[i] * t));
  // The plane is a face. The result is the voxel behind it, seen from the normal's side.
  cell[axis] = int32_t(std::lround(coordinate)) - (positive_normal ? 1 : 0);
  const Int3 voxel{cell[0], cell[1], cell[2]};
  if (!voxel_in_world(voxel)) return {};
  return voxel;
}

}  // namespace quarry::app
