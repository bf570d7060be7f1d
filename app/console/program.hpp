// SPDX-License-Identifier: Apache-2.0
// program.hpp - what every program here does about its work: its words in, an exit code and a message out, whatever
// happens.
#pragma once

#include "app/console/command.hpp"

namespace quarry::app {

// Runs `run` with main()'s words but the first. Memory that is not there and output that cannot be written end in a
// message and kExitFailed.
int run_program(int count, char** values, int (*run)(const CommandArguments& words));

}  // namespace quarry::app
