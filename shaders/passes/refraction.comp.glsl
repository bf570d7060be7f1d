#version 460
// SPDX-License-Identifier: Apache-2.0
// refraction.comp.glsl - what transparent voxels show. If the visible voxel transmits light, it finds the first voxel
// of another material straight on.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/library/surface.glsl"

layout(local_size_x = 8, local_size_y = 16) in;

void main() {
#include "shaders/library/visible_pixel.glsl"
  if (!visible_hit(visible)) return;
  const QryWorldRoot root = push.root;
  const uint material = visible_material(visible);
  if (!is_transmissive(QryPalette(root.palette).at[material].transparency)) return;
  const vec3 d = qry_pixel_direction(frame, pixel, push.sample_index);
  const vec3 inside =
      point_inside(qry_point_on(qry_vec3(frame.origin), d, visible.t, visible_voxel(visible), visible_face(visible)),
                   qry_face_normal(visible_face(visible)));
  const QryHit hit = qry_traverse(root, inside, d, 0.0, 1e29, material);
  QryVisibilityRef(frame.refraction).at[at] =
      qry_visibility(hit, hit.t >= 0.0 ? qry_material(root, hit.brick, hit.voxel) : 0u);
}
