// SPDX-License-Identifier: Apache-2.0
// index.hpp - the ordered index beside the hash grid and sorted arrays, on host threads and, if there is one, a CUDA
// device.
//
// Workload V: bricks of a terrain's shell. The index has their Morton codes (64 bits), the grid and the arrays their
// keys of 32 bits. Every round gives each rival the same questions, one after the other; rates are medians over the
// rounds, ratios medians of the rounds' ratios. Every result is checked. Rivals use as many threads as the index.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/hashgrid/rows.hpp"
#include "bench/tables/index_rivals.hpp"

namespace quarry::bench {

struct IndexBenchOptions : RowOptions {
  std::vector<uint64_t> sizes{1'000'000, 8'000'000};  // bricks, about
  IndexRivals rivals{};
};

// {"rows": [{"what", "executor", "keys", "unit", "million_per_s", "ms", "rivals": {name: million_per_s}, "ratios":
// {name: times its rate}}], "indexes": [{"keys", "bytes", "bytes_per_key", "levels"}], "without": why there are no rows
// of a device}. Errors: bad_usage (no row has `only` in its name), cancelled; a wrong result makes the measurement
// void.
Result<nlohmann::json> bench_index(const IndexBenchOptions& options);
std::string index_table(const nlohmann::json& result);

}  // namespace quarry::bench
