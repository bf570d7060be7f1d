// SPDX-License-Identifier: Apache-2.0
// index_test.cpp - ordered indexes against std::map, on every executor and for both widths of keys: what is built,
// looked up, listed, changed and refused, and that its memory is as index/view.hpp says.
#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "hashgrid/ordered_index.hpp"
#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::index_test {
namespace {

template <class Key>
using Map = std::map<Key, uint32_t>;

template <class Key>
struct Batch {
  std::vector<Key> keys;
  std::vector<uint32_t> values;
  void add(Key key, uint32_t value) {
    keys.push_back(key);
    values.push_back(value);
  }
};

uint32_t value_for(uint64_t key) { return uint32_t(key * 0x9E3779B97F4A7C15u >> 33); }

// So many different keys, below `most`.
template <class Key>
Map<Key> some_map(std::mt19937_64& random, size_t count, uint64_t most = uint64_t{IndexNode<Key>::kReservedKey} - 1) {
  Map<Key> map;
  while (map.size() < count) {
    const Key key = Key(most == UINT64_MAX ? random() : random() % (most + 1));
    if (key != IndexNode<Key>::kReservedKey) map.emplace(key, value_for(key));
  }
  return map;
}
template <class Key>
Batch<Key> batch_of(const Map<Key>& map) {
  Batch<Key> batch;
  for (const auto& [key, value] : map) batch.add(key, value);
  return batch;
}
template <class Key>
void shuffle(Batch<Key>& batch, std::mt19937_64& random) {
  for (size_t i = batch.keys.size(); i > 1; --i) {
    const size_t other = random() % i;
    std::swap(batch.keys[i - 1], batch.keys[other]);
    std::swap(batch.values[i - 1], batch.values[other]);
  }
}

template <class Key>
OrderedIndex<Key> make_index(Executor& executor, double fill = 0.75) {
  auto index = OrderedIndex<Key>::create(executor, {fill});
  REQUIRE(index.has_value());
  return std::move(*index);
}
template <class Key>
Result<void> build(Executor& executor, OrderedIndex<Key>& index, const Batch<Key>& batch, KeyOrder order) {
  const Array<Key> keys(executor, batch.keys);
  const Array<uint32_t> values(executor, batch.values);
  return index.build(keys.span(), values.span(), order);
}
template <class Key>
Result<BulkReport> change(Executor& executor, OrderedIndex<Key>& index, IndexChange what, const Batch<Key>& batch) {
  const Array<Key> keys(executor, batch.keys);
  const Array<uint32_t> values(executor, batch.values);
  if (what == IndexChange::insert) return index.insert(keys.span(), values.span());
  if (what == IndexChange::assign) return index.assign(keys.span(), values.span());
  return index.erase(keys.span());
}

// Reads the memory as index/view.hpp describes it. Returns the first fault, or "".
template <class Key>
std::string fault_of(Executor& executor, const OrderedIndex<Key>& index, const Map<Key>& expected) {
  using Node = IndexNode<Key>;
  const IndexView<Key> view = index.view();
  const auto get = [&](const auto* from, size_t count) {
    std::vector<std::decay_t<decltype(*from)>> copy(count);
    REQUIRE(executor.download(copy.data(), from, count * sizeof(*from)).has_value());
    return copy;
  };
  const auto keys = get(view.keys, view.shape.slots()),
             inner = get(view.inner, size_t{view.shape.nodes} * Node::kSlots);
  const auto values = get(view.values, view.shape.slots()), before = get(view.before, view.shape.leaves + 1);
  if (view.size != expected.size() || before.front() != 0 || before.back() != expected.size())
    return "a wrong number of keys";
  auto next = expected.begin();
  for (uint32_t leaf = 0; leaf < view.shape.leaves; ++leaf) {
    for (uint32_t slot = 0; slot < Node::kSlots; ++slot) {
      const size_t i = size_t{leaf} * Node::kSlots + slot;
      if (slot >= before[leaf + 1] - before[leaf]) {
        if (keys[i] != Node::kReservedKey) return "a key behind its leaf's end";
        continue;
      }
      if (next == expected.end()) return "a key too many";
      if (keys[i] != next->first) return "a wrong key in leaf " + std::to_string(leaf);
      if (values[i] != next->second) return "a wrong value in leaf " + std::to_string(leaf);
      ++next;
    }
  }
  if (next != expected.end()) return "a key too few";
  // Every separator is greater than all before, and at most what is behind it, whole subtrees at a time.
  const std::vector<Key> rising = batch_of(expected).keys;
  uint64_t leaves_below = 1;
  for (uint32_t level = 0; level < view.shape.levels; ++level, leaves_below *= Node::kFanout) {
    const uint32_t end = level + 1 < view.shape.levels ? view.shape.first_node[level + 1] : view.shape.nodes;
    for (uint32_t node = view.shape.first_node[level]; node < end; ++node)
      for (uint32_t slot = 0; slot < Node::kSlots; ++slot) {
        const Key separator = inner[size_t{node} * Node::kSlots + slot];
        const uint64_t leaf = (uint64_t{node - view.shape.first_node[level]} * Node::kFanout + slot + 1) * leaves_below;
        if (leaf >= view.shape.leaves) {
          if (separator != Node::kReservedKey) return "a separator without a child";
          continue;
        }
        const auto at_or_behind = std::lower_bound(rising.begin(), rising.end(), separator);
        if (size_t(at_or_behind - rising.begin()) != before[leaf])
          return "a wrong separator at level " + std::to_string(level);
      }
  }
  return "";
}

// Questions with known answers: keys that are there, their neighbours, the ends, and random ones.
template <class Key>
void check_answers(Executor& executor, const OrderedIndex<Key>& index, const Map<Key>& map, std::mt19937_64& random,
                   size_t questions) {
  const Batch<Key> all = batch_of(map);
  std::vector<Key> asked{0, 1, IndexNode<Key>::kReservedKey, IndexNode<Key>::kReservedKey - 1};
  while (asked.size() < questions) {
    if (all.keys.empty() || random() % 8 == 0) asked.push_back(Key(random()));
    else asked.push_back(Key(all.keys[random() % all.keys.size()] + random() % 3 - 1));
  }
  const Array<Key> keys(executor, asked);
  const Array<uint32_t> values(executor, asked.size()), ranks(executor, asked.size());
  const auto report = index.find(keys.span(), values.span());
  REQUIRE(report.has_value());
  REQUIRE(index.lower_bounds(keys.span(), ranks.span()).has_value());
  const auto found = values.get(), at = ranks.get();
  uint64_t present = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto there = map.find(asked[i]);
    present += there != map.end();
    if (found[i] != (there == map.end() ? kQryReservedValue : there->second)) FAIL("a wrong value of " << asked[i]);
    const size_t rank = size_t(std::lower_bound(all.keys.begin(), all.keys.end(), asked[i]) - all.keys.begin());
    if (at[i] != rank) FAIL("rank " << at[i] << " of " << asked[i] << " instead of " << rank);
    if (executor.kind() == ExecutorKind::host && i < 64) {  // one at a time
      REQUIRE(find(index.view(), asked[i]).value == found[i]);
      REQUIRE(find(index.view(), asked[i]).hit == (there != map.end()));
      REQUIRE(lower_bound(index.view(), asked[i]) == rank);
    }
  }
  REQUIRE(report->present == present);
  REQUIRE(report->absent == asked.size() - present);

