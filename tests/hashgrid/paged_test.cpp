// SPDX-License-Identifier: Apache-2.0
// paged_test.cpp - paged grids against std::unordered_map on every executor: whatever the budget, lanes and places, a
// call answers as one table would; and what travels is counted. paged_failure_test.cpp has what is done when something
// fails.
#include "hashgrid/paged_grid.hpp"

#include <algorithm>
#include <random>
#include <unordered_map>

#include "hashgrid/paged/arena.hpp"
#include "hashgrid/paged/split.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/hashgrid/backends.hpp"
#if defined(QRY_HAVE_CUDA)
#include "tests/hashgrid/cuda/own_kernels.hpp"
#endif

namespace quarry::hashgrid::test::paged_test {
namespace {

using Map = std::unordered_map<uint64_t, uint32_t>;
using Keys = std::vector<uint64_t>;
using Words = std::vector<uint32_t>;

constexpr uint64_t kStaged = 512;
// A budget for so many pages of children, with the staging of so many lanes.
PagedOptions options_for(uint32_t pages, uint32_t lanes, uint32_t host_keys_per_page = 0) {
  PagedOptions options;
  options.lanes = lanes;
  options.staged_pairs = kStaged;
  options.budget_bytes = lanes * kStaged * 16 + uint64_t{pages} * kQryPageBytes;
  options.host_keys_per_page = host_keys_per_page;
  options.locality = test_locality();
  return options;
}
PagedGrid make_grid(Executor& executor, const PagedOptions& options) {
  auto grid = PagedGrid::create(executor, options);
  if (!grid) FAIL(grid.error().message);
  return std::move(*grid);
}

Words values_for(const Keys& keys, uint32_t tag) {
  Words values;
  for (const uint64_t key : keys) values.push_back(uint32_t((key * 0x9E3779B97F4A7C15u + tag) >> 33));
  return values;
}
Keys some_paged_keys(std::mt19937_64& random, const Words& regions, size_t count) {
  Map seen;
  Keys keys;
  while (keys.size() < count) {
    const uint64_t key = paged_key(regions[random() % regions.size()], uint32_t(random() % 0xFFFFFFFFu));
    if (seen.emplace(key, 0).second) keys.push_back(key);
  }
  return keys;
}

void put(Map& map, const Keys& keys, const Words& values) {
  for (size_t i = 0; i < keys.size(); ++i) map[keys[i]] = values[i];
}
void require_same(PagedGrid& grid, const Keys& asked, const Map& map) {
  REQUIRE(grid.size() == map.size());
  Words found(asked.size(), 7);
  const auto report = grid.find(asked, found);
  if (!report) FAIL(report.error().message);
  uint64_t wrong = 0, present = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto at = map.find(asked[i]);
    present += at != map.end();
    wrong += found[i] != (at == map.end() ? kQryReservedValue : at->second);
  }
  REQUIRE(wrong == 0);
  REQUIRE(report->present == present);
  REQUIRE(report->absent == asked.size() - present);
}

// The view's answers, by host threads or a kernel.
std::vector<PagedFound> through_view(Executor& executor, const PagedView& view, const Keys& keys) {
#if defined(QRY_HAVE_CUDA)
  if (executor.kind() == ExecutorKind::cuda) return find_paged(executor, view, keys);
#endif
  (void)executor;
  std::vector<PagedFound> found;
  for (const uint64_t key : keys) found.push_back(find(view, uint32_t(key >> 32), uint32_t(key)));
  return found;
}

void run_history(Executor& executor, const PagedOptions& options, uint32_t seed, size_t universe_size, int steps) {
  INFO("seed " << seed << ", " << options.budget_bytes << " bytes, " << options.lanes << " lanes");
  std::mt19937_64 random(seed);
  const Words regions =
      seed % 2 == 0 ? Words{0, 1, 2, 3, 4, 5, 6, 7} : Words{0, 9, 0xFFFFFFFEu, 77777, 1u << 31, 12, 0x00FF00FFu, 5};
  const Keys universe = some_paged_keys(random, regions, universe_size);
  PagedGrid grid = make_grid(executor, options);
  Map map;
  for (int step = 0; step < steps; ++step) {
    Keys keys = universe;
    std::shuffle(keys.begin(), keys.end(), random);
    keys.resize(random() % 3 == 0 ? random() % 30 : random() % universe_size);
    const Words values = values_for(keys, uint32_t(step));
    uint64_t known = 0;
    for (const uint64_t key : keys) known += map.count(key);
    Result<BulkReport> report;
    switch (random() % 7) {
      case 0:
      case 1:
      case 2:
        report = grid.insert(keys, values);
        REQUIRE(report.has_value());
        REQUIRE(report->inserted == keys.size() - known);
        REQUIRE(report->present == known);
        for (size_t i = 0; i < keys.size(); ++i) map.emplace(keys[i], values[i]);
        break;
      case 3:
        report = grid.assign(keys, values);
        REQUIRE(report.has_value());
        REQUIRE(report->inserted == keys.size() - known);
        REQUIRE(report->assigned == known);
        put(map, keys, values);
        break;
      case 4:
        report = grid.erase(keys);
        REQUIRE(report.has_value());
        REQUIRE(report->erased == known);
        REQUIRE(report->absent == keys.size() - known);
        for (const uint64_t key : keys) map.erase(key);
        break;
      case 5:
        REQUIRE(grid.evict(Words{regions[0], regions[3], 4242, kQryReservedKey}).has_value());
        REQUIRE(!grid.is_resident(regions[3]));
        break;
      default: {
        const auto came = grid.prefetch(regions);
        REQUIRE(came.has_value());
        REQUIRE(*came <= grid.stats().resident);
        break;
      }
    }
    REQUIRE(grid.stats().resident_bytes <= options.budget_bytes);
    require_same(grid, universe, map);
  }
}

uint32_t pages_of(uint64_t keys) { return uint32_t(double(keys) / 0.8 / kQrySlotsPerPage) + 1; }

}  // namespace

