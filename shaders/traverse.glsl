// traverse.glsl - the exact walk of a ray through a world: the first set voxel it enters, however far, at any angle.
//
// A hierarchical DDA. The cell the ray is in is an integer; the pyramid's words, the brick's octants and their aligned 2x2x2 blocks
// say how large an empty cube around it is (2048, 1024, ... 8, 4, 2, 1 voxels), and the ray goes to that cube's exit in one step.
// The hash grid is asked only at bricks whose pyramid bit is set.
//
// Why nothing is stepped over:
//  * The exit of a cube is computed from its integer planes each time, never accumulated.
//  * After a step the stepped axis' coordinate is the plane's; the others come from the exit point and are clamped to the cube that
//    was left and to not going back: rounding can put the ray into a neighbour only where it passes within rounding of an edge.
//  * A float has 24 bits and the world needs 14 for the integer part alone. So distances are taken from a base point near the ray's
//    place, cell and fraction apart; it is found once in twice the precision and moved along with its rounding errors kept.
//  * A direction component of 0 (or below 1e-20, which moves less than 1e-15 voxel over the world) never exits through its planes:
//    its reciprocal is 0 and 1e30 is added, so no infinity times zero arises.
//
// Why it is fast: axes on which the ray falls are mirrored, so that every exit is through an upper plane and a cube of edge e around v
// ends at (v | e-1) + 1; the highest bit in which the cell before a step and the one after it differ says which words must be read anew.
//
// Literature: J. Amanatides and A. Woo, "A Fast Voxel Traversal Algorithm for Ray Tracing", 1987; mirrored axes after J. Revelles, C. Urena
// and M. Lastra, "An Efficient Parametric Algorithm for Octree Traversal", 2000; aligned 2x2x2 blocks tested by one mask after the public
// notes on 64-bit bricks; exact sums and products after T. J. Dekker, "A Floating-Point Technique", 1971.
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
  uint sectors;  // read to find the brick that was hit
};

const float kQryNever = 1e30;
const float kQryRebaseDistance = 512.0;
const int kQryMirrorOffset = 2048;         // mirrored cells start here, so that none is negative; a multiple of the largest cube

struct QryBase {
  ivec3 cell;      // biased voxel that holds the base point
  vec3 fraction;   // where in it, 0..1
  float t;         // of the base point, exact by definition
};

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

// o + t*d, its integer and its fractional part, each right to the last bit of the fraction.
QryBase qry_rebase(vec3 o, vec3 d, float t) {
  vec3 p_error;
  precise vec3 p = qry_product(t, d, p_error);
  precise vec3 sum = o + p;
  precise vec3 part = sum - o;
  precise vec3 sum_error = (o - (sum - part)) + (p - part);
  const vec3 whole = floor(sum);
  precise vec3 fraction = (sum - whole) + (sum_error + p_error);
  const vec3 carry = floor(fraction);
  QryBase base;
  base.cell = ivec3(whole) + ivec3(carry) + kVoxelBias;
  base.fraction = fraction - carry;
  base.t = t;
  return base;
}

// The words on the way down to the ray's cell, as far as they are known.
struct QryWalk {
  uvec2 region, chunk, octant;
  uint64_t block, masks;
  uint brick, sectors;
};

// Bit of the cell in its word: x | y<<2 | z<<4 of the low two bits. `flip`: 3, 12 and 48 for mirrored axes.
uint qry_bit_index(ivec3 cell, uint flip) { return uint((cell.x & 3) | ((cell.y & 3) << 2) | ((cell.z & 3) << 4)) ^ flip; }
uint qry_half_of(uvec2 word, uint index) { return (index & 32u) != 0u ? word.y : word.x; }
bool qry_has(uint word_half, uint index) { return (word_half >> (index & 31u) & 1u) != 0u; }
bool qry_has_near(uint word_half, uint index) { return (word_half & (0x00330033u << (index & 10u))) != 0u; }

// -1: v is set in its octant; else the edge, less one, of the empty cube around it there.
int qry_look(uvec2 octant, ivec3 v, uint flip) {
  const uint index = qry_bit_index(v, flip), bits = qry_half_of(octant, index);
  if (qry_has(bits, index)) return -1;
  return qry_has_near(bits, index) ? 0 : 1;
}

