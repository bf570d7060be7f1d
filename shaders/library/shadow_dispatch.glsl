// SPDX-License-Identifier: Apache-2.0
// shadow_dispatch.glsl - which pixel an invocation of a pass of shadow rays answers for, where a driver begins
// workgroups in their order.
#ifndef QRY_SHADOW_DISPATCH_GLSL
#define QRY_SHADOW_DISPATCH_GLSL

#include "shaders/shared/constant_ids.h"

// What is long should be begun early, and what is begun last be short, so that few workgroups are left to wait for at
// the end. By columns: from the middle to both sides in turn, a workgroup's x being its row then and y its column's
// turn. Else by rows: from the middle up, and then from the middle down. The host says which
// (engine/render/shadow_order.hpp). `group_size`: known after a workgroup's layout alone.
layout(constant_id = QRY_ID_BY_COLUMNS) const bool kQryByColumns = false;

uvec2 qry_shadow_pixel(uvec2 group_size) {
  const uint turn = gl_WorkGroupID.y, middle = gl_NumWorkGroups.y >> 1;
  const uvec2 group =
      kQryByColumns ? uvec2((turn & 1u) != 0u ? middle - 1u - (turn >> 1) : middle + (turn >> 1), gl_WorkGroupID.x)
                    : uvec2(gl_WorkGroupID.x, turn < middle ? middle - 1u - turn : turn);
  return group * group_size + gl_LocalInvocationID.xy;
}

#endif
