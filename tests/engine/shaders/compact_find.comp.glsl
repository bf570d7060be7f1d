#version 460
// SPDX-License-Identifier: Apache-2.0
// compact_find.comp.glsl - keys -> (value, sectors read) of a compact table, for the conformance tests against
// hashgrid::find.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_GOOGLE_include_directive : require

#define QRY_GLSL
#include "hashgrid/compact/layout.h"
#include "shaders/library/compact_find.glsl"
#include "tests/engine/shaders/find_push.h"

layout(local_size_x = 64) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer QryKeys { uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) writeonly buffer QryFound { uvec2 at[]; };
layout(push_constant, scalar) uniform QryPush { QryCompactFindPush push; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= push.count) return;
  uint sectors;
  const uint value = qry_compact_find(push.grid_words, push.table, QryKeys(push.keys).at[i], sectors);
  QryFound(push.found).at[i] = uvec2(value, sectors);
}