// Reads what is new at the (mirrored) cell v, `changed` being the bits in which it differs from the cell before.
// -1: v is a set voxel; else the edge, less one, of an empty aligned cube around it.
int qry_descend(const QryWorldRoot root, ivec3 v, ivec3 mirror, uint flip, uint changed, inout QryWalk walk) {
  if (changed > 3u) {
    if (changed > 7u) {
      if (changed > 31u) {
        if (changed > 127u) {
          const int edge = qry_find_region(root, (v - kQryMirrorOffset) ^ mirror, walk.region, walk.block);
          if (edge != 0) return edge - 1;
        }
        const uint index = qry_bit_index(v >> 5, flip), bits = qry_half_of(walk.region, index);
        if (!qry_has(bits, index)) return qry_has_near(bits, index) ? 31 : 63;
        walk.chunk = QryWords(walk.block).at[index];
      }
      const uint index = qry_bit_index(v >> 3, flip), bits = qry_half_of(walk.chunk, index);
      if (!qry_has(bits, index)) return qry_has_near(bits, index) ? 7 : 15;
      if (kQryStopAtBricks) return -1;
      walk.brick = qry_find_brick(root, qry_key_of((v - kQryMirrorOffset) ^ mirror), walk.sectors);
      if (walk.brick == kQryReservedValue) return 7;
      walk.masks = qry_mask_address(root, walk.brick);
    }
    const uint octant = (uint(((v.x >> 2) & 1) | ((v.y >> 1) & 2) | (v.z & 4))) ^ ((flip & 1u) | ((flip >> 1) & 2u) | ((flip >> 2) & 4u));
    walk.octant = QryWords(walk.masks).at[octant];
    if ((walk.octant.x | walk.octant.y) == 0u) return 3;
  }
  return qry_look(walk.octant, v, flip);
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

  QryBase base = qry_rebase(o, step_d, start);
  const ivec3 mirror = mix(kVoxelExtent - 1, ivec3(0), rising);
  const uint flip = (rising.x ? 0u : 3u) | (rising.y ? 0u : 12u) | (rising.z ? 0u : 48u);
  const vec3 a = abs(step_d);
  base.cell = mix(mirror - base.cell, base.cell, rising) + kQryMirrorOffset;
  base.fraction = mix(1.0 - base.fraction, base.fraction, rising);
  vec3 at_base = mix(-base.fraction * inv, vec3(kQryNever), flat_axis);  // distance to the base cell's lower planes
  float s = 0.0, s_stop = stop - start;                                 // from the base point

  ivec3 v = base.cell;
  uint changed = 0xFFFFFFFFu;
  QryWalk walk;
  walk.brick = kQryReservedValue;
  walk.sectors = 0u;
  for (;;) {
    if (kQryCount) ++hit.steps;
    int edge;
    if (kQryScattered && changed <= 3u) edge = qry_look(walk.octant, v, flip);
    else edge = qry_descend(root, v, mirror, flip, changed, walk);
    if (edge < 0) {
      const ivec3 voxel = (v - kQryMirrorOffset) ^ mirror;
      if (ignore == 0u || qry_material(root, walk.brick, voxel) != ignore) {
        // The plane it was entered through is the farthest of the lower ones.
        const vec3 entered = mix(fma(vec3(v - base.cell), inv, at_base), vec3(-kQryNever), flat_axis);
        const bool moved = changed != 0xFFFFFFFFu;
        const vec3 order = moved ? entered : a;
        const uint axis = order.x >= order.y && order.x >= order.z ? 0u : (order.y >= order.z ? 1u : 2u);
        hit.t = base.t + (moved ? entered[axis] : 0.0);
        hit.voxel = voxel;
        hit.face = 2u * axis + (rising[axis] ? 0u : 1u);
        hit.brick = walk.brick;
        if (kQryCount) hit.sectors = walk.sectors;
        return hit;
      }
      edge = 0;
    }

    // To the exit of the cube.
    const ivec3 high = v | edge;
    const vec3 to_high = vec3(high + 1 - base.cell);
    precise vec3 to_plane = fma(to_high, inv, at_base);
    s = min(to_plane.x, min(to_plane.y, to_plane.z));
    if (!(s <= s_stop)) return hit;
    const bool by_x = to_plane.x == s, by_y = !by_x && to_plane.y == s;
    if (s > kQryRebaseDistance) {
      // The base moves to base.t + s as floats know it; what the sum and the products lose goes into the fraction.
      precise float t = base.t + s;
      precise float along = t - base.t;
      vec3 p_error;
      precise vec3 p = qry_product(along, a, p_error);
      const vec3 whole = floor(p);
      precise vec3 fraction = (p - whole) + (base.fraction + p_error);
      const vec3 carry = floor(fraction);
      base.cell += ivec3(whole) + ivec3(carry);
      base.fraction = fraction - carry;
      base.t = t;
      at_base = mix(-base.fraction * inv, vec3(kQryNever), flat_axis);
      s_stop = stop - t;
      to_plane = fma(vec3(high + 1 - base.cell), inv, at_base);
      s = by_x ? to_plane.x : (by_y ? to_plane.y : to_plane.z);
    }
    const ivec3 there = min(max(ivec3(floor(fma(vec3(s), a, base.fraction))) + base.cell, v), high);
    const ivec3 next = ivec3(by_x ? high.x + 1 : there.x, by_y ? high.y + 1 : there.y, !by_x && !by_y ? high.z + 1 : there.z);
    const ivec3 differ = next ^ v;
    changed = uint(differ.x | differ.y | differ.z);
    v = next;
  }
}

#endif
