// test_device.hpp - the Vulkan device the engine's tests share, with validation where the layer is installed.
#pragma once

#include "engine/device.hpp"

namespace quarry::test {

// One device for the whole process; null, and said aloud, where there is none. Messages of the validation layer are printed, and
// the last test of the executable fails if there were any.
engine::Device* test_device();
bool test_device_validates();

}  // namespace quarry::test
