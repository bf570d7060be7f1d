// SPDX-License-Identifier: Apache-2.0
// shell_completion.cpp - the texts for bash, zsh, fish and troff, each with its own quoting.
#include "app/commands/shell_completion.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quarry::app {
namespace {

// The placeholder of a value in --help decides how it is completed.
enum class Completes : uint8_t { nothing, files, directories, choices };
Completes completes(const OptionText& option) {
  if (!option.choices.empty()) return Completes::choices;
  for (const char* file : {"FILE", "FILE...", "IN", "IN...", "OUT", "PNG", "A", "B"})
    if (option.value == file) return Completes::files;
  return option.value == "DIR" ? Completes::directories : Completes::nothing;
}

// Text in 'single quotes', as all three shells read them.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return out + "'";
}

std::vector<std::string> option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options)
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::string bash_script(const std::vector<CommandText>& commands) {
  std::string names, options, values;
  for (const CommandText& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    options += fmt::format("    {}) options={} ;;\n", command.name,
                           shell_quoted(fmt::format("{}", fmt::join(option_names(command), " "))));
    for (const OptionText& option : command.options) {
      if (option.positional || option.value.empty()) continue;
      std::string patterns;
      for (const std::string& name : option.names)
        patterns += fmt::format("{}{}:{}", patterns.empty() ? "" : "|", command.name, name);
      switch (completes(option)) {
        case Completes::choices:
          values += fmt::format("    {}) COMPREPLY=($(compgen -W {} -- \"$current\")); return ;;\n", patterns,
                                shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
          break;
        case Completes::files:
          values += fmt::format("    {}) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n", patterns);
          break;
        case Completes::directories:
          values += fmt::format("    {}) COMPREPLY=($(compgen -d -- \"$current\")); return ;;\n", patterns);
          break;
        case Completes::nothing: values += fmt::format("    {}) return ;;\n", patterns); break;
      }
    }
  }
  return fmt::format(R"(# bash completion of quarry, made by `quarry completion bash`
_quarry() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}")"
                     R"( command="${{COMP_WORDS[1]}}" options=''
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W {} -- "$current"))
    return
  fi
  case "$command:$previous" in
{}  esac
  case "$command" in
{}  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _quarry quarry
)",
                     shell_quoted(names + " --help --version"), values, options);
}

std::string zsh_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_script(const std::vector<CommandText>& commands) {
  std::string list, cases;
  for (const CommandText& command : commands) {
    list += fmt::format("    {}\n", shell_quoted(command.name + ":" + zsh_escaped(command.title)));
    std::string words;
    for (const OptionText& option : command.options) {
      std::string action;
      switch (completes(option)) {
        case Completes::choices: action = fmt::format("({})", fmt::join(option.choices, " ")); break;
        case Completes::files: action = "_files"; break;
        case Completes::directories: action = "_files -/"; break;
        case Completes::nothing: break;
      }
      if (option.positional) {
        words += fmt::format(" \\\n        {}", shell_quoted(fmt::format("{}:{}:{}", option.repeated ? "*" : "",
                                                                         zsh_escaped(option.value), action)));
        continue;
      }
      for (const std::string& name : option.names) {
        std::string word = fmt::format("{}{}[{}]", option.repeated ? "*" : "", name, zsh_escaped(option.help));
        if (!option.value.empty()) word += fmt::format(":{}:{}", zsh_escaped(option.value), action);
        words += fmt::format(" \\\n        {}", shell_quoted(word));
      }
    }
    cases += fmt::format("    {})\n      _arguments -S{}\n      ;;\n", command.name, words);
  }
  return fmt::format(R"(#compdef quarry
# zsh completion of quarry, made by `quarry completion zsh`
_quarry() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$command" in
{}  esac
}}
_quarry "$@"
)",
                     list, cases);
}

