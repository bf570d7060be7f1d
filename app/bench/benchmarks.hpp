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
  uint64_t keys = 0;               // "hashgrid", "index", "join", "paged": size; "readers": bricks; 0: its own sizes
  std::string only;                // "hashgrid", "index", "join", "paged": only rows whose name contains this
  uint32_t repeats = 5;            // the median of these runs is reported, after one warm-up
  std::string scene, device;       // "render": one scene; "render", "scan", "readers": part of a device's name
  bool small = false;              // "render", "scan", "readers": miniatures, for software drivers
  std::string replays;             // "world": a folder of recorded sessions
  std::string session;             // "world": one of them
  bool pictures = false;           // "world": pictures after edits
  uint64_t budget_bytes = 0;       // "world": of a device's memory; 0: all of it
  uint64_t host_bytes = 0;         // "world": of the host, for pages of such a world; 0: as the library has it
  std::string home = "automatic";  // "world", "readers": where worlds are kept
  std::string open;                // "world": a file; empty: none
  uint64_t rays = 0;               // "world": rays of a list; 0: none
  bool validation = false;         // "render", "scan", "readers": with the validation layers
};

enum class Bench : uint8_t { hashgrid, index, join, render, world, scan, paged, readers };

// A parsed command line of `quarry bench`.
struct BenchRequest {
  Bench bench = Bench::hashgrid;
  BenchOptions options;
  bool as_json = false;
};
// Returns the exit code if there is nothing to measure: help or the list was printed, or the line is wrong and stderr
// has the reason.
tl::expected<BenchRequest, int> read_bench_request(const CommandArguments& words);
const char* bench_name(Bench bench);

// Returns {"table": the text for people}, plus other fields for machines.
Result<nlohmann::json> bench_hashgrid(const BenchOptions& options);
Result<nlohmann::json> bench_index(const BenchOptions& options);
Result<nlohmann::json> bench_join(const BenchOptions& options);
Result<nlohmann::json> bench_paged(const BenchOptions& options);
Result<nlohmann::json> bench_readers(const BenchOptions& options);
Result<nlohmann::json> bench_render(const BenchOptions& options);
Result<nlohmann::json> bench_scan(const BenchOptions& options);

}  // namespace quarry::app
