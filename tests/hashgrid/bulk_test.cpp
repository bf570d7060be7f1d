// SPDX-License-Identifier: Apache-2.0
// bulk_test.cpp - large batches, which an executor may process page by page: the same promises as for single keys in
// turn.
#include <algorithm>
#include <array>
#include <thread>
#include <unordered_map>

#include "tests/app/sanitized.hpp"
#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::bulk_test {
namespace {

constexpr size_t kBatch = size_t{1} << 18;  // large for the CUDA executor

// For the host far fewer keys are large: there batches and tables are a quarter as large, at the same loads. Under
// ThreadSanitizer, where comparing with the reference is most of the time, an eighth.
template <class View>
size_t scaled(const On<View>& executor, size_t of_cuda) {
  return executor.kind() == ExecutorKind::cuda ? of_cuda : of_cuda / (quarry::test::kThreadSanitized ? 8 : 4);
}

template <class View>
BulkReport insert_exclusive(const On<View>& executor, const View& view, const std::vector<uint32_t>& keys,
                            const std::vector<uint32_t>& values, bool fresh) {
  const Array<uint32_t> k(executor, keys), v(executor, values);
  const auto report = executor.operations().insert_exclusive(view, k.data(), v.data(), keys.size(), fresh);
  REQUIRE(report.has_value());
  return *report;
}

// Required content of the table: every key of `known` with its value, or (for at most `may_miss` of them) nothing.
template <class View>
void require_found(Table<View>& table, const std::unordered_map<uint32_t, uint32_t>& known, size_t may_miss) {
  std::vector<uint32_t> keys;
  for (const auto& [key, value] : known) keys.push_back(key);
  const std::vector<uint32_t> found = table.find(keys);
  size_t missed = 0, wrong = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    missed += found[i] == kQryReservedValue;
    wrong += found[i] != kQryReservedValue && found[i] != known.at(keys[i]);
  }
  REQUIRE(wrong == 0);
  REQUIRE(missed <= may_miss);
  if (may_miss == 0) REQUIRE(missed == 0);
}

TEST_CASE("large batch: into an empty table every key is in with its value or counted as refused, at any load",
          "[quick]") {
  on_each_layout([](const auto& executor) {
    for (const uint32_t of_cuda : {66u, 72u, 80u, 128u, 600u, 1030u}) {
      // 1030: five entries a sector.
      if (executor.compact && of_cuda != 72 && of_cuda != 600 && of_cuda != 1030) continue;
      const uint32_t pages = uint32_t(scaled(executor, of_cuda));
      INFO(pages << " pages");
      Table table(executor, pages);
      const std::vector<uint32_t> keys = some_keys(pages, scaled(executor, kBatch) + 77), values = values_of(keys);
      const BulkReport report = insert_exclusive(executor, table.view(), keys, values, true);
      REQUIRE(report.present == 0);
      REQUIRE(report.reserved == 0);
      REQUIRE(report.inserted + report.full == keys.size());
      if (of_cuda >= 80) REQUIRE(report.full < keys.size() / 40);
      if (of_cuda >= 128) REQUIRE(report.full == 0);
      std::unordered_map<uint32_t, uint32_t> known;
      for (size_t i = 0; i < keys.size(); ++i) known[keys[i]] = values[i];
      require_found(table, known, report.full);
      REQUIRE(table.fault() == "");
      REQUIRE(executor.operations().stats(table.view())->live == report.inserted);
    }
  });
}

