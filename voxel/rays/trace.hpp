// SPDX-License-Identifier: Apache-2.0
// trace.hpp - one ray against a world in flat arrays, by the traversal of shaders (walk.h), for a host thread or a
// thread of a CUDA kernel. Both give the same hit, bit for bit: no product and sum of the text are fused but where it
// says so, or the product is exact. Against shaders/passes/trace.comp.glsl a distance may differ in its last bits,
// because a shader's quotients may.
#pragma once

#include <cmath>

#include "voxel/rays/flat_world.hpp"
#include "voxel/rays/ray_setup.h"

namespace quarry {

struct Ray {  // as qry_ray of engine/api/quarry.h
  float origin[3];
  float direction[3];  // any length but 0
};
struct RayHit {  // as qry_hit there
  float t;       // distance in lengths of the direction; negative: nothing was hit, and voxel, face and material are 0
  int32_t voxel[3];
  uint32_t face;  // 2*axis, + 1 for the face towards the positive axis
  uint32_t material;
  uint32_t steps;
  uint32_t probe_depth;  // 0
};

namespace ray_walk {

// What a shader's specialisation constants are here.
constexpr bool kQryCount = true, kQryStopAtBricks = false, kQryInside = false, kQrySkipsMaterial = false,
               kQryFused = true;

// The words of walk.h that are neither C++ nor above. It is compiled in this namespace.
#define precise
#define QRY_IN(type) const type&
#define QRY_OUT(type) type&
#define QRY_INOUT(type) type&
#define QRY_XY(v) uvec2((v).x, (v).y)
#define QRY_OCTANT(root, masks, octant) qry_octant_words(root, masks, octant)
// The rays of a warp wait for each other, so that all hits are finished at once. Without it each is when its ray has
// ended, with few others: an eighth more instructions (docs/results/h200/algorithms.md). Shaders' compilers do so
// themselves.
#if defined(__CUDA_ARCH__)
#define QRY_TOGETHER() __syncwarp()
#else
#define QRY_TOGETHER()
#endif
// Macros, because a kernel knows no object of a host's namespace.
#define kVoxelBias ivec3(int(kQryBiasXZ) * 8, int(kQryBiasY) * 8, int(kQryBiasXZ) * 8)
#define kVoxelExtent (2 * kVoxelBias)

#include "voxel/rays/walk.h"

#undef precise
#undef QRY_IN
#undef QRY_OUT
#undef QRY_INOUT
#undef QRY_XY
#undef QRY_OCTANT
#undef QRY_TOGETHER

}  // namespace ray_walk

// Finds the first set voxel on origin + t * direction for t >= 0. In a kernel all threads of a warp that have not ended
// must call it together.
QRY_HD inline RayHit trace_ray(const RayWorld& world, const Ray& ray) {
  using namespace ray_walk;
  const QryHit hit = qry_traverse(world, vec3(ray.origin[0], ray.origin[1], ray.origin[2]),
                                  vec3(ray.direction[0], ray.direction[1], ray.direction[2]), 0.0f, 1e29f, 0u);
  RayHit result{hit.t, {0, 0, 0}, hit.face, 0, hit.steps, hit.sectors};
  if (hit.t >= 0.0f) {
    const ivec3 voxel = hit.voxel - kVoxelBias;
    result.voxel[0] = voxel.x;
    result.voxel[1] = voxel.y;
    result.voxel[2] = voxel.z;
    result.material = qry_material(world, hit.brick, hit.voxel);
  }
  return result;
}

#undef kVoxelBias
#undef kVoxelExtent

// False if a number is not finite, or the direction is 0.
QRY_HD inline bool can_be_traced(const Ray& ray) {
  float zero = 0;  // NaN then
  for (const float c : ray.origin) zero += c * 0;
  for (const float c : ray.direction) zero += c * 0;
  return zero == 0 && (ray.direction[0] != 0 || ray.direction[1] != 0 || ray.direction[2] != 0);
}

// The ray with a direction of length 1. One that was made so by floats stays as it is: 2^-21 is what their rounding may
// leave, and less than a hit's distance can tell.
QRY_HD inline Ray of_unit_length(const Ray& ray) {
  const double x = ray.direction[0], y = ray.direction[1], z = ray.direction[2];
  const double square = x * x + y * y + z * z, off = square - 1;
  if (off * off < 0x1p-42) return ray;
  const double norm = sqrt(square);
  return {{ray.origin[0], ray.origin[1], ray.origin[2]}, {float(x / norm), float(y / norm), float(z / norm)}};
}

// As callers get it: a ray that meets nothing tells no more.
QRY_HD inline RayHit told(const RayHit& hit) { return hit.t < 0 ? RayHit{-1, {0, 0, 0}, 0, 0, 0, 0} : hit; }

}  // namespace quarry
