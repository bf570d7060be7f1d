// SPDX-License-Identifier: Apache-2.0
// scan.cpp - the row of `quarry bench` that measures running sums and selections. The measurement is in
// bench/lists/scan.cpp.
#include "bench/lists/scan.hpp"

#include "app/bench/benchmarks.hpp"
#include "app/console/terminal.hpp"

namespace quarry::app {

Result<nlohmann::json> bench_scan(const BenchOptions& options) {
  bench::ScanBenchOptions bench_options;
  ProgressLine line("scan");
  bench_options.progress = line.progress();
  bench_options.device = options.device;
  bench_options.validation = options.validation;
  bench_options.repeats = options.small ? options.repeats : std::max(options.repeats, 20u);
  if (options.small) bench_options.sizes = {1u << 16, 1u << 18, 1u << 20, 1u << 22};
  auto result = bench::bench_scan(bench_options);
  if (result) (*result)["table"] = bench::scan_table(*result);
  return result;
}

}  // namespace quarry::app