TEST_CASE("paged: after any history of batches it holds what a map holds, with room for one table, two and three") {
  on_each_executor([](Executor& executor) {
    if (executor.parallelism() != 2 && executor.kind() == ExecutorKind::host) return;
    const size_t size = quarry::test::kSanitized ? 6000 : 24000;
    // Eight regions; each grows to about a page, or two.
    const uint32_t most = pages_of(size / 8 + size / 80);
    for (uint32_t tables = 1; tables <= 3; ++tables)
      for (const uint32_t host_keys : {0u, 64u})
        run_history(executor, options_for(most * tables, tables, host_keys), tables * 2 + host_keys / 64, size,
                    quarry::test::kSanitized ? 5 : 12);
  });
}

TEST_CASE("paged: batches of no key, of one, and of powers of two and their neighbours are as they should be") {
  on_each_executor([](Executor& executor) {
    std::mt19937_64 random(5);
    for (const uint32_t lanes : {1u, 3u})
      for (const size_t count : {0, 1, 2, 3, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 4095, 4097}) {
        INFO(count << " keys, " << lanes << " lanes");
        const Keys keys = some_paged_keys(random, {3, 4, 5}, count);
        const Words values = values_for(keys, 1);
        PagedGrid grid = make_grid(executor, options_for(4, lanes));
        const auto report = grid.build(keys, values);
        REQUIRE(report.has_value());
        REQUIRE(report->inserted == count);
        Map map;
        for (size_t i = 0; i < count; ++i) map.emplace(keys[i], values[i]);
        Keys asked = keys;
        asked.push_back(paged_key(3, 1));
        asked.push_back(paged_key(99, 1));
        require_same(grid, asked, map);
        REQUIRE(grid.build(keys, values).has_value() == (count == 0));
        REQUIRE(grid.erase(keys)->erased == count);
        REQUIRE(grid.size() == 0);
        REQUIRE(grid.build(keys, values).has_value());
        REQUIRE(grid.clear().has_value());
        require_same(grid, asked, {});
        REQUIRE(grid.stats().regions == 0);
        REQUIRE(grid.build(keys, values).has_value());
        require_same(grid, asked, map);
      }
  });
}

