// SPDX-License-Identifier: Apache-2.0
// grid_test.cpp - the owner: which memory it uses, when it grows, what it frees, what its numbers mean.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "tests/hashgrid/backends.hpp"

namespace quarry::hashgrid::test::grid_test {
namespace {

// Counts allocations, and refuses them on request.
class WatchedMemory final : public MemorySource {
 public:
  explicit WatchedMemory(MemorySource& real) : real_(real) {}
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override {
    if (size_bytes > limit_bytes) return fail(ErrorCode::out_of_memory, std::string("no memory for ") + label);
    auto block = real_.allocate(size_bytes, label);
    if (block) {
      live_bytes += size_bytes;
      most_bytes = std::max(most_bytes, live_bytes);
      sizes_[block->data] = size_bytes;
    }
    return block;
  }
  void release(const MemoryBlock& block) noexcept override {
    live_bytes -= sizes_[block.data];
    sizes_.erase(block.data);
    real_.release(block);
  }
  size_t limit_bytes = ~size_t{0}, live_bytes = 0, most_bytes = 0;

 private:
  MemorySource& real_;
  std::map<void*, size_t> sizes_;
};

TEST_CASE("grid: lives in the memory it is given, grows through it, and gives everything back", "[quick]") {
  on_each_layout([](const auto& executor) {
    WatchedMemory memory(executor.memory());
    {
      auto grid = executor.create_grid({}, &memory);
      REQUIRE(grid.has_value());
      REQUIRE(memory.live_bytes == kQryPageBytes);
      const std::vector<uint32_t> keys = some_keys(1, 50000);
      const Array<uint32_t> k(executor, keys), v(executor, values_of(keys)), out(executor, keys.size());
      for (size_t at = 0; at < keys.size(); at += 5000) {
        REQUIRE(grid->insert(k.span().subspan(at, 5000), v.span().subspan(at, 5000)).has_value());
        REQUIRE(grid->size() == at + 5000);
        REQUIRE(memory.live_bytes == size_t{grid->page_count()} * kQryPageBytes);
        const void* const seen =
            executor.compact ? static_cast<const void*>(grid->compact_view().words) : grid->view().words;
        REQUIRE(grid->block().data == seen);
        REQUIRE(grid->find(k.span().first(at + 5000), out.span().first(at + 5000))->present == at + 5000);
      }
      REQUIRE(out.get() == values_of(keys));
      const auto stats = grid->stats();
      REQUIRE(stats->load_factor <= 0.8);
      REQUIRE(stats->load_factor > 0.3);
      REQUIRE(stats->version == grid->version());
      Grid moved = std::move(*grid);
      REQUIRE(moved.size() == keys.size());
    }
    REQUIRE(memory.live_bytes == 0);
  });
}

TEST_CASE("grid: where memory for growth is refused it fills up to its last slot, then refuses, and loses nothing",
          "[quick][one-caller]") {
  on_each_layout([](const auto& executor) {
    WatchedMemory memory(executor.memory());
    memory.limit_bytes = 4 * kQryPageBytes;
    auto grid = executor.create_grid({.capacity = 3 * 3000}, &memory);
    REQUIRE(grid.has_value());
    const std::vector<uint32_t> keys = some_keys(2, 30000);
    const Array<uint32_t> k(executor, keys), v(executor, values_of(keys)), out(executor, keys.size());
    std::vector<uint64_t> refused;
    const auto report = grid->insert(k.span(), v.span(), &refused);
    REQUIRE_FALSE(report.has_value());
    REQUIRE(report.error().code == ErrorCode::full);
    REQUIRE(report.error().message.find("no memory for hash grid") != std::string::npos);
    REQUIRE(grid->size() + refused.size() == keys.size());
    REQUIRE(grid->size() > size_t{grid->page_count()} * 3900);
    REQUIRE(grid->find(k.span(), out.span())->present == grid->size());
    REQUIRE(memory.live_bytes == size_t{grid->page_count()} * kQryPageBytes);
  });
}

TEST_CASE("grid: grows though most of its keys stay in one page, whose stash takes them", "[quick]") {
  on_each_executor([](Executor& executor) {
    auto grid = Grid::create(executor, {.capacity = 600000, .locality = test_locality()});
    REQUIRE(grid.has_value());
    const uint32_t pages = grid->page_count();
    // Half of one page, and later all of it.
    const std::vector<uint32_t> keys = keys_of_page(On<GridView>(executor), pages, pages * 2, 6000);
    const Array<uint32_t> k(executor, keys), v(executor, values_of(keys)), out(executor, keys.size());
    REQUIRE(grid->insert(k.span(), v.span())->inserted == keys.size());
    REQUIRE(grid->reserve(uint64_t(2.0 * pages * 0.8 * kQrySlotsPerPage) - 1000).has_value());
    REQUIRE(grid->page_count() == pages * 2);
    REQUIRE(grid->find(k.span(), out.span())->present == keys.size());
    REQUIRE(out.get() == values_of(keys));
    REQUIRE(fault_in(executor, *grid) == "");
    REQUIRE(grid->stats()->overflow_live > 1500);
  });
}

TEST_CASE("grid: growth under churn keeps every pair, and keys that are there already do not multiply pages",
          "[quick]") {
  on_each_layout([](const auto& executor) {
    auto grid = executor.create_grid({.capacity = 12000});
    REQUIRE(grid.has_value());
    const std::vector<uint32_t> keys = some_keys(3, 9000);
    const Array<uint32_t> k(executor, keys), v(executor, values_of(keys));
    for (int again = 0; again < 20; ++again) REQUIRE(grid->assign(k.span(), v.span()).has_value());
    REQUIRE(grid->size() == keys.size());
    REQUIRE(grid->page_count() <= 10);
    const uint32_t pages = grid->page_count();
    // Churn at a steady size: slots freed by erases are reused, so the table keeps its size.
    for (int round = 0; round < 60; ++round) {
      REQUIRE(grid->erase(k.span().subspan(size_t(round) % 9 * 1000, 1000))->erased == 1000);
      REQUIRE(grid->insert(k.span().subspan(size_t(round) % 9 * 1000, 1000),
                           v.span().subspan(size_t(round) % 9 * 1000, 1000))
                  ->inserted == 1000);
    }
    REQUIRE(grid->page_count() == pages);
    REQUIRE(grid->stats()->live == keys.size());
  });
}

TEST_CASE("grid: known keys with some new ones among them are all in, and the bound holds for the next batch",
          "[quick]") {
  on_each_layout([](const auto& executor) {
    const std::vector<uint32_t> keys = some_keys(17, 45000);
    const std::vector<uint32_t> known(keys.begin(), keys.begin() + 20000), others(keys.begin() + 25000, keys.end());
    std::vector<uint32_t> mixed = known;  // a sample of a batch may be checked before it counts as known
    std::set<size_t> looked_at;
    for (size_t i = 0; i < 1024; ++i) looked_at.insert(mixed.size() * i / 1024);
    size_t fresh = 0;
    for (size_t i = 0; i < mixed.size() && fresh < 5000; i += 2)
      if (!looked_at.contains(i)) mixed[i] = keys[20000 + fresh++];
    auto grid = executor.create_grid({.capacity = known.size()});
    REQUIRE(grid.has_value());
    const Array<uint32_t> k(executor, known), m(executor, mixed), o(executor, others), out(executor, known.size());
    REQUIRE(grid->insert(k.span(), Array<uint32_t>(executor, values_of(known)).span())->inserted == known.size());
    const auto report = grid->assign(m.span(), Array<uint32_t>(executor, values_of(mixed, 1)).span());
    REQUIRE(report.has_value());
    REQUIRE(report->inserted == fresh);
    REQUIRE(report->assigned == mixed.size() - fresh);
    REQUIRE(grid->size() == known.size() + fresh);
    REQUIRE(grid->find(m.span(), out.span())->present == mixed.size());
    REQUIRE(out.get() == values_of(mixed, 1));
    REQUIRE(grid->insert(o.span(), Array<uint32_t>(executor, values_of(others)).span())->inserted == others.size());
    REQUIRE(grid->stats()->load_factor <= 0.8);
    REQUIRE(grid->find(k.span(), out.span())->present == known.size());
    REQUIRE(fault_in(executor, *grid) == "");
  });
}

TEST_CASE("grid: reserve makes room once, and the batch it was made for does not grow the table again", "[quick]") {
  on_each_layout([](const auto& executor) {
    auto grid = executor.create_grid({});
    REQUIRE(grid.has_value());
    REQUIRE(grid->reserve(100000).has_value());
    const uint32_t pages = grid->page_count();
    REQUIRE(pages == 31);
    const std::vector<uint32_t> keys = some_keys(4, 100000);
    const Array<uint32_t> k(executor, keys), v(executor, values_of(keys));
    REQUIRE(grid->insert(k.span(), v.span())->inserted == keys.size());
    REQUIRE(grid->page_count() == pages);
    REQUIRE(grid->reserve(10).has_value());
    REQUIRE(grid->page_count() == pages);
    REQUIRE(grid->clear().has_value());
    REQUIRE(grid->size() == 0);
    REQUIRE(grid->enumerate(true)->keys.empty());
    REQUIRE(grid->stats()->live == 0);
  });
}

TEST_CASE("grid: keys added through view() by the user's own code are found, counted by stats and listed") {
  const auto executor = make_host_executor(2);
  auto grid = Grid::create(*executor, {.capacity = 3000});
  REQUIRE(grid.has_value());
  for (uint32_t key = 1; key <= 1000; ++key) REQUIRE(insert(grid->view(), key, key + 7) == Outcome::inserted);
  REQUIRE(find(grid->view(), 1000).value == 1007);
  REQUIRE(find(grid->view(), 1001).hit == false);
  REQUIRE(grid->stats()->live == 1000);
  const auto pairs = grid->enumerate(true);
  REQUIRE(pairs->keys.size() == 1000);
  REQUIRE(pairs->keys.front() == 1);
  REQUIRE(pairs->values.back() == 1007);
}

}  // namespace
}  // namespace quarry::hashgrid::test::grid_test
