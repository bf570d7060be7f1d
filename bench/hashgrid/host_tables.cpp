// SPDX-License-Identifier: Apache-2.0
// host_tables.cpp - the grid, std::unordered_map, absl::flat_hash_map and tbb::concurrent_hash_map; names the ones not
// installed.
#include "bench/hashgrid/host_tables.hpp"

#include <functional>
#include <unordered_map>

#include "base/parallel.hpp"
#include "hashgrid/grid.hpp"

#if QRY_BENCH_ABSL
#include <absl/container/flat_hash_map.h>
#endif
#if QRY_BENCH_TBB
#include <tbb/concurrent_hash_map.h>

#include <atomic>
#endif

namespace quarry::bench {
namespace {

class GridTable final : public HostTable {
 public:
  explicit GridTable(double load) : load_(load), executor_(hashgrid::make_host_executor()) {}
  Result<void> make(uint64_t capacity) override {
    grid_.reset();
    QRY_TRY_ASSIGN(auto made, hashgrid::Grid::create(*executor_, {.capacity = capacity, .max_load_factor = load_}));
    grid_ = std::make_unique<hashgrid::Grid>(std::move(made));
    return {};
  }
  uint64_t insert(std::span<const uint32_t> keys, std::span<const uint32_t> values) override {
    return count(grid_->insert(keys, values), &R::inserted);
  }
  uint64_t find(std::span<const uint32_t> keys, std::span<uint32_t> values_out) override {
    return count(grid_->find(keys, values_out), &R::present);
  }
  uint64_t assign(std::span<const uint32_t> keys, std::span<const uint32_t> values) override {
    return count(grid_->assign(keys, values), &R::assigned);
  }
  uint64_t find_or_insert(std::span<const uint32_t> keys, std::span<uint32_t> values) override {
    return count(grid_->find_or_insert(keys, values), &R::inserted);
  }
  uint64_t erase(std::span<const uint32_t> keys) override { return count(grid_->erase(keys), &R::erased); }
  void enumerate(std::vector<uint32_t>& keys, std::vector<uint32_t>& values) override {
    if (auto pairs = grid_->enumerate(false)) keys = std::move(pairs->keys), values = std::move(pairs->values);
  }
  void clear() override { (void)grid_->clear(); }

 private:
  using R = hashgrid::BulkReport;
  static uint64_t count(const Result<R>& report, uint64_t R::*what) { return report ? (*report).*what : ~uint64_t{0}; }
  double load_;
  std::unique_ptr<hashgrid::Executor> executor_;
  std::unique_ptr<hashgrid::Grid> grid_;
};

// std::unordered_map and absl::flat_hash_map: one thread, one key after the other, as their contract requires.
template <class Map>
class OneThreadTable final : public HostTable {
 public:
  Result<void> make(uint64_t capacity) override {
    Map().swap(map_);
    if (capacity != 0) map_.reserve(capacity);
    return {};
  }
  uint64_t insert(std::span<const uint32_t> keys, std::span<const uint32_t> values) override {
    uint64_t fresh = 0;
    for (size_t i = 0; i < keys.size(); ++i) fresh += map_.emplace(keys[i], values[i]).second;
    return fresh;
  }
  uint64_t find(std::span<const uint32_t> keys, std::span<uint32_t> values_out) override {
    uint64_t hits = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto at = map_.find(keys[i]);
      const bool hit = at != map_.end();
      values_out[i] = hit ? at->second : ~0u;
      hits += hit;
    }
    return hits;
  }
  uint64_t assign(std::span<const uint32_t> keys, std::span<const uint32_t> values) override {
    uint64_t there = 0;
    for (size_t i = 0; i < keys.size(); ++i) there += !map_.insert_or_assign(keys[i], values[i]).second;
    return there;
  }
  uint64_t find_or_insert(std::span<const uint32_t> keys, std::span<uint32_t> values) override {
    uint64_t fresh = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto [at, is_new] = map_.emplace(keys[i], values[i]);
      values[i] = at->second;
      fresh += is_new;
    }
    return fresh;
  }
  uint64_t erase(std::span<const uint32_t> keys) override {
    uint64_t gone = 0;
    for (const uint32_t key : keys) gone += map_.erase(key);
    return gone;
  }
  void enumerate(std::vector<uint32_t>& keys, std::vector<uint32_t>& values) override {
    keys.reserve(map_.size()), values.reserve(map_.size());
    for (const auto& [key, value] : map_) keys.push_back(key), values.push_back(value);
  }
  void clear() override { map_.clear(); }