TEST_CASE("large batch: at a load of 0.95 every key is in without growth, in at most eight sectors, on average 1.5",
          "[quick][one-caller]") {
  on_each_executor([](Executor& executor) {
    if (executor.parallelism() == 8) return;  // 1 and 2 threads cover it
    const uint32_t pages = 96;                // a group of 64 and 32 more: one group of 96
    Table table(executor, pages);
    const std::vector<uint32_t> keys = some_keys(95, size_t(0.95 * 4096 * pages)), values = values_of(keys);
    const BulkReport report = insert_exclusive(On<GridView>(executor), table.view(), keys, values, true);
    REQUIRE(report.full == 0);
    REQUIRE(report.inserted == keys.size());
    REQUIRE(table.find(keys) == values);
    REQUIRE(table.fault() == "");
    const auto stats = executor.pairs().stats(table.view());
    REQUIRE(stats->live == report.inserted);
    REQUIRE(stats->overflow_live > 1000);
    REQUIRE(stats->depth_max <= 8);
    REQUIRE(stats->depth_mean <= 1.5);
    // Absent keys end there too, most of them much earlier.
    std::vector<uint8_t> depths;
    const std::vector<uint32_t> others = some_keys(96, 20000);
    table.find(others, &depths);
    size_t sum = 0;
    for (const uint8_t depth : depths) sum += depth;
    REQUIRE(*std::max_element(depths.begin(), depths.end()) <= 8);
    REQUIRE(double(sum) / double(others.size()) < 2.3);

    // Swept, filled beyond 0.97 and emptied again: every key in the stash is found, then gone.
    table.next_phase();
    REQUIRE(executor.pairs().sweep(table.view()).has_value());
    REQUIRE(table.fault() == "");
    table.next_phase();
    const std::vector<uint32_t> more = some_keys(97, 12000);
    const BulkReport added = table.insert(more, values_of(more, 1));
    REQUIRE(added.inserted > 0);
    REQUIRE(table.fault() == "");
    table.next_phase();
    const BulkReport gone = table.erase(keys);
    REQUIRE(gone.erased >= report.inserted);
    REQUIRE(executor.pairs().stats(table.view())->live == report.inserted + added.inserted - gone.erased);
    table.next_phase();
    REQUIRE(executor.pairs().sweep(table.view()).has_value());
    REQUIRE(table.fault() == "");
    REQUIRE(executor.pairs().stats(table.view())->overflow_live < 600);
  });
}

TEST_CASE("large batch: of keys of one page its group's stash takes what the page cannot, and gives it back",
          "[quick]") {
  on_each_executor([](Executor& executor) {
    const uint32_t pages = 200;  // groups of 64, 64 and 72
    Table table(executor, pages);
    const std::vector<uint32_t> keys = keys_of_page(On<GridView>(executor), 150, pages, 6500), values = values_of(keys);
    std::vector<Outcome> outcomes;
    const BulkReport direct = table.insert(keys, values, &outcomes);
    REQUIRE(direct.full == 0);
    REQUIRE(table.find(keys) == values);
    REQUIRE(table.fault() == "");
    auto stats = executor.pairs().stats(table.view());
    REQUIRE(stats->overflow_live >= 6500 - 3968);
    REQUIRE(stats->depth_max <= 8);
    REQUIRE(stats->depth_max > 3);
    // The same key erased and inserted again: the freed slot waits for the next phase, the key does not.
    table.next_phase();
    REQUIRE(table.erase(keys).erased == keys.size());
    REQUIRE(table.insert(keys, values_of(keys, 1)).inserted + executor.pairs().stats(table.view())->freed >=
            keys.size());
    REQUIRE(table.fault() == "");
    table.next_phase();
    table.insert(keys, values_of(keys, 1));
    REQUIRE(table.find(keys) == values_of(keys, 1));
    REQUIRE(table.fault() == "");
  });
}

