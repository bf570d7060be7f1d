// SPDX-License-Identifier: Apache-2.0
// walk.h - the exact traversal of a world by a ray: finds the first set voxel at any distance and any angle. One text
// for GLSL (shaders/library/traverse.glsl), C++ and CUDA (trace.hpp).
//
// What it is not: how a world is read (shaders/library/world.glsl, flat_world.hpp), what GLSL's words mean in C++
// (glsl_words.hpp). Who includes it has these and the constants kQryCount, kQryStopAtBricks, kQryInside,
// kQrySkipsMaterial and kQryFused before it, and ray_setup.h.
//
// It is a hierarchical DDA. The ray's cell is an integer. The pyramid's masks, the brick's octants and their aligned
// 2x2x2 blocks give the size of an empty cube around the cell (512, 256, ... 8, 4, 2, 1 voxels). The ray goes to that
// cube's exit in one step. A brick is read only if its pyramid bit is set, and it is found by counting bits.
//
// Why no voxel is missed:
//  * The exit of a cube is computed from its integer planes each time, never accumulated.
//  * After a step the stepped axis' coordinate is the plane's. The others come from the exit point. They are clamped to
//    the cube that was left, and never go back. So rounding can put the ray into a neighbour only if it passes within
//    rounding of an edge. The previous cell is always on the other side of the face by which a voxel is entered.
//  * A float has 24 bits and the world needs 14 for the integer part alone. So places are counted from a local
//    origin, a multiple of 512 voxels near the ray. When the origin moves, the ray's place is computed anew from its
//    start, exact to the unit, 1/8192 voxel (shadow and ambient occlusion rays: 1024 and 1/4096). The depth of a hit
//    is computed anew from the ray and the plane that was entered.
//  * A direction component of 0 (or below 1e-20, which moves less than 1e-15 voxel over the world) counts as 1e-20.
//    Then its planes are farther away than any world, and infinity times zero does not occur.
//
// Why it is fast: axes on which the direction is negative are mirrored, so that every exit is through an upper plane. A
// place is a float between 1024 and 2048. So its bits, read as an integer, are the cell (above bit 13) and the fraction
// (below). That needs no conversions. Setting the bits below a cube's size gives its upper planes. The highest bit in
// which the places before and after a step differ tells which words must be read again.
//
// Literature: J. Amanatides and A. Woo, "A Fast Voxel Traversal Algorithm for Ray Tracing", 1987. Mirrored axes: J.
// Revelles, C. Urena and M. Lastra, "An Efficient Parametric Algorithm for Octree Traversal", 2000. Places as mantissa
// bits: S. Laine and T. Karras, "Efficient Sparse Voxel Octrees", 2010. Aligned 2x2x2 blocks tested by one mask: the
// public notes on 64-bit bricks. Exact sums and products: T. J. Dekker, "A Floating-Point Technique", 1971.
#ifndef QRY_VOXEL_RAYS_WALK_H
#define QRY_VOXEL_RAYS_WALK_H

struct QryHit {
  float t;      // distance along the ray; < 0: nothing was hit
  ivec3 voxel;  // biased
  uint face;    // 2*axis + (1 if entered through the + side); for a ray that starts inside: the side it looks away from
  uint brick;   // pool index
  uint steps;
  uint sectors;  // sectors of the hash grid read to find the brick that was hit
};

const float kQryNotStepped = -1.0f, kQryNewOrigin = -2.0f;
// Mirrored cells start here, so that none is negative; a multiple of 512, the origin's step.
const int kQryMirrorOffset = 2048;
// Rays that start inside (shadow, ambient occlusion, refraction and reflection rays) have origin steps and units twice
// as long.
const uint kQryFraction = kQryInside ? 12u : 13u;  // bits of a place below its cell
const uint kQryVoxel = 1u << kQryFraction;         // one voxel in the bits of a place
const float kQryUnit = kQryInside ? 1.0f / 4096.0f : 1.0f / 8192.0f;
const float kQryLocalOrigin = kQryInside ? 2048.0f : 1024.0f;  // the local origin as a place
const uint kQryOriginShift = 22u - kQryFraction;
const float kQryOriginStep = kQryInside ? 1024.0f : 512.0f;  // local origins are multiples of this: 2^kQryOriginShift
const float kQryOriginMargin = 8.0f;  // the least distance behind a ray when its origin moves, except for rounding
// The place at which the origin moves. The largest cube around any earlier place ends 8 beyond it.
const float kQryOriginEnd = kQryInside ? 4088.0f : 2040.0f;
// The numbers of the origin at the middle of the world.
QRY_WALK vec3 qry_origin_numbers() { return (vec3(kVoxelBias) + float(kQryMirrorOffset)) / kQryOriginStep; }
const uint kQryStart = 0xFFFFFFFFu;  // value of `changed`: nothing is known yet

