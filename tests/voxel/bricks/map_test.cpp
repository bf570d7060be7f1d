// SPDX-License-Identifier: Apache-2.0
// map_test.cpp - BrickMap against std::map<Int3, uint8_t> of single voxels, under random histories that include sharing
// between copies.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "voxel/bricks/map.hpp"

namespace map_test {

using namespace quarry;

namespace {

using Model = std::map<Int3, uint8_t>;

void require_same(const BrickMap& map, const Model& model) {
  uint64_t voxels = 0;
  Box3 bounds;
  std::optional<Int3> previous;
  for (const auto& [at, brick] : map.bricks()) {
    if (previous) REQUIRE(*previous < at);
    previous = at;
    REQUIRE_FALSE(brick.empty());
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
      const bool in_mask = (brick.mask[i >> 6] >> (i & 63u) & 1u) != 0;
      if (in_mask != (brick.materials[i] != 0)) FAIL("mask and materials disagree");
      if (!brick.materials[i]) continue;
      ++voxels;
      const Int3 v = voxel_from_index(i) + Int3{at.x * 8, at.y * 8, at.z * 8};
      const auto found = model.find(v);
      if (found == model.end() || found->second != brick.materials[i])
        FAIL("voxel differs at " << v.x << ' ' << v.y << ' ' << v.z);
      bounds = united(bounds, {v, v});
    }
  }
  REQUIRE(voxels == model.size());
  REQUIRE(map.voxel_count() == model.size());
  REQUIRE(map.bounds() == bounds);
  REQUIRE(map.empty() == model.empty());
}

struct History {
  explicit History(uint32_t seed, int reach) : random(seed), coordinate(-reach, reach), material(0, 5), chance(0, 99) {}
  std::mt19937 random;
  std::uniform_int_distribution<int> coordinate, material, chance;
  Int3 voxel() { return {coordinate(random), coordinate(random), coordinate(random)}; }

  void step(BrickMap& map, Model& model) {
    const int what = chance(random);
    if (what < 90) {
      const Int3 v = voxel();
      const auto m = uint8_t(material(random));
      map.set(v, m);
      if (m) model[v] = m;
      else model.erase(v);
      return;
    }
    const Int3 at = brick_of(voxel());
    Brick brick;
    const int voxels = what < 94 ? 0 : 1 + chance(random);
    if (what == 99) brick = full_brick(uint8_t(1 + material(random)));
    for (int i = 0; i < voxels; ++i) brick.set(uint32_t(random() & 511u), uint8_t(1 + material(random)));
    map.put(at, brick);
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
      const Int3 v = voxel_from_index(i) + Int3{at.x * 8, at.y * 8, at.z * 8};
      if (brick.get(i)) model[v] = brick.get(i);
      else model.erase(v);
    }
  }
};

}  // namespace

TEST_CASE("brick_map: many bricks put at once leave what they leave one by one, and copies keep what they had") {
  std::mt19937 random(5);
  BrickMap together, one_by_one;
  for (const size_t count : {1u, 3000u, 10u, 700u, 5000u, 40u, 2000u, 2u}) {
    const BrickMap before = together, expected_before = one_by_one;
    std::map<Int3, SharedBrick> puts;
    while (puts.size() < count) {
      const Int3 at{int(random() % 30), int(random() % 20), int(random() % 20)};
      Brick brick;
      const uint32_t kind = random() % 4;
      if (kind == 1) brick = full_brick(uint8_t(1 + random() % 9));
      if (kind > 1) brick.set(uint32_t(random() % 512), uint8_t(1 + random() % 9));
      puts[at] = SharedBrick(brick);
    }
    std::vector<BrickPut> list;
    for (const auto& [at, brick] : puts) list.push_back({at, brick});
    together.put(list);
    for (const BrickPut& put : list) one_by_one.put(put.brick, *put.value);
    REQUIRE(together == one_by_one);
    REQUIRE(together.bricks().size() == one_by_one.bricks().size());
    REQUIRE(together.bounds() == one_by_one.bounds());
    REQUIRE(before == expected_before);
    std::optional<Int3> previous;
    for (const auto& [at, brick] : together.bricks()) {
      if (previous) REQUIRE(*previous < at);
      previous = at;
      REQUIRE(&together.find(at)->mask == &brick.mask);
    }
  }
}

