// SPDX-License-Identifier: Apache-2.0
// sharing_option.hpp - --sharing and --home of the commands that draw: how the device gets access to the world, and
// whose memory has it.
#pragma once

#include <optional>
#include <string>

#include "app/console/arguments.hpp"
#include "engine/home/choice.hpp"
#include "engine/sharing/buffer.hpp"

namespace quarry::app {

struct SharingOption {
  // `home_help`: of --home, with what auto means.
  void add_to(Arguments& arguments, const char* home_help);
  // Parses the values. Returns the exit code if one is wrong. Call it after parse().
  std::optional<int> check(const Arguments& arguments);

  // Valid after check().
  engine::SharingMode mode = engine::SharingMode::automatic;
  engine::Home home = engine::Home::automatic;

 private:
  std::string name_ = "auto", home_ = "auto";
};

}  // namespace quarry::app