// Computes t*d and its rounding error. It needs `precise`, because a compiler may otherwise simplify the errors away.
QRY_WALK vec3 qry_product(float t, vec3 d, QRY_OUT(vec3) error) {
  precise vec3 p = t * d;
  if (kQryFused) {
    precise vec3 lost = fma(vec3(t), d, -p);
    error = lost;
  } else {  // products of 12-bit halves are exact
    precise float tc = 4097.0f * t;
    precise float th = tc - (tc - t);
    precise float tl = t - th;
    precise vec3 dc = 4097.0f * d;
    precise vec3 dh = dc - (dc - d);
    precise vec3 dl = d - dh;
    precise vec3 lost = ((th * dh - p) + (th * dl + tl * dh)) + tl * dl;
    error = lost;
  }
  return p;
}

// The numbers that depend only on a ray's direction.
struct QryRaySetup {
  vec3 a, inv;     // the direction in the mirrored world, no component below kQryMinDirection; 1 / a
  vec3 low, high;  // the root's box in the mirrored world
  bvec3 negative;  // the axes on which the direction is negative; they are mirrored
  uint flip;       // the same as bits to be flipped (ray_setup.h)
};
QRY_WALK bvec3 qry_negative_axes(uint flip) { return bvec3((flip & 1u) != 0u, (flip & 4u) != 0u, (flip & 16u) != 0u); }

QRY_WALK QryRaySetup qry_ray_setup(QRY_IN(QryWorldRoot) root, vec3 d) {
  const vec3 box_low = vec3(root.box_low[0], root.box_low[1], root.box_low[2]),
             box_high = vec3(root.box_high[0], root.box_high[1], root.box_high[2]);
  QryRaySetup setup;
  setup.negative = lessThan(d, vec3(0.0f));
  setup.a = max(abs(d), vec3(kQryMinDirection));
  setup.inv = 1.0f / setup.a;
  setup.low = mix(box_low, -box_high, setup.negative);
  setup.high = mix(box_high, -box_low, setup.negative);
  // The number is computed by floats, which hold it exactly. A compiler that sees integers keeps its three parts in
  // registers too.
  setup.flip = uint((setup.negative.x ? float(kQryFlipX) : 0.0f) + (setup.negative.y ? float(kQryFlipY) : 0.0f) +
                    (setup.negative.z ? float(kQryFlipZ) : 0.0f));
  return setup;
}

// The same ray setup if the host has computed it for all rays.
QRY_WALK QryRaySetup qry_ray_setup_of(QRY_IN(QryWorldRoot) root, QRY_IN(QryDirectionSetup) direction) {
  const vec3 box_low = vec3(root.box_low[0], root.box_low[1], root.box_low[2]),
             box_high = vec3(root.box_high[0], root.box_high[1], root.box_high[2]);
  QryRaySetup setup;
  setup.negative = qry_negative_axes(direction.flip);
  setup.a = vec3(direction.a[0], direction.a[1], direction.a[2]);
  setup.inv = vec3(direction.inv[0], direction.inv[1], direction.inv[2]);
  setup.low = mix(box_low, -box_high, setup.negative);
  setup.high = mix(box_high, -box_low, setup.negative);
  setup.flip = direction.flip;
  return setup;
}

// The known levels down to the ray's cell, and the ray's local origin.
struct QryDdaState {
  uvec3 level3, level2, level1;  // pyramid nodes
  uvec2 octant;
  QryMasks masks;  // of the brick
  uint origin;     // its mirrored cell >> kQryOriginShift: x | y << 8 | z << 16
#if defined(QRY_PAGED)
  uint page;     // the number of level2, whose upper bits are that of level3
  uvec2 absent;  // children of level3 that are not there
  bool there;    // level2 is
#endif
};