TEST_CASE("brick_map: bricks full of one material are known as such, however they became full") {
  BrickMap map;
  for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) map.set(voxel_from_index(i), 3);
  CHECK(map.share({0, 0, 0}).material() == 3);
  CHECK(map.share({0, 0, 0}).size_bytes() == 0);
  const BrickMap copy = map;
  map.set({0, 0, 0}, 3);
  CHECK(map.share({0, 0, 0}).material() == 3);
  map.set({1, 2, 3}, 4);
  CHECK(map.share({0, 0, 0}).material() == 0);
  CHECK(map.get({1, 2, 3}) == 4);
  CHECK(map.voxel_count() == 512);
  map.set({1, 2, 3}, 3);
  CHECK(map == copy);
  CHECK(map.share({0, 0, 0}).same_as(copy.share({0, 0, 0})));
  map.put({5, 5, 5}, full_brick(200));
  CHECK(map.share({5, 5, 5}).same_as(SharedBrick::full(200)));
  CHECK_FALSE(map.share({6, 5, 5}));
  map.set({40, 40, 40}, 0);
  CHECK(map.share({5, 5, 5}).voxels() == 511);
  CHECK(copy.voxel_count() == 512);
}

TEST_CASE("brick_map: random sets and puts leave what a map of single voxels holds") {
  for (const int reach : {6, 40, 300}) {
    BrickMap map;
    Model model;
    History history(uint32_t(reach), reach);
    for (int n = 0; n < (test::kSanitized ? 5000 : 20000); ++n) history.step(map, model);
    require_same(map, model);
    for (int n = 0; n < 500; ++n) {
      const Int3 v = history.voxel();
      const auto found = model.find(v);
      REQUIRE(map.get(v) == (found == model.end() ? 0 : found->second));
    }
    // Remove everything step by step, so that leaves merge and disappear.
    std::vector<Int3> rest;
    for (const auto& [v, m] : model) rest.push_back(v);
    std::shuffle(rest.begin(), rest.end(), history.random);
    for (size_t i = 0; i < rest.size(); ++i) {
      map.set(rest[i], 0);
      model.erase(rest[i]);
      if (i % 4000 == 0) require_same(map, model);
    }
    REQUIRE(map.empty());
    require_same(map, model);
  }
}

TEST_CASE("brick_map: copies share bricks and never see each other's changes") {
  BrickMap map;
  Model model;
  History history(11, 100);
  for (int n = 0; n < 5000; ++n) history.step(map, model);
  std::vector<std::pair<BrickMap, Model>> snapshots;
  for (int round = 0; round < 6; ++round) {
    snapshots.emplace_back(map, model);
    const BrickMap& copy = snapshots.back().first;
    const Int3 first = copy.bricks().begin()->first;
    REQUIRE(copy.share(first).same_as(map.share(first)));
    for (int n = 0; n < 500; ++n) history.step(map, model);
    for (int n = 0; n < 100; ++n) history.step(snapshots.back().first, snapshots.back().second);
  }
  require_same(map, model);
  for (const auto& [snapshot, its_model] : snapshots) require_same(snapshot, its_model);
}

