// SPDX-License-Identifier: Apache-2.0
// target_image.hpp - the picture that passes write, and the descriptor sets through which they write it. These are the
// engine's only descriptors: everything else except a frame's parameters is reached by address. offscreen.hpp, the
// editor's presenter or a host engine reads the picture back or shows it. A host engine uses its own image.
#pragma once

#include <memory>
#include <vector>

#include "engine/vulkan/device.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "engine/vulkan/functions.hpp"

namespace quarry::engine {

// An RGBA8 storage image in device-local memory that can be copied from and into. At first it has no layout.
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

// One descriptor set for each frame in flight. Binding 0 is the storage image that compute shaders write. Binding 1, if
// there is one, is a uniform block.
class TargetSets {
 public:
  static Result<std::unique_ptr<TargetSets>> create(Device& device, uint32_t frames, bool parameters);
  ~TargetSets();
  TargetSets(const TargetSets&) = delete;
  TargetSets& operator=(const TargetSets&) = delete;

  VkDescriptorSetLayout layout() const { return layout_; }
  // Points the frame's set to `target`, and to `parameters` if there is a binding for them. Records binding it as set
  // 0. `target` must be in layout GENERAL when the commands run. The frame's earlier work must be done.
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