  std::vector<KeyRange<Key>> ranges;
  for (size_t i = 0; i + 1 < asked.size() && ranges.size() < questions / 8; i += 2)
    ranges.push_back({std::min(asked[i], asked[i + 1]), std::max(asked[i], asked[i + 1])});
  if (!all.keys.empty())
    for (size_t i = 0; i < 8; ++i) {  // short ones
      const size_t first = random() % all.keys.size(), last = std::min(all.keys.size() - 1, first + random() % 40);
      ranges.push_back({all.keys[first], all.keys[last]});
    }
  const Array<KeyRange<Key>> of(executor, ranges);
  const Array<RankRange> counts(executor, ranges.size());
  const auto total = index.count_ranges(of.span(), counts.span());
  REQUIRE(total.has_value());
  std::vector<uint64_t> starts{0};
  std::vector<Key> listed;
  std::vector<uint32_t> listed_values;
  const auto counted = counts.get();
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto begin = map.lower_bound(ranges[i].first), end = map.upper_bound(ranges[i].last);
    REQUIRE(counted[i].count == std::distance(begin, end));
    if (begin != map.end()) REQUIRE(all.keys[counted[i].first] == begin->first);
    for (auto each = begin; each != end; ++each) {
      listed.push_back(each->first);
      listed_values.push_back(each->second);
    }
    starts.push_back(listed.size());
  }
  REQUIRE(*total == listed.size());
  const Array<uint64_t> starts_out(executor, starts.size());
  const Array<Key> keys_out(executor, listed.size());
  const Array<uint32_t> values_out(executor, listed.size());
  REQUIRE(index.list_ranges(of.span(), starts_out.span(), keys_out.span(), values_out.span()) == *total);
  REQUIRE(starts_out.get() == starts);
  REQUIRE(keys_out.get() == listed);
  REQUIRE(values_out.get() == listed_values);
}

