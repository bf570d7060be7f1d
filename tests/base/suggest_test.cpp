// SPDX-License-Identifier: Apache-2.0
// suggest_test.cpp - the promises of "did you mean": the edit distance, and the nearest name or none.
#include "base/suggest.hpp"

#include <catch2/catch.hpp>

namespace suggest_test {

using namespace quarry;

TEST_CASE("edit_distance: counts insertions, deletions, substitutions and swaps as one each") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("render", "render") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("rendr", "render") == 1);
  CHECK(edit_distance("rennder", "render") == 1);
  CHECK(edit_distance("rander", "render") == 1);
  CHECK(edit_distance("redner", "render") == 1);
  CHECK(edit_distance("RENDER", "render") == 0);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("sitting", "kitten") == 3);
}

TEST_CASE("nearest_name: proposes what was probably meant, and nothing for what is far") {
  const std::vector<std::string> commands{"edit", "convert", "render", "info", "generate", "doctor", "bench"};
  CHECK(nearest_name("rendr", commands) == "render");
  CHECK(nearest_name("covnert", commands) == "convert");
  CHECK(nearest_name("Docter", commands) == "doctor");
  CHECK(nearest_name("gen", commands) == "generate");
  CHECK(nearest_name("informations", commands) == "info");
  CHECK(nearest_name("xyzzy", commands).empty());
  CHECK(nearest_name("a", commands).empty());
  CHECK(nearest_name("", commands).empty());
  CHECK(nearest_name("--sise", {"--size", "--samples"}) == "--size");
  CHECK(did_you_mean("rendr", commands) == " Did you mean 'render'?");
  CHECK(did_you_mean("xyzzy", commands).empty());
}

}  // namespace suggest_test