 private:
  Map map_;
};

#if QRY_BENCH_TBB
// tbb::concurrent_hash_map: the batch is split into as many pieces as threads.
class TbbTable final : public HostTable {
 public:
  Result<void> make(uint64_t capacity) override {
    map_ = capacity != 0 ? std::make_unique<Map>(capacity) : std::make_unique<Map>();
    return {};
  }
  uint64_t insert(std::span<const uint32_t> keys, std::span<const uint32_t> values) override {
    return each(keys.size(), [&](size_t i) { return map_->insert({keys[i], values[i]}); });
  }
  uint64_t find(std::span<const uint32_t> keys, std::span<uint32_t> values_out) override {
    return each(keys.size(), [&](size_t i) {
      Map::const_accessor at;
      const bool hit = map_->find(at, keys[i]);
      values_out[i] = hit ? at->second : ~0u;
      return hit;
    });
  }
  uint64_t assign(std::span<const uint32_t> keys, std::span<const uint32_t> values) override {
    return each(keys.size(), [&](size_t i) {
      Map::accessor at;
      const bool fresh = map_->insert(at, keys[i]);
      at->second = values[i];
      return !fresh;
    });
  }
  uint64_t find_or_insert(std::span<const uint32_t> keys, std::span<uint32_t> values) override {
    return each(keys.size(), [&](size_t i) {
      Map::const_accessor at;
      const bool fresh = map_->insert(at, {keys[i], values[i]});
      values[i] = at->second;
      return fresh;
    });
  }
  uint64_t erase(std::span<const uint32_t> keys) override {
    return each(keys.size(), [&](size_t i) { return map_->erase(keys[i]); });
  }
  void enumerate(std::vector<uint32_t>& keys, std::vector<uint32_t>& values) override {
    keys.reserve(map_->size()), values.reserve(map_->size());
    for (const auto& [key, value] : *map_) keys.push_back(key), values.push_back(value);
  }
  void clear() override { map_->clear(); }

 private:
  using Map = tbb::concurrent_hash_map<uint32_t, uint32_t>;
  template <class Body>
  static uint64_t each(size_t count, const Body& body) {
    std::atomic<uint64_t> sum{0};
    parallel_for(count, 4096, [&](size_t begin, size_t end) {
      uint64_t here = 0;
      for (size_t i = begin; i < end; ++i) here += body(i);
      sum.fetch_add(here, std::memory_order_relaxed);
    });
    return sum.load();
  }
  std::unique_ptr<Map> map_;
};
#endif

}  // namespace

BenchTable grid_table(double max_load_factor) {
  return {"grid", thread_count(), std::make_unique<GridTable>(max_load_factor)};
}

std::vector<BenchTable> baselines([[maybe_unused]] std::vector<std::string>& missing) {
  std::vector<BenchTable> found;
#if QRY_BENCH_ABSL
  found.push_back(
      {"absl::flat_hash_map", 1, std::make_unique<OneThreadTable<absl::flat_hash_map<uint32_t, uint32_t>>>()});
#else
  missing.push_back("absl::flat_hash_map (package libabsl-dev)");
#endif
#if QRY_BENCH_TBB
  found.push_back({"tbb::concurrent_hash_map", thread_count(), std::make_unique<TbbTable>()});
#else
  missing.push_back("tbb::concurrent_hash_map (package libtbb-dev)");
#endif
  found.push_back(
      {"std::unordered_map", 1, std::make_unique<OneThreadTable<std::unordered_map<uint32_t, uint32_t>>>()});
  return found;
}

}  // namespace quarry::bench
