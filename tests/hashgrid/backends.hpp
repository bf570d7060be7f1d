// SPDX-License-Identifier: Apache-2.0
// backends.hpp - the executors on which every case of tests/hashgrid runs, and arrays in the memory of each.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hashgrid/executor.hpp"
#include "hashgrid/grid.hpp"

namespace quarry::hashgrid::test {

// Runs `body` on host executors with 1, 2 and 8 threads and on CUDA, then with rows on one of 2 threads and on CUDA.
// Prints a message without CUDA.
void on_each_executor(const std::function<void(Executor&)>& body);
// The locality that on_each_executor currently requires. Table and the key makers below use it; grids must be created
// with it.
Locality test_locality();
// The executors, once each: for what knows no locality.
inline void on_each_plain(const std::function<void(Executor&)>& body) {
  on_each_executor([&](Executor& executor) {
    if (test_locality() == Locality::plain) body(executor);
  });
}

// An executor with the operations of one layout: the argument of a case that runs for both layouts.
template <class V>
class On {
 public:
  using View = V;
  explicit On(Executor& executor) : executor_(executor) {}
  operator Executor&() const { return executor_; }
  ExecutorKind kind() const { return executor_.kind(); }
  uint32_t parallelism() const { return executor_.parallelism(); }
  MemorySource& memory() const { return executor_.memory(); }
  BulkOperations<View>& operations() const {
    if constexpr (std::is_same_v<View, CompactView>) return executor_.compact();
    else return executor_.pairs();
  }
  Result<Grid> create_grid(GridOptions options, MemorySource* memory = nullptr) const {
    options.layout = compact ? Layout::compact : Layout::pairs;
    options.locality = test_locality();
    return Grid::create(executor_, options, memory);
  }
  static constexpr bool compact = std::is_same_v<View, CompactView>;
  // The key at a position of the table's key order: neighbours there share page and home bucket.
  uint32_t key_at(uint32_t position) const {
    return compact ? qry_unmix(position) : qry_key_of_stored(position, uint32_t(test_locality()));
  }
  uint32_t page_of(uint32_t key, uint32_t page_count) const {
    if (compact) return qry_compact_place(qry_mix(key), qry_compact(page_count).table).home / kQrySectorsPerPage;
    return qry_page(qry_stored_key(key, uint32_t(test_locality())), page_count);
  }

 private:
  Executor& executor_;
};

// Runs `body`, a function of any On<...>, for both layouts on each executor. (Rows exist in the pairs layout only.)
template <class Body>
void on_each_layout(const Body& body) {
  on_each_executor([&](Executor& executor) {
    {
      INFO("pairs layout");
      body(On<GridView>(executor));
    }
    if (test_locality() == Locality::plain) {
      INFO("compact layout");
      body(On<CompactView>(executor));
    }
  });
}

// An array in an executor's memory.
template <class T>
class Array {
 public:
  Array(Executor& executor, size_t count) : executor_(executor), count_(count) {
    auto block = executor.memory().allocate(std::max<size_t>(1, count * sizeof(T)), "test array");
    if (!block) FAIL(block.error().message);
    block_ = *block;
  }
  Array(Executor& executor, std::span<const T> from) : Array(executor, from.size()) { set(from); }
  Array(Executor& executor, const std::vector<T>& from) : Array(executor, std::span<const T>(from)) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { executor_.memory().release(block_); }

  T* data() const { return static_cast<T*>(block_.data); }
  size_t size() const { return count_; }
  std::span<T> span() const { return {data(), count_}; }
  void set(std::span<const T> from) {
    REQUIRE(from.size() == count_);
    REQUIRE(executor_.upload(data(), from.data(), count_ * sizeof(T)).has_value());
  }
  std::vector<T> get() const {
    std::vector<T> copy(count_);
    REQUIRE(executor_.download(copy.data(), data(), count_ * sizeof(T)).has_value());
    return copy;
  }

