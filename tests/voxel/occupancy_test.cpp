// The occupancy pyramid against sets of coordinates, every level read as a shader reads it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "tests/voxel/limited_memory.hpp"
#include "voxel/occupancy.hpp"

using namespace quarry;

namespace {

// From the header's text alone: dense index and bit of the cell that holds `voxel`, by plain division.
struct Word {
  uint32_t index, bit;
};
Word word_at(Int3 voxel, int child_edge, uint32_t bits_x, uint32_t bits_y) {
  const uint32_t child[3] = {uint32_t(voxel.x - kWorldMin.x) / uint32_t(child_edge), uint32_t(voxel.y - kWorldMin.y) / uint32_t(child_edge),
                             uint32_t(voxel.z - kWorldMin.z) / uint32_t(child_edge)};
  const uint32_t cell[3] = {child[0] / 4, child[1] / 4, child[2] / 4};
  return {cell[0] + (cell[1] << bits_x) + (cell[2] << (bits_x + bits_y)), child[0] % 4 + 4 * (child[1] % 4) + 16 * (child[2] % 4)};
}

void require_same(const OccupancyPyramid& pyramid, const std::set<uint32_t>& keys) {
  std::unordered_map<uint32_t, uint64_t> level2, level3, level4;
  std::unordered_map<uint64_t, uint64_t> level1;  // region << 6 | word in its block
  for (const uint32_t key : keys) {
    const Int3 brick = brick_from_key(key);
    const Int3 voxel{brick.x * 8, brick.y * 8, brick.z * 8};
    const Word in2 = word_at(voxel, 32, 7, 6), in3 = word_at(voxel, 128, 5, 4), in4 = word_at(voxel, 512, 3, 2), in1 = word_at(voxel, 8, 9, 8);
    level2[in2.index] |= uint64_t(1) << in2.bit;
    level3[in3.index] |= uint64_t(1) << in3.bit;
    level4[in4.index] |= uint64_t(1) << in4.bit;
    level1[uint64_t(in2.index) << 6 | in2.bit] |= uint64_t(1) << in1.bit;
  }
  std::set<uint32_t> blocks;
  const auto expected = [](const auto& words, auto index) {
    const auto found = words.find(index);
    return found == words.end() ? uint64_t(0) : found->second;
  };
  for (uint32_t i = 0; i < kRegionWords; ++i) {
    if (pyramid.level2(i) != expected(level2, i)) FAIL("level 2 word " << i);
    const uint32_t block = pyramid.block_of_region()[i];
    if ((block != 0) != (pyramid.level2(i) != 0)) FAIL("block of region " << i);
    if (block == 0) continue;
    if (!blocks.insert(block).second) FAIL("two regions share block " << block);
    const auto* words = static_cast<const uint64_t*>(pyramid.block_slabs().at(block));
    for (uint32_t w = 0; w < kBlockWords; ++w)
      if (words[w] != expected(level1, uint64_t(i) << 6 | w)) FAIL("level 1 word " << w << " of region " << i);
  }
  for (uint32_t i = 0; i < kLevel3Words; ++i)
    if (pyramid.level3_words()[i] != expected(level3, i)) FAIL("level 3 word " << i);
  for (uint32_t i = 0; i < kLevel4Words; ++i)
    if (pyramid.level4_words()[i] != expected(level4, i)) FAIL("level 4 word " << i);
  const auto* empty = static_cast<const uint64_t*>(pyramid.block_slabs().at(0));
  REQUIRE(std::all_of(empty, empty + kBlockWords, [](uint64_t w) { return w == 0; }));
  REQUIRE((pyramid.keys() == std::vector<uint32_t>(keys.begin(), keys.end())));
}

std::vector<uint32_t> random_keys(std::mt19937& random, size_t count, bool clustered) {
  std::vector<uint32_t> keys;
  while (keys.size() < count) {
    const uint32_t key = clustered ? brick_key({int(random() % 60) - 30, int(random() % 60) - 30, int(random() % 60) - 30}) : uint32_t(random());
    if (key != kQryReservedKey) keys.push_back(key);
  }
  return keys;
}

}  // namespace

