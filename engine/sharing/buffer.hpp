// SPDX-License-Identifier: Apache-2.0
// buffer.hpp - how shaders come to read a world, and the memory of worlds at home on the host.
//
//   zero-copy    Of worlds at home on a device: Vulkan allocates device memory and exports an opaque fd. CUDA imports
//                it and writes it in place (device_blocks.hpp). A world at home on the host is staged there.
//   host-import  Vulkan imports page-aligned host memory (VK_EXT_external_memory_host). Host threads write it and
//                shaders read it in place.
//   staged       Host memory plus a device buffer, a copy: SharedWorld::publish copies the changes.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "engine/vulkan/device.hpp"

namespace quarry::engine {

enum class SharingMode : uint8_t { automatic, zero_copy, host_import, staged };
const char* to_string(SharingMode mode);

// The mode that `automatic` becomes on this device, and the reason in one sentence.
struct SharingChoice {
  SharingMode mode;
  std::string reason;
};
Result<SharingChoice> choose_sharing(const Device& device, SharingMode wanted = SharingMode::automatic);
// The same of worlds at home on the host: never zero_copy.
Result<SharingChoice> choose_host_sharing(const Device& device, SharingMode wanted = SharingMode::automatic);

class SharedBuffer {
 public:
  // `mode`: as choose_host_sharing() has it.
  static Result<std::unique_ptr<SharedBuffer>> create(Device& device, SharingMode mode, size_t size_bytes,
                                                      const char* label);
  ~SharedBuffer();
  SharingMode mode() const;
  size_t size_bytes() const;
  VkBuffer buffer() const;
  uint64_t device_address() const;  // in shaders
  void* host() const;

 private:
  struct State;
  explicit SharedBuffer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
