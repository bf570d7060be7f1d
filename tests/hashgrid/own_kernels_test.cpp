// SPDX-License-Identifier: Apache-2.0
// own_kernels_test.cpp - what a caller's own kernels and threads do key by key: read-only views, batches on a stream.
#include <map>

#include "hashgrid/multi_grid.hpp"
#include "tests/hashgrid/backends.hpp"
#if defined(QRY_HAVE_CUDA)
#include "tests/hashgrid/cuda/own_kernels.hpp"
#endif

namespace quarry::hashgrid::test::own_kernels_test {
namespace {

template <class View>
std::vector<Found> through_read_only(Executor& executor, const View& view, const std::vector<uint32_t>& keys) {
#if defined(QRY_HAVE_CUDA)
  if (executor.kind() == ExecutorKind::cuda) return find_read_only(executor, view, keys);
#endif
  (void)executor;
  std::vector<Found> found;
  for (const uint32_t key : keys) found.push_back(find(ReadOnly<View>{view}, key));
  return found;
}

}  // namespace

TEST_CASE("own kernels: a thread goes through all values of a key in a multi grid", "[quick]") {
  on_each_plain([](Executor& executor) {
    std::mt19937 random(9);
    std::vector<uint32_t> pair_keys, pair_values, asked{0, kQryReservedKey};
    std::map<uint32_t, uint64_t> sums;
    for (uint32_t i = 0; i < 30'000; ++i) {
      // Some keys have one value, some a few, one very many.
      const uint32_t key = i % 4 == 0 ? 5 : i % 4 == 1 ? i : 1'000'000 + uint32_t(random() % 500);
      pair_keys.push_back(key);
      pair_values.push_back(uint32_t(random()));
      sums[key] += pair_values.back();
    }
    for (const auto& [key, sum] : sums) asked.insert(asked.end(), {key, key + 2'000'000});
    auto grid = MultiGrid::create(executor);
    REQUIRE(grid.has_value());
    const Array<uint32_t> keys(executor, pair_keys), values(executor, pair_values);
    REQUIRE(grid->insert(keys.span(), values.span()).has_value());
    std::vector<uint64_t> got;
#if defined(QRY_HAVE_CUDA)
    if (executor.kind() == ExecutorKind::cuda) got = sum_values(executor, grid->view(), asked);
#endif
    if (executor.kind() == ExecutorKind::host)
      for (const uint32_t key : asked) {
        uint64_t sum = 0;
        for_each_value(grid->view(), key, [&sum](uint32_t value) { sum += value; });
        got.push_back(sum);
      }
    REQUIRE(got.size() == asked.size());
    size_t wrong = 0;
    for (size_t i = 0; i < asked.size(); ++i) {
      const auto at = sums.find(asked[i]);
      wrong += got[i] != (at == sums.end() ? 0 : at->second);
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("own kernels: a read-only view answers as the bulk look-up does, with the same depths", "[quick]") {
  on_each_layout([&](auto on) {
    using View = typename decltype(on)::View;
    for (const double load : {0.1, 0.5, 0.95}) {
      Table<View> table(on, 3);
      const auto keys = some_keys(5, size_t(double(table.slots()) * load));
      table.insert(keys, values_of(keys));
      std::vector<uint32_t> asked = some_keys(6, 2000);  // absent, nearly all
      asked.insert(asked.end(), keys.begin(), keys.end());
      asked.push_back(kQryReservedKey);
      std::vector<uint8_t> depths;
      const auto values = table.find(asked, &depths);
      const auto found = through_read_only(on, table.view(), asked);
      REQUIRE(found.size() == asked.size());
      size_t wrong = 0;
      for (size_t i = 0; i < asked.size(); ++i)
        wrong += found[i].value != values[i] || found[i].hit != (values[i] != kQryReservedValue) ||
                 found[i].sectors != depths[i];
      INFO("load " << load);
      CHECK(wrong == 0);
    }
  });
}

#if defined(QRY_HAVE_CUDA)
TEST_CASE("own kernels: batches on a caller's stream do what the views do, and count in device memory", "[quick]") {
  on_each_layout([&](auto on) {
    using View = typename decltype(on)::View;
    if (on.kind() != ExecutorKind::cuda) return;  // a stream is CUDA's
    Table<View> table(on, 2);
    std::map<uint32_t, uint32_t> model;
    std::mt19937 random(11);
    const auto pool = some_keys(12, 3000);
    for (uint32_t round = 0; round < 60; ++round) {
      const Batch batch = Batch(random() % 5);
      table.next_phase();
      std::vector<uint32_t> keys;
      KeySet seen;
      for (size_t wanted = std::array<size_t, 4>{1, 31, 257, 1000}[random() % 4]; keys.size() < wanted;) {
        const uint32_t key = pool[random() % pool.size()];
        if (seen.insert(key)) keys.push_back(key);
      }
      if (random() % 4 == 0) keys.push_back(kQryReservedKey);
      const auto values = values_of(keys, round);
      const Enqueued done = enqueue(on, table.view(), batch, keys, values);
      REQUIRE(done.accepted);
      uint64_t counts[kOutcomes] = {};
      size_t wrong = 0;
      for (size_t i = 0; i < keys.size(); ++i) {
        Outcome outcome = Outcome::reserved;
        uint32_t value = batch == Batch::find || batch == Batch::erase ? kQryReservedValue : values[i];
        if (keys[i] != kQryReservedKey) {
          const auto at = model.find(keys[i]);
          const bool there = at != model.end();
          if (batch == Batch::find) {
            outcome = there ? Outcome::present : Outcome::absent;
            if (there) value = at->second;
          } else if (batch == Batch::erase) {
            outcome = there ? Outcome::erased : Outcome::absent;
            if (there) value = at->second, model.erase(at);
          } else if (batch == Batch::assign) {
            outcome = there ? Outcome::assigned : Outcome::inserted;
            model[keys[i]] = values[i];
          } else {
            outcome = there ? Outcome::present : Outcome::inserted;
            if (there && batch == Batch::find_or_insert) value = at->second;
            model.emplace(keys[i], values[i]);
          }
        }
        ++counts[size_t(outcome)];
        wrong += done.outcomes[i] != outcome || done.values[i] != value;
      }
      INFO("round " << round << ", batch " << int(batch) << " of " << keys.size());
      CHECK(wrong == 0);
      CHECK(std::equal(std::begin(counts), std::end(counts), std::begin(done.counts)));
    }
    CHECK(table.fault().empty());
    CHECK(table.count().keys.size() == model.size());
    if constexpr (!decltype(on)::compact) CHECK(null_keys_are_refused(on, table.view()));
  });
}
#endif

TEST_CASE("own kernels: a large batch of known keys takes the last values, and new keys beside them", "[quick]") {
  on_each_layout([&](auto on) {
    using View = typename decltype(on)::View;
    // Enough keys a page, and in all, that CUDA goes page by page.
    const size_t count = on.kind() == ExecutorKind::cuda ? 300'000 : 20'000;
    Table<View> table(on, uint32_t(count / 1800) + 1);
    const auto keys = some_keys(21, count);
    const std::vector<uint32_t> known(keys.begin(), keys.begin() + ptrdiff_t(count - count / 8));
    CHECK(table.insert(known, values_of(known)).inserted == known.size());
    table.next_phase();
    const BulkReport report = table.assign(keys, values_of(keys, 1));
    CHECK(report.assigned == known.size());
    CHECK(report.inserted == keys.size() - known.size());
    CHECK(report.full + report.reserved + report.present == 0);
    CHECK((table.find(keys) == values_of(keys, 1)));
    table.next_phase();
    const BulkReport again = table.insert(keys, values_of(keys, 2));
    CHECK(again.present == keys.size());
    CHECK((table.find(keys) == values_of(keys, 1)));
    CHECK(table.fault().empty());
  });
}

}  // namespace quarry::hashgrid::test::own_kernels_test
