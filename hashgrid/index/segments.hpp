// SPDX-License-Identifier: Apache-2.0
// segments.hpp - lists of many keys that lie one after the other: the keys of ranges, and what of them is in boxes. Not
// where they begin and end (bodies.hpp).
//
// All keys of all ranges are one list, cut into pieces of equal length wherever ranges end in it, so long ranges are no
// single thread's. A *group* has a piece: one host thread, or the lanes of a warp, which read a leaf's slots side by
// side and write what they found side by side. One text for both; what differs is Group:
//   kLanes, lane()               how many they are, and which this one is
//   before(flag, &all)           of the lanes before this one, and of all: how many have the flag set
#pragma once

#include "hashgrid/index/boxes.hpp"
#include "hashgrid/index/operations.hpp"

namespace quarry::hashgrid::bodies {

// A thread by itself.
struct OneLane {
  static constexpr uint32_t kLanes = 1;
  QRY_HD uint32_t lane() const { return 0; }
  QRY_HD uint32_t before(bool flag, uint32_t* all) const {
    *all = flag ? 1 : 0;
    return 0;
  }
};

// The index of an array's first element that is not less than `value`, or greater than it.
template <bool kEqualToo, class T>
QRY_HD inline size_t bound(const T* sorted, size_t count, T value) {
  return count_before(count, [&](size_t i) { return kEqualToo ? sorted[i] <= value : sorted[i] < value; });
}

// Calls use(is one, slot, rank) for the keys of the ranks from `rank` to before `end`, in order. `leaf`: one that has
// the first key, or is before it. All lanes call it as often, with or without a key. Cost: the leaves, each read once.
template <class Key, class Group, class Use>
QRY_HD inline void for_each_rank(const IndexView<Key>& view, const Group& group, uint32_t leaf, uint32_t rank,
                                 uint32_t end, const Use& use) {
  constexpr uint32_t kSlots = IndexNode<Key>::kSlots, kLanes = Group::kLanes;
  const uint32_t leaves = view.shape.leaves;
  if constexpr (kLanes == 1) {
    (void)group;
    for (; leaf < leaves && view.before[leaf] < end; ++leaf) {
      const uint32_t first = view.before[leaf], behind = view.before[leaf + 1] < end ? view.before[leaf + 1] : end;
      for (uint32_t at = first < rank ? rank : first; at < behind; ++at)
        use(true, size_t{leaf} * kSlots + (at - first), at);
    }
  } else {
    static_assert(kLanes % kSlots == 0, "a step takes whole leaves");
    for (; leaf < leaves && view.before[leaf] < end; leaf += kLanes / kSlots) {
      const uint32_t mine = leaf + group.lane() / kSlots, slot = group.lane() % kSlots;
      uint32_t first = 0, behind = 0;
      if (mine < leaves) {
        first = view.before[mine];
        behind = view.before[mine + 1];
      }
      const uint32_t at = first + slot;
      use(at < behind && at >= rank && at < end, size_t{mine} * kSlots + slot, at);
    }
  }
}

// A piece of the list of all ranges' keys.
template <class Key>
struct ListRanges {
  IndexView<Key> view;
  const uint32_t* ranks;  // as RangeEnds has written them
  const uint32_t* leaves;
  const uint64_t* starts;  // of each range, and the number of all keys
  size_t ranges;
  uint32_t piece;  // keys
  Key* keys_out;
  uint32_t* values_out;
  template <class Group>
  QRY_HD void operator()(const Group& group, size_t number) const {
    uint64_t at = number * piece;
    const uint64_t end = at + piece < starts[ranges] ? at + piece : starts[ranges];
    for (size_t range = bound<true>(starts, ranges, at) - 1; at < end; ++range) {
      const uint64_t stop = starts[range + 1] < end ? starts[range + 1] : end;
      if (stop <= at) continue;
      const uint32_t rank = uint32_t(ranks[range * 2] + (at - starts[range]));
      // A range that has begun in another piece needs a search.
      const uint32_t leaf = at == starts[range] ? leaves[range] : leaf_of_rank(view, rank);
      for_each_rank(view, group, leaf, rank, uint32_t(rank + (stop - at)),
                    [&](bool is_one, size_t slot, uint32_t found) {
                      if (!is_one) return;
                      if (keys_out != nullptr) keys_out[at + (found - rank)] = view.keys[slot];
                      if (values_out != nullptr) values_out[at + (found - rank)] = view.values[slot];
                    });
      at = stop;
    }
  }
};

// The parts of boxes (boxes.hpp) that have keys between their first and their last code: candidates, of which those of
// a part that is not whole must be looked at.
struct BoxSegment {
  MortonRange range;
  uint32_t rank = 0, leaf = 0;
  bool whole = false;
};

// An end of a part of a box, to be looked for: even numbers are first codes, odd ones last codes.
struct BoxPartEnds {
  IndexView<uint64_t> view;
  const MortonBox* boxes;
  uint32_t depth;
  uint32_t* ranks;
  uint32_t* leaves;  // of each part's first code
  QRY_HD bool part(size_t i, BoxPart* part) const {
    const uint32_t parts = detail::box_parts(depth);
    return detail::box_part(boxes[i / 2 / parts], depth, uint32_t(i / 2 % parts), part);
  }
  // Of parts that are none any key will do.
  QRY_HD uint64_t key(size_t i) const {
    BoxPart found;
    if (!part(i, &found)) return 0;
    return i % 2 == 0 ? found.range.min : found.range.max;
  }
  QRY_HD uint32_t operator()(size_t i, IndexPlace place) const {
    BoxPart found;
    if (!part(i, &found)) {
      ranks[i] = 0;
      return 0;
    }
    if (i % 2 == 0) leaves[i / 2] = place.leaf;
    ranks[i] = rank_of(view, place) + (i % 2 != 0 && is_at(view, place, found.range.max) ? 1u : 0u);
    return 0;
  }
};
// Candidates of each part, and whether it has any.
struct CountCandidates {
  const uint32_t* ranks;
  uint64_t* counts;
  uint64_t* used;
  QRY_HD uint32_t operator()(size_t i) const {
    counts[i] = ranks[i * 2 + 1] - ranks[i * 2];
    used[i] = counts[i] != 0;
    return 0;
  }
};
// The parts that have candidates, one behind the other.
struct PickSegments {
  BoxPartEnds ends;
  const uint64_t* counts;  // candidates before each part
  const uint64_t* used;    // segments before each part
  BoxSegment* segments;
  uint64_t* starts;  // of each segment's candidates
  QRY_HD uint32_t operator()(size_t i) const {
    if (used[i + 1] == used[i]) return 0;
    BoxPart part;
    ends.part(i * 2, &part);
    segments[used[i]] = {part.range, ends.ranks[i * 2], ends.leaves[i], part.whole};
    starts[used[i]] = counts[i];
    return 0;
  }
};

// Candidates of boxes, in the order of the list.
struct BoxCandidates {
  IndexView<uint64_t> view;
  const BoxSegment* segments;
  const uint64_t* starts;  // of each, and the number of all
  size_t count;            // segments

