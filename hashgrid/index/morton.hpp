// SPDX-License-Identifier: Apache-2.0
// morton.hpp - three coordinates of 21 bits as one 63-bit number whose order is the Z-order, and boxes in it.
//
//   bit     62 61 60 ... 5  4  3  2  1  0
//   axis     z  y  x     z  y  x  z  y  x      x has the lowest bit
//
// G. Morton, 1966. H. Tropf, H. Herzog, "Multidimensional Range Search in Dynamically Balanced Trees", 1981: BIGMIN,
// the way from a number outside a box to the next one inside.
#pragma once

#include <cstdint>

#include "hashgrid/table/outcome.hpp"

namespace quarry::hashgrid {

constexpr uint32_t kMortonBits = 21;  // of each axis
constexpr uint32_t kMortonMost = (1u << kMortonBits) - 1;

// A box of coordinates, both corners included, each at most kMortonMost. A box whose minimum is beyond its maximum is
// wrong, not empty.
struct MortonBox {
  uint32_t min[3];
  uint32_t max[3];
};

namespace detail {

constexpr uint64_t kMortonX = 0x1249249249249249u;  // the bits of x

// 21 bits, two zeros between each two.
QRY_HD constexpr uint64_t spread_by_three(uint64_t v) {
  v = (v | v << 32) & 0x001F00000000FFFFu;
  v = (v | v << 16) & 0x001F0000FF0000FFu;
  v = (v | v << 8) & 0x100F00F00F00F00Fu;
  v = (v | v << 4) & 0x10C30C30C30C30C3u;
  v = (v | v << 2) & 0x1249249249249249u;
  return v;
}
QRY_HD constexpr uint32_t gather_by_three(uint64_t v) {
  v &= 0x1249249249249249u;
  v = (v | v >> 2) & 0x10C30C30C30C30C3u;
  v = (v | v >> 4) & 0x100F00F00F00F00Fu;
  v = (v | v >> 8) & 0x001F0000FF0000FFu;
  v = (v | v >> 16) & 0x001F00000000FFFFu;
  v = (v | v >> 32) & 0x00000000001FFFFFu;
  return uint32_t(v);
}
QRY_HD inline uint32_t bit_length(uint64_t v) {  // 0 of 0
#if defined(__CUDA_ARCH__)
  return 64u - uint32_t(__clzll((long long)v));
#else
  return v == 0 ? 0u : 64u - uint32_t(__builtin_clzll(v));
#endif
}

}  // namespace detail

// Coordinates of at most kMortonMost.
QRY_HD constexpr uint64_t morton_encode(uint32_t x, uint32_t y, uint32_t z) {
  return detail::spread_by_three(x) | detail::spread_by_three(y) << 1 | detail::spread_by_three(z) << 2;
}
QRY_HD constexpr uint32_t morton_x(uint64_t code) { return detail::gather_by_three(code); }
QRY_HD constexpr uint32_t morton_y(uint64_t code) { return detail::gather_by_three(code >> 1); }
QRY_HD constexpr uint32_t morton_z(uint64_t code) { return detail::gather_by_three(code >> 2); }

// A box by the codes of its corners. A code is inside if it is on each axis, which needs no decoding.
struct MortonRange {
  uint64_t min = 0, max = 0;
};
QRY_HD constexpr MortonRange morton_range(const MortonBox& box) {
  return {morton_encode(box.min[0], box.min[1], box.min[2]), morton_encode(box.max[0], box.max[1], box.max[2])};
}
QRY_HD constexpr bool is_inside(uint64_t code, const MortonRange& box) {
  bool inside = true;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    const uint64_t bits = detail::kMortonX << axis, at = code & bits;
    inside = inside && at >= (box.min & bits) && at <= (box.max & bits);
  }
  return inside && code >> 63 == 0;
}

// The least code inside the box that is greater than `code`, which is between the corners' codes and not inside. Cost:
// a step for each bit from the first in which the corners differ.
QRY_HD inline uint64_t big_min(uint64_t code, MortonRange box) {
  uint64_t least = 0;
  for (uint32_t bit = detail::bit_length(box.min ^ box.max); bit-- > 0;) {
    const uint64_t one = uint64_t{1} << bit, lower = (detail::kMortonX << bit % 3) & (one - 1);  // of the same axis
    const bool of_code = (code & one) != 0, of_min = (box.min & one) != 0, of_max = (box.max & one) != 0;
    if (of_min == of_max) {
      if (of_code == of_min) continue;
      return of_code ? least : box.min;  // behind what is left of the box, or before it
    }
    // The axis is halved here.
    if (of_code) {
      box.min = (box.min & ~lower) | one;
    } else {
      least = (box.min & ~lower) | one;
      box.max = (box.max & ~one) | lower;
    }
  }
  return least;
}

}  // namespace quarry::hashgrid
