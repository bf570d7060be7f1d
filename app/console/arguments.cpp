// SPDX-License-Identifier: Apache-2.0
// arguments.cpp - options through CLI11, which no other file includes; "did you mean" for words that CLI11 does not
// know.
#include "app/console/arguments.hpp"
#include "base/suggest.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>

namespace quarry::app {

struct Arguments::State {
  std::string command, title, examples, group = "Options";
  CLI::App cli;
  std::map<const CLI::Option*, std::vector<std::string>> choices;
};

namespace {

thread_local CommandText* described = nullptr;  // if set, parse() stores here what it would accept, and parses nothing

// The message if `value` is not in `allowed`; "" if it is.
std::string not_among(const std::string& value, const std::vector<std::string>& allowed) {
  for (const std::string& name : allowed)
    if (name == value) return {};
  return fmt::format("'{}' is none of: {}.{}", value, fmt::join(allowed, ", "), did_you_mean(value, allowed));
}

}  // namespace

Arguments::Arguments(const char* command, const char* title, const char* examples) : state_(std::make_unique<State>()) {
  state_->command = command;
  state_->title = title;
  state_->examples = examples ? examples : "";
  state_->cli.description(title);
  state_->cli.name(fmt::format("quarry {}", command));
  state_->cli.footer(examples ? fmt::format("\nExamples:\n{}", examples) : std::string());
  state_->cli.get_formatter()->column_width(34);
  state_->cli.get_formatter()->label("REQUIRED", "(required)");
  // Unknown words are collected, so that the message can name the nearest known one.
  state_->cli.allow_extras();
}
Arguments::~Arguments() = default;

void Arguments::text(const char* names, std::string& target, const char* shown, const char* help, bool required) {
  state_->cli.add_option(names, target, help)->type_name(shown)->required(required)->group(state_->group);
}
void Arguments::texts(const char* names, std::vector<std::string>& target, const char* shown, const char* help,
                      bool required) {
  state_->cli.add_option(names, target, help)->type_name(shown)->required(required)->group(state_->group);
}
void Arguments::integer(const char* names, int64_t& target, const char* shown, const char* help, int64_t lowest,
                        int64_t highest) {
  state_->cli.add_option(names, target, help)
      ->type_name(shown)
      ->group(state_->group)
      ->check([lowest, highest](const std::string& value) -> std::string {
        int64_t number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error == std::errc() && end == value.data() + value.size() && number >= lowest && number <= highest)
          return {};
        return fmt::format("'{}' is not a whole number from {} to {}", value, lowest, highest);
      });
}
void Arguments::real(const char* names, double& target, const char* shown, const char* help, double lowest,
                     double highest) {
  state_->cli.add_option(names, target, help)
      ->type_name(shown)
      ->group(state_->group)
      ->check([lowest, highest](const std::string& value) -> std::string {
        double number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error == std::errc() && end == value.data() + value.size() && std::isfinite(number) && number >= lowest &&
            number <= highest)
          return {};
        return fmt::format("'{}' is not a number from {} to {}", value, lowest, highest);
      });
}
void Arguments::flag(const char* names, bool& target, const char* help) {
  state_->cli.add_flag(names, target, help)->group(state_->group);
}
void Arguments::choice(const char* names, std::string& target, const char* shown, const char* help,
                       std::vector<std::string> choices) {
  CLI::Option* option = state_->cli.add_option(names, target, help)->type_name(shown)->group(state_->group);
  state_->choices[option] = std::move(choices);
}
void Arguments::ordered(const char* name, std::vector<OrderedOption>& target, const char* shown, const char* help) {
  CLI::Option* option = nullptr;
  if (shown) {
    option = state_->cli
                 .add_option_function<std::string>(
                     name,
                     [&target, name](const std::string& value) {
                       target.push_back({name, value});
                     },
                     help)
                 ->type_name(shown);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  } else {
    option = state_->cli.add_flag_function(
        name,
        [&target, name](int64_t) {
          target.push_back({name, ""});
        },
        help);
  }
  option->trigger_on_parse()->group(state_->group);
}
void Arguments::group(const char* title) { state_->group = title; }

