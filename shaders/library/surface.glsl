// SPDX-License-Identifier: Apache-2.0
// surface.glsl - a visible voxel's material, the point where rays leave it, and the numbers that spread them. The
// passes that light it share this file.
#ifndef QRY_SURFACE_GLSL
#define QRY_SURFACE_GLSL

#include "shaders/library/traverse.glsl"
#include "shaders/shared/frame.h"
#include "shaders/library/frame_access.glsl"
#include "shaders/library/environment.glsl"
#include "shaders/library/sampling.glsl"
#include "shaders/library/material.glsl"

struct Surface {
  vec3 point, normal, albedo;
  float roughness, metalness, emission, transparency, ior;
  uint material;
};

Surface surface_of(const QryWorldRoot root, vec3 o, vec3 d, float t, ivec3 voxel, uint face, uint material) {
  const QryMaterial m = QryPalette(root.palette).at[material];
  Surface s;
  s.normal = qry_face_normal(face);
  s.point = qry_point_on(o, d, t, voxel, face);
  s.albedo = qry_from_srgb(unpackUnorm4x8(m.rgba).rgb);
  s.roughness = m.roughness;
  s.metalness = m.metalness;
  s.emission = m.emission;
  s.transparency = m.transparency;
  s.ior = m.ior;
  s.material = material;
  return s;
}

// True if the surface is so smooth that its reflection is worth a ray. engine/sharing/world.cpp has the same limit for
// the palette.
bool is_reflective(float roughness) { return roughness < 0.3; }

// The limit of transparency, and the point inside where the refracted ray continues.
bool is_transmissive(float transparency) { return transparency > 0.01; }
vec3 point_inside(vec3 point, vec3 normal) { return point - normal * (1.0 / 32.0); }

// The shading point is on the visible surface or on the floor that catches shadows. Returns false if there is neither.
// The floor has `face` 3.
bool shading_point(const QryFrame frame, uvec2 pixel, uint sample_index, QryVisibility visible, out vec3 point,
                   out uint face) {
  const vec3 o = qry_vec3(frame.origin), d = qry_pixel_direction(frame, pixel, sample_index);
  face = 3u;
  point = o;
  if (visible_hit(visible)) {
    face = visible_face(visible);
    point = qry_point_on(o, d, visible.t, visible_voxel(visible), face);
    return true;
  }
  if (frame.environment.ground == 0u || d.y > -1e-5) return false;
  const float t = (frame.environment.ground_y - o.y) / d.y;
  point = o + t * d + vec3(0.0, 1.0 / 64.0, 0.0);
  return t > 0.0;
}

// Two numbers in 0..1 for a pixel's rays. They are one of 16 pairs. Each pair occurs once in every 4 x 4 pixels, so the
// mean over such a block, which shade.comp.glsl takes, has all of them. The pairs are M. Roberts' R2, 2018, in B.
// Bayer's order.
vec2 pixel_noise(const QryFrame frame, uvec2 pixel, uint sample_index) {
  const uint b0 = (pixel.x >> 1) & 1u, b1 = ((pixel.y >> 1) & 1u) ^ b0, b2 = pixel.x & 1u, b3 = (pixel.y & 1u) ^ b2;
  const uint rank = b0 | (b1 << 1) | (b2 << 2) | (b3 << 3);
  return fract((float(rank + 16u * ((frame.seed * 16u + sample_index) & 63u)) + 0.5) *
               vec2(0.7548776662, 0.5698402910));
}

#endif
