#version 460
// SPDX-License-Identifier: Apache-2.0
// behind.comp.glsl - what lies behind glass: where the visible voxel lets light through, the first voxel of another material straight on.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/library/surface.glsl"

layout(local_size_x = 8, local_size_y = 16) in;

void main() {
#include "shaders/library/seen_pixel.glsl"
  if (!seen_hit(seen)) return;
  const QryWorldRoot root = push.root;
  const uint material = seen_material(seen);
  if (!lets_through(QryPalette(root.palette).at[material].transparency)) return;
  const vec3 d = qry_pixel_direction(frame, pixel, push.sample_index);
  const vec3 inside = point_inside(qry_point_on(qry_vec3(frame.origin), d, seen.t, seen_voxel(seen), seen_face(seen)), qry_face_normal(seen_face(seen)));
  const QryHit hit = qry_traverse(root, inside, d, 0.0, 1e29, material);
  QryVisibilityRef(frame.behind).at[at] = qry_seen(hit, hit.t >= 0.0 ? qry_material(root, hit.brick, hit.voxel) : 0u);
}
