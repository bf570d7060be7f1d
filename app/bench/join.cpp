// SPDX-License-Identifier: Apache-2.0
// join.cpp - the row of `quarry bench` that measures multi grids and joins. The measurement is in bench/joins/join.cpp.
#include "bench/joins/join.hpp"

#include "app/bench/benchmarks.hpp"
#include "app/console/terminal.hpp"

namespace quarry::app {

Result<nlohmann::json> bench_join(const BenchOptions& options) {
  bench::JoinBenchOptions bench_options;
  ProgressLine line("join");
  bench_options.progress = line.progress();
  bench_options.rounds = options.repeats;
  bench_options.only = options.only;
  if (options.keys != 0) bench_options.rows = options.keys;
  QRY_TRY_ASSIGN(auto measured, bench::bench_join(bench_options));
  line.clear();
  return nlohmann::json{{"table", bench::join_table(measured)}, {"join", measured}};
}

}  // namespace quarry::app
