#version 460
// SPDX-License-Identifier: Apache-2.0
// pairs_find.comp.glsl - keys -> (value, sectors read) of a table of pairs in either locality, for the conformance
// tests against hashgrid::find. find.comp.glsl is the same for the table of a world.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_GOOGLE_include_directive : require

#define QRY_GLSL
#include "hashgrid/pairs/layout.h"
#include "shaders/library/grid_find.glsl"
#include "tests/engine/shaders/find_push.h"

layout(local_size_x = 64) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer QryKeys { uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) writeonly buffer QryFound { uvec2 at[]; };
layout(push_constant, scalar) uniform QryPush { QryPairsFindPush push; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= push.count) return;
  uint sectors;
  const uint value =
      qry_grid_find_local(push.grid_words, push.page_count, push.locality, QryKeys(push.keys).at[i], sectors);
  QryFound(push.found).at[i] = uvec2(value, sectors);
}
