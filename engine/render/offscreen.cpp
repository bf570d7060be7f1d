// SPDX-License-Identifier: Apache-2.0
// offscreen.cpp - one command buffer, one timeline, one target image, and a host-visible buffer that the picture is
// copied to.
#include "engine/render/offscreen.hpp"

#include "engine/vulkan/loader.hpp"

namespace quarry::engine {

Result<std::unique_ptr<Offscreen>> Offscreen::create(Device& device, const char* label) {
  std::unique_ptr<Offscreen> self(new Offscreen(device));
  QRY_TRY_ASSIGN(auto commands, Commands::create(device, "rendering"));
  self->commands_ = std::move(commands);
  QRY_TRY_ASSIGN(auto timeline, Timeline::create(device, label));
  self->timeline_ = std::move(timeline);
  return self;
}

Result<VkCommandBuffer> Offscreen::begin() { return commands_->begin(); }

Result<VkImageView> Offscreen::begin_image(uint32_t width, uint32_t height, bool keep) {
  if (!image_ || image_->width() != width || image_->height() != height) {
    image_.reset();
    QRY_TRY_ASSIGN(auto made, TargetImage::create(*device_, width, height));
    image_ = std::move(made);
  }
  image_barrier(device_->vk(), commands_->handle(), image_->image(),
                keep ? VK_IMAGE_LAYOUT_GENERAL : VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL,
                VkPipelineStageFlags(keep ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT),
                VkAccessFlags(keep ? VK_ACCESS_SHADER_WRITE_BIT : 0), VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                VK_ACCESS_SHADER_WRITE_BIT);
  return image_->view();
}

Result<void> Offscreen::read_image() {
  const VulkanFunctions& vk = device_->vk();
  const VkCommandBuffer commands = commands_->handle();
  QRY_TRY(ensure_memory(*device_, pixels_, BufferMemory::host_readback,
                        uint64_t(image_->width()) * image_->height() * 4, "quarry pixels"));
  image_barrier(vk, commands, image_->image(), VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_ACCESS_TRANSFER_READ_BIT);
  VkBufferImageCopy copy{};
  copy.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  copy.imageExtent = {image_->width(), image_->height(), 1};
  vk.vkCmdCopyImageToBuffer(commands, image_->image(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, pixels_->buffer(), 1,
                            &copy);
  host_read_barrier(vk, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
  return {};
}

Result<void> Offscreen::submit(Device::TimelinePoint ready) {
  QRY_TRY(commands_->end());
  const uint64_t value = timeline_->last() + 1;
  QRY_TRY(device_->submit(commands_->handle(), {ready}, {{timeline_->handle(), value}}));
  timeline_->next();
  return {};
}

Result<void> Offscreen::wait() const { return timeline_->wait(timeline_->last()); }

Result<bool> Offscreen::done() const {
  QRY_TRY_ASSIGN(auto reached, timeline_->reached());
  return reached >= timeline_->last();
}

Result<void> Offscreen::submit_and_wait(Device::TimelinePoint ready) {
  QRY_TRY(submit(ready));
  return wait();
}

Picture Offscreen::picture() const {
  const auto* first = static_cast<const uint8_t*>(pixels_->mapped());
  return {image_->width(), image_->height(),
          std::vector<uint8_t>(first, first + uint64_t(image_->width()) * image_->height() * 4)};
}

}  // namespace quarry::engine
