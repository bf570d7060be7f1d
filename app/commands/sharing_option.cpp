// SPDX-License-Identifier: Apache-2.0
// sharing_option.cpp - the options for how CUDA and Vulkan share memory, and for whose memory has a world.
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

void SharingOption::add_to(Arguments& arguments, const char* home_help) {
  arguments.text("--sharing", name_, "MODE", "auto, zero-copy, host-import or staged (auto)");
  arguments.choice("--home", home_, "HOME", home_help, {"auto", "host", "device", "emulated"});
}

std::optional<int> SharingOption::check(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const engine::SharingMode m : kModes) {
    names.emplace_back(name_of(m));
    if (name_ == names.back()) mode = m;
  }
  for (const auto one : {engine::Home::host, engine::Home::device, engine::Home::emulated})
    if (home_ == engine::to_string(one)) home = one;
  return arguments.check_name("--sharing", name_, names);
}

}  // namespace quarry::app
