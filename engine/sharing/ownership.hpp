// SPDX-License-Identifier: Apache-2.0
// ownership.hpp - the queue's side of a hand-over between Vulkan and CUDA: who owns the buffers, and the timeline that
// says so.
//
//   queue  ... frames | release to EXTERNAL, signal q |          | wait r, acquire from EXTERNAL, signal a | frames ...
//   CUDA                               wait q | writes | signal r
//
// A buffer that a queue family owns exclusively has to be released before somebody else writes it and acquired
// afterwards; for memory shared with another API that somebody is VK_QUEUE_FAMILY_EXTERNAL (Vulkan 1.3, 7.7.4 "Queue
// Family Ownership Transfer"). Frames before the release end before it by its barrier; frames behind the acquire, on
// the same queue, begin after it by its barrier.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/timeline.hpp"

namespace quarry::engine {

class OwnershipTransfer {
 public:
  static Result<std::unique_ptr<OwnershipTransfer>> create(Device& device);
  ~OwnershipTransfer();  // waits for its own submissions

  // A new fd of the timeline that release() signals, for CUDA to wait on; the caller's.
  Result<int> export_fd() const { return to_cuda_->export_fd(); }
  // Neither waits. Behind everything submitted before: gives the buffers (may be none) away. Returns the value CUDA
  // waits for.
  Result<uint64_t> release(std::span<const VkBuffer> buffers);
  // When `written` is reached: takes the buffers. What is submitted to Device's queue afterwards reads what CUDA wrote;
  // so may others who wait for the point that is returned.
  Result<Device::TimelinePoint> acquire(std::span<const VkBuffer> buffers, Device::TimelinePoint written);

 private:
  explicit OwnershipTransfer(Device& device) : device_(&device) {}
  struct Batch {
    std::unique_ptr<Commands> commands;
    uint64_t value = 0;  // free again when done_ has reached it
  };
  Result<Batch*> free_batch();
  Result<void> submit(const std::vector<VkBufferMemoryBarrier>& barriers, VkPipelineStageFlags from,
                      VkPipelineStageFlags to, Device::TimelinePoint wait, std::vector<Device::TimelinePoint> signal);
  Device* device_;
  // What leaves the process is for CUDA alone: the validation layer takes nothing for done that only an exported
  // semaphore says is.
  std::unique_ptr<Timeline> to_cuda_, done_;
  std::vector<std::unique_ptr<Batch>> batches_;
};

}  // namespace quarry::engine
