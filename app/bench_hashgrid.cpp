// bench_hashgrid.cpp - the hash grid on host threads beside std::unordered_map: the same random keys in the same order.
// unordered_map is one-threaded by contract, so the table says how many threads each side had.
#include <algorithm>
#include <chrono>
#include <functional>
#include <unordered_map>

#include "app/bench.hpp"
#include "app/terminal.hpp"
#include "hashgrid/grid.hpp"
#include "hashgrid/parallel.hpp"

namespace quarry::app {
namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Distinct keys without any order: a bijection of the numbers from `offset` on, so that no set is needed to keep them apart. It is
// MurmurHash3's finaliser (A. Appleby, 2011), which has nothing in common with the grid's own mixer.
std::vector<uint32_t> distinct_keys(uint64_t count, uint32_t offset) {
  std::vector<uint32_t> keys(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t x = static_cast<uint32_t>(i) + offset;
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    keys[i] = x ^ (x >> 16);
  }
  std::erase(keys, kQryReservedKey);
  return keys;
}

struct Times {
  std::vector<double> insert, find, miss, erase;
};

Result<void> measure_grid(hashgrid::Executor& executor, double load, const std::vector<uint32_t>& keys, const std::vector<uint32_t>& absent,
                          uint32_t repeats, Times& times, hashgrid::Stats& stats) {
  std::vector<uint32_t> found(keys.size());
  for (uint32_t round = 0; round <= repeats; ++round) {
    hashgrid::GridOptions options;
    options.capacity = keys.size();
    options.max_load_factor = load;
    auto grid = hashgrid::Grid::create(executor, options);
    if (!grid) return tl::unexpected<Error>(grid.error());
    Result<hashgrid::BulkReport> report;
    const auto step = [&](std::vector<double>& into, auto&& call, uint64_t hashgrid::BulkReport::*counted, uint64_t expected) -> bool {
      const double seconds = seconds_of([&] { report = call(); });
      if (round > 0) into.push_back(seconds);
      return report && (*report).*counted == expected;
    };
    const bool right = step(times.insert, [&] { return grid->insert(keys, keys); }, &hashgrid::BulkReport::inserted, keys.size()) &&
                       step(times.find, [&] { return grid->find(keys, found); }, &hashgrid::BulkReport::present, keys.size()) &&
                       step(times.miss, [&] { return grid->find(absent, found); }, &hashgrid::BulkReport::absent, absent.size());
    if (!right) return report ? fail(ErrorCode::device, "the grid gave wrong counts: the measurement is void") : tl::unexpected<Error>(report.error());
    if (auto now = grid->stats()) stats = *now;
    if (!step(times.erase, [&] { return grid->erase(keys); }, &hashgrid::BulkReport::erased, keys.size()))
      return fail(ErrorCode::device, "the grid erased a wrong number of keys: the measurement is void");
    if (interrupt_flag().load()) return fail(ErrorCode::cancelled, "interrupted");
  }
  return {};
}

void measure_map(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& absent, uint32_t repeats, Times& times) {
  uint64_t sum = 0;
  for (uint32_t round = 0; round <= repeats && !interrupt_flag().load(); ++round) {
    std::unordered_map<uint32_t, uint32_t> map;
    map.reserve(keys.size());
    const double insert = seconds_of([&] { for (const uint32_t key : keys) map.emplace(key, key); });
    const double find = seconds_of([&] { for (const uint32_t key : keys) sum += map.find(key)->second; });
    const double miss = seconds_of([&] { for (const uint32_t key : absent) sum += map.count(key); });
    const double erase = seconds_of([&] { for (const uint32_t key : keys) sum += map.erase(key); });
    if (round == 0) continue;
    times.insert.push_back(insert), times.find.push_back(find), times.miss.push_back(miss), times.erase.push_back(erase);
  }
  // The sum is used, so that no look-up can be optimised away.
  asm volatile("" ::"r"(sum));
}

}  // namespace

Result<nlohmann::json> bench_hashgrid_host(const BenchOptions& options) {
  const auto executor = hashgrid::make_host_executor();
  const std::vector<uint32_t> keys = distinct_keys(options.keys, 0);
  std::vector<uint32_t> absent = distinct_keys(options.keys, static_cast<uint32_t>(options.keys));
  absent.resize(std::min(absent.size(), keys.size()));
  Times map;
  measure_map(keys, absent, options.repeats, map);
  if (interrupt_flag().load()) return fail(ErrorCode::cancelled, "interrupted");
  nlohmann::json rows = nlohmann::json::array(), grids = nlohmann::json::array();
  for (const double load : {0.5, 0.8, 0.9}) {
    Times grid;
    hashgrid::Stats stats;
    if (auto done = measure_grid(*executor, load, keys, absent, options.repeats, grid, stats); !done) return tl::unexpected<Error>(done.error());
    const auto row = [&](const char* what, const std::vector<double>& ours, const std::vector<double>& theirs, size_t count) {
      const double mine = static_cast<double>(count) / median(ours) * 1e-6, rival = static_cast<double>(count) / median(theirs) * 1e-6;
      const double spread = *std::ranges::max_element(ours) / *std::ranges::min_element(ours) - 1;
      rows.push_back({{"what", what}, {"load_factor", stats.load_factor}, {"million_per_s", mine}, {"spread", spread},
                      {"rival", "std::unordered_map"}, {"rival_million_per_s", rival}, {"ratio", mine / rival}});
    };
    row("insert", grid.insert, map.insert, keys.size());
    row("find, present", grid.find, map.find, keys.size());
    row("find, absent", grid.miss, map.miss, absent.size());
    row("erase", grid.erase, map.erase, keys.size());
    grids.push_back({{"load_factor", stats.load_factor}, {"depth_mean", stats.depth_mean}, {"depth_p99", stats.depth_p99},
                     {"depth_max", stats.depth_max}, {"bytes_per_key", static_cast<double>(stats.size_bytes) / static_cast<double>(stats.live)}});
  }
  return nlohmann::json{{"executor", executor->name()}, {"threads", executor->parallelism()}, {"rival_threads", 1}, {"keys", keys.size()},
                        {"repeats", options.repeats}, {"rows", rows}, {"grids", grids}};
}

}  // namespace quarry::app
