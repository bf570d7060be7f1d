// SPDX-License-Identifier: Apache-2.0
// coords.cpp - boxes, and the group of the 48 rotations and mirrorings as signed permutations of the axes.
#include "voxel/bricks/coords.hpp"

#include <algorithm>

namespace quarry {

Box3 united(const Box3& a, const Box3& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {{std::min(a.min.x, b.min.x), std::min(a.min.y, b.min.y), std::min(a.min.z, b.min.z)},
          {std::max(a.max.x, b.max.x), std::max(a.max.y, b.max.y), std::max(a.max.z, b.max.z)}};
}

Box3 intersected(const Box3& a, const Box3& b) {
  const Box3 both{{std::max(a.min.x, b.min.x), std::max(a.min.y, b.min.y), std::max(a.min.z, b.min.z)},
                  {std::min(a.max.x, b.max.x), std::min(a.max.y, b.max.y), std::min(a.max.z, b.max.z)}};
  return both.empty() ? Box3{} : both;
}

bool Rotation::valid() const {
  unsigned axes = 0;
  for (size_t row = 0; row < 3; ++row) {
    if (axis[row] > 2 || (sign[row] != 1 && sign[row] != -1)) return false;
    axes |= 1u << axis[row];
  }
  return axes == 7;
}

bool Rotation::mirrored() const {
  // The determinant of a signed permutation: parity of the permutation times the product of the signs.
  const int inversions = (axis[0] > axis[1]) + (axis[0] > axis[2]) + (axis[1] > axis[2]);
  const int negative = (sign[0] < 0) + (sign[1] < 0) + (sign[2] < 0);
  return ((inversions + negative) & 1) != 0;
}

Rotation Rotation::inverse() const {
  Rotation inverted;
  for (uint8_t row = 0; row < 3; ++row) {
    inverted.axis[axis[row]] = row;
    inverted.sign[axis[row]] = sign[row];
  }
  return inverted;
}

Rotation operator*(const Rotation& outer, const Rotation& inner) {
  Rotation product;
  for (size_t row = 0; row < 3; ++row) {
    product.axis[row] = inner.axis[outer.axis[row]];
    product.sign[row] = int8_t(outer.sign[row] * inner.sign[outer.axis[row]]);
  }
  return product;
}

Int3 Rotation::apply_to_cell(Int3 cell) const {
  const int32_t in[3] = {cell.x, cell.y, cell.z};
  int32_t out[3];
  for (size_t row = 0; row < 3; ++row) out[row] = sign[row] > 0 ? in[axis[row]] : -1 - in[axis[row]];
  return {out[0], out[1], out[2]};
}

Int3 Rotation::apply_to_vector(Int3 v) const {
  const int32_t in[3] = {v.x, v.y, v.z};
  int32_t out[3];
  for (size_t row = 0; row < 3; ++row) out[row] = sign[row] > 0 ? in[axis[row]] : -in[axis[row]];
  return {out[0], out[1], out[2]};
}

}  // namespace quarry