// Sizes at which nodes, groups and levels begin and end, for leaves filled with `per_leaf`.
template <class Key>
std::vector<size_t> edge_sizes(size_t per_leaf, size_t most) {
  std::vector<size_t> sizes{0, 1, 2, 3};
  for (uint32_t bits = 2; (size_t{1} << bits) <= most; ++bits)
    for (const size_t size : {(size_t{1} << bits) - 1, size_t{1} << bits, (size_t{1} << bits) + 1})
      sizes.push_back(size);
  for (size_t full = per_leaf; full <= most; full *= IndexNode<Key>::kFanout)
    for (const size_t size : {full - 1, full, full + 1}) sizes.push_back(size);
  return sizes;
}

template <class Key>
void check_sizes(Executor& executor) {
  std::mt19937_64 random(7);
  for (const double fill : {0.75, 1.0}) {
    const size_t per_leaf = size_t(IndexNode<Key>::kSlots * fill);
    for (const size_t size : edge_sizes<Key>(per_leaf, 6000)) {
      INFO(size << " keys of " << sizeof(Key) << " bytes, fill " << fill);
      const Map<Key> map = some_map<Key>(random, size);
      OrderedIndex<Key> index = make_index<Key>(executor, fill);
      REQUIRE(build(executor, index, batch_of(map), KeyOrder::rising).has_value());
      REQUIRE(fault_of(executor, index, map) == "");
      check_answers(executor, index, map, random, 96);
    }
  }
}

template <class Key>
void check_orders(Executor& executor) {
  std::mt19937_64 random(11);
  const Map<Key> map = some_map<Key>(random, 40000);
  Batch<Key> batch = batch_of(map);
  const auto check = [&] {
    OrderedIndex<Key> index = make_index<Key>(executor);
    REQUIRE(build(executor, index, batch, KeyOrder::any).has_value());
    REQUIRE(fault_of(executor, index, map) == "");
  };
  check();
  std::reverse(batch.keys.begin(), batch.keys.end());
  std::reverse(batch.values.begin(), batch.values.end());
  check();
  shuffle(batch, random);
  check();
}

