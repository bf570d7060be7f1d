// SPDX-License-Identifier: Apache-2.0
// program_output.hpp - helpers of the command tests: running the program and checking its output.
#pragma once

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/spawn.hpp"
#include "tests/test_data.hpp"

namespace quarry::test {

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// One JSON value a line.
inline std::vector<nlohmann::json> events(const std::string& out) {
  std::vector<nlohmann::json> list;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) list.push_back(nlohmann::json::parse(line));
  return list;
}

inline nlohmann::json info(const std::filesystem::path& file) {
  return nlohmann::json::parse(run_quarry({"info", "--json", file.string()}).out);
}

// A small scene made by the program itself.
inline std::filesystem::path small_world(const std::filesystem::path& file) {
  const Outcome made = run_quarry({"generate", "spheres", "--size", "48", "-o", file.string()});
  INFO(made.err);
  REQUIRE(made.code == 0);
  return file;
}

// Prints a notice if it cannot.
inline bool can_render() {
  static const bool can = [] {
    const Outcome doctor = run_quarry({"doctor", "--json"});
    return doctor.code == 0 && nlohmann::json::parse(doctor.out)["can_render"].get<bool>();
  }();
  if (!can) skip("no Vulkan device for the program");
  return can;
}

}  // namespace quarry::test