// The bit of the cell of 2^shift voxels in its node's or octant's mask. Bits above the sixth are undefined.
QRY_WALK uint qry_index(uvec3 v, uint shift, uint flip) {
  const uint x = v.x >> (kQryFraction + shift), y = v.y >> (kQryFraction - 2u + shift),
             z = v.z >> (kQryFraction - 4u + shift);
  return bitfieldInsert(z, bitfieldInsert(y, x, 0, 2), 0, 4) ^ flip;
}
// The aligned 2x2x2 block of a mask that contains `index`, as bits 0, 1, 4, 5, 16, 17, 20 and 21.
QRY_WALK uint qry_block(uvec2 mask, uint index) { return uint(packUint2x32(mask) >> (index & 42u)); }
QRY_WALK bool qry_has(uint block, uint index) { return (block & (1u << (index & 21u))) != 0u; }
// The bits below the size of the empty cube around a cell whose bit is not set. The cube has `voxels` voxels a side, or
// twice that.
QRY_WALK uint qry_empty(uint block, uint voxels) {
  return ((block & 0x00330033u) != 0u ? voxels : 2u * voxels) * kQryVoxel - 1u;
}

// Reads the levels that are new at the place v. `changed` has the bits in which v differs from the place before.
// Returns 0 if v is a set voxel, else the bits below the size of an empty aligned cube around it. Where parts of a
// world are not there (QRY_PAGED: shaders alone), bricks of its coarse level are full.
QRY_WALK uint qry_descend(QRY_IN(QryWorldRoot) root, uint flip, uvec3 v, uint changed, QRY_INOUT(QryDdaState) dda) {
  if (changed >= 4u * kQryVoxel) {
    if (changed >= 8u * kQryVoxel) {
      if (changed >= 32u * kQryVoxel) {
        if (changed >= 128u * kQryVoxel) {
          if (changed >= 512u * kQryVoxel) {
            const uvec3 origin = uvec3(dda.origin, dda.origin >> 8, dda.origin >> 16) & 255u;
            const uvec3 cell = ((origin << (kQryOriginShift - 9u)) +
                                ((v >> (kQryFraction + 9u)) & ((2u << (kQryOriginShift - 9u)) - 1u)) - 4u);
            // The cell is beyond the world, whose extent is a multiple of the cell's.
            if (cell.x >= 32u || cell.y >= 16u || cell.z >= 32u) return 512u * kQryVoxel - 1u;
            dda.level3 = qry_level3(root, (cell.x | (cell.y << 5) | (cell.z << 9)) ^ ((flip >> 6) & 16383u));
#if defined(QRY_PAGED)
            dda.page = ((cell.x | (cell.y << 5) | (cell.z << 9)) ^ ((flip >> 6) & 16383u)) << 6;
            dda.absent = qry_absent(root, dda.page >> 6);
            if ((dda.level3.x | dda.level3.y | dda.absent.x | dda.absent.y) == 0u) return 512u * kQryVoxel - 1u;
          }
          const uint index = qry_index(v, 7u, flip), block = qry_block(QRY_XY(dda.level3) | dda.absent, index);
          if (!qry_has(block, index)) return qry_empty(block, 128u);
          dda.page = bitfieldInsert(dda.page, index, 0, 6);
          dda.there = !qry_has_child(uvec3(dda.absent, 0u), index & 63u);
          dda.level2 = dda.there ? qry_child(root, dda.level3, index) : qry_coarse_page(root, dda.page);
        }
        const uint index = qry_index(v, 5u, flip), block = qry_block(QRY_XY(dda.level2), index);
        if (!qry_has(block, index)) return qry_empty(block, 32u);
        // Steps are counted of what is there: the coarse level may have more bricks.
        if (dda.there || kQryCount) qry_reach(root, dda.page);
        dda.level1 = dda.there ? qry_child(root, dda.level2, index) : qry_coarse_cell(root, dda.level2, index);
#else
            if ((dda.level3.x | dda.level3.y) == 0u) return 512u * kQryVoxel - 1u;
          }
          const uint index = qry_index(v, 7u, flip), block = qry_block(QRY_XY(dda.level3), index);
          if (!qry_has(block, index)) return qry_empty(block, 128u);
          dda.level2 = qry_child(root, dda.level3, index);
        }
        const uint index = qry_index(v, 5u, flip), block = qry_block(QRY_XY(dda.level2), index);
        if (!qry_has(block, index)) return qry_empty(block, 32u);
        dda.level1 = qry_child(root, dda.level2, index);
#endif
      }
      const uint index = qry_index(v, 3u, flip), block = qry_block(QRY_XY(dda.level1), index);
      if (!qry_has(block, index)) return qry_empty(block, 8u);
      if (kQryStopAtBricks) return 0u;
#if defined(QRY_PAGED)
      if (!dda.there) qry_reach(root, dda.page);
      dda.masks =
          dda.there ? qry_mask_address(root, qry_level1_brick(root, dda.level1, index)) : qry_coarse_masks(root);
#else
      dda.masks = qry_mask_address(root, qry_level1_brick(root, dda.level1, index));
#endif
    }
    const uint octant =
        (((v.x >> (kQryFraction + 2u)) & 1u) | ((v.y >> (kQryFraction + 1u)) & 2u) | ((v.z >> kQryFraction) & 4u)) ^
        (flip >> 20);
    dda.octant = QRY_OCTANT(root, dda.masks, octant);
    if ((dda.octant.x | dda.octant.y) == 0u) return 4u * kQryVoxel - 1u;
  }
  const uint index = qry_index(v, 0u, flip), block = qry_block(dda.octant, index);
  return qry_has(block, index) ? 0u : qry_empty(block, 1u);
}

