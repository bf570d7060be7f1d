// SPDX-License-Identifier: Apache-2.0
// traverse.glsl - the exact walk of a ray through a world: the first set voxel it enters, however far, at any angle.
//
// A hierarchical DDA. The cell the ray is in is an integer; the pyramid's masks, the brick's octants and their aligned 2x2x2 blocks
// say how large an empty cube around it is (512, 256, ... 8, 4, 2, 1 voxels), and the ray goes to that cube's exit in one step.
// A brick is asked for only where its pyramid bit is set, and found by counting bits.
//
// Why nothing is stepped over:
//  * The exit of a cube is computed from its integer planes each time, never accumulated.
//  * After a step the stepped axis' coordinate is the plane's; the others come from the exit point and are clamped to the cube that
//    was left and to not going back: rounding can put the ray into a neighbour only where it passes within rounding of an edge, and
//    the face by which a voxel is entered always has the cell before it on its other side.
//  * A float has 24 bits and the world needs 14 for the integer part alone. So places are taken in a frame whose corner is a multiple of
//    512 voxels near the ray; where the ray enters a frame is found anew from where the ray began, right to the frame's unit, 1/8192
//    voxel (shadows and light from around: 1024 and 1/4096). The depth of a hit is computed anew from the ray and the plane that was entered.
//  * A direction component of 0 (or below 1e-20, which moves less than 1e-15 voxel over the world) is walked as 1e-20: its planes are
//    farther than any world, and no infinity times zero arises.
//
// Why it is fast: axes on which the ray falls are mirrored, so that every exit is through an upper plane. A place in the frame is a float
// between 1024 and 2048, so its bits, read as an integer, are the cell (above bit 13) and the fraction (below): no conversions, a cube's
// upper planes are the bits below its size set, and the highest bit in which the places before and after a step differ says which words
// must be read anew.
//
// Literature: J. Amanatides and A. Woo, "A Fast Voxel Traversal Algorithm for Ray Tracing", 1987; mirrored axes after J. Revelles, C. Urena
// and M. Lastra, "An Efficient Parametric Algorithm for Octree Traversal", 2000; places as mantissa bits after S. Laine and T. Karras,
// "Efficient Sparse Voxel Octrees", 2010; aligned 2x2x2 blocks tested by one mask after the public notes on 64-bit bricks; exact sums and
// products after T. J. Dekker, "A Floating-Point Technique", 1971.
#ifndef QRY_TRAVERSE_GLSL
#define QRY_TRAVERSE_GLSL

#include "shaders/library/world.glsl"
#include "shaders/shared/constant_ids.h"
#include "shaders/shared/course.h"

layout(constant_id = QRY_ID_COUNT) const bool kQryCount = true;          // steps and sectors are counted; a pipeline that does not ask for them pays nothing
layout(constant_id = QRY_ID_STOP_AT_BRICKS) const bool kQryStopAtBricks = false;  // the first brick's pyramid bit ends the ray: the ceiling in the benchmark

layout(constant_id = QRY_ID_INSIDE) const bool kQryInside = false;        // rays start inside the bounds of what is set, at t = 0
layout(constant_id = QRY_ID_IGNORES) const bool kQryIgnores = false;       // `ignore` is heeded
layout(constant_id = QRY_ID_FUSED) const bool kQryFused = false;         // fma() rounds once: every GPU's does, software drivers' may not

struct QryHit {
  float t;      // along the ray; < 0: nothing
  ivec3 voxel;  // biased
  uint face;    // 2*axis + (1 if entered through the + side); for a ray that starts inside: the side it looks away from
  uint brick;   // pool index
  uint steps;
  uint sectors;  // that the hash grid reads to find the brick that was hit
};

const float kQryNotStepped = -1.0, kQryNewFrame = -2.0;
const int kQryMirrorOffset = 2048;   // mirrored cells start here, so that none is negative; a multiple of the frame's 512
// Rays that start inside (shadows, light from around, what glass and mirrors show) have frames twice as large, and units with them.
const uint kQryFraction = kQryInside ? 12u : 13u;   // bits of a place below its cell
const uint kQryVoxel = 1u << kQryFraction;          // one voxel in the bits of a place
const float kQryUnit = kQryInside ? 1.0 / 4096.0 : 1.0 / 8192.0;
const float kQryFrame = kQryInside ? 2048.0 : 1024.0;    // the frame's corner as a place
const uint kQryFrameShift = 22u - kQryFraction;
const float kQryFrameStep = kQryInside ? 1024.0 : 512.0;  // frames' corners are multiples of this: 2^kQryFrameShift
const float kQryFrameMargin = 8.0;   // at least so far behind a ray that enters the frame, but for rounding
const float kQryFrameEnd = kQryInside ? 4088.0 : 2040.0;  // the ray leaves the frame: the largest cube around any place before ends 8 farther
vec3 qry_frame_numbers() { return (vec3(kVoxelBias) + float(kQryMirrorOffset)) / kQryFrameStep; }  // of the frame at the middle of the world
const uint kQryStart = 0xFFFFFFFFu;  // of `changed`: nothing is known yet

