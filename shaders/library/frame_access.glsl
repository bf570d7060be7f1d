// SPDX-License-Identifier: Apache-2.0
// frame_access.glsl - the passes' access to the frame's parameters and buffers, and the ray of each pixel. Include it
// after traverse.glsl and frame.h.
#ifndef QRY_FRAME_ACCESS_GLSL
#define QRY_FRAME_ACCESS_GLSL

#include "shaders/library/dispatch_pixel.glsl"

layout(set = 0, binding = 1, scalar) uniform QryFrameBlock { QryFrame frame; }
given;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer QryVisibilityRef { QryVisibility at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer QryBeamRef { float at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer QryColorRef { vec4 at[]; };
layout(push_constant, scalar) uniform QryPush { QryFramePush push; };

vec3 qry_vec3(const float a[3]) { return vec3(a[0], a[1], a[2]); }

// The ray forward + a*right + b*up. Its length is not 1.
vec3 qry_pixel_ray(const QryFrame frame, uvec2 pixel, uint sample_index) {
  const uint side = max(frame.samples_a_side, 1u);
  const vec2 inside = (vec2(sample_index % side, sample_index / side) + 0.5) / float(side);
  const vec2 at = vec2(pixel) + inside;
  const float a = fma(2.0 / float(frame.width), at.x, -1.0), b = fma(-2.0 / float(frame.height), at.y, 1.0);
  return vec3(fma(a, frame.right[0], fma(b, frame.up[0], frame.forward[0])),
              fma(a, frame.right[1], fma(b, frame.up[1], frame.forward[1])),
              fma(a, frame.right[2], fma(b, frame.up[2], frame.forward[2])));
}
vec3 qry_pixel_direction(const QryFrame frame, uvec2 pixel, uint sample_index) {
  return normalize(qry_pixel_ray(frame, pixel, sample_index));
}

// Packs and unpacks a visibility record.
QryVisibility qry_visibility(const QryHit hit, uint material) {
  QryVisibility v = QryVisibility(hit.t, 0u, 0u, min(hit.steps, 0xFFFFu) | (min(hit.sectors, 0xFFFFu) << 16));
  if (hit.t >= 0.0) {
    v.xy = uint(hit.voxel.x) | (uint(hit.voxel.y) << 14) | (hit.face << 27);
    v.zm = uint(hit.voxel.z) | (material << 14);
  }
  return v;
}
bool visible_hit(QryVisibility v) { return v.t >= 0.0; }
ivec3 visible_voxel(QryVisibility v) { return ivec3(v.xy & 16383u, (v.xy >> 14) & 8191u, v.zm & 16383u); }
uint visible_face(QryVisibility v) { return (v.xy >> 27) & 7u; }
uint visible_material(QryVisibility v) { return (v.zm >> 14) & 255u; }

#endif
