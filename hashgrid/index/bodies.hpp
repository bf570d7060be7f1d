// SPDX-License-Identifier: Apache-2.0
// bodies.hpp - what one thread does in each pass over an ordered index: one text for host threads and CUDA kernels. No
// body waits for another, and none needs shared memory. segments.hpp has those of more threads than one, passes.hpp
// their order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashgrid/index/boxes.hpp"
#include "hashgrid/index/operations.hpp"
#include "hashgrid/index/segments.hpp"
#include "hashgrid/index/view.hpp"

namespace quarry::hashgrid::bodies {

// Keeps the least number: which fault is the first does not depend on the threads.
QRY_HD inline void keep_least(uint64_t* least, uint64_t number) {
#if defined(__CUDA_ARCH__)
  atomicMin(reinterpret_cast<unsigned long long*>(least), (unsigned long long)number);
#else
  uint64_t now = __atomic_load_n(least, __ATOMIC_RELAXED);
  while (number < now && !__atomic_compare_exchange_n(least, &now, number, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}

// Views are of constant memory: the owner's passes alone write it.
template <class T>
QRY_HD inline T* writable(const T* memory) {
  return const_cast<T*>(memory);
}

enum Fault : uint32_t { kReservedKey, kReservedValue, kNotRising };

// Whether a key of a batch or its value is reserved, or the next key is not greater: noted as 4 * position + Fault if
// it is the first.
template <class Key>
QRY_HD inline void check_key(const Key* keys, const uint32_t* values, size_t count, size_t i, uint64_t* fault) {
  const Key key = keys[i];
  if (key == IndexNode<Key>::kReservedKey) keep_least(fault, i * 4 + kReservedKey);
  if (values[i] == kQryReservedValue) keep_least(fault, i * 4 + kReservedValue);
  if (i + 1 < count && key >= keys[i + 1]) keep_least(fault, i * 4 + kNotRising);
}
template <class Key>
struct CheckBatch {
  const Key* keys;
  const uint32_t* values;
  size_t count;
  uint64_t* fault;
  QRY_HD uint32_t operator()(size_t i) const {
    check_key(keys, values, count, i, fault);
    return 0;
  }
};

// Some slots of a leaf, which are written at once; their keys are checked on the way.
template <class Key>
struct BuildLeaves {
  static constexpr uint32_t kAtOnce = 4;
  template <class T>
  struct alignas(16) Slots {
    T at[kAtOnce];
  };
  IndexView<Key> view;
  uint32_t per_leaf;
  const Key* keys;
  const uint32_t* values;
  size_t count;
  uint64_t* fault;
  QRY_HD uint32_t operator()(size_t i) const {
    constexpr uint32_t kSlots = IndexNode<Key>::kSlots, kPieces = kSlots / kAtOnce;
    const uint32_t leaf = uint32_t(i / kPieces), slot = uint32_t(i % kPieces) * kAtOnce;
    const size_t first = size_t{leaf} * per_leaf, rank = first + slot;
    Slots<Key> to_keys;
    Slots<uint32_t> to_values;
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      const bool used = slot + k < per_leaf && rank + k < count;
      to_keys.at[k] = used ? keys[rank + k] : IndexNode<Key>::kReservedKey;
      to_values.at[k] = used ? values[rank + k] : kQryReservedValue;
      if (used) check_key(keys, values, count, rank + k, fault);
    }
    *reinterpret_cast<Slots<Key>*>(writable(view.keys) + i * kAtOnce) = to_keys;
    *reinterpret_cast<Slots<uint32_t>*>(writable(view.values) + i * kAtOnce) = to_values;
    if (slot == 0) writable(view.before)[leaf] = uint32_t(first < count ? first : count);
    if (leaf + 1 == view.shape.leaves && slot == 0) writable(view.before)[leaf + 1] = uint32_t(count);
    return 0;
  }
};

// A separator of any level: the first key of the leaf that is the first below the next child. No leaf is empty.
template <class Key>
struct BuildInner {
  IndexView<Key> view;
  QRY_HD uint32_t operator()(size_t i) const {
    using Node = IndexNode<Key>;
    const uint32_t number = uint32_t(i / Node::kSlots), slot = uint32_t(i % Node::kSlots);
    const uint32_t level = view.shape.level_of(number);
    uint64_t leaf = (uint64_t{number} - view.shape.first_node[level]) * Node::kFanout + slot + 1;
    for (uint32_t below = 0; below < level; ++below) leaf *= Node::kFanout;
    writable(view.inner)[i] = leaf < view.shape.leaves ? view.keys[leaf * Node::kSlots] : Node::kReservedKey;
    return 0;
  }
};

template <class Key>
struct Find {
  IndexView<Key> view;
  const Key* keys;
  uint32_t* values_out;
  QRY_HD Key key(size_t i) const { return keys[i]; }
  QRY_HD uint32_t operator()(size_t i, IndexPlace place) const {
    const bool hit = is_at(view, place, keys[i]);
    values_out[i] = hit ? view.values[size_t{place.leaf} * IndexNode<Key>::kSlots + place.slot] : kQryReservedValue;
    return hit;
  }
};

template <class Key>
struct LowerBounds {
  IndexView<Key> view;
  const Key* keys;
  uint32_t* ranks_out;
  QRY_HD Key key(size_t i) const { return keys[i]; }
  QRY_HD uint32_t operator()(size_t i, IndexPlace place) const {
    ranks_out[i] = rank_of(view, place);
    return 0;
  }
};

template <class Key>
struct CheckRanges {
  const KeyRange<Key>* ranges;
  uint64_t* fault;
  QRY_HD uint32_t operator()(size_t i) const {
    if (ranges[i].first > ranges[i].last) keep_least(fault, i);
    return 0;
  }
};
// An end of a range: even numbers are first keys, odd ones last keys.
template <class Key>
struct RangeEnds {
  IndexView<Key> view;
  const KeyRange<Key>* ranges;
  uint32_t* ranks;
  uint32_t* leaves;  // of each range's first key
  QRY_HD Key key(size_t i) const { return i % 2 == 0 ? ranges[i / 2].first : ranges[i / 2].last; }
  QRY_HD uint32_t operator()(size_t i, IndexPlace place) const {
    if (i % 2 == 0) leaves[i / 2] = place.leaf;
    ranks[i] = rank_of(view, place) + (i % 2 != 0 && is_at(view, place, key(i)) ? 1u : 0u);
    return 0;
  }
};
struct RangeCounts {
  const uint32_t* ranks;
  RankRange* out;    // or
  uint64_t* counts;  // of each range
  QRY_HD uint32_t operator()(size_t i) const {
    const uint32_t count = ranks[i * 2 + 1] - ranks[i * 2];
    if (out != nullptr) out[i] = {ranks[i * 2], count};
    if (counts != nullptr) counts[i] = count;
    return count;
  }
};
struct CheckBoxes {
  const MortonBox* boxes;
  uint64_t* fault;
  QRY_HD uint32_t operator()(size_t i) const {
    for (uint32_t axis = 0; axis < 3; ++axis)
      if (boxes[i].min[axis] > boxes[i].max[axis] || boxes[i].max[axis] > kMortonMost) keep_least(fault, i);
    return 0;
  }
};
// What is done with the keys of a box.
struct CountKeys {
  uint64_t* count;
  QRY_HD void operator()(const IndexCursor<uint64_t>&) const { ++*count; }
};
struct WriteKeys {
  uint64_t* at;
  uint64_t* keys_out;
  uint32_t* values_out;
  QRY_HD void operator()(const IndexCursor<uint64_t>& cursor) const {
    if (keys_out != nullptr) keys_out[*at] = cursor.key();
    if (values_out != nullptr) values_out[*at] = cursor.value();
    ++*at;
  }
};
// A box that is not cut; its least code was looked for together with others'.
struct CountBoxes {
  IndexView<uint64_t> view;
  const MortonBox* boxes;
  IndexPlace* places;
  uint64_t* counts;
  QRY_HD uint64_t key(size_t i) const { return morton_range(boxes[i]).min; }
  QRY_HD uint32_t operator()(size_t i, IndexPlace place) const {
    uint64_t count = 0;
    places[i] = place;
    detail::for_each_in_part(view, {morton_range(boxes[i]), false}, place, CountKeys{&count});
    counts[i] = count;
    return 0;
  }
};
struct ListBoxes {
  IndexView<uint64_t> view;
  const MortonBox* boxes;
  const IndexPlace* places;
  const uint64_t* starts;
  uint64_t* keys_out;
  uint32_t* values_out;
  QRY_HD uint32_t operator()(size_t i) const {
    uint64_t at = starts[i];
    if (starts[i + 1] != at)
      detail::for_each_in_part(view, {morton_range(boxes[i]), false}, places[i], WriteKeys{&at, keys_out, values_out});
    return 0;
  }
};
struct CopyStarts {
  const uint64_t* starts;
  uint64_t* starts_out;
  QRY_HD uint32_t operator()(size_t i) const {
    starts_out[i] = starts[i];
    return 0;
  }
};

// Where each key of a sorted batch belongs, and whether it counts: absent keys of an insert, present ones of an erase.
template <class Key>
struct Locate {
  IndexView<Key> view;
  const Key* keys;
  size_t count;
  bool erase;
  IndexPlace* places;
  uint32_t* counted;  // and one more, for the sum of all
  QRY_HD Key key(size_t i) const { return keys[i]; }
  QRY_HD uint32_t operator()(size_t i, IndexPlace place) const {
    const bool present = is_at(view, place, keys[i]);
    places[i] = place;
    if (i + 1 == count) counted[count] = 0;
    counted[i] = erase ? present && (i == 0 || keys[i] != keys[i - 1]) : !present;
    return counted[i];
  }
};

// Of a sorted batch's places from `low` on: the first that is not in a leaf before `leaf`.
QRY_HD inline size_t first_from_leaf(const IndexPlace* places, size_t low, size_t count, size_t leaf) {
  return low + count_before(count - low, [&](size_t i) { return places[low + i].leaf < leaf; });
}

// The keys of a sorted batch that belong to one leaf. The thread of the first of them does the leaf's work.
template <class Key>
struct LeafRun {
  size_t begin = 0, end = 0;  // empty: another thread's
  QRY_HD static LeafRun of(const IndexPlace* places, size_t count, size_t i) {
    LeafRun run;
    if (i > 0 && places[i - 1].leaf == places[i].leaf) return run;
    run.begin = i;
    run.end = i + 1;
    while (run.end < count && places[run.end].leaf == places[i].leaf) ++run.end;
    return run;
  }
};

// Of leaves: whether a batch's absent keys have no room in it.
template <class Key>
struct CountOverfull {
  IndexView<Key> view;
  const IndexPlace* places;
  const uint32_t* prefix;  // counted keys before each
  size_t count;
  QRY_HD uint32_t operator()(size_t i) const {
    if (i > 0 && places[i - 1].leaf == places[i].leaf) return 0;
    // The first key beyond this leaf's: its absent keys may be many.
    const size_t end = first_from_leaf(places, i + 1, count, size_t{places[i].leaf} + 1);
    return view.in_leaf(places[i].leaf) + (prefix[end] - prefix[i]) > IndexNode<Key>::kSlots;
  }
};

template <class Key>
struct AssignPresent {
  IndexView<Key> view;
  const IndexPlace* places;
  const uint32_t* prefix;
  const uint32_t* values;
  QRY_HD uint32_t operator()(size_t i) const {
    if (prefix[i + 1] == prefix[i])
      writable(view.values)[size_t{places[i].leaf} * IndexNode<Key>::kSlots + places[i].slot] = values[i];
    return 0;
  }
};

// Moves a leaf's keys apart and puts the batch's absent ones between, from its end.
template <class Key>
struct InsertIntoLeaves {
  IndexView<Key> view;
  const Key* keys;
  const uint32_t* values;
  const IndexPlace* places;
  const uint32_t* prefix;
  size_t count;
  QRY_HD uint32_t operator()(size_t i) const {
    const LeafRun<Key> run = LeafRun<Key>::of(places, count, i);
    if (run.begin == run.end) return 0;
    const uint32_t leaf = places[i].leaf;
    Key* const to_keys = writable(view.keys) + size_t{leaf} * IndexNode<Key>::kSlots;
    uint32_t* const to_values = writable(view.values) + size_t{leaf} * IndexNode<Key>::kSlots;
    uint32_t from = view.in_leaf(leaf), to = from + (prefix[run.end] - prefix[run.begin]);
    for (size_t k = run.end; k-- > run.begin;) {
      if (prefix[k + 1] == prefix[k]) continue;
      while (from > places[k].slot) {
        --from, --to;
        to_keys[to] = to_keys[from];
        to_values[to] = to_values[from];
      }
      --to;
      to_keys[to] = keys[k];
      to_values[to] = values[k];
    }
    return 0;
  }
};

template <class Key>
struct EraseFromLeaves {
  IndexView<Key> view;
  const IndexPlace* places;
  const uint32_t* prefix;
  size_t count;
  QRY_HD uint32_t operator()(size_t i) const {
    const LeafRun<Key> run = LeafRun<Key>::of(places, count, i);
    if (run.begin == run.end) return 0;
    const uint32_t leaf = places[i].leaf, end = view.in_leaf(leaf);
    Key* const keys = writable(view.keys) + size_t{leaf} * IndexNode<Key>::kSlots;
    uint32_t* const values = writable(view.values) + size_t{leaf} * IndexNode<Key>::kSlots;
    uint32_t to = 0;
    size_t k = run.begin;
    for (uint32_t from = 0; from < end; ++from) {
      while (k < run.end && (prefix[k + 1] == prefix[k] || places[k].slot < from)) ++k;
      if (k < run.end && places[k].slot == from) continue;
      keys[to] = keys[from];
      values[to] = values[from];
      ++to;
    }
    for (; to < end; ++to) keys[to] = IndexNode<Key>::kReservedKey;
    return 0;
  }
};

// The ranks of kLeaves leaves after a change in place.
template <class Key>
struct UpdateBefore {
  static constexpr uint32_t kLeaves = 16;
  IndexView<Key> view;
  const IndexPlace* places;
  const uint32_t* prefix;
  size_t count;
  bool erase;
  QRY_HD uint32_t operator()(size_t i) const {
    const size_t first = i * kLeaves, end = first + kLeaves;
    size_t next = first_from_leaf(places, 0, count, first);
    for (size_t leaf = first; leaf < end && leaf <= view.shape.leaves; ++leaf) {
      while (next < count && places[next].leaf < leaf) ++next;
      if (erase) writable(view.before)[leaf] -= prefix[next];
      else writable(view.before)[leaf] += prefix[next];
    }
    return 0;
  }
};

// The absent keys of a batch, and the rank that each will have.
template <class Key>
struct PickAbsent {
  IndexView<Key> view;
  const Key* keys;
  const uint32_t* values;
  const IndexPlace* places;
  const uint32_t* prefix;
  Key* keys_out;
  uint32_t* values_out;
  uint32_t* ranks_out;
  QRY_HD uint32_t operator()(size_t i) const {
    if (prefix[i + 1] == prefix[i]) return 0;
    const uint32_t at = prefix[i];
    keys_out[at] = keys[i];
    values_out[at] = values[i];
    ranks_out[at] = rank_of(view, places[i]) + at;
    return 0;
  }
};
// A leaf of an index that is merged from another one and new keys, whose ranks are known.
template <class Key>
struct MergeLeaves {
  IndexView<Key> from, to;
  uint32_t per_leaf;
  const Key* keys;
  const uint32_t* values;
  const uint32_t* ranks;
  size_t count;
  QRY_HD uint32_t operator()(size_t leaf) const {
    constexpr uint32_t kSlots = IndexNode<Key>::kSlots;
    const size_t total = size_t{from.size} + count, first = leaf * per_leaf;
    const size_t end = first + per_leaf < total ? first + per_leaf : total;
    size_t next = bound<false>(ranks, count, uint32_t(first));
    IndexCursor<Key> old = IndexCursor<Key>::at_rank(from, uint32_t(first - next));
    Key* const to_keys = writable(to.keys) + leaf * kSlots;
    uint32_t* const to_values = writable(to.values) + leaf * kSlots;
    for (size_t rank = first; rank < end; ++rank) {
      if (next < count && ranks[next] == rank) {
        to_keys[rank - first] = keys[next];
        to_values[rank - first] = values[next++];
      } else {
        to_keys[rank - first] = old.key();
        to_values[rank - first] = old.value();
        old.next();
      }
    }
    for (size_t slot = end - first; slot < kSlots; ++slot) to_keys[slot] = IndexNode<Key>::kReservedKey;
    writable(to.before)[leaf] = uint32_t(first);
    if (leaf + 1 == to.shape.leaves) writable(to.before)[leaf + 1] = uint32_t(total);
    return 0;
  }
};

}  // namespace quarry::hashgrid::bodies