template <class Key>
void check_history(Executor& executor, uint32_t seed, double fill) {
  std::mt19937_64 random(seed);
  OrderedIndex<Key> index = make_index<Key>(executor, fill);
  Map<Key> map;
  const uint64_t most = seed % 2 == 0 ? 4000 : uint64_t{IndexNode<Key>::kReservedKey} - 1;  // crowded, or far apart
  for (uint32_t step = 0; step < 40; ++step) {
    const std::array<size_t, 4> sizes{1, 5, 60, 1500};
    Batch<Key> batch = batch_of(some_map<Key>(random, sizes[random() % sizes.size()], most));
    if (!map.empty() && random() % 2 == 0) {  // known keys among them
      const Batch<Key> known = batch_of(map);
      Map<Key> both;
      for (const Key key : batch.keys) both.emplace(key, value_for(key) + 1);
      for (size_t i = 0; i < batch.keys.size(); ++i)
        both.emplace(known.keys[random() % known.keys.size()], uint32_t(random() % 1000));
      batch = batch_of(both);
    }
    shuffle(batch, random);
    const IndexChange what =
        std::array{IndexChange::insert, IndexChange::assign, IndexChange::erase, IndexChange::insert}[random() % 4];
    BulkReport expected;
    if (what == IndexChange::erase && !batch.keys.empty()) {  // copies are absent the second time
      batch.add(batch.keys[0], 0);
      batch.add(IndexNode<Key>::kReservedKey, 0);
    }
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      if (what == IndexChange::erase) ++(map.erase(batch.keys[i]) != 0 ? expected.erased : expected.absent);
      else if (what == IndexChange::insert)
        ++(map.emplace(batch.keys[i], batch.values[i]).second ? expected.inserted : expected.present);
      else ++(map.insert_or_assign(batch.keys[i], batch.values[i]).second ? expected.inserted : expected.assigned);
    }
    INFO("step " << step << ", change " << int(what) << " of " << batch.keys.size() << " keys");
    const auto report = change(executor, index, what, batch);
    REQUIRE(report.has_value());
    REQUIRE(report->inserted == expected.inserted);
    REQUIRE(report->present == expected.present);
    REQUIRE(report->assigned == expected.assigned);
    REQUIRE(report->erased == expected.erased);
    REQUIRE(report->absent == expected.absent);
    REQUIRE(fault_of(executor, index, map) == "");
    if (step % 4 == 0) check_answers(executor, index, map, random, 64);
  }
}

// What a call refuses: the error's code and a part of its message, and an index that is as before.
template <class Key, class Call>
void refused(Executor& executor, OrderedIndex<Key>& index, const Map<Key>& map, ErrorCode code, const char* says,
             const Call& call) {
  INFO(says);
  const auto result = call();
  REQUIRE(!result.has_value());
  CHECK(result.error().code == code);
  CHECK_THAT(result.error().message, Catch::Contains(says));
  REQUIRE(fault_of(executor, index, map) == "");
}

template <class Key>
void check_refusals(Executor& executor) {
  std::mt19937_64 random(13);
  const Map<Key> map = some_map<Key>(random, 3000);
  OrderedIndex<Key> index = make_index<Key>(executor);
  REQUIRE(build(executor, index, batch_of(map), KeyOrder::rising).has_value());
  const Batch<Key> good = batch_of(some_map<Key>(random, 100));
  const auto with = [&](size_t at, Key key, uint32_t value) {
    Batch<Key> batch = good;
    batch.keys[at] = key;
    batch.values[at] = value;
    return batch;
  };
  const auto bad = ErrorCode::invalid_argument;
  refused(executor, index, map, bad, "do not rise: after key",
          [&] { return build(executor, index, with(50, 0, 1), KeyOrder::rising); });
  refused(executor, index, map, bad, " at 49 of 100",
          [&] { return build(executor, index, with(50, good.keys[49], 1), KeyOrder::rising); });
  for (const KeyOrder order : {KeyOrder::rising, KeyOrder::any})
    refused(executor, index, map, bad, "the largest key",
            [&] { return build(executor, index, with(99, IndexNode<Key>::kReservedKey, 1), order); });
  refused(executor, index, map, bad, "is there twice",
          [&] { return build(executor, index, with(3, good.keys[90], 1), KeyOrder::any); });
  for (const IndexChange what : {IndexChange::insert, IndexChange::assign}) {
    refused(executor, index, map, bad, "is there twice",
            [&] { return change(executor, index, what, with(3, good.keys[90], 1)); });
    refused(executor, index, map, bad, "reserved 0xFFFFFFFF",
            [&] { return change(executor, index, what, with(7, good.keys[7], kQryReservedValue)); });
    refused(executor, index, map, bad, "the largest key",
            [&] { return change(executor, index, what, with(7, IndexNode<Key>::kReservedKey, 1)); });
  }
  const Array<KeyRange<Key>> ranges(executor, std::vector<KeyRange<Key>>{{1, IndexNode<Key>::kReservedKey}, {9, 8}});
  const Array<RankRange> counts(executor, std::vector<RankRange>{{77, 78}, {79, 80}});
  refused(executor, index, map, bad, "range 1 of 2", [&] { return index.count_ranges(ranges.span(), counts.span()); });
  REQUIRE(counts.get()[0].count == 78);
  const Array<KeyRange<Key>> all(executor, std::vector<KeyRange<Key>>{{0, IndexNode<Key>::kReservedKey}});
  const Array<Key> too_few(executor, std::vector<Key>(map.size() - 1, 5));
  refused(executor, index, map, ErrorCode::full, "3000 keys, and there is room for 2999",
          [&] { return index.list_ranges(all.span(), {}, too_few.span(), {}); });
  REQUIRE(too_few.get() == std::vector<Key>(map.size() - 1, 5));
  const Array<uint32_t> one(executor, 1);
  refused(executor, index, map, bad, "keys but 1 values", [&] { return index.find(too_few.span(), one.span()); });
  REQUIRE(!OrderedIndex<Key>::create(executor, {0.0}).has_value());
  REQUIRE(!OrderedIndex<Key>::create(executor, {1.5}).has_value());
}

}  // namespace

