// SPDX-License-Identifier: Apache-2.0
// buffer.hpp - memory that CUDA (or host threads) writes and Vulkan reads. The only place where CUDA meets Vulkan.
//
//   zero-copy    Vulkan allocates device memory and exports an opaque fd, CUDA imports it; a timeline semaphore,
//                exported too, hands over
//   host-import  page-aligned host memory that Vulkan imports (VK_EXT_external_memory_host): host threads write,
//   shaders read in place
//   staged       host memory plus a device buffer; SharedWorld::publish copies what changed. For devices that can do
//                neither
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "engine/vulkan/device.hpp"

namespace quarry::engine {

enum class SharingMode : uint8_t { automatic, zero_copy, host_import, staged };
const char* to_string(SharingMode mode);

// What `automatic` becomes on this device, and in one sentence why.
struct SharingChoice {
  SharingMode mode;
  std::string reason;
};
Result<SharingChoice> choose_sharing(const Device& device, SharingMode wanted = SharingMode::automatic);

class SharedBuffer {
 public:
  static Result<std::unique_ptr<SharedBuffer>> create(Device& device, SharingMode mode, size_t size_bytes,
                                                      const char* label);
  ~SharedBuffer();
  SharingMode mode() const;
  size_t size_bytes() const;
  VkBuffer buffer() const;
  uint64_t device_address() const;  // in shaders
  void* host() const;               // host_import and staged; null for zero_copy
  void* cuda() const;               // zero_copy: CUDA device pointer; else null
  // zero_copy: whether the Vulkan queue owns the buffer, and not CUDA, which has every new one. Kept by who hands over.
  bool on_queue() const;
  void set_on_queue(bool on_queue);

 private:
  struct State;
  explicit SharedBuffer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
