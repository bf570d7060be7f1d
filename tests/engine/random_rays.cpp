// SPDX-License-Identifier: Apache-2.0
// random_rays.cpp - makes rays from around a world and from inside, and compares what they hit.
#include "tests/engine/random_rays.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "base/parallel.hpp"
#include "tests/app/sanitized.hpp"

namespace quarry::test {

Rays random_rays(const World& world, const Box3& bounds, size_t count, uint32_t seed) {
  std::vector<Int3> bricks;
  world.for_each_brick([&](Int3 at, const Brick&) { bricks.push_back(at); });
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  std::normal_distribution<double> normal;
  Rays rays;
  const double low[3] = {double(bounds.min.x), double(bounds.min.y), double(bounds.min.z)};
  const double size[3] = {double(bounds.max.x) + 1 - low[0], double(bounds.max.y) + 1 - low[1],
                          double(bounds.max.z) + 1 - low[2]};
  const double reach = std::max({size[0], size[1], size[2]});
  while (rays.size() < count) {
    const size_t kind = rays.size() % 8;
    double target[3], origin[3], d[3];
    for (int i = 0; i < 3; ++i) target[i] = low[i] + unit(random) * size[i];
    if (!bricks.empty() && (rays.size() / 8) % 2) {
      const Int3 at = bricks[random() % bricks.size()];
      const int32_t corner[3] = {at.x * 8, at.y * 8, at.z * 8};
      for (int i = 0; i < 3; ++i) target[i] = corner[i] - 1 + 10 * unit(random);
    }
    double n[3] = {normal(random), normal(random), normal(random)};
    if (kind < 3) {  // from outside, around
      for (int i = 0; i < 3; ++i) origin[i] = low[i] + size[i] / 2 + n[i] * reach;
    } else if (kind < 5) {  // from inside
      for (int i = 0; i < 3; ++i) origin[i] = low[i] + unit(random) * size[i];
    } else if (kind == 5) {  // along an axis
      for (int i = 0; i < 3; ++i) origin[i] = target[i];
      origin[rays.size() / 8 % 3] -= reach * (unit(random) - 0.3);
    } else if (kind == 6) {  // in a plane of two axes
      for (int i = 0; i < 3; ++i) origin[i] = low[i] + size[i] / 2 + n[i] * reach;
      const size_t axis = rays.size() / 8 % 3;
      origin[axis] = target[axis];
    } else {  // nearly along an axis
      for (int i = 0; i < 3; ++i) origin[i] = target[i] + n[i] * 1e-3;
      origin[rays.size() / 8 % 3] -= reach;
    }
    double length = 0;
    for (int i = 0; i < 3; ++i) d[i] = target[i] - origin[i];
    for (double v : d) length += v * v;
    if (length < 1e-9) continue;
    rays.add(origin[0], origin[1], origin[2], d[0], d[1], d[2]);
  }
  return rays;
}

Comparison compare(const World& world, const Box3& bounds, const Rays& rays, std::span<const FoundHit> hits) {
  std::vector<ReferenceHit> expected(rays.size());
  parallel_for(rays.size(), 256, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      expected[i] = trace_reference(world, bounds, &rays.origins[i * 3], &rays.directions[i * 3]);
  });
  Comparison out;
  for (size_t i = 0; i < rays.size(); ++i) {
    const auto& e = expected[i];
    const FoundHit& h = hits[i];
    out.hits += e.hit;
    const bool same =
        e.hit == (h.t >= 0) &&
        (!e.hit || (e.voxel == h.voxel && std::abs(e.t - h.t) < 1e-3 + 1e-6 * e.t && world.get(e.voxel) == h.material));
    if (same) continue;
    if (e.edge_distance < 1e-3) {
      ++out.near_edge;
      continue;
    }
    if (!out.wrong++) {
      const auto text = [](Int3 v) {
        return std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z);
      };
      char rays_text[200];
      std::snprintf(rays_text, sizeof rays_text, "ray %zu o=(%.9g %.9g %.9g) d=(%.9g %.9g %.9g) edge %.3g", i,
                    double(rays.origins[i * 3]), double(rays.origins[i * 3 + 1]), double(rays.origins[i * 3 + 2]),
                    double(rays.directions[i * 3]), double(rays.directions[i * 3 + 1]),
                    double(rays.directions[i * 3 + 2]), e.edge_distance);
      out.first_wrong = std::string(rays_text) + ": expected " +
                        (e.hit ? text(e.voxel) + " at " + std::to_string(e.t) : "nothing") + ", got " +
                        (h.t >= 0 ? text(h.voxel) + " at " + std::to_string(h.t) : "nothing");
    }
  }
  return out;
}

size_t rays_wanted(size_t quick) {
  const char* text = std::getenv("QUARRY_LONG");
  const size_t number = text ? std::strtoull(text, nullptr, 10) : 0;
  const size_t few = kSanitized ? quick / 4 : quick;
  return number == 0 ? few : number == 1 ? 100000 : number;
}

}  // namespace quarry::test
