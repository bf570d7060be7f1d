// SPDX-License-Identifier: Apache-2.0
// paged_failure_test.cpp - paged grids whose executor fails and whose memory is refused, at every call in turn: a
// region's part of a batch is in as a whole or not at all, nothing put before is lost, and repeating the call does the
// rest.
#include <algorithm>
#include <atomic>
#include <random>
#include <unordered_map>

#include "hashgrid/paged_grid.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::paged_failure_test {
namespace {

using Map = std::unordered_map<uint64_t, uint32_t>;
using Keys = std::vector<uint64_t>;
using Words = std::vector<uint32_t>;

// Which call fails: the first `good` do not, then `bad` do.
struct Fate {
  std::atomic<int64_t> good{INT64_MAX}, bad{0};
  void set(int64_t first_good, int64_t then_bad) {
    good = first_good;
    bad = then_bad;
  }
  bool strikes() { return good-- <= 0 && bad-- > 0; }
  bool spent() const { return good < 0; }  // it has struck, if it was to
};

// Operations that fail half done: the first half of the batch is in.
class FailingPairs final : public BulkOperations<GridView> {
 public:
  FailingPairs(BulkOperations<GridView>& real, Fate& fate) : real_(real), fate_(fate) {}
  Result<void> clear(const GridView& view) override {
    QRY_TRY(strike());
    return real_.clear(view);
  }
  Result<BulkReport> insert(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                            Outcome* outcomes) override {
    return half(count, [&](size_t n) { return real_.insert(view, keys, values, n, outcomes); });
  }
  Result<BulkReport> insert_exclusive(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                      bool fresh) override {
    return half(count, [&](size_t n) { return real_.insert_exclusive(view, keys, values, n, fresh); });
  }
  Result<BulkReport> assign_exclusive(const GridView& view, const uint32_t* keys, const uint32_t* values,
                                      size_t count) override {
    return half(count, [&](size_t n) { return real_.assign_exclusive(view, keys, values, n); });
  }
  Result<BulkReport> erase_exclusive(const GridView& view, const uint32_t* keys, size_t count) override {
    return half(count, [&](size_t n) { return real_.erase_exclusive(view, keys, n); });
  }
  Result<BulkReport> assign(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                            Outcome* outcomes) override {
    return half(count, [&](size_t n) { return real_.assign(view, keys, values, n, outcomes); });
  }
  Result<BulkReport> find_or_insert(const GridView& view, const uint32_t* keys, uint32_t* values, size_t count,
                                    Outcome* outcomes) override {
    return half(count, [&](size_t n) { return real_.find_or_insert(view, keys, values, n, outcomes); });
  }
  Result<BulkReport> find(const GridView& view, const uint32_t* keys, size_t count, uint32_t* values_out,
                          uint8_t* depths_out) override {
    return half(count, [&](size_t n) { return real_.find(view, keys, n, values_out, depths_out); });
  }
  Result<BulkReport> erase(const GridView& view, const uint32_t* keys, size_t count, uint32_t* old_values,
                           Outcome* outcomes) override {
    return half(count, [&](size_t n) { return real_.erase(view, keys, n, old_values, outcomes); });
  }
  Result<BulkReport> insert_refused(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                    Outcome* outcomes) override {
    return half(count, [&](size_t n) { return real_.insert_refused(view, keys, values, n, outcomes); });
  }
  Result<uint64_t> enumerate(const GridView& view, uint32_t* keys, uint32_t* values, size_t capacity) override {
    QRY_TRY(strike());
    return real_.enumerate(view, keys, values, capacity);
  }
  Result<uint64_t> rehash(const GridView& from, const GridView& to) override {
    QRY_TRY(strike());
    return real_.rehash(from, to);
  }
  Result<void> sweep(const GridView& view) override { return real_.sweep(view); }
  Result<Stats> stats(const GridView& view) override { return real_.stats(view); }