  // Calls use(is inside, slot) for those from `at` to before `end`, all lanes as often; whole(n, ...) instead, where
  // n of them are inside, if that is enough.
  template <class Group, class Use, class Whole>
  QRY_HD void visit(const Group& group, uint64_t at, uint64_t end, const Use& use, const Whole& whole) const {
    if (at >= end) return;
    for (size_t i = bound<true>(starts, count, at) - 1; at < end; ++i) {
      const BoxSegment& segment = segments[i];
      const uint64_t stop = starts[i + 1] < end ? starts[i + 1] : end;
      if (!(segment.whole && whole(stop - at))) {
        const uint32_t rank = uint32_t(segment.rank + (at - starts[i]));
        const uint32_t leaf = at == starts[i] ? segment.leaf : leaf_of_rank(view, rank);
        for_each_rank(view, group, leaf, rank, uint32_t(rank + (stop - at)), [&](bool is_one, size_t slot, uint32_t) {
          use(is_one && (segment.whole || is_inside(view.keys[slot], segment.range)), slot);
        });
      }
      at = stop;
    }
  }
  template <class Group>
  QRY_HD uint64_t inside(const Group& group, uint64_t at, uint64_t end) const {
    uint64_t sum = 0;
    visit(
        group, at, end,
        [&](bool is_inside, size_t) {
          uint32_t all = 0;
          group.before(is_inside, &all);
          sum += all;
        },
        [&](uint64_t n) {
          sum += n;
          return true;
        });
    return sum;
  }
};
struct CountInside {
  BoxCandidates candidates;
  uint32_t piece;
  uint64_t* counts;  // of each piece
  template <class Group>
  QRY_HD void operator()(const Group& group, size_t number) const {
    const uint64_t at = number * piece, all = candidates.starts[candidates.count];
    const uint64_t sum = candidates.inside(group, at, at + piece < all ? at + piece : all);
    if (group.lane() == 0) counts[number] = sum;
  }
};
struct ListInside {
  BoxCandidates candidates;
  uint32_t piece;
  const uint64_t* piece_starts;
  uint64_t* keys_out;
  uint32_t* values_out;
  template <class Group>
  QRY_HD void operator()(const Group& group, size_t number) const {
    const uint64_t at = number * piece, all = candidates.starts[candidates.count];
    uint64_t to = piece_starts[number];
    candidates.visit(
        group, at, at + piece < all ? at + piece : all,
        [&](bool is_inside, size_t slot) {
          uint32_t found = 0;
          const uint32_t before = group.before(is_inside, &found);
          if (is_inside) {
            if (keys_out != nullptr) keys_out[to + before] = candidates.view.keys[slot];
            if (values_out != nullptr) values_out[to + before] = candidates.view.values[slot];
          }
          to += found;
        },
        [](uint64_t) { return false; });
  }
};
// Where each box's keys begin: what is before its piece, and what of the piece is before it.
struct InsideStarts {
  BoxCandidates candidates;
  const uint64_t* counts;  // candidates before each part of a box
  uint32_t parts;
  uint32_t piece;
  const uint64_t* piece_starts;
  uint64_t* starts_out;
  template <class Group>
  QRY_HD void operator()(const Group& group, size_t box) const {
    const uint64_t first = counts[box * parts], piece_number = first / piece;
    const uint64_t sum = piece_starts[piece_number] + candidates.inside(group, piece_number * piece, first);
    if (group.lane() == 0) starts_out[box] = sum;
  }
};

}  // namespace quarry::hashgrid::bodies
