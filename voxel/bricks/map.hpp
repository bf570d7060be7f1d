// SPDX-License-Identifier: Apache-2.0
// map.hpp - the sparse bricks of one volume on the host: an ordered map from brick coordinate to brick.
// It is a volume's own data; what is rendered is the flattened World, whose bricks the hash grid addresses. The world's
// extent does not limit it: a volume may be anywhere, only its flattened instances must fit the world.
//
// Structure: a B+-tree of two levels: leaves of up to 128 bricks in coordinate order, and a sorted vector of leaves.
// Leaves are counted references, copied on the first write while shared; bricks are handles (shared.hpp). Copying a map
// copies one pointer per leaf; afterwards each copy pays only for the bricks that it changes. So snapshots for saving
// and for rolling back a failed edit cost next to nothing.
//   memory   20 B a brick in its leaf, and 580 B in a pool unless it is full of one material: 603 to 623 B, or 20 B
//   get/find two binary searches; set: the same, or none in the brick of the last set
//
// A map may also be a view of bricks that are kept elsewhere, as the volume is that is its world's own table. It has no
// leaves then: it asks the table. Leaves are made when somebody wants to walk all bricks in order, or copies the map;
// they are dropped with the table's next change. So readers see no difference, and an edit pays for no second list.
// Thread safety: any number of readers of one map, or one writer. Different maps never race, even if they share bricks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "voxel/bricks/pool.hpp"
#include "voxel/bricks/shared.hpp"

namespace quarry {

// Bricks that are kept elsewhere, for maps that are views of them. Free-threaded for reading.
class BrickTable {
 public:
  virtual uint64_t brick_count() const = 0;
  virtual uint64_t voxel_count() const = 0;
  virtual Box3 bounds() const = 0;                                     // tight, in voxels
  virtual Box3 brick_bounds() const = 0;                               // in bricks
  virtual SharedBrick share(Int3 brick) const = 0;                     // none if absent
  virtual std::vector<BrickPut> within(const Box3& bricks) const = 0;  // those in a box, rising
  virtual const BrickPool& pool() const = 0;

 protected:
  ~BrickTable() = default;
};

class BrickMap {
 public:
  // A brick and where it is, as iterators give it, for structured bindings too: auto [at, view]. It is valid until the
  // next change of the map.
  struct Entry {
    Int3 first;
    const SharedBrick* handle;
    BrickView second() const { return **handle; }
    friend bool operator==(const Entry& a, const Entry& b);
    template <size_t I>
    auto get() const {
      if constexpr (I == 0) return first;
      else return second();
    }
  };
  using value_type = Entry;
  class const_iterator;
  class Bricks;

  // New bricks are made in BrickPool::loose().
  BrickMap() = default;
  // New bricks are made in `pool`, as those of a volume whose world has the pool.
  explicit BrickMap(BrickPool pool) : pool_(std::move(pool)) {}
  // A copy shares the bricks, but makes new ones in BrickPool::loose(). Assigning keeps the map's own pool.
  BrickMap(const BrickMap& other);
  BrickMap(BrickMap&& other) noexcept
      : pool_(std::move(other.pool_)),
        view_(std::move(other.view_)),
        leaves_(std::move(other.leaves_)),
        size_(std::exchange(other.size_, 0)) {
    other.clear();
  }
  BrickMap& operator=(const BrickMap& other);
  BrickMap& operator=(BrickMap&& other) noexcept;
  ~BrickMap() { drop_leaves(); }

