// SPDX-License-Identifier: Apache-2.0
// paged.cpp - the rows of `quarry bench paged`.
#include "bench/tables/paged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <utility>

#include "base/parallel.hpp"
#include "hashgrid/paged_grid.hpp"

namespace quarry::bench {
// Its own names: sources are compiled together.
namespace paged_rows {
namespace {

using nlohmann::json;
using namespace hashgrid;

constexpr size_t kGrain = 65536;
constexpr uint64_t kMostQuestions = uint64_t{1} << 22;
constexpr double kLoad = 0.8;
constexpr uint32_t kLanes = 4, kFewLanes = 3;
// Pairs that a lane stages: what tables leave of a tenth of the static table's memory, which the paper's tables of a
// million pairs take; within these.
constexpr uint64_t kLeastStaged = uint64_t{1} << 18, kMostStaged = uint64_t{1} << 20;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
template <class Call>
double seconds_of(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
uint64_t pages_for(uint64_t pairs) { return uint64_t(double(pairs) / kLoad / kQrySlotsPerPage) + 1; }

// The i-th key of a region: all are different, none is reserved (that would be number 4,050,964,655).
constexpr uint32_t kKeyFactor = 0x9E3779B1u, kKeyInverse = 0x0E8B2F51u;
static_assert(kKeyFactor * kKeyInverse == 1u);
uint32_t key_of(uint64_t i) { return uint32_t(i) * kKeyFactor; }
uint32_t value_of(uint64_t key) { return uint32_t((key * 0x9E3779B97F4A7C15u) >> 33); }

// An array in host memory that copies reach fastest.
template <class T>
class Pinned {
 public:
  static Result<Pinned> of(Executor& executor, size_t count) {
    Pinned array;
    array.memory_ = &executor.host_memory();
    array.count_ = count;
    QRY_TRY_ASSIGN(array.block_, array.memory_->allocate(std::max<size_t>(1, count * sizeof(T)), "bench"));
    return array;
  }
  Pinned(Pinned&& other) noexcept
      : memory_(other.memory_), count_(other.count_), block_(std::exchange(other.block_, {})) {}
  Pinned& operator=(Pinned&&) = delete;
  ~Pinned() {
    if (block_.data != nullptr) memory_->release(block_);
  }
  T* data() const { return static_cast<T*>(block_.data); }
  size_t size() const { return count_; }
  T& operator[](size_t i) const { return data()[i]; }

 private:
  Pinned() = default;
  MemorySource* memory_ = nullptr;
  size_t count_ = 0;
  MemoryBlock block_;
};

template <class Body>
void for_all(size_t count, const Body& body) {
  parallel_for(count, kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) body(i);
  });
}

// Which part of the static table a key is in.
uint32_t part_of(uint64_t key, uint32_t parts) {
  uint64_t mixed = (key ^ (key >> 32)) * 0xD6E8FEB86659FD93u;
  mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93u;
  return uint32_t(((mixed >> 32) * parts) >> 32);
}
// What it is looked up by there, in 32 bits: its number among all keys, which differs from key to key, mixed.
uint32_t static_key(uint64_t key, uint64_t each) {
  const uint32_t in_region = uint32_t(key) * kKeyInverse;
  return key_of((key >> 32) * each + in_region);
}

struct Workload {
  static Result<Workload> make(Executor& executor, uint64_t pairs, uint64_t region_pairs) {
    const uint32_t regions = uint32_t(std::max<uint64_t>(1, pairs / region_pairs));
    const uint64_t each = pairs / regions;
    QRY_TRY_ASSIGN(auto keys, Pinned<uint32_t>::of(executor, each * regions));
    QRY_TRY_ASSIGN(auto values, Pinned<uint32_t>::of(executor, each * regions));
    Workload work{regions, each, {}, std::move(keys), std::move(values), {}, {}};
    for (uint32_t region = 0; region < regions; ++region) work.parts.push_back({region, each});
    work.any_keys.resize(each * regions);
    work.any_values.resize(each * regions);
    for_all(each * regions, [&](size_t i) {
      const uint64_t key = paged_key(uint32_t(i / each), key_of(i % each));
      work.keys[i] = uint32_t(key);
      work.values[i] = value_of(key);
      // The same, one of each region after the other.
      const uint64_t other = paged_key(uint32_t(i % regions), key_of(i / regions));
      work.any_keys[i] = other;
      work.any_values[i] = value_of(other);
    });
    return work;
  }
  uint64_t pairs() const { return each * regions; }
  uint32_t regions;
  uint64_t each;
  std::vector<RegionCount> parts;
  Pinned<uint32_t> keys, values;
  std::vector<uint64_t> any_keys;
  std::vector<uint32_t> any_values;
};

// The static table: parts of a paged grid with one lane, used one after the other.
class InParts {
 public:
  static Result<InParts> make(Executor& executor, const PagedOptions& options, uint64_t pairs, uint64_t part_pairs) {
    PagedOptions of_one = options;
    of_one.lanes = 1;
    of_one.staged_pairs = options.staged_pairs * options.lanes;  // the same memory
    QRY_TRY_ASSIGN(auto grid, PagedGrid::create(executor, of_one));
    // A part is a child table and differs from others by chance: room for that.
    const uint32_t parts = uint32_t(std::max<uint64_t>(1, pairs / part_pairs));
    const uint64_t most = std::max(pairs, kMostQuestions);  // may be in one part
    QRY_TRY_ASSIGN(auto keys, Pinned<uint32_t>::of(executor, most));
    QRY_TRY_ASSIGN(auto values, Pinned<uint32_t>::of(executor, most));
    return InParts{std::move(grid), parts, part_pairs, std::move(keys), std::move(values), std::vector<uint64_t>(most)};
  }
  Result<void> build(const std::vector<uint64_t>& from, const std::vector<uint32_t>& from_values) {
    QRY_TRY(grid.clear());
    for (uint32_t part = 0; part < parts; ++part) {
      const size_t count = pick(part, from, &from_values);
      const RegionCount one{part, count};
      QRY_TRY(grid.insert(Span<const RegionCount>(&one, 1), Span<const uint32_t>(keys.data(), count),
                          Span<const uint32_t>(values.data(), count)));
    }
    return {};
  }
  Result<uint64_t> find(const std::vector<uint64_t>& asked, std::vector<uint32_t>& out) {
    uint64_t present = 0;
    for (uint32_t part = 0; part < parts; ++part) {
      const size_t count = pick(part, asked, nullptr);
      const RegionCount one{part, count};
      QRY_TRY_ASSIGN(const BulkReport report,
                     grid.find(Span<const RegionCount>(&one, 1), Span<const uint32_t>(keys.data(), count),
                               Span<uint32_t>(values.data(), count)));
      present += report.present;
      for_all(count, [&](size_t i) { out[positions[i]] = values[i]; });
    }
    return present;
  }

