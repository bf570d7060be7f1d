// SPDX-License-Identifier: Apache-2.0
// map.hpp - the sparse bricks of one volume on the host: an ordered map from brick coordinate to brick.
// It is a volume's own data; what is rendered is the flattened World, whose bricks the hash grid addresses. The world's
// extent does not limit it: a volume may be anywhere, only its flattened instances must fit the world.
//
// Structure: a B+-tree of two levels: leaves of up to 128 bricks in coordinate order, and a sorted vector of leaves.
// Leaves are counted references, copied on the first write while shared; bricks are handles (shared.hpp). Copying a map
// copies one pointer per leaf; afterwards each copy pays only for the bricks that it changes. So snapshots for saving
// and for rolling back a failed edit cost next to nothing.
//   memory   20 B a brick in its leaf, and 592 B on the heap unless it is full of one material: 615 to 635 B, or 20 B
//   get/find two binary searches; set: the same, or none in the brick of the last set
// Thread safety: any number of readers of one map, or one writer. Different maps never race, even if they share bricks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "voxel/bricks/shared.hpp"

namespace quarry {

class BrickMap {
 public:
  // A brick and where it is, as iterators give it: by value, the brick by reference. It is valid until the next change
  // of the map.
  struct Entry {
    Int3 first;
    const Brick& second;
    Entry(Int3 at, const Brick& brick) : first(at), second(brick) {}
    Entry(const Entry&) = default;
    // Sorting assigns. Since C++20 an object with a reference may be replaced in place.
    Entry& operator=(const Entry& other) {
      std::construct_at(this, Entry(other));
      return *this;
    }
    friend bool operator==(const Entry& a, const Entry& b);
  };
  using value_type = Entry;
  class const_iterator;
  class Bricks;

  BrickMap() = default;
  BrickMap(const BrickMap& other) : leaves_(other.leaves_), size_(other.size_) {}
  BrickMap(BrickMap&& other) noexcept : leaves_(std::move(other.leaves_)), size_(std::exchange(other.size_, 0)) {
    other.clear();
  }
  BrickMap& operator=(const BrickMap& other);
  BrickMap& operator=(BrickMap&& other) noexcept;
  ~BrickMap() = default;

  uint8_t get(Int3 voxel) const;           // 0 if empty
  void set(Int3 voxel, uint8_t material);  // 0 removes; a brick that becomes empty is removed
  const Brick* find(Int3 brick) const;     // null if absent; valid until the next change of this map
  SharedBrick share(Int3 brick) const;     // none if absent
  // Replaces a whole brick; an empty one removes it. Bricks put in rising order make the densest leaves.
  void put(Int3 brick, const Brick& value) { put(brick, SharedBrick(value)); }
  void put(Int3 brick, SharedBrick value);
  // The same for many, given in strictly rising order: one pass over the leaves that they fall into.
  void put(std::span<const BrickPut> puts);
  // Moves the bricks of `later` to the end of this map, for a map made in parts by several threads. All must come after
  // this map's, in rising order; otherwise it returns false and changes nothing. It has no cost per brick.
  bool append(BrickMap&& later);
  // All bricks in rising order of their coordinates (x, then y, then z): size(), begin(), end(), find(), lower_bound().
  Bricks bricks() const;
  uint64_t voxel_count() const;
  Box3 bounds() const;        // tight, in voxels; empty box if there are no voxels
  Box3 brick_bounds() const;  // in bricks
  // Leaves and bricks on the heap, as if no other map or handle shared them. It reads each brick's handle.
  uint64_t size_bytes() const;
  bool empty() const { return size_ == 0; }
  void clear();
  friend bool operator==(const BrickMap& a, const BrickMap& b);

 private:
  static constexpr uint32_t kLeafBricks = 128;

