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
//    512 voxels near the ray; where the ray enters the frame is found in twice the precision and rounded to the frame's unit, 1/8192
//    voxel. The depth of a hit is computed anew from the ray and the plane that was entered.
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

#include "shaders/world.glsl"

layout(constant_id = 0) const bool kQryCount = true;          // steps and sectors are counted; a pipeline that does not ask for them pays nothing
layout(constant_id = 1) const bool kQryStopAtBricks = false;  // the first brick's pyramid bit ends the ray: the ceiling in the benchmark

layout(constant_id = 5) const bool kQryInside = false;        // rays start inside the bounds of what is set, at t = 0
layout(constant_id = 7) const bool kQryIgnores = false;       // `ignore` is heeded
layout(constant_id = 6) const bool kQryFused = false;         // fma() rounds once: every GPU's does, software drivers' may not

struct QryHit {
  float t;      // along the ray; < 0: nothing
  ivec3 voxel;  // biased
  uint face;    // 2*axis + (1 if entered through the + side); for a ray that starts inside: the side it looks away from
  uint brick;   // pool index
  uint steps;
  uint sectors;  // that the hash grid reads to find the brick that was hit
};

const float kQryNever = 1e30, kQryNotStepped = -1.0, kQryNewFrame = -2.0;
const int kQryMirrorOffset = 2048;   // mirrored cells start here, so that none is negative; a multiple of the frame's 512
const uint kQryVoxel = 1u << 13;     // one voxel in the bits of a place
const float kQryUnit = 1.0 / 8192.0;
const float kQryFrame = 1024.0;      // the frame's corner as a place
const float kQryFrameEnd = 2040.0;   // the ray leaves the frame: the largest cube around any place before ends at 2048
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

// o + t*d, its biased cell and its place in it, 0..1, right to the last bit.
void qry_place(vec3 o, vec3 d, float t, out ivec3 cell, out vec3 in_cell) {
  vec3 p_error;
  precise vec3 p = qry_product(t, d, p_error);
  precise vec3 sum = o + p;
  precise vec3 part = sum - o;
  precise vec3 sum_error = (o - (sum - part)) + (p - part);
  const vec3 whole = floor(sum);
  precise vec3 fraction = (sum - whole) + (sum_error + p_error);
  const vec3 carry = floor(fraction);
  cell = ivec3(whole) + ivec3(carry) + kVoxelBias;
  in_cell = fraction - carry;
}

// What is known of the way down to the ray's cell, and the ray's frame.
struct QryWalk {
  uvec3 level3, region, chunk;  // pyramid nodes
  uvec2 octant;
  uint64_t masks;       // of the brick
  uint flip;            // of bit indices: 3, 12 and 48 for mirrored axes
  uint frame;           // mirrored cell >> 9 of the frame's corner: x | y << 8 | z << 16
};

// Bit of the cell of 2^shift voxels in its node's or octant's mask; bits above the sixth are rubbish.
uint qry_index(uvec3 v, uint shift, uint flip) {
  const uint x = v.x >> (13u + shift), y = v.y >> (11u + shift), z = v.z >> (9u + shift);
  return ((((x & 3u) | (y & ~3u)) & 15u) | (z & ~15u)) ^ flip;
}
uint qry_half_of(uvec2 word, uint index) { return (index & 32u) != 0u ? word.y : word.x; }
bool qry_has(uint word_half, uint index) { return (word_half & (1u << (index & 31u))) != 0u; }
bool qry_has_near(uint word_half, uint index) { return (word_half & (0x00330033u << (index & 10u))) != 0u; }

// Bits below the size of the empty cube of `voxels`, or twice that, around the cell whose bit is not set in its mask.
uint qry_empty(uint word_half, uint index, uint voxels) { return (qry_has_near(word_half, index) ? voxels : 2u * voxels) * kQryVoxel - 1u; }

// 0: v is set in its octant.
uint qry_look(uvec2 octant, uvec3 v, uint flip) {
  const uint index = qry_index(v, 0u, flip), bits = qry_half_of(octant, index);
  return qry_has(bits, index) ? 0u : qry_empty(bits, index, 1u);
}

