// SPDX-License-Identifier: Apache-2.0
// bench.cpp - `quarry bench`: replaces this process by the program that measures, so no benchmark is linked into this
// one.
#include "app/bench/benchmarks.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/console/terminal.hpp"
#include "base/program_place.hpp"

namespace quarry::app {

int run_bench(const CommandArguments& words) {
  const auto request = read_bench_request(words);
  if (!request) return request.error();
  const auto program = request->bench == Bench::world
                           ? find_program("quarry-bench-world", "QUARRY_BENCH_WORLD", "measures worlds")
                           : find_program("quarry-bench", "QUARRY_BENCH", "measures");
  if (!program) {
    say_error("bench", program.error());
    return exit_code_of(program.error());
  }
  CommandArguments all{program->filename().string()};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  // The new program keeps streams, process id and exit code. A signal that arrives before it listens stays pending.
  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  sigaddset(&interrupts, SIGTERM);
  sigprocmask(SIG_BLOCK, &interrupts, nullptr);
  if (interrupt_flag()) return kExitCancelled;
  ::execv(program->c_str(), argv.data());
  say_error("bench", "cannot start " + program->string() + ": " + std::strerror(errno));
  return kExitFailed;
}

}  // namespace quarry::app
