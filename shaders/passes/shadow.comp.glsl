#version 460
// SPDX-License-Identifier: Apache-2.0
// shadow.comp.glsl - the share of the sun that each visible point sees: visibility buffer -> the fourth component of
// the light buffer.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/library/surface.glsl"
#include "shaders/library/shadow_dispatch.glsl"

layout(local_size_x = 8, local_size_y_id = QRY_ID_ROWS) in;
layout(constant_id = QRY_ID_ONE_DIRECTION) const bool kOneDirection = false;  // a single ray, to the middle of the sun

void main() {
#define QRY_OF_SHADOWS
#include "shaders/library/visible_pixel.glsl"
  vec3 o;
  uint face;
  if (!shading_point(frame, pixel, push.sample_index, visible, o, face)) return;
  const vec3 sun = qry_array3(frame.environment.sun_direction);
  float lit = 0.0;
  if (dot(qry_face_normal(face), sun) > 0.0) {
    const QryWorldRoot root = push.root;
    const vec2 noise = pixel_noise(frame, pixel, push.sample_index);
    const uint rays = kOneDirection ? 1u : frame.shadow_rays;
    for (uint i = 0u; i < rays; ++i) {
      // The sun is a disc, so several rays soften its shadow.
      QryRaySetup setup;
      if (kOneDirection) setup = qry_ray_setup_of(root, push.to_sun);
      else
        setup = qry_ray_setup(root, qry_cone_about(sun, frame.environment.sun_radius,
                                                   fract(noise + float(i) * vec2(0.7548777, 0.5698403))));
      QryRayState ray;
      QryDdaState dda;
      uint steps = 0u;
      float free = 1.0;
      if (qry_dda(root, o, setup, 0.0, 1e29, 0u, ray, dda, steps)) {
        free = 0.0;  // the voxel matters only if some transmit light
        if (frame.refraction != 0ul)
          free = 0.85 * QryPalette(root.palette)
                            .at[qry_material(root, qry_brick(root, setup, ray, dda), qry_voxel(setup, ray, dda))]
                            .transparency;
      }
      lit += free / float(rays);
    }
    if (rays == 0u) lit = 1.0;
  }
  QryColorRef(given.frame.light).at[at].a = lit;  // the address is read only now, so that it takes no registers before
}