TEST_CASE("paged: keys in the order of regions and in any order come to the same") {
  on_each_executor([](Executor& executor) {
    std::mt19937_64 random(8);
    Keys keys = some_paged_keys(random, {10, 11, 12, 13, 14}, 6000);
    std::sort(keys.begin(), keys.end());
    const Words values = values_for(keys, 3);
    Words low;
    std::vector<RegionCount> parts{{99, 0}};
    Map map;
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint32_t region = uint32_t(keys[i] >> 32);
      if (parts.back().region != region) parts.push_back({region, 0});
      ++parts.back().keys;
      low.push_back(uint32_t(keys[i]));
      map.emplace(keys[i], values[i]);
    }
    PagedGrid grid = make_grid(executor, options_for(2, 2));
    REQUIRE(grid.build(parts, low, values)->inserted == keys.size());
    require_same(grid, keys, map);
    Words found(keys.size());
    REQUIRE(grid.find(parts, low, found)->present == keys.size());
    REQUIRE(found == values);
    const Words others = values_for(keys, 4);
    REQUIRE(grid.insert(parts, low, others)->present == keys.size());
    REQUIRE(grid.assign(parts, low, others)->assigned == keys.size());
    REQUIRE(grid.find(parts, low, found)->present == keys.size());
    REQUIRE(found == others);
    REQUIRE(grid.erase(parts, low)->erased == keys.size());
    REQUIRE(grid.size() == 0);
  });
}

TEST_CASE("paged: what fits in the budget travels once, and only changed tables are copied out") {
  on_each_executor([](Executor& executor) {
    std::mt19937_64 random(11);
    // A page each.
    const Keys a = some_paged_keys(random, {1}, 2000), b = some_paged_keys(random, {2}, 2000),
               c = some_paged_keys(random, {3}, 2000);
    PagedGrid grid = make_grid(executor, options_for(2, 1));
    Words found(2000);
    for (const Keys* keys : {&a, &b}) REQUIRE(grid.insert(*keys, values_for(*keys, 0)).has_value());
    REQUIRE(grid.find(a, found)->present == 2000);
    PagedStats stats = grid.stats();
    REQUIRE(stats.resident == 2);
    REQUIRE(stats.loads + stats.evictions + stats.writebacks == 0);
    REQUIRE(stats.bytes_in == 2 * 2000 * 8 + 2000 * 4);
    REQUIRE(stats.bytes_out == 2000 * 4);
    REQUIRE(stats.budget_bytes == options_for(2, 1).budget_bytes);
    // The one that was needed longest ago leaves.
    REQUIRE(grid.insert(c, values_for(c, 0)).has_value());
    REQUIRE(grid.is_resident(1));
    REQUIRE(!grid.is_resident(2));
    REQUIRE(grid.is_resident(3));
    stats = grid.stats();
    REQUIRE(stats.evictions == 1);
    REQUIRE(stats.writebacks == 1);
    REQUIRE(stats.bytes_out == 2000 * 4 + kQryPageBytes);
    // It comes back; table 1 leaves for it, then comes itself. Table 2 has not changed and is not copied again.
    REQUIRE(grid.find(b, found)->present == 2000);
    REQUIRE(!grid.is_resident(1));
    REQUIRE(grid.find(c, found)->present == 2000);
    REQUIRE(grid.find(a, found)->present == 2000);
    REQUIRE(!grid.is_resident(2));
    stats = grid.stats();
    REQUIRE(stats.loads == 2);
    REQUIRE(stats.evictions == 3);
    REQUIRE(stats.writebacks == 2);
    // Known keys and absent ones change nothing.
    REQUIRE(grid.insert(a, values_for(a, 9))->present == 2000);
    REQUIRE(grid.erase(Keys{paged_key(1, 0xFFFFFFF0u)})->absent == 1);
    REQUIRE(grid.evict(Words{1}).has_value());
    REQUIRE(grid.stats().writebacks == 2);
    REQUIRE(grid.prefetch(Words{1, 2, 3}) == 2u);
    REQUIRE(grid.is_resident(1));
    REQUIRE(grid.is_resident(2));
    REQUIRE(grid.evict_all().has_value());
    REQUIRE(grid.stats().resident == 0);
    REQUIRE(grid.stats().resident_bytes == 0);
    REQUIRE(grid.find(a, found)->present == 2000);
    REQUIRE(found == values_for(a, 0));
  });
}

