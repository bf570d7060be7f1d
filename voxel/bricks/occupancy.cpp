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

// A brick's key as a number that rises with x, then y, then z, as the keys of most batches do.
uint32_t in_order(uint32_t key) { return (key & 2047u) << 21 | (key >> 11 & 1023u) << 11 | key >> 21; }
uint32_t level1_bit_of(uint32_t key) { return (key & 3u) | (key >> 11 & 3u) << 2 | (key >> 21 & 3u) << 4; }

// The first position from `begin` on whose key is not in the group, which has those first positions: by steps that
// double, so that short groups cost little.
template <class InGroup>
size_t group_end(size_t begin, size_t end, const InGroup& in_group) {
  size_t step = 1, low = begin;
  while (low + step < end && in_group(low + step)) low += step, step *= 2;
  size_t high = std::min(end, low + step);
  ++low;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (in_group(middle)) low = middle + 1;
    else high = middle;
  }
  return high;
}

// Calls visit(positions), whose keys are those of one level-1 node, 64 at most; each node once if the keys rise in
// order, else once a run of them. Rising keys of a node lie in up to 16 rows along z, which are far apart; they are
// walked side by side. visit returns false to stop.
template <class Visit>
void each_node(std::span<const uint32_t> keys, const Visit& visit) {
  constexpr size_t kMost = 64;
  std::array<uint32_t, kMost> positions;
  size_t count = 0;
  const auto gave = [&] { return visit(std::span<const uint32_t>(positions.data(), std::exchange(count, 0))); };
  bool rises = true;
  for (size_t i = 1; i < keys.size() && rises; ++i) rises = in_order(keys[i - 1]) < in_order(keys[i]);
  if (!rises) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (count && (count == kMost || node_of(keys[positions[0]]) != node_of(keys[i])) && !gave()) return;
      positions[count++] = uint32_t(i);
    }
    if (count) gave();
    return;
  }
  struct Run {
    size_t at, end;
  };
  const auto part = [&](Run& from, auto value_of) {  // takes the first keys that have the same value
    const auto value = value_of(keys[from.at]);
    const size_t end = group_end(from.at, from.end, [&](size_t i) { return value_of(keys[i]) == value; });
    return Run{std::exchange(from.at, end), end};
  };
  const auto x_of = [](uint32_t key) { return key & 2047u; };
  const auto y_of = [](uint32_t key) { return key >> 11 & 1023u; };
  Run all{0, keys.size()};
  while (all.at < all.end) {
    std::array<Run, 4> slabs;  // one x each, of the same x / 4
    size_t slab_count = 0;
    for (const uint32_t x4 = x_of(keys[all.at]) >> 2; all.at < all.end && x_of(keys[all.at]) >> 2 == x4;)
      slabs[slab_count++] = part(all, x_of);
    for (;;) {
      uint32_t y4 = ~0u;
      for (size_t s = 0; s < slab_count; ++s)
        if (slabs[s].at < slabs[s].end) y4 = std::min(y4, y_of(keys[slabs[s].at]) >> 2);
      if (y4 == ~0u) break;
      std::array<Run, 16> rows;  // one x and y each
      size_t row_count = 0;
      for (size_t s = 0; s < slab_count; ++s)
        while (slabs[s].at < slabs[s].end && y_of(keys[slabs[s].at]) >> 2 == y4)
          rows[row_count++] = part(slabs[s], y_of);
      while (row_count) {
        uint32_t z4 = ~0u;
        for (size_t r = 0; r < row_count; ++r) z4 = std::min(z4, keys[rows[r].at] >> 23);
        for (size_t r = 0; r < row_count;) {
          Run& row = rows[r];
          while (row.at < row.end && keys[row.at] >> 23 == z4) positions[count++] = uint32_t(row.at++);
          if (row.at == row.end) row = rows[--row_count];
          else ++r;
        }
        if (!gave()) return;
      }
    }
  }
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
// that of the bricks' slabs; or by those that are `to_come`, lest a large batch moves it many times.
Result<void> OccupancyPyramid::ensure_room(uint64_t granules, uint64_t to_come) {
  const uint64_t wanted = uint64_t(next_) + granules;
  if (block_.data && wanted * kGranuleBytes <= block_.size_bytes) return {};
  if (wanted > 0xFFFFFFFFu) return fail(ErrorCode::full, "the occupancy pyramid: more nodes than 32 bits can number");
  return move_to(wanted + std::max<uint64_t>((next_ - kLevel3Nodes) / 4 + 1024, to_come));
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
  // What a failure restores: of each node that was changed the mask, and the indices that were replaced.
  struct Before {
    uint32_t key;  // one of the node
    uint64_t mask;
    size_t replaced;  // where its part of `indices` begins
  };
  std::vector<Before> before;
  std::vector<std::pair<uint32_t, uint32_t>> indices;  // key, and the index it had
  const auto roll_back = [&] {
    for (; !before.empty(); before.pop_back()) {
      const Before& node = before.back();
      for (; indices.size() > node.replaced; indices.pop_back())
        *const_cast<uint32_t*>(index_of(indices.back().first)) = indices.back().second;
      const PyramidPlace at = pyramid_place(brick_from_key(node.key));
      const OccupancyNode& node3 = level3()[at.level3];
      const OccupancyNode& level2 = nodes()[node3.child + child_number(node3.mask, at.level3_bit)];
      remove_bricks(at, nodes()[level2.child + child_number(level2.mask, at.level2_bit)].mask & ~node.mask);
    }
  };
  // Room for what one node needs, so that nothing in it is refused when it is half changed.
  const auto have_room = [](auto& list, size_t more) {
    if (list.capacity() < list.size() + more) list.reserve(std::max(list.size() + more, 2 * list.capacity()));
  };
  Result<void> result;
  size_t done = 0;  // keys
  const auto add_to_node = [&](std::span<const uint32_t> positions) {
    have_room(before, 1);
    have_room(indices, positions.size());
    result = ensure_room(kSpareGranules, (keys.size() - done) * sizeof(uint32_t) / kGranuleBytes);
    if (!result) return false;
    done += positions.size();
    const PyramidPlace at = pyramid_place(brick_from_key(keys[positions[0]]));
    OccupancyNode& node3 = own()[level3_ + at.level3];
    own_run(node3);
    auto* level2 = node3.mask & bit_mask(at.level3_bit)
                       ? own() + node3.child + child_number(node3.mask, at.level3_bit)
                       : static_cast<OccupancyNode*>(insert_child(node3, at.level3_bit, sizeof(OccupancyNode)));
    own_run(*level2);
    auto* level1 = level2->mask & bit_mask(at.level2_bit)
                       ? own() + level2->child + child_number(level2->mask, at.level2_bit)
                       : static_cast<OccupancyNode*>(insert_child(*level2, at.level2_bit, sizeof(OccupancyNode)));
    own_run(*level1);
    before.push_back({keys[positions[0]], level1->mask, indices.size()});
    uint64_t reached = 0;
    for (const uint32_t i : positions) reached |= bit_mask(level1_bit_of(keys[i]));
    bool changed = (reached & ~level1->mask) != 0;
    insert_bricks(*level1, reached);
    auto* const table = reinterpret_cast<uint32_t*>(own() + level1->child);
    for (const uint32_t i : positions) {
      const uint32_t bit = level1_bit_of(keys[i]);
      uint32_t& index = table[child_number(level1->mask, bit)];
      if (index == bricks[i]) continue;
      if (before.back().mask & bit_mask(bit)) indices.emplace_back(keys[i], index);
      index = bricks[i];
      changed = true;
    }
    if (changed) mark_dirty(at.level2);
    return true;
  };
  try {
    each_node(keys, add_to_node);
  } catch (...) {
    roll_back();
    throw;
  }
  if (!result) roll_back();
  return result;
}

