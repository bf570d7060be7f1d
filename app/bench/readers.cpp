// SPDX-License-Identifier: Apache-2.0
// readers.cpp - the row of `quarry bench` that measures who reads a world in a device's memory. The measurements are in
// bench/readers/.
#include <fmt/format.h>

#include "app/bench/benchmarks.hpp"
#include "app/console/terminal.hpp"
#include "bench/readers/look_ups.hpp"
#include "bench/readers/rays.hpp"
#include "engine/vulkan/device.hpp"

namespace quarry::app {
namespace {

std::string table_of(const nlohmann::json& result) {
  std::string text = fmt::format("{} ({}), kernels: {}, median of {}\n", result["device"].get<std::string>(),
                                 result["driver"].get<std::string>(), result["kernels"].get<std::string>(),
                                 result["repeats"].get<uint32_t>());
  if (result.contains("rays")) {
    text += fmt::format("\n{:<10}{:<10}{:>12}{:>10}", "10^6 rays/s", "", "hits", "differ");
    for (const auto& [name, row] : result["rays"][0]["rows"].items()) text += fmt::format("{:>22}", name);
    for (const auto& one : result["rays"]) {
      text +=
          fmt::format("\n{:<10}{:<10}{:>12}{:>10}", one["scene"].get<std::string>(), one["camera"].get<std::string>(),
                      one["hits"]["kernel"].get<uint64_t>(), one["different"].get<uint64_t>());
      for (const auto& [name, row] : one["rows"].items())
        text += fmt::format("{:>22.0f}", row["million_per_s"].get<double>());
    }
    text += "\n";
  }
  if (result.contains("look_ups")) {
    const auto& look_ups = result["look_ups"];
    text += fmt::format("\n{:<16}{:>14}{:>16}{:>12}{:>12}{:>12}{:>12}", "10^6 look-ups/s", "bricks", "bytes", "kernel",
                        "shader", "ratio", "reads");
    for (const auto& world : look_ups["worlds"])
      text += fmt::format("\n{:<16}{:>14}{:>16}{:>12.0f}{:>12.0f}{:>12.2f}{:>12}", "", world["bricks"].get<uint64_t>(),
                          world["bytes"].get<uint64_t>(), world["rows"]["kernel"]["million_per_s"].get<double>(),
                          world["rows"]["shader"]["million_per_s"].get<double>(), world["ratio"].get<double>(),
                          world["rows"].contains("reads")
                              ? fmt::format("{:.0f}", world["rows"]["reads"]["million_per_s"].get<double>())
                              : "-");
    const auto& ratios = look_ups["ratios"];
    text += fmt::format("\n{:<16}{:>30}{:>12.2f}{:>12.2f}{:>12}{:>12}\n", "large : small", "",
                        ratios["kernel"].get<double>(), ratios["shader"].get<double>(), "",
                        ratios.contains("reads") ? fmt::format("{:.2f}", ratios["reads"].get<double>()) : "-");
  }
  return text;
}

}  // namespace

Result<nlohmann::json> bench_readers(const BenchOptions& options) {
  using Kernels = bench::SharedStore::Kernels;
  const bool rays = options.only.empty() || options.only == "rays",
             look_ups = options.only.empty() || options.only == "look-ups";
  if (!rays && !look_ups)
    return fail(ErrorCode::bad_usage, "no row of the benchmark is called '" + options.only + "': rays, look-ups");
  bench::ReadersOptions bench_options;
  if (options.home == "host")
    return fail(ErrorCode::bad_usage, "a world at home on the host has no kernels: --home device or emulated");
  if (options.home != "automatic")
    bench_options.kernels = options.home == "device" ? Kernels::cuda : Kernels::host_threads;
  ProgressLine line("readers");
  bench_options.progress = line.progress();
  bench_options.repeats = options.repeats;
  if (options.small) {
    bench_options.full_size = false;
    bench_options.rays_across = 128;
    bench_options.bricks = 16384;
    bench_options.look_ups = 100000;
  }
  if (options.keys) bench_options.bricks = uint32_t(options.keys);
  engine::DeviceOptions device_options;
  device_options.prefer = options.device;
  device_options.validation = options.validation;
  device_options.log = [](int severity, const char* message) {
    if (severity > 0) fmt::print(stderr, "{}\n", message);
  };
  QRY_TRY_ASSIGN(const auto device, engine::Device::create(device_options));
  nlohmann::json result{{"device", device->info().name},
                        {"driver", device->info().driver},
                        {"repeats", options.repeats},
                        {"full_size", bench_options.full_size}};
  {
    QRY_TRY_ASSIGN(const auto empty, bench::SharedStore::create(*device, bench_options.kernels));
    result["kernels"] = empty->on_cuda() ? "CUDA" : "host threads";
    bench_options.kernels = empty->on_cuda() ? Kernels::cuda : Kernels::host_threads;
  }
  if (rays) {
    QRY_TRY_ASSIGN(result["rays"], bench::bench_reader_rays(*device, bench_options));
  }
  if (look_ups) {
    QRY_TRY_ASSIGN(result["look_ups"], bench::bench_reader_look_ups(*device, bench_options));
  }
  result["validation_errors"] = device->validation_errors();
  result["table"] = table_of(result);
  return result;
}

}  // namespace quarry::app