// t*d, and what its rounding lost. `precise`, or a compiler may simplify the errors away.
vec3 qry_product(float t, vec3 d, out vec3 error) {
  precise vec3 p = t * d;
  if (kQryFused) {
    precise vec3 lost = fma(vec3(t), d, -p);
    error = lost;
  } else {  // products of 12-bit halves are exact
    precise float tc = 4097.0 * t;
    precise float th = tc - (tc - t);
    precise float tl = t - th;
    precise vec3 dc = 4097.0 * d;
    precise vec3 dh = dc - (dc - d);
    precise vec3 dl = d - dh;
    precise vec3 lost = ((th * dh - p) + (th * dl + tl * dh)) + tl * dl;
    error = lost;
  }
  return p;
}

// What a ray's direction alone decides.
struct QryCourse {
  vec3 a, inv;     // the direction in the mirrored world, no component below kQryFlat; 1 / a
  vec3 low, high;  // the root's box there
  bvec3 falling;   // the axes that are mirrored
  uint flip;       // the same as bits to be flipped (course.h)
};
bvec3 qry_falling(uint flip) { return bvec3((flip & 1u) != 0u, (flip & 4u) != 0u, (flip & 16u) != 0u); }

QryCourse qry_course(const QryWorldRoot root, vec3 d) {
  const vec3 box_low = vec3(root.box_low[0], root.box_low[1], root.box_low[2]), box_high = vec3(root.box_high[0], root.box_high[1], root.box_high[2]);
  QryCourse course;
  course.falling = lessThan(d, vec3(0.0));
  course.a = max(abs(d), vec3(kQryFlat));
  course.inv = 1.0 / course.a;
  course.low = mix(box_low, -box_high, course.falling);
  course.high = mix(box_high, -box_low, course.falling);
  // The number by way of floats, which hold it: a compiler that sees through it keeps its three parts in registers beside it.
  course.flip = uint((course.falling.x ? float(kQryFlipX) : 0.0) + (course.falling.y ? float(kQryFlipY) : 0.0) + (course.falling.z ? float(kQryFlipZ) : 0.0));
  return course;
}

// The same where the host has found it for all rays.
QryCourse qry_course_one_way(const QryWorldRoot root, const QryOneWay one_way) {
  const vec3 box_low = vec3(root.box_low[0], root.box_low[1], root.box_low[2]), box_high = vec3(root.box_high[0], root.box_high[1], root.box_high[2]);
  QryCourse course;
  course.falling = qry_falling(one_way.flip);
  course.a = vec3(one_way.a[0], one_way.a[1], one_way.a[2]);
  course.inv = vec3(one_way.inv[0], one_way.inv[1], one_way.inv[2]);
  course.low = mix(box_low, -box_high, course.falling);
  course.high = mix(box_high, -box_low, course.falling);
  course.flip = one_way.flip;
  return course;
}

// What is known of the way down to the ray's cell, and the ray's frame.
struct QryWalk {
  uvec3 level3, region, chunk;  // pyramid nodes
  uvec2 octant;
  uint64_t masks;       // of the brick
  uint frame;           // mirrored cell >> kQryFrameShift of the frame's corner: x | y << 8 | z << 16
};

// Bit of the cell of 2^shift voxels in its node's or octant's mask; bits above the sixth are rubbish.
uint qry_index(uvec3 v, uint shift, uint flip) {
  const uint x = v.x >> (kQryFraction + shift), y = v.y >> (kQryFraction - 2u + shift), z = v.z >> (kQryFraction - 4u + shift);
  return bitfieldInsert(z, bitfieldInsert(y, x, 0, 2), 0, 4) ^ flip;
}
// The aligned 2x2x2 block of a mask that `index` is in, as bits 0, 1, 4, 5, 16, 17, 20 and 21.
uint qry_block(uvec2 mask, uint index) { return uint(packUint2x32(mask) >> (index & 42u)); }
bool qry_has(uint block, uint index) { return (block & (1u << (index & 21u))) != 0u; }
// Bits below the size of the empty cube of `voxels`, or twice that, around a cell whose bit is not set.
uint qry_empty(uint block, uint index, uint voxels) { return ((block & 0x00330033u) != 0u ? voxels : 2u * voxels) * kQryVoxel - 1u; }

