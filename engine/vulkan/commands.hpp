// SPDX-License-Identifier: Apache-2.0
// commands.hpp - a command buffer with its own pool, and the barriers that more than one place records. The buffer is
// recorded again when the device is done with it. device.hpp submits it, and timeline.hpp tells when it is done.
#pragma once

#include <memory>

#include "engine/vulkan/device.hpp"
#include "engine/vulkan/functions.hpp"

namespace quarry::engine {

class Commands {
 public:
  // `purpose` is for messages: "uploads".
  static Result<std::unique_ptr<Commands>> create(Device& device, const char* purpose);
  ~Commands();  // the device must be done with them
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // Gives the empty command buffer, in recording state. The device must be done with the earlier commands.
  Result<VkCommandBuffer> begin();
  Result<void> end();
  VkCommandBuffer handle() const { return commands_; }

 private:
  Commands(Device& device, const char* purpose) : device_(&device), purpose_(purpose) {}
  Device* device_;
  const char* purpose_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

// Compute writes before it are visible to compute reads and writes after it. Earlier submissions on the queue count
// too.
void compute_barrier(const VulkanFunctions& vk, VkCommandBuffer commands);
// Writes of `from_stage` before it are visible to the host after the submission.
void host_read_barrier(const VulkanFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags from_stage,
                       VkAccessFlags from_access);
// Covers a whole colour image of one level and layer.
void image_barrier(const VulkanFunctions& vk, VkCommandBuffer commands, VkImage image, VkImageLayout from,
                   VkImageLayout to, VkPipelineStageFlags from_stage, VkAccessFlags from_access,
                   VkPipelineStageFlags to_stage, VkAccessFlags to_access);

}  // namespace quarry::engine
