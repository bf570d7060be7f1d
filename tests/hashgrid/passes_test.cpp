// SPDX-License-Identifier: Apache-2.0
// passes_test.cpp - whole-table operations: statistics against a recount, enumeration, sweep, rehash to any page count,
// placing refused keys.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::passes_test {
namespace {

// A table with spilled buckets, a used stash, freed slots; returns its keys.
template <class View>
std::vector<uint32_t> fill_roughly(Table<View>& table, uint32_t seed, size_t count) {
  const std::vector<uint32_t> keys = some_keys(seed, count);
  std::vector<Outcome> outcomes;
  table.insert(keys, values_of(keys), &outcomes);
  table.next_phase();
  std::vector<uint32_t> gone, left;
  for (size_t i = 0; i < keys.size(); ++i)
    if (outcomes[i] == Outcome::inserted) (i % 4 == 0 ? gone : left).push_back(keys[i]);
  REQUIRE(table.erase(gone).erased == gone.size());
  return left;
}

TEST_CASE("passes: statistics are what a recount of the memory gives", "[quick][pages]") {
  on_each_layout([](const auto& executor) {
    constexpr uint32_t kPages = 9;
    Table table(executor, kPages);
    const std::vector<uint32_t> keys = fill_roughly(table, 51, 30000);
    const auto stats = executor.operations().stats(table.view());
    REQUIRE(stats.has_value());
    REQUIRE(stats->live == keys.size());
    REQUIRE(stats->slots == table.slots());
    REQUIRE(stats->size_bytes == kPages * 32768);
    REQUIRE(stats->page_count == kPages);
    REQUIRE(stats->load_factor == Approx(double(keys.size()) / double(table.slots())));

    // Depths: as reported by find.
    std::vector<uint8_t> depths;
    REQUIRE(table.find(keys, &depths) == values_of(keys));
    std::array<uint64_t, kDepthBins> histogram{};
    for (const uint8_t depth : depths) ++histogram[std::min<uint32_t>(depth, kDepthBins) - 1];
    REQUIRE(stats->depth_histogram == histogram);
    std::sort(depths.begin(), depths.end());
    double sum = 0;
    for (const uint8_t depth : depths) sum += std::min<uint32_t>(depth, kDepthBins);
    REQUIRE(stats->depth_mean == Approx(sum / double(depths.size())));
    const auto percentile = [&](size_t p) { return depths[(depths.size() * p + 99) / 100 - 1]; };
    REQUIRE(stats->depth_p50 == percentile(50));
    REQUIRE(stats->depth_p99 == percentile(99));
    REQUIRE(stats->depth_max == std::min<uint32_t>(depths.back(), kDepthBins));
    REQUIRE(stats->depth_max > 2);

    // Everything else: from the words.
    const Recount counted = table.count();
    REQUIRE(stats->freed == counted.freed);
    REQUIRE(stats->overflow_live == counted.overflow_live);
    REQUIRE(stats->spilled_buckets == counted.spilled_buckets);
    REQUIRE(stats->fullest_page_live == counted.fullest_page_live);
    REQUIRE(stats->bucket_fill == counted.bucket_fill);
    REQUIRE(counted.freed > 0);
    REQUIRE(counted.spilled_buckets > 0);
    if (!executor.compact) REQUIRE(counted.overflow_live > 0);

    Table empty(executor, 2);
    const auto nothing = executor.operations().stats(empty.view());
    REQUIRE(nothing.has_value());
    REQUIRE(nothing->live == 0);
    REQUIRE(nothing->freed == 0);
    REQUIRE(nothing->depth_mean == 0);
    REQUIRE(nothing->bucket_fill[0] == 2u * (executor.compact ? 1024 : 992));
  });
}

TEST_CASE("passes: enumeration lists every pair once, page by page in memory order, and says how many there are",
          "[quick][pages]") {
  on_each_layout([](const auto& executor) {
    constexpr uint32_t kPages = 5;
    Table table(executor, kPages);
    const std::vector<uint32_t> keys = fill_roughly(table, 52, 14000);
    const Array<uint32_t> k(executor, keys.size()), v(executor, keys.size());
    const auto count = executor.operations().enumerate(table.view(), k.data(), v.data(), keys.size());
    REQUIRE(count.has_value());
    REQUIRE(*count == keys.size());
    const Recount expected = table.count();
    REQUIRE(k.get() == expected.keys);
    REQUIRE(v.get() == expected.values);

    // Too little room: the first pairs, and the full number.
    const Array<uint32_t> few(executor, std::vector<uint32_t>(100, 42));
    REQUIRE(*executor.operations().enumerate(table.view(), few.data(), nullptr, 60) == keys.size());
    const std::vector<uint32_t> got = few.get();
    REQUIRE(std::equal(got.begin(), got.begin() + 60, expected.keys.begin()));
    REQUIRE(std::count(got.begin() + 60, got.end(), 42u) == 40);
  });
}

TEST_CASE("passes: a sweep keeps every pair, forgets freed slots, and makes depths and state bits right again",
          "[quick][pages]") {
  on_each_layout([](const auto& executor) {
    constexpr uint32_t kPages = 2;
    Table table(executor, kPages);
    const std::vector<uint32_t> keys = fill_roughly(table, 53, 15000);  // filled to the brim, then a quarter erased
    const auto before = executor.operations().stats(table.view());
    REQUIRE(before->freed > 0);
    REQUIRE(executor.operations().sweep(table.view()).has_value());
    table.next_phase();
    REQUIRE(table.find(keys) == values_of(keys));
    REQUIRE(table.fault() == "");
    const auto after = executor.operations().stats(table.view());
    REQUIRE(after->live == keys.size());
    REQUIRE(after->freed == 0);
    REQUIRE(after->depth_mean < before->depth_mean);
    REQUIRE(after->spilled_buckets < before->spilled_buckets);
    // Exact bits: a bucket is marked only if one of its keys is behind it.
    REQUIRE(after->spilled_buckets == table.count().passed);
    // All freed slots can be claimed again.
    const std::vector<uint32_t> more = some_keys(54, 30000);
    REQUIRE(table.insert(more, values_of(more, 1)).inserted + after->live >= table.slots());
  });
}

TEST_CASE("passes: a rehash to any page count keeps every pair, and says how many found no place", "[quick][pages]") {
  on_each_layout([](const auto& executor) {
    for (const auto& [from_pages, to_pages] :
         std::vector<std::pair<uint32_t, uint32_t>>{{1, 2}, {2, 3}, {3, 2}, {7, 5}, {5, 50}, {8, 16}, {13, 13}}) {
      INFO(from_pages << " pages to " << to_pages);
      Table from(executor, from_pages);
      const std::vector<uint32_t> keys =
          fill_roughly(from, 60 + from_pages, size_t{std::min(from_pages, to_pages)} * 3500);
      Table to(executor, to_pages);
      const auto refused = executor.operations().rehash(from.view(), to.view());
      REQUIRE(refused.has_value());
      REQUIRE(*refused == 0);
      REQUIRE(to.find(keys) == values_of(keys));
      REQUIRE(to.fault() == "");
      REQUIRE(executor.operations().stats(to.view())->live == keys.size());
    }
    Table from(executor, 3), to(executor, 1);
    const std::vector<uint32_t> keys = fill_roughly(from, 71, 9000);
    const auto refused = executor.operations().rehash(from.view(), to.view());
    REQUIRE(refused.has_value());
    REQUIRE(*refused == keys.size() - executor.operations().stats(to.view())->live);
    REQUIRE(*refused >= keys.size() - to.slots());
    REQUIRE(*refused < keys.size() - 4000);
  });
}

TEST_CASE("passes: refused keys are placed by cuckoo moves, up to a load factor of 0.95, and nothing is left wrong",
          "[quick][pages]") {
  on_each_executor([](Executor& executor) {
    constexpr uint32_t kPages = 6;
    Table table(executor, kPages);
    std::vector<uint32_t> keys;
    for (uint32_t page = 0; page < kPages; ++page)
      // 0.95 of each page.
      for (const uint32_t key : keys_of_page(On<GridView>(executor), page, kPages, 3860)) keys.push_back(key);
    const std::vector<uint32_t> values = values_of(keys);
    std::vector<Outcome> outcomes;
    const BulkReport direct = table.insert(keys, values, &outcomes);
    REQUIRE(direct.full > 100);
    table.next_phase();
    const Array<uint32_t> k(executor, keys), v(executor, values);
    const Array<Outcome> o(executor, outcomes);
    const auto late = executor.pairs().insert_refused(table.view(), k.data(), v.data(), keys.size(), o.data());
    REQUIRE(late.has_value());
    REQUIRE(late->inserted == direct.full);
    REQUIRE(late->full + late->present + late->reserved == 0);
    const std::vector<Outcome> then = o.get();
    REQUIRE(std::count(then.begin(), then.end(), Outcome::inserted) == std::ptrdiff_t(keys.size()));
    REQUIRE(table.find(keys) == values);
    REQUIRE(table.fault() == "");
    const auto stats = executor.pairs().stats(table.view());
    REQUIRE(stats->load_factor > 0.949);
    REQUIRE(stats->depth_mean < 1.5);
  });
}

}  // namespace
}  // namespace quarry::hashgrid::test::passes_test
