// SPDX-License-Identifier: Apache-2.0
// index.cpp - the row of `quarry bench` that measures the ordered index. The measurement is in
// bench/tables/index.cpp.
#include "bench/tables/index.hpp"

#include "app/bench/benchmarks.hpp"
#include "app/console/terminal.hpp"

namespace quarry::app {

Result<nlohmann::json> bench_index(const BenchOptions& options) {
  bench::IndexBenchOptions bench_options;
  ProgressLine line("index");
  bench_options.progress = line.progress();
  bench_options.rounds = options.repeats;
  bench_options.only = options.only;
  bench_options.rivals = bench::cuda_index_rivals();
  if (options.keys != 0) bench_options.sizes = {options.keys};
  QRY_TRY_ASSIGN(auto measured, bench::bench_index(bench_options));
  line.clear();
  return nlohmann::json{{"table", bench::index_table(measured)}, {"index", measured}};
}

}  // namespace quarry::app