TEST_CASE("paged: few keys of a table that is not resident are done in the cache, and it stays there") {
  on_each_executor([](Executor& executor) {
    std::mt19937_64 random(12);
    const Keys keys = some_paged_keys(random, {1, 2, 3}, 6000);
    PagedGrid grid = make_grid(executor, options_for(2, 1, 64));
    REQUIRE(grid.build(keys, values_for(keys, 0)).has_value());
    REQUIRE(grid.evict_all().has_value());
    const PagedStats before = grid.stats();
    Map map;
    put(map, keys, values_for(keys, 0));
    const Keys few(keys.begin(), keys.begin() + 20), others = some_paged_keys(random, {1, 4}, 30);
    Words found(20);
    REQUIRE(grid.find(few, found)->present == 20);
    REQUIRE(grid.assign(few, values_for(few, 5))->assigned == 20);
    REQUIRE(grid.insert(others, values_for(others, 5))->inserted == 30);
    REQUIRE(grid.erase(Keys{keys[30]})->erased == 1);
    put(map, few, values_for(few, 5));
    put(map, others, values_for(others, 5));
    map.erase(keys[30]);
    const PagedStats after = grid.stats();
    REQUIRE(after.host_parts > before.host_parts);
    REQUIRE(after.bytes_in == before.bytes_in);
    REQUIRE(after.bytes_out == before.bytes_out);
    REQUIRE(after.resident == 0);
    Keys asked = keys;
    asked.insert(asked.end(), others.begin(), others.end());
    require_same(grid, asked, map);
  });
}

TEST_CASE("paged: a table grows alone, beside its old one or in the cache, and reserve saves the growth") {
  on_each_executor([](Executor& executor) {
    std::mt19937_64 random(13);
    const Keys keys = some_paged_keys(random, {7}, 12000);
    for (const uint32_t pages : {pages_of(12000), 3 * pages_of(12000)})
      for (const bool reserved : {false, true}) {
        INFO(pages << " pages, " << reserved);
        PagedGrid grid = make_grid(executor, options_for(pages, 1));
        const Keys other = some_paged_keys(random, {8}, 100);
        REQUIRE(grid.insert(other, values_for(other, 0)).has_value());
        if (reserved) grid.reserve(7, keys.size());
        Map map;
        for (size_t at = 0; at < keys.size(); at += 3000) {
          const Keys some(keys.begin() + at, keys.begin() + at + 3000);
          const Words values = values_for(some, uint32_t(at));
          REQUIRE(grid.insert(some, values)->inserted == 3000);
          for (size_t i = 0; i < some.size(); ++i) map.emplace(some[i], values[i]);
        }
        REQUIRE((grid.stats().growths == 0) == reserved);
        put(map, other, values_for(other, 0));
        Keys asked = keys;
        asked.insert(asked.end(), other.begin(), other.end());
        require_same(grid, asked, map);
      }
  });
}

