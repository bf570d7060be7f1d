// SPDX-License-Identifier: Apache-2.0
// rows.hpp - rows of a benchmark whose rivals answer the same questions: measured in turn, each answer checked.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "hashgrid/executor.hpp"
#include "hashgrid/table/span.hpp"

namespace quarry::bench {

struct RowOptions {
  uint32_t rounds = 5;  // after one warm-up
  std::string only;     // rows whose name contains this; empty: all
  Progress progress{};
};

// An array in the memory of an executor.
template <class T>
class Array {
 public:
  static Result<Array> of(hashgrid::Executor& executor, const std::vector<T>& from) {
    QRY_TRY_ASSIGN(Array array, empty(executor, from.size()));
    QRY_TRY(executor.upload(array.data(), from.data(), from.size() * sizeof(T)));
    return array;
  }
  static Result<Array> empty(hashgrid::Executor& executor, size_t count) {
    Array array;
    array.executor_ = &executor;
    array.count_ = count;
    QRY_TRY_ASSIGN(array.block_, executor.memory().allocate(std::max<size_t>(1, count * sizeof(T)), "bench"));
    return array;
  }
  Array(Array&& other) noexcept
      : executor_(other.executor_), count_(other.count_), block_(std::exchange(other.block_, {})) {}
  Array& operator=(Array&&) = delete;
  ~Array() {
    if (block_.data != nullptr) executor_->memory().release(block_);
  }
  T* data() const { return static_cast<T*>(block_.data); }
  size_t size() const { return count_; }
  hashgrid::Span<T> span(size_t count) const { return {data(), count}; }
  Result<std::vector<T>> get() const {
    std::vector<T> copy(count_);
    QRY_TRY(executor_->download(copy.data(), data(), count_ * sizeof(T)));
    return copy;
  }

 private:
  Array() = default;
  hashgrid::Executor* executor_ = nullptr;
  size_t count_ = 0;
  MemoryBlock block_;
};

// One contestant of a row: prepare (not measured), run, and whether the result was right.
struct Rival {
  std::string name;  // the first is the one that is measured
  std::function<Result<bool>()> run{};
  std::function<Result<void>()> prepare{};
  std::function<Result<bool>()> check{};  // not measured; may be empty
};

class Rows {
 public:
  Rows(const RowOptions& options, std::string executor) : options_(options), executor_(std::move(executor)) {}

  bool wanted(const std::string& what) const { return what.find(options_.only) != std::string::npos; }

  // `operations` a run; a row is left out if it is not wanted.
  Result<void> row(const std::string& what, const char* unit, uint64_t keys, uint64_t operations,
                   const std::vector<Rival>& rivals) {
    names_.push_back(what);
    if (!wanted(what)) return {};
    options_.progress.say(what, -1);
    std::vector<std::vector<double>> rates(rivals.size());
    for (uint32_t round = 0; round <= options_.rounds; ++round)
      for (size_t i = 0; i < rivals.size(); ++i) {
        if (options_.progress.cancelled()) return fail(ErrorCode::cancelled, "interrupted");
        if (rivals[i].prepare) QRY_TRY(rivals[i].prepare());
        const auto start = std::chrono::steady_clock::now();
        QRY_TRY_ASSIGN(bool right, rivals[i].run());
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (right && rivals[i].check) {
          QRY_TRY_ASSIGN(right, rivals[i].check());
        }
        if (!right)
          return fail(ErrorCode::device,
                      rivals[i].name + " gave a wrong answer to '" + what + "': nothing is measured");
        if (round != 0) rates[i].push_back(double(operations) / seconds * 1e-6);
      }
    nlohmann::json row{
        {"what", what}, {"executor", executor_}, {"keys", keys}, {"unit", unit}, {"million_per_s", median(rates[0])}};
    row["ms"] = double(operations) / median(rates[0]) * 1e-3;
    for (size_t i = 1; i < rivals.size(); ++i) {
      std::vector<double> ratios;
      for (size_t round = 0; round < rates[i].size(); ++round) ratios.push_back(rates[0][round] / rates[i][round]);
      row["rivals"][rivals[i].name] = median(rates[i]);
      row["ratios"][rivals[i].name] = median(ratios);
    }
    rows_.push_back(std::move(row));
    return {};
  }
  nlohmann::json rows_ = nlohmann::json::array();
  std::vector<std::string> names_;

 private:
  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  const RowOptions& options_;
  std::string executor_;
};

inline tl::unexpected<Error> no_such_row(const std::string& only, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "'" : ", '") + name + "'";
  return fail(ErrorCode::bad_usage, "no row of the benchmark has '" + only + "' in its name. Rows: " + known + ".");
}

// The end of a row's line in a table: how many times the rate of each rival it has.
inline std::string ratios_of(const nlohmann::json& row) {
  std::string text;
  if (row.contains("ratios"))
    for (const auto& [name, ratio] : row["ratios"].items())
      text += fmt::format("  {:.2f} x {}", ratio.get<double>(), name);
  return text + '\n';
}

}  // namespace quarry::bench
