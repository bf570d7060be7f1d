// SPDX-License-Identifier: Apache-2.0
// choice.cpp - asks CUDA and Vulkan for a device home, and says why there is none.
#include "engine/home/choice.hpp"

#include <utility>

#include "engine/cuda/device.hpp"

namespace quarry::engine {

const char* to_string(Home home) {
  switch (home) {
    case Home::automatic: return "auto";
    case Home::host: return "host";
    case Home::device: return "device";
    case Home::emulated: return "emulated";
  }
  return "";
}

Result<void> may_be_on_device(Home asked) {
  if (asked == Home::host) return fail(ErrorCode::unsupported, "the host is asked for");
  if (asked == Home::automatic && device::cuda_device_count() == 0)
    return fail(ErrorCode::unsupported, "there is no CUDA device");
  return {};
}

Result<HomeMemory> home_memory(Home asked, Device* device, SharingMode sharing, device::Emulation emulation) {
  if (asked == Home::automatic && !device) return fail(ErrorCode::unsupported, "there is no Vulkan device");
  HomeMemory memory;
  const bool on_host = asked == Home::host, emulated = asked == Home::emulated || on_host;
  memory.reason = on_host    ? "host threads edit it, a part at a time"
                  : emulated ? "host threads that stand in for a CUDA device are asked for"
                             : "a device is asked for";
  // Shaders read the memory where there is a device to draw with. Without one the world has a home all the same.
  if (device) {
    const auto choice = choose_sharing(*device, sharing);
    const std::string& why = choice ? choice->reason : choice.error().message;
    if (choice && choice->mode == (emulated ? SharingMode::host_import : SharingMode::zero_copy)) {
      QRY_TRY_ASSIGN(memory.blocks, DeviceBlocks::create(*device, !emulated));
      if (asked == Home::automatic) memory.reason = why;
    } else if (asked == Home::automatic) {
      return fail(ErrorCode::unsupported, "no CUDA device shares memory with the device that draws: " + why);
    } else {
      memory.reason += "; pictures need a copy in host memory, because shaders cannot read that of this home: " + why;
    }
  }
  if (emulated) {
    emulation.in_order = on_host;
    memory.executor = device::make_emulated_executor(std::move(emulation), memory.blocks.get());
    return memory;
  }
  int ordinal = 0;
  std::string why;
  if (device) ordinal = cuda_device_with_uuid(device->info().uuid, &why);
  if (ordinal < 0) return fail(ErrorCode::unsupported, why);
  auto made = device::make_cuda_executor(ordinal, memory.blocks.get());
  if (!made && made.error().code == ErrorCode::not_found) made.error().code = ErrorCode::unsupported;
  QRY_TRY_ASSIGN(memory.executor, std::move(made));
  return memory;
}

bool fails_at_every_home(ErrorCode code) {
  return code == ErrorCode::malformed_input || code == ErrorCode::io || code == ErrorCode::cancelled;
}

}  // namespace quarry::engine
