#version 460
// SPDX-License-Identifier: Apache-2.0
// shadow.comp.glsl - how much of the sun each visible point sees: visibility buffer -> the fourth component of the light buffer.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/library/surface.glsl"
#include "shaders/library/shadow_pixel.glsl"

layout(local_size_x = 8, local_size_y_id = QRY_ID_ROWS) in;
layout(constant_id = QRY_ID_ONE_WAY) const bool kOneWay = false;  // a single ray, to the middle of the sun

void main() {
#define QRY_OF_SHADOWS
#include "shaders/library/seen_pixel.glsl"
  vec3 o;
  uint face;
  if (!lit_point(frame, pixel, push.sample_index, seen, o, face)) return;
  const vec3 sun = qry_array3(frame.look.sun_direction);
  float lit = 0.0;
  if (dot(qry_face_normal(face), sun) > 0.0) {
    const QryWorldRoot root = push.root;
    const vec2 noise = pixel_noise(frame, pixel, push.sample_index);
    const uint rays = kOneWay ? 1u : frame.shadow_rays;
    for (uint i = 0u; i < rays; ++i) {
      // The sun is a disc: several rays soften its shadow.
      QryCourse course;
      if (kOneWay) course = qry_course_one_way(root, push.to_sun);
      else course = qry_course(root, qry_cone_about(sun, frame.look.sun_radius, fract(noise + float(i) * vec2(0.7548777, 0.5698403))));
      QryWay way;
      QryWalk walk;
      uint steps = 0u;
      float free = 1.0;
      if (qry_walk(root, o, course, 0.0, 1e29, 0u, way, walk, steps)) {
        free = 0.0;  // which voxel it is matters only where there is glass
        if (frame.behind != 0ul) free = 0.85 * QryPalette(root.palette).at[qry_material(root, qry_brick(root, course, way, walk), qry_voxel(course, way, walk))].transparency;
      }
      lit += free / float(rays);
    }
    if (rays == 0u) lit = 1.0;
  }
  QryColorRef(given.frame.light).at[at].a = lit;  // read now: no registers are taken up by it on the way
}
