// SPDX-License-Identifier: Apache-2.0
// script.hpp - the script that `quarry edit --script FILE` reads: one command a line, `#` begins a comment. The editor
// carries the commands out through the same paths as mouse and keys.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry::app {

struct ScriptCommand {
  size_t line = 0;
  std::string text;                // as written
  std::vector<std::string> words;  // words[0] is the verb
  std::vector<double> numbers;     // numeric arguments, in order
};

struct ScriptVerb {
  const char* name;
  const char* arguments;  // for people and for the check: `N` is a number, `[N]` an optional one, other words are text
};
const std::vector<ScriptVerb>& script_verbs();

// Checks verbs and the number of arguments of the whole text first, so no part of a script with a mistake is carried
// out.
// Errors: bad_usage with line and the nearest verb.
Result<std::vector<ScriptCommand>> parse_script(const std::string& text, const std::string& name);
Result<std::vector<ScriptCommand>> read_script(const std::filesystem::path& file);

}  // namespace quarry::app
