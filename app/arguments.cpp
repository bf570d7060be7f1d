#include "app/arguments.hpp"
#include "voxel/suggest.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>


namespace quarry::app {

struct Arguments::State {
  std::string command;
  CLI::App cli;
};

Arguments::Arguments(const char* command, const char* title, const char* examples) : state_(std::make_unique<State>()) {
  state_->command = command;
  state_->cli.description(title);
  state_->cli.name(fmt::format("quarry {}", command));
  state_->cli.footer(examples ? fmt::format("\nExamples:\n{}", examples) : std::string());
  state_->cli.get_formatter()->column_width(34);
  state_->cli.get_formatter()->label("REQUIRED", "(required)");
  // Extras are collected so that the message can have the nearest name in it.
  state_->cli.allow_extras();
}
Arguments::~Arguments() = default;

void Arguments::text(const char* names, std::string& target, const char* shown, const char* help, bool required) {
  state_->cli.add_option(names, target, help)->type_name(shown)->required(required);
}
void Arguments::texts(const char* names, std::vector<std::string>& target, const char* shown, const char* help, bool required) {
  state_->cli.add_option(names, target, help)->type_name(shown)->required(required);
}
void Arguments::integer(const char* names, int64_t& target, const char* shown, const char* help, int64_t lowest, int64_t highest) {
  state_->cli.add_option(names, target, help)->type_name(shown)->check([lowest, highest](const std::string& value) -> std::string {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc() && end == value.data() + value.size() && number >= lowest && number <= highest) return {};
    return fmt::format("'{}' is not a whole number from {} to {}", value, lowest, highest);
  });
}
void Arguments::real(const char* names, double& target, const char* shown, const char* help, double lowest, double highest) {
  state_->cli.add_option(names, target, help)->type_name(shown)->check([lowest, highest](const std::string& value) -> std::string {
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc() && end == value.data() + value.size() && std::isfinite(number) && number >= lowest && number <= highest) return {};
    return fmt::format("'{}' is not a number from {} to {}", value, lowest, highest);
  });
}
void Arguments::flag(const char* names, bool& target, const char* help) { state_->cli.add_flag(names, target, help); }

bool Arguments::given(const char* name) const { return state_->cli.count(name) > 0; }

std::optional<int> Arguments::parse(const CommandArguments& arguments) {
  CLI::App& cli = state_->cli;
  // What was typed and is not known comes first: a wrong option name usually causes the other errors.
  const auto unknown = [&]() -> std::optional<int> {
    std::vector<std::string> known;
    for (const CLI::Option* option : cli.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      for (const std::string& name : option->get_snames()) known.push_back("-" + name);
    }
    for (const std::string& extra : cli.remaining()) {
      const bool option = extra.size() > 1 && extra[0] == '-';
      if (!option) return wrong(fmt::format("unexpected argument '{}'.", extra));
      const std::string name = extra.substr(0, extra.find('='));
      return wrong(fmt::format("there is no option '{}'.{}", name, did_you_mean(name, known)));
    }
    return {};
  };
  try {
    cli.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    std::fputs(cli.help().c_str(), stdout);
    return kExitDone;
  } catch (const CLI::ParseError& error) {
    if (const auto code = unknown()) return code;
    return wrong(fmt::format("{}.", error.what()));
  }
  return unknown();
}

int Arguments::wrong(const std::string& message) const {
  fmt::print(stderr, "quarry {}: {}\nTry 'quarry {} --help'.\n", state_->command, message, state_->command);
  return kExitUsage;
}

std::optional<int> Arguments::check_name(const char* option, const std::string& value, const std::vector<std::string>& allowed) const {
  for (const std::string& name : allowed)
    if (name == value) return {};
  return wrong(fmt::format("{} '{}' is none of: {}.{}", option, value, fmt::join(allowed, ", "), did_you_mean(value, allowed)));
}

bool parse_size(const std::string& text, uint32_t& width, uint32_t& height) {
  const char* end = text.data() + text.size();
  const auto [cross, width_error] = std::from_chars(text.data(), end, width);
  if (width_error != std::errc() || cross == end || (*cross != 'x' && *cross != 'X')) return false;
  const auto [last, height_error] = std::from_chars(cross + 1, end, height);
  return height_error == std::errc() && last == end && width > 0 && height > 0 && width <= 16384 && height <= 16384;
}

bool parse_vector(const std::string& text, double out[3]) {
  const char *at = text.data(), *end = text.data() + text.size();
  for (int axis = 0; axis < 3; ++axis) {
    if (axis > 0) {
      if (at == end || *at != ',') return false;
      ++at;
    }
    const auto [next, error] = std::from_chars(at, end, out[axis]);
    if (error != std::errc() || !std::isfinite(out[axis])) return false;
    at = next;
  }
  return at == end;
}

}  // namespace quarry::app
