// bench.cpp - `quarry bench`: runs a benchmark of the registry and prints it as a table or as JSON, with the machine's name.
#include "app/commands/bench.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>

#include "app/console/arguments.hpp"
#include "app/console/terminal.hpp"
#include "base/suggest.hpp"
#include "base/parallel.hpp"

namespace quarry::app {
namespace {

constexpr Bench kBenches[] = {
    {"hashgrid", "Hash grid on host threads and CUDA: every operation beside the memory's ceilings and other tables", bench_hashgrid},
    {"render", "Ray-marcher on reference scenes: primary, shadow, ambient rays and frames, beside two ceilings", bench_render},
};

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  utsname system{};
  uname(&system);
  return system.machine;
}

}  // namespace

std::span<const Bench> benches() { return kBenches; }

int run_bench(const CommandArguments& words) {
  std::string name;
  BenchOptions options;
  bool as_json = false, list = false;
  int64_t keys = 0, repeats = 5;
  Arguments arguments("bench", "Measure, and print ratios to rivals measured in the same run.",
                      "  quarry bench --list\n  quarry bench hashgrid\n  quarry bench hashgrid --keys 16777216 --json\n"
                      "  quarry bench render --scene sponge\n");
  arguments.text("name", name, "NAME", "Which benchmark; see --list");
  arguments.integer("--keys", keys, "N", "hashgrid: size in keys (65536, 1048576 and 16777216)", 1000, int64_t(1) << 28);
  arguments.integer("--repeats", repeats, "N", "The median of these is reported (5)", 1, 1000);
  arguments.text("--only", options.only, "TEXT", "hashgrid: rows whose name has this in it, as 'find' or 'V:' (all)");
  arguments.text("--scene", options.scene, "NAME", "render: terrain, sponge or sphere (all)");
  arguments.text("--device", options.device, "NAME", "render: part of a Vulkan device's name");
  arguments.flag("--small", options.small, "render: miniatures at 320x180, for software drivers");
  arguments.flag("--validation", options.validation, "render: with the Vulkan validation layers");
  arguments.flag("--json", as_json, "Print one JSON document");
  arguments.flag("--list", list, "Show the benchmarks there are");
  if (const auto code = arguments.parse(words)) return *code;
  if (list) {
    for (const Bench& bench : benches()) fmt::print("{:<16} {}\n", bench.name, bench.title);
    return kExitDone;
  }
  if (name.empty()) return arguments.wrong("which benchmark? `quarry bench --list` shows them.");
  const Bench* chosen = nullptr;
  std::vector<std::string> known;
  for (const Bench& bench : benches()) {
    known.emplace_back(bench.name);
    if (name == bench.name) chosen = &bench;
  }
  if (!chosen) return arguments.wrong(fmt::format("there is no benchmark '{}'.{}", name, did_you_mean(name, known)));

  options.keys = static_cast<uint64_t>(keys);
  options.repeats = static_cast<uint32_t>(repeats);
  auto result = chosen->run(options);
  if (!result) {
    say_error(name, result.error());
    return exit_code_of(result.error());
  }
  (*result)["bench"] = name;
  (*result)["version"] = QRY_VERSION;
  (*result)["machine"] = {{"processor", processor_name()}, {"threads", thread_count()}};
  const std::string table = result->value("table", "");
  result->erase("table");
  if (as_json) {
    fmt::print("{}\n", result->dump(2));
    return kExitDone;
  }
  fmt::print("{}", table);
  return kExitDone;
}

}  // namespace quarry::app
