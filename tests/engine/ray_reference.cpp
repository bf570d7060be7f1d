// SPDX-License-Identifier: Apache-2.0
// ray_reference.cpp - the reference traversal. It goes from face to face, one voxel after the other, with no structure
// that could skip wrongly.
#include "tests/engine/ray_reference.hpp"

#include <algorithm>
#include <cmath>

namespace quarry::test {

ReferenceHit trace_reference(const World& world, const Box3& bounds, const float origin[3], const float direction[3]) {
  ReferenceHit out;
  if (bounds.empty()) return out;
  const double o[3] = {origin[0], origin[1], origin[2]}, d[3] = {direction[0], direction[1], direction[2]};
  const int32_t low[3] = {bounds.min.x, bounds.min.y, bounds.min.z},
                high[3] = {bounds.max.x, bounds.max.y, bounds.max.z};
  // Goes to one voxel before the bounds, so that rounding here cannot hide a voxel at their faces.
  double start = 0, end = 1e300;
  for (int i = 0; i < 3; ++i) {
    if (d[i] == 0) {
      if (o[i] < low[i] - 1 || o[i] > high[i] + 2) return out;
      continue;
    }
    const double a = (low[i] - 1 - o[i]) / d[i], b = (high[i] + 2 - o[i]) / d[i];
    start = std::max(start, std::min(a, b));
    end = std::min(end, std::max(a, b));
  }
  if (start > end) return out;
  int32_t cell[3];
  for (int i = 0; i < 3; ++i) cell[i] = int32_t(std::floor(o[i] + start * d[i]));
  double t = start;
  for (;;) {
    if (world.get({cell[0], cell[1], cell[2]})) {
      out.hit = true;
      out.t = t;
      out.voxel = {cell[0], cell[1], cell[2]};
      return out;
    }
    // Each plane is computed from the origin, never accumulated.
    double next[3];
    int axis = -1;
    for (int i = 0; i < 3; ++i) {
      next[i] = d[i] == 0 ? 1e300 : ((d[i] > 0 ? cell[i] + 1 : cell[i]) - o[i]) / d[i];
      if (axis < 0 || next[i] < next[axis]) axis = i;
    }
    if (next[axis] >= 1e299) return out;
    t = std::max(next[axis], start);
    // An edge is near if another axis is close to a plane where this axis crosses one.
    for (int i = 0; i < 3; ++i) {
      if (i == axis) continue;
      const double at = o[i] + t * d[i];
      out.edge_distance = std::min(out.edge_distance, std::abs(at - std::round(at)));
    }
    cell[axis] += d[axis] > 0 ? 1 : -1;
    for (int i = 0; i < 3; ++i)
      if (d[i] > 0 ? cell[i] > high[i] + 1 : d[i] < 0 && cell[i] < low[i] - 1) return out;
  }
}

}  // namespace quarry::test
