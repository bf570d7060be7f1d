// SPDX-License-Identifier: Apache-2.0
// test_device.cpp - one device for the whole test program, made at its first use. It has the validation layer, or none
// if that fails.
#include "tests/engine/test_device.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include "tests/test_data.hpp"

namespace quarry::test {
namespace {

struct Shared {
  std::unique_ptr<engine::Device> device;
  std::string why;
  bool validates = false;

  Shared() {
    engine::DeviceOptions options;
    options.log = [](int severity, const char* message) {
      std::printf("vulkan %s: %s\n", severity == 2 ? "ERROR" : "warning", message);
    };
    options.validation = true;
    auto made = engine::Device::create(options);
    validates = made.has_value();
    if (!made) {
      options.validation = false;
      made = engine::Device::create(options);
    }
    if (made) device = std::move(*made);
    else why = made.error().message;
  }
};

Shared& shared() {
  static Shared instance;
  return instance;
}

}  // namespace

engine::Device* test_device() {
  if (!shared().device) skip(shared().why);
  return shared().device.get();
}

bool test_device_validates() { return shared().validates; }

std::vector<engine::SharingMode> possible_modes(engine::Device& device, std::vector<engine::SharingMode> modes) {
  using enum engine::SharingMode;
  if (modes.empty()) modes = {host_import, staged};
  std::erase_if(modes, [&](engine::SharingMode mode) {
    const auto choice = engine::choose_sharing(device, mode);
    if (!choice) skip(choice.error().message);
    return !choice;
  });
  return modes;
}

}  // namespace quarry::test
