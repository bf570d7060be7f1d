// SPDX-License-Identifier: Apache-2.0
// boxes.hpp - the keys in a box, in order, of an index whose keys are Morton codes.
//
// A box is walked in Z-order: while keys are inside they are taken, from one outside BIGMIN leads to the next code
// inside (morton.hpp), which is mostly in the same leaf. Large boxes are cut into cells of the octree first, so that
// many threads have work and whole cells need no test of their keys.
#pragma once

#include "hashgrid/index/morton.hpp"
#include "hashgrid/index/view.hpp"

namespace quarry::hashgrid {

// A part of a box: an aligned cell of the octree, or what of it is in the box.
struct BoxPart {
  MortonRange range;
  bool whole = false;  // all codes between the two are in the box
};

namespace detail {

// A box has 8 << 3 * depth parts, which rise. Most are empty; the box's size decides which: the smallest power of two
// that is not less than the longest edge is the edge of a block, the box is in up to 2 x 2 x 2 of them, and each is cut
// `depth` times.
QRY_HD inline uint32_t box_parts(uint32_t depth) { return 8u << 3 * depth; }

QRY_HD inline bool box_part(const MortonBox& box, uint32_t depth, uint32_t number, BoxPart* part) {
  uint32_t longest = 0;
  for (uint32_t axis = 0; axis < 3; ++axis) longest |= box.max[axis] - box.min[axis];
  const uint32_t block_bits = bit_length(longest), cuts = depth < block_bits ? depth : block_bits;
  const uint32_t wanted = number >> 3 * depth, cell = number & ((1u << 3 * depth) - 1);
  if (cell >> 3 * cuts != 0) return false;
  // The blocks' codes in order: neighbours may be far apart in it.
  uint64_t first[8];
  uint32_t blocks = 0;
  for (uint32_t corner = 0; corner < 8; ++corner) {
    uint32_t at[3];
    bool used = true;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      at[axis] = (box.min[axis] >> block_bits) + (corner >> axis & 1u);
      used = used && at[axis] <= box.max[axis] >> block_bits;
    }
    if (!used) continue;
    const uint64_t code = morton_encode(at[0], at[1], at[2]);
    uint32_t i = blocks++;
    for (; i > 0 && first[i - 1] > code; --i) first[i] = first[i - 1];
    first[i] = code;
  }
  if (wanted >= blocks) return false;
  const uint32_t cell_bits = block_bits - cuts;
  const uint64_t code = (first[wanted] << 3 * cuts | cell) << 3 * cell_bits;
  const uint32_t low[3] = {morton_x(code), morton_y(code), morton_z(code)};
  MortonBox clipped;
  part->whole = true;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    const uint32_t high = low[axis] + ((1u << cell_bits) - 1);
    clipped.min[axis] = low[axis] > box.min[axis] ? low[axis] : box.min[axis];
    clipped.max[axis] = high < box.max[axis] ? high : box.max[axis];
    if (clipped.min[axis] > clipped.max[axis]) return false;
    part->whole = part->whole && clipped.min[axis] == low[axis] && clipped.max[axis] == high;
  }
  part->range = morton_range(clipped);
  return true;
}

// Calls use(cursor) for each key of a part, in order.
template <class Use>
QRY_HD inline void for_each_in_part(const IndexView<uint64_t>& view, const BoxPart& part, const Use& use) {
  IndexCursor<uint64_t> cursor(view, place_of(view, part.range.min));
  while (cursor.is_valid()) {
    const uint64_t key = cursor.key();
    if (key > part.range.max) return;
    if (part.whole || is_inside(key, part.range)) {
      use(cursor);
      cursor.next();
    } else {
      cursor.seek(big_min(key, part.range));
    }
  }
}

}  // namespace detail

// Calls use(cursor) for each key in the box, in order, from one thread. The box's coordinates are in order and at most
// kMortonMost. Cost: the leaves that have keys in the box, and a jump for each gap that Z-order makes in it.
template <class Use>
QRY_HD inline void for_each_in_box(const IndexView<uint64_t>& view, const MortonBox& box, const Use& use) {
  BoxPart part;
  for (uint32_t number = 0; number < detail::box_parts(0); ++number)
    if (detail::box_part(box, 0, number, &part)) detail::for_each_in_part(view, part, use);
}

}  // namespace quarry::hashgrid
