// SPDX-License-Identifier: Apache-2.0
// paged.cpp - the row of `quarry bench` that measures paged grids. The measurement is in bench/tables/paged.cpp.
#include "bench/tables/paged.hpp"

#include <algorithm>

#include "app/bench/benchmarks.hpp"
#include "app/console/terminal.hpp"

namespace quarry::app {

Result<nlohmann::json> bench_paged(const BenchOptions& options) {
  bench::PagedBenchOptions bench_options;
  ProgressLine line("paged");
  bench_options.progress = line.progress();
  bench_options.rounds = options.repeats;
  bench_options.only = options.only;
  if (options.keys != 0) {
    bench_options.sizes = {options.keys};
    bench_options.region_pairs =
        std::min<uint64_t>(bench_options.region_pairs, std::max<uint64_t>(1, options.keys / 8));
  }
  QRY_TRY_ASSIGN(auto measured, bench::bench_paged(bench_options));
  line.clear();
  return nlohmann::json{{"table", bench::paged_table(measured)}, {"paged", measured}};
}

}  // namespace quarry::app
