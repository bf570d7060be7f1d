// SPDX-License-Identifier: Apache-2.0
// hashgrid.cpp - the row of `quarry bench` that measures the hash grid. The measurement is in bench/hashgrid/host.cpp
// and, on a CUDA device, in bench/hashgrid/cuda.cu.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/bench/benchmarks.hpp"
#include "app/console/terminal.hpp"
#include "bench/hashgrid/host.hpp"
#include "hashgrid/executor.hpp"
#if QRY_BENCH_CUDA
#include "bench/hashgrid/cuda.hpp"
#endif

namespace quarry::app {

namespace {

// The results of a CUDA device, as rows and as text. Without a device, the text says why.
struct OnDevice {
  nlohmann::json record;
  std::string text;
};
Result<OnDevice> bench_on_device([[maybe_unused]] const std::string& only, [[maybe_unused]] const Progress& progress) {
  if (auto device = hashgrid::make_cuda_executor(); !device)
    return OnDevice{nullptr, "Not measured on CUDA: " + device.error().message + "\n\n"};
#if QRY_BENCH_CUDA
  std::string json;
  const int code = bench::bench_hashgrid_cuda({.print = false, .sweep_path = "", .progress = progress}, &json);
  if (code == 2) return fail(ErrorCode::cancelled, "interrupted");
  if (code != 0) return fail(ErrorCode::device, "CUDA gave a wrong answer: the measurement is void");
  OnDevice out{nlohmann::json::parse(json), ""};
  out.text = fmt::format("{}; 10^9 operations a second unless another unit is given\n\n",
                         out.record["machine"].get<std::string>());
  for (const auto& row : out.record["rows"]) {
    const std::string name = row["name"], ceiling = row["ceiling"];
    if (name.find(only) == std::string::npos && !name.starts_with("ceiling")) continue;
    out.text += fmt::format("{:<46} {:>9.2f} {:<5}", name, row["rate"].get<double>(), row["unit"].get<std::string>());
    if (!ceiling.empty()) out.text += fmt::format(" {:>5.2f} of {}", row["of_ceiling"].get<double>(), ceiling);
    out.text += "  " + row["note"].get<std::string>() + "\n";
  }
  out.text += '\n';
  return out;
#else
  return OnDevice{nullptr, ""};
#endif
}

}  // namespace

Result<nlohmann::json> bench_hashgrid(const BenchOptions& options) {
  const std::vector<std::string> names = bench::hashgrid_host_rows();
  if (std::ranges::none_of(names,
                           [&](const std::string& name) { return name.find(options.only) != std::string::npos; })) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "'" : ", '") + name + "'";
    return fail(ErrorCode::bad_usage,
                "no row of the benchmark has '" + options.only + "' in its name. Rows: " + known + ".");
  }
  bench::HostBenchOptions bench_options;
  ProgressLine line("hashgrid");
  bench_options.progress = line.progress();
  bench_options.rounds = options.repeats;
  bench_options.only = options.only;
  if (options.keys != 0) bench_options.sizes = {options.keys};
  QRY_TRY_ASSIGN(auto device, bench_on_device(options.only, bench_options.progress));
  QRY_TRY_ASSIGN(auto host, bench::bench_hashgrid_host(bench_options));
  return nlohmann::json{
      {"table", device.text + bench::hashgrid_host_table(host)}, {"host", host}, {"cuda", device.record}};
}

}  // namespace quarry::app
