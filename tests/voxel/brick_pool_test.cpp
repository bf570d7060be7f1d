// The promises of brick_pool.hpp, and of the slabs below it.
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "tests/voxel/limited_memory.hpp"
#include "voxel/brick_pool.hpp"

using namespace quarry;

namespace {

Brick marked(uint32_t number) {
  Brick brick;
  for (uint32_t bit = 0; bit < 32; ++bit)
    if (number >> bit & 1u) brick.set(bit * 16, uint8_t(1 + bit));
  brick.set(511, 9);
  return brick;
}

}  // namespace

TEST_CASE("brick_pool: freed indices come back lowest first, and always empty") {
  test::LimitedMemory memory;
  BrickPool pool(memory);
  for (uint32_t i = 0; i < 100; ++i) {
    const auto index = pool.allocate();
    REQUIRE(index);
    REQUIRE(*index == i);
    pool.put(i, marked(i));
  }
  for (const uint32_t index : {70u, 3u, 50u, 99u, 0u}) pool.free(index);
  REQUIRE(pool.live() == 95);
  for (const uint32_t expected : {0u, 3u, 50u, 70u, 99u, 100u}) {
    const auto index = pool.allocate();
    REQUIRE(index);
    REQUIRE(*index == expected);
    REQUIRE(pool.get(*index).empty());
    REQUIRE((pool.get(*index) == Brick{}));
  }
  REQUIRE(pool.high_water() == 101);
}

TEST_CASE("brick_pool: a random history of allocating and freeing never hands out an index twice") {
  test::LimitedMemory memory;
  BrickPool pool(memory);
  std::mt19937 random(7);
  std::set<uint32_t> live;
  for (int n = 0; n < 5000; ++n) {
    if (random() % 3 && !live.empty()) {
      auto it = live.lower_bound(uint32_t(random() % (*live.rbegin() + 1)));
      REQUIRE((pool.get(*it) == marked(*it)));
      pool.free(*it);
      live.erase(it);
    } else {
      const auto many = pool.allocate(random() % 7);
      REQUIRE(many);
      for (const uint32_t index : *many) {
        REQUIRE(live.insert(index).second);
        pool.put(index, marked(index));
      }
    }
    REQUIRE(pool.live() == live.size());
  }
}

TEST_CASE("brick_pool: full is an answer with both numbers, all or none, and nothing that is there changes") {
  test::LimitedMemory memory;
  BrickPool pool(memory, 10);
  const auto eight = pool.allocate(8);
  REQUIRE(eight);
  for (const uint32_t index : *eight) pool.put(index, marked(index + 1));
  const auto three = pool.allocate(3);
  REQUIRE_FALSE(three);
  REQUIRE(three.error().code == ErrorCode::full);
  REQUIRE(three.error().message.find(" 8 of at most 10 ") != std::string::npos);
  REQUIRE(pool.live() == 8);
  REQUIRE(pool.high_water() == 8);
  REQUIRE(pool.allocate(2));
  REQUIRE_FALSE(pool.allocate());
  for (const uint32_t index : *eight) REQUIRE((pool.get(index) == marked(index + 1)));
  pool.free(4);
  const auto again = pool.allocate();
  REQUIRE(again);
  REQUIRE(*again == 4);
}

TEST_CASE("brick_pool: growth over slabs moves nothing, and memory refused leaves the pool as it was") {
  test::LimitedMemory memory;
  {
    BrickPool pool(memory);
    const auto first = pool.allocate(kBricksPerSlab - 1);
    REQUIRE(first);
    pool.put(5, marked(5));
    const BrickMask* const mask = &pool.mask(5);
    const uint64_t bytes = pool.size_bytes();
    for (const size_t granted : {size_t(0), size_t(1)}) {
      memory.refuse_after = granted;
      const auto refused = pool.allocate(2);
      REQUIRE_FALSE(refused);
      REQUIRE(refused.error().code == ErrorCode::out_of_memory);
      REQUIRE(pool.live() == kBricksPerSlab - 1);
    }
    memory.refuse_after = size_t(-1);
    const auto more = pool.allocate(2 * kBricksPerSlab);
    REQUIRE(more);
    REQUIRE(&pool.mask(5) == mask);
    REQUIRE((pool.get(5) == marked(5)));
    REQUIRE(pool.size_bytes() > bytes);
    const uint32_t last = more->back();
    REQUIRE(last == 3 * kBricksPerSlab - 2);
    pool.put(last, marked(77));
    REQUIRE((pool.get(last) == marked(77)));
    BrickPool moved = std::move(pool);
    REQUIRE((moved.get(last) == marked(77)));
  }
  REQUIRE(memory.blocks() == 0);
}
