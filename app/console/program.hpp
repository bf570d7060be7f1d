// SPDX-License-Identifier: Apache-2.0
// program.hpp - the frame of every program here: its arguments go in, an exit code and a message come out, whatever
// happens.
#pragma once

#include "app/console/command.hpp"

namespace quarry::app {

// Runs `run` with main()'s arguments except the first. If memory runs out or output cannot be written, it ends with a
// message and kExitFailed.
int run_program(int count, char** values, int (*run)(const CommandArguments& words));

}  // namespace quarry::app
