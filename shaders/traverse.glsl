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
//    place, found from the ray itself in twice the precision (rebase): errors stay near 1e-5 voxel anywhere in the world.
//  * A direction component of 0 (or below 1e-20, which moves less than 1e-15 voxel over the world) never exits through its planes:
//    its reciprocal is 0 and 1e30 is added, so no infinity times zero arises.
//
// Literature: J. Amanatides and A. Woo, "A Fast Voxel Traversal Algorithm for Ray Tracing", 1987; aligned 2x2x2 blocks tested by one
// mask after the public notes on 64-bit bricks; exact products after T. J. Dekker, "A Floating-Point Technique", 1971.
#ifndef QRY_TRAVERSE_GLSL
#define QRY_TRAVERSE_GLSL

#include "shaders/world.glsl"

struct QryHit {
  float t;      // along the ray; < 0: nothing
  ivec3 voxel;  // biased
  uint face;    // 2*axis + (1 if entered through the + side); for a ray that starts inside: the side it looks away from
  uint brick;   // pool index
  uint steps;
  uint sectors;  // read to find the brick that was hit
};

const float kQryNever = 1e30;
const float kQryRebaseDistance = 128.0;
const int kQryMaxSteps = 65536;  // more than any ray can need: an axis-parallel ray through 16384 set bricks' empty octants takes fewer

struct QryBase {
  ivec3 cell;      // biased voxel that holds the base point
  vec3 fraction;   // where in it, 0..1
  float t;         // of the base point, exact by definition
};