// Reads what is new at the place v, `changed` being the bits in which it differs from the one before.
// 0: v is a set voxel; else the bits below the size of an empty aligned cube around it.
uint qry_descend(const QryWorldRoot root, uint flip, uvec3 v, uint changed, inout QryWalk walk) {
  if (changed >= 4u * kQryVoxel) {
    if (changed >= 8u * kQryVoxel) {
      if (changed >= 32u * kQryVoxel) {
        if (changed >= 128u * kQryVoxel) {
          if (changed >= 512u * kQryVoxel) {
            const uvec3 frame = uvec3(walk.frame, walk.frame >> 8, walk.frame >> 16) & 255u;
            const uvec3 cell = ((frame << (kQryFrameShift - 9u)) + ((v >> (kQryFraction + 9u)) & ((2u << (kQryFrameShift - 9u)) - 1u)) - 4u);
            if (cell.x >= 32u || cell.y >= 16u || cell.z >= 32u) return 512u * kQryVoxel - 1u;  // beyond the world, whose extent is a multiple
            walk.level3 = qry_node(root, (cell.x | (cell.y << 5) | (cell.z << 9)) ^ ((flip >> 6) & 16383u));
            if ((walk.level3.x | walk.level3.y) == 0u) return 512u * kQryVoxel - 1u;
          }
          const uint index = qry_index(v, 7u, flip), block = qry_block(walk.level3.xy, index);
          if (!qry_has(block, index)) return qry_empty(block, index, 128u);
          walk.region = qry_child(root, walk.level3, index);
        }
        const uint index = qry_index(v, 5u, flip), block = qry_block(walk.region.xy, index);
        if (!qry_has(block, index)) return qry_empty(block, index, 32u);
        walk.chunk = qry_child(root, walk.region, index);
      }
      const uint index = qry_index(v, 3u, flip), block = qry_block(walk.chunk.xy, index);
      if (!qry_has(block, index)) return qry_empty(block, index, 8u);
      if (kQryStopAtBricks) return 0u;
      walk.masks = qry_mask_address(root, qry_chunk_brick(root, walk.chunk, index));
    }
    const uint octant = (((v.x >> (kQryFraction + 2u)) & 1u) | ((v.y >> (kQryFraction + 1u)) & 2u) | ((v.z >> kQryFraction) & 4u)) ^ (flip >> 20);
    walk.octant = QryWords(walk.masks).at[octant];
    if ((walk.octant.x | walk.octant.y) == 0u) return 4u * kQryVoxel - 1u;
  }
  const uint index = qry_index(v, 0u, flip), block = qry_block(walk.octant, index);
  return qry_has(block, index) ? 0u : qry_empty(block, index, 1u);
}

// The mirrored cell of v.
ivec3 qry_mirrored_cell(uint frame, uvec3 v) {
  return ivec3(((uvec3(frame, frame >> 8, frame >> 16) & 255u) << kQryFrameShift) + ((v >> kQryFraction) & ((2u << kQryFrameShift) - 1u))) - kQryMirrorOffset;
}

// eye + t*a - corner, right to the last bit. The corner is a multiple of 512.
vec3 qry_from_corner(vec3 eye, vec3 a, float t, vec3 corner) {
  precise vec3 gap = eye - corner;
  precise vec3 back = gap + corner;
  precise vec3 lost = eye - back;
  if (kQryFused) {
    precise vec3 there = fma(vec3(t), a, gap) + lost;
    return there;
  }
  vec3 p_lost;
  precise vec3 p = qry_product(t, a, p_lost);
  precise vec3 there = (p + gap) + (p_lost + lost);
  return there;
}

// A ray on its way, in the mirrored world: coordinates of axes on which it falls are negated.
struct QryWay {
  vec3 eye;           // where it comes from
  vec3 at;            // its place where it entered its frame
  uvec3 v;            // the cell it is in, as the bits of a place
  float start, stop;  // distances at which it begins and ends
  float base;         // the distance at which it entered its frame
  float s;            // how far it has gone since; or kQryNotStepped, or kQryNewFrame - axis of the plane by which it came into its cell
  float end;          // where, in s, it leaves the frame or ends
  uint changed;       // the bits in which v differs from the cell before
};

float qry_frame_end(const QryCourse course, const QryWay way) {
  const vec3 to_end = (kQryFrameEnd - way.at) * course.inv;
  return min(min(to_end.x, min(to_end.y, to_end.z)), way.stop - way.base);
}

