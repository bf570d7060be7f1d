// SPDX-License-Identifier: Apache-2.0
// script_test.cpp - the promises of scripts: commands as written, and a mistake is found before anything is carried
// out.
#include "app/editor/session/script.hpp"

#include <catch2/catch.hpp>

namespace script_test {

using namespace quarry;
using namespace quarry::app;

TEST_CASE("script: reads commands with their line, words and numbers, and skips comments") {
  const auto commands =
      parse_script("# a tour\n\nsphere add 1 -2 3 4.5 9   # a ball\nundo\nscreenshot out.png\n", "tour");
  REQUIRE(commands);
  REQUIRE(commands->size() == 3);
  CHECK((*commands)[0].line == 3);
  CHECK((*commands)[0].words == std::vector<std::string>{"sphere", "add", "1", "-2", "3", "4.5", "9"});
  CHECK((*commands)[0].numbers == std::vector<double>{1, -2, 3, 4.5, 9});
  CHECK((*commands)[1].words[0] == "undo");
  CHECK((*commands)[2].words[1] == "out.png");
}

TEST_CASE("script: a mistake anywhere is found before anything is carried out, with line and remedy") {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"undo\nshpere add 1 2 3 4 5", "tour: line 2: there is no command 'shpere'. Did you mean 'sphere'?"},
      {"sphere add 1 2 3", "tour: line 1: `sphere add 1 2 3`: wants `sphere mode X Y Z RADIUS MATERIAL`"},
      {"grow", "tour: line 1: `grow`: wants `grow STEPS [NEIGHBOURS]`"},
      {"combine unite", "tour: line 1: `combine unite`: wants `combine how file`"},
      {"drop_parts many", "tour: line 1: `drop_parts many`: 'many' is not a number"},
      {"undo now", "tour: line 1: `undo now`: wants `undo `"},
      {"click 10 ten", "tour: line 1: `click 10 ten`: 'ten' is not a number"},
  };
  for (const auto& one : cases) {
    const auto commands = parse_script(one.text, "tour");
    REQUIRE_FALSE(commands);
    CHECK(commands.error().code == ErrorCode::bad_usage);
    CHECK(commands.error().message == one.expected);
  }
}

TEST_CASE("script: optional arguments may be left out") {
  CHECK(
      parse_script("tool add sphere\ntool add cube 4\ncamera 30 20\ncamera 30 20 100\nsave\nsave x.quarry\n"
                   "drag 1 2 3 4\ndrag 1 2 3 4 right",
                   "t"));
}

}  // namespace script_test
