// SPDX-License-Identifier: Apache-2.0
// occupancy_test.cpp - the occupancy pyramid against maps of coordinates, its arena read in the way of a shader.
#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/voxel/limited_memory.hpp"
#include "tests/voxel/published_memory.hpp"
#include "voxel/bricks/occupancy.hpp"

namespace occupancy_test {

using namespace quarry;

namespace {

using Bricks = std::map<uint32_t, uint32_t>;  // key -> pool index

// From the header's text alone: the cell of `edge` voxels that holds the brick, by plain division.
std::array<uint32_t, 3> cell_of(uint32_t key, uint32_t edge) {
  const Int3 brick = brick_from_key(key);
  return {uint32_t(brick.x * 8 - kWorldMin.x) / edge, uint32_t(brick.y * 8 - kWorldMin.y) / edge,
          uint32_t(brick.z * 8 - kWorldMin.z) / edge};
}
uint32_t bit_in(const std::array<uint32_t, 3>& child) {
  return child[0] % 4 + 4 * (child[1] % 4) + 16 * (child[2] % 4);
}

// The index of a brick, read from an arena in the way of a shader: masks and counted bits.
std::optional<uint32_t> read_arena(const OccupancyNode* nodes, uint32_t key, uint32_t level3 = 0) {
  const auto cell = cell_of(key, 512);
  const OccupancyNode* node = nodes + level3 + (cell[0] + 32 * cell[1] + 512 * cell[2]);
  for (const uint32_t child_edge : {128u, 32u, 8u}) {
    const uint32_t bit = bit_in(cell_of(key, child_edge));
    if (!(node->mask >> bit & 1)) return {};
    uint32_t number = 0;
    for (uint32_t b = 0; b < bit; ++b) number += uint32_t(node->mask >> b & 1);
    if (child_edge == 8) return reinterpret_cast<const uint32_t*>(nodes + node->child)[number];
    node = nodes + node->child + number;
  }
  return {};
}

void require_same(const OccupancyPyramid& pyramid, const Bricks& bricks) {
  Box3 box;
  for (const auto& [key, index] : bricks) box = united(box, {brick_from_key(key), brick_from_key(key)});
  std::vector<Int3> outermost;
  REQUIRE(pyramid.brick_bounds(&outermost) == box);
  const auto touches = [&](Int3 b) {
    return b.x == box.min.x || b.x == box.max.x || b.y == box.min.y || b.y == box.max.y || b.z == box.min.z ||
           b.z == box.max.z;
  };
  const auto faces = std::count_if(bricks.begin(), bricks.end(),
                                   [&](const auto& brick) { return touches(brick_from_key(brick.first)); });
  REQUIRE(outermost.size() == size_t(faces));
  REQUIRE(std::all_of(outermost.begin(), outermost.end(),
                      [&](Int3 b) { return touches(b) && bricks.count(brick_key(b)); }));
  for (const auto& [key, index] : bricks)
    if (read_arena(pyramid.nodes(), key, pyramid.level3_granule()) != index ||
        pyramid.find_brick(brick_from_key(key)) != index)
      FAIL("brick " << key << " is not where it should be");
  // There is nothing else, and no two runs overlap.
  std::vector<std::pair<uint64_t, uint64_t>> runs{{pyramid.level3_granule(), pyramid.level3_granule() + kLevel3Nodes}};
  uint64_t found = 0;
  const auto walk = [&](const auto& self, const OccupancyNode& node, int level) -> void {
    if (node.mask == 0) {
      if (node.room()) FAIL("an empty node owns a run");
      return;
    }
    const auto children = uint32_t(std::popcount(node.mask));
    runs.emplace_back(node.child, node.child + node.room());
    if (level == 1) {
      found += children;
      if (node.room() * 4 < children) FAIL("a table is larger than its run");
      return;
    }
    if (node.room() < children) FAIL("a run of nodes is too small");
    for (uint32_t i = 0; i < children; ++i) {
      if (pyramid.nodes()[node.child + i].mask == 0) FAIL("an empty node is kept");
      self(self, pyramid.nodes()[node.child + i], level - 1);
    }
  };
  for (uint32_t i = 0; i < kLevel3Nodes; ++i) walk(walk, pyramid.level3()[i], 3);
  REQUIRE(found == bricks.size());
  std::sort(runs.begin(), runs.end());
  for (size_t i = 1; i < runs.size(); ++i)
    if (runs[i].first < runs[i - 1].second) FAIL("runs overlap at granule " << runs[i].first);
  REQUIRE(runs.back().second * kGranuleBytes <= pyramid.used_bytes());
  REQUIRE(pyramid.used_bytes() + 64 * kGranuleBytes <= pyramid.size_bytes());
  std::vector<uint32_t> keys;
  for (const auto& brick : bricks) keys.push_back(brick.first);
  REQUIRE((pyramid.keys() == keys));
}

std::vector<uint32_t> random_keys(std::mt19937& random, size_t count, bool clustered) {
  std::vector<uint32_t> keys;
  while (keys.size() < count) {
    const uint32_t key = clustered
                             ? brick_key({int(random() % 60) - 30, int(random() % 60) - 30, int(random() % 60) - 30})
                             : uint32_t(random());
    if (key != kQryReservedKey) keys.push_back(key);
  }
  return keys;
}

std::vector<uint32_t> random_indices(std::mt19937& random, size_t count) {
  std::vector<uint32_t> indices(count);
  for (uint32_t& index : indices) index = uint32_t(random());
  return indices;
}

void put(Bricks& bricks, const std::vector<uint32_t>& keys, const std::vector<uint32_t>& indices) {
  for (size_t i = 0; i < keys.size(); ++i) bricks[keys[i]] = indices[i];
}
std::pair<std::vector<uint32_t>, std::vector<uint32_t>> taken_apart(const Bricks& bricks) {
  std::pair<std::vector<uint32_t>, std::vector<uint32_t>> out;
  for (const auto& [key, index] : bricks) {
    out.first.push_back(key);
    out.second.push_back(index);
  }
  return out;
}

}  // namespace

TEST_CASE("occupancy: after random additions and removals every brick is found, and nothing else") {
  test::LimitedMemory memory;
  auto pyramid = OccupancyPyramid::create(memory);
  REQUIRE(pyramid);
  std::mt19937 random(1);
  Bricks bricks;
  for (int round = 0; round < 8; ++round) {
    const auto added = random_keys(random, 3000, round % 2 == 0);  // includes duplicates and present ones
    const auto indices = random_indices(random, added.size());
    REQUIRE(pyramid->add(added, indices));
    put(bricks, added, indices);
    std::vector<uint32_t> removed = random_keys(random, 500, true);  // includes absent ones
    for (const auto& brick : bricks)
      if (random() % 2) removed.push_back(brick.first);
    pyramid->remove(removed);
    for (const uint32_t key : removed) bricks.erase(key);
    require_same(*pyramid, bricks);
  }
  for (const uint32_t key : random_keys(random, 2000, true))
    REQUIRE(pyramid->has_brick(brick_from_key(key)) == (bricks.count(key) == 1));
  REQUIRE_FALSE(pyramid->has_brick({1024, 0, 0}));
  REQUIRE_FALSE(pyramid->has_brick({1023, 511, 1023}));

  const auto [keys, indices] = taken_apart(bricks);
  auto rebuilt = OccupancyPyramid::create(memory);
  REQUIRE(rebuilt);
  REQUIRE(rebuilt->add(random_keys(random, 100, false), random_indices(random, 100)));
  REQUIRE(rebuilt->rebuild(keys, indices));
  require_same(*rebuilt, bricks);
  REQUIRE(rebuilt->used_bytes() <= pyramid->used_bytes());
  REQUIRE(rebuilt->id() != pyramid->id());
  REQUIRE(rebuilt->block_id() != pyramid->block_id());
  pyramid->remove(keys);
  require_same(*pyramid, {});
  REQUIRE_FALSE(pyramid->add(keys, random_indices(random, 1)));
}

TEST_CASE("occupancy: what was freed is used again") {
  test::LimitedMemory memory;
  auto pyramid = OccupancyPyramid::create(memory);
  REQUIRE(pyramid);
  std::mt19937 random(5);
  const auto keys = random_keys(random, 5000, true), indices = random_indices(random, 5000);
  REQUIRE(pyramid->add(keys, indices));
  const uint64_t used = pyramid->used_bytes();
  for (int round = 0; round < 20; ++round) {
    pyramid->remove(keys);
    REQUIRE(pyramid->add(keys, indices));
  }
  REQUIRE(pyramid->used_bytes() == used);
}

TEST_CASE("occupancy: the world's corners have their bits") {
  test::LimitedMemory memory;
  auto pyramid = OccupancyPyramid::create(memory);
  REQUIRE(pyramid);
  Bricks bricks;
  for (const int x : {-1024, 1023})
    for (const int y : {-512, 511})
      for (const int z : {-1024, 1023})
        if (brick_in_world({x, y, z})) bricks[brick_key({x, y, z})] = uint32_t(bricks.size());
  REQUIRE(bricks.size() == 7);
  const auto [keys, indices] = taken_apart(bricks);
  REQUIRE(pyramid->add(keys, indices));
  require_same(*pyramid, bricks);
}

TEST_CASE("occupancy: a mirror that copies the dirty nodes alone finds the same bricks") {
  test::LimitedMemory memory;
  auto pyramid = OccupancyPyramid::create(memory);
  REQUIRE(pyramid);
  std::mt19937 random(3);
  Bricks bricks;
  std::set<uint32_t> ever;
  std::vector<OccupancyNode> mirror;
  uint64_t block = 0;
  const auto copy = [&](uint32_t first, size_t bytes) {
    std::memcpy(mirror.data() + first, pyramid->nodes() + first, bytes);
  };
  for (int round = 0; round < 30; ++round) {
    const auto keys = random_keys(random, 200, round % 2 == 0), indices = random_indices(random, 200);
    if (round == 11) {
      pyramid->clear();
      bricks.clear();
    }
    if (round % 3) {
      REQUIRE(pyramid->add(keys, indices));
      put(bricks, keys, indices);
      ever.insert(keys.begin(), keys.end());
    } else {
      pyramid->remove(keys);
      for (const uint32_t key : keys) bricks.erase(key);
    }
    const auto dirty = pyramid->take_dirty_level2();
    REQUIRE(std::is_sorted(dirty.begin(), dirty.end()));
    REQUIRE(std::adjacent_find(dirty.begin(), dirty.end()) == dirty.end());
    if (std::exchange(block, pyramid->block_id()) != block) {
      mirror.assign(pyramid->size_bytes() / kGranuleBytes, OccupancyNode{});
      copy(0, pyramid->used_bytes());
    } else {
      for (const uint32_t level2 : dirty) {
        const uint32_t cell = level3_of_level2(level2);
        copy(cell, kGranuleBytes);
        const OccupancyNode& level3 = pyramid->nodes()[cell];
        if (level3.mask) copy(level3.child, size_t(std::popcount(level3.mask)) * kGranuleBytes);
        if (!(level3.mask >> bit_of_level2(level2) & 1)) continue;
        const OccupancyNode& node = pyramid->nodes()[level3.child + child_number(level3.mask, bit_of_level2(level2))];
        copy(node.child, size_t(std::popcount(node.mask)) * kGranuleBytes);
        for (uint32_t i = 0; i < uint32_t(std::popcount(node.mask)); ++i) {
          const OccupancyNode& level1 = pyramid->nodes()[node.child + i];
          copy(level1.child, size_t(std::popcount(level1.mask)) * 4);
        }
      }
    }
    uint32_t missed = 0;
    for (const uint32_t key : ever) {
      const auto at = bricks.find(key);
      missed += read_arena(mirror.data(), key) !=
                (at == bricks.end() ? std::optional<uint32_t>{} : std::optional<uint32_t>{at->second});
    }
    REQUIRE(missed == 0);
  }
  const auto [keys, indices] = taken_apart(bricks);
  REQUIRE(pyramid->add(keys, indices));  // nothing new
  REQUIRE(pyramid->take_dirty_level2().empty());
}

TEST_CASE("occupancy: what was published stays as it was while a frame may read it, and is used again afterwards") {
  std::mt19937 random(77);
  test::PublishedMemory memory;
  {
    OccupancyPyramid pyramid = std::move(*OccupancyPyramid::create(memory));
    struct Snapshot {
      uint64_t number;
      const OccupancyNode* nodes;
      uint32_t level3;
      Bricks bricks;
    };
    std::vector<Snapshot> snapshots;
    Bricks bricks;
    const auto check = [&](const Snapshot& snapshot, const char* when) {
      for (const auto& [key, index] : snapshot.bricks)
        if (read_arena(snapshot.nodes, key, snapshot.level3) != index)
          FAIL("snapshot " << snapshot.number << ' ' << when << ": brick " << key);
      for (const auto& [key, index] : bricks)
        if (!snapshot.bricks.count(key) && read_arena(snapshot.nodes, key, snapshot.level3))
          FAIL("snapshot " << snapshot.number << ' ' << when << ": brick " << key << " is of a later one");
    };
    uint64_t most = 0, later = 0;
    for (int round = 0; round < 240; ++round) {
      // Some edits, then a publish; some frames end, in order. For a while none does.
      for (int edit = 0; edit < 3; ++edit) {
        const auto keys = random_keys(random, random() % 200, round % 3 != 0);
        if (random() % 3) {
          std::vector<uint32_t> indices(keys.size());
          for (size_t i = 0; i < keys.size(); ++i) indices[i] = bricks[keys[i]] = uint32_t(random());
          if (random() % 4 == 0) memory.memory.refuse_after = 0;
          bool added = bool(pyramid.add(keys, indices));
          memory.memory.refuse_after = size_t(-1);
          if (!added) REQUIRE(pyramid.add(keys, indices));
        }
        std::vector<uint32_t> gone, changed, indices;
        for (const auto& [key, index] : bricks) {
          const auto what = random() % 40;
          if (what == 0) gone.push_back(key);
          if (what == 1) changed.push_back(key), indices.push_back(uint32_t(random()));
        }
        pyramid.reserve_changes(gone.size() + changed.size());
        if (random() % 4 == 0) {
          memory.memory.refuse_after = 0;
          (void)pyramid.reserve_copies({gone, changed});
          memory.memory.refuse_after = size_t(-1);
        }
        REQUIRE(pyramid.reserve_copies({gone, changed}));
        memory.memory.refuse_after = 0;  // nothing more is asked for
        pyramid.remove(gone);
        pyramid.replace(changed, indices);
        memory.memory.refuse_after = size_t(-1);
        for (const uint32_t key : gone) bricks.erase(key);
        for (size_t i = 0; i < changed.size(); ++i) bricks[changed[i]] = indices[i];
      }
      require_same(pyramid, bricks);
      snapshots.push_back({memory.publish(), pyramid.nodes(), pyramid.level3_granule(), bricks});
      if (round < 60 || round >= 100) {
        const size_t keep = random() % 4;
        while (snapshots.size() > keep + 1) {
          check(snapshots.front(), "at its end");
          memory.end(snapshots.front().number);
          snapshots.erase(snapshots.begin());
        }
      }
      for (const Snapshot& snapshot : snapshots)
        if (round % 10 == 0 || &snapshot == &snapshots.back()) check(snapshot, "later");
      if (round == 150) most = pyramid.used_bytes();
      if (round == 239) later = pyramid.used_bytes();
    }
    CHECK(later < most + most / 2);  // old runs serve again
    REQUIRE(pyramid.shrink_to_fit(true));
    require_same(pyramid, bricks);
    for (const Snapshot& snapshot : snapshots) check(snapshot, "after the pyramid moved");
  }
  memory.end(UINT64_MAX);
  CHECK(memory.memory.blocks() == 0);
}

TEST_CASE("occupancy: memory refused leaves every brick as it was, and all of it is given back at the end") {
  test::LimitedMemory memory;
  {
    memory.refuse_after = 0;
    REQUIRE_FALSE(OccupancyPyramid::create(memory));
    REQUIRE(memory.blocks() == 0);
    memory.refuse_after = size_t(-1);
    auto pyramid = OccupancyPyramid::create(memory);
    REQUIRE(pyramid);
    Bricks bricks{{brick_key({0, 0, 0}), 5}, {brick_key({100, 100, 100}), 7}};
    const auto [some, some_indices] = taken_apart(bricks);
    REQUIRE(pyramid->add(some, some_indices));
    std::mt19937 random(9);
    auto many = random_keys(random, 20000, false);
    many.front() = some.front();                              // present, with another index
    const auto many_indices = random_indices(random, 20000);  // more than the first block holds
    memory.refuse_after = 0;
    const auto refused = pyramid->add(many, many_indices);
    REQUIRE_FALSE(refused);
    REQUIRE(refused.error().code == ErrorCode::out_of_memory);
    require_same(*pyramid, bricks);
    memory.refuse_after = size_t(-1);
    REQUIRE(pyramid->add(many, many_indices));
    put(bricks, many, many_indices);
    OccupancyPyramid moved = std::move(*pyramid);
    require_same(moved, bricks);
  }
  REQUIRE(memory.blocks() == 0);
}

}  // namespace occupancy_test
