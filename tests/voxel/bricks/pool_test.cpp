// SPDX-License-Identifier: Apache-2.0
// pool_test.cpp - the promises of bricks/pool.hpp, and of the slabs below it.
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "tests/voxel/limited_memory.hpp"
#include "tests/voxel/published_memory.hpp"
#include "voxel/bricks/pool.hpp"

namespace pool_test {

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

TEST_CASE("brick_pool: freed indices come back lowest first") {
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
    for (const auto& indices : {*first, *more})
      for (const uint32_t index : indices) moved.free(index);
  }
  REQUIRE(memory.blocks() == 0);
}

TEST_CASE(
    "brick_pool: trim gives back what lies behind the last index, keeps every brick and index, and growth goes "
    "on with the next slab") {
  test::LimitedMemory memory;
  {
    BrickPool pool(memory);
    constexpr uint32_t kBricks = kBricksPerSlab + 700;
    REQUIRE(pool.allocate(kBricks));
    for (uint32_t i = 0; i < kBricks; ++i) pool.put(i, marked(i));
    REQUIRE(pool.size_bytes() > uint64_t(kBricks) * 576);
    pool.trim();
    CHECK(pool.size_bytes() == uint64_t(kBricks) * 576);
    CHECK(memory.held_bytes <= pool.size_bytes() + 4 * 4096);
    for (uint32_t i = 0; i < kBricks; ++i)
      if (!(pool.get(i) == marked(i))) FAIL("brick " << i);
    const BrickMask* const mask = &pool.mask(kBricks - 1);
    pool.free(3);
    const auto three = pool.allocate(3);
    REQUIRE(three);
    CHECK(*three == std::vector<uint32_t>{3, 2 * kBricksPerSlab, 2 * kBricksPerSlab + 1});
    CHECK(&pool.mask(kBricks - 1) == mask);  // growth moved nothing
    CHECK(pool.live() == kBricks + 2);
    pool.trim();
    CHECK(pool.size_bytes() == uint64_t(kBricks + 2) * 576);
    BrickPool empty(memory);
    empty.trim();
    CHECK(empty.size_bytes() == 0);
    for (uint32_t i = 0; i < kBricks; ++i) pool.free(i);
    pool.free(2 * kBricksPerSlab);
    pool.free(2 * kBricksPerSlab + 1);
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE(
    "brick_pool: allocating, freeing and cutting, with memory refused now and then, keeps every brick where "
    "its index says") {
  test::LimitedMemory memory;
  {
    BrickPool pool(memory);
    std::mt19937 random(11);
    std::set<uint32_t> live;
    uint32_t refusals = 0;
    for (int n = 0; n < 400; ++n) {
      memory.refuse_after = random() % 2 ? size_t(-1) : random() % 2;
      const uint32_t what = uint32_t(random() % 10);
      if (what == 0) {
        pool.trim();
      } else if (what == 1) {
        for (auto it = live.begin(); it != live.end();) {
          if (random() % 16) {
            ++it;
            continue;
          }
          pool.free(*it);
          it = live.erase(it);
        }
      } else {
        const auto many = pool.allocate(random() % (n % 7 ? 300 : 9000));
        refusals += !many;
        if (many)
          for (const uint32_t index : *many) {
            if (!live.insert(index).second) FAIL("index " << index << " given out twice");
            pool.put(index, marked(index));
          }
      }
      if (pool.live() != live.size()) FAIL("after step " << n);
      if (n % 20 == 0)
        for (const uint32_t index : live)
          if (!(pool.get(index) == marked(index))) FAIL("brick " << index << " after step " << n);
    }
    CHECK(refusals > 5);
    CHECK(live.size() > 10000);
    for (const uint32_t index : live) pool.free(index);
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE("brick_pool: memory for the bricks that a writer expects comes at once, or as it makes them") {
  test::LimitedMemory memory;
  {
    const BrickPool pool(memory);
    BrickWriter writer(pool, 1, 3 * kBricksPerSlab);
    const SharedBrick first = writer.make(marked(1));
    CHECK(memory.blocks() == 2);  // masks and materials
    CHECK(pool.mask_slabs().capacity() == 3 * kBricksPerSlab);
    const BrickPool small(memory, 10);
    BrickWriter hopeful(small, 1, 3 * kBricksPerSlab);
    const SharedBrick second = hopeful.make(marked(2));
    CHECK(small.index_of(second) == 0);
    CHECK(small.mask_slabs().capacity() < kBricksPerSlab);
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE(
    "brick_pool: writers that expect more or fewer bricks than they make leave no place taken, beside each other") {
  const BrickPool pool(host_memory_source());
  for (const size_t expected : {size_t(0), size_t(1), size_t(700), size_t(5000)}) {
    constexpr uint32_t kThreads = 4, kMade = 3000;
    std::vector<std::vector<SharedBrick>> made(kThreads);
    {
      std::vector<std::jthread> threads;
      for (uint32_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
          BrickWriter writer(pool, expected);
          for (uint32_t i = 0; i < kMade; ++i) made[t].push_back(writer.make(marked(t * kMade + i + 1)));
        });
    }
    CHECK(pool.live() == kThreads * kMade);
    std::set<uint32_t> places;
    uint32_t wrong = 0;
    for (uint32_t t = 0; t < kThreads; ++t)
      for (uint32_t i = 0; i < kMade; ++i) {
        places.insert(pool.index_of(made[t][i]));
        wrong += !(*made[t][i] == BrickView(marked(t * kMade + i + 1)));
      }
    CHECK(places.size() == kThreads * kMade);
    CHECK(wrong == 0);
    made.clear();
    CHECK(pool.live() == 0);
  }
}

TEST_CASE("brick_pool: a brick that frames may still read is not written again before they are done") {
  test::PublishedMemory memory;
  {
    BrickPool pool(memory);
    std::mt19937 random(5);
    std::map<uint32_t, uint32_t> shown;  // index -> mark
    uint32_t next_mark = 0;
    std::vector<std::pair<uint64_t, std::map<uint32_t, uint32_t>>> snapshots;
    uint32_t highest = 0;
    for (int round = 0; round < 400; ++round) {
      std::vector<uint32_t> gone;
      for (const auto& [index, mark] : shown)
        if (random() % 5 == 0) gone.push_back(index);
      for (const uint32_t index : gone) pool.free(index), shown.erase(index);
      const auto places = pool.allocate(random() % 100);
      REQUIRE(places);
      for (const uint32_t index : *places) {
        if (!shown.emplace(index, ++next_mark).second) FAIL("index " << index << " given out twice");
        pool.put(index, marked(next_mark));
      }
      BrickWriter writer(pool);  // it gives back what it does not need, which no frame has seen
      const SharedBrick brief = writer.make(marked(1));
      REQUIRE(pool.live() >= shown.size() + 1);
      snapshots.emplace_back(memory.publish(), shown);
      const bool frames_end = round < 100 || round > 130;
      while (frames_end && snapshots.size() > 1 + random() % 3) {
        memory.end(snapshots.front().first);
        snapshots.erase(snapshots.begin());
      }
      for (const auto& [number, bricks] : snapshots)
        for (const auto& [index, mark] : bricks)
          if (!(pool.get(index) == marked(mark))) FAIL("snapshot " << number << ", brick " << index);
      if (round % 16 == 0) pool.trim();
      uint32_t visited = 0;
      pool.for_each_brick([&](uint32_t index) { visited += shown.count(index) ? 1 : 0; });
      REQUIRE(visited == shown.size());
      if (round == 90) highest = pool.high_water();
    }
    CHECK(pool.high_water() < 4 * highest);
    for (const auto& [index, mark] : shown) pool.free(index);
    memory.end(UINT64_MAX);
    pool.trim();
    CHECK(pool.live() == 0);
    CHECK(pool.high_water() == 0);
  }
  CHECK(memory.memory.blocks() == 0);
}

TEST_CASE(
    "brick_pool: gathering moves bricks from behind to free places and gives their memory back; what others have "
    "stays") {
  test::LimitedMemory memory;
  {
    BrickPool pool(memory);
    std::mt19937 random(3);
    constexpr uint32_t kBricks = 3 * kBricksPerSlab;
    std::vector<SharedBrick> own, others;
    for (uint32_t i = 0; i < kBricks; ++i) own.push_back(pool.make(marked(i + 1)));
    others.push_back(own[kBricks - 700]);
    // A third stays, some with several handles.
    std::vector<uint32_t> marks;
    std::vector<SharedBrick> kept;
    for (uint32_t i = 0; i < kBricks; ++i) {
      if (random() % 3 && i != kBricks - 700) continue;
      for (uint32_t k = 0; k <= i % 3; ++k) kept.push_back(own[i]), marks.push_back(i + 1);
    }
    own.clear();
    const uint32_t live = pool.live();
    const auto check = [&] {
      for (size_t k = 0; k < kept.size(); ++k)
        if (!(*kept[k] == BrickView(marked(marks[k])))) FAIL("brick " << marks[k]);
      if (!others.empty()) CHECK((*others[0] == BrickView(marked(kBricks - 699))));
      CHECK(pool.live() == live);
    };
    const auto gather = [&](bool end) {
      BrickGather move(pool);
      for (const SharedBrick& brick : kept) move.add(brick);
      const size_t moved = move.take();
      if (!end) return moved;
      std::vector<uint32_t> to;
      for (const SharedBrick& brick : kept) to.push_back(move.place(pool.index_of(brick)));
      move.copy();
      for (SharedBrick& brick : kept) move.exchange(brick);
      move.end();
      for (size_t k = 0; k < kept.size(); ++k)
        if (pool.index_of(kept[k]) != to[k]) FAIL("brick " << marks[k] << " is elsewhere");
      return moved;
    };
    const uint32_t high_water = pool.high_water();
    const size_t held = memory.held_bytes;
    CHECK(gather(false) > 1000);  // not gone through with: nothing has moved, no place is taken
    check();
    CHECK(pool.high_water() == high_water);
    memory.refuse_after = 0;  // it asks for none
    CHECK(gather(true) > 1000);
    check();
    CHECK(pool.high_water() == pool.index_of(others[0]) + 1);  // it stays
    CHECK(gather(true) == 0);
    others.clear();
    CHECK(gather(true) == 1);
    memory.refuse_after = size_t(-1);
    check();
    CHECK(pool.size_bytes() == uint64_t(live) * sizeof(Brick));
    CHECK(memory.held_bytes < held / 2);
    const auto more = pool.allocate();
    REQUIRE(more);
    pool.free(*more);
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE("brick_pool: gathering leaves what frames may read until they are done, and writes over none of it") {
  test::PublishedMemory memory;
  {
    BrickPool pool(memory);
    std::mt19937 random(13);
    std::map<uint32_t, uint32_t> shown;  // index -> mark
    uint32_t next_mark = 0;
    struct Frame {
      uint64_t snapshot;
      std::vector<std::pair<const BrickMask*, Brick>> bricks;  // where shaders find them
    };
    std::vector<Frame> frames;
    size_t moved = 0;
    for (int round = 0; round < 200; ++round) {
      const auto places = pool.allocate(random() % 3000);
      REQUIRE(places);
      for (const uint32_t index : *places) {
        if (!shown.emplace(index, ++next_mark).second) FAIL("index " << index << " given out twice");
        pool.put(index, marked(next_mark));
      }
      for (auto it = shown.begin(); it != shown.end();) {
        if (random() % 3) {
          ++it;
          continue;
        }
        pool.free(it->first);
        it = shown.erase(it);
      }
      if (round % 3 == 0) {
        BrickGather gather(pool);
        for (const auto& [index, mark] : shown) gather.add(index);
        moved += gather.take();
        gather.copy();
        std::map<uint32_t, uint32_t> after;
        for (const auto& [index, mark] : shown) after[gather.place(index)] = mark;
        gather.end();
        REQUIRE(after.size() == shown.size());
        shown = std::move(after);
      }
      Frame frame{0, {}};
      for (const auto& [index, mark] : shown) frame.bricks.emplace_back(&pool.mask(index), marked(mark));
      frame.snapshot = memory.publish();
      frames.push_back(std::move(frame));
      while (frames.size() > 1 + random() % 3) {
        memory.end(frames.front().snapshot);
        frames.erase(frames.begin());
      }
      for (const Frame& its : frames)
        for (const auto& [mask, brick] : its.bricks)
          if (*mask != brick.mask) FAIL("frame " << its.snapshot << " in round " << round);
      for (const auto& [index, mark] : shown)
        if (!(pool.get(index) == marked(mark))) FAIL("brick " << index << " in round " << round);
      REQUIRE(pool.live() == shown.size());
    }
    CHECK(moved > 10000);
    for (const auto& [index, mark] : shown) pool.free(index);
    memory.end(UINT64_MAX);
    pool.trim();
    CHECK(pool.high_water() == 0);
  }
  CHECK(memory.memory.blocks() == 0);
}

}  // namespace pool_test
