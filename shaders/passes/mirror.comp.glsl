#version 460
// SPDX-License-Identifier: Apache-2.0
// mirror.comp.glsl - what smooth surfaces mirror: where the visible voxel is smooth, the first voxel along the mirrored ray.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/library/surface.glsl"

layout(local_size_x = 8, local_size_y = 16) in;

void main() {
#include "shaders/library/seen_pixel.glsl"
  if (!seen_hit(seen)) return;
  const QryWorldRoot root = push.root;
  if (!mirrors(QryPalette(root.palette).at[seen_material(seen)].roughness)) return;
  const vec3 d = qry_pixel_direction(frame, pixel, push.sample_index);
  const vec3 o = qry_point_on(qry_vec3(frame.origin), d, seen.t, seen_voxel(seen), seen_face(seen));
  const QryHit hit = qry_traverse(root, o, reflect(d, qry_face_normal(seen_face(seen))), 0.0, 1e29, 0u);
  QryVisibilityRef(frame.mirror).at[at] = qry_seen(hit, hit.t >= 0.0 ? qry_material(root, hit.brick, hit.voxel) : 0u);
}
