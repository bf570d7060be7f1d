// SPDX-License-Identifier: Apache-2.0
// target_image.cpp - the image with its memory and layout, and one descriptor set for each frame in flight.
#include "engine/vulkan/target_image.hpp"

#include "engine/vulkan/loader.hpp"

namespace quarry::engine {

Result<std::unique_ptr<TargetImage>> TargetImage::create(Device& device, uint32_t width, uint32_t height) {
  std::unique_ptr<TargetImage> self(new TargetImage(device, width, height));
  const VulkanFunctions& vk = device.vk();
  VkImageCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
  info.imageType = VK_IMAGE_TYPE_2D;
  info.format = VK_FORMAT_R8G8B8A8_UNORM;
  info.extent = {width, height, 1};
  info.mipLevels = info.arrayLayers = 1;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.tiling = VK_IMAGE_TILING_OPTIMAL;
  info.usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  const std::string purpose = "a picture of " + std::to_string(width) + "x" + std::to_string(height);
  QRY_TRY(vk_check(vk.vkCreateImage(device.handle(), &info, nullptr, &self->image_), "vkCreateImage", purpose));
  VkMemoryRequirements requirements{};
  vk.vkGetImageMemoryRequirements(device.handle(), self->image_, &requirements);
  QRY_TRY_ASSIGN(auto type, device.memory_type(requirements.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, requirements.size, type};
  auto ok =
      vk_check(vk.vkAllocateMemory(device.handle(), &allocate, nullptr, &self->memory_), "vkAllocateMemory", purpose);
  if (ok)
    ok = vk_check(vk.vkBindImageMemory(device.handle(), self->image_, self->memory_, 0), "vkBindImageMemory", purpose);
  VkImageViewCreateInfo view{};
  view.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
  view.image = self->image_;
  view.viewType = VK_IMAGE_VIEW_TYPE_2D;
  view.format = info.format;
  view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  if (ok)
    ok = vk_check(vk.vkCreateImageView(device.handle(), &view, nullptr, &self->view_), "vkCreateImageView", purpose);
  QRY_TRY(ok);
  return self;
}

TargetImage::~TargetImage() {
  const VulkanFunctions& vk = device_->vk();
  if (view_) vk.vkDestroyImageView(device_->handle(), view_, nullptr);
  if (image_) vk.vkDestroyImage(device_->handle(), image_, nullptr);
  if (memory_) vk.vkFreeMemory(device_->handle(), memory_, nullptr);
}

Result<std::unique_ptr<TargetSets>> TargetSets::create(Device& device, uint32_t frames, bool parameters) {
  std::unique_ptr<TargetSets> self(new TargetSets(device));
  const VulkanFunctions& vk = device.vk();
  constexpr const char* kPurpose = "pictures";
  const VkDescriptorSetLayoutBinding bindings[] = {
      {0, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr},
      {1, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr}};
  const uint32_t count = parameters ? 2 : 1;
  VkDescriptorSetLayoutCreateInfo layout{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, nullptr, 0, count,
                                         bindings};
  auto ok = vk_check(vk.vkCreateDescriptorSetLayout(device.handle(), &layout, nullptr, &self->layout_),
                     "vkCreateDescriptorSetLayout", kPurpose);
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, frames},
                                        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, frames}};
  VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, frames, count, sizes};
  if (ok)
    ok = vk_check(vk.vkCreateDescriptorPool(device.handle(), &pool, nullptr, &self->pool_), "vkCreateDescriptorPool",
                  kPurpose);
  const std::vector<VkDescriptorSetLayout> layouts(frames, self->layout_);
  self->sets_.resize(frames);
  VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr, self->pool_, frames,
                                   layouts.data()};
  if (ok)
    ok = vk_check(vk.vkAllocateDescriptorSets(device.handle(), &info, self->sets_.data()), "vkAllocateDescriptorSets",
                  kPurpose);
  QRY_TRY(ok);
  return self;
}

TargetSets::~TargetSets() {
  const VulkanFunctions& vk = device_->vk();
  if (pool_) vk.vkDestroyDescriptorPool(device_->handle(), pool_, nullptr);
  if (layout_) vk.vkDestroyDescriptorSetLayout(device_->handle(), layout_, nullptr);
}

void TargetSets::bind(VkCommandBuffer commands, VkPipelineLayout pipelines, uint32_t frame, VkImageView target,
                      const DeviceMemory* parameters) {
  const VulkanFunctions& vk = device_->vk();
  VkDescriptorImageInfo image{VK_NULL_HANDLE, target, VK_IMAGE_LAYOUT_GENERAL};
  VkDescriptorBufferInfo block{parameters ? parameters->buffer() : VK_NULL_HANDLE, 0, VK_WHOLE_SIZE};
  VkWriteDescriptorSet writes[2]{};
  for (uint32_t i = 0; i < 2; ++i) {
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = sets_[frame];
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = i ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
  }
  writes[0].pImageInfo = &image;
  writes[1].pBufferInfo = &block;
  vk.vkUpdateDescriptorSets(device_->handle(), parameters ? 2 : 1, writes, 0, nullptr);
  vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines, 0, 1, &sets_[frame], 0, nullptr);
}

}  // namespace quarry::engine