TEST_CASE("index: built from rising keys of any number, it answers as a sorted array") {
  on_each_plain([](Executor& executor) {
    check_sizes<uint32_t>(executor);
    check_sizes<uint64_t>(executor);
  });
}

TEST_CASE("index: 10,000 random sizes are built and answer") {
  const auto executor = make_host_executor(1);
  std::mt19937_64 random(23);
  Batch<uint64_t> batch;
  for (uint64_t key = 3; batch.keys.size() < 2000; key += 1 + random() % 7) batch.add(key, value_for(key));
  OrderedIndex<uint64_t> index = make_index<uint64_t>(*executor);
  for (uint32_t i = 0; i < 10000; ++i) {
    const size_t size = random() % (i % 50 == 0 ? 2000 : 60), at = size == 0 ? 0 : random() % size;
    REQUIRE(index.build({batch.keys.data(), size}, {batch.values.data(), size}, KeyOrder::rising).has_value());
    if (size != 0) REQUIRE(find(index.view(), batch.keys[at]).value == batch.values[at]);
    if (size != 0) REQUIRE(lower_bound(index.view(), batch.keys[at] + 1) == at + 1);
    REQUIRE(lower_bound(index.view(), uint64_t{3}) == 0);
    REQUIRE(lower_bound(index.view(), UINT64_MAX) == size);
  }
}

TEST_CASE("index: keys in any order, sorted and reversed ones too, give the same index") {
  on_each_plain([](Executor& executor) {
    check_orders<uint32_t>(executor);
    check_orders<uint64_t>(executor);
  });
}

TEST_CASE("index: after any history of batches it holds what a map holds") {
  on_each_plain([](Executor& executor) {
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      INFO("seed " << seed);
      check_history<uint32_t>(executor, seed, 0.75);
      check_history<uint64_t>(executor, seed, seed == 3 ? 1.0 : 0.5);
    }
  });
}

TEST_CASE("index: a batch that fits is put in place, one that crowds into a leaf is merged, and both are counted") {
  on_each_plain([](Executor& executor) {
    Map<uint64_t> map;
    for (uint64_t key = 0; key < 12 * 17; ++key) map.emplace(key * 100, value_for(key));
    auto index = make_index<uint64_t>(executor, 0.75);
    REQUIRE(build(executor, index, batch_of(map), KeyOrder::rising).has_value());
    REQUIRE(index.leaves() == 17);
    const auto insert = [&](uint64_t first, uint64_t count) {
      Batch<uint64_t> batch;
      for (uint64_t key = first; key < first + count; ++key) batch.add(key, uint32_t(key));
      for (uint64_t key = first; key < first + count; ++key) map.emplace(key, uint32_t(key));
      REQUIRE(change(executor, index, IndexChange::insert, batch)->inserted == count);
      REQUIRE(fault_of(executor, index, map) == "");
    };
    insert(1, 4);  // 12 of 16 slots were used
    CHECK(index.insert_merges() == 0);
    insert(5, 1);
    CHECK(index.insert_merges() == 1);
    insert(300 * 100, 900);  // behind all others
    CHECK(index.insert_merges() == 2);
    // When most are erased, the index becomes small.
    const uint64_t size_bytes = index.size_bytes();
    Batch<uint64_t> most = batch_of(map);
    most.keys.resize(1000);
    for (const uint64_t key : most.keys) map.erase(key);
    REQUIRE(index.erase(Array<uint64_t>(executor, most.keys).span())->erased == 1000);
    REQUIRE(fault_of(executor, index, map) == "");
    CHECK(index.size_bytes() < size_bytes / 2);
  });
}

