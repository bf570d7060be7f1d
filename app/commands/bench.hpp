// bench.hpp - the benchmarks of `quarry bench`: one row each. A benchmark measures its rivals in the same run, so that ratios hold
// on any machine.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/result.hpp"

namespace quarry::app {

struct BenchOptions {
  uint64_t keys = 0;         // of "hashgrid": size; 0: its own sizes
  std::string only;          // of "hashgrid": rows whose name has this in it
  uint32_t repeats = 5;      // the median of these is reported, after one warm-up
  std::string scene, device;  // of "render": one scene instead of all; part of a device's name
  bool small = false;         // of "render": miniatures, for software drivers
  bool validation = false;    // of "render": with the validation layers
};

struct Bench {
  const char* name;
  const char* title;
  // {"table": the text for people, and for machines what else it has to say}
  Result<nlohmann::json> (*run)(const BenchOptions& options);
};

std::span<const Bench> benches();

Result<nlohmann::json> bench_hashgrid(const BenchOptions& options);
Result<nlohmann::json> bench_render(const BenchOptions& options);

}  // namespace quarry::app