TEST_CASE("large batches: insert, assign and erase do what they say to keys new, there, freed or in the stash",
          "[quick]") {
  on_each_executor([](Executor& executor) {
    const size_t unit = scaled(On<GridView>(executor), kBatch);
    const uint32_t crowded = uint32_t(unit / 4064 + 1), roomy = 2 * crowded;
    for (const uint32_t pages : {crowded, roomy}) {
      INFO(pages << " pages");
      Table table(executor, pages);
      const std::vector<uint32_t> all = some_keys(pages + 1, unit + unit / 8);
      const std::vector<uint32_t> old(all.begin(), all.begin() + unit / 2), gone(all.begin(), all.begin() + unit / 5);
      const std::vector<uint32_t> batch(all.begin() + unit / 8, all.end());  // some keys are present, some were
      std::unordered_map<uint32_t, uint32_t> known;
      REQUIRE(table.insert(old, values_of(old, 1)).inserted == old.size());
      for (const uint32_t key : old) known[key] = value_of(key, 1);
      table.next_phase();
      REQUIRE(table.erase(gone).erased == gone.size());
      for (const uint32_t key : gone) known.erase(key);
      for (const bool same_phase : {true, false}) {  // freed slots may not be claimed yet, then they may
        if (!same_phase) table.next_phase();
        size_t there = 0;
        for (const uint32_t key : batch) there += known.count(key);
        const BulkReport put = table.insert(batch, values_of(batch, 2));
        REQUIRE(put.inserted + put.present + put.full == batch.size());
        REQUIRE(put.present == there);
        if (pages == roomy) REQUIRE(put.full == 0);
        const std::vector<uint32_t> found = table.find(batch);
        size_t wrong = 0, missing = 0;
        for (size_t i = 0; i < batch.size(); ++i) {
          const auto before = known.find(batch[i]);
          if (before == known.end() && found[i] == kQryReservedValue) ++missing;
          else wrong += found[i] != (before == known.end() ? value_of(batch[i], 2) : before->second);
          if (found[i] != kQryReservedValue) known[batch[i]] = found[i];
        }
        REQUIRE(wrong == 0);
        REQUIRE(missing == put.full);
        REQUIRE(table.fault() == "");
        require_found(table, known, 0);
      }
      const BulkReport assigned = table.assign(batch, values_of(batch, 3));
      REQUIRE(assigned.assigned + assigned.inserted + assigned.full == batch.size());
      for (const uint32_t key : batch)
        if (known.count(key) != 0) known[key] = value_of(key, 3);
      REQUIRE(executor.pairs().stats(table.view())->live == known.size() + assigned.inserted);
      require_found(table, known, 0);
      REQUIRE(table.fault() == "");
      table.next_phase();
      size_t there = assigned.inserted;
      for (const uint32_t key : batch) there += known.erase(key);
      REQUIRE(table.erase(batch).erased == there);
      REQUIRE(executor.pairs().stats(table.view())->live == known.size());
      require_found(table, known, 0);
      REQUIRE(table.fault() == "");
    }
  });
}

TEST_CASE("large batches: inserts, assigns and erases of the same keys by several threads at once balance", "[quick]") {
  on_each_executor([](Executor& executor) {
    if (executor.parallelism() == 8) return;  // 1 and 2 threads cover it
    const On<GridView> on(executor);
    const uint32_t pages = uint32_t(scaled(on, 150));  // a load of 0.42: some homes are full
    Table table(executor, pages);
    const std::vector<uint32_t> keys = some_keys(61, scaled(on, kBatch)), values = values_of(keys);
    const Array<uint32_t> k(executor, keys), v(executor, values);
    for (int round = 0; round < 2; ++round) {
      table.next_phase();
      std::array<BulkReport, 4> reports;
      {
        std::vector<std::jthread> callers;
        for (size_t t = 0; t < reports.size(); ++t)
          callers.emplace_back([&, t] {
            const auto report = t == 0 ? executor.pairs().insert(table.view(), k.data(), v.data(), keys.size(), nullptr)
                                : t == 1
                                    ? executor.pairs().assign(table.view(), k.data(), v.data(), keys.size(), nullptr)
                                : t == 2 ? executor.pairs().erase(table.view(), k.data(), keys.size(), nullptr, nullptr)
                                         : executor.pairs().find(table.view(), k.data(), keys.size(), nullptr, nullptr);
            if (report) reports[t] = *report;
          });
      }
      const auto before = executor.pairs().stats(table.view());
      int64_t balance = 0;
      for (const BulkReport& report : reports) {
        REQUIRE(report.inserted + report.present + report.assigned + report.erased + report.absent + report.full ==
                keys.size());
        balance += int64_t(report.inserted) - int64_t(report.erased);
      }
      REQUIRE(int64_t(before->live) == balance);
      const std::vector<uint32_t> found = table.find(keys);
      size_t wrong = 0;
      for (size_t i = 0; i < keys.size(); ++i) wrong += found[i] != kQryReservedValue && found[i] != values[i];
      REQUIRE(wrong == 0);
      REQUIRE(table.fault() == "");
      table.next_phase();
      REQUIRE(table.erase(keys).erased == uint64_t(balance));
    }
  });
}

