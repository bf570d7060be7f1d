// SPDX-License-Identifier: Apache-2.0
// commands.cpp - pool and command buffer, and the three pipeline barriers.
#include "engine/vulkan/commands.hpp"

#include "engine/vulkan/loader.hpp"

namespace quarry::engine {

Result<std::unique_ptr<Commands>> Commands::create(Device& device, const char* purpose) {
  std::unique_ptr<Commands> self(new Commands(device, purpose));
  const VulkanFunctions& vk = device.vk();
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                               VK_COMMAND_POOL_CREATE_TRANSIENT_BIT, device.queue_family()};
  auto ok =
      vk_check(vk.vkCreateCommandPool(device.handle(), &pool, nullptr, &self->pool_), "vkCreateCommandPool", purpose);
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, self->pool_,
                                   VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  if (ok)
    ok = vk_check(vk.vkAllocateCommandBuffers(device.handle(), &info, &self->commands_), "vkAllocateCommandBuffers",
                  purpose);
  QRY_TRY(ok);
  return self;
}

Commands::~Commands() {
  if (pool_) device_->vk().vkDestroyCommandPool(device_->handle(), pool_, nullptr);
}

Result<VkCommandBuffer> Commands::begin() {
  const VulkanFunctions& vk = device_->vk();
  QRY_TRY(vk_check(vk.vkResetCommandPool(device_->handle(), pool_, 0), "vkResetCommandPool", purpose_));
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
  QRY_TRY(vk_check(vk.vkBeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer", purpose_));
  return commands_;
}

Result<void> Commands::end() {
  return vk_check(device_->vk().vkEndCommandBuffer(commands_), "vkEndCommandBuffer", purpose_);
}

void compute_barrier(const VulkanFunctions& vk, VkCommandBuffer commands) {
  const VkAccessFlags access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, access, access};
  vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                          &barrier, 0, nullptr, 0, nullptr);
}

void host_read_barrier(const VulkanFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags from_stage,
                       VkAccessFlags from_access) {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, from_access, VK_ACCESS_HOST_READ_BIT};
  vk.vkCmdPipelineBarrier(commands, from_stage, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void image_barrier(const VulkanFunctions& vk, VkCommandBuffer commands, VkImage image, VkImageLayout from,
                   VkImageLayout to, VkPipelineStageFlags from_stage, VkAccessFlags from_access,
                   VkPipelineStageFlags to_stage, VkAccessFlags to_access) {
  VkImageMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
  barrier.srcAccessMask = from_access;
  barrier.dstAccessMask = to_access;
  barrier.oldLayout = from;
  barrier.newLayout = to;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  vk.vkCmdPipelineBarrier(commands, from_stage, to_stage, 0, 0, nullptr, 0, nullptr, 1, &barrier);
}

}  // namespace quarry::engine
