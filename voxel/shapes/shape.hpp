// SPDX-License-Identifier: Apache-2.0
// shape.hpp - what an edit is, and which voxels its shape has: exact integers, one text for host threads and kernels.
//
// A box, a ball, or a capsule needs no memory: it is decided voxel by voxel from its numbers. Floating point only skips
// parts that are safely far away. What is flooded, and lines without a radius, are lists instead
// (voxel/worlds/edit_shape.hpp).
#pragma once

#include <cstdint>

#include "hashgrid/table/outcome.hpp"
#include "voxel/bricks/coords.hpp"

namespace quarry {

enum class Shape : uint8_t {
  box,     // all voxels of [a, b], corners in any order
  sphere,  // voxels whose centre is within `radius` of the centre of voxel a
  // Voxels whose centre is within `radius` of the segment from a's to b's centre (a capsule); radius 0: the 6-connected
  // line.
  line,
  // The voxels that are connected with a's, through faces, by voxels of a's material: what a bucket of paint reaches.
  // None if it is empty. Other than the rest it depends on the volume.
  connected,
};
enum class Mode : uint8_t {
  add,      // empty voxels become `material`; set ones stay
  remove,   // set voxels are removed
  paint,    // set voxels become `material`; empty ones stay
  replace,  // set voxels whose material is `from` become `material` (0: removed)
  fill,     // all voxels become `material`
};

constexpr int kMostEditRadius = 4096;

struct Edit {
  Shape shape = Shape::box;
  Mode mode = Mode::add;
  Int3 a, b;
  double radius = 0;  // in voxels, 0..kMostEditRadius
  uint8_t material = 1;
  uint8_t from = 0;

  // True if it may set voxels where there was none.
  bool creates() const { return (mode == Mode::add || mode == Mode::fill) && material != 0; }
};

// A box, a ball or a capsule, ready to be evaluated. EditShape::create() makes it from an edit.
struct SolidShape {
  Shape shape = Shape::box;
  Box3 bounds;
  Int3 a, b;
  double radius = 0;
  int64_t radius2 = 0;   // floor(radius^2): the limit of an integer squared distance
  int64_t segment2 = 0;  // |b - a|^2
  int64_t cross2 = 0;    // floor(radius^2 * |b - a|^2): the limit of |v x (b - a)|^2

  // True if all voxels of the brick are in the shape. False may be wrong, but for boxes and balls.
  QRY_HD bool holds(Int3 brick) const;
  // False if no voxel of the cube of 2^level bricks along each axis that begins at the given brick is in the shape;
  // true if some may be.
  QRY_HD bool meets_cube(int64_t brick_x, int64_t brick_y, int64_t brick_z, uint32_t level) const;
  QRY_HD bool in_capsule(int64_t x, int64_t y, int64_t z) const;
  // The voxels of one octant of a brick, as a word of its mask. The brick meets the shape (meets_cube).
  QRY_HD uint64_t octant(Int3 brick, uint32_t number) const;
  // Eight of them, as byte `byte` of that word.
  QRY_HD uint32_t eight(Int3 brick, uint32_t number, uint32_t byte) const;
};

namespace shape_detail {

QRY_HD inline int64_t square(int64_t v) { return v * v; }
QRY_HD inline int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }
QRY_HD inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
// Distance from `at` to the nearest and to the farthest of the cells [low, low + edge).
QRY_HD inline int64_t nearest(int64_t at, int64_t low, int64_t edge) {
  return at < low ? low - at : at >= low + edge ? at - (low + edge - 1) : 0;
}
QRY_HD inline int64_t farthest(int64_t at, int64_t low, int64_t edge) {
  return larger(magnitude(at - low), magnitude(low + edge - 1 - at));
}
// Bit i: cell low + i, of four, is in [min, max].
QRY_HD inline uint32_t four_in(int64_t low, int64_t min, int64_t max) {
  uint32_t bits = 0;
  for (int64_t i = 0; i < 4; ++i) bits |= uint32_t(low + i >= min && low + i <= max) << i;
  return bits;
}

}  // namespace shape_detail

QRY_HD inline bool SolidShape::holds(Int3 brick) const {
  const int64_t x = int64_t(brick.x) * 8, y = int64_t(brick.y) * 8, z = int64_t(brick.z) * 8;
  if (shape == Shape::box)
    return bounds.min.x <= x && bounds.min.y <= y && bounds.min.z <= z && bounds.max.x >= x + 7 &&
           bounds.max.y >= y + 7 && bounds.max.z >= z + 7;
  using namespace shape_detail;
  return shape == Shape::sphere &&
         square(farthest(a.x, x, 8)) + square(farthest(a.y, y, 8)) + square(farthest(a.z, z, 8)) <= radius2;
}

QRY_HD inline bool SolidShape::meets_cube(int64_t brick_x, int64_t brick_y, int64_t brick_z, uint32_t level) const {
  using namespace shape_detail;
  const int64_t x = brick_x * 8, y = brick_y * 8, z = brick_z * 8, edge = int64_t(8) << level;
  if (x > bounds.max.x || x + edge <= bounds.min.x || y > bounds.max.y || y + edge <= bounds.min.y ||
      z > bounds.max.z || z + edge <= bounds.min.z)
    return false;
  if (shape == Shape::box) return true;
  if (shape == Shape::sphere)
    return square(nearest(a.x, x, edge)) + square(nearest(a.y, y, edge)) + square(nearest(a.z, z, edge)) <= radius2;
  // Compares a ball around the cube's cells with the segment. One voxel of margin covers rounding, and the thin line,
  // which deviates from its segment by less than that.
  const double half = double(edge - 1) / 2;
  const double vx = double(x - a.x) + half, vy = double(y - a.y) + half, vz = double(z - a.z) + half;
  const double dx = double(int64_t(b.x) - a.x), dy = double(int64_t(b.y) - a.y), dz = double(int64_t(b.z) - a.z);
  double t = segment2 ? (vx * dx + vy * dy + vz * dz) / double(segment2) : 0.0;
  t = t < 0 ? 0 : t > 1 ? 1 : t;
  const double px = vx - t * dx, py = vy - t * dy, pz = vz - t * dz;
  const double near_enough = radius + half * 1.7320508075688773 + 1;
  return px * px + py * py + pz * pz <= near_enough * near_enough;
}

