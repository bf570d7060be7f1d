// SPDX-License-Identifier: Apache-2.0
// join.hpp - multi grids and joins beside sorting and merging, on host threads and, if there is one, a CUDA device.
//
// Both sides of a join, and a grid's pairs, are so many rows in random order, with exactly 1, 2, 8 or 32 to a key.
// Grids are asked for as many keys as they have pairs, in random order. Every round gives each rival the same work, one
// after the other; rates are medians over the rounds, ratios medians of the rounds' ratios. Every result's number is
// checked, and samples of the results. Rivals use as many threads as the grid (std::sort: one for each side).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"
#include "bench/hashgrid/rows.hpp"

namespace quarry::bench {

struct JoinBenchOptions : RowOptions {
  uint64_t rows = 1 << 20;  // of each side
};

// {"rows": [{"what", "executor", "keys", "unit", "million_per_s", "ms", "rivals": {name: million_per_s}, "ratios":
// {name: times its rate}}], "without": why there are no rows of a device}. Errors: bad_usage (no row has `only` in its
// name), cancelled; a wrong result makes the measurement void.
Result<nlohmann::json> bench_join(const JoinBenchOptions& options);
std::string join_table(const nlohmann::json& result);

}  // namespace quarry::bench
