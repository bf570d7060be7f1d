// SPDX-License-Identifier: Apache-2.0
// engine_frames.hpp - a host engine as far as a benchmark needs one: a Vulkan device of its own, pictures that shaders
// write, and command buffers of which three are under way. No window.
#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <quarry/quarry.h>

namespace quarry::bench {

// One thread. Each function gives up the program with a message if Vulkan refuses.
class EngineFrames {
 public:
  static constexpr uint64_t kUnderWay = 3;

  // On the first GPU, or else the first device. Null: there is no Vulkan driver.
  static std::unique_ptr<EngineFrames> create(uint32_t width, uint32_t height);
  ~EngineFrames();
  EngineFrames(const EngineFrames&) = delete;
  EngineFrames& operator=(const EngineFrames&) = delete;

  // What a context is given. It lives as long as this does.
  qry_vulkan_device_info device_info() const;
  // Waits until the third frame before is done, and begins a command buffer. Then what qry_record_frame takes of it.
  qry_record_info begin();
  // Ends and submits it, behind what has been published.
  void submit(const qry_published& published);
  // Waits until all frames are done.
  void finish();
  // The last frame's picture, 4 bytes a pixel. Waits.
  std::vector<uint8_t> picture();

 private:
  struct Slot {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkImage image = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
  };

  EngineFrames(uint32_t width, uint32_t height);
  bool open_driver();
  void make_device();
  void make_slots();
  VkDeviceMemory allocate(const VkMemoryRequirements& needed, VkMemoryPropertyFlags wanted);
  void change_layout(VkCommandBuffer commands, VkImage image, VkImageLayout from, VkImageLayout to);
  void submit(VkCommandBuffer commands, VkSemaphore wait, uint64_t value);

  const uint32_t width_, height_;
  struct Functions;
  std::unique_ptr<Functions> vk_;
  PFN_vkGetInstanceProcAddr get_ = nullptr;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkSemaphore done_ = VK_NULL_HANDLE;  // timeline: the newest frame that is done
  VkPhysicalDeviceVulkan12Features features12_{};
  VkPhysicalDeviceFeatures2 features_{};
  std::vector<const char*> extensions_;
  std::array<Slot, kUnderWay> slots_{};
  VkCommandBuffer copies_ = VK_NULL_HANDLE;
  VkBuffer pixels_ = VK_NULL_HANDLE;
  VkDeviceMemory pixels_memory_ = VK_NULL_HANDLE;
  const uint8_t* mapped_ = nullptr;
  uint64_t frame_ = 0;  // the last one begun
};

}  // namespace quarry::bench