TEST_CASE("paged: parts so large that a device puts them page by page travel in pieces, and all are in") {
  on_each_executor([](Executor& executor) {
    if (executor.kind() == ExecutorKind::host && (executor.parallelism() != 2 || quarry::test::kSanitized)) return;
    constexpr uint32_t kEach = 300000, kRegions = 2;
    std::vector<RegionCount> parts;
    Words keys, values;
    for (uint32_t region = 0; region < kRegions; ++region) {
      parts.push_back({region * 7, kEach});
      for (uint32_t i = 0; i < kEach; ++i) {
        keys.push_back(i * 0x9E3779B1u ^ region);
        values.push_back(i * 3 + region);
      }
    }
    PagedOptions options = options_for(pages_of(kEach), 2);
    options.budget_bytes += 2 * 16 * ((1 << 18) - kStaged);
    options.staged_pairs = 1 << 18;
    PagedGrid grid = make_grid(executor, options);
    for (const uint32_t round : {0u, 1u}) {  // new tables, then such in use
      const auto report = round == 0 ? grid.build(parts, keys, values) : grid.assign(parts, keys, values);
      if (!report) FAIL(report.error().message);
      REQUIRE((round == 0 ? report->inserted : report->assigned) == keys.size());
      REQUIRE(grid.size() == keys.size());
      Words found(keys.size());
      REQUIRE(grid.find(parts, keys, found)->present == keys.size());
      REQUIRE(found == values);
      for (uint32_t& value : values) value += 5;
    }
    REQUIRE(grid.insert(parts, keys, values)->present == keys.size());
    REQUIRE(grid.erase(parts, keys)->erased == keys.size());
    REQUIRE(grid.size() == 0);
    REQUIRE(grid.stats().growths == 0);
  });
}

TEST_CASE(
    "paged: tables that are filled to their load by small parts and small pieces do not grow, and travel out once") {
  on_each_executor([](Executor& executor) {
    constexpr uint32_t kEach = 50000, kRegions = 6;
    std::vector<RegionCount> parts;
    Words keys, values;
    for (uint32_t region = 0; region < kRegions; ++region) {
      parts.push_back({region, kEach});
      for (uint32_t i = 0; i < kEach; ++i) {
        keys.push_back((i + 1) * 0x9E3779B1u);
        values.push_back(i + region);
      }
    }
    for (const uint32_t tables : {1u, 2u, 4u}) {
      INFO(tables << " tables");
      PagedOptions options = options_for(pages_of(kEach) * tables, 2);
      PagedGrid grid = make_grid(executor, options);
      const auto report = grid.build(parts, keys, values);
      if (!report) FAIL(report.error().message);
      REQUIRE(report->inserted == keys.size());
      const PagedStats stats = grid.stats();
      REQUIRE(stats.growths == 0);
      if (executor.kind() == ExecutorKind::cuda)
        REQUIRE(stats.bytes_out <= uint64_t{kRegions} * pages_of(kEach) * kQryPageBytes);
      Words found(keys.size());
      REQUIRE(grid.find(parts, keys, found)->present == keys.size());
      REQUIRE(found == values);
    }
  });
}

TEST_CASE("paged: keys that crowd into one page make their table grow in the midst of a batch, and all are in") {
  on_each_executor([](Executor& executor) {
    const On<GridView> on(executor);
    // Two pages have room for so many keys, but all are of one page, until there are eight.
    const Words crowd = keys_of_page(on, 0, 4, 5500);
    Keys keys;
    for (const uint32_t key : crowd) keys.push_back(paged_key(6, key));
    const Words values = values_for(keys, 1);
    for (const uint32_t pages :
         {8u, 10u, 20u})  // the larger table comes into being in the cache, or beside the old one
      for (const bool dirty : {false, true})
        for (const uint32_t host_keys : {0u, 100000u}) {
          INFO(pages << " pages, " << dirty << ", " << host_keys);
          PagedGrid grid = make_grid(executor, options_for(pages, 1, host_keys));
          const Keys first(keys.begin(), keys.begin() + 10);
          REQUIRE(grid.insert(first, Words(values.begin(), values.begin() + 10)).has_value());
          if (!dirty) REQUIRE(grid.evict_all().has_value());
          if (!dirty && host_keys == 0) REQUIRE(grid.prefetch(Words{6}) == 1u);
          const auto report = grid.insert(keys, values);
          if (!report) FAIL(report.error().message);
          REQUIRE(report->inserted == keys.size() - 10);
          REQUIRE(report->present == 10);
          REQUIRE(grid.stats().growths >= 2);
          Map map;
          put(map, keys, values);
          require_same(grid, keys, map);
        }
  });
}

