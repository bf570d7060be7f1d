#version 460
// SPDX-License-Identifier: Apache-2.0
// beams.comp.glsl - camera -> how far each tile of pixels sees nothing. It runs once a frame, because a tile holds all
// samples of its pixels.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/beam.glsl"

layout(local_size_x = kQryBeamGroup) in;

layout(set = 0, binding = 1, scalar) uniform QryFrameBlock { QryFrame frame; }
given;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer QryBeamRef { float at[]; };
layout(push_constant, scalar) uniform QryPush { QryFramePush push; };

vec3 of(const float a[3]) { return vec3(a[0], a[1], a[2]); }

void main() {
  const QryFrame frame = given.frame;
  const QryWorldRoot root = push.root;
  const uint tiles = qry_tiles_across(frame.width) * qry_tiles_down(frame.height);
  const uint tile = qry_dispatch_tile();
  if (tile < tiles) {
    const float depth = qry_tile_beam(root, tile, of(frame.origin), of(frame.forward), of(frame.right), of(frame.up),
                                      uvec2(frame.width, frame.height));
    if (gl_SubgroupInvocationID == 0u) QryBeamRef(frame.beams).at[tile] = depth;
  }
}
