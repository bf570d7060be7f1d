// SPDX-License-Identifier: Apache-2.0
// completion.cpp - `quarry completion SHELL` and `quarry man`: texts made from the commands' own definitions
// (shell_completion.hpp).
#include <fmt/format.h>

#include "app/commands/shell_completion.hpp"
#include "app/console/terminal.hpp"

namespace quarry::app {
namespace {

std::vector<CommandText> texts_of_commands() {
  std::vector<CommandText> texts;
  for (const Command& command : commands()) texts.push_back(describe(command));
  return texts;
}

}  // namespace

int run_completion(const CommandArguments& words) {
  std::string shell;
  Arguments arguments("completion", "Print a completion script for a shell.",
                      "  quarry completion bash > ~/.local/share/bash-completion/completions/quarry\n"
                      "  quarry completion zsh > ~/.zfunc/_quarry\n"
                      "  quarry completion fish > ~/.config/fish/completions/quarry.fish\n");
  arguments.choice("shell", shell, "SHELL", "bash, zsh or fish", {"bash", "zsh", "fish"});
  if (const auto code = arguments.parse(words)) return *code;
  if (shell.empty()) return arguments.wrong("which shell? bash, zsh or fish.");
  fmt::print("{}", completion_script(shell, texts_of_commands()));
  return kExitDone;
}

int run_man(const CommandArguments& words) {
  Arguments arguments("man", "Print the manual page, quarry(1).", "  quarry man | man -l -\n  quarry man > quarry.1\n");
  if (const auto code = arguments.parse(words)) return *code;
  fmt::print("{}", manual_page(texts_of_commands(), QRY_VERSION));
  return kExitDone;
}

}  // namespace quarry::app
