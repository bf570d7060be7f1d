// SPDX-License-Identifier: Apache-2.0
// ownership.hpp - the queue's side of what CUDA has written: it takes over the buffers, which an API of another kind
// owned (Vulkan 1.3, 7.7.4 "Queue Family Ownership Transfer": VK_QUEUE_FAMILY_EXTERNAL). CUDA goes on writing what no
// frame reads, so nothing is ever given back.
//
//   CUDA   writes | done, which the host knows
//   queue                                      acquire from EXTERNAL, signal | frames ...
#pragma once

#include <memory>
#include <vector>

#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "engine/vulkan/timeline.hpp"

namespace quarry::engine {

class OwnershipTransfer {
 public:
  static Result<std::unique_ptr<OwnershipTransfer>> create(Device& device);
  ~OwnershipTransfer();  // waits for its own submissions

  // Takes the memory's buffers (may be none), and holds the memory until that is done: a later call, or the destructor,
  // lets it go. Later submissions to Device's queue read what CUDA wrote until now. Others may read it too if they wait
  // for the returned point. It does not wait.
  Result<Device::TimelinePoint> acquire(std::vector<std::shared_ptr<const DeviceMemory>> memory);

 private:
  explicit OwnershipTransfer(Device& device) : device_(&device) {}
  struct Batch {
    std::unique_ptr<Commands> commands;
    uint64_t value = 0;  // the batch is free again when done_ has reached it
    std::vector<std::shared_ptr<const DeviceMemory>> memory = {};
  };
  // One that is done, or another.
  Result<Batch*> free_batch();
  Device* device_;
  std::unique_ptr<Timeline> done_;
  std::vector<std::unique_ptr<Batch>> batches_;
};

}  // namespace quarry::engine