 private:
  static tl::unexpected<Error> failure() { return fail(ErrorCode::device, "this call fails in this test"); }
  Result<void> strike() {
    if (fate_.strikes()) return failure();
    return {};
  }
  template <class Operation>
  Result<BulkReport> half(size_t count, const Operation& operation) {
    if (!fate_.strikes()) return operation(count);
    QRY_TRY(operation(count / 2));
    return failure();
  }
  BulkOperations<GridView>& real_;
  Fate& fate_;
};

class FailingLane final : public Lane {
 public:
  FailingLane(std::unique_ptr<Lane> real, Fate& fate)
      : real_(std::move(real)), fate_(fate), pairs_(real_->pairs(), fate) {}
  Result<void> upload(void* to, const void* from_host, size_t size_bytes) override {
    QRY_TRY(strike());
    return real_->upload(to, from_host, size_bytes);
  }
  Result<void> download(void* to_host, const void* from, size_t size_bytes) override {
    QRY_TRY(strike());
    return real_->download(to_host, from, size_bytes);
  }
  Result<void> order_after_uploads() override {
    QRY_TRY(strike());
    return real_->order_after_uploads();
  }
  Result<void> wait() override {
    const bool fails = fate_.strikes();
    QRY_TRY(real_->wait());
    if (fails) return fail(ErrorCode::device, "this wait fails in this test");
    return {};
  }
  BulkOperations<GridView>& pairs() override { return pairs_; }

 private:
  Result<void> strike() {
    if (fate_.strikes()) return fail(ErrorCode::device, "this copy fails in this test");
    return {};
  }
  std::unique_ptr<Lane> real_;
  Fate& fate_;
  FailingPairs pairs_;
};

// An executor whose lanes fail.
class FailingExecutor final : public Executor {
 public:
  FailingExecutor(Executor& real, Fate& fate) : real_(real), fate_(fate) {}
  ExecutorKind kind() const override { return real_.kind(); }
  uint32_t parallelism() const override { return real_.parallelism(); }
  MemorySource& memory() override { return real_.memory(); }
  MemorySource& host_memory() override { return real_.host_memory(); }
  Result<void> upload(void* to, const void* from, size_t size) override { return real_.upload(to, from, size); }
  Result<void> download(void* to, const void* from, size_t size) override { return real_.download(to, from, size); }
  Result<std::unique_ptr<Lane>> make_lane() override {
    if (fate_.strikes()) return fail(ErrorCode::device, "no lane in this test");
    QRY_TRY_ASSIGN(auto lane, real_.make_lane());
    return std::make_unique<FailingLane>(std::move(lane), fate_);
  }
  BulkOperations<GridView>& pairs() override { return real_.pairs(); }
  BulkOperations<CompactView>& compact() override { return real_.compact(); }
  IndexOperations<uint32_t>& index32() override { return real_.index32(); }
  IndexOperations<uint64_t>& index64() override { return real_.index64(); }
  MultiOperations& multi() override { return real_.multi(); }

 private:
  Executor& real_;
  Fate& fate_;
};

class FailingMemory final : public MemorySource {
 public:
  FailingMemory(MemorySource& real, Fate& fate) : real_(real), fate_(fate) {}
  ~FailingMemory() override { CHECK(blocks_ == 0); }
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override {
    if (fate_.strikes()) return fail(ErrorCode::out_of_memory, "no more memory in this test");
    ++blocks_;
    return real_.allocate(size_bytes, label);
  }
  void release(const MemoryBlock& block) noexcept override {
    --blocks_;
    real_.release(block);
  }