CommandText Arguments::text_of() const {
  CommandText out{state_->command, state_->title, state_->examples, {}};
  for (const CLI::Option* option : state_->cli.get_options()) {
    OptionText text;
    for (const std::string& name : option->get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) text.names.push_back("--" + name);
    text.positional = option->get_positional();
    text.required = option->get_required();
    text.repeated = option->get_expected_max() > 1 || option->get_trigger_on_parse();
    text.value = option->get_expected_max() == 0 ? std::string() : option->get_type_name();
    text.help = option->get_description();
    text.group = option->get_group();
    if (text.positional) text.names = {text.value};
    if (const auto it = state_->choices.find(option); it != state_->choices.end()) text.choices = it->second;
    out.options.push_back(std::move(text));
  }
  return out;
}

CommandText describe(const Command& command) {
  CommandText text;
  described = &text;
  command.run({});
  described = nullptr;
  return text;
}

bool Arguments::given(const char* name) const { return state_->cli.count(name) > 0; }

std::optional<int> Arguments::parse(const CommandArguments& arguments) {
  CLI::App& cli = state_->cli;
  if (described) {
    *described = text_of();
    return kExitDone;
  }
  // Unknown words are reported first, because a wrong option name usually causes the other errors.
  const auto unknown = [&]() -> std::optional<int> {
    std::vector<std::string> known;
    for (const CLI::Option* option : cli.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      for (const std::string& name : option->get_snames()) known.push_back("-" + name);
    }
    bool options_ended = false;  // CLI11 keeps the "--" that ends options among the remaining words
    for (const std::string& extra : cli.remaining()) {
      if (extra == "--" && !options_ended) {
        options_ended = true;
        continue;
      }
      const bool option = !options_ended && extra.size() > 1 && extra[0] == '-';
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
    std::string message = error.what();
    if (!message.ends_with('?') && !message.ends_with('.')) message += '.';
    return wrong(message);
  }
  if (const auto code = unknown()) return code;
  for (const auto& [option, allowed] : state_->choices)
    for (const std::string& value : option->results())
      if (const auto code = check_name(option->get_name().c_str(), value, allowed)) return code;
  return {};
}

std::optional<int> Arguments::check_bytes(const char* option, const std::string& text, uint64_t& bytes) const {
  if (text.empty() || parse_bytes(text, bytes)) return {};
  return wrong(fmt::format("{} '{}' is no size: write 512M, 2G or a number of bytes.", option, text));
}

int Arguments::wrong(const std::string& message) const {
  fmt::print(stderr, "quarry {}: {}\nTry 'quarry {} --help'.\n", state_->command, message, state_->command);
  return kExitUsage;
}

std::optional<int> Arguments::check_name(const char* option, const std::string& value,
                                         const std::vector<std::string>& allowed) const {
  const std::string why = not_among(value, allowed);
  if (why.empty()) return {};
  return wrong(fmt::format("{} {}", option, why));
}

bool parse_size(const std::string& text, uint32_t& width, uint32_t& height) {
  const char* end = text.data() + text.size();
  const auto [cross, width_error] = std::from_chars(text.data(), end, width);
  if (width_error != std::errc() || cross == end || (*cross != 'x' && *cross != 'X')) return false;
  const auto [last, height_error] = std::from_chars(cross + 1, end, height);
  return height_error == std::errc() && last == end && width > 0 && height > 0 && width <= 16384 && height <= 16384;
}

bool parse_bytes(const std::string& text, uint64_t& bytes) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) return false;
  std::string letters(unit, end);
  for (const char* tail : {"iB", "B"})
    if (letters.ends_with(tail)) letters.resize(letters.size() - std::string_view(tail).size());
  int shift = 0;
  if (!letters.empty()) {
    constexpr std::string_view kUnits = "KMGT";
    const char letter = letters[0] >= 'a' ? char(letters[0] - 'a' + 'A') : letters[0];
    const size_t at = kUnits.find(letter);
    if (letters.size() != 1 || at == std::string_view::npos) return false;
    shift = 10 * int(at + 1);
  }
  const double size = std::ldexp(number, shift);
  if (size < 1 || size > 1e18) return false;
  bytes = uint64_t(size);
  return true;
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
