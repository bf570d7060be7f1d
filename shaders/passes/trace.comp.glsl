#version 460
// SPDX-License-Identifier: Apache-2.0
// trace.comp.glsl - a buffer of rays -> a buffer of hits: for picking, the plugin interface, and the comparison with
// the host's reference.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/shared/frame.h"

layout(local_size_x = 64) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer QryRays { QryRay at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) writeonly buffer QryHits { QryRayHit at[]; };
layout(push_constant, scalar) uniform QryPush { QryTracePush push; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= push.count) return;
  const QryWorldRoot root = QryRootRef(push.root).root;
  const QryRay ray = QryRays(push.rays).at[i];
  const QryHit hit = qry_traverse(root, vec3(ray.origin[0], ray.origin[1], ray.origin[2]),
                                  vec3(ray.direction[0], ray.direction[1], ray.direction[2]), 0.0, 1e29, 0u);
  QryRayHit result;
  result.t = hit.t;
  const ivec3 voxel = hit.t >= 0.0 ? hit.voxel - kVoxelBias : ivec3(0);
  result.voxel[0] = voxel.x;
  result.voxel[1] = voxel.y;
  result.voxel[2] = voxel.z;
  result.face = hit.face;
  result.material = hit.t >= 0.0 ? qry_material(root, hit.brick, hit.voxel) : 0u;
  result.steps = hit.steps;
  result.probe_depth = hit.sectors;
  QryHits(push.hits).at[i] = result;
}