// o + t*d, its integer and its fractional part, each right to the last bit of the fraction.
QryBase qry_rebase(vec3 o, vec3 d, float t) {
  // Products of 12-bit halves are exact. `precise`, or a compiler may simplify the errors away.
  precise float tc = 4097.0 * t;
  precise float th = tc - (tc - t);
  precise float tl = t - th;
  precise vec3 dc = 4097.0 * d;
  precise vec3 dh = dc - (dc - d);
  precise vec3 dl = d - dh;
  precise vec3 p = t * d;
  precise vec3 p_error = ((th * dh - p) + (th * dl + tl * dh)) + tl * dl;
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

// First set voxel on o + t*d for t in [0, t_max]. Voxels of material `ignore` count as empty (0: none does).
QryHit qry_traverse(const QryWorldRoot root, vec3 o, vec3 d, float t_max, uint ignore) {
  QryHit hit;
  hit.t = -1.0;
  hit.voxel = ivec3(0);
  hit.face = 0u;
  hit.brick = kQryReservedValue;
  hit.steps = 0u;
  hit.sectors = 0u;

  const bvec3 flat_axis = lessThan(abs(d), vec3(1e-20));
  const bvec3 rising = greaterThanEqual(d, vec3(0.0));
  const vec3 inv = mix(1.0 / d, vec3(0.0), flat_axis);
  const vec3 never = mix(vec3(0.0), vec3(kQryNever), flat_axis);
  const vec3 step_d = mix(d, vec3(0.0), flat_axis);

  // Clip to the bounds, two voxels larger than what they hold so that float error here decides nothing.
  const ivec3 first = ivec3(root.bounds_min[0], root.bounds_min[1], root.bounds_min[2]) - 2;
  const ivec3 last = ivec3(root.bounds_max[0], root.bounds_max[1], root.bounds_max[2]) + 2;
  if (last.x - first.x < 4) return hit;  // nothing is set
  const vec3 near_plane = vec3(mix(last + 1, first, rising) - kVoxelBias), far_plane = vec3(mix(first, last + 1, rising) - kVoxelBias);
  const vec3 enter = (near_plane - o) * inv - never, leave = (far_plane - o) * inv + never;
  if (any(bvec3(flat_axis.x && (o.x < near_plane.x || o.x > far_plane.x), flat_axis.y && (o.y < near_plane.y || o.y > far_plane.y),
                flat_axis.z && (o.z < near_plane.z || o.z > far_plane.z)))) return hit;
  const float start = max(0.0, max(enter.x, max(enter.y, enter.z)));
  const float end = min(leave.x, min(leave.y, leave.z));
  if (!(start <= end) || start > t_max) return hit;

  QryBase base = qry_rebase(o, step_d, start);
  ivec3 v = base.cell;
  float s = 0.0;  // from the base point
  const vec3 a = abs(d);
  uint axis = a.x >= a.y && a.x >= a.z ? 0u : (a.y >= a.z ? 1u : 2u);

  ivec3 chunk_at = ivec3(-1), brick_at = ivec3(-1), octant_at = ivec3(-1);
  uvec2 chunk = uvec2(0u), octant = uvec2(0u);
  uint brick = kQryReservedValue, sectors = 0u;
  uint64_t masks = 0ul;

  for (int n = 0; n < kQryMaxSteps; ++n) {
    ++hit.steps;
    int edge = 0;  // of the empty cube around v; 0: not known yet
    if (any(notEqual(v >> 2, octant_at))) {
      if (any(notEqual(v >> 3, brick_at))) {
        if (any(notEqual(v >> 5, chunk_at))) {
          chunk_at = v >> 5;
          const bool outside = any(lessThan(v, ivec3(0))) || any(greaterThanEqual(v, kVoxelExtent));
          edge = outside ? 8 : qry_find_chunk(root, v, chunk);
          if (outside) chunk_at = ivec3(-1);  // smaller cubes than a chunk are left there
        }
        if (edge == 0) {
          if (qry_bit(chunk, v >> 3)) {
            brick_at = v >> 3;
            brick = qry_find_brick(root, qry_key_of(v), sectors);
            if (brick == kQryReservedValue) edge = 8;
            else masks = qry_mask_address(root, brick);
          } else {
            edge = qry_block(chunk, v >> 3) ? 8 : 16;
          }
        }
      }
      if (edge == 0) {
        octant_at = v >> 2;
        octant = QryWords(masks).at[qry_octant(v)];
        if ((octant.x | octant.y) == 0u) edge = 4;
      }
    }
    if (edge == 0) {
      if (qry_bit(octant, v)) {
        if (ignore == 0u || qry_material(root, brick, v) != ignore) {
          hit.t = base.t + s;
          hit.voxel = v;
          hit.face = 2u * axis + (rising[axis] ? 0u : 1u);
          hit.brick = brick;
          hit.sectors = sectors;
          return hit;
        }
        edge = 1;
      } else {
        edge = qry_block(octant, v) ? 1 : 2;
      }
    }

    // To the exit of the cube.
    const ivec3 low = v & ivec3(-edge);
    const ivec3 high = low + (edge - 1);
    const ivec3 plane = mix(low, low + edge, rising);
    vec3 to_plane = (vec3(plane - base.cell) - base.fraction) * inv + never;
    s = min(to_plane.x, min(to_plane.y, to_plane.z));
    axis = to_plane.x == s ? 0u : (to_plane.y == s ? 1u : 2u);
    if (!(base.t + s <= t_max) || s >= 0.5 * kQryNever) return hit;
    if (s > kQryRebaseDistance) {
      base = qry_rebase(o, step_d, base.t + s);
      to_plane = (vec3(plane - base.cell) - base.fraction) * inv + never;
      s = axis == 0u ? to_plane.x : (axis == 1u ? to_plane.y : to_plane.z);
    }
    const ivec3 there = base.cell + ivec3(floor(base.fraction + s * step_d));
    const ivec3 kept = clamp(there, mix(low, v, rising), mix(v, high, rising));
    if (axis == 0u) v = ivec3(rising.x ? plane.x : plane.x - 1, kept.yz);
    else if (axis == 1u) v = ivec3(kept.x, rising.y ? plane.y : plane.y - 1, kept.z);
    else v = ivec3(kept.xy, rising.z ? plane.z : plane.z - 1);
    // Past the bounds on the side the ray leaves by.
    if (any(greaterThan(mix(first - v, v - last, rising), ivec3(0)))) return hit;
  }
  return hit;
}

#endif
