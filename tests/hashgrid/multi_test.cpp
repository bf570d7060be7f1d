// SPDX-License-Identifier: Apache-2.0
// multi_test.cpp - multi grids against std::multimap, on every executor: what is inserted, counted, retrieved, erased,
// listed and refused, and that their memory is as multi/shape.hpp says.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "hashgrid/multi_grid.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::multi_test {
namespace {

using quarry::test::kSanitized;

using Rows = std::vector<uint32_t>;
using Model = std::map<uint32_t, Rows>;  // values sorted

struct Pairs {
  Rows keys, values;
  void add(uint32_t key, uint32_t value) {
    keys.push_back(key);
    values.push_back(value);
  }
};

// So many pairs with about `each` values a key, in random order.
Pairs some_pairs(std::mt19937& random, size_t count, size_t each) {
  Pairs pairs;
  const size_t keys = std::max<size_t>(1, count / each);
  for (size_t i = 0; i < count; ++i)
    pairs.add(uint32_t(random() % keys * 0x9E3779B1u) & 0x7FFFFFFFu, random() % 16 == 0 ? 7 : uint32_t(random()));
  return pairs;
}
Model model_of(const Pairs& pairs, Model model = {}) {
  for (size_t i = 0; i < pairs.keys.size(); ++i) model[pairs.keys[i]].push_back(pairs.values[i]);
  for (auto& [key, values] : model) std::sort(values.begin(), values.end());
  return model;
}
uint64_t size_of(const Model& model) {
  uint64_t size = 0;
  for (const auto& [key, values] : model) size += values.size();
  return size;
}

MultiGrid make_grid(Executor& executor, uint64_t capacity = 0, MemorySource* memory = nullptr) {
  auto grid = MultiGrid::create(executor, {capacity}, memory);
  REQUIRE(grid.has_value());
  return std::move(*grid);
}
Result<void> insert(Executor& executor, MultiGrid& grid, const Pairs& pairs) {
  const Array<uint32_t> keys(executor, pairs.keys), values(executor, pairs.values);
  return grid.insert(keys.span(), values.span());
}

// All answers of a grid are those of the model. Returns the first fault, or "".
std::string fault_of(Executor& executor, const MultiGrid& grid, const Model& model) {
  const uint64_t size = size_of(model);
  if (grid.size() != size) return "a wrong size: " + std::to_string(grid.size());
  Rows asked;
  for (const auto& [key, values] : model) asked.insert(asked.end(), {key, key + 1, key});
  asked.insert(asked.end(), {0, 1, kQryReservedKey, kQryReservedKey - 1});
  std::shuffle(asked.begin(), asked.end(), std::mt19937(3));
  const auto values_for = [&](uint32_t key) -> const Rows& {
    static const Rows none;
    const auto at = model.find(key);
    return at == model.end() ? none : at->second;
  };
  uint64_t total = 0, present = 0;
  for (const uint32_t key : asked) {
    total += values_for(key).size();
    present += !values_for(key).empty();
  }
  const Array<uint32_t> keys(executor, asked), counts(executor, asked.size()), values(executor, total);
  const Array<uint64_t> starts(executor, asked.size() + 1);
  const auto report = grid.count(keys.span(), counts.span());
  if (!report || report->present != present || report->absent != asked.size() - present) return "a wrong report";
  const auto retrieved = grid.retrieve(keys.span(), starts.span(), values.span());
  if (!retrieved || *retrieved != total) return "a wrong number of values";
  const auto count = counts.get();
  auto value = values.get();
  const auto start = starts.get();
  if (start.front() != 0 || start.back() != total) return "wrong starts";
  for (size_t i = 0; i < asked.size(); ++i) {
    const Rows& expected = values_for(asked[i]);
    if (count[i] != expected.size()) return "a wrong count";
    if (start[i + 1] - start[i] != expected.size()) return "a wrong start";
    const auto begin = value.begin() + ptrdiff_t(start[i]), end = value.begin() + ptrdiff_t(start[i + 1]);
    std::sort(begin, end);
    if (!std::equal(begin, end, expected.begin())) return "a wrong value";
  }
  const Array<uint32_t> all_keys(executor, size), all_values(executor, size);
  const auto listed = grid.list(all_keys.span(), all_values.span());
  if (!listed || *listed != size) return "a wrong number of pairs";
  Pairs pairs{all_keys.get(), all_values.get()};
  if (model_of(pairs) != model) return "a wrong list";
  size_t changes = 0;
  for (size_t i = 1; i < size; ++i) changes += pairs.keys[i] != pairs.keys[i - 1];
  if (changes + 1 != std::max<size_t>(1, model.size())) return "a key's pairs that are listed apart";
  return "";
}

// Reads the memory as multi/shape.hpp describes it, one key after the other, through a copy.
std::string layout_fault(Executor& executor, const MultiGrid& grid, const Model& model) {
  MultiView view = grid.view();
  std::vector<std::byte> bytes(view.shape.size_bytes());
  REQUIRE(executor.download(bytes.data(), view.pages, bytes.size()).has_value());
  const auto moved = [&](auto*& part) {
    const auto offset =
        reinterpret_cast<const std::byte*>(part) - reinterpret_cast<const std::byte*>(grid.view().pages);
    part = reinterpret_cast<std::decay_t<decltype(part)>>(bytes.data() + offset);
  };
  moved(view.pages), moved(view.buckets), moved(view.values), moved(view.large);
  uint64_t slots = 0;
  for (size_t i = 0; i < view.shape.buckets(); ++i) {
    uint32_t used = 0;
    for (uint32_t slot = 0; slot < kMultiSlots; ++slot) used += multi_count_field(view.buckets[i].counts, slot) != 0;
    slots += used;
    if ((view.buckets[i].counts & kMultiWentOn) != 0 && used < kMultiSlots) return "a mark on a bucket with room";
  }
  if (slots != model.size()) return "a wrong number of slots: " + std::to_string(slots);
  for (const auto& [key, expected] : model) {
    Rows values;
    const uint32_t number = for_each_value(view, key, [&](uint32_t value) { values.push_back(value); });
    std::sort(values.begin(), values.end());
    if (number != expected.size() || count(view, key) != number || values != expected) return "a wrong run";
  }
  return "";
}

uint32_t many() { return kSanitized ? 20'000 : 1'000'000; }

}  // namespace

TEST_CASE("multi grid: it holds what a multimap holds, whatever the number of pairs and of values a key", "[quick]") {
  on_each_plain([](Executor& executor) {
    std::mt19937 random(1);
    for (const size_t count : {0, 1, 2, 3, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 20'000})
      for (const size_t each : {size_t{1}, size_t{3}, size_t{700}}) {
        INFO(count << " pairs, " << each << " values a key");
        const Pairs pairs = some_pairs(random, count, each);
        MultiGrid grid = make_grid(executor, each == 3 ? count : 0);
        REQUIRE(insert(executor, grid, pairs).has_value());
        const Model model = model_of(pairs);
        REQUIRE(fault_of(executor, grid, model) == "");
        REQUIRE(layout_fault(executor, grid, model) == "");
      }
  });
}

TEST_CASE("multi grid: 10,000 random sizes are built and answer") {
  on_each_plain([](Executor& executor) {
    if (executor.kind() == ExecutorKind::host && executor.parallelism() != 1) return;
    std::mt19937 random(8);
    constexpr uint32_t kMost = 300;
    MultiGrid grid = make_grid(executor, kMost);
    const Array<uint32_t> keys(executor, kMost), found(executor, kMost);
    const Array<uint64_t> starts(executor, kMost + 1);
    Rows key(kMost), value(kMost);
    std::iota(value.begin(), value.end(), 0);
    const Array<uint32_t> values(executor, value);
    size_t wrong = 0;
    for (uint32_t round = 0; round < (kSanitized ? 500u : 10'000u); ++round) {
      // Keys 0, 1, ... in any order: pair i is of key i % some, and asked for are the keys up to some.
      const uint32_t count = uint32_t(random()) % (kMost + 1), some = 1 + uint32_t(random()) % kMost;
      for (uint32_t i = 0; i < kMost; ++i) key[i] = i % some;
      REQUIRE(executor.upload(keys.data(), key.data(), count * sizeof(uint32_t)).has_value());
      REQUIRE(grid.clear().has_value());
      REQUIRE(grid.insert({keys.data(), count}, {values.data(), count}).has_value());
      const uint32_t present = std::min(some, count);
      const auto total = grid.retrieve({keys.data(), present}, {starts.data(), present + 1}, {found.data(), count});
      REQUIRE(total.has_value());
      REQUIRE(*total == count);
      Rows got(count);
      std::vector<uint64_t> begins(present + 1);
      REQUIRE(executor.download(got.data(), found.data(), count * sizeof(uint32_t)).has_value());
      REQUIRE(executor.download(begins.data(), starts.data(), begins.size() * sizeof(uint64_t)).has_value());
      for (uint32_t k = 0; k < present; ++k) {
        std::sort(got.begin() + ptrdiff_t(begins[k]), got.begin() + ptrdiff_t(begins[k + 1]));
        for (uint64_t i = begins[k]; i < begins[k + 1]; ++i) wrong += got[i] != k + (i - begins[k]) * some;
        wrong += begins[k + 1] - begins[k] != (count - k + some - 1) / some;
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("multi grid: pairs in many pages, sorted, reversed and shuffled") {
  on_each_plain([](Executor& executor) {
    std::mt19937 random(2);
    for (const uint32_t order : {0, 1, 2}) {
      INFO("order " << order);
      Pairs pairs;
      const uint32_t keys = kSanitized ? 3'000 : 8'000;
      for (uint32_t key = 0; key < keys; ++key)
        for (uint32_t copy = 0; copy < 1 + key % 3; ++copy) pairs.add(order == 1 ? keys - key : key, key + copy);
      if (order == 2) {
        std::shuffle(pairs.keys.begin(), pairs.keys.end(), std::mt19937(9));
        std::shuffle(pairs.values.begin(), pairs.values.end(), std::mt19937(9));
      }
      MultiGrid grid = make_grid(executor, pairs.keys.size());
      const uint64_t size_bytes = grid.size_bytes();
      REQUIRE(insert(executor, grid, pairs).has_value());
      CHECK(grid.size_bytes() == size_bytes);  // what was asked for is enough
      const Model model = model_of(pairs);
      REQUIRE(fault_of(executor, grid, model) == "");
      REQUIRE(layout_fault(executor, grid, model) == "");
    }
  });
}

TEST_CASE("multi grid: one key with a million values, beside others and alone") {
  on_each_plain([](Executor& executor) {
    for (const bool alone : {true, false}) {
      INFO(alone);
      Pairs pairs;
      // Each value once, so that their sum says whether all are there: the model would take longer than the grid.
      for (uint32_t i = 0; i < many(); ++i) pairs.add(77, i);
      if (!alone)
        for (uint32_t key = 1000; key < 3000; ++key) pairs.add(key, key);
      MultiGrid grid = make_grid(executor);
      REQUIRE(insert(executor, grid, pairs).has_value());
      const Array<uint32_t> key(executor, Rows{5, 77, 1500}), values(executor, many() + 1);
      const Array<uint64_t> starts(executor, 4);
      REQUIRE(*grid.retrieve(key.span(), starts.span(), values.span()) == many() + !alone);
      REQUIRE(starts.get() == std::vector<uint64_t>{0, 0, many(), uint64_t{many()} + !alone});
      auto got = values.get();
      if (!alone) CHECK(got[many()] == 1500);
      got.resize(many());
      std::vector<bool> seen(many());
      for (const uint32_t value : got) seen[value] = true;
      CHECK(std::count(seen.begin(), seen.end(), true) == ptrdiff_t(many()));
      REQUIRE(*grid.erase(key.span()) == many() + !alone);
      CHECK(grid.size() == (alone ? 0 : 1999));
    }
  });
}

TEST_CASE("multi grid: a key with more values than a count's bits is counted beside") {
  on_each_plain([](Executor& executor) {
    if (kSanitized || (executor.kind() == ExecutorKind::host && executor.parallelism() != 2)) return;
    Pairs pairs;
    for (uint32_t i = 0; i < kMultiLarge + 5; ++i) pairs.add(i % 64 == 63 ? i : 3, i);
    for (uint32_t i = 0; i < kMultiLarge; ++i) pairs.add(4, i);
    MultiGrid grid = make_grid(executor);
    REQUIRE(insert(executor, grid, pairs).has_value());
    const auto counts = [&] {
      const Array<uint32_t> counted(executor, 2);
      REQUIRE(grid.count(Array<uint32_t>(executor, Rows{3, 4}).span(), counted.span()).has_value());
      return counted.get();
    };
    const auto large = [&] {
      uint32_t number = 0;
      REQUIRE(executor.download(&number, grid.view().large, sizeof(number)).has_value());
      return number;
    };
    CHECK(counts() == Rows{kMultiLarge + 5 - kMultiLarge / 64, kMultiLarge});
    CHECK(large() == 1);
    REQUIRE(insert(executor, grid, {Rows(kMultiLarge / 32, 3), Rows(kMultiLarge / 32, 1)}).has_value());
    CHECK(counts() == Rows{kMultiLarge + 5 + kMultiLarge / 64, kMultiLarge});
    CHECK(large() == 2);
    const uint64_t size = grid.size();
    REQUIRE(*grid.erase(Array<uint32_t>(executor, Rows{3, 4, 3}).span()) == 2 * kMultiLarge + 5 + kMultiLarge / 64);
    CHECK(grid.size() == size - (2 * kMultiLarge + 5 + kMultiLarge / 64));
  });
}

TEST_CASE("multi grid: keys that share their page are found, however many") {
  on_each_plain([](Executor& executor) {
    // Stored keys with equal first bits fall into one page.
    Pairs pairs;
    const uint32_t count = kSanitized ? 5000 : 15'000;
    for (uint32_t i = 0; i < count; ++i) pairs.add(qry_key_of_stored(0xABC00000u + i, kQryPlain), i);
    for (uint32_t i = 0; i < count; i += 3) pairs.add(pairs.keys[i], i);
    MultiGrid grid = make_grid(executor);
    REQUIRE(insert(executor, grid, pairs).has_value());
    const Model model = model_of(pairs);
    REQUIRE(fault_of(executor, grid, model) == "");
    REQUIRE(layout_fault(executor, grid, model) == "");
  });
}

TEST_CASE("multi grid: after any history of batches it holds what a multimap holds", "[quick]") {
  on_each_plain([](Executor& executor) {
    std::mt19937 random(4);
    for (uint32_t round = 0; round < 3; ++round) {
      Model model;
      MultiGrid grid = make_grid(executor, round * 1000);
      for (uint32_t step = 0; step < 14; ++step) {
        INFO("round " << round << ", step " << step);
        if (step == 9) {
          REQUIRE(grid.clear().has_value());
          model.clear();
        } else if (step % 3 == 2) {
          Rows keys;
          for (const auto& [key, values] : model)
            if (random() % 3 == 0) keys.insert(keys.end(), {key, key, key + 1});
          keys.push_back(kQryReservedKey);
          std::shuffle(keys.begin(), keys.end(), random);
          uint64_t erased = 0;
          for (const uint32_t key : keys)
            if (const auto at = model.find(key); at != model.end()) {
              erased += at->second.size();
              model.erase(at);
            }
          const auto got = grid.erase(Array<uint32_t>(executor, keys).span());
          REQUIRE(got.has_value());
          REQUIRE(*got == erased);
        } else {
          const Pairs pairs = some_pairs(random, random() % 3000, 1 + random() % 5);
          REQUIRE(insert(executor, grid, pairs).has_value());
          model = model_of(pairs, std::move(model));
        }
        REQUIRE(fault_of(executor, grid, model) == "");
      }
    }
  });
}

TEST_CASE("multi grid: bad input is an error that says what is wrong, and nothing is written", "[quick]") {
  on_each_plain([](Executor& executor) {
    std::mt19937 random(5);
    const Pairs pairs = some_pairs(random, 3000, 3);
    const Model model = model_of(pairs);
    MultiGrid grid = make_grid(executor, 3000);
    Pairs bad = pairs;
    bad.keys[1234] = kQryReservedKey;
    const auto refused = [&](const auto& result, ErrorCode code, const std::string& part) {
      REQUIRE(!result.has_value());
      CHECK(result.error().code == code);
      INFO(result.error().message);
      CHECK(result.error().message.find(part) != std::string::npos);
    };
    refused(insert(executor, grid, bad), ErrorCode::invalid_argument, "pair 1234 of 3000");
    REQUIRE(grid.size() == 0);
    REQUIRE(insert(executor, grid, pairs).has_value());
    refused(insert(executor, grid, bad), ErrorCode::invalid_argument, "pair 1234 of 3000");
    refused(insert(executor, grid, {{1, 2}, {3}}), ErrorCode::invalid_argument, "2 keys but 1 values");
    REQUIRE(fault_of(executor, grid, model) == "");

    const Array<uint32_t> keys(executor, pairs.keys);
    uint64_t total = 0;
    for (const auto& [key, values] : model) total += values.size() * values.size();
    const Array<uint32_t> values(executor, Rows(total - 1, 5));
    const Array<uint64_t> starts(executor, std::vector<uint64_t>(3001, 5));
    refused(grid.retrieve(keys.span(), starts.span(), values.span()), ErrorCode::full, std::to_string(total));
    CHECK(values.get() == Rows(total - 1, 5));
    CHECK(starts.get() == std::vector<uint64_t>(3001, 5));
    refused(grid.retrieve(keys.span(), {starts.data(), 3000}, {}), ErrorCode::invalid_argument, "3001");
    refused(grid.retrieve(keys.span(), starts.span(), {keys.data() + 2999, 1}), ErrorCode::invalid_argument, "overlap");
    refused(grid.count(keys.span(), {keys.data(), 3000}), ErrorCode::invalid_argument, "overlap");
    refused(grid.count(keys.span(), {values.data(), 1}), ErrorCode::invalid_argument, "3000 keys but 1 counts");
    refused(grid.list({values.data(), 2999}, {}), ErrorCode::full, "3000");
    refused(grid.list({values.data(), 3000}, {values.data() + 2000, 3000}), ErrorCode::invalid_argument, "overlap");
    refused(MultiGrid::create(executor, {uint64_t{1} << 32}), ErrorCode::full, "4294967296");
    CHECK(*grid.retrieve(keys.span(), {}, {}) == total);  // only counts
    CHECK(keys.get() == pairs.keys);
  });
}

TEST_CASE("multi grid: without memory for a batch it stays as it was") {
  on_each_plain([](Executor& executor) {
    Scarce scarce(executor.memory());
    scarce.left = 1;
    MultiGrid grid = make_grid(executor, 500, &scarce);
    std::mt19937 random(6);
    const Pairs pairs = some_pairs(random, 500, 2);
    REQUIRE(insert(executor, grid, pairs).has_value());  // fits into what was asked for
    const auto more = insert(executor, grid, some_pairs(random, 50, 2));
    REQUIRE(!more.has_value());
    CHECK(more.error().code == ErrorCode::out_of_memory);
    REQUIRE(fault_of(executor, grid, model_of(pairs)) == "");
  });
}

}  // namespace quarry::hashgrid::test::multi_test
