#include "engine/offscreen.hpp"

#include "engine/vulkan_loader.hpp"

namespace quarry::engine {

Result<void> ensure_memory(Device& device, std::unique_ptr<DeviceMemory>& memory, BufferHome home, uint64_t size_bytes, const char* label) {
  if (memory && memory->size_bytes() >= size_bytes) return {};
  memory.reset();
  auto made = DeviceMemory::create(device, home, size_bytes, label);
  if (!made) return tl::unexpected(made.error());
  memory = std::move(*made);
  return {};
}

void compute_barrier(const VulkanFunctions& vk, VkCommandBuffer commands) {
  const VkAccessFlags access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, access, access};
  vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void host_read_barrier(const VulkanFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags from_stage, VkAccessFlags from_access) {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, from_access, VK_ACCESS_HOST_READ_BIT};
  vk.vkCmdPipelineBarrier(commands, from_stage, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

Result<std::unique_ptr<Offscreen>> Offscreen::create(Device& device, const char* label) {
  std::unique_ptr<Offscreen> self(new Offscreen(device));
  const VulkanFunctions& vk = device.vk();
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT, device.queue_family()};
  if (auto ok = vk_check(vk.vkCreateCommandPool(device.handle(), &pool, nullptr, &self->pool_), "vkCreateCommandPool", label); !ok)
    return tl::unexpected(ok.error());
  VkCommandBufferAllocateInfo buffers{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, self->pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  if (auto ok = vk_check(vk.vkAllocateCommandBuffers(device.handle(), &buffers, &self->commands_), "vkAllocateCommandBuffers", label); !ok)
    return tl::unexpected(ok.error());
  auto timeline = Timeline::create(device, label);
  if (!timeline) return tl::unexpected(timeline.error());
  self->timeline_ = std::move(*timeline);
  return self;
}

Offscreen::~Offscreen() {
  drop_image();
  if (pool_) device_->vk().vkDestroyCommandPool(device_->handle(), pool_, nullptr);
}

void Offscreen::drop_image() {
  const VulkanFunctions& vk = device_->vk();
  if (view_) vk.vkDestroyImageView(device_->handle(), view_, nullptr);
  if (image_) vk.vkDestroyImage(device_->handle(), image_, nullptr);
  if (memory_) vk.vkFreeMemory(device_->handle(), memory_, nullptr);
  view_ = VK_NULL_HANDLE;
  image_ = VK_NULL_HANDLE;
  memory_ = VK_NULL_HANDLE;
}

Result<void> Offscreen::make_image(uint32_t width, uint32_t height) {
  if (view_ && width_ == width && height_ == height) return {};
  drop_image();
  const VulkanFunctions& vk = device_->vk();
  VkImageCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
  info.imageType = VK_IMAGE_TYPE_2D;
  info.format = VK_FORMAT_R8G8B8A8_UNORM;
  info.extent = {width, height, 1};
  info.mipLevels = info.arrayLayers = 1;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.tiling = VK_IMAGE_TILING_OPTIMAL;
  info.usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
  const std::string purpose = "a picture of " + std::to_string(width) + "x" + std::to_string(height);
  if (auto ok = vk_check(vk.vkCreateImage(device_->handle(), &info, nullptr, &image_), "vkCreateImage", purpose); !ok) return ok;
  VkMemoryRequirements requirements{};
  vk.vkGetImageMemoryRequirements(device_->handle(), image_, &requirements);
  auto type = device_->memory_type(requirements.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  if (!type) return tl::unexpected(type.error());
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, requirements.size, *type};
  if (auto ok = vk_check(vk.vkAllocateMemory(device_->handle(), &allocate, nullptr, &memory_), "vkAllocateMemory", purpose); !ok) return ok;
  if (auto ok = vk_check(vk.vkBindImageMemory(device_->handle(), image_, memory_, 0), "vkBindImageMemory", purpose); !ok) return ok;
  VkImageViewCreateInfo view{};
  view.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
  view.image = image_;
  view.viewType = VK_IMAGE_VIEW_TYPE_2D;
  view.format = info.format;
  view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  if (auto ok = vk_check(vk.vkCreateImageView(device_->handle(), &view, nullptr, &view_), "vkCreateImageView", purpose); !ok) return ok;
  width_ = width;
  height_ = height;
  return {};
}

void Offscreen::image_barrier(VkImageLayout from, VkImageLayout to, VkPipelineStageFlags from_stage, VkAccessFlags from_access, VkPipelineStageFlags to_stage,
                              VkAccessFlags to_access) {
  VkImageMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
  barrier.srcAccessMask = from_access;
  barrier.dstAccessMask = to_access;
  barrier.oldLayout = from;
  barrier.newLayout = to;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image_;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  device_->vk().vkCmdPipelineBarrier(commands_, from_stage, to_stage, 0, 0, nullptr, 0, nullptr, 1, &barrier);
}

Result<VkCommandBuffer> Offscreen::begin() {
  const VulkanFunctions& vk = device_->vk();
  if (auto ok = vk_check(vk.vkResetCommandPool(device_->handle(), pool_, 0), "vkResetCommandPool", "rendering"); !ok) return tl::unexpected(ok.error());
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
  if (auto ok = vk_check(vk.vkBeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer", "rendering"); !ok) return tl::unexpected(ok.error());
  return commands_;
}

Result<VkImageView> Offscreen::begin_image(uint32_t width, uint32_t height) {
  if (auto ok = make_image(width, height); !ok) return tl::unexpected(ok.error());
  image_barrier(VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, 0, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                VK_ACCESS_SHADER_WRITE_BIT);
  return view_;
}

Result<void> Offscreen::read_image() {
  const VulkanFunctions& vk = device_->vk();
  if (auto ok = ensure_memory(*device_, pixels_, BufferHome::host_readback, uint64_t(width_) * height_ * 4, "quarry pixels"); !ok) return ok;
  image_barrier(VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
  VkBufferImageCopy copy{};
  copy.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  copy.imageExtent = {width_, height_, 1};
  vk.vkCmdCopyImageToBuffer(commands_, image_, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, pixels_->buffer(), 1, &copy);
  host_read_barrier(vk, commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
  return {};
}

Result<void> Offscreen::submit(Device::TimelinePoint ready) {
  if (auto ok = vk_check(device_->vk().vkEndCommandBuffer(commands_), "vkEndCommandBuffer", "rendering"); !ok) return ok;
  const uint64_t value = timeline_->last() + 1;
  if (auto ok = device_->submit(commands_, {ready}, {{timeline_->handle(), value}}); !ok) return ok;
  timeline_->next();
  return {};
}

Result<void> Offscreen::wait() const { return timeline_->wait(timeline_->last()); }

Result<bool> Offscreen::done() const {
  auto reached = timeline_->reached();
  if (!reached) return tl::unexpected(reached.error());
  return *reached >= timeline_->last();
}

Result<void> Offscreen::submit_and_wait(Device::TimelinePoint ready) {
  if (auto ok = submit(ready); !ok) return ok;
  return wait();
}

Picture Offscreen::picture() const {
  const auto* first = static_cast<const uint8_t*>(pixels_->mapped());
  return {width_, height_, std::vector<uint8_t>(first, first + uint64_t(width_) * height_ * 4)};
}

}  // namespace quarry::engine