// Adds the bits of `reached` that the level-1 node lacks to its mask, with room in its table, where their indices are
// 0 then.
void OccupancyPyramid::insert_bricks(OccupancyNode& level1, uint64_t reached) {
  const uint64_t old = level1.mask, mask = old | reached;
  if (mask == old) return;
  const auto count = uint32_t(std::popcount(mask));
  const auto needed = uint32_t((count * sizeof(uint32_t) + kGranuleBytes - 1) / kGranuleBytes);
  const OccupancyNode former = level1;
  if (needed > level1.room()) {
    const auto size = size_t(std::lower_bound(kRooms.begin(), kRooms.end(), needed) - kRooms.begin());
    level1.child = take_run(size);
    level1.run = kRooms[size] | stamp() << 8;
  }
  const auto* from = reinterpret_cast<const uint32_t*>(own() + former.child) + std::popcount(old);
  auto* to = reinterpret_cast<uint32_t*>(own() + level1.child) + count;
  // From the last to the first, so that it works in place too.
  for (uint64_t left = mask; left;) {
    const uint64_t bit = bit_mask(uint32_t(63 - std::countl_zero(left)));
    *--to = old & bit ? *--from : 0;
    left &= ~bit;
  }
  if (former.mask && level1.child != former.child) {
    OccupancyNode done = former;
    free_run(done);
  }
  level1.mask = mask;
}

