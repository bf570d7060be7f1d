// SPDX-License-Identifier: Apache-2.0
// occupancy.cpp - children by popcount rank, in runs of a few sizes from free lists in one arena.
#include "voxel/bricks/occupancy.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

namespace quarry {
namespace {

static_assert(sizeof(OccupancyNode) == kGranuleBytes);

// One key takes at most a run of level 2, one of level 1 and one table, each of the largest size: once to copy what is
// published, and once to insert. A shader may read one run's length past its start.
constexpr uint32_t kSpareGranules = 2 * (64 + 64 + 16) + 64;
constexpr uint64_t kStamps = (1u << 24) - 1;

uint64_t bit_mask(uint32_t bit) { return uint64_t(1) << bit; }

// Equal for keys of one level-1 node.
uint32_t node_of(uint32_t key) { return key & ~(3u | 3u << 11 | 3u << 21); }

void sort_unique(std::vector<uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

uint32_t child_number(uint64_t mask, uint32_t bit) { return uint32_t(std::popcount(mask & (bit_mask(bit) - 1))); }

OccupancyPyramid::OccupancyPyramid(MemorySource& memory) : memory_(&memory), level2_is_dirty_(kLevel2Nodes) {}

Result<OccupancyPyramid> OccupancyPyramid::create(MemorySource& memory) {
  OccupancyPyramid pyramid(memory);
  QRY_TRY(pyramid.ensure_room(kSpareGranules));
  pyramid.level3_stamp_ = pyramid.stamp();
  pyramid.stamps_since_ = memory.epoch() ? (memory.epoch() - 1) / kStamps : 0;
  pyramid.id_ = next_number();
  return pyramid;
}

OccupancyPyramid::OccupancyPyramid(OccupancyPyramid&& other) noexcept
    : memory_(other.memory_),
      block_(std::exchange(other.block_, {})),
      id_(other.id_),
      block_id_(other.block_id_),
      next_(other.next_),
      free_runs_(other.free_runs_),
      level3_(other.level3_),
      level3_stamp_(other.level3_stamp_),
      retired_(std::move(other.retired_)),
      free_level3_(std::move(other.free_level3_)),
      stamps_since_(other.stamps_since_),
      dirty_level2_(std::move(other.dirty_level2_)),
      level2_is_dirty_(std::move(other.level2_is_dirty_)) {}

OccupancyPyramid& OccupancyPyramid::operator=(OccupancyPyramid&& other) noexcept {
  if (this == &other) return *this;
  if (block_.data) memory_->release(block_);
  memory_ = other.memory_;
  block_ = std::exchange(other.block_, {});
  id_ = other.id_;
  block_id_ = other.block_id_;
  next_ = other.next_;
  free_runs_ = other.free_runs_;
  level3_ = other.level3_;
  level3_stamp_ = other.level3_stamp_;
  retired_ = std::move(other.retired_);
  free_level3_ = std::move(other.free_level3_);
  stamps_since_ = other.stamps_since_;
  dirty_level2_ = std::move(other.dirty_level2_);
  level2_is_dirty_ = std::move(other.level2_is_dirty_);
  return *this;
}

OccupancyPyramid::~OccupancyPyramid() {
  if (block_.data) memory_->release(block_);
}

void OccupancyPyramid::mark_dirty(uint32_t level2) {
  if (level2_is_dirty_[level2]) return;
  level2_is_dirty_[level2] = 1;
  dirty_level2_.push_back(level2);
}

std::vector<uint32_t> OccupancyPyramid::take_dirty_level2() {
  for (const uint32_t level2 : dirty_level2_) level2_is_dirty_[level2] = 0;
  std::sort(dirty_level2_.begin(), dirty_level2_.end());
  return std::exchange(dirty_level2_, {});
}

void OccupancyPyramid::reserve_changes(size_t keys) {
  const size_t level2_nodes = std::min<size_t>(dirty_level2_.size() + keys, kLevel2Nodes);
  if (dirty_level2_.capacity() < level2_nodes)
    dirty_level2_.reserve(std::max(level2_nodes, std::min<size_t>(2 * dirty_level2_.capacity(), kLevel2Nodes)));
}

Result<void> OccupancyPyramid::reserve_copies(std::initializer_list<std::span<const uint32_t>> keys) {
  const uint32_t now = stamp();
  if (!now) return {};
  begin_changes();
  QRY_TRY(reserve_level3());
  std::vector<uint32_t> level1_nodes, level2_nodes, cells;  // one key of each
  for (const std::span<const uint32_t> some : keys)
    for (size_t i = 0; i < some.size(); ++i)
      if (i == 0 || node_of(some[i]) != node_of(some[i - 1])) level1_nodes.push_back(node_of(some[i]));
  sort_unique(level1_nodes);
  uint64_t granules = kSpareGranules;
  size_t runs = 1;
  const auto count = [&](const OccupancyNode& node) {
    if (node.mask && node.run >> 8 != now) granules += node.room(), ++runs;
    return node.mask != 0;
  };
  for (const uint32_t key : level1_nodes) {
    const PyramidPlace at = pyramid_place(brick_from_key(key));
    const OccupancyNode& node3 = level3()[at.level3];
    if (!(node3.mask & bit_mask(at.level3_bit))) continue;
    cells.push_back(at.level3);
    const OccupancyNode& node2 = nodes()[node3.child + child_number(node3.mask, at.level3_bit)];
    if (!(node2.mask & bit_mask(at.level2_bit))) continue;
    level2_nodes.push_back(node3.child + child_number(node3.mask, at.level3_bit));
    count(nodes()[node2.child + child_number(node2.mask, at.level2_bit)]);
  }
  sort_unique(cells);
  for (const uint32_t cell : cells) count(level3()[cell]);
  sort_unique(level2_nodes);
  for (const uint32_t node : level2_nodes) count(nodes()[node]);
  reserve_retired(runs);
  return ensure_room(granules);
}

// Makes the block large enough for so many granules more. It grows by a quarter, so the unused part stays smaller than
// that of the bricks' slabs.
Result<void> OccupancyPyramid::ensure_room(uint64_t granules) {
  const uint64_t wanted = uint64_t(next_) + granules;
  if (block_.data && wanted * kGranuleBytes <= block_.size_bytes) return {};
  if (wanted > 0xFFFFFFFFu) return fail(ErrorCode::full, "the occupancy pyramid: more nodes than 32 bits can number");
  return move_to(wanted + (next_ - kLevel3Nodes) / 4 + 1024);
}

void OccupancyPyramid::reserve_retired(size_t runs) {
  if (retired_.capacity() < retired_.size() + runs)
    retired_.reserve(std::max(retired_.size() + runs, 2 * retired_.capacity()));
}

uint32_t OccupancyPyramid::stamp() const {
  const uint64_t epoch = memory_->epoch();
  return epoch ? uint32_t((epoch - 1) % kStamps) + 1 : 0;
}

// Before each batch: what is past is free, and stamps tell epochs apart.
void OccupancyPyramid::begin_changes() {
  const uint64_t past = memory_->past_epoch();
  size_t done = 0;
  for (; done < retired_.size() && retired_[done].epoch <= past; ++done) {
    const Retired& run = retired_[done];
    if (run.size == kRooms.size()) {
      free_level3_.push_back(run.first);
      continue;
    }
    std::memcpy(own() + run.first, &free_runs_[run.size], sizeof(uint32_t));
    free_runs_[run.size] = run.first;
  }
  retired_.erase(retired_.begin(), retired_.begin() + std::ptrdiff_t(done));
  if (const uint64_t epoch = memory_->epoch(); epoch && (epoch - 1) / kStamps != stamps_since_) {
    stamps_since_ = (epoch - 1) / kStamps;
    forget_stamps();
  }
}

// A stamp would come again: all runs become older than any epoch. No shader reads stamps.
void OccupancyPyramid::forget_stamps() {
  const auto forget = [](OccupancyNode& node) { node.run &= 255u; };
  level3_stamp_ = 0;
  for (uint32_t cell = 0; cell < kLevel3Nodes; ++cell) {
    OccupancyNode& node3 = own()[level3_ + cell];
    forget(node3);
    for (int i = 0; i < std::popcount(node3.mask); ++i) {
      OccupancyNode& node2 = own()[node3.child + uint32_t(i)];
      forget(node2);
      for (int j = 0; j < std::popcount(node2.mask); ++j) forget(own()[node2.child + uint32_t(j)]);
    }
  }
}

Result<void> OccupancyPyramid::reserve_level3() {
  if (level3_stamp_ == stamp()) return {};
  reserve_retired(1);
  if (free_level3_.empty()) {
    QRY_TRY(ensure_room(kLevel3Nodes + kSpareGranules));
    free_level3_.reserve(retired_.size() + 2);
    free_level3_.push_back(std::exchange(next_, next_ + kLevel3Nodes));
  }
  return {};
}

// After reserve_level3(). It allocates nothing.
void OccupancyPyramid::own_level3() {
  if (level3_stamp_ == stamp()) return;
  const uint32_t copy = free_level3_.back();
  free_level3_.pop_back();
  std::memcpy(own() + copy, own() + level3_, kLevel3Nodes * sizeof(OccupancyNode));
  retired_.push_back({memory_->epoch(), level3_, uint32_t(kRooms.size())});
  level3_ = copy;
  level3_stamp_ = stamp();
}

// The node's children may be written afterwards. The node itself may be.
void OccupancyPyramid::own_run(OccupancyNode& node) {
  if (node.mask == 0 || node.run >> 8 == stamp()) return;
  const auto size = size_t(std::lower_bound(kRooms.begin(), kRooms.end(), node.room()) - kRooms.begin());
  const uint32_t copy = take_run(size);
  std::memcpy(own() + copy, own() + node.child, node.room() * size_t{kGranuleBytes});
  free_run(node);
  node.child = copy;
  node.run = kRooms[size] | stamp() << 8;
}

Result<void> OccupancyPyramid::shrink_to_fit(bool edits_to_come) {
  const uint64_t spare = edits_to_come ? kSpareGranules + (next_ - kLevel3Nodes) / 64 : 64;
  if (const uint64_t granules = next_ + spare; granules * kGranuleBytes < block_.size_bytes) QRY_TRY(move_to(granules));
  id_ = next_number();
  return {};
}

Result<void> OccupancyPyramid::move_to(uint64_t granules) {
  QRY_TRY_ASSIGN(auto fresh, memory_->allocate((granules * kGranuleBytes + 4095) & ~uint64_t(4095), "pyramid"));
  if (block_.data) {
    std::memcpy(fresh.data, block_.data, used_bytes());
    memory_->release(block_);
  }
  block_ = fresh;
  block_id_ = next_number();
  return {};
}

uint32_t OccupancyPyramid::take_run(size_t size) {
  uint32_t& head = free_runs_[size];
  if (head == 0) return std::exchange(next_, next_ + kRooms[size]);
  const uint32_t run = head;
  std::memcpy(&head, own() + run, sizeof head);
  return run;
}

void OccupancyPyramid::free_run(OccupancyNode& node) {
  const auto size = size_t(std::lower_bound(kRooms.begin(), kRooms.end(), node.room()) - kRooms.begin());
  if (node.run >> 8 == stamp()) {  // no frame knows it
    std::memcpy(own() + node.child, &free_runs_[size], sizeof(uint32_t));
    free_runs_[size] = node.child;
  } else {
    retired_.push_back({memory_->epoch(), node.child, uint32_t(size)});
  }
  node.run = 0;
}

void* OccupancyPyramid::insert_child(OccupancyNode& node, uint32_t bit, size_t child_bytes) {
  const auto count = uint32_t(std::popcount(node.mask)), number = child_number(node.mask, bit);
  const auto needed = uint32_t(((count + 1) * child_bytes + kGranuleBytes - 1) / kGranuleBytes);
  if (needed > node.room()) {
    const auto size = size_t(std::lower_bound(kRooms.begin(), kRooms.end(), needed) - kRooms.begin());
    const uint32_t run = take_run(size);
    if (node.room()) {
      std::memcpy(own() + run, own() + node.child, count * child_bytes);
      free_run(node);
    }
    node.child = run;
    node.run = kRooms[size] | stamp() << 8;
  }
  char* const at = reinterpret_cast<char*>(own() + node.child) + number * child_bytes;
  std::memmove(at + child_bytes, at, (count - number) * child_bytes);
  std::memset(at, 0, child_bytes);
  node.mask |= bit_mask(bit);
  return at;
}

void OccupancyPyramid::remove_child(OccupancyNode& node, uint32_t bit, size_t child_bytes) {
  const auto count = uint32_t(std::popcount(node.mask)), number = child_number(node.mask, bit);
  char* const at = reinterpret_cast<char*>(own() + node.child) + number * child_bytes;
  std::memmove(at, at + child_bytes, (count - 1 - number) * child_bytes);
  node.mask &= ~bit_mask(bit);
  if (node.mask == 0) free_run(node);
}

Result<void> OccupancyPyramid::add(std::span<const uint32_t> keys, std::span<const uint32_t> bricks) {
  if (keys.size() != bricks.size())
    return fail(ErrorCode::invalid_argument, "the occupancy pyramid: as many brick indices as keys are needed");
  reserve_changes(keys.size());
  begin_changes();
  if (!keys.empty() && stamp()) {
    QRY_TRY(reserve_level3());
    size_t nodes_reached = 1;
    for (size_t i = 1; i < keys.size(); ++i) nodes_reached += node_of(keys[i]) != node_of(keys[i - 1]);
    reserve_retired(1 + 3 * nodes_reached);
    own_level3();
  }
  struct Before {
    uint32_t key;
    std::optional<uint32_t> index;
  };
  std::vector<Before> before;  // what a failure restores
  before.reserve(keys.size());
  OccupancyNode* level1 = nullptr;  // of the last key
  uint64_t block = 0;
  uint32_t last_node = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (auto ok = ensure_room(kSpareGranules); !ok) {
      for (auto last = before.rbegin(); last != before.rend(); ++last) {
        if (last->index) *const_cast<uint32_t*>(index_of(last->key)) = *last->index;
        else remove_from_node({&last->key, 1});
      }
      return ok;
    }
    const PyramidPlace at = pyramid_place(brick_from_key(keys[i]));
    // Keys in the order of their coordinates come in runs of four in one node of level 1.
    if (!level1 || block != block_id_ || node_of(keys[i]) != last_node) {
      OccupancyNode& node3 = own()[level3_ + at.level3];
      own_run(node3);
      auto* level2 = node3.mask & bit_mask(at.level3_bit)
                         ? own() + node3.child + child_number(node3.mask, at.level3_bit)
                         : static_cast<OccupancyNode*>(insert_child(node3, at.level3_bit, sizeof(OccupancyNode)));
      own_run(*level2);
      level1 = level2->mask & bit_mask(at.level2_bit)
                   ? own() + level2->child + child_number(level2->mask, at.level2_bit)
                   : static_cast<OccupancyNode*>(insert_child(*level2, at.level2_bit, sizeof(OccupancyNode)));
      own_run(*level1);
      block = block_id_;
      last_node = node_of(keys[i]);
    }
    uint32_t* index;
    if (level1->mask & bit_mask(at.level1_bit)) {
      index = reinterpret_cast<uint32_t*>(own() + level1->child) + child_number(level1->mask, at.level1_bit);
      if (*index == bricks[i]) continue;
      before.push_back({keys[i], *index});
    } else {
      index = static_cast<uint32_t*>(insert_child(*level1, at.level1_bit, sizeof(uint32_t)));
      before.push_back({keys[i], {}});
    }
    *index = bricks[i];
    mark_dirty(at.level2);
  }
  return {};
}

void OccupancyPyramid::remove_from_node(std::span<const uint32_t> keys) {
  if (std::none_of(keys.begin(), keys.end(), [&](uint32_t key) { return index_of(key); })) return;
  const PyramidPlace at = pyramid_place(brick_from_key(keys[0]));
  own_level3();
  OccupancyNode& node3 = own()[level3_ + at.level3];
  own_run(node3);
  OccupancyNode& level2 = own()[node3.child + child_number(node3.mask, at.level3_bit)];
  own_run(level2);
  OccupancyNode& level1 = own()[level2.child + child_number(level2.mask, at.level2_bit)];
  own_run(level1);
  for (const uint32_t key : keys) {
    const uint32_t bit = pyramid_place(brick_from_key(key)).level1_bit;
    if (!(level1.mask & bit_mask(bit))) continue;
    mark_dirty(at.level2);
    remove_child(level1, bit, sizeof(uint32_t));
    if (level1.mask == 0) break;
  }
  if (level1.mask) return;
  remove_child(level2, at.level2_bit, sizeof(OccupancyNode));
  if (level2.mask) return;
  remove_child(node3, at.level3_bit, sizeof(OccupancyNode));
}

Box3 OccupancyPyramid::brick_bounds(std::vector<Int3>* outermost) const {
  struct Place {
    const OccupancyNode* node;
    Int3 at;
  };
  std::vector<Place> level, next;
  for (uint32_t i = 0; i < kLevel3Nodes; ++i)
    if (level3()[i].mask) level.push_back({level3() + i, {int32_t(i & 31), int32_t(i >> 5 & 15), int32_t(i >> 9)}});
  Box3 box;
  for (int depth = 0; depth < 3; ++depth) {  // level 2, level 1, bricks
    box = Box3{};
    next.clear();
    for (const Place& p : level) {
      const OccupancyNode* child = nodes() + p.node->child;
      for (uint64_t left = p.node->mask; left; left &= left - 1, ++child) {
        const int32_t bit = std::countr_zero(left);
        const Int3 at{p.at.x * 4 + (bit & 3), p.at.y * 4 + (bit >> 2 & 3), p.at.z * 4 + (bit >> 4)};
        box = united(box, {at, at});
        next.push_back({depth < 2 ? child : nullptr, at});
      }
    }
    // The outermost children are in the outermost nodes.
    std::erase_if(next, [&](const Place& p) {
      return p.at.x != box.min.x && p.at.x != box.max.x && p.at.y != box.min.y && p.at.y != box.max.y &&
             p.at.z != box.min.z && p.at.z != box.max.z;
    });
    level.swap(next);
  }
  const Int3 corner = brick_of(kWorldMin);
  if (outermost) {
    outermost->clear();
    for (const Place& p : level) outermost->push_back(p.at + corner);
  }
  if (box.empty()) return box;
  return {box.min + corner, box.max + corner};
}

void OccupancyPyramid::remove(std::span<const uint32_t> keys) {
  for (size_t i = 0; i < keys.size();) {
    // Keys in the order of their coordinates come in runs of four in one node of level 1.
    const uint32_t node = node_of(keys[i]);
    size_t end = i + 1;
    while (end < keys.size() && node_of(keys[end]) == node) ++end;
    remove_from_node(keys.subspan(i, end - i));
    i = end;
  }
}

void OccupancyPyramid::replace(std::span<const uint32_t> keys, std::span<const uint32_t> bricks) {
  const bool published = stamp() != 0;
  if (published && !keys.empty()) own_level3();
  for (size_t i = 0; i < keys.size(); ++i) {
    const PyramidPlace at = pyramid_place(brick_from_key(keys[i]));
    if (published && (i == 0 || node_of(keys[i]) != node_of(keys[i - 1]))) {
      OccupancyNode& node3 = own()[level3_ + at.level3];
      own_run(node3);
      OccupancyNode& node2 = own()[node3.child + child_number(node3.mask, at.level3_bit)];
      own_run(node2);
      own_run(own()[node2.child + child_number(node2.mask, at.level2_bit)]);
    }
    *const_cast<uint32_t*>(index_of(keys[i])) = bricks[i];
    mark_dirty(at.level2);
  }
}

void OccupancyPyramid::clear() {
  for (uint32_t cell = 0; cell < kLevel3Nodes; ++cell) {
    OccupancyNode& node = own()[level3_ + cell];
    if (node.mask == 0) continue;  // an empty world's pages stay untouched
    for (uint64_t left = node.mask; left; left &= left - 1) {
      const auto bit = uint32_t(std::countr_zero(left));
      mark_dirty(((cell & 31u) << 2 | (bit & 3u)) | ((cell >> 5 & 15u) << 2 | (bit >> 2 & 3u)) << 7 |
                 ((cell >> 9) << 2 | bit >> 4) << 13);
    }
    node = {};
  }
  next_ = kLevel3Nodes;
  free_runs_ = {};
}

Result<void> OccupancyPyramid::rebuild(std::span<const uint32_t> keys, std::span<const uint32_t> bricks) {
  clear();
  return add(keys, bricks);
}

const uint32_t* OccupancyPyramid::index_of(uint32_t key) const {
  const PyramidPlace at = pyramid_place(brick_from_key(key));
  const OccupancyNode& node3 = level3()[at.level3];
  if (!(node3.mask & bit_mask(at.level3_bit))) return nullptr;
  const OccupancyNode& level2 = nodes()[node3.child + child_number(node3.mask, at.level3_bit)];
  if (!(level2.mask & bit_mask(at.level2_bit))) return nullptr;
  const OccupancyNode& level1 = nodes()[level2.child + child_number(level2.mask, at.level2_bit)];
  if (!(level1.mask & bit_mask(at.level1_bit))) return nullptr;
  return table(level1) + child_number(level1.mask, at.level1_bit);
}

std::optional<uint32_t> OccupancyPyramid::find_brick(Int3 brick) const {
  const uint32_t* index = brick_in_world(brick) ? index_of(brick_key(brick)) : nullptr;
  return index ? std::optional(*index) : std::nullopt;
}

void OccupancyPyramid::for_each_index(const std::function<void(uint32_t)>& visit) const {
  for (uint32_t cell = 0; cell < kLevel3Nodes; ++cell) {
    const OccupancyNode& node3 = level3()[cell];
    for (int i = 0; i < std::popcount(node3.mask); ++i) {
      const OccupancyNode& level2 = nodes()[node3.child + uint32_t(i)];
      for (int j = 0; j < std::popcount(level2.mask); ++j) {
        const OccupancyNode& level1 = nodes()[level2.child + uint32_t(j)];
        const uint32_t* const indices = table(level1);
        for (int k = 0; k < std::popcount(level1.mask); ++k) visit(indices[k]);
      }
    }
  }
}

std::vector<uint32_t> OccupancyPyramid::keys() const {
  std::vector<uint32_t> keys;
  // Calls visit(node, x, y, z) for each child of the node of cell (x, y, z).
  const auto each = [](uint64_t mask, uint32_t x, uint32_t y, uint32_t z, const auto& visit) {
    uint32_t number = 0;
    for (uint64_t left = mask; left; left &= left - 1) {
      const auto bit = uint32_t(std::countr_zero(left));
      visit(number++, x << 2 | (bit & 3u), y << 2 | (bit >> 2 & 3u), z << 2 | bit >> 4);
    }
  };
  for (uint32_t cell = 0; cell < kLevel3Nodes; ++cell) {
    const OccupancyNode& node3 = level3()[cell];
    each(node3.mask, cell & 31u, cell >> 5 & 15u, cell >> 9, [&](uint32_t i, uint32_t x3, uint32_t y3, uint32_t z3) {
      const OccupancyNode& level2 = nodes()[node3.child + i];
      each(level2.mask, x3, y3, z3, [&](uint32_t j, uint32_t x2, uint32_t y2, uint32_t z2) {
        each(nodes()[level2.child + j].mask, x2, y2, z2,
             [&](uint32_t, uint32_t x, uint32_t y, uint32_t z) { keys.push_back(x | y << 11 | z << 21); });
      });
    });
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace quarry
