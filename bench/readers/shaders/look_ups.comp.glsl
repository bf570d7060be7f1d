#version 460
// SPDX-License-Identifier: Apache-2.0
// look_ups.comp.glsl - random bricks of a world: the grid, a word of the mask, a material, as any pass reads them. What
// was found is added up. The same as in look_up() of bench/readers/look_ups.hpp.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/world.glsl"
#include "bench/readers/shaders/look_ups.h"

layout(local_size_x = kQryLookUpGroup) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer QrySums { uint at[]; };
layout(push_constant, scalar) uniform QryPush { QryLookUpPush push; };

shared uint found_here;

uint found_at(uint brick, uint at) {
  if (brick == kQryReservedValue) return 0u;
  const uint octant = at >> 6, bit = at & 63u;
  const uvec2 mask = QryWords(qry_mask_address(push.root, brick)).at[octant];
  const ivec3 voxel =
      ivec3((octant & 1u) << 2 | (bit & 3u), (octant >> 1 & 1u) << 2 | (bit >> 2 & 3u), (octant >> 2) << 2 | bit >> 4);
  const uint set = ((bit & 32u) != 0u ? mask.y : mask.x) >> (bit & 31u) & 1u;
  return qry_material(push.root, brick, voxel) + 256u * set;
}

void main() {
  if (gl_LocalInvocationIndex == 0u) found_here = 0u;
  barrier();
  // In rows of workgroups, of which some devices have at most 65,535.
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  const uint first = group * kQryLookUpGroup * kQryLookUpsEach + gl_LocalInvocationIndex;
  uint brick[kQryLookUpsEach], found = 0u, sectors;
  for (uint k = 0u; k < kQryLookUpsEach; ++k) {
    const uint i = first + k * kQryLookUpGroup;
    brick[k] = i < push.count ? qry_find_brick(push.root, qry_key_of_number(qry_looked_up(i, push.bricks)), sectors)
                              : kQryReservedValue;
  }
  for (uint k = 0u; k < kQryLookUpsEach; ++k) found += found_at(brick[k], qry_looked_at(first + k * kQryLookUpGroup));
  atomicAdd(found_here, found);
  barrier();
  if (gl_LocalInvocationIndex == 0u) atomicAdd(QrySums(push.sums).at[group & (kQryLookUpSums - 1u)], found_here);
}
