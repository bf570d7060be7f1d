// SPDX-License-Identifier: Apache-2.0
// device_uuid.hpp - the GPU identifier that CUDA and Vulkan share. Ordinals differ between the two, and between
// processes.
#pragma once

#include <array>
#include <cstdint>

namespace quarry {

// cudaDeviceProp::uuid, and VkPhysicalDeviceIDProperties::deviceUUID.
using DeviceUuid = std::array<uint8_t, 16>;

}  // namespace quarry
