// SPDX-License-Identifier: Apache-2.0
// arguments.hpp - one command's command line: options by name, with examples in the help and "did you mean" in the
// errors. It is a thin layer over CLI11, which only arguments.cpp uses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/console/command.hpp"

namespace quarry::app {

// One option or positional argument as the program understands it. Shell completions and the manual page are made from
// these.
struct OptionText {
  std::vector<std::string> names;    // "-o", "--output"; for a positional argument the shown name
  std::string value, help, group;    // value: "" if the option takes none
  std::vector<std::string> choices;  // the allowed values, if they are a list
  bool positional = false, repeated = false, required = false;
};
struct CommandText {
  std::string name, title, examples;
  std::vector<OptionText> options;
};

// One option as it was on the command line.
struct OrderedOption {
  std::string name, value;  // "--crop", "0,0,0,9,9,9"
};

class Arguments {
 public:
  // `examples`: whole lines, printed at the end of --help.
  Arguments(const char* command, const char* title, const char* examples);
  ~Arguments();

  // `names` in CLI11's form: "-o,--output", "--size", or "input" for a positional argument. --help shows `shown` in
  // place of the value. Targets keep their value if the option is absent.
  void text(const char* names, std::string& target, const char* shown, const char* help, bool required = false);
  void texts(const char* names, std::vector<std::string>& target, const char* shown, const char* help,
             bool required = false);
  void integer(const char* names, int64_t& target, const char* shown, const char* help, int64_t lowest,
               int64_t highest);
  void real(const char* names, double& target, const char* shown, const char* help, double lowest, double highest);
  void flag(const char* names, bool& target, const char* help);
  // One of `choices`. Any other value is refused, and the message names the nearest choice.
  void choice(const char* names, std::string& target, const char* shown, const char* help,
              std::vector<std::string> choices);
  // An option that may be given several times. Each use is appended to `target` in the order of the command line, also
  // among several such options with the same target. `shown` null: it takes no value.
  void ordered(const char* name, std::vector<OrderedOption>& target, const char* shown, const char* help);
  void group(const char* title);       // heading in --help for the options that follow
  bool given(const char* name) const;  // after parse: was the option on the command line?

  // Returns nothing if the command should continue. Otherwise it returns the exit code: help was printed (0), or the
  // line is wrong (2; the reason and the nearest right name are on stderr).
  std::optional<int> parse(const CommandArguments& arguments);

  // Prints "quarry COMMAND: message" and how to get help; returns kExitUsage.
  int wrong(const std::string& message) const;
  // Of an option's number of bytes, which stays as it is if the option was not given. Returns wrong() for other text.
  std::optional<int> check_bytes(const char* option, const std::string& text, uint64_t& bytes) const;
  // The options that parse() would accept, without a command line.
  CommandText text_of() const;
  // Checks that `value` is one of `allowed`. Otherwise prints a message with the nearest one and returns kExitUsage.
  std::optional<int> check_name(const char* option, const std::string& value,
                                const std::vector<std::string>& allowed) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The options that a command's parse() would accept. It runs the command up to its parse() and no further. Every
// command parses before it does anything.
CommandText describe(const Command& command);

// "800x600" -> both > 0 and at most 16384; otherwise false.
bool parse_size(const std::string& text, uint32_t& width, uint32_t& height);
// "512M", "1.5GiB", "2G", "4096" (bytes): powers of 1024, at least 1; otherwise false.
bool parse_bytes(const std::string& text, uint64_t& bytes);
// "1,2.5,-3"; false unless three finite numbers.
bool parse_vector(const std::string& text, double out[3]);

}  // namespace quarry::app
