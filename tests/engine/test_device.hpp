// SPDX-License-Identifier: Apache-2.0
// test_device.hpp - the Vulkan device that the engine's tests share, with validation if the layer is installed.
#pragma once

#include <vector>

#include "engine/sharing/buffer.hpp"

namespace quarry::test {

// Returns one device for the whole process, or null with a printed reason. Messages of the validation layer are
// printed, and the last test of the executable fails if there were any.
engine::Device* test_device();
bool test_device_validates();
// Returns those of the modes (all, if none are named) that the device can do. It prints the reason for the others.
std::vector<engine::SharingMode> possible_modes(engine::Device& device, std::vector<engine::SharingMode> modes = {});

}  // namespace quarry::test
