// SPDX-License-Identifier: Apache-2.0
// beam.glsl - computes how far a whole tile of pixels sees nothing: the depth at which the first brick of its frustum
// begins.
//
// All rays of a tile start at one point, and their directions are in a box. So six products bound the depths at which
// any of them may enter and leave a cube, as for one ray. A subgroup tests a node's 64 children together, each thread
// its own. It descends into the nearest child that the tile may meet, down to bricks. Then it tries all other children
// that begin nearer than the brick it found. A few nodes decide a tile, because most children are ruled out at once.
// The result is conservative: it is never more than the depth of the first voxel.
//
// Best first over a hierarchy after N. Roussopoulos, S. Kelley and F. Vincent, "Nearest Neighbor Queries", 1995;
// directions as intervals after S. Boulos, I. Wald and P. Shirley, "Geometric and Arithmetic Culling Methods for Entire
// Ray Packets", 2006.
//
// The including shader's workgroups are whole subgroups of kQryBeamLanes threads. Each subgroup computes one tile.
#ifndef QRY_BEAM_GLSL
#define QRY_BEAM_GLSL

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require

#include "shaders/library/world.glsl"
#include "shaders/shared/constant_ids.h"
#include "shaders/shared/frame.h"

// The threads of a subgroup: a power of two, at most 64.
layout(constant_id = QRY_ID_BEAM_LANES) const uint kQryBeamLanes = 32u;
// The number of children that a thread tests: those with its number, its number + kQryBeamLanes, ...
const uint kQryBeamOwn = 64u / kQryBeamLanes;

const uint kQryBeamVisits =
    16u;  // the most nodes of levels 1 and 2 to visit; after that the nearest one left is the answer
const uint kQryBeamNone = 0xFFFFFFFFu;
const float kQryBeamNothing = 1e30;

// The depth of an axis' plane, in voxels from the world's corner, is plane * by + from. It is that of the tile's
// fastest ray to near planes and of its slowest ray to far planes. A child at (x, y, z) of its node, 0 to 3, has the
// near planes (x, y, z) + near and the far planes (x, y, z) + 1 - near.
struct QryBeam {
  vec3 enter_by, enter_from, leave_by, leave_from, near;
};

// The keys of the node's children that a thread tests: the depth, with the child's number in the lowest six bits.
// kQryBeamNone means no child, or one that is done.
struct QryBeamKeys {
  uint own[kQryBeamOwn];
};

vec3 qry_beam_child(uint child) { return vec3(child & 3u, (child >> 2) & 3u, child >> 4); }

// The key of a node's child of `size` voxels if the tile may meet it, else kQryBeamNone. `corner` is the node's lowest
// corner.
uint qry_beam_key(const QryBeam beam, uint child, vec3 corner, float size) {
  const vec3 at = qry_beam_child(child);
  const vec3 enter = fma(fma(at + beam.near, vec3(size), corner), beam.enter_by, beam.enter_from);
  const vec3 leave = fma(fma(at + (1.0 - beam.near), vec3(size), corner), beam.leave_by, beam.leave_from);
  const float first = max(max(enter.x, enter.y), max(enter.z, 0.0)), last = min(leave.x, min(leave.y, leave.z));
  return first <= last ? (floatBitsToUint(first) & ~63u) | child : kQryBeamNone;
}

uint qry_beam_lane_child(uint i) { return gl_SubgroupInvocationID | (i * kQryBeamLanes); }

// Computes the keys of the children in a node's mask.
void qry_beam_visit(const QryBeam beam, uvec2 mask, vec3 corner, float size, out QryBeamKeys keys) {
  for (uint i = 0u; i < kQryBeamOwn; ++i) {
    const uint child = qry_beam_lane_child(i);
    keys.own[i] = ((child < 32u ? mask.x : mask.y) & (1u << (child & 31u))) != 0u
                      ? qry_beam_key(beam, child, corner, size)
                      : kQryBeamNone;
  }
}

uint qry_beam_own_nearest(const QryBeamKeys keys) {
  uint nearest = keys.own[0];
  for (uint i = 1u; i < kQryBeamOwn; ++i) nearest = min(nearest, keys.own[i]);
  return nearest;
}