 private:
  Executor& executor_;
  size_t count_;
  MemoryBlock block_;
};

// Gives memory so many times.
class Scarce final : public MemorySource {
 public:
  explicit Scarce(MemorySource& from) : from_(from) {}
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override {
    if (left == 0) return fail(ErrorCode::out_of_memory, "no more memory in this test");
    --left;
    return from_.allocate(size_bytes, label);
  }
  void release(const MemoryBlock& block) noexcept override { from_.release(block); }
  uint32_t left = 0;

 private:
  MemorySource& from_;
};

// The content of a table's memory according to layout.h or compact/layout.h: the tests' own reading of these.
struct Recount {
  std::string fault;  // the first: a duplicate key, or one outside its probe sequence; a missing mark. Or ""
  std::vector<uint32_t> keys, values;  // in memory order
  uint64_t freed = 0, overflow_live = 0, spilled_buckets = 0, fullest_page_live = 0;
  uint64_t passed = 0;  // buckets that a key of theirs is behind: spilled_buckets, if all marks are exact
  std::array<uint64_t, 5> bucket_fill{};
};
Recount recount(const std::vector<uint64_t>& words, const GridView& view);
Recount recount(const std::vector<uint64_t>& words, const CompactView& view);

template <class View>
std::vector<uint64_t> words_of(Executor& executor, const View& view) {
  std::vector<uint64_t> words(size_t{view.page_count} * kQryPageWords);
  REQUIRE(executor.download(words.data(), view.words, words.size() * 8).has_value());
  return words;
}
inline std::string fault_in(Executor& executor, const Grid& grid) {
  if (grid.layout() == Layout::compact)
    return recount(words_of(executor, grid.compact_view()), grid.compact_view()).fault;
  return recount(words_of(executor, grid.view()), grid.view()).fault;
}

// A bare table, without an owner: for what Grid hides (phases, outcomes, refusal).
template <class View = GridView>
class Table {
 public:
  Table(const On<View>& on, uint32_t page_count) : on_(on), words_(on, size_t{page_count} * kQryPageWords) {
    if constexpr (On<View>::compact) view_ = compact_view(words_.data(), page_count);
    else view_ = {words_.data(), page_count, 0, uint32_t(test_locality())};
    REQUIRE(on.operations().clear(view_).has_value());
  }
  Table(Executor& executor, uint32_t page_count) : Table(On<View>(executor), page_count) {}
  View& view() { return view_; }
  // All slots of a small table (fewer than 1024 pages).
  uint64_t slots() const { return uint64_t{view_.page_count} * (On<View>::compact ? 4096 : 4064); }
  void next_phase() {
    if constexpr (!On<View>::compact) ++view_.phase;
  }

  using Keys = std::vector<uint32_t>;
  BulkReport insert(const Keys& keys, const Keys& values, std::vector<Outcome>* outcomes = nullptr) {
    return change(keys, values, outcomes, nullptr,
                  [&](auto& o, auto* k, auto* v, auto* each) { return o.insert(view_, k, v, keys.size(), each); });
  }
  BulkReport assign(const Keys& keys, const Keys& values, std::vector<Outcome>* outcomes = nullptr) {
    return change(keys, values, outcomes, nullptr,
                  [&](auto& o, auto* k, auto* v, auto* each) { return o.assign(view_, k, v, keys.size(), each); });
  }
  BulkReport find_or_insert(const Keys& keys, Keys& values, std::vector<Outcome>* outcomes = nullptr) {
    const Keys given = values;
    return change(keys, given, outcomes, &values, [&](auto& o, auto* k, auto* v, auto* each) {
      return o.find_or_insert(view_, k, v, keys.size(), each);
    });
  }
  BulkReport erase(const Keys& keys, std::vector<Outcome>* outcomes = nullptr, Keys* old = nullptr) {
    return change(keys, keys, outcomes, old, [&](auto& o, auto* k, auto* v, auto* each) {
      return o.erase(view_, k, keys.size(), old != nullptr ? v : nullptr, each);
    });
  }
  Keys find(const Keys& keys, std::vector<uint8_t>* depths = nullptr) {
    const Array<uint32_t> k(on_, keys), v(on_, keys.size());
    const Array<uint8_t> d(on_, keys.size());
    REQUIRE(on_.operations().find(view_, k.data(), keys.size(), v.data(), d.data()).has_value());
    if (depths != nullptr) *depths = d.get();
    return v.get();
  }
  std::vector<uint64_t> words() const { return words_.get(); }
  Recount count() const { return recount(words(), view_); }
  std::string fault() const { return count().fault; }

