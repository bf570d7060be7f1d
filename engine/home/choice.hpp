// SPDX-License-Identifier: Apache-2.0
// choice.hpp - where a world is at home and why, in words that every caller has: the C interface, commands, `quarry
// doctor`. And the memory that a device home begins with.
//
//   asked: automatic | host | device | emulated  ─►  may_be_on_device()  ─►  home_memory()  ─►  DeviceHome::create()
//                                                          └──────── refused, with the reason: the host ────────┘
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "engine/sharing/buffer.hpp"
#include "engine/sharing/device_blocks.hpp"
#include "voxel/device/executor.hpp"

namespace quarry::engine {

// As QRY_HOME_... of engine/api/quarry.h.
enum class Home : uint8_t {
  automatic,  // the device that draws, where CUDA shares its memory and the world can be there; else the host
  host,
  device,   // a CUDA device's memory
  emulated  // host threads and host memory stand in for a CUDA device: to test with
};
const char* to_string(Home home);  // auto, host, device, emulated

// Whether there can be such a home, as far as that is known before a device has been made. Errors: unsupported, with
// the reason.
Result<void> may_be_on_device(Home asked);

// A device's memory for one world, empty.
struct HomeMemory {
  std::unique_ptr<DeviceBlocks> blocks;  // null: shaders cannot read it. It must outlive the executor
  std::unique_ptr<device::Executor> executor;
  std::string reason;  // for the home, in one sentence
};
// `device` is the one that draws, and must outlive all of it; null: there is none. With `automatic` shaders must be
// able to read it. `host`: host threads make the edits of worlds that are larger than their part of the host's memory.
// `emulation`: of Home::emulated. Errors: unsupported, with the reason (no
// such device, or it does not share); out_of_memory, device.
Result<HomeMemory> home_memory(Home asked, Device* device, SharingMode sharing, device::Emulation emulation = {});

// Whether a world that was read straight into a device's memory was refused for what is no matter of homes: the file is
// damaged, or the user has stopped it.
bool fails_at_every_home(ErrorCode code);

}  // namespace quarry::engine
