// SPDX-License-Identifier: Apache-2.0
// device.cu - finds the CUDA device that a Vulkan device is.
#include "engine/cuda/device.hpp"

#include "base/cuda/device.cuh"

namespace quarry::engine {

int cuda_device_with_uuid(const std::array<uint8_t, 16>& uuid, std::string* why) {
  const auto count = gpu::device_count();
  if (!count) {
    if (why) *why = "CUDA finds no device (" + count.error().message + ")";
    return -1;
  }
  if (const auto device = gpu::device_with(uuid)) return device->ordinal;
  if (why) *why = "none of CUDA's " + std::to_string(*count) + " devices has this Vulkan device's UUID";
  return -1;
}

}  // namespace quarry::engine
