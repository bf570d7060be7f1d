// SPDX-License-Identifier: Apache-2.0
// map.cpp - leaves of sorted bricks, shared between copies until one of them writes (copy on write).
#include "voxel/bricks/map.hpp"

#include <algorithm>

#include "base/parallel.hpp"

namespace quarry {

BrickMap& BrickMap::operator=(const BrickMap& other) {
  forget_last();
  leaves_ = other.leaves_;
  size_ = other.size_;
  return *this;
}

BrickMap& BrickMap::operator=(BrickMap&& other) noexcept {
  if (this == &other) return *this;
  forget_last();
  leaves_ = std::move(other.leaves_);
  size_ = other.size_;
  other.clear();
  return *this;
}

void BrickMap::clear() {
  forget_last();
  leaves_.clear();
  size_ = 0;
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

const Brick* BrickMap::find(Int3 brick) const {
  const Place place = locate(brick);
  return place.present ? &leaves_[place.leaf].leaf->nodes[place.slot]->value.second : nullptr;
}

uint8_t BrickMap::get(Int3 voxel) const {
  const Brick* brick = find(brick_of(voxel));
  return brick ? brick->get(voxel_index(voxel)) : uint8_t(0);
}

BrickMap::Leaf& BrickMap::own_leaf(size_t leaf) {
  Shared<Leaf>& shared = leaves_[leaf].leaf;
  if (!shared.unique()) {
    auto* copy = new Leaf;
    copy->count = shared->count;
    copy->at = shared->at;
    copy->nodes = shared->nodes;
    shared = Shared<Leaf>(copy);
  }
  return *shared;
}

Brick& BrickMap::own_brick(const Place& place) {
  Shared<Node>& node = own_leaf(place.leaf).nodes[place.slot];
  if (!node.unique()) node = Shared<Node>(new Node{node->value});
  return node->value.second;
}

void BrickMap::insert(Place place, Int3 brick, const Brick& value) {
  ++size_;
  forget_last();
  Shared<Node> node(new Node{{brick, value}});
  const bool at_very_end = leaves_.empty() || (place.leaf + 1 == leaves_.size() && place.slot == kLeafBricks);
  if (at_very_end) {  // a new leaf, so that bricks put in order fill their leaves
    Shared<Leaf> leaf(new Leaf);
    leaf->count = 1;
    leaf->at[0] = brick;
    leaf->nodes[0] = std::move(node);
    leaves_.push_back({brick, std::move(leaf)});
    return;
  }
  Leaf* leaf = &own_leaf(place.leaf);
  if (leaf->count == kLeafBricks) {
    constexpr uint32_t kHalf = kLeafBricks / 2;
    Shared<Leaf> upper(new Leaf);
    std::copy(leaf->at.begin() + kHalf, leaf->at.end(), upper->at.begin());
    std::move(leaf->nodes.begin() + kHalf, leaf->nodes.end(), upper->nodes.begin());
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
  std::move_backward(leaf->nodes.begin() + slot, leaf->nodes.begin() + count, leaf->nodes.begin() + count + 1);
  leaf->at[place.slot] = brick;
  leaf->nodes[place.slot] = std::move(node);
  ++leaf->count;
  leaves_[place.leaf].first = leaf->at[0];
}

void BrickMap::erase(const Place& place) {
  --size_;
  forget_last();
  Leaf& leaf = own_leaf(place.leaf);
  const auto slot = std::ptrdiff_t(place.slot), count = std::ptrdiff_t(leaf.count);
  std::move(leaf.at.begin() + slot + 1, leaf.at.begin() + count, leaf.at.begin() + slot);
  std::move(leaf.nodes.begin() + slot + 1, leaf.nodes.begin() + count, leaf.nodes.begin() + slot);
  --leaf.count;
  leaf.nodes[leaf.count] = Shared<Node>();
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
    into.nodes[into.count] = from.nodes[i];
  }
  leaves_.erase(leaves_.begin() + std::ptrdiff_t(leaf) + 1);
}

void BrickMap::put(Int3 brick, const Brick& value) {
  const Place place = locate(brick);
  if (value.empty()) {
    if (place.present) erase(place);
  } else if (!place.present) {
    insert(place, brick, value);
  } else {
    own_brick(place) = value;
    forget_last();
  }
}

bool BrickMap::append(BrickMap&& later) {
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
  const Int3 brick = brick_of(voxel);
  Brick* target = nullptr;
  if (last_node_ && last_node_->value.first == brick && last_leaf_->references.load(std::memory_order_acquire) == 1 &&
      last_node_->references.load(std::memory_order_acquire) == 1) {
    target = &last_node_->value.second;
  } else {
    Place place = locate(brick);
    if (!place.present) {
      if (material == 0) return;
      insert(place, brick, Brick{});
      place = locate(brick);
    }
    target = &own_brick(place);
    last_leaf_ = leaves_[place.leaf].leaf.get();
    last_node_ = last_leaf_->nodes[place.slot].get();
  }
  target->set(voxel_index(voxel), material);
  if (material == 0 && target->empty()) erase(locate(brick));
}

uint64_t BrickMap::voxel_count() const {
  // The bricks are scattered in memory: for large maps all threads share the cache misses.
  constexpr size_t kLeavesAtOnce = 128;
  std::atomic<uint64_t> count{0};
  parallel_for(leaves_.size(), kLeavesAtOnce, [&](size_t begin, size_t end) {
    uint64_t sum = 0;
    for (size_t l = begin; l < end; ++l) {
      const Leaf& leaf = *leaves_[l].leaf;
      for (uint32_t i = 0; i < leaf.count; ++i) sum += leaf.nodes[i]->value.second.count();
    }
    count.fetch_add(sum, std::memory_order_relaxed);
  });
  return count;
}

Box3 BrickMap::brick_bounds() const {
  if (empty()) return {};
  Box3 box{leaves_.front().first, leaves_.front().first};
  for (const LeafRef& ref : leaves_)
    for (uint32_t i = 0; i < ref.leaf->count; ++i) box = united(box, {ref.leaf->at[i], ref.leaf->at[i]});
  return box;
}

Box3 BrickMap::bounds() const {
  const Box3 outer = brick_bounds();
  Box3 box;
  // No brick is empty, so only bricks at the faces of their common box can hold an extreme voxel.
  for (const LeafRef& ref : leaves_) {
    for (uint32_t i = 0; i < ref.leaf->count; ++i) {
      const Int3 at = ref.leaf->at[i];
      if (at.x == outer.min.x || at.y == outer.min.y || at.z == outer.min.z || at.x == outer.max.x ||
          at.y == outer.max.y || at.z == outer.max.z)
        box = united(box, voxel_bounds(at, ref.leaf->nodes[i]->value.second.mask));
    }
  }
  return box;
}

bool operator==(const BrickMap& a, const BrickMap& b) {
  return a.size_ == b.size_ && std::equal(a.bricks().begin(), a.bricks().end(), b.bricks().begin());
}

BrickMap::const_iterator BrickMap::Bricks::lower_bound(Int3 brick) const {
  const Place place = map_->locate(brick);
  if (place.leaf < map_->leaves_.size() && place.slot == map_->leaves_[place.leaf].leaf->count)
    return {map_, place.leaf + 1, 0};
  return {map_, place.leaf, place.slot};
}

BrickMap::const_iterator BrickMap::Bricks::find(Int3 brick) const {
  const Place place = map_->locate(brick);
  return place.present ? const_iterator{map_, place.leaf, place.slot} : end();
}

}  // namespace quarry
