// SPDX-License-Identifier: Apache-2.0
// benchmarks.hpp - the benchmarks of `quarry bench`. A benchmark measures its baselines in the same run, so that ratios
// hold on any machine.
//
//   quarry: run_bench() reads the request, for help and wrong usage, and starts quarry-bench with the same words
//   quarry-bench: reads the request again, measures, prints
//   quarry-bench-world: the benchmark of worlds, a program that links libquarry alone
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "app/console/command.hpp"
#include "base/result.hpp"

namespace quarry::app {

struct BenchOptions {
  uint64_t keys = 0;          // of "hashgrid": size; 0: its own sizes
  std::string only;           // of "hashgrid": rows whose name has this in it
  uint32_t repeats = 5;       // the median of these is reported, after one warm-up
  std::string scene, device;  // of "render": one scene instead of all; part of a device's name
  bool small = false;         // of "render": miniatures, for software drivers
  std::string replays;        // of "world": a folder of recorded sessions
  bool validation = false;    // of "render": with the validation layers
};

enum class Bench : uint8_t { hashgrid, render, world };

// What a command line of `quarry bench` asks for.
struct BenchRequest {
  Bench bench = Bench::hashgrid;
  BenchOptions options;
  bool as_json = false;
};
// Where there is nothing to measure, the exit code: help or the list was printed, or the line is wrong and stderr says
// why.
tl::expected<BenchRequest, int> read_bench_request(const CommandArguments& words);
const char* bench_name(Bench bench);

// {"table": the text for people, and for machines what else it has to say}
Result<nlohmann::json> bench_hashgrid(const BenchOptions& options);
Result<nlohmann::json> bench_render(const BenchOptions& options);

}  // namespace quarry::app