// Removes those of one level-1 node that exist.
void OccupancyPyramid::remove_bricks(const PyramidPlace& at, uint64_t reached) {
  const auto node_at = [&](const OccupancyNode& parent, uint32_t bit) -> OccupancyNode* {
    return parent.mask & bit_mask(bit) ? own() + parent.child + child_number(parent.mask, bit) : nullptr;
  };
  const OccupancyNode* const there2 = node_at(level3()[at.level3], at.level3_bit);
  const OccupancyNode* const there1 = there2 ? node_at(*there2, at.level2_bit) : nullptr;
  if (!there1 || !(there1->mask & reached)) return;
  own_level3();
  OccupancyNode& node3 = own()[level3_ + at.level3];
  own_run(node3);
  OccupancyNode& level2 = *node_at(node3, at.level3_bit);
  own_run(level2);
  OccupancyNode& level1 = *node_at(level2, at.level2_bit);
  mark_dirty(at.level2);
  const uint64_t old = level1.mask, mask = old & ~reached;
  if (mask) {
    own_run(level1);
    auto* const indices = reinterpret_cast<uint32_t*>(own() + level1.child);
    uint32_t from = 0, to = 0;
    for (uint64_t left = old; left; left &= left - 1, ++from)
      if (left & (~left + 1) & mask) indices[to++] = indices[from];
    level1.mask = mask;
    return;
  }
  level1.mask = 0;
  free_run(level1);
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
  each_node(keys, [&](std::span<const uint32_t> positions) {
    uint64_t reached = 0;
    for (const uint32_t i : positions) reached |= bit_mask(level1_bit_of(keys[i]));
    remove_bricks(pyramid_place(brick_from_key(keys[positions[0]])), reached);
    return true;
  });
}

void OccupancyPyramid::replace(std::span<const uint32_t> keys, std::span<const uint32_t> bricks) {
  if (!keys.empty()) own_level3();
  each_node(keys, [&](std::span<const uint32_t> positions) {
    const PyramidPlace at = pyramid_place(brick_from_key(keys[positions[0]]));
    OccupancyNode& node3 = own()[level3_ + at.level3];
    own_run(node3);
    OccupancyNode& level2 = own()[node3.child + child_number(node3.mask, at.level3_bit)];
    own_run(level2);
    OccupancyNode& level1 = own()[level2.child + child_number(level2.mask, at.level2_bit)];
    own_run(level1);
    auto* const indices = reinterpret_cast<uint32_t*>(own() + level1.child);
    for (const uint32_t i : positions) indices[child_number(level1.mask, level1_bit_of(keys[i]))] = bricks[i];
    mark_dirty(at.level2);
    return true;
  });
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

void OccupancyPyramid::visit_box(const Box3& bricks,
                                 const std::function<void(Int3 brick, uint32_t index)>& visit) const {
  const Int3 corner = brick_of(kWorldMin);
  const Box3 inside = intersected(bricks, {corner, brick_of(kWorldMax)});
  if (inside.empty()) return;
  const Int3 low = inside.min - corner, high = inside.max - corner;
  // The children of a node that meet the box, `shift` being that of a child: visit(number, cell).
  const auto each = [&](uint64_t mask, Int3 node, int32_t shift, const auto& show) {
    uint32_t number = 0;
    for (uint64_t left = mask; left; left &= left - 1, ++number) {
      const int32_t bit = std::countr_zero(left);
      const Int3 at{node.x << 2 | (bit & 3), node.y << 2 | (bit >> 2 & 3), node.z << 2 | bit >> 4};
      if (at.x >= low.x >> shift && at.x <= high.x >> shift && at.y >= low.y >> shift && at.y <= high.y >> shift &&
          at.z >= low.z >> shift && at.z <= high.z >> shift)
        show(number, at);
    }
  };
  for (int32_t z = low.z >> 6; z <= high.z >> 6; ++z)
    for (int32_t y = low.y >> 6; y <= high.y >> 6; ++y)
      for (int32_t x = low.x >> 6; x <= high.x >> 6; ++x) {
        const OccupancyNode& node3 = level3()[x | y << 5 | z << 9];
        each(node3.mask, {x, y, z}, 4, [&](uint32_t i, Int3 at2) {
          const OccupancyNode& level2 = nodes()[node3.child + i];
          each(level2.mask, at2, 2, [&](uint32_t j, Int3 at1) {
            const OccupancyNode& level1 = nodes()[level2.child + j];
            each(level1.mask, at1, 0, [&](uint32_t k, Int3 at) { visit(at + corner, table(level1)[k]); });
          });
        });
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