QRY_HD inline bool SolidShape::in_capsule(int64_t x, int64_t y, int64_t z) const {
  using namespace shape_detail;
  const int64_t vx = x - a.x, vy = y - a.y, vz = z - a.z;
  const int64_t dx = int64_t(b.x) - a.x, dy = int64_t(b.y) - a.y, dz = int64_t(b.z) - a.z;
  const int64_t along = vx * dx + vy * dy + vz * dz;
  if (along <= 0) return square(vx) + square(vy) + square(vz) <= radius2;
  if (along >= segment2) return square(vx - dx) + square(vy - dy) + square(vz - dz) <= radius2;
  // Between the ends: distance^2 = |v x d|^2 / |d|^2. The bound is at most 4096^2 * 3 * 2^30 < 2^56, so a component
  // beyond 2^29 decides, and squares of smaller ones fit.
  const int64_t cx = vy * dz - vz * dy, cy = vz * dx - vx * dz, cz = vx * dy - vy * dx;
  constexpr int64_t kFar = int64_t(1) << 29;
  if (magnitude(cx) > kFar || magnitude(cy) > kFar || magnitude(cz) > kFar) return false;
  return square(cx) + square(cy) + square(cz) <= cross2;
}

QRY_HD inline uint64_t SolidShape::octant(Int3 brick, uint32_t number) const {
  using namespace shape_detail;
  const int64_t x = int64_t(brick.x) * 8 + 4 * (number & 1u), y = int64_t(brick.y) * 8 + 4 * (number >> 1 & 1u),
                z = int64_t(brick.z) * 8 + 4 * (number >> 2);
  uint64_t mask = 0;
  if (shape == Shape::box) {
    const uint64_t row = four_in(x, bounds.min.x, bounds.max.x);
    const uint32_t rows = four_in(y, bounds.min.y, bounds.max.y), planes = four_in(z, bounds.min.z, bounds.max.z);
    uint64_t plane = 0;
    for (uint32_t i = 0; i < 4; ++i) plane |= (rows >> i & 1u ? row : 0) << (4 * i);
    for (uint32_t i = 0; i < 4; ++i) mask |= (planes >> i & 1u ? plane : 0) << (16 * i);
    return mask;
  }
  if (shape == Shape::sphere) {
    // The octant is at most 8 cells outside of the ball's box: no more than 4104 from the centre along each axis.
    const auto dx = int32_t(x - a.x), dy = int32_t(y - a.y), dz = int32_t(z - a.z), limit = int32_t(radius2);
    const int32_t x0 = dx * dx, x1 = (dx + 1) * (dx + 1), x2 = (dx + 2) * (dx + 2), x3 = (dx + 3) * (dx + 3);
    for (int32_t i = 0; i < 16; ++i) {
      const int32_t cy = dy + (i & 3), cz = dz + (i >> 2), left = limit - cy * cy - cz * cz;
      const uint32_t row =
          uint32_t(x0 <= left) | uint32_t(x1 <= left) << 1 | uint32_t(x2 <= left) << 2 | uint32_t(x3 <= left) << 3;
      mask |= uint64_t(row) << (4 * i);
    }
    return mask;
  }
  for (uint32_t i = 0; i < 64; ++i) mask |= uint64_t(in_capsule(x + (i & 3u), y + (i >> 2 & 3u), z + (i >> 4))) << i;
  return mask;
}

QRY_HD inline uint32_t SolidShape::eight(Int3 brick, uint32_t number, uint32_t byte) const {
  using namespace shape_detail;
  const int64_t x = int64_t(brick.x) * 8 + 4 * (number & 1u),
                y = int64_t(brick.y) * 8 + 4 * (number >> 1 & 1u) + 2 * (byte & 1u),
                z = int64_t(brick.z) * 8 + 4 * (number >> 2) + (byte >> 1);
  uint32_t bits = 0;
  if (shape == Shape::box) {
    if (z < bounds.min.z || z > bounds.max.z) return 0;
    const uint32_t row = four_in(x, bounds.min.x, bounds.max.x);
    if (y >= bounds.min.y && y <= bounds.max.y) bits = row;
    if (y + 1 >= bounds.min.y && y + 1 <= bounds.max.y) bits |= row << 4;
  } else if (shape == Shape::sphere) {  // in 32 bits, as in octant()
    const auto dx = int32_t(x - a.x), dy = int32_t(y - a.y), dz = int32_t(z - a.z), limit = int32_t(radius2) - dz * dz;
    for (int32_t i = 0; i < 8; ++i) {
      const int32_t cx = dx + (i & 3), cy = dy + (i >> 2);
      bits |= uint32_t(cx * cx + cy * cy <= limit) << i;
    }
  } else {
    for (uint32_t i = 0; i < 8; ++i) bits |= uint32_t(in_capsule(x + (i & 3u), y + (i >> 2), z)) << i;
  }
  return bits;
}

}  // namespace quarry