TEST_CASE("index: bad input is an error that says what is wrong, and nothing is written") {
  on_each_plain([](Executor& executor) {
    check_refusals<uint32_t>(executor);
    check_refusals<uint64_t>(executor);
  });
}

TEST_CASE("index: without memory for a merge it stays as it was") {
  on_each_plain([](Executor& executor) {
    Scarce scarce(executor.memory());
    scarce.left = 2;
    auto index = OrderedIndex<uint64_t>::create(executor, {1.0}, &scarce);
    REQUIRE(index.has_value());
    std::mt19937_64 random(31);
    const Map<uint64_t> map = some_map<uint64_t>(random, 500), more = some_map<uint64_t>(random, 50);
    REQUIRE(build(executor, *index, batch_of(map), KeyOrder::any).has_value());
    const auto report = change(executor, *index, IndexChange::assign, batch_of(more));
    REQUIRE(!report.has_value());
    CHECK(report.error().code == ErrorCode::out_of_memory);
    REQUIRE(fault_of(executor, *index, map) == "");
    // Packing after an erase needs memory too, and may do without.
    Batch<uint64_t> most = batch_of(map);
    Map<uint64_t> rest(std::next(map.begin(), 450), map.end());
    most.keys.resize(450);
    REQUIRE(index->erase(Array<uint64_t>(executor, most.keys).span())->erased == 450);
    REQUIRE(fault_of(executor, *index, rest) == "");
  });
}

TEST_CASE("index: with room reserved, builds take it in turns and allocate nothing; given back, it is gone") {
  on_each_plain([](Executor& executor) {
    Scarce scarce(executor.memory());
    scarce.left = 3;  // the empty index, what is reserved, and the first index
    auto index = OrderedIndex<uint64_t>::create(executor, {1.0}, &scarce);
    REQUIRE(index.has_value());
    REQUIRE(index->reserve(2000).has_value());
    std::mt19937_64 random(37);
    for (const size_t size : {2000u, 1u, 0u, 700u, 2000u, 1999u}) {
      const Map<uint64_t> map = some_map<uint64_t>(random, size);
      REQUIRE(build(executor, *index, batch_of(map), KeyOrder::any).has_value());
      REQUIRE(fault_of(executor, *index, map) == "");
    }
    // A build that fails gives the room back to the next.
    const Map<uint64_t> map = some_map<uint64_t>(random, 2000);
    Batch<uint64_t> twice = batch_of(map);
    twice.keys[7] = twice.keys[8];
    REQUIRE(!build(executor, *index, twice, KeyOrder::any).has_value());
    REQUIRE(build(executor, *index, batch_of(map), KeyOrder::any).has_value());
    REQUIRE(fault_of(executor, *index, map) == "");
    const uint64_t with_room = index->size_bytes();
    REQUIRE(index->reserve(0).has_value());
    CHECK(index->size_bytes() < with_room);
    REQUIRE(build(executor, *index, batch_of(map), KeyOrder::any).error().code == ErrorCode::out_of_memory);
    REQUIRE(fault_of(executor, *index, map) == "");
    REQUIRE(index->reserve(uint64_t{1} << 40).error().code == ErrorCode::full);
  });
}

}  // namespace quarry::hashgrid::test::index_test
