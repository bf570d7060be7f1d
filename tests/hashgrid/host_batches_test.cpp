// SPDX-License-Identifier: Apache-2.0
// host_batches_test.cpp - batches with exclusive use of the grid, on host threads: the same bytes as from a single
// thread. And bulk look-ups against single-key ones.
#include <algorithm>
#include <random>
#include <unordered_map>

#include "hashgrid/pairs/view.hpp"
#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::host_batches_test {
namespace {

using Keys = std::vector<uint32_t>;
using Map = std::unordered_map<uint32_t, uint32_t>;

// Keys of a universe, most of them once, some several times, close together and far apart.
Keys batch_with_copies(std::mt19937& random, const Keys& universe, size_t count) {
  Keys keys;
  while (keys.size() < count) {
    keys.push_back(universe[random() % universe.size()]);
    if (random() % 8 == 0) keys.push_back(keys[keys.size() - 1 - random() % std::min<size_t>(keys.size(), 200)]);
  }
  return keys;
}

// A random history, checked step by step against a map that takes the keys one after the other. Returns the table's
// bytes at its end.
std::vector<uint64_t> bytes_after_history(uint32_t threads, uint32_t seed, Locality locality) {
  const auto executor = make_host_executor(threads);
  std::mt19937 random(seed);
  const Keys universe = some_keys(seed, 30000);
  auto grid = Grid::create(*executor, {.capacity = 12000, .max_load_factor = 0.93, .locality = locality});
  REQUIRE(grid.has_value());
  Map map;
  for (uint32_t step = 0; step < 24; ++step) {
    const Keys keys = batch_with_copies(random, universe, std::array<size_t, 4>{3, 700, 5000, 20000}[random() % 4]);
    Keys values(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) values[i] = value_of(keys[i], uint32_t(random()));
    BulkReport expected;
    switch (random() % 4) {
      case 0: {
        for (size_t i = 0; i < keys.size(); ++i)
          ++(map.emplace(keys[i], values[i]).second ? expected.inserted : expected.present);
        const auto report = grid->insert(keys, values);
        REQUIRE(report.has_value());
        REQUIRE(report->inserted == expected.inserted);
        REQUIRE(report->present == expected.present);
        break;
      }
      case 1: {
        for (size_t i = 0; i < keys.size(); ++i)
          ++(map.insert_or_assign(keys[i], values[i]).second ? expected.inserted : expected.assigned);
        const auto report = grid->assign(keys, values);
        REQUIRE(report.has_value());
        REQUIRE(report->inserted == expected.inserted);
        REQUIRE(report->assigned == expected.assigned);
        break;
      }
      case 2: {
        Keys held = values, wanted(keys.size());
        for (size_t i = 0; i < keys.size(); ++i) {
          const auto [at, fresh] = map.emplace(keys[i], values[i]);
          ++(fresh ? expected.inserted : expected.present);
          wanted[i] = at->second;
        }
        const auto report = grid->find_or_insert(keys, held);
        REQUIRE(report.has_value());
        REQUIRE(report->inserted == expected.inserted);
        REQUIRE(report->present == expected.present);
        REQUIRE(held == wanted);
        break;
      }
      default: {
        for (const uint32_t key : keys) ++(map.erase(key) != 0 ? expected.erased : expected.absent);
        const auto report = grid->erase(keys);
        REQUIRE(report.has_value());
        REQUIRE(report->erased == expected.erased);
        REQUIRE(report->absent == expected.absent);
      }
    }
    REQUIRE(grid->size() == map.size());
  }
  Keys found(universe.size());
  REQUIRE(grid->find(universe, found).has_value());
  size_t wrong = 0;
  for (size_t i = 0; i < universe.size(); ++i) {
    const auto at = map.find(universe[i]);
    wrong += found[i] != (at == map.end() ? kQryReservedValue : at->second);
  }
  CHECK(wrong == 0);
  CHECK(fault_in(*executor, *grid) == "");
  return words_of(*executor, grid->view());
}

TEST_CASE("host batches: copies give what one key after the other gives, the same bytes for any number of threads",
          "[quick]") {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    const Locality locality = seed % 2 == 0 ? Locality::rows : Locality::plain;
    const std::vector<uint64_t> alone = bytes_after_history(1, seed, locality);
    for (const uint32_t threads : {2u, 3u, 8u}) {
      INFO(threads << " threads");
      const bool same = bytes_after_history(threads, seed, locality) == alone;  // too much to print
      CHECK(same);
    }
  }
}

