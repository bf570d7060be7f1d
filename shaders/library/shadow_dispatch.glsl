// SPDX-License-Identifier: Apache-2.0
// shadow_dispatch.glsl - the pixel of each invocation in a pass of shadow rays, for drivers that start workgroups in
// order.
#ifndef QRY_SHADOW_DISPATCH_GLSL
#define QRY_SHADOW_DISPATCH_GLSL

#include "shaders/shared/constant_ids.h"

// Long work should start early and the last work should be short, so that few workgroups are left to wait for at the
// end. By columns, the order goes from the middle to both sides in turn. A workgroup's x is then its row, and its y is
// its column's turn. By rows, the order goes from the middle up, and then from the middle down. The host decides which
// (engine/render/shadow_order.hpp). `group_size` is a parameter because it is known only after a workgroup's layout.
layout(constant_id = QRY_ID_BY_COLUMNS) const bool kQryByColumns = false;

uvec2 qry_shadow_pixel(uvec2 group_size) {
  const uint turn = gl_WorkGroupID.y, middle = gl_NumWorkGroups.y >> 1;
  const uvec2 group =
      kQryByColumns ? uvec2((turn & 1u) != 0u ? middle - 1u - (turn >> 1) : middle + (turn >> 1), gl_WorkGroupID.x)
                    : uvec2(gl_WorkGroupID.x, turn < middle ? middle - 1u - turn : turn);
  return group * group_size + gl_LocalInvocationID.xy;
}

#endif
