// SPDX-License-Identifier: Apache-2.0
// main.cpp - `qry_bench_hashgrid`: the CUDA part of `quarry bench hashgrid` as a program that needs neither a window
// nor Vulkan.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "bench/hashgrid/loads_plot.hpp"
#if QRY_BENCH_CUDA
#include "bench/hashgrid/cuda.hpp"
#endif

namespace {
constexpr const char* kUsage =
    "qry_bench_hashgrid [--json FILE] [--sweep FILE.csv] [--only pairs|compact]   "
    "measure the hash grid on a CUDA device (16 GiB)\n"
    "qry_bench_hashgrid --plot FILE.csv                    draw a sweep again, without a device\n"
    "--sweep: insert rate and probe depth against load factor, beside a simple table; "
    "writes FILE.csv, FILE.md and FILE.svg\n";

int wrong(const std::string& what) {
  std::fprintf(stderr, "qry_bench_hashgrid: %s\n%s", what.c_str(), kUsage);
  return 2;
}
int plotted(const std::string& csv) {
  const auto done = quarry::bench::plot_loads(csv);
  if (!done) std::fprintf(stderr, "qry_bench_hashgrid: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
}  // namespace

int main(int argc, char** argv) {
  std::string json_path, sweep_path, plot_path, only;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") return std::fputs(kUsage, stdout), 0;
    std::string* const into = word == "--json"    ? &json_path
                              : word == "--sweep" ? &sweep_path
                              : word == "--plot"  ? &plot_path
                              : word == "--only"  ? &only
                                                  : nullptr;
    if (into == nullptr) return wrong("there is no option '" + word + "'");
    if (i + 1 == argc) return wrong(word + (into == &only ? " needs a layout" : " needs the name of a file"));
    *into = argv[++i];
  }
  if (!plot_path.empty()) return plotted(plot_path);
  if (!only.empty() && only != "pairs" && only != "compact") return wrong("there is no layout '" + only + "'");
#if QRY_BENCH_CUDA
  std::string json;
  using quarry::bench::Only;
  const Only layout = only == "pairs" ? Only::pairs : only == "compact" ? Only::compact : Only::all;
  const int code = quarry::bench::bench_hashgrid_cuda({.print = true, .sweep_path = sweep_path, .only = layout}, &json);
  if (!json_path.empty() && !(std::ofstream(json_path) << json))
    return std::fprintf(stderr, "qry_bench_hashgrid: %s: cannot be written\n", json_path.c_str()), 1;
  if (!sweep_path.empty() && plotted(sweep_path) != 0) return 1;
  return code;
#else
  std::fprintf(stderr, "qry_bench_hashgrid: this build has no CUDA; `quarry bench hashgrid` measures the host\n");
  return 1;
#endif
}