TEST_CASE("paged: what it cannot do is said, and nothing is changed") {
  on_each_executor([](Executor& executor) {
    const auto refused = [&](const PagedOptions& options, const char* why) {
      const auto grid = PagedGrid::create(executor, options);
      REQUIRE(!grid.has_value());
      REQUIRE(grid.error().code == ErrorCode::invalid_argument);
      REQUIRE(grid.error().message.find(why) != std::string::npos);
    };
    refused({}, "budget of 0 bytes has no room");
    PagedOptions tight = options_for(1, 2);
    --tight.budget_bytes;
    refused(tight, "has no room: 2 lanes stage 16384 bytes");
    PagedOptions wrong = options_for(1, 1);
    wrong.max_load_factor = 1.5;
    refused(wrong, "max_load_factor");
    wrong = options_for(1, 1);
    wrong.lanes = 1000;
    refused(wrong, "1000 lanes");

    std::mt19937_64 random(14);
    PagedGrid grid = make_grid(executor, options_for(2, 2));
    Keys keys = some_paged_keys(random, {1}, 1000);
    const Words values = values_for(keys, 0);
    REQUIRE(grid.insert(keys, values).has_value());
    Map map;
    for (size_t i = 0; i < keys.size(); ++i) map.emplace(keys[i], values[i]);
    const auto fails = [&](const Result<BulkReport>& report, ErrorCode code, const char* why) {
      REQUIRE(!report.has_value());
      REQUIRE(report.error().code == code);
      INFO(report.error().message);
      REQUIRE(report.error().message.find(why) != std::string::npos);
      require_same(grid, keys, map);
    };
    const auto bad = ErrorCode::invalid_argument;
    Keys wrong_keys = some_paged_keys(random, {1, 2}, 100);
    Words wrong_values = values_for(wrong_keys, 0);
    fails(grid.insert(wrong_keys, Words(99)), bad, "100 keys but 99 values");
    Words place(99);
    fails(grid.find(wrong_keys, place), bad, "100 keys but 99 places");
    Words few(2);
    const Keys reserved{paged_key(kQryReservedKey, 3), paged_key(1, kQryReservedKey)};
    const auto asked = grid.find(reserved, few);
    REQUIRE(asked.has_value());
    REQUIRE(asked->absent + asked->reserved == 2);
    REQUIRE(few == Words{kQryReservedValue, kQryReservedValue});
    REQUIRE(grid.erase(reserved)->erased == 0);
    fails(grid.insert(std::vector<RegionCount>{{1, 2}, {1, 1}}, Words{1, 2, 3}, Words{1, 2, 3}), bad, "named twice");
    fails(grid.insert(std::vector<RegionCount>{{1, 2}, {2, 2}}, Words{1, 2, 3}, Words{1, 2, 3}), bad, "add up");
    fails(grid.insert(std::vector<RegionCount>{{1, 2}, {2, UINT64_MAX}}, Words{1, 2, 3}, Words{1, 2, 3}), bad,
          "add up");
    fails(grid.build(keys, values), bad, "it has 1000 keys");
    // A table larger than the budget.
    const Keys many = some_paged_keys(random, {5}, 10000);
    fails(grid.insert(many, values_for(many, 0)), ErrorCode::full, "region 5: its table needs 131072 bytes");

    // Reserved ones are left out, all others are in.
    for (const bool assigns : {false, true}) {
      wrong_keys = some_paged_keys(random, {1, 2}, 100);
      wrong_values = values_for(wrong_keys, 0);
      for (size_t i = 0; i < 100; ++i)
        if (i < 40 || i > 42) map.emplace(wrong_keys[i], wrong_values[i]);
      keys.insert(keys.end(), wrong_keys.begin(), wrong_keys.end());
      wrong_values[40] = kQryReservedValue;
      wrong_keys[41] = paged_key(2, kQryReservedKey);
      wrong_keys[42] = paged_key(kQryReservedKey, 3);
      fails(assigns ? grid.assign(wrong_keys, wrong_values) : grid.insert(wrong_keys, wrong_values), bad,
            "3 of 100 regions, keys or values are the reserved 0xFFFFFFFF; all others are in");
    }
    fails(grid.insert(std::vector<RegionCount>{{kQryReservedKey, 2}, {1, 1}}, Words{1, 2, kQryReservedKey},
                      Words{1, 2, 3}),
          bad, "3 of 3 regions");
  });
}

