// traverse.glsl - the exact walk of a ray through a world: the first set voxel it enters, however far, at any angle.
//
// A hierarchical DDA. The cell the ray is in is an integer; the pyramid's masks, the brick's octants and their aligned 2x2x2 blocks
// say how large an empty cube around it is (512, 256, ... 8, 4, 2, 1 voxels), and the ray goes to that cube's exit in one step.
// A brick is asked for only where its pyramid bit is set, and found by counting bits.
//
// Why nothing is stepped over:
//  * The exit of a cube is computed from its integer planes each time, never accumulated.
//  * After a step the stepped axis' coordinate is the plane's; the others come from the exit point and never go back: rounding can put
//    the ray into a neighbour only where it passes within rounding of an edge.
//  * A float has 24 bits and the world needs 14 for the integer part alone. So places are taken in a frame whose corner is a multiple of
//    512 voxels near the ray; where the ray enters the frame is found in twice the precision, and what rounding to the frame's unit
//    (1/4096 voxel) loses is kept for the distances.
//  * A direction component of 0 (or below 1e-20, which moves less than 1e-15 voxel over the world) never exits through its planes:
//    its reciprocal is 0 and 1e30 is added, so no infinity times zero arises.
//
// Why it is fast: axes on which the ray falls are mirrored, so that every exit is through an upper plane. A place in the frame is a float
// between 2048 and 4096, so its bits, read as an integer, are the cell (above bit 12) and the fraction (below): no conversions, a cube's
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

layout(constant_id = 5) const bool kQryScattered = false;     // neighbouring rays go different ways: steps inside an octant get code of their own
layout(constant_id = 6) const bool kQryFused = false;         // fma() rounds once: every GPU's does, software drivers' may not

struct QryHit {
  float t;      // along the ray; < 0: nothing
  ivec3 voxel;  // biased
  uint face;    // 2*axis + (1 if entered through the + side); for a ray that starts inside: the side it looks away from
  uint brick;   // pool index
  uint steps;
  uint sectors;  // that the hash grid reads to find the brick that was hit
};

const float kQryNever = 1e30;
const int kQryMirrorOffset = 2048;   // mirrored cells start here, so that none is negative; a multiple of the frame's 512
const uint kQryVoxel = 1u << 12;     // one voxel in the bits of a place
const float kQryUnit = 1.0 / 4096.0;
const float kQryFrame = 2048.0;      // the frame's corner as a place
const float kQryFrameEnd = 4088.0;   // the ray leaves the frame: the largest cube around any place before ends at 4096
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
  uvec3 region, chunk;  // pyramid nodes
  uvec2 octant;
  uint64_t masks;       // of the brick
  uint flip;            // of bit indices: 3, 12 and 48 for mirrored axes
  uint frame;           // mirrored cell >> 9 of the frame's corner: x | y << 8 | z << 16
};

// Bit of the cell of 2^shift voxels in its node's or octant's mask; bits above the sixth are rubbish.
uint qry_index(uvec3 v, uint shift, uint flip) {
  const uint x = v.x >> (12u + shift), y = v.y >> (10u + shift), z = v.z >> (8u + shift);
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
          const uvec3 mirror = uvec3((walk.flip & 1u) != 0u ? 31u : 0u, (walk.flip & 4u) != 0u ? 15u : 0u, (walk.flip & 16u) != 0u ? 31u : 0u);
          const uvec3 cell = ((uvec3(walk.frame, walk.frame >> 8, walk.frame >> 16) & 255u) + ((v >> 21) & 3u) - 4u) ^ mirror;
          if (cell.x >= 32u || cell.y >= 16u || cell.z >= 32u) return 512u * kQryVoxel - 1u;  // beyond the world, whose extent is a multiple
          const uvec3 level3 = qry_node(root, cell.x | (cell.y << 5) | (cell.z << 9));
          if ((level3.x | level3.y) == 0u) return 512u * kQryVoxel - 1u;
          const uint index = qry_index(v, 7u, walk.flip), bits = qry_half_of(level3.xy, index);
          if (!qry_has(bits, index)) return qry_empty(bits, index, 128u);
          if (level3.z >= root.node_capacity) return 128u * kQryVoxel - 1u;
          walk.region = qry_node(root, level3.z + qry_child_number(level3.xy, index));
        }
        const uint index = qry_index(v, 5u, walk.flip), bits = qry_half_of(walk.region.xy, index);
        if (!qry_has(bits, index)) return qry_empty(bits, index, 32u);
        if (walk.region.z >= root.node_capacity) return 32u * kQryVoxel - 1u;
        walk.chunk = qry_node(root, walk.region.z + qry_child_number(walk.region.xy, index));
      }
      const uint index = qry_index(v, 3u, walk.flip), bits = qry_half_of(walk.chunk.xy, index);
      if (!qry_has(bits, index)) return qry_empty(bits, index, 8u);
      if (kQryStopAtBricks) return 0u;
      const uint brick = qry_chunk_brick(root, walk.chunk.z, qry_child_number(walk.chunk.xy, index));
      if (brick == kQryReservedValue) return 8u * kQryVoxel - 1u;
      walk.masks = qry_mask_address(root, brick);
    }
    const uint octant = (((v.x >> 14) & 1u) | ((v.y >> 13) & 2u) | ((v.z >> 12) & 4u)) ^ ((walk.flip & 1u) | ((walk.flip >> 1) & 2u) | ((walk.flip >> 2) & 4u));
    walk.octant = QryWords(walk.masks).at[octant];
    if ((walk.octant.x | walk.octant.y) == 0u) return 4u * kQryVoxel - 1u;
  }
  return qry_look(walk.octant, v, walk.flip);
}