TEST_CASE("occupancy: after random additions and removals every level is what the keys say") {
  test::LimitedMemory memory;
  auto pyramid = OccupancyPyramid::create(memory);
  REQUIRE(pyramid);
  std::mt19937 random(1);
  std::set<uint32_t> keys;
  for (int round = 0; round < 8; ++round) {
    const auto added = random_keys(random, 3000, round % 2 == 0);  // duplicates and present ones among them
    REQUIRE(pyramid->add(added));
    keys.insert(added.begin(), added.end());
    std::vector<uint32_t> removed = random_keys(random, 500, true);  // absent ones too
    for (const uint32_t key : keys)
      if (random() % 2) removed.push_back(key);
    pyramid->remove(removed);
    for (const uint32_t key : removed) keys.erase(key);
    if (round % 3 == 0) require_same(*pyramid, keys);
  }
  require_same(*pyramid, keys);
  for (const uint32_t key : random_keys(random, 2000, true)) REQUIRE(pyramid->has_brick(brick_from_key(key)) == (keys.count(key) == 1));
  REQUIRE_FALSE(pyramid->has_brick({1024, 0, 0}));
  REQUIRE_FALSE(pyramid->has_brick({1023, 511, 1023}));

  auto rebuilt = OccupancyPyramid::create(memory);
  REQUIRE(rebuilt);
  REQUIRE(rebuilt->add(random_keys(random, 100, false)));
  REQUIRE(rebuilt->rebuild(std::vector<uint32_t>(keys.begin(), keys.end())));
  require_same(*rebuilt, keys);
  pyramid->remove(std::vector<uint32_t>(keys.begin(), keys.end()));
  require_same(*pyramid, {});
}

TEST_CASE("occupancy: the world's corners have their bits") {
  test::LimitedMemory memory;
  auto pyramid = OccupancyPyramid::create(memory);
  REQUIRE(pyramid);
  std::set<uint32_t> keys;
  for (const int x : {-1024, 1023})
    for (const int y : {-512, 511})
      for (const int z : {-1024, 1023})
        if (brick_in_world({x, y, z})) keys.insert(brick_key({x, y, z}));
  REQUIRE(keys.size() == 7);
  REQUIRE(pyramid->add(std::vector<uint32_t>(keys.begin(), keys.end())));
  require_same(*pyramid, keys);
}

TEST_CASE("occupancy: a mirror that copies the dirty regions alone has the same words") {
  test::LimitedMemory memory;
  auto pyramid = OccupancyPyramid::create(memory);
  REQUIRE(pyramid);
  std::mt19937 random(3);
  std::unordered_map<uint32_t, std::pair<uint64_t, std::vector<uint64_t>>> mirror;  // region -> level-2 word and block
  const auto look = [&](uint32_t region) {
    const auto* block = static_cast<const uint64_t*>(pyramid->block_slabs().at(pyramid->block_of_region()[region]));
    return std::pair{pyramid->level2(region), std::vector<uint64_t>(block, block + kBlockWords)};
  };
  for (int round = 0; round < 20; ++round) {
    const auto keys = random_keys(random, 200, round % 2 == 0);
    if (round == 11) pyramid->clear();
    if (round % 3) REQUIRE(pyramid->add(keys)); else pyramid->remove(keys);
    const auto dirty = pyramid->take_dirty_regions();
    REQUIRE(std::is_sorted(dirty.begin(), dirty.end()));
    REQUIRE(std::adjacent_find(dirty.begin(), dirty.end()) == dirty.end());
    for (const uint32_t region : dirty) mirror[region] = look(region);
    uint32_t missed = 0;
    for (uint32_t region = 0; region < kRegionWords; ++region) {
      const auto found = mirror.find(region);
      missed += found == mirror.end() ? pyramid->level2(region) != 0 : found->second != look(region);
    }
    REQUIRE(missed == 0);
  }
  REQUIRE(pyramid->add(pyramid->keys()));  // nothing new
  REQUIRE(pyramid->take_dirty_regions().empty());
}

TEST_CASE("occupancy: memory refused leaves the pyramid as it was, and all of it is given back at the end") {
  test::LimitedMemory memory;
  {
    memory.refuse_after = 1;
    REQUIRE_FALSE(OccupancyPyramid::create(memory));
    REQUIRE(memory.blocks() == 0);
    memory.refuse_after = size_t(-1);
    auto pyramid = OccupancyPyramid::create(memory);
    REQUIRE(pyramid);
    std::vector<uint32_t> some = {brick_key({0, 0, 0}), brick_key({100, 100, 100})};
    REQUIRE(pyramid->add(some));
    std::vector<uint32_t> many;  // more regions than the first slab has blocks
    for (uint32_t region = 0; region < kBlocksPerSlab + 5; ++region)
      many.push_back(brick_key({int(region & 127u) * 16 - 1024, int(region >> 7 & 63u) * 16 - 512, int(region >> 13) * 16 - 1024}));
    (void)pyramid->take_dirty_regions();
    memory.refuse_after = 0;
    const auto refused = pyramid->add(many);
    REQUIRE_FALSE(refused);
    REQUIRE(refused.error().code == ErrorCode::out_of_memory);
    REQUIRE(pyramid->take_dirty_regions().empty());
    require_same(*pyramid, std::set<uint32_t>(some.begin(), some.end()));
    memory.refuse_after = size_t(-1);
    REQUIRE(pyramid->add(many));
    std::set<uint32_t> keys(many.begin(), many.end());
    keys.insert(some.begin(), some.end());
    OccupancyPyramid moved = std::move(*pyramid);
    require_same(moved, keys);
  }
  REQUIRE(memory.blocks() == 0);
}