// Reads what is new at the place v, `changed` being the bits in which it differs from the one before.
// 0: v is a set voxel; else the bits below the size of an empty aligned cube around it.
uint qry_descend(const QryWorldRoot root, uvec3 v, uint changed, inout QryWalk walk) {
  if (changed >= 4u * kQryVoxel) {
    if (changed >= 8u * kQryVoxel) {
      if (changed >= 32u * kQryVoxel) {
        if (changed >= 128u * kQryVoxel) {
          if (changed >= 512u * kQryVoxel) {
            const uvec3 mirror = uvec3((walk.flip & 1u) != 0u ? 31u : 0u, (walk.flip & 4u) != 0u ? 15u : 0u, (walk.flip & 16u) != 0u ? 31u : 0u);
            const uvec3 cell = ((uvec3(walk.frame, walk.frame >> 8, walk.frame >> 16) & 255u) + ((v >> 22u) & 1u) - 4u) ^ mirror;
            if (cell.x >= 32u || cell.y >= 16u || cell.z >= 32u) return 512u * kQryVoxel - 1u;  // beyond the world, whose extent is a multiple
            walk.level3 = qry_node(root, cell.x | (cell.y << 5) | (cell.z << 9));
            if ((walk.level3.x | walk.level3.y) == 0u) return 512u * kQryVoxel - 1u;
          }
          const uint index = qry_index(v, 7u, walk.flip), bits = qry_half_of(walk.level3.xy, index);
          if (!qry_has(bits, index)) return qry_empty(bits, index, 128u);
          walk.region = qry_child(root, walk.level3, index);
        }
        const uint index = qry_index(v, 5u, walk.flip), bits = qry_half_of(walk.region.xy, index);
        if (!qry_has(bits, index)) return qry_empty(bits, index, 32u);
        walk.chunk = qry_child(root, walk.region, index);
      }
      const uint index = qry_index(v, 3u, walk.flip), bits = qry_half_of(walk.chunk.xy, index);
      if (!qry_has(bits, index)) return qry_empty(bits, index, 8u);
      if (kQryStopAtBricks) return 0u;
      walk.masks = qry_mask_address(root, qry_chunk_brick(root, walk.chunk, index));
    }
    const uint octant = (((v.x >> 15) & 1u) | ((v.y >> 14) & 2u) | ((v.z >> 13) & 4u)) ^ ((walk.flip & 1u) | ((walk.flip >> 1) & 2u) | ((walk.flip >> 2) & 4u));
    walk.octant = QryWords(walk.masks).at[octant];
    if ((walk.octant.x | walk.octant.y) == 0u) return 4u * kQryVoxel - 1u;
  }
  return qry_look(walk.octant, v, walk.flip);
}

// Frame for a ray that is at `in_cell` (0..1) in the mirrored `cell`: the ray's place, and the cell's as v. Returns the distance at which
// the ray leaves the frame.
float qry_enter_frame(ivec3 cell, vec3 in_cell, vec3 inv, inout QryWalk walk, out vec3 at, out uvec3 v) {
  const uvec3 corner = uvec3(cell) >> 9u;
  walk.frame = corner.x | (corner.y << 8) | (corner.z << 16);
  const vec3 low = kQryFrame + vec3(cell & 511);
  v = floatBitsToUint(low);
  at = low + min(in_cell, 1.0 - kQryUnit);  // below the upper planes, so that no distance is 0 times 1e20
  const vec3 to_end = (kQryFrameEnd - at) * inv;
  return min(to_end.x, min(to_end.y, to_end.z));
}

ivec3 qry_mirrored_cell(uint frame, uvec3 v) { return ivec3(((uvec3(frame, frame >> 8, frame >> 16) & 255u) << 9u) + ((v >> 13u) & 1023u)); }

