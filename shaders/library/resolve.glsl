// SPDX-License-Identifier: Apache-2.0
// resolve.glsl - the code that shade.comp.glsl and debug_views.comp.glsl share: the light around a pixel, the
// highlighted box, the sum of a pixel's samples.
#ifndef QRY_RESOLVE_GLSL
#define QRY_RESOLVE_GLSL

#extension GL_EXT_control_flow_attributes : require

#include "shaders/library/surface.glsl"

layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D target;

float pixel_angle_of(const QryFrame frame) { return 2.0 * length(qry_vec3(frame.up)) / float(frame.height); }

// The light buffer's mean over 4 x 4 pixels on the same plane. It joins their 16 sets of rays and so removes the noise
// of each. Planes that cannot be told apart at a pixel's width count as one.
vec3 ambient_about(const QryFrame frame, uvec2 pixel, QryVisibility visible, float pixel_angle) {
  const uint face = visible_face(visible), axis = face >> 1;
  const int plane = visible_voxel(visible)[axis], near = int(2.0 * visible.t * pixel_angle);
  const ivec2 size = ivec2(frame.width, frame.height);
  vec3 sum = vec3(0.0);
  float count = 0.0;
  [[dont_unroll]] for (int y = -2; y < 2; ++y)  // the software driver takes twice as long to compile sixteen copies
      for (int x = -2; x < 2; ++x) {
    const ivec2 there = clamp(ivec2(pixel) + ivec2(x, y), ivec2(0), size - 1);
    const uint at = uint(there.y * size.x + there.x);
    const QryVisibility other = QryVisibilityRef(frame.visibility).at[at];
    if (!visible_hit(other) || visible_face(other) != face || abs(visible_voxel(other)[axis] - plane) > near) continue;
    sum += QryColorRef(frame.light).at[at].rgb;
    count += 1.0;
  }
  return sum / max(count, 1.0);
}

// Tells whether the ray meets the outline of the box, and at which distance. The outline is lines of about two pixels
// on its visible faces.
bool outline(vec3 o, vec3 d, vec3 low, vec3 high, float pixel_angle, out float t_line) {
  t_line = 1e30;
  bool met = false;
  for (uint axis = 0u; axis < 3u; ++axis) {
    const uint u = (axis + 1u) % 3u, v = (axis + 2u) % 3u;
    for (uint side = 0u; side < 2u; ++side) {
      if (abs(d[axis]) < 1e-20) continue;
      const float t = ((side == 0u ? low[axis] : high[axis]) - o[axis]) / d[axis];
      if (t <= 0.0 || t >= t_line) continue;
      const vec3 p = o + t * d;
      const float width = max(0.03, 0.8 * t * pixel_angle / max(abs(d[axis]), 0.2));
      if (p[u] < low[u] - width || p[u] > high[u] + width || p[v] < low[v] - width || p[v] > high[v] + width) continue;
      const float near_u = min(abs(p[u] - low[u]), abs(p[u] - high[u])),
                  near_v = min(abs(p[v] - low[v]), abs(p[v] - high[v]));
      if (min(near_u, near_v) > width) continue;
      t_line = t;
      met = true;
    }
  }
  return met;
}

// Draws the highlighted box over one sample's colour (linear, 0..1) and adds the sample to the pixel. The last sample
// writes the picture.
void add_sample(const QryFrame frame, uvec2 pixel, uint at, QryVisibility visible, vec3 o, vec3 d, vec3 color,
                float cover) {
  if (frame.highlight != 0u) {
    float t_line;
    if (outline(o, d, qry_vec3(frame.highlight_min), qry_vec3(frame.highlight_max), pixel_angle_of(frame), t_line)) {
      const bool covered = visible_hit(visible) && visible.t < t_line - 0.05 - 1e-4 * t_line;
      const float strength = covered ? 0.22 : 0.9;
      color = mix(color, vec3(1.0, 0.72, 0.12), strength);
      cover = max(cover, strength);
    }
  }

  const uint samples = max(frame.samples_a_side, 1u) * max(frame.samples_a_side, 1u);
  vec4 sum = vec4(color * cover, cover);
  if (samples > 1u) {
    QryColorRef sums = QryColorRef(frame.accumulation);
    if (push.sample_index > 0u) sum += sums.at[at];
    if (push.sample_index + 1u < samples) {
      sums.at[at] = sum;
      return;
    }
    sum /= float(samples);
  }
  imageStore(target, ivec2(pixel), vec4(qry_to_srgb(clamp(sum.rgb / max(sum.a, 1e-4), 0.0, 1.0)), sum.a));
}

#endif
