// SPDX-License-Identifier: Apache-2.0
// completion_test.cpp - texts made from the program's own definitions: completion scripts that shells accept, and a
// manual page without faults.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "tests/app/program_output.hpp"

namespace completion_test {

using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

bool installed(const std::string& program) {
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string dir; std::getline(path, dir, ':');)
    if (::access((fs::path(dir) / program).c_str(), X_OK) == 0) return true;
  return false;
}

fs::path script_of(const fs::path& dir, const std::string& shell) {
  const Outcome made = run_quarry({"completion", shell});
  REQUIRE(made.code == 0);
  CHECK(made.err.empty());
  fs::path file = dir / ("completion." + shell);
  std::ofstream(file) << made.out;
  return file;
}

Outcome run(const std::vector<std::string>& words) { return Process(words).finish(60); }

// The completions that bash offers for the last of these words.
std::string offered(const fs::path& script, const std::string& words, int index) {
  return run({"bash", "-c",
              "source '" + script.string() + "'; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(index) +
                  "; _quarry; echo \"${COMPREPLY[*]}\""})
      .out;
}

}  // namespace

TEST_CASE("completion: bash takes the script and offers commands, options, values and files") {
  if (!installed("bash")) return skip("no bash for its completion");
  const fs::path dir = scratch_dir("completion"), script = script_of(dir, "bash");
  const Outcome syntax = run({"bash", "-n", script.string()});
  INFO(syntax.err);
  CHECK(syntax.code == 0);
  CHECK(offered(script, "quarry conv", 1) == "convert\n");
  CHECK(offered(script, "quarry convert --res", 2) == "--resolution --resume\n");
  CHECK(offered(script, "quarry convert --picture ''", 3) == "top height\n");
  CHECK(offered(script, "quarry completion -", 2).find("--help") != std::string::npos);
  CHECK(offered(script, "quarry convert " + (dir / "compl").string(), 2) == script.string() + "\n");
  CHECK(run_quarry({"completion", "tcsh"}).code == 2);
  CHECK(run_quarry({"completion"}).code == 2);
}

TEST_CASE("completion: every option of every command is in every script") {
  const fs::path dir = scratch_dir("completion-all");
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome made = run_quarry({"completion", shell});
    REQUIRE(made.code == 0);
    for (const char* command :
         {"convert", "render", "edit", "info", "diff", "validate", "generate", "bench", "doctor"}) {
      const std::string help = run_quarry({command, "--help"}).out;
      CHECK(has(made.out, command));
      size_t options = 0;
      std::istringstream lines(help.substr(0, help.find("Examples:")));
      for (std::string line; std::getline(lines, line);) {
        const size_t at = line.find("--");
        if (at > 8 || line.find_first_not_of(" -,abcdefghijklmnopqrstuvwxyz") < at) continue;
        std::string name = line.substr(at + 2, line.find_first_of(" ,=", at) - at - 2);
        INFO(shell << " " << command << " " << name);
        CHECK(has(made.out, std::string(shell) == "fish" ? "-l " + name : "--" + name));
        ++options;
      }
      CHECK(options > 0);
    }
  }
}

TEST_CASE("completion: zsh and fish take theirs") {
  const fs::path dir = scratch_dir("completion-others");
  for (const char* shell : {"zsh", "fish"}) {
    if (!installed(shell)) {
      skip("no zsh or fish for its completion");
      continue;
    }
    const Outcome syntax = run({shell, "-n", script_of(dir, shell).string()});
    INFO(shell << ": " << syntax.err);
    CHECK(syntax.code == 0);
    CHECK(syntax.err.empty());
  }
  if (!installed("fish")) return;
  const Outcome offered_by_fish =
      run({"fish", "--no-config", "-c",
           "source '" + script_of(dir, "fish").string() + "'; complete -C 'quarry convert --res'"});
  INFO(offered_by_fish.err);
  CHECK(has(offered_by_fish.out, "--resolution"));
  CHECK(has(offered_by_fish.out, "--resume"));
}

TEST_CASE("man: the page is troff without faults, and has every command") {
  const fs::path file = scratch_dir("man") / "quarry.1";
  const Outcome made = run_quarry({"man"});
  REQUIRE(made.code == 0);
  std::ofstream(file) << made.out;
  for (const char* part : {".TH QUARRY 1", ".SH CONVERT", ".SH RENDER", ".SH EXIT STATUS", "\\-\\-keep\\-going"})
    CHECK(has(made.out, part));
  bool looked = false;
  if (installed("groff")) {
    const Outcome outcome = run({"groff", "-man", "-Tutf8", "-ww", file.string()});
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(has(outcome.out, "--resume"));
    looked = true;
  }
  if (installed("mandoc")) {
    const Outcome outcome = run({"mandoc", "-T", "lint", "-W", "error", file.string()});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    looked = true;
  }
  if (!looked) skip("neither groff nor mandoc for the manual page");
}

}  // namespace completion_test
