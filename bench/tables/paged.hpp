// SPDX-License-Identifier: Apache-2.0
// paged.hpp - paged grids beside a table that is used in parts within the same budget, and beside the bus.
//
// Pairs with random keys in regions of about a million pairs, from pinned host memory, into grids that hold so many
// child tables at once. The rivals:
//   in parts   one table over all keys, larger than the budget: its parts are ranges of the hash, so a batch has keys
//              of each. For one part after the other, host threads pick its keys from the batch, which then travel in;
//              the part comes in and leaves. (The parts are children of a paged grid of one lane, so both rivals have
//              the same kernels and the same budget.)
//   at once    the same table, its batch split by part once and its parts pipelined as a paged grid's regions are
//   bus        the bytes that the build moved at the rates that pinned copies reach, in both directions at once
// Rates are medians over the rounds, ratios medians of the rounds' ratios. Every answer is checked.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"

namespace quarry::bench {

struct PagedBenchOptions {
  std::vector<uint64_t> sizes;            // pairs; empty: 1, 10 and 100 million, on host threads 1 and 4
  std::vector<uint32_t> tables{2, 4, 8};  // resident at once
  uint64_t region_pairs = 1'000'000;      // about, of a region
  uint32_t rounds = 5;                    // after one warm-up
  std::string only;                       // rows whose name contains this; empty: all
  Progress progress{};
};

// {"bus": {"in", "out", "both_in", "both_out"} (10^9 bytes a second), "rows": [{"what", "executor", "pairs", "tables",
// "million_per_s", "rivals": {name: million_per_s}, "ratios": {name: times its rate}, "bytes_in", "bytes_out",
// "budget_bytes", "of_static_bytes"}], "without": why there are no rows of a device}. On CUDA if there is a device,
// else on host threads. Errors: bad_usage (no row has `only` in its name), cancelled; a wrong result makes the
// measurement void.
Result<nlohmann::json> bench_paged(const PagedBenchOptions& options);
std::string paged_table(const nlohmann::json& result);

}  // namespace quarry::bench