 private:
  MemorySource& real_;
  Fate& fate_;
  std::atomic<int64_t> blocks_{0};
};

enum class Call : uint8_t { insert, assign, erase };

// Whether parts of a batch must be whole.
enum class Parts : uint8_t { whole, any };

struct Case {
  uint32_t lanes = 1;
  bool dirty = true;       // the tables have changed since they came
  uint32_t pages = 3;      // of the budget; the tables have up to four, and there are three
  uint32_t host_keys = 0;  // PagedOptions::host_keys_per_page
};

Words values_for(const Keys& keys, uint32_t tag) {
  Words values;
  for (const uint64_t key : keys) values.push_back(uint32_t((key * 0x9E3779B97F4A7C15u + tag) >> 33));
  return values;
}

// Puts something, then calls with a fate, and compares. Returns false when no call was left to fail.
bool one_fate(Executor& executor, const Case& each, Call call, int64_t good, int64_t bad, bool memory_fails,
              Parts parts) {
  INFO("call " << int(call) << ", " << good << " good calls, lanes " << each.lanes << ", dirty " << each.dirty
               << ", pages " << each.pages << ", host keys " << each.host_keys);
  std::mt19937_64 random(31);
  Fate lane_fate, memory_fate;
  Fate& fate = memory_fails ? memory_fate : lane_fate;
  FailingExecutor failing(executor, lane_fate);
  FailingMemory host_memory(executor.host_memory(), memory_fate);
  PagedOptions options;
  options.lanes = each.lanes;
  options.staged_pairs = 256;
  options.budget_bytes = each.lanes * 256 * 16 + 4096 + uint64_t{each.pages} * kQryPageBytes;
  options.host_keys_per_page = each.host_keys;
  options.max_load_factor = 0.1;  // 406 keys a page
  options.locality = test_locality();
  auto made = PagedGrid::create(failing, options, nullptr, &host_memory);
  REQUIRE(made.has_value());
  PagedGrid grid = std::move(*made);

  // Before: regions 1 to 3. The batch: some of their keys, new ones, and a new region.
  Keys before, batch, all;
  Map map;
  for (uint32_t i = 0; i < 2000; ++i) {
    const uint64_t key = paged_key(1 + i % 4, uint32_t(random() % 0xFFFFFFFFu));
    if (!map.emplace(key, 0).second) continue;
    all.push_back(key);
    if (i % 4 != 3 && i < 1200) before.push_back(key);
    if (i % 2 == i % 3 % 2 || i >= 1200) batch.push_back(key);
  }
  map.clear();
  const Words first = values_for(before, 1);
  REQUIRE(grid.insert(before, first).has_value());
  for (size_t i = 0; i < before.size(); ++i) map.emplace(before[i], first[i]);
  if (!each.dirty) REQUIRE(grid.evict_all().has_value());
  if (!each.dirty && each.host_keys == 0) REQUIRE(grid.prefetch(Words{1, 2, 3}).has_value());

  const Words values = values_for(batch, 2);
  const auto apply = [&]() -> Result<BulkReport> {
    switch (call) {
      case Call::insert: return grid.insert(batch, values);
      case Call::assign: return grid.assign(batch, values);
      default: return grid.erase(batch);
    }
  };
  Map after = map;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (call == Call::insert) after.emplace(batch[i], values[i]);
    else if (call == Call::assign) after[batch[i]] = values[i];
    else after.erase(batch[i]);
  }
  fate.set(good, bad);
  const auto report = apply();
  const bool struck = fate.spent();
  fate.set(INT64_MAX, 0);
  if (report.has_value()) {
    const uint64_t come = after.size() > map.size() ? after.size() - map.size() : 0,
                   gone = map.size() > after.size() ? map.size() - after.size() : 0;
    REQUIRE(report->inserted == come);
    REQUIRE(report->erased == gone);
    REQUIRE(report->inserted + report->present + report->assigned + report->erased + report->absent == batch.size());
  } else {
    REQUIRE(struck);
    REQUIRE(report.error().message.find("in this test") != std::string::npos);
  }