TEST_CASE("large batch: into a table in use old keys keep their values, freed slots serve again, no key is twice in",
          "[quick]") {
  on_each_layout([](const auto& executor) {
    for (const uint32_t of_cuda : {96u, 110u, 300u}) {
      if (executor.compact && of_cuda != 96) continue;
      const uint32_t pages = uint32_t(scaled(executor, of_cuda));
      const ptrdiff_t part = ptrdiff_t(scaled(executor, 50000));
      INFO(pages << " pages");
      Table table(executor, pages);
      const std::vector<uint32_t> all = some_keys(7, scaled(executor, kBatch) + size_t(2 * part));
      std::unordered_map<uint32_t, uint32_t> known;
      const std::vector<uint32_t> old(all.begin(), all.begin() + 3 * part);
      const BulkReport before = table.insert(old, values_of(old, 1));
      table.next_phase();
      const std::vector<uint32_t> gone(all.begin(), all.begin() + part);
      const BulkReport erased = table.erase(gone);
      table.next_phase();
      const std::vector<uint32_t> kept(all.begin() + part, all.begin() + 3 * part);
      const std::vector<uint32_t> kept_values = table.find(kept);
      for (size_t i = 0; i < kept.size(); ++i)
        if (kept_values[i] != kQryReservedValue) known[kept[i]] = kept_values[i];
      const size_t live = before.inserted - erased.erased;
      REQUIRE(known.size() == live);

      std::vector<uint32_t> batch(all.begin() + 2 * part, all.end());  // its first part is present already
      const std::vector<uint32_t> values = values_of(batch, 2);
      for (size_t i = 0; i < batch.size(); ++i) known.try_emplace(batch[i], values[i]);
      const BulkReport report = insert_exclusive(executor, table.view(), batch, values, false);
      REQUIRE(report.inserted + report.present + report.full == batch.size());
      REQUIRE(report.reserved == 0);
      require_found(table, known, report.full);
      REQUIRE(table.fault() == "");
      REQUIRE(executor.operations().stats(table.view())->live == live + report.inserted);
      // No present key may be lost, whatever was refused.
      size_t lost = 0;
      const std::vector<uint32_t> after = table.find(kept);
      for (size_t i = 0; i < kept.size(); ++i)
        lost += kept_values[i] != kQryReservedValue && after[i] != kept_values[i];
      REQUIRE(lost == 0);
    }
  });
}

TEST_CASE("large batch: copies leave each key once, with one copy's value; reserved keys and values are counted",
          "[quick]") {
  on_each_layout([](const auto& executor) {
    for (const uint32_t copies : {2u, 4u, 7u}) {
      INFO(copies << " copies");
      const uint32_t pages = uint32_t(scaled(executor, 64));
      const size_t batch = scaled(executor, kBatch);
      Table table(executor, pages);
      const std::vector<uint32_t> distinct = some_keys(copies, batch / copies / 2 + 100);
      std::vector<uint32_t> keys, values;
      for (size_t i = 0; i < batch + 1000; ++i) {
        keys.push_back(distinct[(i * 2654435761u) % distinct.size()]);
        values.push_back(value_of(keys.back(), uint32_t(i % 7)));
      }
      for (size_t i = 0; i < 10; ++i) keys[i * 1000] = kQryReservedKey;
      for (size_t i = 0; i < 20; ++i) values[i * 1000 + 500] = kQryReservedValue;
      std::unordered_map<uint32_t, uint32_t> known;
      for (size_t i = 0; i < keys.size(); ++i)
        if (keys[i] != kQryReservedKey && values[i] != kQryReservedValue) known[keys[i]] = values[i] & ~0xFFu;
      const BulkReport report = insert_exclusive(executor, table.view(), keys, values, true);
      REQUIRE(report.reserved == 30);
      if (report.full == 0) {
        REQUIRE(report.inserted == known.size());
        REQUIRE(report.present == keys.size() - 30 - known.size());
      }
      std::vector<uint32_t> asked;
      for (const auto& [key, value] : known) asked.push_back(key);
      const std::vector<uint32_t> found = table.find(asked);
      size_t wrong = 0;
      for (size_t i = 0; i < asked.size(); ++i)
        wrong += found[i] == kQryReservedValue ? report.full == 0
                                               : (found[i] & ~0xFFu) != known[asked[i]] || (found[i] & 0xFFu) >= 7;
      REQUIRE(wrong == 0);
      REQUIRE(table.fault() == "");
    }
  });
}