 private:
  template <class Operation>
  BulkReport change(const Keys& keys, const Keys& values, std::vector<Outcome>* outcomes, Keys* values_out,
                    const Operation& operation) {
    const Array<uint32_t> k(on_, keys), v(on_, values);
    const Array<Outcome> o(on_, keys.size());
    // Without outcomes to write, a large batch may be processed page by page.
    const auto report = operation(on_.operations(), k.data(), v.data(), outcomes != nullptr ? o.data() : nullptr);
    REQUIRE(report.has_value());
    if (values_out != nullptr) *values_out = v.get();
    if (outcomes != nullptr) *outcomes = o.get();
    return *report;
  }

  On<View> on_;
  Array<uint64_t> words_;
  View view_{};
};
Table(Executor&, uint32_t)->Table<GridView>;

// The keys met so far: a flat set, because a test under a sanitizer inserts millions of them.
class KeySet {
 public:
  bool insert(uint32_t key) {  // returns whether it is new; not for the reserved key
    if (++count_ * 2 > slots_.size()) {
      const std::vector<uint32_t> old =
          std::exchange(slots_, std::vector<uint32_t>(std::max<size_t>(1024, slots_.size() * 4), kQryReservedKey));
      for (const uint32_t each : old)
        if (each != kQryReservedKey) slots_[place_of(each)] = each;
    }
    const size_t place = place_of(key);
    if (slots_[place] == key) return false;
    slots_[place] = key;
    return true;
  }

 private:
  size_t place_of(uint32_t key) const {
    size_t place = (key * uint64_t{0x9E3779B97F4A7C15u} >> 32) & (slots_.size() - 1);
    while (slots_[place] != key && slots_[place] != kQryReservedKey) place = (place + 1) & (slots_.size() - 1);
    return place;
  }

  std::vector<uint32_t> slots_;
  size_t count_ = 0;  // of insertions
};

// `count` different keys whose home is bucket `bucket` (pairs: 0..991, compact: 0..1023) of `page`; needs few pages.
std::vector<uint32_t> keys_of_bucket(const On<GridView>& on, uint32_t page, uint32_t bucket, uint32_t page_count,
                                     size_t count);
std::vector<uint32_t> keys_of_bucket(const On<CompactView>& on, uint32_t page, uint32_t bucket, uint32_t page_count,
                                     size_t count);
// `count` different keys of one page, spread over it.
template <class View>
std::vector<uint32_t> keys_of_page(const On<View>& on, uint32_t page, uint32_t page_count, size_t count) {
  std::vector<uint32_t> keys;
  const uint64_t first = ((uint64_t{page} << 32) + page_count - 1) / page_count,
                 size = (uint64_t{1} << 32) / page_count;
  std::mt19937 random(page + 17);
  KeySet seen;
  while (keys.size() < count) {
    const uint32_t key = on.key_at(uint32_t(first + random() % size));
    if (key != kQryReservedKey && on.page_of(key, page_count) == page && seen.insert(key)) keys.push_back(key);
  }
  return keys;
}
// `count` different keys anywhere, the same for the same seed.
std::vector<uint32_t> some_keys(uint32_t seed, size_t count);
// A value that belongs to the key: by construction no other key's value has the same upper 24 bits.
constexpr uint32_t value_of(uint32_t key, uint32_t tag = 0) {
  return ((key * 0x9E3779B1u) & 0x7FFFFF00u) | (tag & 0xFFu);
}
std::vector<uint32_t> values_of(const std::vector<uint32_t>& keys, uint32_t tag = 0);

}  // namespace quarry::hashgrid::test