  PagedGrid grid;
  uint32_t parts;
  uint64_t each;  // pairs of a region
  Pinned<uint32_t> keys, values;
  std::vector<uint64_t> positions;

 private:
  size_t pick(uint32_t part, const std::vector<uint64_t>& from, const std::vector<uint32_t>* from_values) {
    std::atomic<size_t> next{0};
    parallel_for(from.size(), kGrain, [&](size_t begin, size_t end) {
      std::vector<size_t> mine;
      for (size_t i = begin; i < end; ++i)
        if (part_of(from[i], parts) == part) mine.push_back(i);
      size_t at = next.fetch_add(mine.size());
      for (const size_t i : mine) {
        keys[at] = static_key(from[i], each);
        if (from_values != nullptr) values[at] = (*from_values)[i];
        positions[at++] = i;
      }
    });
    return next;
  }
};

// Rates of pinned copies, 10^9 bytes a second: each way alone, and both at once.
Result<json> bus_of(Executor& executor) {
  constexpr size_t kBytes = size_t{64} << 20;
  constexpr uint32_t kTimes = 4;
  QRY_TRY_ASSIGN(const auto lane, executor.make_lane());
  QRY_TRY_ASSIGN(const auto from, Pinned<std::byte>::of(executor, kBytes));
  QRY_TRY_ASSIGN(const auto to, Pinned<std::byte>::of(executor, kBytes));
  QRY_TRY_ASSIGN(const MemoryBlock device, executor.memory().allocate(2 * kBytes, "bench"));
  auto* const a = static_cast<std::byte*>(device.data);
  Result<void> ok;
  const auto rate = [&](bool in, bool out) {
    std::vector<double> rates;
    for (uint32_t round = 0; round < 4; ++round) {
      const double seconds = seconds_of([&] {
        for (uint32_t i = 0; i < kTimes && ok; ++i) {
          if (in) ok = lane->upload(a, from.data(), kBytes);
          if (ok && out) ok = lane->download(to.data(), a + kBytes, kBytes);
        }
        if (const auto done = lane->wait(); ok) ok = done;
      });
      if (round != 0) rates.push_back(double(kBytes) * kTimes / seconds * 1e-9);
    }
    return median(rates);
  };
  const double in = rate(true, false), out = rate(false, true), both = rate(true, true);
  executor.memory().release(device);
  QRY_TRY(ok);
  return json{{"in", in}, {"out", out}, {"both_each", both}};
}
// The least seconds in which the bus moves so many bytes: both ways at once, then the rest of the longer way.
double bus_seconds(const json& bus, uint64_t in, uint64_t out) {
  const double shared = double(std::min(in, out)), rest = double(std::max(in, out)) - shared;
  return (shared / bus["both_each"].get<double>() + rest / (in > out ? bus["in"] : bus["out"]).get<double>()) * 1e-9;
}

struct Rival {
  std::string name;
  std::function<Result<bool>()> run;
  std::function<Result<void>()> prepare{};
};

class Rows {
 public:
  Rows(const PagedBenchOptions& options, std::string executor, json bus)
      : options_(options), executor_(std::move(executor)), bus_(std::move(bus)) {}