TEST_CASE("large batch: of two copies at a load of 0.94 one is in, in a bucket or in the stash, not in both",
          "[quick]") {
  on_each_executor([](Executor& executor) {
    if (executor.parallelism() == 8) return;  // 1 and 2 threads cover it
    const On<GridView> on(executor);
    const uint32_t pages = uint32_t(scaled(on, 40));
    Table table(executor, pages);
    std::vector<uint32_t> keys = some_keys(94, size_t(0.94 * 4096 * pages));
    const size_t distinct = keys.size();
    for (size_t i = 0; i < distinct; ++i) keys.push_back(keys[(i * 7919) % distinct]);
    const BulkReport report = insert_exclusive(on, table.view(), keys, values_of(keys), true);
    REQUIRE(report.inserted + report.present + report.full == 2 * distinct);
    REQUIRE(report.full < distinct / 8);  // duplicates take slots until they are dropped: plain insertion gets the rest
    REQUIRE(table.fault() == "");
    REQUIRE(executor.pairs().stats(table.view())->live == report.inserted);
    REQUIRE(executor.pairs().stats(table.view())->overflow_live > 0);
    std::unordered_map<uint32_t, uint32_t> known;
    for (const uint32_t key : keys) known[key] = value_of(key);
    require_found(table, known, report.full);
  });
}

TEST_CASE("large batch: keys that crowd into one page are refused or placed, never lost and never in the way",
          "[quick][one-caller]") {
  on_each_layout([](const auto& executor) {
    const uint32_t pages = 300;
    for (const uint32_t page : {17u, pages - 1}) {              // no scratch memory follows the last page's list
      if (executor.parallelism() == 8 && page == 17) continue;  // 1 and 2 threads cover it
      Table table(executor, pages);
      std::vector<uint32_t> keys = keys_of_page(executor, page, pages, 1500);
      while (keys.size() < kBatch + 5) keys.push_back(keys[keys.size() % 1500]);
      const std::vector<uint32_t> values = values_of(keys);
      const BulkReport report = insert_exclusive(executor, table.view(), keys, values, true);
      REQUIRE(report.inserted + report.present + report.full == keys.size());
      const BulkReport rest = table.insert(keys, values);
      REQUIRE(report.inserted + rest.inserted + rest.full >= 1500);
      REQUIRE(rest.full == 0);
      REQUIRE(executor.operations().stats(table.view())->live == 1500);
      REQUIRE(table.find(keys) == values);
      REQUIRE(table.fault() == "");
    }
  });
}

TEST_CASE("large batches: a grid takes them, grows for them and erases them", "[quick][one-caller]") {
  on_each_layout([](const auto& executor) {
    const size_t batch = scaled(executor, kBatch);
    auto grid = executor.create_grid({});
    REQUIRE(grid.has_value());
    const std::vector<uint32_t> keys = some_keys(3, 3 * batch), values = values_of(keys);
    const Array<uint32_t> k(executor, keys), v(executor, values), out(executor, keys.size());
    for (size_t round = 0; round < 3; ++round) {
      const auto report = grid->insert(k.span().subspan(round * batch, batch), v.span().subspan(round * batch, batch));
      REQUIRE(report.has_value());
      REQUIRE(report->inserted == batch);
      REQUIRE(grid->size() == (round + 1) * batch);
    }
    const auto again = grid->insert(k.span(), v.span());
    REQUIRE(again.has_value());
    REQUIRE(again->present == keys.size());
    REQUIRE(grid->size() == keys.size());
    REQUIRE(grid->find(k.span(), out.span())->present == keys.size());
    REQUIRE(out.get() == values);
    const auto erased = grid->erase(k.span().first(batch + 4000));
    REQUIRE(erased.has_value());
    REQUIRE(erased->erased == batch + 4000);
    REQUIRE(grid->size() == keys.size() - batch - 4000);
    const auto twice = grid->erase(k.span().first(batch + 5000));
    REQUIRE(twice->erased == 1000);
    REQUIRE(twice->absent == batch + 4000);
    REQUIRE(grid->find(k.span(), out.span())->present == keys.size() - batch - 5000);
  });
}

}  // namespace
}  // namespace quarry::hashgrid::test::bulk_test