// A ray's frame: what turns distances into places and back. All mirrored.
struct QryFrameOfRay {
  vec3 at;          // place at the frame's start, t
  vec3 correction;  // added to distances: for the place's rounding, and because upper planes are counted from their last unit
  float t;
  float end;        // distance from there at which the frame, or the ray, ends
};

// Frame for a ray that is at `in_cell` (0..1) in the mirrored `cell`; v becomes the cell's place.
void qry_enter_frame(ivec3 cell, vec3 in_cell, vec3 a, vec3 inv, bvec3 flat_axis, float t, float stop, inout QryFrameOfRay frame, inout QryWalk walk, out uvec3 v) {
  const uvec3 corner = uvec3(cell) >> 9;
  walk.frame = corner.x | (corner.y << 8) | (corner.z << 16);
  const vec3 low = kQryFrame + vec3(cell & 511);
  v = floatBitsToUint(low);
  precise vec3 at = low + in_cell;
  precise vec3 lost = in_cell - (at - low);
  frame.at = at;
  frame.correction = mix((kQryUnit - lost) * inv, vec3(kQryNever), flat_axis);
  frame.t = t;
  const vec3 to_end = mix((kQryFrameEnd - at) * inv, vec3(kQryNever), flat_axis);
  frame.end = min(stop - t, min(to_end.x, min(to_end.y, to_end.z)));
}

