// SPDX-License-Identifier: Apache-2.0
// sharing_option.hpp - --sharing of the commands that draw: how the device gets access to the world.
#pragma once

#include <optional>
#include <string>

#include "app/console/arguments.hpp"
#include "engine/sharing/buffer.hpp"

namespace quarry::app {

struct SharingOption {
  void add_to(Arguments& arguments);
  // Parses the value. Returns the exit code if it is wrong. Call it after parse().
  std::optional<int> check(const Arguments& arguments);

  engine::SharingMode mode = engine::SharingMode::automatic;  // valid after check()

 private:
  std::string name_ = "auto";
};

}  // namespace quarry::app