TEST_CASE("brick_map: a large map that ends gives back the bricks that nobody else has, and no others") {
  const BrickPool pool(host_memory_source()), other(host_memory_source());
  constexpr int32_t kSide = 56;  // so many bricks that all threads end them
  auto map = std::make_unique<BrickMap>(pool);
  uint32_t number = 0;
  for (int32_t x = 0; x < kSide; ++x)
    for (int32_t y = 0; y < kSide; ++y)
      for (int32_t z = 0; z < kSide; ++z) {
        Brick brick;
        brick.set(number++ % 512, 7);
        map->put({x, y, z}, z % 8 == 0 ? other.make(brick) : pool.make(brick));
      }
  const uint32_t own = uint32_t(kSide * kSide * (kSide - kSide / 8)), others = uint32_t(kSide * kSide * (kSide / 8));
  REQUIRE(pool.live() == own);
  REQUIRE(other.live() == others);
  const SharedBrick held = map->share({3, 4, 5});
  auto copy = std::make_unique<BrickMap>(*map);
  copy->put({0, 0, 1}, SharedBrick());  // its own leaf, and every brick of it but one
  map.reset();
  CHECK(pool.live() == own - 1);
  CHECK(copy->get({8 * 3, 8 * 4, 8 * 5}) == held->get(0));
  *copy = BrickMap();
  CHECK(copy->empty());
  CHECK(pool.live() == 1);
  CHECK(other.live() == 0);
  CHECK(held->count() == 1);
}

TEST_CASE("brick_map: a set right after a copy changes only the map it was called on") {
  BrickMap map;
  map.set({1, 2, 3}, 4);  // the next set() reuses this brick
  const BrickMap copy = map;
  map.set({1, 2, 3}, 9);
  REQUIRE(copy.get({1, 2, 3}) == 4);
  REQUIRE(map.get({1, 2, 3}) == 9);
  BrickMap moved = std::move(map);
  moved.set({1, 2, 3}, 5);
  REQUIRE(moved.get({1, 2, 3}) == 5);
  REQUIRE(moved.voxel_count() == 1);
}

TEST_CASE("brick_map: bricks are found by coordinate and by the first not less, in rising order") {
  BrickMap map;
  std::map<Int3, int> model;
  std::mt19937 random(5);
  for (int n = 0; n < 2000; ++n) {
    const Int3 at{int(random() % 40) - 20, int(random() % 40) - 20, int(random() % 40) - 20};
    Brick brick;
    brick.set(n % 512, 1);
    map.put(at, brick);
    model[at] = n % 512;
  }
  const auto bricks = map.bricks();
  REQUIRE(bricks.size() == model.size());
  auto expected = model.begin();
  for (auto it = bricks.begin(); it != bricks.end(); ++it, ++expected) REQUIRE(it->first == expected->first);
  auto backwards = bricks.end();
  for (auto it = model.rbegin(); it != model.rend(); ++it) REQUIRE((--backwards)->first == it->first);
  for (int n = 0; n < 2000; ++n) {
    const Int3 at{int(random() % 44) - 22, int(random() % 44) - 22, int(random() % 44) - 22};
    REQUIRE(map.find(at).has_value() == (model.count(at) == 1));
    REQUIRE((bricks.find(at) == bricks.end()) == (model.count(at) == 0));
    const auto mine = bricks.lower_bound(at);
    const auto theirs = model.lower_bound(at);
    REQUIRE((mine == bricks.end()) == (theirs == model.end()));
    if (theirs != model.end()) REQUIRE(mine->first == theirs->first);
  }
}

TEST_CASE("brick_map: far coordinates work, and equal contents compare equal whatever the history") {
  BrickMap a, b;
  const std::vector<Int3> voxels = {
      {2147483647, -2147483647 - 1, 0}, {-2147483647 - 1, 2147483647, 5}, {0, 0, 0}, {8, 0, 0}, {-1, -1, -1}};
  for (const Int3 v : voxels) a.set(v, 3);
  for (auto it = voxels.rbegin(); it != voxels.rend(); ++it) {
    b.set(*it, 200);
    b.set(*it, 3);
  }
  for (const Int3 v : voxels) REQUIRE(a.get(v) == 3);
  REQUIRE(a == b);
  b.set({0, 0, 0}, 4);
  REQUIRE_FALSE(a == b);
  REQUIRE(a.bounds() == Box3{{-2147483647 - 1, -2147483647 - 1, -1}, {2147483647, 2147483647, 5}});
}

