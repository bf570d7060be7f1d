// SPDX-License-Identifier: Apache-2.0
// offscreen.hpp - the resources of calls that render and wait: a command buffer, an image to draw into, and the
// read-back to the host.
#pragma once

#include <memory>

#include "engine/render/ray_marcher.hpp"
#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "engine/vulkan/target_image.hpp"
#include "engine/vulkan/timeline.hpp"

namespace quarry::engine {

class Offscreen {
 public:
  static Result<std::unique_ptr<Offscreen>> create(Device& device, const char* label);
  Offscreen(const Offscreen&) = delete;
  Offscreen& operator=(const Offscreen&) = delete;

  // Gives an empty command buffer in recording state. It is valid until the next begin().
  Result<VkCommandBuffer> begin();
  // Records a barrier that makes the image ready for compute writes. The image is RGBA8 of that size. Its content is
  // lost, unless `keep`: then the commands before were of this picture, begun so too, and not of read_image().
  Result<VkImageView> begin_image(uint32_t width, uint32_t height, bool keep = false);
  // Records a copy of the image, after those writes, to the buffer that picture() reads.
  Result<void> read_image();
  // Submits what was recorded, to run after `ready`.
  Result<void> submit(Device::TimelinePoint ready);
  // Blocks until what was submitted is done.
  Result<void> wait() const;
  Result<bool> done() const;  // whether what was submitted is done; never waits
  Result<void> submit_and_wait(Device::TimelinePoint ready);
  Picture picture() const;

 private:
  explicit Offscreen(Device& device) : device_(&device) {}

  Device* device_;
  std::unique_ptr<Commands> commands_;
  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<TargetImage> image_;
  std::unique_ptr<DeviceMemory> pixels_;
};

}  // namespace quarry::engine
