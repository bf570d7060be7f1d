// SPDX-License-Identifier: Apache-2.0
// program.cpp - the frame of main(): signals, exceptions that no module has caught, and whether standard output could
// be written.
#include "app/console/program.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "app/console/terminal.hpp"

namespace quarry::app {

int run_program(int count, char** values, int (*run)(const CommandArguments& words)) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file larger than `ulimit -f` allows is an error of its write, and has a message
  // Modules return errors in Result. Only the standard library can still throw, when memory runs out; that ends in a
  // message too.
  try {
    const int code = run({values + 1, values + count});
    if (std::fflush(stdout) != 0 && code == kExitDone) {
      say_error("", "standard output could not be written");
      return kExitFailed;
    }
    return code;
  } catch (const std::bad_alloc&) {
    say_error("", "out of memory; try a smaller --resolution or --size");
  } catch (const std::exception& error) {
    say_error("", std::string("unexpected: ") + error.what());
  }
  return kExitFailed;
}

}  // namespace quarry::app
