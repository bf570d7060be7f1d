// SPDX-License-Identifier: Apache-2.0
// swapchain.hpp - the images that the window shows in turn. They are created again when the window's size changes,
// while old ones may still be read. The owner decides when those are destroyed.
#pragma once

#include <vulkan/vulkan_core.h>

#include <vector>

#include "engine/vulkan/device.hpp"

namespace quarry::app {

struct Swapchain {
  VkSwapchainKHR handle = VK_NULL_HANDLE;
  VkFormat format = VK_FORMAT_UNDEFINED;
  uint32_t width = 0, height = 0;
  bool readable = false;  // its images can be copied from, for screenshots
  std::vector<VkImage> images;
  std::vector<VkImageView> views;
  std::vector<VkFramebuffer> framebuffers;
  std::vector<VkSemaphore> drawn;  // one per image: signalled by the frame, waited for by the presentation
};

// Chooses 8-bit UNORM, because the renderer encodes sRGB itself.
Result<VkSurfaceFormatKHR> choose_surface_format(VkPhysicalDevice device, VkSurfaceKHR surface);
// `old` (may be null) is retired by this call; it must still be destroyed. Width and height are a wish: the surface's
// own size wins.
Result<Swapchain> create_swapchain(const engine::Device& device, VkSurfaceKHR surface, VkSurfaceFormatKHR format,
                                   VkRenderPass render_pass, uint32_t width, uint32_t height, VkSwapchainKHR old);
void destroy_swapchain(VkDevice device, Swapchain& swapchain);

// Returns a Vulkan structure with its type set and all else zero.
template <class T>
T of_type(VkStructureType type) {
  T value{};
  value.sType = type;
  return value;
}

// "vkDoIt failed (VkResult -4)" as an Error.
Result<void> checked(VkResult result, const char* call);

}  // namespace quarry::app
