// offscreen.hpp - what calls need that render and wait: a command buffer of their own, an image to draw into, and the way back to the host.
#pragma once

#include <memory>

#include "engine/device_memory.hpp"
#include "engine/renderer.hpp"
#include "engine/timeline.hpp"

namespace quarry::engine {

class Offscreen {
 public:
  static Result<std::unique_ptr<Offscreen>> create(Device& device, const char* label);
  ~Offscreen();
  Offscreen(const Offscreen&) = delete;
  Offscreen& operator=(const Offscreen&) = delete;

  // An empty command buffer that records; valid until the next begin().
  Result<VkCommandBuffer> begin();
  // Records: the image, RGBA8 of that size, ready to be written by compute; what it held is lost.
  Result<VkImageView> begin_image(uint32_t width, uint32_t height);
  // Records: the image after those writes copied to where picture() reads it.
  Result<void> read_image();
  // Submits what was recorded, to run after `ready`.
  Result<void> submit(Device::TimelinePoint ready);
  // Blocks until what was submitted is done.
  Result<void> wait() const;
  Result<bool> done() const;  // whether it is; never waits
  Result<void> submit_and_wait(Device::TimelinePoint ready);
  Picture picture() const;

 private:
  explicit Offscreen(Device& device) : device_(&device) {}
  Result<void> make_image(uint32_t width, uint32_t height);
  void drop_image();
  void image_barrier(VkImageLayout from, VkImageLayout to, VkPipelineStageFlags from_stage, VkAccessFlags from_access, VkPipelineStageFlags to_stage,
                     VkAccessFlags to_access);

  Device* device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::unique_ptr<Timeline> timeline_;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
  uint32_t width_ = 0, height_ = 0;
  std::unique_ptr<DeviceMemory> pixels_;
};

// Makes `memory` at least so large; what it held is lost.
Result<void> ensure_memory(Device& device, std::unique_ptr<DeviceMemory>& memory, BufferHome home, uint64_t size_bytes, const char* label);
// Compute writes before, compute reads and writes after; holds for earlier submissions on the queue, too.
void compute_barrier(const VulkanFunctions& vk, VkCommandBuffer commands);
// Compute writes before, the host's reads after the submission.
void host_read_barrier(const VulkanFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags from_stage, VkAccessFlags from_access);

}  // namespace quarry::engine
