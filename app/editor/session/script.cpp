// SPDX-License-Identifier: Apache-2.0
// script.cpp - the parser: verbs with their arguments, checked before the first command runs.
#include "app/editor/session/script.hpp"
#include "base/suggest.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <sstream>

namespace quarry::app {
namespace {

struct Argument {
  bool number, optional;
};

std::vector<Argument> arguments_of(const ScriptVerb& verb) {
  std::vector<Argument> arguments;
  std::istringstream words(verb.arguments);
  for (std::string word; words >> word;) {
    const bool optional = word.front() == '[';
    const std::string bare = optional ? word.substr(1, word.size() - 2) : word;
    // The verb table writes numbers in capitals and text in small letters.
    arguments.push_back({bare.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos, optional});
  }
  return arguments;
}

Result<double> number_of(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    return fail(ErrorCode::bad_usage, fmt::format("'{}' is not a number", word));
  return value;
}

Result<void> check(const ScriptVerb& verb, ScriptCommand& command) {
  const std::vector<Argument> arguments = arguments_of(verb);
  const size_t given = command.words.size() - 1;
  size_t needed = 0;
  for (const Argument& argument : arguments) needed += argument.optional ? 0u : 1u;
  if (given < needed || given > arguments.size())
    return fail(ErrorCode::bad_usage, fmt::format("wants `{} {}`", verb.name, verb.arguments));
  for (size_t i = 0; i < given; ++i) {
    if (!arguments[i].number) continue;
    QRY_TRY_ASSIGN(const auto number, number_of(command.words[i + 1]));
    command.numbers.push_back(number);
  }
  return {};
}

}  // namespace

const std::vector<ScriptVerb>& script_verbs() {
  static const std::vector<ScriptVerb> verbs{
      {"sphere", "mode X Y Z RADIUS MATERIAL"},
      {"box", "mode X0 Y0 Z0 X1 Y1 Z1 MATERIAL"},
      {"line", "mode X0 Y0 Z0 X1 Y1 Z1 RADIUS MATERIAL"},
      {"connected", "mode X Y Z MATERIAL"},
      {"grow", "STEPS [NEIGHBOURS]"},
      {"erode", "STEPS [NEIGHBOURS]"},
      {"drop_parts", "VOXELS [NEIGHBOURS]"},
      {"keep_parts", "COUNT [NEIGHBOURS]"},
      {"combine", "how file"},
      {"undo", ""},
      {"redo", ""},
      {"tool", "mode shape [RADIUS]"},
      {"material", "INDEX"},
      {"view", "name"},
      {"paths", "COUNT"},
      {"camera", "AZIMUTH ELEVATION [DISTANCE]"},
      {"look", "X Y Z"},
      {"frame", ""},
      {"move", "X Y"},
      {"click", "X Y"},
      {"drag", "X0 Y0 X1 Y1 [button]"},
      {"scroll", "STEPS"},
      {"key", "keys"},
      {"type", "text"},
      {"new", ""},
      {"open", "file"},
      {"save", "[file]"},
      {"ask", ""},
      {"wait", "FRAMES [SECONDS]"},
      {"screenshot", "file"},
      {"quit", ""},
  };
  return verbs;
}

Result<std::vector<ScriptCommand>> parse_script(const std::string& text, const std::string& name) {
  std::vector<ScriptCommand> commands;
  std::vector<std::string> known;
  for (const ScriptVerb& verb : script_verbs()) known.emplace_back(verb.name);
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    ScriptCommand command;
    command.line = number;
    std::istringstream words(line);
    for (std::string word; words >> word;) command.words.push_back(word);
    if (command.words.empty()) continue;
    command.text = fmt::format("{}", fmt::join(command.words, " "));
    const ScriptVerb* verb = nullptr;
    for (const ScriptVerb& row : script_verbs())
      if (command.words[0] == row.name) verb = &row;
    if (!verb)
      return fail(ErrorCode::bad_usage, fmt::format("{}: line {}: there is no command '{}'.{}", name, number,
                                                    command.words[0], did_you_mean(command.words[0], known)));
    if (auto right = check(*verb, command); !right)
      return fail(ErrorCode::bad_usage,
                  fmt::format("{}: line {}: `{}`: {}", name, number, command.text, right.error().message));
    commands.push_back(std::move(command));
  }
  return commands;
}

Result<std::vector<ScriptCommand>> read_script(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf()).good()) {
    std::error_code error;
    if (in && std::filesystem::is_regular_file(file, error) && std::filesystem::file_size(file, error) == 0)
      return std::vector<ScriptCommand>{};
    return fail(ErrorCode::not_found, file.string() + ": the script cannot be read");
  }
  return parse_script(text.str(), file.string());
}

}  // namespace quarry::app
