// bench.hpp - the benchmarks of `quarry bench`: one row each. A benchmark measures its rivals in the same run, so that ratios hold
// on any machine.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "hashgrid/result.hpp"

namespace quarry::app {

struct BenchOptions {
  uint64_t keys = 1u << 22;  // problem size
  uint32_t repeats = 5;      // the median of these is reported, after one warm-up
};

struct Bench {
  const char* name;
  const char* title;
  // {"rows": [{"what", "load_factor", "million_per_s", "rival", "rival_million_per_s", "ratio"}...], and what else it has to say}
  Result<nlohmann::json> (*run)(const BenchOptions& options);
};

std::span<const Bench> benches();

Result<nlohmann::json> bench_hashgrid_host(const BenchOptions& options);

}  // namespace quarry::app
