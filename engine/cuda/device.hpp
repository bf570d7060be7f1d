// SPDX-License-Identifier: Apache-2.0
// device.hpp - which CUDA device a Vulkan device is, without a CUDA type. Everything works on that one: Vulkan and CUDA
// enumerate devices in different orders. In a build without a CUDA toolkit there is none.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace quarry::engine {

// Returns the ordinal of the CUDA device with this UUID, or -1 with the reason in `why` (may be null).
int cuda_device_with_uuid(const std::array<uint8_t, 16>& uuid, std::string* why);

}  // namespace quarry::engine
