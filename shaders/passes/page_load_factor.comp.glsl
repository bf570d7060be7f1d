#version 460
// SPDX-License-Identifier: Apache-2.0
// page_load_factor.comp.glsl - counts the slots in use in each page of the grid, for the debug view of the load. A
// workgroup counts one page.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/shared/frame.h"
#include "shaders/library/frame_access.glsl"

layout(local_size_x = 64) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) writeonly buffer QryPageLoads { uint at[]; };

shared uint live;

void main() {
  const QryFrame frame = given.frame;
  const QryWorldRoot root = push.root;
  for (uint page = gl_WorkGroupID.x; page < root.grid_pages; page += gl_NumWorkGroups.x) {
    if (gl_LocalInvocationIndex == 0u) live = 0u;
    barrier();
    QryGridWords words = QryGridWords(root.grid_words + uint64_t(page) * uint64_t(kQryPageBytes));
    uint mine = 0u;
    for (uint slot = kQryStateSectors * kQrySlotsPerSector + gl_LocalInvocationIndex; slot < kQryPageWords; slot += 64u)
      // A free slot has the reserved key, whatever else it holds.
      mine += qry_slot(words, slot).x != kQryReservedKey ? 1u : 0u;
    atomicAdd(live, mine);
    barrier();
    if (gl_LocalInvocationIndex == 0u) QryPageLoads(frame.page_loads).at[page] = live;
    barrier();
  }
}
