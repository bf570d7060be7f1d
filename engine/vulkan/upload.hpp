// SPDX-License-Identifier: Apache-2.0
// upload.hpp - copies host memory into device buffers, in the queue's order, without waiting: staged sharing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "engine/vulkan/timeline.hpp"

namespace quarry::engine {

class Upload {
 public:
  static Result<std::unique_ptr<Upload>> create(Device& device);
  ~Upload();  // waits for its own copies

  struct Copy {
    VkBuffer to;
    uint64_t offset_bytes, size_bytes;
    const void* from;  // read during the call, not after it
  };
  // Submits the copies after everything submitted before, so frames in flight still see the old bytes. Returns the
  // timeline point at which they are done. Only one thread may call it at a time.
  Result<Device::TimelinePoint> submit(const std::vector<Copy>& copies);

 private:
  explicit Upload(Device& device) : device_(&device) {}
  struct Batch {
    std::unique_ptr<DeviceMemory> memory;
    std::unique_ptr<Commands> commands;
    uint64_t value = 0;  // the batch is free again when the timeline has reached it
  };
  Result<Batch*> free_batch(uint64_t size_bytes);
  Device* device_;
  std::unique_ptr<Timeline> timeline_;
  std::vector<std::unique_ptr<Batch>> batches_;
};

}  // namespace quarry::engine
