// SPDX-License-Identifier: Apache-2.0
// host.cpp - rounds of the two workloads, unique random keys and bricks of a terrain, over all tables; medians and
// ratios of the rounds.
#include "bench/hashgrid/host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <span>

#include "base/parallel.hpp"
#include "bench/hashgrid/host_ceilings.hpp"
#include "bench/hashgrid/host_tables.hpp"
#include "bench/hashgrid/terrain.hpp"
#include "hashgrid/grid.hpp"

namespace quarry::bench {
namespace {

using nlohmann::json;
using Keys = std::vector<uint32_t>;

// The finaliser of MurmurHash3 (A. Appleby, 2011): a bijection unrelated to the grid's own mixer.
uint32_t shuffled(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}
uint32_t value_of(uint32_t key) { return (key * 0x9E3779B1u ^ 0x12345678u) & 0x7FFFFFFFu; }

// Unique keys in random order: from number `first` on in a permutation of all 32-bit numbers.
Keys uniform_keys(uint64_t first, uint64_t count) {
  Keys keys(count);
  for (uint64_t i = 0; i < count; ++i) keys[i] = shuffled(uint32_t(first + i) ^ 0x3c6ef372u);
  std::replace(keys.begin(), keys.end(), kQryReservedKey, shuffled(0xFFFFFFFFu ^ 0x3c6ef372u));
  return keys;
}

Keys values_of(const Keys& keys) {
  Keys values(keys.size());
  std::transform(keys.begin(), keys.end(), values.begin(), value_of);
  return values;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

enum class Ceiling { reads, swaps, copy };
struct Operation {
  const char* name;
  Ceiling ceiling;
};

// One entry a round: operations a second by the wall clock, and nanoseconds of all threads' processor time per
// operation. Other work on the machine does not disturb the latter.
struct Measured {
  std::vector<double> million_per_s, cpu_ns;
};
using Rates = std::map<std::string, std::vector<Measured>>;  // operation -> table

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

class Rounds {
 public:
  Rounds(const HostBenchOptions& options, std::vector<BenchTable>& tables) : options_(options), tables_(tables) {}

  bool wanted(const std::string& name) const { return name.find(options_.only) != std::string::npos; }

  // run() -> whether the result was right. It always runs: later steps build on it.
  template <class Run>
  void step(size_t which, bool keep, const char* name, uint64_t operations, const Run& run) {
    const double cpu_start = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    const bool right = run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double cpu_seconds = processor_seconds() - cpu_start;
    if (!right && wrong_.empty()) wrong_ = tables_[which].name + " gave a wrong answer to '" + name + "'";
    if (!keep || !wanted(name)) return;
    auto& rounds = rates_[name];
    rounds.resize(tables_.size());
    rounds[which].million_per_s.push_back(double(operations) / seconds * 1e-6);
    rounds[which].cpu_ns.push_back(cpu_seconds / double(operations) * 1e9);
  }

  const Rates& rates() const { return rates_; }
  const std::string& wrong() const { return wrong_; }

 private:
  const HostBenchOptions& options_;
  std::vector<BenchTable>& tables_;
  Rates rates_;
  std::string wrong_;
};

constexpr Operation kUniform[] = {{"U: build (create and insert)", Ceiling::copy},
                                  {"U: insert", Ceiling::swaps},
                                  {"U: find, present", Ceiling::reads},
                                  {"U: find, absent", Ceiling::reads},
                                  {"U: assign", Ceiling::swaps},
                                  {"U: erase half", Ceiling::swaps},
                                  {"U: find_or_insert, half new", Ceiling::swaps},
                                  {"U: erase", Ceiling::swaps},
                                  {"U: insert, in use", Ceiling::swaps},
                                  {"U: enumerate", Ceiling::copy},
                                  {"U: clear", Ceiling::copy},
                                  {"U: insert, growing", Ceiling::swaps}};
constexpr Operation kBricks[] = {
    {"V: scan insert", Ceiling::swaps}, {"V: self", Ceiling::reads}, {"V: nbr6", Ceiling::reads}};
constexpr uint64_t kGrowingBatches = 32;

struct Uniform {
  Keys keys, values, asked, asked_values, absent, absent_values;
  explicit Uniform(uint64_t count)
      : keys(uniform_keys(0, count)),
        values(values_of(keys)),
        asked(keys),
        absent(uniform_keys(count, count)),
        absent_values(count, kQryReservedValue) {
    // Looked up in another order than inserted: a node-based table would find them consecutively.
    for (uint64_t i = count; i > 1; --i) std::swap(asked[i - 1], asked[(uint64_t{shuffled(uint32_t(i))} * i) >> 32]);
    asked_values = values_of(asked);
  }
};

Result<void> uniform_round(Rounds& rounds, HostTable& table, size_t c, bool keep, const Uniform& u, Keys& out) {
  const uint64_t count = u.keys.size(), half = count / 2;
  Result<void> made;
  rounds.step(c, keep, kUniform[0].name, count,
              [&] { return (made = table.make(count)) && table.insert(u.keys, u.values) == count; });
  QRY_TRY(made);
  table.clear();
  rounds.step(c, keep, kUniform[1].name, count, [&] { return table.insert(u.keys, u.values) == count; });
  rounds.step(c, keep, kUniform[2].name, count, [&] { return table.find(u.asked, out) == count; });
  bool right = out == u.asked_values;
  rounds.step(c, keep, kUniform[3].name, count, [&] { return table.find(u.absent, out) == 0; });
  right = right && out == u.absent_values;
  rounds.step(c, keep, kUniform[4].name, count, [&] { return table.assign(u.asked, u.asked_values) == count; });
  rounds.step(c, keep, kUniform[5].name, half, [&] { return table.erase(std::span(u.asked).first(half)) == half; });
  out = u.asked_values;
  rounds.step(c, keep, kUniform[6].name, count, [&] { return table.find_or_insert(u.asked, out) == half; });
  right = right && out == u.asked_values;
  rounds.step(c, keep, kUniform[7].name, count, [&] { return table.erase(u.asked) == count; });
  rounds.step(c, keep, kUniform[8].name, count, [&] { return table.insert(u.keys, u.values) == count; });
  {
    Keys keys, values;
    rounds.step(c, keep, kUniform[9].name, count, [&] { return table.enumerate(keys, values), keys.size() == count; });
    right = right && values == values_of(keys);
  }
  rounds.step(c, keep, kUniform[10].name, count, [&] { return table.clear(), right; });
  if (rounds.wanted(kUniform[11].name)) {
    if (made = table.make(0); !made) return made;
    rounds.step(c, keep, kUniform[11].name, count, [&] {
      uint64_t fresh = 0;
      for (uint64_t b = 0; b < kGrowingBatches; ++b) {
        const uint64_t first = count * b / kGrowingBatches, last = count * (b + 1) / kGrowingBatches;
        fresh += table.insert(std::span(u.keys).subspan(first, last - first),
                              std::span(u.values).subspan(first, last - first));
      }
      return fresh == count;
    });
  }
  return table.make(0);  // frees the memory before the next table's turn
}

struct Bricks {
  Keys keys, values, neighbours;
  uint64_t neighbours_there = 0;
  explicit Bricks(uint64_t count) : keys(terrain_bricks(count)), values(values_of(keys)) {
    neighbours.reserve(keys.size() * 6);
    for (const uint32_t key : keys)
      for (const uint32_t step : {1u, 1u << 11, 1u << 21}) {
        // Past the border: an absent brick, instead of the one on the opposite side.
        const uint32_t lowest = step == 1 ? key & 2047u : step == 1u << 11 ? key >> 11 & 1023u : key >> 21;
        neighbours.push_back(lowest == 0 ? 2047u : key - step);
        neighbours.push_back(key + step);
      }
    for (const uint32_t key : neighbours) neighbours_there += std::binary_search(keys.begin(), keys.end(), key);
  }
};

Result<void> brick_round(Rounds& rounds, HostTable& table, size_t c, bool keep, const Bricks& v, Keys& out) {
  const uint64_t count = v.keys.size();
  QRY_TRY(table.make(count));
  rounds.step(c, keep, kBricks[0].name, count, [&] { return table.insert(v.keys, v.values) == count; });
  rounds.step(c, keep, kBricks[1].name, count,
              [&] { return table.find(v.keys, std::span(out).first(count)) == count; });
  bool right = std::equal(v.values.begin(), v.values.end(), out.begin());
  rounds.step(c, keep, kBricks[2].name, v.neighbours.size(),
              [&] { return table.find(v.neighbours, out) == v.neighbours_there && right; });
  return table.make(0);
}

json grid_facts(double load, const Keys& keys, const Keys& values) {
  const auto executor = hashgrid::make_host_executor();
  auto grid = hashgrid::Grid::create(*executor, {.capacity = keys.size(), .max_load_factor = load});
  if (!grid || !grid->insert(keys, values)) return {};
  const auto stats = grid->stats();
  if (!stats) return {};
  return {{"keys", keys.size()},
          {"wanted", load},
          {"load_factor", stats->load_factor},
          {"depth_mean", stats->depth_mean},
          {"depth_p99", stats->depth_p99},
          {"depth_max", stats->depth_max},
          {"bytes_per_key", double(stats->size_bytes) / double(stats->live)}};
}

}  // namespace

std::vector<std::string> hashgrid_host_rows() {
  std::vector<std::string> names;
  for (const Operation& o : kUniform) names.push_back(o.name);
  for (const Operation& o : kBricks) names.push_back(o.name);
  return names;
}

Result<json> bench_hashgrid_host(const HostBenchOptions& options) {
  std::vector<std::string> missing;
  std::vector<BenchTable> tables;
  for (const double load : options.loads) tables.push_back(grid_table(load));
  const size_t grids = tables.size();
  for (BenchTable& baseline : baselines(missing)) tables.push_back(std::move(baseline));

  json rows = json::array(), ceilings = json::array(), facts = json::array();
  for (const uint64_t size : options.sizes) {
    Rounds rounds(options, tables);
    const auto any = [&](std::span<const Operation> operations) {
      return std::any_of(operations.begin(), operations.end(),
                         [&](const Operation& o) { return rounds.wanted(o.name); });
    };
    std::vector<double> reads, swaps, copies;
    for (uint32_t round = 0; round <= options.rounds; ++round) {
      // As large as the table at a load of 0.8.
      const HostCeilings c = measure_host_ceilings(size_t(double(size) * 10));
      if (round > 0) reads.push_back(c.read_8), swaps.push_back(c.swap_8), copies.push_back(c.copy_gb);
    }
    const double read_8 = median(reads), swap_8 = median(swaps), copy_gb = median(copies);
    ceilings.push_back({{"keys", size}, {"read_8", read_8}, {"swap_8", swap_8}, {"copy_gb", copy_gb}});

    const auto all_rounds = [&](const std::string& stage, const auto& one_round) -> Result<void> {
      for (uint32_t round = 0; round <= options.rounds; ++round)
        for (size_t c = 0; c < tables.size(); ++c) {
          if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "interrupted");
          options.progress.say(stage, double(round * tables.size() + c) / double((options.rounds + 1) * tables.size()));
          QRY_TRY(one_round(c, round > 0));
          if (!rounds.wrong().empty()) return fail(ErrorCode::device, rounds.wrong() + ": the measurement is void");
        }
      return {};
    };
    if (any(kUniform)) {
      const Uniform u(size);
      Keys out(size);
      QRY_TRY(all_rounds(fmt::format("{} random keys on the host", size), [&](size_t c, bool keep) {
        return uniform_round(rounds, *tables[c].table, c, keep, u, out);
      }));
      for (const double load : options.loads) facts.push_back(grid_facts(load, u.keys, u.values));
    }
    if (any(kBricks)) {
      const Bricks v(size);
      Keys out(v.neighbours.size());
      QRY_TRY(all_rounds(fmt::format("{} bricks of a terrain on the host", size),
                         [&](size_t c, bool keep) { return brick_round(rounds, *tables[c].table, c, keep, v, out); }));
    }

    const auto add_rows = [&](std::span<const Operation> operations) {
      for (const Operation& operation : operations) {
        if (!rounds.wanted(operation.name)) continue;
        const auto& rates = rounds.rates().at(operation.name);
        for (size_t g = 0; g < grids; ++g) {
          const std::vector<double>& ours = rates[g].million_per_s;
          const double rate = median(ours);
          // A copy moves 8 bytes read and 8 written for each key.
          const double ceiling = operation.ceiling == Ceiling::reads   ? read_8
                                 : operation.ceiling == Ceiling::swaps ? swap_8
                                                                       : copy_gb * 1e3 / 16;
          json ratios = json::object(), cpu_ratios = json::object();
          for (size_t c = grids; c < tables.size(); ++c) {
            std::vector<double> each, each_cpu;
            for (size_t round = 0; round < ours.size(); ++round) {
              each.push_back(ours[round] / rates[c].million_per_s[round]);
              each_cpu.push_back(rates[c].cpu_ns[round] / rates[g].cpu_ns[round]);
            }
            ratios[tables[c].name] = median(each);
            cpu_ratios[tables[c].name] = median(each_cpu);
          }
          rows.push_back(
              {{"what", operation.name},
               {"keys", size},
               {"load_factor", options.loads[g]},
               {"million_per_s", rate},
               {"spread",
                *std::max_element(ours.begin(), ours.end()) / *std::min_element(ours.begin(), ours.end()) - 1},
               {"of_ceiling", rate / ceiling},
               {"ceiling", operation.ceiling == Ceiling::reads   ? "random reads"
                           : operation.ceiling == Ceiling::swaps ? "random CAS"
                                                                 : "copy"},
               {"ratios", ratios},
               {"cpu_ns", median(rates[g].cpu_ns)},
               {"cpu_ratios", cpu_ratios}});
        }
      }
    };
    add_rows(kUniform);
    add_rows(kBricks);
  }
  json names = json::array();
  for (size_t c = grids; c < tables.size(); ++c)
    names.push_back({{"name", tables[c].name}, {"threads", tables[c].threads}});
  return json{{"executor", "host"},
              {"threads", thread_count()},
              {"rounds", options.rounds},
              {"rivals", names},
              {"missing_rivals", missing},
              {"ceilings", ceilings},
              {"rows", rows},
              {"grids", facts}};
}

std::string hashgrid_host_table(const json& result) {
  std::string text = fmt::format(
      "Host executor, {} threads; 10^6 keys a second, medians of {} rounds. "
      "a / b: a times the rival's rate by the clock; by processor time, b keys where\n"
      "the rival does one (undisturbed, as many threads as ours against one make "
      "a of b times their number).\n",
      result["threads"].get<uint32_t>(), result["rounds"].get<uint32_t>());
  for (const json& name : result["missing_rivals"])
    text += fmt::format("Not in this build: {}.\n", name.get<std::string>());
  for (const json& c : result["ceilings"]) {
    const uint64_t keys = c["keys"];
    text += fmt::format(
        "\n{} keys. Ceilings in memory of that table's size: {:.0f} random 8-byte reads, "
        "{:.0f} random CAS, copy {:.1f} GB/s\n{:<30} {:>5} {:>9} {:>16} {:>7}",
        keys, c["read_8"].get<double>(), c["swap_8"].get<double>(), c["copy_gb"].get<double>(), "", "load", "10^6/s",
        "of ceiling", "cpu ns");
    for (const json& baseline : result["rivals"])
      text += fmt::format(" {:>28}",
                          fmt::format("{} ({})", baseline["name"].get<std::string>(), baseline["threads"].get<int>()));
    text += '\n';
    for (const json& row : result["rows"]) {
      if (row["keys"].get<uint64_t>() != keys) continue;
      text +=
          fmt::format("{:<30} {:>5.2f} {:>9.1f} {:>4.2f} {:<11} {:>7.1f}", row["what"].get<std::string>(),
                      row["load_factor"].get<double>(), row["million_per_s"].get<double>(),
                      row["of_ceiling"].get<double>(), row["ceiling"].get<std::string>(), row["cpu_ns"].get<double>());
      for (const json& baseline : result["rivals"]) {
        const std::string name = baseline["name"];
        text += fmt::format(" {:>28}", fmt::format("{:.2f} / {:.2f}", row["ratios"][name].get<double>(),
                                                   row["cpu_ratios"][name].get<double>()));
      }
      text += '\n';
    }
  }
  return text;
}

}  // namespace quarry::bench