  // The first rival is the paged grid, whose bytes are counted.
  Result<void> row(const std::string& what, uint64_t pairs, uint32_t tables, uint64_t operations, PagedGrid& grid,
                   const std::vector<Rival>& rivals) {
    names.push_back(what);
    if (what.find(options_.only) == std::string::npos) return {};
    options_.progress.say(fmt::format("{}: {} pairs, {} tables", what, pairs, tables), -1);
    std::vector<std::vector<double>> seconds(rivals.size());
    std::vector<double> of_bus;
    uint64_t in = 0, out = 0;
    for (uint32_t round = 0; round <= options_.rounds; ++round)
      for (size_t i = 0; i < rivals.size(); ++i) {
        if (options_.progress.cancelled()) return fail(ErrorCode::cancelled, "interrupted");
        if (rivals[i].prepare) QRY_TRY(rivals[i].prepare());
        const PagedStats before = grid.stats();
        Result<bool> right = false;
        const double took = seconds_of([&] { right = rivals[i].run(); });
        QRY_TRY(right);
        if (!*right)
          return fail(ErrorCode::device,
                      rivals[i].name + " gave a wrong answer to '" + what + "': nothing is measured");
        if (round == 0) continue;
        seconds[i].push_back(took);
        if (i != 0) continue;
        in = grid.stats().bytes_in - before.bytes_in;
        out = grid.stats().bytes_out - before.bytes_out;
        of_bus.push_back(bus_seconds(bus_, in, out) / took);
      }
    json row{{"what", what},
             {"executor", executor_},
             {"pairs", pairs},
             {"tables", tables},
             {"million_per_s", double(operations) / median(seconds[0]) * 1e-6},
             {"bytes_in", in},
             {"bytes_out", out},
             {"of_bus", median(of_bus)},
             {"budget_bytes", grid.stats().budget_bytes},
             {"of_static_bytes", double(grid.stats().budget_bytes) / double(pages_for(pairs) * kQryPageBytes)}};
    for (size_t i = 1; i < rivals.size(); ++i) {
      std::vector<double> ratios;
      for (size_t round = 0; round < seconds[i].size(); ++round)
        ratios.push_back(seconds[i][round] / seconds[0][round]);
      row["rivals"][rivals[i].name] = double(operations) / median(seconds[i]) * 1e-6;
      row["ratios"][rivals[i].name] = median(ratios);
    }
    rows.push_back(std::move(row));
    return {};
  }
  json rows = json::array();
  std::vector<std::string> names;