  Words found(all.size());
  const auto asked = grid.find(all, found);
  if (!asked) FAIL(asked.error().message);
  const auto value_in = [](const Map& in, uint64_t key) {
    const auto at = in.find(key);
    return at == in.end() ? kQryReservedValue : at->second;
  };
  uint64_t wrong = 0, old_in[5] = {}, new_in[5] = {}, present = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const uint32_t is_old = value_in(map, all[i]), is_new = value_in(after, all[i]);
    wrong += found[i] != is_old && found[i] != is_new;
    present += found[i] != kQryReservedValue;
    if (is_old == is_new) continue;
    const size_t region = size_t(all[i] >> 32);
    new_in[region] += found[i] == is_new;
    old_in[region] += found[i] != is_new;
  }
  REQUIRE(wrong == 0);
  if (parts == Parts::whole) REQUIRE(grid.size() == present);
  if (report.has_value()) REQUIRE(present == after.size());
  for (uint32_t region = 1; region <= 4; ++region) {
    INFO("region " << region << ": " << old_in[region] << " as before, " << new_in[region] << " changed");
    if (parts == Parts::whole) REQUIRE((old_in[region] == 0 || new_in[region] == 0));
    if (report.has_value()) REQUIRE(old_in[region] == 0);
  }

  // The rest.
  const auto again = apply();
  if (!again) FAIL(again.error().message);
  REQUIRE(grid.find(all, found).has_value());
  wrong = 0;
  for (size_t i = 0; i < all.size(); ++i) wrong += found[i] != value_in(after, all[i]);
  REQUIRE(wrong == 0);
  REQUIRE(grid.size() == after.size());
  REQUIRE((grid.stats().growths != 0) == (call != Call::erase));
  return struck;
}

void every_fate(Executor& executor, const Case& each, int64_t bad, bool memory_fails, Parts parts) {
  for (const Call call : {Call::insert, Call::assign, Call::erase}) {
    int64_t good = 0;
    while (one_fate(executor, each, call, good, bad, memory_fails, parts)) {
      good += quarry::test::kSanitized ? 5 : 1;
      REQUIRE(good < 400);
    }
    if (!memory_fails && each.host_keys == 0) REQUIRE(good > 5);
  }
}

// One executor of the host and CUDA are enough: what differs is in the lanes.
void on_few_executors(const std::function<void(Executor&)>& body) {
  on_each_executor([&](Executor& executor) {
    const bool host = executor.kind() == ExecutorKind::host;
    if (test_locality() == Locality::plain && (!host || executor.parallelism() == 2)) body(executor);
  });
}

}  // namespace

TEST_CASE("paged: if the executor fails once, at any call, each region's part of the batch is whole or not there") {
  on_few_executors([](Executor& executor) {
    for (const bool dirty : {true, false})
      for (const uint32_t pages : {2u, 8u}) every_fate(executor, {1, dirty, pages, 0}, 1, false, Parts::whole);
    every_fate(executor, {2, true, 3, 0}, 1, false, Parts::whole);
  });
}

TEST_CASE("paged: if the executor fails from any call on, nothing that was put before is lost") {
  on_few_executors([](Executor& executor) {
    every_fate(executor, {1, true, 3, 0}, INT64_MAX, false, Parts::any);
    every_fate(executor, {2, false, 8, 0}, INT64_MAX, false, Parts::any);
  });
}

TEST_CASE("paged: if memory is refused, once or from any allocation on, each region's part is whole or not there") {
  on_few_executors([](Executor& executor) {
    for (const int64_t bad : {int64_t{1}, INT64_MAX})
      for (const uint32_t host_keys : {0u, 100000u})
        for (const bool dirty : {true, false}) every_fate(executor, {1, dirty, 2, host_keys}, bad, true, Parts::whole);
  });
}

TEST_CASE("paged: a grid that gets no memory or no lane is not made, and leaves nothing behind") {
  on_few_executors([](Executor& executor) {
    Fate fate;
    FailingExecutor failing(executor, fate);
    FailingMemory memory(executor.memory(), fate);
    for (int64_t good = 0; good < 4; ++good) {
      fate.set(good, INT64_MAX);
      PagedOptions options;
      options.budget_bytes = 1 << 20;
      options.lanes = 3;
      const auto grid = PagedGrid::create(failing, options, &memory);
      fate.set(INT64_MAX, 0);
      REQUIRE(!grid.has_value());
      REQUIRE(grid.error().code == (good == 0 ? ErrorCode::out_of_memory : ErrorCode::device));
    }
  });
}

}  // namespace quarry::hashgrid::test::paged_failure_test
