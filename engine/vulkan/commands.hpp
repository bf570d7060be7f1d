// SPDX-License-Identifier: Apache-2.0
// commands.hpp - a command buffer with a pool of its own, recorded again whenever the device is done with it, and the
// barriers that more than one place records. Who submits it, and how one knows that it is done: device.hpp,
// timeline.hpp.
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

  // Empty, recording. What was recorded before must be done.
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

// Compute writes before, compute reads and writes after; holds for earlier submissions on the queue, too.
void compute_barrier(const VulkanFunctions& vk, VkCommandBuffer commands);
// Writes of that stage before, the host's reads after the submission.
void host_read_barrier(const VulkanFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags from_stage,
                       VkAccessFlags from_access);
// The whole of a colour image of one level and layer.
void image_barrier(const VulkanFunctions& vk, VkCommandBuffer commands, VkImage image, VkImageLayout from,
                   VkImageLayout to, VkPipelineStageFlags from_stage, VkAccessFlags from_access,
                   VkPipelineStageFlags to_stage, VkAccessFlags to_access);

}  // namespace quarry::engine
