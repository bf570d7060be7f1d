// SPDX-License-Identifier: Apache-2.0
// timeline.hpp - a timeline semaphore: a strictly rising counter. Each direction of hand-over has its own. It is never
// reused.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/vulkan/device.hpp"

namespace quarry::engine {

class Timeline {
 public:
  static Result<std::unique_ptr<Timeline>> create(Device& device, const char* label);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  VkSemaphore handle() const { return semaphore_; }
  uint64_t last() const { return last_; }  // the newest value that something will signal
  uint64_t next() { return ++last_; }      // the value that the caller now must have signalled
  Device::TimelinePoint point() const { return {semaphore_, last_}; }
  Result<uint64_t> reached() const;                           // asks the device; never waits
  Result<void> wait(uint64_t value) const;                    // blocks this host thread
  Result<bool> wait(uint64_t value, uint64_t most_ns) const;  // blocks for most_ns at most; false: not reached

 private:
  explicit Timeline(Device& device) : device_(&device) {}
  Device* device_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  uint64_t last_ = 0;
};

}  // namespace quarry::engine
