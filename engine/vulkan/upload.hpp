// SPDX-License-Identifier: Apache-2.0
// upload.hpp - copies of host memory into device buffers, in the queue's order, without waiting: staged sharing.
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
  // Submits the copies behind everything submitted before (so frames under way still see the old bytes) and returns the
  // timeline point they are done at. One thread at a time.
  Result<Device::TimelinePoint> submit(const std::vector<Copy>& copies);

 private:
  explicit Upload(Device& device) : device_(&device) {}
  struct Batch {
    std::unique_ptr<DeviceMemory> memory;
    std::unique_ptr<Commands> commands;
    uint64_t value = 0;  // free again when the timeline has reached it
  };
  Result<Batch*> free_batch(uint64_t size_bytes);
  Device* device_;
  std::unique_ptr<Timeline> timeline_;
  std::vector<std::unique_ptr<Batch>> batches_;
};

}  // namespace quarry::engine