TEST_CASE("paged: the view tells a kernel the value, or that there is none, or that the region is away") {
  on_each_executor([](Executor& executor) {
    std::mt19937_64 random(18);
    const Keys keys = some_paged_keys(random, {1, 2, 3, 4}, 8000);
    const Words values = values_for(keys, 0);
    PagedGrid grid = make_grid(executor, options_for(2, 2));
    Keys asked = keys;
    for (uint32_t region = 0; region < 7; ++region) asked.push_back(paged_key(region, 4242));
    asked.push_back(paged_key(kQryReservedKey, 1));
    const auto check = [&](uint64_t expected_away) {
      const auto view = grid.view();
      REQUIRE(view.has_value());
      REQUIRE(grid.view()->directory.words == view->directory.words);
      const auto found = through_view(executor, *view, asked);
      REQUIRE(found.size() == asked.size());
      uint64_t wrong = 0, away = 0;
      for (size_t i = 0; i < asked.size(); ++i) {
        const uint32_t region = uint32_t(asked[i] >> 32);
        const bool known = grid.size() != 0 && region >= 1 && region <= 4, put = known && i < keys.size();
        const PagedAnswer expected = known && !grid.is_resident(region) ? PagedAnswer::not_resident
                                     : put                              ? PagedAnswer::present
                                                                        : PagedAnswer::absent;
        wrong += found[i].answer != expected;
        wrong += found[i].value != (expected == PagedAnswer::present ? values[i] : kQryReservedValue);
        away += expected == PagedAnswer::not_resident;
      }
      REQUIRE(wrong == 0);
      REQUIRE((away != 0) == (expected_away != 0));
      REQUIRE(grid.stats().directory_bytes >= kQryPageBytes);
    };
    check(0);
    REQUIRE(grid.build(keys, values).has_value());
    check(1);
    REQUIRE(grid.prefetch(Words{1, 3}) == 2u);
    check(1);
    REQUIRE(grid.evict_all().has_value());
    check(1);
    REQUIRE(grid.clear().has_value());
    check(0);
  });
}

TEST_CASE("paged: of equal keys in a batch one is inserted, in every order and place") {
  on_each_executor([](Executor& executor) {
    std::mt19937_64 random(15);
    const Keys some = some_paged_keys(random, {1, 2}, 1500);
    Keys keys = some;
    keys.insert(keys.end(), some.begin(), some.end());
    std::shuffle(keys.begin(), keys.end(), random);
    for (const uint32_t host_keys : {0u, 100000u}) {
      PagedGrid grid = make_grid(executor, options_for(4, 2, host_keys));
      const auto report = grid.insert(keys, values_for(keys, 0));
      REQUIRE(report.has_value());
      REQUIRE(report->inserted == some.size());
      REQUIRE(report->present == some.size());
      REQUIRE(grid.assign(keys, values_for(keys, 0))->assigned == keys.size());
      Map map;
      put(map, keys, values_for(keys, 0));
      require_same(grid, some, map);
    }
  });
}

