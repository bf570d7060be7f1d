// SPDX-License-Identifier: Apache-2.0
// view.hpp - look-ups of one key in an ordered index, from any host thread or CUDA kernel.
//
// It is not the owner (hashgrid/ordered_index.hpp), nor its bulk calls. Nothing here writes. Any number of threads and
// kernels may read at once; nobody may while the owner changes the index.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashgrid/index/shape.hpp"

namespace quarry::hashgrid {

// An index in the memory of its executor; valid until the owner's next changing call. A leaf's keys stand at its front
// in rising order, the rest of it is the reserved key. A separator is greater than all keys of the leaves before it and
// at most the first key of those behind.
template <class Key>
struct IndexView {
  using Node = IndexNode<Key>;
  const Key* inner = nullptr;        // nodes of all levels, Node::kSlots separators each
  const Key* keys = nullptr;         // leaves, Node::kSlots keys each
  const uint32_t* values = nullptr;  // beside the keys
  const uint32_t* before = nullptr;  // keys before each leaf, and at [leaves] the number of keys
  IndexShape<Key> shape{};
  uint32_t size = 0;  // keys

  QRY_HD uint32_t in_leaf(uint32_t leaf) const { return before[leaf + 1] - before[leaf]; }
};

// How many of `count` elements are before a point: is_before(i) is true for the first ones, and false for the rest.
template <class IsBefore>
QRY_HD inline size_t count_before(size_t count, const IsBefore& is_before) {
  size_t low = 0;
  while (count > 0) {
    const size_t half = count / 2;
    if (is_before(low + half)) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}
// The last leaf that does not begin behind the rank.
template <class Key>
QRY_HD inline uint32_t leaf_of_rank(const IndexView<Key>& view, uint32_t rank) {
  return uint32_t(count_before(view.shape.leaves, [&](size_t leaf) { return view.before[leaf] <= rank; })) - 1;
}

// A place in an index: a slot of a leaf. At the leaf's end it stands for the first key behind.
struct IndexPlace {
  uint32_t leaf = 0, slot = 0;
};

// A value, as find() answers.
struct IndexFound {
  uint32_t value = kQryReservedValue;  // kQryReservedValue: the key is absent
  bool hit = false;
};

namespace detail {

// How many keys of a node are less than `key`, or at most `key`: all are compared, none is branched upon.
template <bool kEqualToo, class Key>
#if !defined(__CUDACC__) && defined(__GNUC__)
[[gnu::always_inline]]  // into functions for newer processors
#endif
QRY_HD inline uint32_t
count_in_node(const Key* node, Key key) {
#if defined(__CUDA_ARCH__)
  uint32_t count = 0;
  const uint4* const pieces = reinterpret_cast<const uint4*>(node);
#pragma unroll
  for (uint32_t p = 0; p < kIndexNodeBytes / 16; ++p) {
    const uint4 piece = pieces[p];
    if constexpr (sizeof(Key) == 4) {
      count += (kEqualToo ? piece.x <= key : piece.x < key) + (kEqualToo ? piece.y <= key : piece.y < key) +
               (kEqualToo ? piece.z <= key : piece.z < key) + (kEqualToo ? piece.w <= key : piece.w < key);
    } else {
      const Key low = Key{piece.y} << 32 | piece.x, high = Key{piece.w} << 32 | piece.z;
      count += (kEqualToo ? low <= key : low < key) + (kEqualToo ? high <= key : high < key);
    }
  }
  return count;
#else
  Key count = 0;  // of the keys' width, so that a vector of comparisons can be added as it is
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
                  // Unrolled, sixteen comparisons are no loop to vectorise: 64-bit keys are found at 2/3 of the rate.
#pragma GCC unroll 1
#endif
  for (uint32_t i = 0; i < IndexNode<Key>::kSlots; ++i) count += Key{kEqualToo ? node[i] <= key : node[i] < key};
  return uint32_t(count);
#endif
}

}  // namespace detail

// The leaf that has the key, if any has. The reserved key is looked for as the one before it. Cost: a node of each
// level.
template <class Key>
QRY_HD inline uint32_t leaf_of(const IndexView<Key>& view, Key key) {
  using Node = IndexNode<Key>;
  if (key == Node::kReservedKey) --key;
  uint32_t node = 0;
  for (uint32_t level = view.shape.levels; level-- > 0;)
    node = node * Node::kFanout +
           detail::count_in_node<true>(view.inner + (size_t{view.shape.first_node[level]} + node) * Node::kSlots, key);
  return node;
}
// The place of the first key that is not less. Cost: a node of each level, and a leaf.
template <class Key>
QRY_HD inline IndexPlace place_of(const IndexView<Key>& view, Key key) {
  const uint32_t leaf = leaf_of(view, key);
  return {leaf, detail::count_in_node<false>(view.keys + size_t{leaf} * IndexNode<Key>::kSlots, key)};
}
template <class Key>
QRY_HD inline bool is_at(const IndexView<Key>& view, IndexPlace place, Key key) {
  constexpr uint32_t kSlots = IndexNode<Key>::kSlots;
  return place.slot < kSlots && view.keys[size_t{place.leaf} * kSlots + place.slot] == key &&
         key != IndexNode<Key>::kReservedKey;
}
template <class Key>
QRY_HD inline uint32_t rank_of(const IndexView<Key>& view, IndexPlace place) {
  return view.before[place.leaf] + place.slot;
}

// The key's value. Cost: a node of each level, a leaf, and the value's sector.
template <class Key>
QRY_HD inline IndexFound find(const IndexView<Key>& view, Key key) {
  const IndexPlace place = place_of(view, key);
  IndexFound found;
  found.hit = is_at(view, place, key);
  if (found.hit) found.value = view.values[size_t{place.leaf} * IndexNode<Key>::kSlots + place.slot];
  return found;
}
// The number of keys less than `key`: the rank of the first that is not.
template <class Key>
QRY_HD inline uint32_t lower_bound(const IndexView<Key>& view, Key key) {
  return rank_of(view, place_of(view, key));
}

// Goes through the keys in order. is_valid() is false behind the last one.
template <class Key>
class IndexCursor {
 public:
  static constexpr uint32_t kSlots = IndexNode<Key>::kSlots;
  // At a place, or at the first key behind it if the place is its leaf's end.
  QRY_HD IndexCursor(const IndexView<Key>& view, IndexPlace place)
      : view_(view), leaf_(place.leaf), slot_(place.slot), end_(view.in_leaf(place.leaf)) {
    skip_ends();
  }
  // At the key of this rank.
  QRY_HD static IndexCursor at_rank(const IndexView<Key>& view, uint32_t rank) {
    const uint32_t leaf = leaf_of_rank(view, rank);
    return IndexCursor(view, {leaf, rank - view.before[leaf]});
  }
  QRY_HD bool is_valid() const { return leaf_ < view_.shape.leaves; }
  QRY_HD Key key() const { return view_.keys[size_t{leaf_} * kSlots + slot_]; }
  QRY_HD uint32_t value() const { return view_.values[size_t{leaf_} * kSlots + slot_]; }
  QRY_HD void next() {
    ++slot_;
    skip_ends();
  }
  // Forward to the first key that is not less than `key`: in this leaf or the next, or else from the root.
  QRY_HD void seek(Key key) {
    for (uint32_t leaf = leaf_; leaf < view_.shape.leaves && leaf < leaf_ + 2; ++leaf) {
      const uint32_t end = leaf == leaf_ ? end_ : view_.in_leaf(leaf);
      if (end == 0 || view_.keys[size_t{leaf} * kSlots + end - 1] < key) continue;
      slot_ = detail::count_in_node<false>(view_.keys + size_t{leaf} * kSlots, key);
      leaf_ = leaf;
      end_ = end;
      return;
    }
    const IndexPlace place = place_of(view_, key);
    leaf_ = place.leaf;
    slot_ = place.slot;
    end_ = view_.in_leaf(leaf_);
    skip_ends();
  }

 private:
  QRY_HD void skip_ends() {
    while (slot_ >= end_) {
      slot_ = 0;
      if (++leaf_ >= view_.shape.leaves) return;
      end_ = view_.in_leaf(leaf_);
    }
  }
  const IndexView<Key>& view_;
  uint32_t leaf_, slot_, end_;
};

}  // namespace quarry::hashgrid
