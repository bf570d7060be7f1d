// SPDX-License-Identifier: Apache-2.0
// dispatch_pixel.glsl - which pixel an invocation of a pass over the picture answers for.
#ifndef QRY_DISPATCH_PIXEL_GLSL
#define QRY_DISPATCH_PIXEL_GLSL

#include "shaders/shared/constant_ids.h"

// Software drivers give each of their threads one stretch of a dispatch's workgroups, rows of the picture one after the
// other: whoever got the sky waits for whoever got the ground. There the rows of workgroups are read on a slant, so
// that every stretch sees all heights alike.
layout(constant_id = QRY_ID_SLANTED) const bool kQrySlanted = false;

uvec2 qry_dispatch_pixel(uvec2 group_size) {
  uvec2 group = gl_WorkGroupID.xy;
  if (kQrySlanted) group.y = (group.y + group.x * (gl_NumWorkGroups.y * 5u / 8u)) % gl_NumWorkGroups.y;
  return group * group_size + gl_LocalInvocationID.xy;
}

// A dispatch over a tile of the picture instead of all of it: from the pixel `from` up to, without, the pixel `to`, x
// in their lower 16 bits.
layout(constant_id = QRY_ID_TILED) const bool kQryTiled = false;

uvec2 qry_packed_pixel(uint packed) { return uvec2(packed & 0xFFFFu, packed >> 16); }
uvec2 qry_tile_corner(uint from) { return kQryTiled ? qry_packed_pixel(from) : uvec2(0u); }
bool qry_beyond(uvec2 pixel, uvec2 picture, uint to) {
  return any(greaterThanEqual(pixel, kQryTiled ? qry_packed_pixel(to) : picture));
}

#endif