// Puts the ray from o on its course, t in [t_min, t_max], to its start. False: it meets nothing.
bool qry_begin(const QryWorldRoot root, vec3 o, const QryCourse course, float t_min, float t_max, out QryWay way, out QryWalk walk) {
  way.eye = mix(o, -o, course.falling);
  way.s = kQryNotStepped;
  way.changed = kQryStart;

  // Clip to the bounds, two voxels larger than what they hold so that float error here decides nothing.
  const vec3 room = course.high - way.eye, leave = room * course.inv;
  way.stop = min(min(t_max, 1e9), min(leave.x, min(leave.y, leave.z)));  // beyond 1e9: along a flat axis
  way.start = kQryInside ? 0.0 : max(0.0, t_min);
  float entry = -1.0;
  if (!kQryInside) {
    const vec3 enter = (course.low - way.eye) * course.inv;
    entry = max(enter.x, max(enter.y, enter.z));
    way.start = max(way.start, entry);
  }
  if (!(way.start <= way.stop) || root.brick_count == 0u) return false;
  // Who starts 1/64 voxel off the bounds and goes outwards is through at once.
  if (kQryInside && min(room.x, min(room.y, room.z)) < 2.0 - 1.0 / 128.0) return false;

  const vec3 about = kQryInside ? way.eye : fma(vec3(way.start), course.a, way.eye);
  const vec3 number = floor(fma(about, vec3(1.0 / kQryFrameStep), vec3(-kQryFrameMargin / kQryFrameStep))), corner = kQryFrameStep * number;
  walk.frame = uint(int(fma(number.z, 65536.0, fma(number.y, 256.0, number.x)) + dot(qry_frame_numbers(), vec3(1.0, 256.0, 65536.0))));
  way.at = (kQryInside ? way.eye - corner : qry_from_corner(way.eye, course.a, way.start, corner)) + kQryFrame;
  if (!kQryInside && way.start == 0.0) {  // in the cell that holds o, to the last bit; below its upper planes
    const vec3 cell = floor(o), cell_low = mix(cell, -1.0 - cell, course.falling) - corner + kQryFrame;
    way.at = clamp(way.at, cell_low, cell_low + (1.0 - kQryUnit));
  }
  way.v = floatBitsToUint(way.at);
  way.base = way.start;
  way.end = qry_frame_end(course, way);
  if (!kQryInside && way.start > 0.0 && way.start == entry) {
    // On to the tight box, as by a step: nobody needs to be asked about the two voxels before it. Who starts farther on has passed them.
    const vec3 tight = course.low + 2.0 - corner + kQryFrame, to_tight = (tight - way.at) * course.inv;
    const float s = max(to_tight.x, max(to_tight.y, to_tight.z));
    if (s > 0.0 && s < way.end) {
      way.s = s;
      way.v = floatBitsToUint(max(fma(vec3(s), course.a, way.at), tight));
    }
  }
  return true;
}

// The voxel that the ray is in, biased, and its brick.
ivec3 qry_voxel(const QryCourse course, const QryWay way, const QryWalk walk) {
  return qry_mirrored_cell(walk.frame, way.v) ^ mix(ivec3(0), kVoxelExtent - 1, qry_falling(course.flip));
}
uint qry_brick(const QryWorldRoot root, const QryCourse course, const QryWay way, const QryWalk walk) {
  return qry_chunk_brick(root, walk.chunk, qry_index(way.v, 3u, course.flip));
}