TEST_CASE("host batches: reserved keys and values are refused, by number, and all others are in", "[quick]") {
  for (const uint32_t threads : {1u, 2u}) {
    const auto executor = make_host_executor(threads);
    auto grid = Grid::create(*executor, {.capacity = 20000});
    REQUIRE(grid.has_value());
    Keys keys = some_keys(3, 9000), values = values_of(keys);
    REQUIRE(grid->insert(std::span(keys).first(4000), std::span(values).first(4000)).has_value());
    const std::vector<uint64_t> bad{0, 63, 64, 4095, 5000, 8999};
    for (size_t n = 0; n < bad.size(); ++n) (n % 2 == 0 ? keys : values)[bad[n]] = 0xFFFFFFFFu;
    std::vector<uint64_t> refused;
    CHECK_FALSE(grid->assign(keys, values, &refused).has_value());
    CHECK(refused == bad);
    Keys held = values;
    CHECK_FALSE(grid->find_or_insert(keys, held, &refused).has_value());
    CHECK(refused == bad);
    CHECK(held == values);
    // 4000 keys were present; of the other 5000 five are refused here, one of which has a valid key.
    CHECK(grid->size() == 4000 + 5000 - 3);
    const auto erased = grid->erase(keys);
    REQUIRE(erased.has_value());
    CHECK(erased->reserved == 3);
    CHECK(fault_in(*executor, *grid) == "");
  }
}

TEST_CASE("host batches: bulk look-ups answer as look-ups of one key do, with as many sectors read", "[quick]") {
  for (const Locality locality : {Locality::plain, Locality::rows}) {
    const auto executor = make_host_executor(2);
    auto grid =
        Grid::create(*executor, {.capacity = 7600, .max_load_factor = 0.95, .locality = locality, .may_grow = false});
    REQUIRE(grid.has_value());
    const Keys keys = some_keys(11, 7950);  // the buckets of two pages have 7936 slots
    (void)grid->insert(keys, values_of(keys));
    REQUIRE(grid->erase(std::span(keys).first(500)).has_value());
    const GridView view = grid->view();
    std::mt19937 random(5);
    Keys asked = some_keys(12, 6000);
    asked.insert(asked.end(), keys.begin(), keys.end());
    std::shuffle(asked.begin(), asked.end(), random);
    for (size_t i = 0; i < asked.size(); i += 71) asked[i] = kQryReservedKey;
    size_t deep = 0;
    for (const size_t count : {size_t{1}, size_t{2}, size_t{63}, size_t{64}, size_t{65}, size_t{127}, size_t{128},
                               size_t{129}, size_t{4096}, asked.size()}) {
      Keys values(count);
      std::vector<uint8_t> depths(count);
      const auto report = executor->pairs().find(view, asked.data(), count, values.data(), depths.data());
      REQUIRE(report.has_value());
      size_t wrong = 0, present = 0, reserved = 0;
      for (size_t i = 0; i < count; ++i) {
        const Found one = find(view, asked[i]);
        wrong += values[i] != one.value || depths[i] != one.sectors;
        present += one.hit;
        reserved += asked[i] == kQryReservedKey;
        deep += one.hit && one.sectors > 2;
      }
      CHECK(wrong == 0);
      CHECK(report->present == present);
      CHECK(report->reserved == reserved);
      CHECK(report->absent == count - present - reserved);
    }
    CHECK(deep > 0);  // the stash was searched too
  }
}

TEST_CASE("host batches: a page whose keys are all gone begins anew, unless the stash still has keys of it",
          "[quick]") {
  const auto executor = make_host_executor(2);
  auto grid = Grid::create(*executor, {.capacity = 1, .max_load_factor = 1.0, .may_grow = true});
  REQUIRE(grid.has_value());
  REQUIRE(grid->page_count() == 1);
  // More than the page's 3968 bucket slots, so that some are in the stash.
  const Keys keys = some_keys(21, 4000), values = values_of(keys);
  REQUIRE(grid->insert(keys, values).has_value());
  REQUIRE(grid->page_count() == 1);
  std::vector<uint8_t> depths(keys.size());
  REQUIRE(executor->pairs().find(grid->view(), keys.data(), keys.size(), nullptr, depths.data()).has_value());
  Keys in_buckets, in_stash;
  for (size_t i = 0; i < keys.size(); ++i) (depths[i] <= 2 ? in_buckets : in_stash).push_back(keys[i]);
  REQUIRE(in_stash.size() >= 32);
  REQUIRE(grid->erase(in_buckets).has_value());

  const Keys fresh = some_keys(22, 400);
  REQUIRE(grid->insert(fresh, values_of(fresh)).has_value());
  Keys found(in_stash.size());
  REQUIRE(grid->find(in_stash, found).has_value());
  CHECK(found == values_of(in_stash));
  CHECK(fault_in(*executor, *grid) == "");
  CHECK(grid->stats()->spilled_buckets > 500);  // marks of erased keys

  REQUIRE(grid->erase(in_stash).has_value());
  REQUIRE(grid->erase(fresh).has_value());
  CHECK(grid->size() == 0);
  REQUIRE(grid->insert(fresh, values_of(fresh)).has_value());
  found.resize(fresh.size());
  REQUIRE(grid->find(fresh, found).has_value());
  CHECK(found == values_of(fresh));
  CHECK(grid->stats()->spilled_buckets == recount(words_of(*executor, grid->view()), grid->view()).passed);
  CHECK(grid->stats()->spilled_buckets < 50);
}

}  // namespace
}  // namespace quarry::hashgrid::test::host_batches_test
