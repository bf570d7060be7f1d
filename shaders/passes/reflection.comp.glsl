#version 460
// SPDX-License-Identifier: Apache-2.0
// reflection.comp.glsl - what smooth surfaces reflect. If the visible voxel is smooth, it finds the first voxel along
// the reflected ray.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/library/surface.glsl"

layout(local_size_x = 8, local_size_y = 16) in;

void main() {
#include "shaders/library/visible_pixel.glsl"
  if (!visible_hit(visible)) return;
  const QryWorldRoot root = push.root;
  if (!is_reflective(QryPalette(root.palette).at[visible_material(visible)].roughness)) return;
  const vec3 d = qry_pixel_direction(frame, pixel, push.sample_index);
  const vec3 o = qry_point_on(qry_vec3(frame.origin), d, visible.t, visible_voxel(visible), visible_face(visible));
  const QryHit hit = qry_traverse(root, o, reflect(d, qry_face_normal(visible_face(visible))), 0.0, 1e29, 0u);
  QryVisibilityRef(frame.reflection).at[at] =
      qry_visibility(hit, hit.t >= 0.0 ? qry_material(root, hit.brick, hit.voxel) : 0u);
}