 private:
  const PagedBenchOptions& options_;
  std::string executor_;
  json bus_;
};

// Whether the answers are those of the keys.
bool all_right(const std::vector<uint64_t>& asked, const std::vector<uint32_t>& answers) {
  std::atomic<uint64_t> wrong{0};
  for_all(asked.size(), [&](size_t i) {
    if (answers[i] != value_of(asked[i])) ++wrong;
  });
  return wrong == 0;
}

Result<void> measure(Executor& executor, uint64_t pairs, uint32_t tables, const PagedBenchOptions& options,
                     Rows& rows) {
  QRY_TRY_ASSIGN(Workload work, Workload::make(executor, pairs, options.region_pairs));
  PagedOptions paged;
  paged.max_load_factor = kLoad;
  paged.lanes = executor.kind() == ExecutorKind::host ? 1 : kLanes;
  // A static table's parts differ by chance; both get the same room, three deviations more than a region's table.
  const uint64_t table_bytes = tables * pages_for(work.each + work.each / 128) * kQryPageBytes;
  const uint64_t tenth = pages_for(pairs) * kQryPageBytes / 10, left = tenth - std::min(tenth, table_bytes + 4096);
  // Where little is left, fewer lanes with longer pieces: each piece has its launches.
  if (paged.lanes == kLanes && left < kLanes * 16 * 2 * kLeastStaged) paged.lanes = kFewLanes;
  paged.staged_pairs = std::clamp(left / paged.lanes / 16, kLeastStaged, kMostStaged);
  paged.budget_bytes = paged.lanes * paged.staged_pairs * 16 + 4096 + table_bytes;
  QRY_TRY_ASSIGN(PagedGrid grid, PagedGrid::create(executor, paged));
  QRY_TRY_ASSIGN(InParts in_parts, InParts::make(executor, paged, work.pairs(), work.each));
  QRY_TRY_ASSIGN(PagedGrid at_once, PagedGrid::create(executor, paged));
  std::vector<uint64_t> hashed(work.pairs());
  const auto to_static = [&](uint64_t key) {
    return paged_key(part_of(key, in_parts.parts), static_key(key, work.each));
  };
  for_all(work.pairs(), [&](size_t i) { hashed[i] = to_static(work.any_keys[i]); });

  const Span<const uint32_t> keys(work.keys.data(), work.keys.size()), values(work.values.data(), work.values.size());
  std::mt19937_64 random(pairs + tables);
  const uint64_t question_count = std::min(kMostQuestions, 4 * pairs);
  std::vector<uint32_t> answers(question_count);
  const auto questions = [&](uint32_t regions) {
    std::vector<uint64_t> asked(question_count);
    for (uint64_t& key : asked) key = paged_key(uint32_t(random() % regions), key_of(random() % work.each));
    return asked;
  };
  const std::vector<uint64_t> sample = questions(work.regions);
  const auto holds_all = [&](PagedGrid& of, const std::vector<uint64_t>& asked) -> Result<bool> {
    if (of.size() != work.pairs()) return false;
    QRY_TRY_ASSIGN(const BulkReport report, of.find(asked, answers));
    return report.present == asked.size();
  };

  // Builds. The last table may stay where it is: a build ends with its last children resident.
  const Rival parts_one_by_one{"in parts", [&]() -> Result<bool> {
                                 QRY_TRY(in_parts.build(work.any_keys, work.any_values));
                                 return in_parts.grid.size() == work.pairs();
                               }};
  const Rival parts_at_once{"at once",
                            [&]() -> Result<bool> {
                              QRY_TRY_ASSIGN(const auto report, at_once.build(hashed, work.any_values));
                              return report.inserted == work.pairs();
                            },
                            [&] { return at_once.clear(); }};
  QRY_TRY(rows.row("build, by region", work.pairs(), tables, work.pairs(), grid,
                   {{"paged",
                     [&]() -> Result<bool> {
                       QRY_TRY_ASSIGN(const auto report, grid.build(work.parts, keys, values));
                       return report.inserted == work.pairs();
                     },
                     [&] { return grid.clear(); }},
                    parts_one_by_one,
                    parts_at_once}));
  QRY_TRY(rows.row("build, any order", work.pairs(), tables, work.pairs(), grid,
                   {{"paged",
                     [&]() -> Result<bool> {
                       QRY_TRY_ASSIGN(const auto report, grid.build(work.any_keys, work.any_values));
                       return report.inserted == work.pairs();
                     },
                     [&] { return grid.clear(); }},
                    parts_one_by_one,
                    parts_at_once}));
  // Rows that are left out leave grids empty.
  if (grid.size() == 0) QRY_TRY(grid.build(work.parts, keys, values));
  if (in_parts.grid.size() == 0) QRY_TRY(in_parts.build(work.any_keys, work.any_values));
  if (at_once.size() == 0) QRY_TRY(at_once.build(hashed, work.any_values));
  QRY_TRY_ASSIGN(const bool built, holds_all(grid, sample));
  if (!built || !all_right(sample, answers))
    return fail(ErrorCode::device, "the paged grid was not built right: nothing is measured");

  // Look-ups in ever more regions.
  for (uint32_t regions = 1;; regions = std::min(regions * 4, work.regions)) {
    const std::vector<uint64_t> asked = questions(regions);
    std::vector<uint64_t> asked_hashed(asked.size());
    for_all(asked.size(), [&](size_t i) { asked_hashed[i] = to_static(asked[i]); });
    const auto right = [&](uint64_t present) { return present == asked.size() && all_right(asked, answers); };
    std::fill(answers.begin(), answers.end(), 0u);
    QRY_TRY(rows.row(regions == work.regions ? "find, in all regions" : fmt::format("find, in {} regions", regions),
                     work.pairs(), tables, asked.size(), grid,
                     {{"paged",
                       [&]() -> Result<bool> {
                         QRY_TRY_ASSIGN(const auto report, grid.find(asked, answers));
                         return right(report.present);
                       }},
                      {"in parts",
                       [&]() -> Result<bool> {
                         QRY_TRY_ASSIGN(const uint64_t present, in_parts.find(asked, answers));
                         return right(present);
                       }},
                      {"at once", [&]() -> Result<bool> {
                         QRY_TRY_ASSIGN(const auto report, at_once.find(asked_hashed, answers));
                         return right(report.present);
                       }}}));
    if (regions == work.regions) break;
  }
  return {};
}

}  // namespace
}  // namespace paged_rows