void qry_beam_done(inout QryBeamKeys keys, uint key) {
  for (uint i = 0u; i < kQryBeamOwn; ++i)
    if (keys.own[i] == key) keys.own[i] = kQryBeamNone;
}

// The minimum of `best` and the depths of the bricks in the block of 4x4x4 cells of 512 voxels at `block`.
uint qry_beam_block(const QryWorldRoot root, const QryBeam beam, vec3 block, uint best, inout uint visits) {
  QryBeamKeys cells, level2, level1, bricks;
  for (uint i = 0u; i < kQryBeamOwn; ++i) {
    const uint child = qry_beam_lane_child(i);
    const ivec3 at = (ivec3(block) >> 9) + ivec3(qry_beam_child(child));
    const bool in_world = at.x < (kVoxelExtent.x >> 9) && at.y < (kVoxelExtent.y >> 9) && at.z < (kVoxelExtent.z >> 9);
    const uvec2 mask = qry_level3(root, in_world ? uint(at.x | (at.y << 5) | (at.z << 9)) : 0u).xy;
    cells.own[i] = in_world && (mask.x | mask.y) != 0u ? qry_beam_key(beam, child, block, 512.0) : kQryBeamNone;
    level2.own[i] = level1.own[i] = kQryBeamNone;
  }
  for (;;) {
    const uint cell = subgroupMin(qry_beam_own_nearest(cells));
    if (cell >= best) return best;
    qry_beam_done(cells, cell);
    const vec3 cell_corner = fma(qry_beam_child(cell & 63u), vec3(512.0), block);
    const uvec3 cell_at = uvec3(cell_corner) >> 9u;
    const uvec3 cell_node = qry_level3(root, cell_at.x | (cell_at.y << 5) | (cell_at.z << 9));
    qry_beam_visit(beam, cell_node.xy, cell_corner, 128.0, level2);
    for (;;) {
      const uint next2 = subgroupMin(qry_beam_own_nearest(level2));
      if (next2 >= best) break;
      qry_beam_done(level2, next2);
      const uvec3 level2_node = qry_child(root, cell_node, next2 & 63u);
      const vec3 level2_corner = fma(qry_beam_child(next2 & 63u), vec3(128.0), cell_corner);
      qry_beam_visit(beam, level2_node.xy, level2_corner, 32.0, level1);
      ++visits;
      for (;;) {
        const uint next1 = subgroupMin(qry_beam_own_nearest(level1));
        if (next1 >= best) break;
        if (visits >= kQryBeamVisits) {  // nothing left begins nearer than this, so the search ends
          best = min(best, subgroupMin(min(qry_beam_own_nearest(cells),
                                           min(qry_beam_own_nearest(level2), qry_beam_own_nearest(level1)))));
          break;
        }
        qry_beam_done(level1, next1);
        const uvec3 level1_node = qry_child(root, level2_node, next1 & 63u);
        qry_beam_visit(beam, level1_node.xy, fma(qry_beam_child(next1 & 63u), vec3(32.0), level2_corner), 8.0, bricks);
        best = min(best, subgroupMin(qry_beam_own_nearest(bricks)));
        ++visits;
      }
    }
  }
}