  // A counted reference. T has `references`, which starts at 1.
  template <class T>
  class Shared {
   public:
    Shared() = default;
    explicit Shared(T* adopted) : p_(adopted) {}
    Shared(const Shared& other) : p_(other.p_) {
      if (p_) p_->references.fetch_add(1, std::memory_order_relaxed);
    }
    Shared(Shared&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    Shared& operator=(Shared other) noexcept {
      std::swap(p_, other.p_);
      return *this;
    }
    ~Shared() {
      // Release: this owner's reads and writes happen before the count drops. Acquire: the owner that frees sees all of
      // them.
      if (p_ && p_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p_;
    }
    // True if this is the only reference: then no other can be made, and the object may be written in place. Acquire
    // pairs with the release of the last other owner, whose reads are therefore over.
    bool unique() const { return p_->references.load(std::memory_order_acquire) == 1; }
    T* get() const { return p_; }
    T* operator->() const { return p_; }
    T& operator*() const { return *p_; }

   private:
    T* p_ = nullptr;
  };

  struct Leaf {
    std::atomic<uint32_t> references{1};
    uint32_t count = 0;
    std::array<Int3, kLeafBricks> at{};
    std::array<SharedBrick, kLeafBricks> bricks{};
  };
  struct LeafRef {
    Int3 first;
    Shared<Leaf> leaf;
  };
  struct Place {  // where a coordinate is or would be inserted
    size_t leaf = 0;
    uint32_t slot = 0;
    bool present = false;
  };

  Place locate(Int3 brick) const;
  Leaf& own_leaf(size_t leaf);
  void insert(Place place, Int3 brick, SharedBrick value);
  void erase(const Place& place);
  void merge_with_next(size_t leaf);
  void forget_last() { last_leaf_ = nullptr, last_slot_ = 0; }

  std::vector<LeafRef> leaves_;  // rising `first`; no leaf is empty
  uint64_t size_ = 0;
  // The brick of the last set(): its leaf, usable while it is unshared, and its place there.
  Leaf* last_leaf_ = nullptr;
  uint32_t last_slot_ = 0;
};

class BrickMap::const_iterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = BrickMap::value_type;
  using difference_type = std::ptrdiff_t;
  struct pointer {
    Entry entry;
    const Entry* operator->() const { return &entry; }
  };
  using reference = Entry;

  const_iterator() = default;
  reference operator*() const {
    const Leaf& leaf = *map_->leaves_[leaf_].leaf;
    return {leaf.at[slot_], *leaf.bricks[slot_]};
  }
  pointer operator->() const { return {**this}; }
  const SharedBrick& shared() const { return map_->leaves_[leaf_].leaf->bricks[slot_]; }
  const_iterator& operator++() {
    if (++slot_ == map_->leaves_[leaf_].leaf->count) ++leaf_, slot_ = 0;
    return *this;
  }
  const_iterator operator++(int) {
    const_iterator before = *this;
    ++*this;
    return before;
  }
  const_iterator& operator--() {
    if (slot_ == 0) slot_ = map_->leaves_[--leaf_].leaf->count;
    --slot_;
    return *this;
  }
  const_iterator operator--(int) {
    const_iterator before = *this;
    --*this;
    return before;
  }
  friend bool operator==(const const_iterator&, const const_iterator&) = default;

 private:
  friend class BrickMap;
  const_iterator(const BrickMap* map, size_t leaf, uint32_t slot) : map_(map), leaf_(leaf), slot_(slot) {}
  const BrickMap* map_ = nullptr;
  size_t leaf_ = 0;
  uint32_t slot_ = 0;
};

// A view of a map's bricks; the map must outlive it.
class BrickMap::Bricks {
 public:
  using const_iterator = BrickMap::const_iterator;
  using value_type = BrickMap::value_type;
  const_iterator begin() const { return {map_, 0, 0}; }
  const_iterator end() const { return {map_, map_->leaves_.size(), 0}; }
  size_t size() const { return map_->size_; }
  bool empty() const { return map_->size_ == 0; }
  const_iterator find(Int3 brick) const;
  const_iterator lower_bound(Int3 brick) const;  // the first whose coordinate is not less
  size_t count(Int3 brick) const { return map_->find(brick) ? 1 : 0; }

 private:
  friend class BrickMap;
  explicit Bricks(const BrickMap* map) : map_(map) {}
  const BrickMap* map_;
};

inline BrickMap::Bricks BrickMap::bricks() const { return Bricks(this); }

}  // namespace quarry
