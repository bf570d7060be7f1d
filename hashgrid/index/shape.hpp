// SPDX-License-Identifier: Apache-2.0
// shape.hpp - where the nodes of an ordered index lie: arithmetic of sizes and places, no memory.
//
// J. Rao, K. Ross, "Making B+-Trees Cache Conscious in Main Memory", 2000 (CSB+ tree): the children of a node lie side
// by side, so a node holds keys only and one reference instead of one for each child. Here all nodes of a level lie
// side by side in the order of their keys. So the reference is arithmetic too: the children of node n are n * fanout
// and the following, and every thread of a build knows from its number which node it writes.
//
//   level 2     │ node 0 │
//   level 1     │ node 0 │ node 1 │ ...     separators; the inner nodes of all levels are one array, level 0 first
//   level 0     │ node 0 │ node 1 │ node 2 │ ...
//   leaves      │ leaf 0 │ leaf 1 │ ... │ leaf 16 │ leaf 17 │ ...        leaf 17 is the first child of node 1 (64-bit
//   keys)
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashgrid/table/outcome.hpp"

namespace quarry::hashgrid {

// Bytes of a node's keys. 128: what one request to a GPU's cache fetches, and two lines of a host's cache, which its
// prefetcher brings as a pair. With 64 the tree is a third higher. On a host the three sizes 64, 128 and 256 could not
// be told apart (docs/results/two-core-host/index.md).
constexpr uint32_t kIndexNodeBytes = 128;
constexpr uint32_t kIndexMostLevels = 8;  // 17^8 leaves are more than 32 bits count

// The largest key is reserved: it pads nodes, so that a search in a node compares all its slots and needs no branch.
template <class Key>
struct IndexNode {
  static_assert(sizeof(Key) == 4 || sizeof(Key) == 8, "keys have 32 or 64 bits");
  static constexpr uint32_t kSlots = kIndexNodeBytes / sizeof(Key);  // keys of a leaf, separators of an inner node
  static constexpr uint32_t kFanout = kSlots + 1;                    // children of an inner node
  static constexpr Key kReservedKey = ~Key{0};
};

// The numbers of an index of so many leaves.
template <class Key>
struct IndexShape {
  uint32_t leaves = 1;                      // at least one, empty if there are no keys
  uint32_t levels = 0;                      // of inner nodes; 0: one leaf
  uint32_t first_node[kIndexMostLevels]{};  // of each level in the array of inner nodes
  uint32_t nodes = 0;                       // inner nodes of all levels

  static IndexShape of(uint32_t leaves) {
    IndexShape shape;
    shape.leaves = leaves == 0 ? 1 : leaves;
    constexpr uint32_t kFanout = IndexNode<Key>::kFanout;
    for (uint32_t below = shape.leaves; below > 1;) {
      below = below / kFanout + (below % kFanout != 0);
      shape.first_node[shape.levels++] = shape.nodes;
      shape.nodes += below;
    }
    return shape;
  }
  // The level of an inner node by its number in the array.
  QRY_HD uint32_t level_of(uint32_t node) const {
    uint32_t level = 0;
    while (level + 1 < levels && node >= first_node[level + 1]) ++level;
    return level;
  }
  QRY_HD size_t slots() const { return size_t{leaves} * IndexNode<Key>::kSlots; }

  // One block of memory: inner nodes, leaves, values, ranks; each begins at a multiple of a node's bytes.
  size_t keys_at() const { return size_t{nodes} * kIndexNodeBytes; }
  size_t values_at() const { return keys_at() + size_t{leaves} * kIndexNodeBytes; }
  size_t before_at() const { return values_at() + slots() * sizeof(uint32_t); }
  size_t size_bytes() const { return before_at() + (size_t{leaves} + 1) * sizeof(uint32_t); }
};

}  // namespace quarry::hashgrid
