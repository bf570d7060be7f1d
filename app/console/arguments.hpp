// SPDX-License-Identifier: Apache-2.0
// arguments.hpp - one command's command line: options by name, with examples in the help and "did you mean" in the
// errors. A thin face over CLI11, which stays inside arguments.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/console/command.hpp"

namespace quarry::app {

// One option or positional as the program understands it, for what is made from that: shell completions, the manual
// page.
struct OptionText {
  std::vector<std::string> names;    // "-o", "--output"; of a positional one the shown name
  std::string value, help, group;    // value: "" takes none
  std::vector<std::string> choices;  // what the value may be, if that is a list
  bool positional = false, repeated = false, required = false;
};
struct CommandText {
  std::string name, title, examples;
  std::vector<OptionText> options;
};

// One option as it stood on the command line.
struct OrderedOption {
  std::string name, value;  // "--crop", "0,0,0,9,9,9"
};

class Arguments {
 public:
  // `examples`: whole lines, shown at the end of --help.
  Arguments(const char* command, const char* title, const char* examples);
  ~Arguments();

  // `names` as CLI11 takes them: "-o,--output", "--size", or "input" for a positional one. `shown` stands for the value
  // in --help. Targets keep their value if the option is absent.
  void text(const char* names, std::string& target, const char* shown, const char* help, bool required = false);
  void texts(const char* names, std::vector<std::string>& target, const char* shown, const char* help,
             bool required = false);
  void integer(const char* names, int64_t& target, const char* shown, const char* help, int64_t lowest,
               int64_t highest);
  void real(const char* names, double& target, const char* shown, const char* help, double lowest, double highest);
  void flag(const char* names, bool& target, const char* help);
  // One of `choices`; any other value is refused with the nearest.
  void choice(const char* names, std::string& target, const char* shown, const char* help,
              std::vector<std::string> choices);
  // An option that may come several times; what stood on the line is appended to `target`, in its order, also between
  // several such options with the same target. `shown` null: it takes no value.
  void ordered(const char* name, std::vector<OrderedOption>& target, const char* shown, const char* help);
  void group(const char* title);       // heading in --help of the options that follow
  bool given(const char* name) const;  // after parse: was the option on the command line?

  // Nothing: go on. Else the exit code: help was printed (0) or the line is wrong (2; the reason and the nearest right
  // name are on stderr).
  std::optional<int> parse(const CommandArguments& arguments);

  // Prints "quarry COMMAND: message" and where to find help; returns kExitUsage.
  int wrong(const std::string& message) const;
  // What parse() would understand, without a command line.
  CommandText text_of() const;
  // `value` must be one of `allowed`; else prints the message with the nearest and returns kExitUsage.
  std::optional<int> check_name(const char* option, const std::string& value,
                                const std::vector<std::string>& allowed) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What a command's parse() would understand: runs it up to its parse() and no further. Every command parses before it
// does anything.
CommandText describe(const Command& command);

// "800x600" -> both > 0 and at most 16384; false else.
bool parse_size(const std::string& text, uint32_t& width, uint32_t& height);
// "512M", "1.5GiB", "2G", "4096" (bytes): powers of 1024, at least 1; false else.
bool parse_bytes(const std::string& text, uint64_t& bytes);
// "1,2.5,-3"; false unless three finite numbers.
bool parse_vector(const std::string& text, double out[3]);

}  // namespace quarry::app