std::string fish_script(const std::vector<CommandText>& commands) {
  std::string out = "# fish completion of quarry, made by `quarry completion fish`\ncomplete -c quarry -e\n";
  for (const CommandText& command : commands) {
    out += fmt::format("complete -c quarry -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                       shell_quoted(command.title));
    const std::string when = shell_quoted("__fish_seen_subcommand_from " + command.name);
    for (const OptionText& option : command.options) {
      if (option.positional) continue;
      std::string names;
      for (const std::string& name : option.names)
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      std::string value;
      if (!option.value.empty()) {
        const Completes kind = completes(option);
        value = kind == Completes::files         ? " -r -F"
                : kind == Completes::directories ? " -x -a '(__fish_complete_directories)'"
                                                 : " -x";
        if (kind == Completes::choices)
          value += " -a " + shell_quoted(fmt::format("{}", fmt::join(option.choices, " ")));
      }
      out += fmt::format("complete -c quarry -n {}{}{} -d {}\n", when, names, value, shell_quoted(option.help));
    }
  }
  return out;
}

// Text escaped for troff.
std::string roff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
    line_start = c == '\n';
  }
  return out;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return text;
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<CommandText>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  return shell == "fish" ? fish_script(commands) : std::string();
}

std::string manual_page(const std::vector<CommandText>& commands, const std::string& version) {
  std::string out = fmt::format(
      ".TH QUARRY 1 \"\" \"Quarry {}\" \"User Commands\"\n.SH NAME\n"
      "quarry \\- sparse voxels: convert, render, edit, compare\n.SH SYNOPSIS\n.B quarry\n.I COMMAND\n"
      ".RI [ OPTIONS ]\n"
      ".SH DESCRIPTION\nQuarry turns meshes, voxel files and point clouds into sparse "
      "voxel worlds and back, makes pictures of them without a window, compares and checks "
      "them, "
      "and has an editor.\n.SH COMMANDS\n",
      version);
  for (const CommandText& command : commands) out += fmt::format(".TP\n.B {}\n{}\n", command.name, roff(command.title));
  for (const CommandText& command : commands) {
    out += fmt::format(".SH {}\n.B quarry {}\n", roff(upper(command.name)), command.name);
    for (const OptionText& option : command.options)
      if (option.positional)
        out += option.required ? fmt::format(".I {}\n", roff(option.value))
                               : fmt::format(".RI [ {} ]\n", roff(option.value));
    out += fmt::format(".RI [ OPTIONS ]\n.PP\n{}\n", roff(command.title));
    std::string group = "Options";
    for (const OptionText& option : command.options) {
      if (!option.positional && option.group != group) out += fmt::format(".SS {}\n", roff(group = option.group));
      out += ".TP\n";
      if (option.positional) {
        out += fmt::format(".I {}\n", roff(option.value));
      } else {
        std::string names;
        for (const std::string& name : option.names) names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
        out += names + (option.value.empty() ? "" : " \\fI" + roff(option.value) + "\\fR") + "\n";
      }
      out += roff(option.help) + (option.help.ends_with('.') ? "" : ".") +
             (option.repeated && !option.positional ? " May be given several times.\n" : "\n");
    }
    if (!command.examples.empty()) out += ".SS Examples\n.nf\n" + roff(command.examples) + ".fi\n";
  }
  out +=
      ".SH EXIT STATUS\n.TP\n0\nDone.\n.TP\n1\nFailed; the reason is on standard error.\n.TP\n2\nWrong usage.\n"
      ".TP\n3\nSome inputs of a batch failed; the rest are written.\n"
      ".TP\n130\nInterrupted. No output file is ever partial.\n.SH ENVIRONMENT\n.TP\nQUARRY_THREADS\n"
      "Number of threads; otherwise all cores.\n.TP\nQUARRY_MESH_READER\n"
      "Path of quarry\\-mesh\\-reader, if it is not where it was installed.\n";
  return out;
}

}  // namespace quarry::app