  uint8_t get(Int3 voxel) const;           // 0 if empty
  void set(Int3 voxel, uint8_t material);  // 0 removes; a brick that becomes empty is removed
  // None if absent; valid until the next change of this map.
  std::optional<BrickView> find(Int3 brick) const;
  SharedBrick share(Int3 brick) const;  // none if absent
  // Replaces a whole brick; an empty one removes it. Bricks put in rising order make the densest leaves.
  void put(Int3 brick, const BrickView& value) { put(brick, pool().make(value)); }
  void put(Int3 brick, SharedBrick value);
  // The same for many, given in strictly rising order: one pass over the leaves that they fall into.
  void put(std::span<const BrickPut> puts);
  // Moves the bricks of `later` to the end of this map, for a map made in parts by several threads. All must come after
  // this map's, in rising order; otherwise it returns false and changes nothing. It has no cost per brick.
  bool append(BrickMap&& later);
  // Makes the map a view of `table`, which has the same bricks and outlives the view, and drops its own leaves. What
  // changes the map itself ends the view: then it is a map of its own, with the bricks that the table has.
  void show(const BrickTable& table);
  bool is_view() const { return view_ != nullptr; }
  // Of a view, by who changes its table, before: drops what was made from it. Iterators and views of bricks end.
  void table_changes();
  // Where new bricks are made.
  const BrickPool& pool() const { return view_ ? view_->table->pool() : pool_ ? *pool_ : BrickPool::loose(); }
  // Makes new bricks there from now on, and moves those there that are elsewhere, on all threads. Errors: full,
  // out_of_memory; then bricks may be in either pool, and all is as before for who reads them.
  Result<void> move_to(const BrickPool& pool);
  // Lets each brick's handle be exchanged for another of an equal brick, when a pool's bricks move. Memory is
  // allocated only in the first call after a copy. `pool`: where new bricks are made from now on; null: as before. A
  // view has none of its own.
  void visit_handles(const VisitBrick& visit, const BrickPool* pool);
  // Ends the map: it is empty afterwards, and whoever has the bricks' indices in `pool` has its handles of them. Other
  // bricks are let go. It allocates nothing.
  void hand_over(const BrickPool& pool);
  // Shows all bricks in pieces of rising order, several at once by all threads. `first`: the number of the piece's
  // first brick among all.
  using VisitPiece = std::function<void(size_t first, std::span<const Int3> at, std::span<const SharedBrick> bricks)>;
  void visit_pieces(const VisitPiece& visit) const;
  // All bricks in rising order of their coordinates (x, then y, then z): size(), begin(), end(), find(), lower_bound().
  Bricks bricks() const;
  // Those in a box of brick coordinates, in the same order.
  std::vector<BrickPut> within(const Box3& bricks) const;
  uint64_t voxel_count() const;
  Box3 bounds() const;               // tight, in voxels; empty box if there are no voxels
  Box3 brick_bounds() const;         // in bricks
  std::vector<Int3> chunks() const;  // that have bricks, rising
  // Of the leaves, and of bricks that are not in `pool`, as if no other map or handle shared them. It reads each
  // brick's handle. Of a view: of the leaves that it has just now.
  uint64_t size_bytes(const BrickPool* pool = nullptr) const;
  bool empty() const { return view_ ? view_->table->brick_count() == 0 : size_ == 0; }
  void clear();  // keeps the pool
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

    ~Leaf() { EndOfBricks().end({bricks.data(), count}); }
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

  struct View {
    const BrickTable* table;
    std::mutex lock;                   // of filling the leaves
    std::atomic<bool> filled = false;  // the leaves are those of the table
  };

  // Makes the leaves of a view, unless they are there.
  void fill() const;
  // Ends the view, if it is one: what follows changes the map.
  void be_own();
  Place locate(Int3 brick) const;
  Leaf& own_leaf(size_t leaf);
  void insert(Place place, Int3 brick, SharedBrick value);
  void erase(const Place& place);
  void merge_with_next(size_t leaf);
  void drop_leaves() noexcept;
  void forget_last() { last_leaf_ = nullptr, last_slot_ = 0; }

  std::optional<BrickPool> pool_;  // none: BrickPool::loose()
  std::unique_ptr<View> view_;
  // Rising `first`; no leaf is empty. A view fills them while it is read.
  mutable std::vector<LeafRef> leaves_;
  mutable uint64_t size_ = 0;
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
    return {leaf.at[slot_], &leaf.bricks[slot_]};
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
  const_iterator begin() const {
    map_->fill();
    return {map_, 0, 0};
  }
  const_iterator end() const {
    map_->fill();
    return {map_, map_->leaves_.size(), 0};
  }
  size_t size() const { return map_->view_ ? map_->view_->table->brick_count() : map_->size_; }
  bool empty() const { return size() == 0; }
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

template <>
struct std::tuple_size<quarry::BrickMap::Entry> : std::integral_constant<size_t, 2> {};
template <>
struct std::tuple_element<0, quarry::BrickMap::Entry> {
  using type = quarry::Int3;
};
template <>
struct std::tuple_element<1, quarry::BrickMap::Entry> {
  using type = quarry::BrickView;
};