// Goes to the first set voxel from o on a course, t in [t_min, t_max]. False: there is none. Voxels of material `ignore` count as empty where kQryIgnores.
bool qry_walk(const QryWorldRoot root, vec3 o, const QryCourse course, float t_min, float t_max, uint ignore, out QryWay way, out QryWalk walk, inout uint steps) {
  if (!qry_begin(root, o, course, t_min, t_max, way, walk)) return false;
  if (kQryCount && way.s > 0.0) ++steps;  // the one to the tight box
  bool found = false;
  for (;;) {
    if (kQryCount) ++steps;
    uint below = qry_descend(root, course.flip, way.v, way.changed, walk);
    if (below == 0u) {
      found = true;
      if (!kQryIgnores) break;
      if (qry_material(root, qry_brick(root, course, way, walk), qry_voxel(course, way, walk)) != ignore) break;
      found = false;
      below = kQryVoxel - 1u;
    }

    // To the exit of the cube: its upper planes are one unit above `high`.
    const uvec3 high = way.v | below;
    const vec3 plane = uintBitsToFloat(high) + kQryUnit, to_plane = (plane - way.at) * course.inv;
    way.s = min(to_plane.x, min(to_plane.y, to_plane.z));
    const bool by_x = to_plane.x == way.s, by_y = !by_x && to_plane.y == way.s;
    const bvec3 by = bvec3(by_x, by_y, !by_x && !by_y);
    const uvec3 next = floatBitsToUint(mix(min(max(fma(vec3(way.s), course.a, way.at), uintBitsToFloat(way.v)), uintBitsToFloat(high)), plane, by));
    if (!(way.s < way.end)) {
      way.base += way.s;
      if (!(way.base <= way.stop)) break;
      // The next frame: one farther on each axis on which the ray is that far. Its place there is found anew.
      const bvec3 far = greaterThanEqual(uintBitsToFloat(next), vec3(kQryFrame + kQryFrameStep + kQryFrameMargin));
      way.v = floatBitsToUint(uintBitsToFloat(next) - mix(vec3(0.0), vec3(kQryFrameStep), far));
      walk.frame += (far.x ? 1u : 0u) + (far.y ? 256u : 0u) + (far.z ? 65536u : 0u);
      const vec3 corner = kQryFrameStep * (vec3(uvec3(walk.frame, walk.frame >> 8, walk.frame >> 16) & 255u) - qry_frame_numbers());
      way.at = min(qry_from_corner(way.eye, course.a, way.base, corner) + kQryFrame, uintBitsToFloat(way.v | (kQryVoxel - 1u)));
      way.end = qry_frame_end(course, way);
      way.changed = kQryStart;
      way.s = kQryNewFrame - (by.x ? 0.0 : by.y ? 1.0 : 2.0);
      continue;
    }
    way.changed = (next.x ^ way.v.x) | (next.y ^ way.v.y) | (next.z ^ way.v.z);
    way.v = next;
  }
  return found;
}

// Whether there is a set voxel on the ray from o for t in [0, t_max].
bool qry_blocked(const QryWorldRoot root, vec3 o, const QryCourse course, float t_max) {
  QryWay way;
  QryWalk walk;
  uint steps = 0u;
  return qry_walk(root, o, course, 0.0, t_max, 0u, way, walk, steps);
}

// First set voxel on o + t*d for t in [t_min, t_max]. Voxels of material `ignore` count as empty where kQryIgnores.
QryHit qry_traverse(const QryWorldRoot root, vec3 o, vec3 d, float t_min, float t_max, uint ignore) {
  QryHit hit;
  hit.t = -1.0;
  hit.voxel = ivec3(0);
  hit.face = 0u;
  hit.brick = kQryReservedValue;
  hit.steps = 0u;
  hit.sectors = 0u;
  const QryCourse course = qry_course(root, d);
  QryWay way;
  QryWalk walk;
  if (!qry_walk(root, o, course, t_min, t_max, ignore, way, walk, hit.steps)) return hit;

  const ivec3 mirrored = qry_mirrored_cell(walk.frame, way.v);
  hit.voxel = qry_voxel(course, way, walk);
  if (!kQryStopAtBricks) hit.brick = qry_brick(root, course, way, walk);
  if (kQryCount) qry_find_brick(root, qry_key_of(hit.voxel), hit.sectors);
  // It was entered through the plane stepped to last: the one whose distance, computed as it was then, is s.
  const vec3 stepped = (uintBitsToFloat(way.v & ~(kQryVoxel - 1u)) - way.at) * course.inv;
  uint axis = stepped.x == way.s ? 0u : stepped.y == way.s ? 1u : 2u;
  if (way.s == kQryNotStepped) axis = course.a.x >= course.a.y && course.a.x >= course.a.z ? 0u : course.a.y >= course.a.z ? 1u : 2u;
  else if (way.s < 0.0) axis = uint(kQryNewFrame - way.s);
  hit.face = 2u * axis + ((course.flip >> (2u * axis)) & 1u);
  // The distance of that plane, once more and exactly: what the difference loses is kept.
  const float plane = float(axis == 0u ? mirrored.x - kVoxelBias.x : axis == 1u ? mirrored.y - kVoxelBias.y : mirrored.z - kVoxelBias.z);
  const float eye = axis == 0u ? way.eye.x : axis == 1u ? way.eye.y : way.eye.z, inv = axis == 0u ? course.inv.x : axis == 1u ? course.inv.y : course.inv.z;
  precise float gap = plane - eye;
  precise float part = gap - plane;
  precise float lost = (plane - (gap - part)) - (eye + part);
  hit.t = way.s == kQryNotStepped ? way.start : max(way.start, fma(gap, inv, lost * inv));
  return hit;
}

#endif