// `low` and `high` bound the directions of the tile's rays, of any length. The result is in units of that length: no
// ray o + t*d of the tile meets a set voxel at a smaller t. kQryBeamNothing means that no ray meets any voxel.
float qry_beam(const QryWorldRoot root, vec3 o, vec3 low, vec3 high) {
  const bvec3 rising = greaterThanEqual(low + high, vec3(0.0));
  const vec3 fastest = 1.0 / max(mix(-low, high, rising), vec3(1e-20)), slowest_direction = mix(-high, low, rising),
             slowest = 1.0 / max(slowest_direction, vec3(1e-20));
  // This margin is larger than the float error at this distance.
  const vec3 away = abs(o);
  const float margin = 0.05 + (max(away.x, max(away.y, away.z)) + float(kVoxelExtent.x)) * (1.0 / 1048576.0);
  // If a tile has rays in both directions of an axis, no ray leaves a cube on that axis.
  const bvec3 one_direction = greaterThan(slowest_direction, vec3(1e-20));
  const vec3 to_o = mix(-(o + vec3(kVoxelBias)), o + vec3(kVoxelBias), rising);
  QryBeam beam;
  beam.enter_by = mix(-fastest, fastest, rising);
  beam.enter_from = -(to_o + margin) * fastest;
  beam.leave_by = mix(vec3(0.0), mix(-slowest, slowest, rising), one_direction);
  beam.leave_from = mix(vec3(kQryBeamNothing), -(to_o - margin) * slowest, one_direction);
  beam.near = mix(vec3(1.0), vec3(0.0), rising);

  const ivec3 first = ivec3(root.box_low[0], root.box_low[1], root.box_low[2]) + kVoxelBias + int(kQryBoxMargin);
  const ivec3 last = ivec3(root.box_high[0], root.box_high[1], root.box_high[2]) + kVoxelBias - int(kQryBoxMargin) - 1;
  if (last.x < first.x) return kQryBeamNothing;
  // If it is enough, there is one block of 4x4x4 cells of 512 voxels that starts at the bounds. Otherwise blocks are on
  // a grid of 2048 voxels. Those of 8192 x 8192 x 8192 voxels are searched at a time, the nearest first. One loop does
  // both, because a second copy of the search costs registers.
  const bool one = all(lessThan((last >> 9) - (first >> 9), ivec3(4)));
  const ivec2 low_part = first.xz >> 13, high_part = last.xz >> 13;
  ivec2 part = low_part;
  QryBeamKeys blocks;
  for (uint i = 0u; i < kQryBeamOwn; ++i) blocks.own[i] = kQryBeamNone;
  vec3 corner = vec3(0.0), block = vec3((first >> 9) << 9);
  uint best = kQryBeamNone, visits = 0u;
  for (;;) {
    if (!one) {
      const uint nearest = subgroupMin(qry_beam_own_nearest(blocks));
      if (nearest >= best) {
        if (part.y > high_part.y) break;
        corner = vec3(part.x << 13, 0.0, part.y << 13);
        for (uint i = 0u; i < kQryBeamOwn; ++i) {
          const uint child = qry_beam_lane_child(i);
          const ivec3 at = ivec3(corner) + (ivec3(qry_beam_child(child)) << 11);
          blocks.own[i] = any(greaterThan(at, last)) || any(lessThan(at + 2047, first))
                              ? kQryBeamNone
                              : qry_beam_key(beam, child, corner, 2048.0);
        }
        part = part.x < high_part.x ? ivec2(part.x + 1, part.y) : ivec2(low_part.x, part.y + 1);
        continue;
      }
      qry_beam_done(blocks, nearest);
      block = fma(qry_beam_child(nearest & 63u), vec3(2048.0), corner);
      visits = min(visits, kQryBeamVisits / 2u);
    }
    best = qry_beam_block(root, beam, block, best, visits);
    if (one) break;
  }
  return best == kQryBeamNone ? kQryBeamNothing : uintBitsToFloat(best & ~63u);
}

// The tile of the caller's subgroup. In the last workgroup it may be beyond the last tile.
uint qry_dispatch_tile() { return gl_WorkGroupID.x * (kQryBeamGroup / kQryBeamLanes) + gl_SubgroupID; }
uint qry_tiles_across(uint width) { return (width + kQryBeamTileWide - 1u) / kQryBeamTileWide; }
uint qry_tiles_down(uint height) { return (height + kQryBeamTileHigh - 1u) / kQryBeamTileHigh; }

float qry_tile_beam(const QryWorldRoot root, uint tile, vec3 o, vec3 forward, vec3 right, vec3 up, uvec2 picture) {
  // Subgroups with missing threads cannot test every child.
  if (gl_NumSubgroups * kQryBeamLanes != kQryBeamGroup) return 0.0;
  const uint across = qry_tiles_across(picture.x);
  const vec2 size = vec2(kQryBeamTileWide, kQryBeamTileHigh), corner = vec2(tile % across, tile / across) * size,
             scale = vec2(2.0, -2.0) / vec2(picture);
  vec3 low = vec3(1e30), high = vec3(-1e30);
  for (uint i = 0u; i < 4u; ++i) {
    const vec2 at = fma(corner + size * vec2(i & 1u, i >> 1), scale, vec2(-1.0, 1.0));
    const vec3 ray = forward + at.x * right + at.y * up;
    low = min(low, ray);
    high = max(high, ray);
  }
  return qry_beam(root, o, low, high);
}

#endif
