// SPDX-License-Identifier: Apache-2.0
// sharing_option.cpp - the option for how CUDA and Vulkan share memory.
#include "app/commands/sharing_option.hpp"

#include <vector>

namespace quarry::app {
namespace {

constexpr engine::SharingMode kModes[] = {engine::SharingMode::automatic, engine::SharingMode::zero_copy,
                                          engine::SharingMode::host_import, engine::SharingMode::staged};

const char* name_of(engine::SharingMode mode) {
  return mode == engine::SharingMode::automatic ? "auto" : engine::to_string(mode);
}

}  // namespace

void SharingOption::add_to(Arguments& arguments) {
  arguments.text("--sharing", name_, "MODE", "auto, zero-copy, host-import or staged (auto)");
}

std::optional<int> SharingOption::check(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const engine::SharingMode m : kModes) {
    names.emplace_back(name_of(m));
    if (name_ == names.back()) mode = m;
  }
  return arguments.check_name("--sharing", name_, names);
}

}  // namespace quarry::app
