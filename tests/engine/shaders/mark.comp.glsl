#version 460
// SPDX-License-Identifier: Apache-2.0
// mark.comp.glsl - adds one to the word of each place in a list, for a dispatch that the device itself has written.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_GOOGLE_include_directive : require

#define QRY_GLSL 1
#include "tests/engine/shaders/mark.h"

layout(local_size_x = 64) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer QryMarkWords { uint at[]; };
layout(push_constant, scalar) uniform QryPush { QryMarkPush push; };

void main() {
  const uint i = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 64u + gl_LocalInvocationIndex;
  if (i < QryMarkWords(push.number).at[0]) atomicAdd(QryMarkWords(push.marks).at[QryMarkWords(push.list).at[i]], 1u);
}
