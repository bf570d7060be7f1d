// SPDX-License-Identifier: Apache-2.0
// test_device.hpp - the Vulkan device the engine's tests share, with validation where the layer is installed.
#pragma once

#include <vector>

#include "engine/sharing/buffer.hpp"

namespace quarry::test {

// One device for the whole process; null, and said aloud, where there is none. Messages of the validation layer are
// printed, and the last test of the executable fails if there were any.
engine::Device* test_device();
bool test_device_validates();
// Those of the modes (all, if none are named) that the device can do; of the others the reason is said aloud.
std::vector<engine::SharingMode> possible_modes(engine::Device& device, std::vector<engine::SharingMode> modes = {});

}  // namespace quarry::test
