// SPDX-License-Identifier: Apache-2.0
// host.hpp - the hash grid on host threads compared with this machine's ceilings and with common alternatives.
//
// Workload U: unique random keys. Every round gives each table the same batches, one table after the other, so that
// other load on the machine affects all of them. Rates are medians over the rounds, ratios medians of the rounds'
// ratios. Every result is checked. Workload V: bricks of a terrain shell in scan order: insert, find every brick, find
// each brick's six neighbours.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"

namespace quarry::bench {

struct HostBenchOptions {
  std::vector<uint64_t> sizes{1 << 16, 1 << 20, 1 << 24};  // keys
  std::vector<double> loads{0.5, 0.8, 0.9, 0.95};
  uint32_t rounds = 5;  // after one warm-up
  std::string only;     // rows whose name contains this; empty: all
  Progress progress{};
};

// {"threads", "missing_rivals", "rows": [{"what", "keys", "load_factor", "million_per_s", "spread", "of_ceiling",
// "ceiling", "cpu_ns", "ratios": {baseline: times its rate}, "cpu_ratios": {baseline: times its keys per processor
// time}}], "ceilings": [{"keys", "read_8", "swap_8", "copy_gb"}], "grids": [{"keys", "load_factor", "depth_mean",
// ...}]}. Errors: a wrong result makes the measurement void.
Result<nlohmann::json> bench_hashgrid_host(const HostBenchOptions& options);
std::vector<std::string> hashgrid_host_rows();  // the names of all rows
// The same as a readable table.
std::string hashgrid_host_table(const nlohmann::json& result);

}  // namespace quarry::bench
