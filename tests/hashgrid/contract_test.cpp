// SPDX-License-Identifier: Apache-2.0
// contract_test.cpp - the promises of view.hpp and executor.hpp that one batch can show: full tables, duplicates,
// reserved keys, page boundaries, phases.
#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "tests/app/sanitized.hpp"
#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::contract_test {
namespace {

uint64_t count_of(const std::vector<Outcome>& outcomes, Outcome wanted) {
  return uint64_t(std::count(outcomes.begin(), outcomes.end(), wanted));
}

TEST_CASE("contract: a full table refuses, says which keys, keeps all others, and does not hang",
          "[quick][one-caller]") {
  on_each_layout([](const auto& executor) {
    Table table(executor, 2);
    // Far more keys than slots: buckets and stash fill up.
    const std::vector<uint32_t> keys = some_keys(3, 30000);
    std::vector<Outcome> outcomes;
    const BulkReport report = table.insert(keys, values_of(keys), &outcomes);
    REQUIRE(report.inserted + report.full == keys.size());
    REQUIRE(report.full == count_of(outcomes, Outcome::full));
    REQUIRE(report.inserted == table.slots());  // every slot is in some key's reach
    const std::vector<uint32_t> found = table.find(keys);
    size_t wrong = 0;
    for (size_t i = 0; i < keys.size(); ++i)
      wrong += found[i] != (outcomes[i] == Outcome::inserted ? value_of(keys[i]) : kQryReservedValue);
    REQUIRE(wrong == 0);
    REQUIRE(table.fault() == "");

    // 100% full: refused again, in the same way; every operation still works on present keys.
    table.next_phase();
    std::vector<Outcome> second;
    REQUIRE(table.insert(keys, values_of(keys), &second).full == report.full);
    for (size_t i = 0; i < keys.size(); ++i)
      wrong += second[i] != (outcomes[i] == Outcome::full ? Outcome::full : Outcome::present);
    REQUIRE(wrong == 0);
    REQUIRE(table.assign(keys, values_of(keys, 7)).assigned == report.inserted);
    REQUIRE(table.erase(keys).erased == report.inserted);
    table.next_phase();
    // All slots are usable again, without a sweep.
    REQUIRE(table.insert(keys, values_of(keys)).inserted == table.slots());
  });
}

TEST_CASE("contract: a grid that may not grow says what it refuses and holds the rest; one that may takes every key",
          "[quick][one-caller]") {
  on_each_layout([](const auto& executor) {
    const std::vector<uint32_t> keys = some_keys(8, 20000);
    const Array<uint32_t> k(executor, keys), v(executor, values_of(keys)), out(executor, keys.size());
    auto fixed = executor.create_grid({.capacity = 4064, .max_load_factor = 1.0, .may_grow = false});
    REQUIRE(fixed.has_value());
    std::vector<uint64_t> refused;
    const auto report = fixed->insert(k.span(), v.span(), &refused);
    REQUIRE_FALSE(report.has_value());
    REQUIRE(report.error().code == ErrorCode::full);
    REQUIRE(report.error().message.find(std::to_string(refused.size()) + " of 20000 keys") != std::string::npos);
    REQUIRE(refused.size() + fixed->size() == keys.size());
    REQUIRE(fixed->page_count() == 1);
    REQUIRE(fixed->find(k.span(), out.span()).has_value());
    const std::set<uint64_t> gone(refused.begin(), refused.end());
    const std::vector<uint32_t> found = out.get();
    size_t wrong = 0;
    for (uint64_t i = 0; i < keys.size(); ++i)
      wrong += found[i] != (gone.contains(i) ? kQryReservedValue : value_of(keys[i]));
    REQUIRE(wrong == 0);

    auto free = executor.create_grid({});
    REQUIRE(free.has_value());
    REQUIRE(free->insert(k.span(), v.span(), &refused).has_value());
    REQUIRE(refused.empty());
    REQUIRE(free->size() == keys.size());
  });
}

TEST_CASE("contract: keys that crowd into one bucket are refused with a reason instead of growing without end",
          "[quick][one-caller]") {
  on_each_layout([](const auto& executor) {
    // Neighbours in mixed order share page and home bucket at every reasonable size; a page and the stash of its group
    // hold at most 10,000.
    std::vector<uint32_t> keys;
    for (uint32_t mixed = 1000000; keys.size() < 11000; ++mixed) keys.push_back(executor.key_at(mixed));
    const Array<uint32_t> k(executor, keys), v(executor, values_of(keys)), out(executor, keys.size());
    auto grid = executor.create_grid({});
    REQUIRE(grid.has_value());
    std::vector<uint64_t> refused;
    const auto report = grid->insert(k.span(), v.span(), &refused);
    REQUIRE_FALSE(report.has_value());
    REQUIRE(report.error().code == ErrorCode::full);
    REQUIRE(grid->size() + refused.size() == keys.size());
    REQUIRE(grid->block().size_bytes <= 256 * kQryPageBytes);
    REQUIRE(grid->find(k.span(), out.span())->present == grid->size());

    if (executor.parallelism() == 2 || executor.parallelism() == 8) return;  // 1 thread and CUDA cover it
    if (quarry::test::kSanitized) return;  // longer probes of what has been inserted already
    // A larger table would not take them either. Other keys are still placed while there is room, and the rest is
    // reported.
    const uint64_t crowd = grid->size();
    std::vector<uint32_t> others = some_keys(73, size_t{grid->page_count()} * 4200);
    std::erase_if(others, [crowded = std::set<uint32_t>(keys.begin(), keys.end())](uint32_t key) {
      return crowded.contains(key);
    });
    const Array<uint32_t> o(executor, others), ov(executor, values_of(others)), found(executor, others.size());
    const auto more = grid->insert(o.span(), ov.span(), &refused);
    REQUIRE(more.has_value() == refused.empty());
    REQUIRE(grid->size() == crowd + others.size() - refused.size());
    REQUIRE(refused.size() < others.size() / 5);
    REQUIRE(grid->find(o.span(), found.span())->present == others.size() - refused.size());
    REQUIRE(grid->find(k.span(), out.span())->present >= crowd);
  });
}

TEST_CASE("contract: a grid holds what its capacity promises without growing, at load factors up to 0.9", "[quick]") {
  on_each_layout([](const auto& executor) {
    for (const double load : {0.5, 0.8, 0.9}) {
      const std::vector<uint32_t> keys = some_keys(77, 40000);
      auto grid = executor.create_grid({.capacity = keys.size(), .max_load_factor = load});
      REQUIRE(grid.has_value());
      const uint32_t pages = grid->page_count();
      const Array<uint32_t> k(executor, keys), v(executor, values_of(keys)), out(executor, keys.size());
      const auto report = grid->insert(k.span(), v.span());
      REQUIRE(report.has_value());
      REQUIRE(report->inserted == keys.size());
      REQUIRE(grid->page_count() == pages);
      REQUIRE(grid->find(k.span(), out.span())->present == keys.size());
      REQUIRE(out.get() == values_of(keys));
      REQUIRE(fault_in(executor, *grid) == "");
      const auto stats = grid->stats();
      REQUIRE(stats.has_value());
      // A small compact table has no moves and four entries a sector: keys are deeper at a high load.
      REQUIRE(stats->depth_mean < (executor.compact ? 2.3 : 1.5));
      REQUIRE(stats->load_factor > load - 0.05);
    }
  });
}

TEST_CASE("contract: of four copies of each key one is inserted, three are present, and one of their values stays",
          "[quick]") {
  on_each_layout([](const auto& executor) {
    const std::vector<uint32_t> once = some_keys(11, 9000);
    std::vector<uint32_t> keys, values;
    for (uint32_t copy = 0; copy < 4; ++copy)
      for (const uint32_t key : once) {
        keys.push_back(key);
        values.push_back(value_of(key, copy));
      }
    Table table(executor, 4);
    std::vector<Outcome> outcomes;
    const BulkReport report = table.insert(keys, values, &outcomes);
    REQUIRE(report.inserted == once.size());
    REQUIRE(report.present == 3 * once.size());
    const std::vector<uint32_t> found = table.find(once);
    for (size_t i = 0; i < once.size(); ++i) {
      uint32_t winners = 0, winner = 0;
      for (uint32_t copy = 0; copy < 4; ++copy)
        if (outcomes[copy * once.size() + i] == Outcome::inserted) {
          ++winners;
          winner = copy;
        }
      REQUIRE(winners == 1);
      REQUIRE(found[i] == value_of(once[i], winner));
      if (executor.parallelism() == 1) REQUIRE(winner == 0);  // one host thread: the first
    }
    // find_or_insert returns the same value for every duplicate: the table's.
    Table second(executor, 4);
    std::vector<uint32_t> both = values;
    REQUIRE(second.find_or_insert(keys, both).inserted == once.size());
    REQUIRE(std::equal(both.begin(), both.begin() + 9000, both.begin() + 27000));
    // assign: the value of one of the duplicates stays.
    REQUIRE(second.assign(keys, values).assigned == keys.size());
    const std::vector<uint32_t> last = second.find(once);
    for (size_t i = 0; i < once.size(); ++i) REQUIRE((last[i] & ~3u) == (value_of(once[i]) & ~3u));
    REQUIRE(second.fault() == "");
    // Four copies of keys that need moves to find a place: still one of each.
    auto tight = executor.create_grid({.capacity = once.size(), .max_load_factor = 0.9, .may_grow = false});
    REQUIRE(tight.has_value());
    const Array<uint32_t> k(executor, keys), v(executor, values);
    const auto filled = tight->insert(k.span(), v.span());
    REQUIRE(filled.has_value());
    REQUIRE(filled->inserted == once.size());
    REQUIRE(filled->present == 3 * once.size());
    REQUIRE(tight->enumerate(false)->keys.size() == once.size());
  });
}

TEST_CASE("contract: the reserved key and value are refused, each with its outcome, and change nothing", "[quick]") {
  on_each_layout([](const auto& executor) {
    Table table(executor, 1);
    std::vector<Outcome> outcomes;
    const BulkReport report = table.insert({5, kQryReservedKey, 6, 7}, {50, 51, kQryReservedValue, 70}, &outcomes);
    REQUIRE(report.inserted == 2);
    REQUIRE(report.reserved == 2);
    REQUIRE(outcomes ==
            std::vector<Outcome>{Outcome::inserted, Outcome::reserved, Outcome::reserved, Outcome::inserted});
    REQUIRE(table.assign({kQryReservedKey, 5}, {1, kQryReservedValue}).reserved == 2);
    std::vector<uint32_t> values{1, kQryReservedValue};
    REQUIRE(table.find_or_insert({kQryReservedKey, 8}, values).reserved == 2);
    REQUIRE(table.erase({kQryReservedKey, 9}, &outcomes).reserved == 1);
    REQUIRE(outcomes[1] == Outcome::absent);
    std::vector<uint8_t> depths;
    REQUIRE(table.find({5, kQryReservedKey, 6, 7, 8}, &depths) ==
            std::vector<uint32_t>{50, kQryReservedValue, kQryReservedValue, 70, kQryReservedValue});
    REQUIRE(depths == std::vector<uint8_t>{1, 0, 1, 1, 1});

    auto grid = executor.create_grid({});
    REQUIRE(grid.has_value());
    const Array<uint32_t> k(executor, std::vector<uint32_t>{1, kQryReservedKey, 3}),
        v(executor, std::vector<uint32_t>{10, 20, 30});
    std::vector<uint64_t> refused;
    const auto answer = grid->insert(k.span(), v.span(), &refused);
    REQUIRE_FALSE(answer.has_value());
    REQUIRE(answer.error().code == ErrorCode::invalid_argument);
    REQUIRE(refused == std::vector<uint64_t>{1});
    REQUIRE(grid->size() == 2);
  });
}

TEST_CASE("contract: keys on both sides of every page seam are found, for page counts that are no powers of two",
          "[quick]") {
  on_each_layout([](const auto& executor) {
    for (const uint32_t pages : {1u, 2u, 3u, 7u, 100u}) {
      std::vector<uint32_t> keys;
      for (uint32_t page = 0; page < pages; ++page) {
        const uint64_t seam = ((uint64_t{page} << 32) + pages - 1) / pages;
        // Rows on both sides, and the one that the boundary divides.
        for (uint64_t at = seam < 8 ? 0 : seam - 8; at < seam + 8; ++at)
          if (executor.key_at(uint32_t(at)) != kQryReservedKey) keys.push_back(executor.key_at(uint32_t(at)));
      }
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      Table table(executor, pages);
      REQUIRE(table.insert(keys, values_of(keys)).inserted == keys.size());
      REQUIRE(table.find(keys) == values_of(keys));
      REQUIRE(table.fault() == "");
      std::set<uint32_t> touched;
      for (const uint32_t key : keys) touched.insert(executor.page_of(key, pages));
      REQUIRE(touched.size() == pages);
    }
  });
}

TEST_CASE("contract: a slot freed in a phase is not reused in it, and is in the next one", "[quick]") {
  on_each_executor([](Executor& executor) {
    Table table(executor, 1);
    const std::vector<uint32_t> keys = keys_of_bucket(On<GridView>(executor), 0, 100, 1, 600);
    const auto part = [&](size_t from, size_t count) {
      return std::vector<uint32_t>(keys.begin() + ptrdiff_t(from), keys.begin() + ptrdiff_t(from + count));
    };
    REQUIRE(table.insert(part(0, 4), values_of(part(0, 4))).inserted == 4);
    std::vector<uint8_t> depths;
    table.find(part(0, 4), &depths);
    REQUIRE(depths == std::vector<uint8_t>{1, 1, 1, 1});
    REQUIRE(table.erase(part(0, 4)).erased == 4);
    // Same phase: the four slots stay closed, the next keys go on to their second buckets.
    REQUIRE(table.insert(part(4, 2), values_of(part(4, 2))).inserted == 2);
    table.find(part(4, 2), &depths);
    REQUIRE(depths == std::vector<uint8_t>{2, 2});
    table.next_phase();
    REQUIRE(table.insert(part(6, 2), values_of(part(6, 2))).inserted == 2);
    table.find(part(6, 2), &depths);
    REQUIRE(depths == std::vector<uint8_t>{1, 1});
    REQUIRE(table.find(part(0, 8)) == std::vector<uint32_t>{kQryReservedValue, kQryReservedValue, kQryReservedValue,
                                                            kQryReservedValue, value_of(keys[4]), value_of(keys[5]),
                                                            value_of(keys[6]), value_of(keys[7])});
    // A key that is further on is not inserted a second time into a slot that was freed before it.
    REQUIRE(table.insert(part(4, 2), values_of(part(4, 2), 9)).present == 2);
    REQUIRE(table.assign(part(4, 1), values_of(part(4, 1), 9)).assigned == 1);
    REQUIRE(table.fault() == "");
    // Churn of one bucket's keys, one phase each: the page does not degrade.
    for (int round = 0; round < 300; ++round) {
      table.next_phase();
      const std::vector<uint32_t> some = part(size_t(round) % 50 * 10 + 8, 60);
      REQUIRE(table.insert(some, values_of(some)).full == 0);
      table.next_phase();
      table.erase(some);
    }
    REQUIRE(table.fault() == "");
    REQUIRE(table.find(part(4, 4)) ==
            std::vector<uint32_t>{value_of(keys[4], 9), value_of(keys[5]), value_of(keys[6]), value_of(keys[7])});
  });
}

TEST_CASE("contract: erase hands back the old value, and a second erase of the key in the batch finds it absent",
          "[quick]") {
  on_each_layout([](const auto& executor) {
    Table table(executor, 1);
    const std::vector<uint32_t> keys = some_keys(21, 500);
    table.insert(keys, values_of(keys));
    std::vector<uint32_t> twice = keys, old;
    twice.insert(twice.end(), keys.begin(), keys.end());
    std::vector<Outcome> outcomes;
    const BulkReport report = table.erase(twice, &outcomes, &old);
    REQUIRE(report.erased == keys.size());
    REQUIRE(report.absent == keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      REQUIRE((outcomes[i] == Outcome::erased) != (outcomes[i + keys.size()] == Outcome::erased));
      REQUIRE(old[outcomes[i] == Outcome::erased ? i : i + keys.size()] == value_of(keys[i]));
      REQUIRE(old[outcomes[i] == Outcome::erased ? i + keys.size() : i] == kQryReservedValue);
    }
  });
}

TEST_CASE("contract: wrong arguments are refused with a message, not a crash") {
  on_each_executor([](Executor& executor) {
    const Array<uint32_t> one(executor, std::vector<uint32_t>{1});
    auto grid = Grid::create(executor, {.locality = test_locality()});
    REQUIRE(grid.has_value());
    REQUIRE(grid->insert(one.span(), {}).error().code == ErrorCode::invalid_argument);
    REQUIRE(grid->insert({}, {}).has_value());
    REQUIRE(grid->find({}, {}).has_value());
    REQUIRE(grid->erase({}).has_value());
    REQUIRE(Grid::create(executor, {.max_load_factor = 0}).error().code == ErrorCode::invalid_argument);
    REQUIRE(Grid::create(executor, {.max_load_factor = 1.5}).error().code == ErrorCode::invalid_argument);
    REQUIRE(executor.pairs().clear({}).error().code == ErrorCode::invalid_argument);
    REQUIRE(executor.pairs().find({grid->view().words, 1, 0}, nullptr, 3, nullptr, nullptr).error().code ==
            ErrorCode::invalid_argument);
    REQUIRE(executor.pairs().clear({grid->view().words, 1, kQryPhaseNever}).error().code ==
            ErrorCode::invalid_argument);
  });
#if !defined(QRY_HAVE_CUDA)
  REQUIRE(make_cuda_executor().error().code == ErrorCode::unsupported);
#endif
}

}  // namespace
}  // namespace quarry::hashgrid::test::contract_test
