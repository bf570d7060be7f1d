// SPDX-License-Identifier: Apache-2.0
// main.cpp - quarry-bench, the program that `quarry bench` starts. It runs a benchmark and prints it as a table or as
// JSON, with the machine's name.
#include <fmt/format.h>
#include <signal.h>
#include <sys/utsname.h>

#include <fstream>

#include "app/bench/benchmarks.hpp"
#include "app/console/program.hpp"
#include "app/console/terminal.hpp"
#include "base/parallel.hpp"

namespace quarry::app {
namespace {

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  utsname system{};
  uname(&system);
  return system.machine;
}

Result<nlohmann::json> measure(const BenchRequest& request) {
  switch (request.bench) {
    case Bench::hashgrid: return bench_hashgrid(request.options);
    case Bench::index: return bench_index(request.options);
    case Bench::join: return bench_join(request.options);
    case Bench::render: return bench_render(request.options);
    case Bench::paged: return bench_paged(request.options);
    case Bench::scan: return bench_scan(request.options);
    case Bench::readers: return bench_readers(request.options);
    case Bench::world: break;  // a program of its own
  }
  return fail(ErrorCode::bad_usage, "there is no such benchmark");
}

int run_measurement(const CommandArguments& words) {
  listen_for_interrupts();
  // `quarry` blocked these signals until this program handles them.
  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  sigaddset(&interrupts, SIGTERM);
  sigprocmask(SIG_UNBLOCK, &interrupts, nullptr);
  const auto request = read_bench_request(words);
  if (!request) return request.error();
  const std::string name = bench_name(request->bench);
  auto result = measure(*request);
  if (!result) {
    say_error(name, result.error());
    return exit_code_of(result.error());
  }
  (*result)["bench"] = name;
  (*result)["version"] = QRY_VERSION;
  (*result)["machine"] = {{"processor", processor_name()}, {"threads", thread_count()}};
  const std::string table = result->value("table", "");
  result->erase("table");
  if (request->as_json) {
    fmt::print("{}\n", result->dump(2));
    return kExitDone;
  }
  fmt::print("{}", table);
  return kExitDone;
}

}  // namespace
}  // namespace quarry::app

int main(int count, char** values) { return quarry::app::run_program(count, values, quarry::app::run_measurement); }
