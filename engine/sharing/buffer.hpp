// SPDX-License-Identifier: Apache-2.0
// buffer.hpp - memory that CUDA (or host threads) writes and Vulkan reads. The only place where CUDA meets Vulkan.
//
//   zero-copy    Vulkan allocates device memory and exports an opaque fd. CUDA imports it. An exported timeline
//                semaphore hands the memory over.
//   host-import  Vulkan imports page-aligned host memory (VK_EXT_external_memory_host). Host threads write it and
//                shaders read it in place.
//   staged       Host memory plus a device buffer. SharedWorld::publish copies the changes. For devices that can do
//                neither of the others.
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
  // zero_copy: true if the Vulkan queue owns the buffer, false if CUDA does. CUDA owns every new buffer. The code that
  // hands a buffer over keeps this flag.
  bool on_queue() const;
  void set_on_queue(bool on_queue);

 private:
  struct State;
  explicit SharedBuffer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
