// SPDX-License-Identifier: Apache-2.0
// random_rays.hpp - rays of every kind at a world, and the comparison of their hits with the reference.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "tests/engine/ray_reference.hpp"

namespace quarry::test {

struct Rays {
  std::vector<float> origins, directions;
  size_t size() const { return origins.size() / 3; }
  void add(double ox, double oy, double oz, double dx, double dy, double dz) {
    const double length = std::sqrt(dx * dx + dy * dy + dz * dz);
    for (double v : {ox, oy, oz}) origins.push_back(float(v));
    for (double v : {dx, dy, dz}) directions.push_back(float(v / length));
  }
};

// Rays at a world: from around its bounds, from inside them (inside solids too), parallel to axes and nearly so. Every
// second ray goes towards an existing brick, so that distant bricks are hit.
Rays random_rays(const World& world, const Box3& bounds, size_t count, uint32_t seed);

// What a traversal found.
struct FoundHit {
  float t;  // negative: nothing
  Int3 voxel;
  uint32_t material;
};
struct Comparison {
  uint64_t hits = 0, near_edge = 0, wrong = 0;
  std::string first_wrong;
};
// A hit beside the reference's counts as near_edge if the ray is in single precision's reach of an edge.
Comparison compare(const World& world, const Box3& bounds, const Rays& rays, std::span<const FoundHit> hits);

// QUARRY_LONG=1 gives 100,000 rays a world (minutes on two cores). A larger number gives that many rays.
size_t rays_wanted(size_t quick);

}  // namespace quarry::test
