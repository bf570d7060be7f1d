#version 460
// SPDX-License-Identifier: Apache-2.0
// copy_words.comp.glsl - a list copied by threads, 16 bytes each: what a pass can reach that reads and writes each word
// once. vkCmdCopyBuffer may go another way, which is slower (bench/lists/scan.cpp).
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

#define QRY_GLSL 1
#include "bench/lists/shaders/copy_words.h"

layout(local_size_x = kQryCopyGroup) in;
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer QryQuads { uvec4 at[]; };
layout(push_constant, scalar) uniform QryPush { QryCopyPush push; };

void main() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  const uint quad = group * kQryCopyGroup + gl_LocalInvocationIndex;
  QryQuads(push.to).at[quad] = QryQuads(push.from).at[quad];
}
