// SPDX-License-Identifier: Apache-2.0
// dispatch_pixel.glsl - the pixel of each invocation in a pass over the picture.
#ifndef QRY_DISPATCH_PIXEL_GLSL
#define QRY_DISPATCH_PIXEL_GLSL

#include "shaders/shared/constant_ids.h"

// Software drivers give each of their threads one run of a dispatch's workgroups, which are successive rows of the
// picture. Threads with the sky then wait for threads with the ground. So on these drivers the rows of workgroups are
// strided: first every 16th, then those after them, and so on, and every run covers all heights evenly. Within a row
// the order stays, because neighbours meet the same bricks.
layout(constant_id = QRY_ID_STRIDED) const bool kQryStrided = false;

uint qry_strided_row(uint turn, uint rows) {
  const uint stride = rows < 32u ? 4u : 16u, each = rows / stride, more = rows % stride, longer = more * (each + 1u);
  const uint past = turn - longer, shorter = max(each, 1u);
  return turn < longer ? turn % (each + 1u) * stride + turn / (each + 1u)
                       : past % shorter * stride + more + past / shorter;
}

uvec2 qry_dispatch_pixel(uvec2 group_size) {
  uvec2 group = gl_WorkGroupID.xy;
  if (kQryStrided) group.y = qry_strided_row(group.y, gl_NumWorkGroups.y);
  return group * group_size + gl_LocalInvocationID.xy;
}

// If true, the dispatch covers a tile of the picture instead of all of it. The tile starts at the pixel `from` and ends
// before the pixel `to`. Both have x in their lower 16 bits.
layout(constant_id = QRY_ID_TILED) const bool kQryTiled = false;

uvec2 qry_packed_pixel(uint packed) { return uvec2(packed & 0xFFFFu, packed >> 16); }
uvec2 qry_tile_corner(uint from) { return kQryTiled ? qry_packed_pixel(from) : uvec2(0u); }
bool qry_beyond(uvec2 pixel, uvec2 picture, uint to) {
  return any(greaterThanEqual(pixel, kQryTiled ? qry_packed_pixel(to) : picture));
}

#endif