TEST_CASE("paged: a batch is split by region in its own order, for regions close together and far apart") {
  std::mt19937_64 random(16);
  for (const uint32_t threads : {1u, 2u, 5u})
    for (const size_t count : {0, 1, 2, 1000, 70000, 100000})
      for (const uint32_t kind : {0u, 1u, 2u, 3u}) {
        if (count > 1000 && kind == 2 && (threads == 1 || quarry::test::kSanitized)) continue;
        if (count > 70000 && quarry::test::kSanitized) continue;
        INFO(count << " keys, " << threads << " threads, kind " << kind);
        Keys keys(count);
        Words values(count);
        for (size_t i = 0; i < count; ++i) {
          const uint32_t part = uint32_t(random() % 300);
          const uint32_t region = kind == 0   ? part + 77
                                  : kind == 1 ? uint32_t(i / 500) * 0x01000193u
                                  : kind == 2 ? uint32_t(random() % (count / 4 + 1)) * 0x9E3779B1u
                                              : part * part * 40000 - 1;  // has the reserved one
          keys[i] = paged_key(region, uint32_t(random()));
          values[i] = uint32_t(i);
        }
        Words low(count, 1), sorted_values(count, 1), positions(count, 1);
        RegionSplit split;
        REQUIRE(split.plan(keys, threads).has_value());
        split.write(keys, values.data(), low.data(), sorted_values.data(), positions.data());
        Words order(count);
        for (size_t i = 0; i < count; ++i) order[i] = uint32_t(i);
        std::stable_sort(order.begin(), order.end(),
                         [&](uint32_t a, uint32_t b) { return keys[a] >> 32 < keys[b] >> 32; });
        uint64_t at = 0, wrong = 0;
        uint64_t last = 0;
        for (const RegionPart& part : split.parts()) {
          REQUIRE(part.begin == at);
          REQUIRE(part.count != 0);
          REQUIRE((at == 0 || part.region > last));
          last = part.region;
          for (uint64_t i = at; i < at + part.count; ++i) wrong += keys[order[i]] >> 32 != part.region;
          at += part.count;
        }
        REQUIRE(at == count);
        for (size_t i = 0; i < count; ++i) wrong += low[i] != uint32_t(keys[order[i]]);
        REQUIRE(wrong == 0);
        REQUIRE(positions == order);
        REQUIRE(sorted_values == order);
      }
}

TEST_CASE("paged: runs of pages never overlap, and a run that was given back can be had again with its neighbours") {
  std::mt19937 random(17);
  for (const uint32_t pages : {1u, 2u, 31u, 200u}) {
    Arena arena(pages);
    std::vector<bool> taken(pages);
    std::vector<std::pair<uint32_t, uint32_t>> runs;
    for (uint32_t step = 0; step < 2000; ++step) {
      if (random() % 2 == 0 && !runs.empty()) {
        const size_t i = random() % runs.size();
        for (uint32_t page = 0; page < runs[i].second; ++page) taken[runs[i].first + page] = false;
        arena.give(runs[i].first, runs[i].second);
        runs.erase(runs.begin() + long(i));
      } else {
        const uint32_t wanted = 1 + uint32_t(random()) % std::min(pages, 20u);
        uint32_t longest = 0, here = 0;
        for (const bool page : taken) longest = std::max(longest, here = page ? 0 : here + 1);
        const auto at = arena.take(wanted);
        REQUIRE(at.has_value() == (longest >= wanted));
        if (!at) continue;
        REQUIRE(*at + wanted <= pages);
        for (uint32_t page = 0; page < wanted; ++page) {
          REQUIRE(!taken[*at + page]);
          taken[*at + page] = true;
        }
        runs.push_back({*at, wanted});
      }
      REQUIRE(arena.used() == uint32_t(std::count(taken.begin(), taken.end(), true)));
    }
    for (const auto& [at, count] : runs) arena.give(at, count);
    REQUIRE(arena.take(pages) == 0u);
  }
}

}  // namespace quarry::hashgrid::test::paged_test