// (plane - o) / d for each axis, where 1/|d| is known; what the difference loses is kept.
vec3 qry_distances(vec3 plane, vec3 o, vec3 inv, bvec3 rising) {
  precise vec3 gap = plane - o;
  precise vec3 part = gap - plane;
  precise vec3 lost = (plane - (gap - part)) - (o + part);
  const vec3 t = fma(gap, inv, lost * inv);
  return mix(-t, t, rising);
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

  const bvec3 rising = greaterThanEqual(d, vec3(0.0));
  const vec3 a = max(abs(d), vec3(1e-20)), inv = 1.0 / a;

  // Clip to the bounds, two voxels larger than what they hold so that float error here decides nothing.
  const vec3 first = vec3(ivec3(root.bounds_min[0], root.bounds_min[1], root.bounds_min[2]) - 2 - kVoxelBias);
  const vec3 last = vec3(ivec3(root.bounds_max[0], root.bounds_max[1], root.bounds_max[2]) + 3 - kVoxelBias);
  const vec3 leave = mix(o - first, last - o, rising) * inv;
  float start = kQryInside ? 0.0 : max(0.0, t_min), stop = min(min(t_max, 1e9), min(leave.x, min(leave.y, leave.z)));  // beyond 1e9: along a flat axis
  ivec3 cell;
  vec3 in_cell;
  if (kQryInside) {
    const vec3 whole = floor(o);
    cell = ivec3(whole) + kVoxelBias;
    in_cell = o - whole;
  } else {
    const vec3 enter = mix(o - last, first - o, rising) * inv;
    start = max(start, max(enter.x, max(enter.y, enter.z)));
  }
  if (!(start <= stop) || root.brick_count == 0u) return hit;
  if (!kQryInside) qry_place(o, d, start, cell, in_cell);

  QryWalk walk;
  walk.flip = (rising.x ? 0u : 3u) | (rising.y ? 0u : 12u) | (rising.z ? 0u : 48u);
  vec3 at;
  uvec3 v;
  float base = start, end = qry_enter_frame(mix(kVoxelExtent - 1 - cell, cell, rising) + kQryMirrorOffset, mix(1.0 - in_cell, in_cell, rising), inv, walk, at, v);
  end = min(end, stop - base);
  uint changed = kQryStart;
  float s = kQryNotStepped;
  bool found = false;
  for (;;) {
    if (kQryCount) ++hit.steps;
    uint below = qry_descend(root, v, changed, walk);
    if (below == 0u) {
      found = true;
      if (!kQryIgnores) break;
      const uint brick = qry_chunk_brick(root, walk.chunk, qry_index(v, 3u, walk.flip));
      const ivec3 mirrored = qry_mirrored_cell(walk.frame, v) - kQryMirrorOffset;
      if (qry_material(root, brick, mix(kVoxelExtent - 1 - mirrored, mirrored, rising)) != ignore) break;
      found = false;
      below = kQryVoxel - 1u;
    }

    // To the exit of the cube: its upper planes are one unit above `high`.
    const uvec3 high = v | below;
    const vec3 plane = uintBitsToFloat(high) + kQryUnit, to_plane = (plane - at) * inv;
    s = min(to_plane.x, min(to_plane.y, to_plane.z));
    const bool by_x = to_plane.x == s, by_y = !by_x && to_plane.y == s;
    const bvec3 by = bvec3(by_x, by_y, !by_x && !by_y);
    if (!(s < end)) {
      const float t = base + s;
      if (!(t <= stop)) break;
      const ivec3 low = qry_mirrored_cell(walk.frame, v), top = qry_mirrored_cell(walk.frame, high);
      qry_place(o, d, t, cell, in_cell);
      cell = mix(kVoxelExtent - 1 - cell, cell, rising) + kQryMirrorOffset;
      in_cell = mix(1.0 - in_cell, in_cell, rising);
      const ivec3 next = mix(min(max(cell, low), top), top + 1, by);
      base = t;
      end = min(qry_enter_frame(next, in_cell + vec3(cell - next), inv, walk, at, v), stop - base);
      changed = kQryStart;
      s = kQryNewFrame;
      continue;
    }
    const uvec3 next = floatBitsToUint(mix(min(max(fma(vec3(s), a, at), uintBitsToFloat(v)), uintBitsToFloat(high)), plane, by));
    changed = (next.x ^ v.x) | (next.y ^ v.y) | (next.z ^ v.z);
    v = next;
  }
  if (!found) return hit;

  const ivec3 mirrored = qry_mirrored_cell(walk.frame, v) - kQryMirrorOffset;
  hit.voxel = mix(kVoxelExtent - 1 - mirrored, mirrored, rising);
  if (!kQryStopAtBricks) hit.brick = qry_chunk_brick(root, walk.chunk, qry_index(v, 3u, walk.flip));
  if (kQryCount) qry_find_brick(root, qry_key_of(hit.voxel), hit.sectors);
  // It was entered through the plane stepped to last: the one whose distance, computed as it was then, is s. Who has just changed frames
  // looks for the farthest of the three nearer planes instead.
  const vec3 planes = vec3(hit.voxel - kVoxelBias) + mix(vec3(1.0), vec3(0.0), rising);
  const vec3 entered = mix(qry_distances(planes, o, inv, rising), vec3(-kQryNever), lessThan(a, vec3(1e-19)));
  const vec3 stepped = (uintBitsToFloat(v & ~(kQryVoxel - 1u)) - at) * inv;
  const vec3 order = s >= 0.0 ? mix(vec3(0.0), vec3(1.0), equal(stepped, vec3(s))) : (s == kQryNewFrame ? entered : a);
  if (order.x >= order.y && order.x >= order.z) {
    hit.face = rising.x ? 0u : 1u;
    hit.t = entered.x;
  } else if (order.y >= order.z) {
    hit.face = rising.y ? 2u : 3u;
    hit.t = entered.y;
  } else {
    hit.face = rising.z ? 4u : 5u;
    hit.t = entered.z;
  }
  if (s == kQryNotStepped) hit.t = start;
  return hit;
}

#endif
