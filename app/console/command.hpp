// SPDX-License-Identifier: Apache-2.0
// command.hpp - the commands of `quarry`, one row each, and the exit codes they share.
//
// main.cpp -> find_command() -> run(arguments after the command's name) -> exit code. Each command is in one file of
// its name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::app {

enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,       // the message is on stderr
  kExitUsage = 2,        // wrong command line
  kExitSomeFailed = 3,   // some inputs of a batch failed, the rest are written
  kExitCancelled = 130,  // interrupted by the user, as shells report it
};

using CommandArguments = std::vector<std::string>;

struct Command {
  const char* name;
  const char* title;  // one line for `quarry --help`
  int (*run)(const CommandArguments& arguments);
};

std::span<const Command> commands();
const Command* find_command(std::string_view name);  // null if there is none

int run_convert(const CommandArguments& arguments);
int run_render(const CommandArguments& arguments);
int run_info(const CommandArguments& arguments);
int run_generate(const CommandArguments& arguments);
int run_edit(const CommandArguments& arguments);
int run_diff(const CommandArguments& arguments);
int run_validate(const CommandArguments& arguments);
int run_doctor(const CommandArguments& arguments);
int run_bench(const CommandArguments& arguments);
int run_completion(const CommandArguments& arguments);
int run_man(const CommandArguments& arguments);

}  // namespace quarry::app