// The mirrored cell of v.
QRY_WALK ivec3 qry_mirrored_cell(uint origin, uvec3 v) {
  return ivec3(((uvec3(origin, origin >> 8, origin >> 16) & 255u) << kQryOriginShift) +
               ((v >> kQryFraction) & ((2u << kQryOriginShift) - 1u))) -
         kQryMirrorOffset;
}

// Computes eye + t*a - corner, exact to the last bit. The corner is a multiple of 512.
QRY_WALK vec3 qry_from_corner(vec3 eye, vec3 a, float t, vec3 corner) {
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

// The state of a ray in the mirrored world. Coordinates of axes on which its direction is negative are negated.
struct QryRayState {
  vec3 eye;           // where it comes from
  vec3 at;            // its place when its origin was set
  uvec3 v;            // its cell, as the bits of a place
  float start, stop;  // distances at which it begins and ends
  float base;         // its distance when its origin was set
  // The distance since then; or kQryNotStepped; or kQryNewOrigin - axis of the plane by which it entered its cell.
  float s;
  float end;     // the value of s at which the origin moves or the ray ends
  uint changed;  // the bits in which v differs from the cell before
};

QRY_WALK float qry_origin_end(QRY_IN(QryRaySetup) setup, QRY_IN(QryRayState) ray) {
  const vec3 to_end = (kQryOriginEnd - ray.at) * setup.inv;
  return min(min(to_end.x, min(to_end.y, to_end.z)), ray.stop - ray.base);
}

// Puts the ray from o, t in [t_min, t_max], at its start. Returns false if it meets nothing.
QRY_WALK bool qry_ray_begin(QRY_IN(QryWorldRoot) root, vec3 o, QRY_IN(QryRaySetup) setup, float t_min, float t_max,
                            QRY_OUT(QryRayState) ray, QRY_OUT(QryDdaState) dda) {
  ray.eye = mix(o, -o, setup.negative);
  ray.s = kQryNotStepped;
  ray.changed = kQryStart;

  // Clip to the bounds. They are two voxels larger than the box of set voxels, so that float error here does not
  // matter.
  const vec3 room = setup.high - ray.eye, leave = room * setup.inv;
  ray.stop = min(min(t_max, 1e9f), min(leave.x, min(leave.y, leave.z)));  // beyond 1e9: along a flat axis
  ray.start = kQryInside ? 0.0f : max(0.0f, t_min);
  float entry = -1.0f;
  if (!kQryInside) {
    const vec3 enter = (setup.low - ray.eye) * setup.inv;
    entry = max(enter.x, max(enter.y, enter.z));
    ray.start = max(ray.start, entry);
  }
  if (!(ray.start <= ray.stop) || root.brick_count == 0u) return false;
  // A ray that starts 1/64 voxel off the bounds and goes outwards ends at once.
  if (kQryInside && min(room.x, min(room.y, room.z)) < 2.0f - 1.0f / 128.0f) return false;

  const vec3 about = kQryInside ? ray.eye : fma(vec3(ray.start), setup.a, ray.eye);
  const vec3 number = floor(fma(about, vec3(1.0f / kQryOriginStep), vec3(-kQryOriginMargin / kQryOriginStep))),
             corner = kQryOriginStep * number;
  dda.origin = uint(int(fma(number.z, 65536.0f, fma(number.y, 256.0f, number.x)) +
                        dot(qry_origin_numbers(), vec3(1.0f, 256.0f, 65536.0f))));
  ray.at = (kQryInside ? ray.eye - corner : qry_from_corner(ray.eye, setup.a, ray.start, corner)) + kQryLocalOrigin;
  if (!kQryInside && ray.start == 0.0f) {  // exactly in the cell that holds o, below its upper planes
    const vec3 cell = floor(o), cell_low = mix(cell, -1.0f - cell, setup.negative) - corner + kQryLocalOrigin;
    ray.at = clamp(ray.at, cell_low, cell_low + (1.0f - kQryUnit));
  }
  ray.v = floatBitsToUint(ray.at);
  ray.base = ray.start;
  ray.end = qry_origin_end(setup, ray);
  if (!kQryInside && ray.start > 0.0f && ray.start == entry) {
    // Go to the tight box, as by a step. The two voxels before it are empty and need no test. A ray that starts farther
    // on has passed them.
    const vec3 tight = setup.low + 2.0f - corner + kQryLocalOrigin, to_tight = (tight - ray.at) * setup.inv;
    const float s = max(to_tight.x, max(to_tight.y, to_tight.z));
    if (s > 0.0f && s < ray.end) {
      ray.s = s;
      ray.v = floatBitsToUint(max(fma(vec3(s), setup.a, ray.at), tight));
    }
  }
  return true;
}

// The voxel that the ray is in, biased, and its brick.
QRY_WALK ivec3 qry_voxel(QRY_IN(QryRaySetup) setup, QRY_IN(QryRayState) ray, QRY_IN(QryDdaState) dda) {
  return qry_mirrored_cell(dda.origin, ray.v) ^ mix(ivec3(0), kVoxelExtent - 1, qry_negative_axes(setup.flip));
}
QRY_WALK uint qry_brick(QRY_IN(QryWorldRoot) root, QRY_IN(QryRaySetup) setup, QRY_IN(QryRayState) ray,
                        QRY_IN(QryDdaState) dda) {
#if defined(QRY_PAGED)
  if (!dda.there) return qry_coarse_brick(root, dda.level1, qry_index(ray.v, 3u, setup.flip));
#endif
  return qry_level1_brick(root, dda.level1, qry_index(ray.v, 3u, setup.flip));
}

// Goes from cell to cell to the first set voxel from o, t in [t_min, t_max]. Returns false if there is none. With
// kQrySkipsMaterial, voxels of `skip_material` count as empty.
QRY_WALK bool qry_dda(QRY_IN(QryWorldRoot) root, vec3 o, QRY_IN(QryRaySetup) setup, float t_min, float t_max,
                      uint skip_material, QRY_OUT(QryRayState) ray, QRY_OUT(QryDdaState) dda, QRY_INOUT(uint) steps) {
  if (!qry_ray_begin(root, o, setup, t_min, t_max, ray, dda)) return false;
  if (kQryCount && ray.s > 0.0f) ++steps;  // the step to the tight box
  bool found = false;
  for (;;) {
    if (kQryCount) ++steps;
    uint below = qry_descend(root, setup.flip, ray.v, ray.changed, dda);
    if (below == 0u) {
      found = true;
      if (!kQrySkipsMaterial) break;
      if (qry_material(root, qry_brick(root, setup, ray, dda), qry_voxel(setup, ray, dda)) != skip_material) break;
      found = false;
      below = kQryVoxel - 1u;
    }

    // Go to the exit of the cube. Its upper planes are one unit above `high`.
    const uvec3 high = ray.v | below;
    const vec3 plane = uintBitsToFloat(high) + kQryUnit, to_plane = (plane - ray.at) * setup.inv;
    ray.s = min(to_plane.x, min(to_plane.y, to_plane.z));
    const bool by_x = to_plane.x == ray.s, by_y = !by_x && to_plane.y == ray.s;
    const bvec3 by = bvec3(by_x, by_y, !by_x && !by_y);
    const uvec3 next = floatBitsToUint(
        mix(min(max(fma(vec3(ray.s), setup.a, ray.at), uintBitsToFloat(ray.v)), uintBitsToFloat(high)), plane, by));
    if (!(ray.s < ray.end)) {
      ray.base += ray.s;
      if (!(ray.base <= ray.stop)) break;
      // Move the origin by one step on each axis on which the ray is that far. Compute the ray's place from there anew.
      const bvec3 far =
          greaterThanEqual(uintBitsToFloat(next), vec3(kQryLocalOrigin + kQryOriginStep + kQryOriginMargin));
      ray.v = floatBitsToUint(uintBitsToFloat(next) - mix(vec3(0.0f), vec3(kQryOriginStep), far));
      dda.origin += (far.x ? 1u : 0u) + (far.y ? 256u : 0u) + (far.z ? 65536u : 0u);
      const vec3 corner =
          kQryOriginStep * (vec3(uvec3(dda.origin, dda.origin >> 8, dda.origin >> 16) & 255u) - qry_origin_numbers());
      ray.at = min(qry_from_corner(ray.eye, setup.a, ray.base, corner) + kQryLocalOrigin,
                   uintBitsToFloat(ray.v | (kQryVoxel - 1u)));
      ray.end = qry_origin_end(setup, ray);
      ray.changed = kQryStart;
      ray.s = kQryNewOrigin - (by.x ? 0.0f : by.y ? 1.0f : 2.0f);
      continue;
    }
    ray.changed = (next.x ^ ray.v.x) | (next.y ^ ray.v.y) | (next.z ^ ray.v.z);
    ray.v = next;
  }
  return found;
}

// Tells whether there is a set voxel on the ray from o for t in [0, t_max].
QRY_WALK bool qry_occluded(QRY_IN(QryWorldRoot) root, vec3 o, QRY_IN(QryRaySetup) setup, float t_max) {
  QryRayState ray;
  QryDdaState dda;
  uint steps = 0u;
  return qry_dda(root, o, setup, 0.0f, t_max, 0u, ray, dda, steps);
}

// Finds the first set voxel on o + t*d for t in [t_min, t_max]. With kQrySkipsMaterial, voxels of `skip_material` count
// as empty.
QRY_WALK QryHit qry_traverse(QRY_IN(QryWorldRoot) root, vec3 o, vec3 d, float t_min, float t_max, uint skip_material) {
  QryHit hit;
  hit.t = -1.0f;
  hit.voxel = ivec3(0);
  hit.face = 0u;
  hit.brick = kQryReservedValue;
  hit.steps = 0u;
  hit.sectors = 0u;
  const QryRaySetup setup = qry_ray_setup(root, d);
  QryRayState ray;
  QryDdaState dda;
  const bool found = qry_dda(root, o, setup, t_min, t_max, skip_material, ray, dda, hit.steps);
  QRY_TOGETHER();
  if (!found) return hit;

  const ivec3 mirrored = qry_mirrored_cell(dda.origin, ray.v);
  hit.voxel = qry_voxel(setup, ray, dda);
  if (!kQryStopAtBricks) hit.brick = qry_brick(root, setup, ray, dda);
  if (kQryCount) qry_find_brick(root, qry_key_of(hit.voxel), hit.sectors);
  // The voxel was entered through the plane of the last step. It is the plane whose distance, computed in the same way,
  // is s.
  const vec3 stepped = (uintBitsToFloat(ray.v & ~(kQryVoxel - 1u)) - ray.at) * setup.inv;
  uint axis = stepped.x == ray.s ? 0u : stepped.y == ray.s ? 1u : 2u;
  if (ray.s == kQryNotStepped)
    axis = setup.a.x >= setup.a.y && setup.a.x >= setup.a.z ? 0u : setup.a.y >= setup.a.z ? 1u : 2u;
  else if (ray.s < 0.0f) axis = uint(kQryNewOrigin - ray.s);
  hit.face = 2u * axis + ((setup.flip >> (2u * axis)) & 1u);
  // Compute the distance of that plane again and exactly: the rounding error of the difference is kept.
  const float plane = float(axis == 0u   ? mirrored.x - kVoxelBias.x
                            : axis == 1u ? mirrored.y - kVoxelBias.y
                                         : mirrored.z - kVoxelBias.z);
  const float eye = axis == 0u   ? ray.eye.x
                    : axis == 1u ? ray.eye.y
                                 : ray.eye.z,
              inv = axis == 0u   ? setup.inv.x
                    : axis == 1u ? setup.inv.y
                                 : setup.inv.z;
  precise float gap = plane - eye;
  precise float part = gap - plane;
  precise float lost = (plane - (gap - part)) - (eye + part);
  hit.t = ray.s == kQryNotStepped ? ray.start : max(ray.start, fma(gap, inv, lost * inv));
  return hit;
}

#endif
