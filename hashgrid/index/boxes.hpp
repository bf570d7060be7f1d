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

// The parts of a box, which rise. At depth 0 it is one part. Else the smallest power of two that is not less than the
// longest edge is the edge of a block; the box is in up to 2 x 2 x 2 of these, and each is cut `depth` - 1 times
// into 8. Most parts are empty.
QRY_HD inline uint32_t box_parts(uint32_t depth) { return depth == 0 ? 1u : 1u << 3 * depth; }

QRY_HD inline bool box_part(const MortonBox& box, uint32_t depth, uint32_t number, BoxPart* part) {
  if (depth == 0) {
    part->range = morton_range(box);
    part->whole = false;
    return true;
  }
  --depth;
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

// Calls use(cursor) for each key of a part, in order. `first`: the place of its least code.
template <class Use>
QRY_HD inline void for_each_in_part(const IndexView<uint64_t>& view, const BoxPart& part, IndexPlace first,
                                    const Use& use) {
  IndexCursor<uint64_t> cursor(view, first);
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
  const BoxPart whole{morton_range(box), false};
  detail::for_each_in_part(view, whole, place_of(view, whole.range.min), use);
}

}  // namespace quarry::hashgrid