Result<nlohmann::json> bench_paged(const PagedBenchOptions& options) {
  using nlohmann::json;
  std::string without;
  std::unique_ptr<hashgrid::Executor> executor;
  if (auto cuda = hashgrid::make_cuda_executor()) {
    executor = std::move(*cuda);
  } else {
    without = cuda.error().message;
    executor = hashgrid::make_host_executor();
  }
  std::vector<uint64_t> sizes = options.sizes;
  if (sizes.empty())
    sizes = executor->kind() == hashgrid::ExecutorKind::cuda ? std::vector<uint64_t>{1'000'000, 10'000'000, 100'000'000}
                                                             : std::vector<uint64_t>{1'000'000, 4'000'000};
  QRY_TRY_ASSIGN(const json bus, paged_rows::bus_of(*executor));
  paged_rows::Rows rows(options, hashgrid::to_string(executor->kind()), bus);
  for (const uint64_t size : sizes)
    for (const uint32_t tables : options.tables) QRY_TRY(paged_rows::measure(*executor, size, tables, options, rows));
  if (rows.rows.empty()) {
    std::sort(rows.names.begin(), rows.names.end());
    rows.names.erase(std::unique(rows.names.begin(), rows.names.end()), rows.names.end());
    std::string known;
    for (const std::string& name : rows.names) known += (known.empty() ? "'" : ", '") + name + "'";
    return fail(ErrorCode::bad_usage,
                "no row of the benchmark has '" + options.only + "' in its name. Rows: " + known + ".");
  }
  return json{{"bus", bus}, {"rows", rows.rows}, {"without", without}};
}

std::string paged_table(const nlohmann::json& result) {
  using nlohmann::json;
  std::string text;
  if (const std::string why = result["without"]; !why.empty()) text += "Not measured on CUDA: " + why + "\n";
  const json& bus = result["bus"];
  text += fmt::format("copies, 10^9 bytes a second: {:.1f} in, {:.1f} out, {:.1f} each way at once\n",
                      bus["in"].get<double>(), bus["out"].get<double>(), bus["both_each"].get<double>());
  text +=
      "\n10^6 a second; beside it how many times the rate of each rival that is, and the part of the bus's rate\n\n";
  for (const json& row : result["rows"]) {
    text += fmt::format("{:<5} {:>9} pairs, {} tables ({:>4.1f}% of static)  {:<22} {:>9.2f}",
                        row["executor"].get<std::string>(), row["pairs"].get<uint64_t>(), row["tables"].get<uint32_t>(),
                        row["of_static_bytes"].get<double>() * 100, row["what"].get<std::string>(),
                        row["million_per_s"].get<double>());
    for (const auto& [name, ratio] : row["ratios"].items())
      text += fmt::format("  {:.2f} x {}", ratio.get<double>(), name);
    text += fmt::format("  {:.2f} of the bus\n", row["of_bus"].get<double>());
  }
  return text;
}

}  // namespace quarry::bench
