// SPDX-License-Identifier: Apache-2.0
// history_test.cpp - random histories against std::unordered_map, on every executor: table and map must agree on each
// key.
#include <algorithm>
#include <random>
#include <unordered_map>

#include "tests/app/sanitized.hpp"
#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::history_test {
namespace {

using Map = std::unordered_map<uint32_t, uint32_t>;

// A batch without duplicates, from a small universe, so that keys recur often.
std::vector<uint32_t> batch_of(std::mt19937& random, const std::vector<uint32_t>& universe, size_t most) {
  std::vector<uint32_t> keys(universe);
  std::shuffle(keys.begin(), keys.end(), random);
  keys.resize(1 + random() % std::min(most, keys.size()));
  return keys;
}

void require_same(Grid& grid, Executor& executor, const std::vector<uint32_t>& universe, const Map& map) {
  REQUIRE(grid.size() == map.size());
  const Array<uint32_t> keys(executor, universe), values(executor, universe.size());
  const auto report = grid.find(keys.span(), values.span());
  REQUIRE(report.has_value());
  REQUIRE(report->present == map.size());
  const std::vector<uint32_t> found = values.get();
  size_t wrong = 0;
  for (size_t i = 0; i < universe.size(); ++i) {
    const auto at = map.find(universe[i]);
    wrong += found[i] != (at == map.end() ? kQryReservedValue : at->second);
  }
  REQUIRE(wrong == 0);
}

template <class View>
void run_history(const On<View>& executor, uint32_t seed, size_t universe_size, int steps) {
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::vector<uint32_t> universe = some_keys(seed + 1000, universe_size);
  universe[0] = 0;  // a key like any other
  universe[1] = 0xFFFFFFFEu;
  Map map;
  auto made =
      executor.create_grid({.capacity = random() % 3000, .max_load_factor = 0.5 + 0.4 * double(random() % 100) / 100});
  REQUIRE(made.has_value());
  Grid grid = std::move(*made);
  for (int step = 0; step < steps; ++step) {
    const std::vector<uint32_t> keys = batch_of(random, universe, universe_size / 3);
    const std::vector<uint32_t> given = values_of(keys, uint32_t(step));
    const Array<uint32_t> k(executor, keys), v(executor, given);
    size_t fresh = 0;
    for (const uint32_t key : keys) fresh += !map.contains(key);
    const uint64_t version = grid.version();
    switch (random() % 8) {
      case 0:
      case 1: {
        const auto report = grid.insert(k.span(), v.span());
        REQUIRE(report.has_value());
        REQUIRE(report->inserted == fresh);
        REQUIRE(report->present == keys.size() - fresh);
        for (size_t i = 0; i < keys.size(); ++i) map.emplace(keys[i], given[i]);
        break;
      }
      case 2: {
        const auto report = grid.assign(k.span(), v.span());
        REQUIRE(report.has_value());
        REQUIRE(report->inserted == fresh);
        REQUIRE(report->assigned == keys.size() - fresh);
        for (size_t i = 0; i < keys.size(); ++i) map[keys[i]] = given[i];
        break;
      }
      case 3: {
        const auto report = grid.find_or_insert(k.span(), v.span());
        REQUIRE(report.has_value());
        REQUIRE(report->inserted == fresh);
        const std::vector<uint32_t> got = v.get();
        for (size_t i = 0; i < keys.size(); ++i) REQUIRE(got[i] == map.emplace(keys[i], given[i]).first->second);
        break;
      }
      case 4:
      case 5: {
        const auto report = grid.erase(k.span());
        REQUIRE(report.has_value());
        REQUIRE(report->erased == keys.size() - fresh);
        REQUIRE(report->absent == fresh);
        for (const uint32_t key : keys) map.erase(key);
        break;
      }
      case 6: REQUIRE(grid.sweep().has_value()); break;
      default:
        if (random() % 4 == 0) {
          REQUIRE(grid.clear().has_value());
          map.clear();
        } else {
          REQUIRE(grid.reserve(map.size() + random() % 4000).has_value());
        }
    }
    REQUIRE(grid.version() >= version);
    if (step % 4 == 3 || step == steps - 1) require_same(grid, executor, universe, map);
  }
  Map listed;
  const auto pairs = grid.enumerate(true);
  REQUIRE(pairs.has_value());
  REQUIRE(std::is_sorted(pairs->keys.begin(), pairs->keys.end()));
  for (size_t i = 0; i < pairs->keys.size(); ++i) listed.emplace(pairs->keys[i], pairs->values[i]);
  REQUIRE(listed == map);
  REQUIRE(fault_in(executor, grid) == "");
}

TEST_CASE("history: random ones give what std::unordered_map gives, with growth, erase, sweep and clear", "[quick]") {
  on_each_layout([](const auto& executor) {
    for (uint32_t seed = 0; seed < (quarry::test::kThreadSanitized ? 4 : 12); ++seed)
      run_history(executor, seed, 3000 + 700 * seed, 40);
  });
}

TEST_CASE("history: a long one over many pages gives what std::unordered_map gives", "[one-caller]") {
  on_each_layout([](const auto& executor) { run_history(executor, 4711, 60000, 60); });
}

TEST_CASE("history: the same batches leave the same pairs on every executor and in every layout") {
  std::vector<Grid::Pairs> results;
  on_each_layout([&](const auto& executor) {
    auto grid = executor.create_grid({.capacity = 1000});
    REQUIRE(grid.has_value());
    std::mt19937 random(99);
    const std::vector<uint32_t> universe = some_keys(5, 20000);
    for (int step = 0; step < 12; ++step) {
      const std::vector<uint32_t> keys = batch_of(random, universe, 9000);
      const Array<uint32_t> k(executor, keys), v(executor, values_of(keys, uint32_t(step)));
      if (step % 3 == 2) REQUIRE(grid->erase(k.span()).has_value());
      else REQUIRE(grid->assign(k.span(), v.span()).has_value());
    }
    auto pairs = grid->enumerate(true);
    REQUIRE(pairs.has_value());
    results.push_back(std::move(*pairs));
  });
  for (const Grid::Pairs& pairs : results) {
    REQUIRE(pairs.keys == results[0].keys);
    REQUIRE(pairs.values == results[0].values);
  }
  REQUIRE(results[0].keys.size() > 1000);
}

}  // namespace
}  // namespace quarry::hashgrid::test::history_test
