// SPDX-License-Identifier: Apache-2.0
// main.cpp - `quarry COMMAND ...`: finds the command's row and runs it. Everything else is in one file per command.
#include <fmt/format.h>

#include <string>

#include "app/console/command.hpp"
#include "app/console/program.hpp"
#include "app/console/terminal.hpp"
#include "base/suggest.hpp"

namespace quarry::app {
namespace {

constexpr Command kCommands[] = {
    {"edit", "Open the voxel editor", run_edit},
    {"convert", "Turn meshes, .vox and other files into worlds, and back", run_convert},
    {"render", "Make a PNG picture of a world, without a window", run_render},
    {"info", "Say what is in a file, and what its hash grid looks like", run_info},
    {"diff", "Compare two files voxel by voxel", run_diff},
    {"validate", "Read files whole and say what is wrong with them", run_validate},
    {"generate", "Make a procedural scene", run_generate},
    {"doctor", "Say what this machine has, and what each lack costs", run_doctor},
    {"bench", "Measure", run_bench},
    {"completion", "Print a completion script for a shell", run_completion},
    {"man", "Print the manual page", run_man},
};

void print_help() {
  fmt::print("Quarry {}: sparse voxels for graphics engines.\n\nUsage: quarry COMMAND [OPTIONS]\n\nCommands:\n",
             QRY_VERSION);
  for (const Command& command : kCommands) fmt::print("  {:<10} {}\n", command.name, command.title);
  fmt::print(
      "\nOptions:\n  --help     this text; `quarry COMMAND --help` has the options and examples of one command\n"
      "  --version  the version\n"
      "\nExamples:\n  quarry generate terrain -o terrain.quarry\n  quarry render terrain.quarry -o terrain.png\n"
      "  quarry edit terrain.quarry\n"
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 some inputs of a batch failed, 130 interrupted.\n");
}

int dispatch(const std::vector<std::string>& words) {
  std::vector<std::string> known{"--help", "--version"};
  for (const Command& command : kCommands) known.emplace_back(command.name);
  if (words.empty()) {
    print_help();
    return kExitUsage;
  }
  const std::string& first = words[0];
  if (first == "--help" || first == "-h" || first == "help") {
    if (words.size() > 1)
      if (const Command* command = find_command(words[1])) return command->run({"--help"});
    print_help();
    return kExitDone;
  }
  if (first == "--version" || first == "-V") {
    fmt::print("quarry {}{}\n", QRY_VERSION, QRY_WITH_CUDA ? " (with CUDA)" : "");
    return kExitDone;
  }
  if (const Command* command = find_command(first)) {
    listen_for_interrupts();
    return command->run({words.begin() + 1, words.end()});
  }
  fmt::print(stderr, "quarry: there is no {} '{}'.{}\nTry 'quarry --help'.\n",
             first.starts_with("-") ? "option" : "command", first, did_you_mean(first, known));
  return kExitUsage;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  for (const Command& command : kCommands)
    if (command.name == name) return &command;
  return nullptr;
}

}  // namespace quarry::app

int main(int count, char** values) { return quarry::app::run_program(count, values, quarry::app::dispatch); }
