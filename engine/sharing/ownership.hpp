// SPDX-License-Identifier: Apache-2.0
// ownership.hpp - the queue's side of a hand-over between Vulkan and CUDA: the owner of the buffers, and the timeline
// that signals it.
//
//   queue  ... frames | release to EXTERNAL, signal q |          | wait r, acquire from EXTERNAL, signal a | frames ...
//   CUDA                               wait q | writes | signal r
//
// A buffer that a queue family owns exclusively must be released before another owner writes it, and acquired
// afterwards. For memory shared with another API that owner is VK_QUEUE_FAMILY_EXTERNAL (Vulkan 1.3, 7.7.4 "Queue
// Family Ownership Transfer"). The release's barrier makes earlier frames end before it. The acquire's barrier makes
// later frames on the same queue begin after it.
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

  // A new fd of the timeline that release() signals and CUDA waits for. The caller owns it.
  Result<int> export_fd() const { return to_cuda_->export_fd(); }
  // Neither release() nor acquire() waits. release() gives the buffers (may be none) away, after everything submitted
  // before. It returns the value that CUDA waits for.
  Result<uint64_t> release(std::span<const VkBuffer> buffers);
  // Takes the buffers when `written` is reached. Later submissions to Device's queue read what CUDA wrote. Others may
  // read it too if they wait for the returned point.
  Result<Device::TimelinePoint> acquire(std::span<const VkBuffer> buffers, Device::TimelinePoint written);

 private:
  explicit OwnershipTransfer(Device& device) : device_(&device) {}
  struct Batch {
    std::unique_ptr<Commands> commands;
    uint64_t value = 0;  // the batch is free again when done_ has reached it
  };
  Result<Batch*> free_batch();
  Result<void> submit(const std::vector<VkBufferMemoryBarrier>& barriers, VkPipelineStageFlags from,
                      VkPipelineStageFlags to, Device::TimelinePoint wait, std::vector<Device::TimelinePoint> signal);
  Device* device_;
  // The exported semaphore is only for CUDA. The validation layer does not count work as done if only an exported
  // semaphore says so.
  std::unique_ptr<Timeline> to_cuda_, done_;
  std::vector<std::unique_ptr<Batch>> batches_;
};

}  // namespace quarry::engine
