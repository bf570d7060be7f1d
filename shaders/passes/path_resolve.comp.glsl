#version 460
// SPDX-License-Identifier: Apache-2.0
// path_resolve.comp.glsl - the path tracer's sums as a picture. A pixel without a path yet shows its nearest neighbour
// with one.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/world.glsl"
#include "shaders/shared/path.h"
#include "shaders/library/dispatch_pixel.glsl"
#include "shaders/library/environment.glsl"
#include "shaders/library/sampling.glsl"
#include "shaders/library/material.glsl"

layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D target;

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryPathFrameRef { QryPathFrame frame; };
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer QrySums { vec4 at[]; };
layout(push_constant, scalar) uniform QryPush { QryPathPush push; };

// Paths of this pixel after push.steps steps; the inverse of path.comp.glsl's order.
uint paths_of(uvec2 pixel) {
  const uint b0 = (pixel.x >> 1) & 1u, b1 = ((pixel.y >> 1) & 1u) ^ b0, b2 = pixel.x & 1u, b3 = (pixel.y & 1u) ^ b2;
  const uint rank = b0 | (b1 << 1) | (b2 << 2) | (b3 << 3);
  return (push.steps >> 4) + (rank < (push.steps & 15u) ? 1u : 0u);
}

void main() {
  const QryPathFrame frame = QryPathFrameRef(push.frame).frame;
  const uvec2 pixel = qry_tile_corner(push.tile_from) + qry_dispatch_pixel(gl_WorkGroupSize.xy);
  if (qry_beyond(pixel, uvec2(frame.width, frame.height), push.tile_to)) return;
  uvec2 from = pixel;
  if (paths_of(from) == 0u) from = pixel & ~1u;
  if (paths_of(from) == 0u) from = pixel & ~3u;
  const vec4 sum = QrySums(frame.sums).at[from.y * frame.width + from.x] / float(max(paths_of(from), 1u));
  const QryEnvironment environment = frame.environment;
  vec4 color = vec4(qry_displayed(environment, sum.rgb / max(sum.a, 1e-4)), clamp(sum.a, 0.0, 1.0));
  if (environment.background == kQryBackgroundColor)
    color = vec4(mix(qry_array3(environment.background_color), color.rgb, color.a), 1.0);
  imageStore(target, ivec2(pixel), vec4(qry_to_srgb(clamp(color.rgb, 0.0, 1.0)), color.a));
}
