// SPDX-License-Identifier: Apache-2.0
// map.cpp - leaves of sorted bricks, shared between copies until one of them writes (copy on write).
#include "voxel/bricks/map.hpp"

#include <algorithm>
#include <mutex>

#include "base/parallel.hpp"

namespace quarry {

BrickMap::BrickMap(const BrickMap& other) {
  other.fill();
  leaves_ = other.leaves_;
  size_ = other.size_;
}

BrickMap& BrickMap::operator=(const BrickMap& other) {
  if (this == &other) return *this;
  other.fill();
  forget_last();
  view_.reset();
  drop_leaves();
  leaves_ = other.leaves_;
  size_ = other.size_;
  return *this;
}

BrickMap& BrickMap::operator=(BrickMap&& other) noexcept {
  if (this == &other) return *this;
  forget_last();
  drop_leaves();
  view_ = std::move(other.view_);
  leaves_ = std::move(other.leaves_);
  size_ = other.size_;
  other.clear();
  return *this;
}

void BrickMap::show(const BrickTable& table) {
  clear();
  view_ = std::make_unique<View>();
  view_->table = &table;
}

void BrickMap::table_changes() {
  if (!view_ || !view_->filled.load(std::memory_order_acquire)) return;
  forget_last();
  drop_leaves();
  size_ = 0;
  view_->filled.store(false, std::memory_order_release);
}

void BrickMap::fill() const {
  if (!view_ || view_->filled.load(std::memory_order_acquire)) return;
  const std::lock_guard hold(view_->lock);
  if (view_->filled.load(std::memory_order_relaxed)) return;
  std::vector<BrickPut> all = view_->table->within(view_->table->brick_bounds());
  std::vector<LeafRef> leaves((all.size() + kLeafBricks - 1) / kLeafBricks);
  constexpr size_t kLeavesAtOnce = 64;
  parallel_for(leaves.size(), kLeavesAtOnce, [&](size_t begin, size_t end) {
    for (size_t l = begin; l < end; ++l) {
      Shared<Leaf> leaf(new Leaf);
      const size_t first = l * kLeafBricks;
      leaf->count = uint32_t(std::min<size_t>(kLeafBricks, all.size() - first));
      for (uint32_t i = 0; i < leaf->count; ++i) {
        leaf->at[i] = all[first + i].brick;
        leaf->bricks[i] = std::move(all[first + i].value);
      }
      leaves[l] = {leaf->at[0], std::move(leaf)};
    }
  });
  leaves_ = std::move(leaves);
  size_ = all.size();
  view_->filled.store(true, std::memory_order_release);
}

void BrickMap::be_own() {
  if (!view_) return;
  fill();
  pool_ = view_->table->pool();
  view_.reset();
}

void BrickMap::clear() {
  view_.reset();
  forget_last();
  drop_leaves();
  size_ = 0;
}

// Ends the bricks of many leaves at once, by all threads if there are so many that they are worth it: each is a line of
// memory that is nowhere near.
void BrickMap::drop_leaves() noexcept {
  constexpr size_t kLeavesAtOnce = 64, kWorthThreads = 1024;
  const std::function<void(size_t, size_t)> drop = [this](size_t begin, size_t end) {
    EndOfBricks ending;
    for (size_t l = begin; l < end; ++l) {
      Shared<Leaf>& leaf = leaves_[l].leaf;
      // Who shares the leaf ends its bricks.
      if (leaf.get() && leaf.unique()) ending.end({leaf->bricks.data(), std::exchange(leaf->count, 0)});
      leaf = {};
    }
  };
  if (leaves_.size() < kWorthThreads) drop(0, leaves_.size());
  else parallel_for(leaves_.size(), kLeavesAtOnce, drop);
  leaves_.clear();
}

BrickMap::Place BrickMap::locate(Int3 brick) const {
  const auto above =
      std::upper_bound(leaves_.begin(), leaves_.end(), brick, [](Int3 b, const LeafRef& ref) { return b < ref.first; });
  if (above == leaves_.begin()) return {};
  const size_t index = size_t(above - leaves_.begin()) - 1;
  const Leaf& leaf = *leaves_[index].leaf;
  const Int3* const end = leaf.at.data() + leaf.count;
  const Int3* const found = std::lower_bound(leaf.at.data(), end, brick);
  return {index, uint32_t(found - leaf.at.data()), found != end && *found == brick};
}

std::optional<BrickView> BrickMap::find(Int3 brick) const {
  if (view_) {
    const SharedBrick shared = view_->table->share(brick);
    return shared ? std::optional(*shared) : std::nullopt;  // the table has a handle, too
  }
  const Place place = locate(brick);
  if (!place.present) return std::nullopt;
  return *leaves_[place.leaf].leaf->bricks[place.slot];
}

SharedBrick BrickMap::share(Int3 brick) const {
  if (view_) return view_->table->share(brick);
  const Place place = locate(brick);
  return place.present ? leaves_[place.leaf].leaf->bricks[place.slot] : SharedBrick();
}

uint8_t BrickMap::get(Int3 voxel) const {
  const auto brick = find(brick_of(voxel));
  return brick ? brick->get(voxel_index(voxel)) : uint8_t(0);
}

BrickMap::Leaf& BrickMap::own_leaf(size_t leaf) {
  Shared<Leaf>& shared = leaves_[leaf].leaf;
  if (!shared.unique()) {
    auto* copy = new Leaf;
    copy->count = shared->count;
    copy->at = shared->at;
    copy->bricks = shared->bricks;
    shared = Shared<Leaf>(copy);
  }
  return *shared;
}

void BrickMap::insert(Place place, Int3 brick, SharedBrick value) {
  ++size_;
  forget_last();
  const bool at_very_end = leaves_.empty() || (place.leaf + 1 == leaves_.size() && place.slot == kLeafBricks);
  if (at_very_end) {  // a new leaf, so that bricks put in order fill their leaves
    Shared<Leaf> leaf(new Leaf);
    leaf->count = 1;
    leaf->at[0] = brick;
    leaf->bricks[0] = std::move(value);
    leaves_.push_back({brick, std::move(leaf)});
    return;
  }
  Leaf* leaf = &own_leaf(place.leaf);
  if (leaf->count == kLeafBricks) {
    constexpr uint32_t kHalf = kLeafBricks / 2;
    Shared<Leaf> upper(new Leaf);
    std::copy(leaf->at.begin() + kHalf, leaf->at.end(), upper->at.begin());
    std::move(leaf->bricks.begin() + kHalf, leaf->bricks.end(), upper->bricks.begin());
    leaf->count = kHalf;
    upper->count = kLeafBricks - kHalf;
    const Int3 first = upper->at[0];
    leaves_.insert(leaves_.begin() + std::ptrdiff_t(place.leaf) + 1, {first, std::move(upper)});
    if (place.slot > kHalf) {
      ++place.leaf;
      place.slot -= kHalf;
    }
    leaf = leaves_[place.leaf].leaf.get();
  }
  const auto slot = std::ptrdiff_t(place.slot), count = std::ptrdiff_t(leaf->count);
  std::move_backward(leaf->at.begin() + slot, leaf->at.begin() + count, leaf->at.begin() + count + 1);
  std::move_backward(leaf->bricks.begin() + slot, leaf->bricks.begin() + count, leaf->bricks.begin() + count + 1);
  leaf->at[place.slot] = brick;
  leaf->bricks[place.slot] = std::move(value);
  ++leaf->count;
  leaves_[place.leaf].first = leaf->at[0];
}

void BrickMap::erase(const Place& place) {
  --size_;
  forget_last();
  Leaf& leaf = own_leaf(place.leaf);
  const auto slot = std::ptrdiff_t(place.slot), count = std::ptrdiff_t(leaf.count);
  std::move(leaf.at.begin() + slot + 1, leaf.at.begin() + count, leaf.at.begin() + slot);
  std::move(leaf.bricks.begin() + slot + 1, leaf.bricks.begin() + count, leaf.bricks.begin() + slot);
  --leaf.count;
  leaf.bricks[leaf.count] = SharedBrick();
  if (leaf.count == 0) {
    leaves_.erase(leaves_.begin() + std::ptrdiff_t(place.leaf));
    return;
  }
  leaves_[place.leaf].first = leaf.at[0];
  merge_with_next(place.leaf);
  if (place.leaf > 0) merge_with_next(place.leaf - 1);
}

// Merges two adjacent leaves that together fill no more than half a leaf, so that removing voxels frees memory.
void BrickMap::merge_with_next(size_t leaf) {
  if (leaf + 1 >= leaves_.size() || leaves_[leaf].leaf->count + leaves_[leaf + 1].leaf->count > kLeafBricks / 2) return;
  Leaf& into = own_leaf(leaf);
  const Leaf& from = *leaves_[leaf + 1].leaf;
  for (uint32_t i = 0; i < from.count; ++i, ++into.count) {
    into.at[into.count] = from.at[i];
    into.bricks[into.count] = from.bricks[i];
  }
  leaves_.erase(leaves_.begin() + std::ptrdiff_t(leaf) + 1);
}

void BrickMap::put(Int3 brick, SharedBrick value) {
  be_own();
  const Place place = locate(brick);
  if (!value) {
    if (place.present) erase(place);
  } else if (!place.present) {
    insert(place, brick, std::move(value));
  } else {
    own_leaf(place.leaf).bricks[place.slot] = std::move(value);
    forget_last();
  }
}

void BrickMap::put(std::span<const BrickPut> puts) {
  be_own();
  // A few bricks in a large map: cheaper than a pass over the leaves.
  if (puts.size() < leaves_.size() / 64 + 8) {
    for (const BrickPut& one : puts) put(one.brick, one.value);
    return;
  }
  forget_last();
  std::vector<LeafRef> merged;
  merged.reserve(leaves_.size() + puts.size() / kLeafBricks + 1);
  uint64_t size = 0;
  Leaf* open = nullptr;  // the last of `merged`, while bricks are added to it
  const auto add = [&](Int3 at, SharedBrick brick) {
    if (!open || open->count == kLeafBricks) {
      open = new Leaf;
      merged.push_back({at, Shared<Leaf>(open)});
    }
    open->at[open->count] = at;
    open->bricks[open->count++] = std::move(brick);
    ++size;
  };
  size_t next = 0;
  for (size_t l = 0; l < std::max<size_t>(leaves_.size(), 1); ++l) {
    const bool last = l + 1 >= leaves_.size();
    const size_t begin = next;
    while (next < puts.size() && (last || puts[next].brick < leaves_[l + 1].first)) ++next;
    if (begin == next) {  // no put falls into this leaf
      if (leaves_.empty()) break;
      const Leaf& leaf = *leaves_[l].leaf;
      if (open && open->count + leaf.count <= kLeafBricks / 2) {  // as in merge_with_next
        for (uint32_t i = 0; i < leaf.count; ++i) add(leaf.at[i], leaf.bricks[i]);
      } else {
        size += leaf.count;
        merged.push_back(leaves_[l]);
        open = nullptr;
      }
      continue;
    }
    const Leaf* const old = leaves_.empty() ? nullptr : leaves_[l].leaf.get();
    uint32_t slot = 0;
    for (size_t i = begin; i < next; ++i) {
      for (; old && slot < old->count && old->at[slot] < puts[i].brick; ++slot) add(old->at[slot], old->bricks[slot]);
      if (old && slot < old->count && old->at[slot] == puts[i].brick) ++slot;
      if (puts[i].value) add(puts[i].brick, puts[i].value);
    }
    for (; old && slot < old->count; ++slot) add(old->at[slot], old->bricks[slot]);
  }
  leaves_ = std::move(merged);
  size_ = size;
}

bool BrickMap::append(BrickMap&& later) {
  be_own();
  later.be_own();
  if (later.empty()) return true;
  if (!empty()) {
    const Leaf& last = *leaves_.back().leaf;
    if (!(last.at[last.count - 1] < later.leaves_.front().first)) return false;
  }
  leaves_.insert(leaves_.end(), std::make_move_iterator(later.leaves_.begin()),
                 std::make_move_iterator(later.leaves_.end()));
  size_ += later.size_;
  later.clear();
  return true;
}

void BrickMap::set(Int3 voxel, uint8_t material) {
  be_own();
  const Int3 brick = brick_of(voxel);
  if (!last_leaf_ || last_leaf_->at[last_slot_] != brick ||
      last_leaf_->references.load(std::memory_order_acquire) != 1) {
    Place place = locate(brick);
    if (!place.present) {
      if (material == 0) return;
      insert(place, brick, pool().stored(Brick{}));  // empty for a moment: the voxel follows
      place = locate(brick);
    }
    own_leaf(place.leaf);
    last_leaf_ = leaves_[place.leaf].leaf.get();
    last_slot_ = place.slot;
  }
  SharedBrick& handle = last_leaf_->bricks[last_slot_];
  if (handle.material() == material && material != 0) return;
  if (!handle.unique()) handle = pool().stored(*handle);
  const uint32_t index = voxel_index(voxel);
  BrickMask& mask = handle.mask();
  const uint64_t bit = uint64_t(1) << (index & 63u);
  if (material) mask[index >> 6] |= bit;
  else mask[index >> 6] &= ~bit;
  handle.materials()[index] = material;
  if (material == 0) {
    if (handle->empty()) erase(locate(brick));
  } else if (full_material(*handle)) {
    handle = SharedBrick::full(material);
  }
}

Result<void> BrickMap::move_to(const BrickPool& pool) {
  be_own();
  pool_ = pool;
  forget_last();
  std::mutex lock;
  Result<void> result;
  constexpr size_t kLeavesAtOnce = 8;
  parallel_for(leaves_.size(), kLeavesAtOnce, [&](size_t begin, size_t end) {
    std::vector<SharedBrick*> handles;
    for (size_t l = begin; l < end; ++l) {
      const Leaf& leaf = *leaves_[l].leaf;
      if (std::none_of(leaf.bricks.begin(), leaf.bricks.begin() + leaf.count,
                       [&](const SharedBrick& brick) { return pool.elsewhere(brick); }))
        continue;
      Leaf& own = own_leaf(l);
      handles.clear();
      for (uint32_t i = 0; i < own.count; ++i) handles.push_back(&own.bricks[i]);
      if (auto ok = pool.adopt(handles); !ok) {
        const std::lock_guard hold(lock);
        result = std::move(ok);
        return;
      }
    }
  });
  return result;
}

void BrickMap::visit_handles(const VisitBrick& visit, const BrickPool* pool) {
  if (view_) return table_changes();
  if (pool) pool_ = *pool;
  forget_last();
  for (size_t l = 0; l < leaves_.size(); ++l) {
    Leaf& own = own_leaf(l);
    for (uint32_t i = 0; i < own.count; ++i) visit(own.bricks[i]);
  }
}

void BrickMap::hand_over(const BrickPool& pool) {
  be_own();
  constexpr size_t kLeavesAtOnce = 64;
  BrickPool to = pool;
  const std::function<void(size_t, size_t)> take = [this, &to](size_t begin, size_t end) {
    for (size_t l = begin; l < end; ++l) {
      Leaf& leaf = *leaves_[l].leaf;
      const bool only = leaves_[l].leaf.unique();
      for (uint32_t i = 0; i < leaf.count; ++i) {
        SharedBrick& brick = leaf.bricks[i];
        const uint32_t index = to.index_of(brick);
        if (index == kNoBrick) continue;
        if (only) brick.bits_ = 0;  // the count stays
        else to.share(index);
      }
    }
  };
  parallel_for(leaves_.size(), kLeavesAtOnce, take);
  clear();
}

std::vector<BrickPut> BrickMap::within(const Box3& bricks) const {
  if (view_) return view_->table->within(bricks);
  std::vector<BrickPut> found;
  if (bricks.empty()) return found;
  const auto all = this->bricks();
  const auto end = all.end();
  const auto inside = [](int32_t at, int32_t low, int32_t high) { return at >= low && at <= high; };
  // From row to row along z; rows without bricks are passed over by the first brick after them.
  for (auto it = all.lower_bound(bricks.min); it != end && it->first.x <= bricks.max.x;) {
    const Int3 at = it->first;
    if (inside(at.y, bricks.min.y, bricks.max.y) && inside(at.z, bricks.min.z, bricks.max.z)) {
      found.push_back({at, it.shared()});
      ++it;
    } else if (at.y < bricks.min.y) {
      it = all.lower_bound({at.x, bricks.min.y, bricks.min.z});
    } else if (at.y <= bricks.max.y && at.z < bricks.min.z) {
      it = all.lower_bound({at.x, at.y, bricks.min.z});
    } else if (at.y < bricks.max.y) {
      it = all.lower_bound({at.x, at.y + 1, bricks.min.z});
    } else if (at.x < bricks.max.x) {
      it = all.lower_bound({at.x + 1, bricks.min.y, bricks.min.z});
    } else {
      break;
    }
  }
  return found;
}

void BrickMap::visit_pieces(const VisitPiece& visit) const {
  fill();
  constexpr size_t kLeavesAtOnce = 128;
  std::vector<size_t> firsts;  // of every so many leaves
  size_t first = 0;
  for (size_t l = 0; l < leaves_.size(); ++l) {
    if (l % kLeavesAtOnce == 0) firsts.push_back(first);
    first += leaves_[l].leaf->count;
  }
  parallel_for(leaves_.size(), kLeavesAtOnce, [&](size_t begin, size_t end) {
    size_t number = firsts[begin / kLeavesAtOnce];
    for (size_t l = begin; l < end; ++l) {
      const Leaf& leaf = *leaves_[l].leaf;
      visit(number, {leaf.at.data(), leaf.count}, {leaf.bricks.data(), leaf.count});
      number += leaf.count;
    }
  });
}

uint64_t BrickMap::voxel_count() const {
  if (view_) return view_->table->voxel_count();
  // The bricks are scattered in memory: for large maps all threads share the cache misses.
  std::atomic<uint64_t> count{0};
  visit_pieces([&](size_t, std::span<const Int3>, std::span<const SharedBrick> bricks) {
    uint64_t sum = 0;
    for (const SharedBrick& brick : bricks) sum += brick.voxels();
    count.fetch_add(sum, std::memory_order_relaxed);
  });
  return count;
}

uint64_t BrickMap::size_bytes(const BrickPool* pool) const {
  uint64_t bytes = leaves_.size() * (sizeof(LeafRef) + sizeof(Leaf));
  for (const LeafRef& ref : leaves_)
    for (uint32_t i = 0; i < ref.leaf->count; ++i)
      if (!pool || pool->elsewhere(ref.leaf->bricks[i])) bytes += ref.leaf->bricks[i].size_bytes();
  return bytes;
}

std::vector<Int3> BrickMap::chunks() const {
  std::vector<Int3> chunks;
  std::mutex lock;
  visit_pieces([&](size_t, std::span<const Int3> at, std::span<const SharedBrick>) {
    std::vector<Int3> some;
    for (const Int3 brick : at)
      if (const Int3 chunk = chunk_of(brick); some.empty() || chunk != some.back()) some.push_back(chunk);
    std::sort(some.begin(), some.end());
    some.erase(std::unique(some.begin(), some.end()), some.end());
    const std::lock_guard hold(lock);
    chunks.insert(chunks.end(), some.begin(), some.end());
  });
  std::sort(chunks.begin(), chunks.end());
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  return chunks;
}

Box3 BrickMap::brick_bounds() const {
  if (view_) return view_->table->brick_bounds();
  Box3 box;
  std::mutex lock;
  visit_pieces([&](size_t, std::span<const Int3> at, std::span<const SharedBrick>) {
    Box3 piece{at.front(), at.front()};
    for (const Int3 brick : at) piece = united(piece, {brick, brick});
    const std::lock_guard hold(lock);
    box = united(box, piece);
  });
  return box;
}

Box3 BrickMap::bounds() const {
  if (view_) return view_->table->bounds();
  const Box3 outer = brick_bounds();
  Box3 box;
  // No brick is empty, so only bricks at the faces of their common box can hold an extreme voxel.
  for (const LeafRef& ref : leaves_) {
    for (uint32_t i = 0; i < ref.leaf->count; ++i) {
      const Int3 at = ref.leaf->at[i];
      if (at.x == outer.min.x || at.y == outer.min.y || at.z == outer.min.z || at.x == outer.max.x ||
          at.y == outer.max.y || at.z == outer.max.z)
        box = united(box, voxel_bounds(at, ref.leaf->bricks[i]->mask));
    }
  }
  return box;
}

bool operator==(const BrickMap::Entry& a, const BrickMap::Entry& b) {
  return a.first == b.first && *a.handle == *b.handle;
}

bool operator==(const BrickMap& a, const BrickMap& b) {
  if (a.bricks().size() != b.bricks().size()) return false;
  for (auto i = a.bricks().begin(), j = b.bricks().begin(), end = a.bricks().end(); i != end; ++i, ++j)
    if (i->first != j->first || !(i.shared() == j.shared())) return false;
  return true;
}

BrickMap::const_iterator BrickMap::Bricks::lower_bound(Int3 brick) const {
  map_->fill();
  const Place place = map_->locate(brick);
  if (place.leaf < map_->leaves_.size() && place.slot == map_->leaves_[place.leaf].leaf->count)
    return {map_, place.leaf + 1, 0};
  return {map_, place.leaf, place.slot};
}

BrickMap::const_iterator BrickMap::Bricks::find(Int3 brick) const {
  map_->fill();
  const Place place = map_->locate(brick);
  return place.present ? const_iterator{map_, place.leaf, place.slot} : end();
}

}  // namespace quarry