TEST_CASE("brick_map: copies may be written by different threads at once while a third is read") {
  BrickMap map;
  Model model;
  History history(21, 60);
  for (int n = 0; n < 5000; ++n) history.step(map, model);
  std::vector<BrickMap> copies(3, map);
  std::atomic<uint64_t> read{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int n = 0; n < 2000; ++n) copies[size_t(t)].set({n % 50, (n * 7) % 50, t}, uint8_t(1 + t));
      });
    }
    threads.emplace_back([&] { read += map.voxel_count(); });
  }
  REQUIRE(read == model.size());
  require_same(map, model);
  for (size_t t = 0; t < 3; ++t) {
    Model expected = model;
    for (int n = 0; n < 2000; ++n) expected[{n % 50, (n * 7) % 50, int(t)}] = uint8_t(1 + t);
    require_same(copies[t], expected);
  }
}

TEST_CASE("brick_map: maps of rising parts are joined into one of its own, and parts out of order are refused") {
  BrickMap whole, joined;
  std::vector<BrickMap> parts(5);
  for (int32_t x = 0; x < 5 * 300; ++x) {
    whole.set({x * 8, x % 7, -x}, uint8_t(1 + x % 255));
    parts[size_t(x / 300)].set({x * 8, x % 7, -x}, uint8_t(1 + x % 255));
  }
  const BrickMap kept = parts[1];
  REQUIRE(joined.append(BrickMap()));
  for (BrickMap& part : parts) {
    const bool appended = joined.append(std::move(part));
    REQUIRE(appended);
    REQUIRE(part.empty());  // NOLINT(bugprone-use-after-move): what this tests
  }
  REQUIRE(joined == whole);
  REQUIRE(joined.bricks().size() == 1500);
  for (int32_t x = 0; x < 5 * 300; x += 3) joined.set({x * 8, x % 7, -x}, 0);
  for (int32_t x = 0; x < 5 * 300; x += 3) whole.set({x * 8, x % 7, -x}, 0);
  REQUIRE(joined == whole);
  REQUIRE(kept.get({300 * 8, 300 % 7, -300}) == uint8_t(1 + 300 % 255));  // the copy that shared bricks is unchanged
  BrickMap early;
  early.set({0, 0, 0}, 1);
  const bool too_early = joined.append(std::move(early));
  REQUIRE_FALSE(too_early);
  REQUIRE(early.get({0, 0, 0}) == 1);  // NOLINT(bugprone-use-after-move): what this tests
  BrickMap same = kept;
  REQUIRE_FALSE(same.append(BrickMap(kept)));
}

TEST_CASE("brick_map: the bricks in a box are those that a look at all of them finds, in their order") {
  std::mt19937 random(12);
  const auto pick = [&] { return int(random() % 21) - 10; };
  for (int round = 0; round < 200; ++round) {
    BrickMap map;
    for (int n = int(random() % 900); n > 0; --n)
      map.put({pick(), pick(), pick()}, SharedBrick::full(uint8_t(1 + n % 9)));
    const Int3 low{pick(), pick(), pick()};
    const Box3 box{low, low + Int3{pick(), pick(), pick()}};  // some are empty
    std::vector<Int3> expected;
    for (const auto& [at, brick] : map.bricks())
      if (at.x >= box.min.x && at.x <= box.max.x && at.y >= box.min.y && at.y <= box.max.y && at.z >= box.min.z &&
          at.z <= box.max.z)
        expected.push_back(at);
    const std::vector<BrickPut> found = map.within(box);
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      REQUIRE(found[i].brick == expected[i]);
      REQUIRE(found[i].value == map.share(expected[i]));
    }
  }
}

}  // namespace map_test
