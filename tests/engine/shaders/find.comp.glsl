#version 460
// SPDX-License-Identifier: Apache-2.0
// find.comp.glsl - keys -> (value, sectors read): only the look-up, for the conformance tests against hashgrid::find.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/world.glsl"
#include "tests/engine/shaders/find_push.h"

layout(local_size_x = 64) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) writeonly buffer QryFound { uvec2 at[]; };
layout(push_constant, scalar) uniform QryPush { QryFindPush push; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= push.count) return;
  const QryWorldRoot root = QryRootRef(push.root).root;
  uint sectors;
  const uint value = qry_grid_find(root.grid_words, root.grid_pages, QryUints(push.keys).at[i], sectors);
  QryFound(push.found).at[i] = uvec2(value, sectors);
}
