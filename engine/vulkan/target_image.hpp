// SPDX-License-Identifier: Apache-2.0
// target_image.hpp - the picture that passes write, and the descriptor sets through which they do: the engine's only
// descriptors, since everything but a frame's parameters is reached by address. Read back or shown by offscreen.hpp,
// the editor's presenter, or a host engine (whose own image it is).
#pragma once

#include <memory>
#include <vector>

#include "engine/vulkan/device.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "engine/vulkan/functions.hpp"

namespace quarry::engine {

// RGBA8, device-local; a storage image that can be copied from and into. In no layout at first.
class TargetImage {
 public:
  static Result<std::unique_ptr<TargetImage>> create(Device& device, uint32_t width, uint32_t height);
  ~TargetImage();
  TargetImage(const TargetImage&) = delete;
  TargetImage& operator=(const TargetImage&) = delete;

  VkImage image() const { return image_; }
  VkImageView view() const { return view_; }
  uint32_t width() const { return width_; }
  uint32_t height() const { return height_; }

 private:
  TargetImage(Device& device, uint32_t width, uint32_t height) : device_(&device), width_(width), height_(height) {}
  Device* device_;
  uint32_t width_, height_;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
};

// A descriptor set a frame in flight, whose binding 0 is the storage image that compute shaders write, and binding 1,
// if there is one, a uniform block.
class TargetSets {
 public:
  static Result<std::unique_ptr<TargetSets>> create(Device& device, uint32_t frames, bool parameters);
  ~TargetSets();
  TargetSets(const TargetSets&) = delete;
  TargetSets& operator=(const TargetSets&) = delete;

  VkDescriptorSetLayout layout() const { return layout_; }
  // Lets the frame's set point to `target` (in layout GENERAL when the commands run) and `parameters`, where there is a
  // binding for them, and records that it is set 0. The frame's work before must be done.
  void bind(VkCommandBuffer commands, VkPipelineLayout pipelines, uint32_t frame, VkImageView target,
            const DeviceMemory* parameters = nullptr);

 private:
  explicit TargetSets(Device& device) : device_(&device) {}
  Device* device_;
  VkDescriptorSetLayout layout_ = VK_NULL_HANDLE;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets_;
};

}  // namespace quarry::engine