// First set voxel on o + t*d for t in [t_min, t_max]. Voxels of material `ignore` count as empty (0: none does).
QryHit qry_traverse(const QryWorldRoot root, vec3 o, vec3 d, float t_min, float t_max, uint ignore) {
  QryHit hit;
  hit.t = -1.0;
  hit.voxel = ivec3(0);
  hit.face = 0u;
  hit.brick = kQryReservedValue;
  hit.steps = 0u;
  hit.sectors = 0u;

  const bvec3 flat_axis = lessThan(abs(d), vec3(1e-20));
  const bvec3 rising = greaterThanEqual(d, vec3(0.0));
  const vec3 step_d = mix(d, vec3(0.0), flat_axis);
  const vec3 inv = mix(1.0 / abs(d), vec3(0.0), flat_axis);

  // Clip to the bounds, two voxels larger than what they hold so that float error here decides nothing.
  const ivec3 first = ivec3(root.bounds_min[0], root.bounds_min[1], root.bounds_min[2]) - 2;
  const ivec3 last = ivec3(root.bounds_max[0], root.bounds_max[1], root.bounds_max[2]) + 2;
  if (last.x - first.x < 4) return hit;  // nothing is set
  const vec3 low_gap = vec3(first - kVoxelBias) - o, high_gap = vec3(last + 1 - kVoxelBias) - o;
  const vec3 never = mix(vec3(0.0), vec3(kQryNever), flat_axis);
  const vec3 enter = mix(-high_gap, low_gap, rising) * inv - never, leave = mix(-low_gap, high_gap, rising) * inv + never;
  if (any(bvec3(flat_axis.x && (low_gap.x > 0.0 || high_gap.x < 0.0), flat_axis.y && (low_gap.y > 0.0 || high_gap.y < 0.0),
                flat_axis.z && (low_gap.z > 0.0 || high_gap.z < 0.0)))) return hit;
  const float start = max(max(0.0, t_min), max(enter.x, max(enter.y, enter.z)));
  const float stop = min(t_max, min(leave.x, min(leave.y, leave.z)));
  if (!(start <= stop)) return hit;

  const vec3 a = abs(step_d);
  ivec3 cell;
  vec3 in_cell;
  qry_place(o, step_d, start, cell, in_cell);
  cell = mix(kVoxelExtent - 1 - cell, cell, rising) + kQryMirrorOffset;
  in_cell = mix(1.0 - in_cell, in_cell, rising);
  QryWalk walk;
  walk.flip = (rising.x ? 0u : 3u) | (rising.y ? 0u : 12u) | (rising.z ? 0u : 48u);
  QryFrameOfRay frame;
  uvec3 v;
  qry_enter_frame(cell, in_cell, a, inv, flat_axis, start, stop, frame, walk, v);
  uint changed = kQryStart;
  for (;;) {
    if (kQryCount) ++hit.steps;
    uint below;
    if (kQryScattered && changed < 4u * kQryVoxel) below = qry_look(walk.octant, v, walk.flip);
    else below = qry_descend(root, v, changed, walk);
    if (below == 0u) {
      const ivec3 mirrored = ivec3(((uvec3(walk.frame, walk.frame >> 8, walk.frame >> 16) & 255u) << 9) + ((v >> 12) & 2047u)) - kQryMirrorOffset;
      const ivec3 voxel = mix(kVoxelExtent - 1 - mirrored, mirrored, rising);
      const uint brick = kQryStopAtBricks ? 0u : qry_chunk_brick(root, walk.chunk.z, qry_child_number(walk.chunk.xy, qry_index(v, 3u, walk.flip)));
      if (ignore == 0u || qry_material(root, brick, voxel) != ignore) {
        // The plane it was entered through is the farthest of the lower ones.
        const vec3 low = uintBitsToFloat(v & ~(kQryVoxel - 1u)) - kQryUnit;
        const vec3 entered = mix(fma(low - frame.at, inv, frame.correction), vec3(-kQryNever), flat_axis);
        const bool moved = changed != kQryStart;
        const vec3 order = moved ? entered : a;
        const uint axis = order.x >= order.y && order.x >= order.z ? 0u : (order.y >= order.z ? 1u : 2u);
        hit.t = frame.t + (moved ? entered[axis] : 0.0);
        hit.voxel = voxel;
        hit.face = 2u * axis + (rising[axis] ? 0u : 1u);
        hit.brick = brick;
        if (kQryCount) qry_find_brick(root, qry_key_of(voxel), hit.sectors);
        return hit;
      }
      below = kQryVoxel - 1u;
    }

    // To the exit of the cube: its upper planes are one unit above `high`.
    const uvec3 high = v | below;
    const vec3 to_plane = fma(uintBitsToFloat(high) - frame.at, inv, frame.correction);
    const float s = min(to_plane.x, min(to_plane.y, to_plane.z));
    const bool by_x = to_plane.x == s, by_y = to_plane.y == s, by_z = to_plane.z == s;
    if (!(s < frame.end)) {
      if (!(s <= stop - frame.t)) return hit;
      // A new frame at frame.t + s as floats know it; what the sum and the products lose goes into the place in the cell.
      const vec3 at_cell = floor(frame.at);
      precise vec3 was_in = (frame.at - at_cell) + mix(kQryUnit - frame.correction * a, vec3(0.0), flat_axis);
      precise float t = frame.t + s;
      precise float along = t - frame.t;
      vec3 p_error;
      precise vec3 p = qry_product(along, a, p_error);
      const vec3 whole = floor(p);
      precise vec3 fraction = (p - whole) + (was_in + p_error);
      const vec3 carry = floor(fraction);
      const ivec3 reached = ivec3(at_cell) + ivec3(whole) + ivec3(carry);
      const ivec3 low = ivec3((v >> 12) & 2047u) + int(kQryFrame), top = ivec3((high >> 12) & 2047u) + int(kQryFrame);
      const ivec3 next = mix(min(max(reached, low), top), top + 1, bvec3(by_x, by_y, by_z));
      in_cell = fraction - carry + vec3(reached - next);
      cell = next - int(kQryFrame) + ivec3((uvec3(walk.frame, walk.frame >> 8, walk.frame >> 16) & 255u) << 9);
      qry_enter_frame(cell, in_cell, a, inv, flat_axis, t, stop, frame, walk, v);
      changed = kQryStart - 1u;
      continue;
    }
    const uvec3 least = uvec3(by_x ? high.x + 1u : v.x, by_y ? high.y + 1u : v.y, by_z ? high.z + 1u : v.z);
    const uvec3 next = floatBitsToUint(max(fma(vec3(s), a, frame.at), uintBitsToFloat(least)));
    const uvec3 differ = next ^ v;
    changed = differ.x | differ.y | differ.z;
    v = next;
  }
}

#endif
