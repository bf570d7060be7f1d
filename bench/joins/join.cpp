// SPDX-License-Identifier: Apache-2.0
// join.cpp - the rows of `quarry bench join`.
#include "bench/joins/join.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "base/parallel.hpp"
#include "bench/joins/sort_merge.hpp"
#include "hashgrid/index/radix_sort.hpp"
#include "hashgrid/join.hpp"
#include "hashgrid/multi_grid.hpp"

namespace quarry::bench {
namespace {

using namespace hashgrid;
using nlohmann::json;
using Words = std::vector<uint32_t>;

constexpr uint64_t kMostHostResults = uint64_t{1} << 26, kMostResults = uint64_t{1} << 31;

// Keys of so many rows in random order, each in exactly `each` of them. Value v of the key of number k is k * each + v.
struct Column {
  Column(uint64_t rows, uint32_t each, uint32_t seed) : keys(rows), values(rows) {
    for (uint64_t i = 0; i < rows; ++i) values[i] = uint32_t(i);
    std::mt19937 random(seed);
    for (uint64_t i = rows; i > 1; --i) std::swap(values[i - 1], values[random() % i]);
    for (uint64_t i = 0; i < rows; ++i) keys[i] = values[i] / each * 0x9E3779B1u & 0x7FFFFFFFu;
  }
  Words keys, values;
};

// The first, middle and last of an executor's array, for samples.
constexpr uint64_t kSample = 1000;
Result<Words> sample_of(Executor& executor, const uint32_t* data, uint64_t count) {
  const uint64_t size = std::min(kSample, count);
  Words sample(3 * size);
  const uint64_t begins[] = {0, (count - size) / 2, count - size};
  for (uint64_t part = 0; part < 3; ++part)
    QRY_TRY(executor.download(sample.data() + part * size, data + begins[part], size * sizeof(uint32_t)));
  return sample;
}

// Both sides sorted, by a thread each, and merged: what a program does without a table.
uint64_t sort_and_merge(const Words& left, const Words& right, uint32_t* left_out, uint32_t* right_out,
                        uint32_t threads) {
  std::vector<uint64_t> sorted[2];
  parallel_for(
      2, 1,
      [&](size_t begin, size_t end) {
        for (size_t side = begin; side < end; ++side) {
          const Words& keys = side == 0 ? left : right;
          sorted[side].resize(keys.size());
          for (size_t i = 0; i < keys.size(); ++i) sorted[side][i] = uint64_t{keys[i]} << 32 | i;
          std::sort(sorted[side].begin(), sorted[side].end());
        }
      },
      threads);
  uint64_t at = 0;
  size_t first = 0;
  for (const uint64_t row : sorted[0]) {
    while (first < sorted[1].size() && sorted[1][first] >> 32 < row >> 32) ++first;
    for (size_t i = first; i < sorted[1].size() && sorted[1][i] >> 32 == row >> 32; ++i, ++at) {
      left_out[at] = uint32_t(row);
      right_out[at] = uint32_t(sorted[1][i]);
    }
  }
  return at;
}

Result<void> measure_grid(Executor& executor, const Column& column, uint32_t each, Rows& rows) {
  const uint64_t count = column.keys.size(), results = count * each;
  const std::string tail = fmt::format(", {} to a key", each);
  if (!rows.wanted("insert" + tail) && !rows.wanted("retrieve" + tail) && !rows.wanted("count" + tail)) {
    for (const char* what : {"insert", "count", "retrieve"}) rows.names_.push_back(what + tail);
    return {};
  }
  QRY_TRY_ASSIGN(const auto keys, Array<uint32_t>::of(executor, column.keys));
  QRY_TRY_ASSIGN(const auto values, Array<uint32_t>::of(executor, column.values));
  QRY_TRY_ASSIGN(auto grid, MultiGrid::create(executor, {count}));
  {
    QRY_TRY_ASSIGN(const auto sorted_keys, Array<uint32_t>::empty(executor, count));
    QRY_TRY_ASSIGN(const auto sorted_values, Array<uint32_t>::empty(executor, count));
    Rival insert{"multi grid", {}, [&] { return grid.clear(); }};
    insert.run = [&]() -> Result<bool> {
      QRY_TRY(grid.insert(keys.span(count), values.span(count)));
      return grid.size() == count;
    };
    Rival sort{"a sort by key"};
    sort.run = [&]() -> Result<bool> {
      if (executor.kind() == ExecutorKind::host)
        QRY_TRY(radix_sort(keys.data(), values.data(), count, sorted_keys.data(), sorted_values.data(),
                           executor.parallelism()));
      else QRY_TRY(sort_pairs(executor, keys.data(), values.data(), count, sorted_keys.data(), sorted_values.data()));
      return true;
    };
    sort.check = [&]() -> Result<bool> {
      QRY_TRY_ASSIGN(const Words sample, sample_of(executor, sorted_keys.data(), count));
      return std::is_sorted(sample.begin(), sample.end());
    };
    QRY_TRY(rows.row("insert" + tail, "pairs", count, count, {insert, sort}));
  }
  QRY_TRY(grid.clear());
  QRY_TRY(grid.insert(keys.span(count), values.span(count)));
  {
    QRY_TRY_ASSIGN(const auto counts, Array<uint32_t>::empty(executor, count));
    Rival counting{"multi grid"};
    counting.run = [&]() -> Result<bool> {
      QRY_TRY_ASSIGN(const auto report, grid.count(keys.span(count), counts.span(count)));
      return report.present == count;
    };
    counting.check = [&]() -> Result<bool> {
      QRY_TRY_ASSIGN(const Words sample, sample_of(executor, counts.data(), count));
      return std::count(sample.begin(), sample.end(), each) == ptrdiff_t(sample.size());
    };
    QRY_TRY(rows.row("count" + tail, "keys", count, count, {counting}));
  }
  QRY_TRY_ASSIGN(const auto starts, Array<uint64_t>::empty(executor, count + 1));
  QRY_TRY_ASSIGN(const auto found, Array<uint32_t>::empty(executor, results));
  Rival retrieve{"multi grid"};
  retrieve.run = [&]() -> Result<bool> {
    QRY_TRY_ASSIGN(const uint64_t total, grid.retrieve(keys.span(count), starts.span(count + 1), found.span(results)));
    return total == results;
  };
  retrieve.check = [&]() -> Result<bool> {  // of some keys: each has `each` values, all its own
    for (uint64_t key = 0; key < count; key += std::max<uint64_t>(1, count / 100)) {
      Words own(each);
      QRY_TRY(executor.download(own.data(), found.data() + key * each, each * sizeof(uint32_t)));
      std::sort(own.begin(), own.end());
      for (uint32_t v = 0; v < each; ++v)
        if (own[v] != column.values[key] / each * each + v) return false;
    }
    return true;
  };
  return rows.row("retrieve" + tail, "keys", count, count, {retrieve});
}

Result<void> measure_join(Executor& executor, const Column& left, const Column& right, uint32_t each, Rows& rows) {
  const uint64_t count = left.keys.size(), results = count * each;
  const std::string what = fmt::format("join, {} to a key", each);
  if (!rows.wanted(what)) {
    rows.names_.push_back(what);
    return {};
  }
  QRY_TRY_ASSIGN(const auto left_keys, Array<uint32_t>::of(executor, left.keys));
  QRY_TRY_ASSIGN(const auto right_keys, Array<uint32_t>::of(executor, right.keys));
  QRY_TRY_ASSIGN(const auto left_rows, Array<uint32_t>::empty(executor, results));
  QRY_TRY_ASSIGN(const auto right_rows, Array<uint32_t>::empty(executor, results));
  const auto check = [&]() -> Result<bool> {
    QRY_TRY_ASSIGN(const Words l, sample_of(executor, left_rows.data(), results));
    QRY_TRY_ASSIGN(const Words r, sample_of(executor, right_rows.data(), results));
    for (size_t i = 0; i < l.size(); ++i)
      if (l[i] >= count || r[i] >= count || left.keys[l[i]] != right.keys[r[i]]) return false;
    return true;
  };
  Rival join{"join", {}, {}, check}, rival{"std::sort and a merge", {}, {}, check};
  join.run = [&]() -> Result<bool> {
    QRY_TRY_ASSIGN(const uint64_t total, inner_join(executor, left_keys.span(count), right_keys.span(count),
                                                    left_rows.span(results), right_rows.span(results)));
    return total == results;
  };
  rival.run = [&]() -> Result<bool> {
    return sort_and_merge(left.keys, right.keys, left_rows.data(), right_rows.data(), executor.parallelism()) ==
           results;
  };
  if (executor.kind() == ExecutorKind::cuda) {
    rival.name = "CUB's sorts and a merge";
    rival.run = [&]() -> Result<bool> {
      QRY_TRY_ASSIGN(const uint64_t total, sort_merge_join(executor, left_keys.data(), count, right_keys.data(), count,
                                                           left_rows.data(), right_rows.data(), results));
      return total == results;
    };
  }
  return rows.row(what, "left rows", count, count, {join, rival});
}

}  // namespace

Result<json> bench_join(const JoinBenchOptions& options) {
  json rows = json::array();
  std::string without;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<Executor>> executors;
  if (auto cuda = make_cuda_executor()) executors.push_back(std::move(*cuda));
  else without = cuda.error().message;
  executors.push_back(make_host_executor());
  for (const auto& executor : executors) {
    Rows measured(options, to_string(executor->kind()));
    const uint64_t most = executor->kind() == ExecutorKind::host ? kMostHostResults : kMostResults;
    for (const uint32_t each : {1u, 2u, 8u, 32u}) {
      const uint64_t count = options.rows / each * each;
      if (count * each > most) continue;
      const Column left(count, each, 1), right(count, each, 2);
      QRY_TRY(measure_grid(*executor, left, each, measured));
      QRY_TRY(measure_join(*executor, left, right, each, measured));
    }
    names.insert(names.end(), measured.names_.begin(), measured.names_.end());
    rows.insert(rows.end(), measured.rows_.begin(), measured.rows_.end());
  }
  if (rows.empty()) return no_such_row(options.only, names);
  return json{{"rows", rows}, {"without", without}};
}

std::string join_table(const json& result) {
  std::string text;
  if (const std::string why = result["without"]; !why.empty()) text += "Not measured on CUDA: " + why + "\n";
  text += "\n10^6 a second, and milliseconds; beside it how many times the rate of each rival that is\n\n";
  for (const json& row : result["rows"]) {
    text += fmt::format("{:<5} {:>9} rows  {:<24} {:>10.3f} {:<10} {:>10.3f} ms", row["executor"].get<std::string>(),
                        row["keys"].get<uint64_t>(), row["what"].get<std::string>(), row["million_per_s"].get<double>(),
                        row["unit"].get<std::string>(), row["ms"].get<double>());
    text += ratios_of(row);
  }
  return text;
}

}  // namespace quarry::bench
