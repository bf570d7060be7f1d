// SPDX-License-Identifier: Apache-2.0
// swapchain.hpp - the images that the window shows in turn. Made again when the window's size changes, while old ones
// may still be read: the owner decides when they go.
#pragma once

#include <vulkan/vulkan_core.h>

#include <vector>

#include "engine/vulkan/device.hpp"

namespace quarry::app {

struct Swapchain {
  VkSwapchainKHR handle = VK_NULL_HANDLE;
  VkFormat format = VK_FORMAT_UNDEFINED;
  uint32_t width = 0, height = 0;
  bool readable = false;  // its images can be copied from: screenshots
  std::vector<VkImage> images;
  std::vector<VkImageView> views;
  std::vector<VkFramebuffer> framebuffers;
  std::vector<VkSemaphore> drawn;  // one per image: signalled by the frame, waited for by the presentation
};

// 8-bit UNORM, which the renderer's own sRGB encoding is written for.
Result<VkSurfaceFormatKHR> choose_surface_format(VkPhysicalDevice device, VkSurfaceKHR surface);
// `old` (may be null) is retired by this; it must still be destroyed. Width and height are a wish: the surface's own
// size wins.
Result<Swapchain> create_swapchain(const engine::Device& device, VkSurfaceKHR surface, VkSurfaceFormatKHR format,
                                   VkRenderPass render_pass, uint32_t width, uint32_t height, VkSwapchainKHR old);
void destroy_swapchain(VkDevice device, Swapchain& swapchain);

// A Vulkan structure with its type set and all else zero.
template <class T>
T of_type(VkStructureType type) {
  T value{};
  value.sType = type;
  return value;
}

// "vkDoIt failed (VkResult -4)" as an Error.
Result<void> checked(VkResult result, const char* call);

}  // namespace quarry::app
