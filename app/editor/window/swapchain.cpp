// SPDX-License-Identifier: Apache-2.0
// swapchain.cpp - the surface's format, FIFO presentation, and the views, framebuffers and semaphores of the images.
#include "app/editor/window/swapchain.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/editor/window/vulkan_prototypes.hpp"

namespace quarry::app {

Result<void> checked(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return {};
  const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return fail(memory ? ErrorCode::out_of_memory : ErrorCode::device,
              fmt::format("{} failed (VkResult {})", call, int(result)));
}

Result<VkSurfaceFormatKHR> choose_surface_format(VkPhysicalDevice device, VkSurfaceKHR surface) {
  uint32_t count = 0;
  vkGetPhysicalDeviceSurfaceFormatsKHR(device, surface, &count, nullptr);
  std::vector<VkSurfaceFormatKHR> formats(count);
  vkGetPhysicalDeviceSurfaceFormatsKHR(device, surface, &count, formats.data());
  for (const VkFormat wanted : {VK_FORMAT_B8G8R8A8_UNORM, VK_FORMAT_R8G8B8A8_UNORM})
    for (const VkSurfaceFormatKHR& format : formats)
      if (format.format == wanted && format.colorSpace == VK_COLOR_SPACE_SRGB_NONLINEAR_KHR) return format;
  return fail(ErrorCode::unsupported, "the window offers no 8-bit RGBA format");
}

Result<Swapchain> create_swapchain(const engine::Device& device, VkSurfaceKHR surface, VkSurfaceFormatKHR format,
                                   VkRenderPass render_pass, uint32_t width, uint32_t height, VkSwapchainKHR old) {
  VkSurfaceCapabilitiesKHR capabilities{};
  QRY_TRY(checked(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(device.physical_device(), surface, &capabilities),
                  "vkGetPhysicalDeviceSurfaceCapabilitiesKHR"));
  if (!(capabilities.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_DST_BIT))
    return fail(ErrorCode::unsupported, "the window's images cannot be copied into");
  Swapchain made;
  made.format = format.format;
  made.readable = (capabilities.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_SRC_BIT) != 0;
  made.width = capabilities.currentExtent.width != UINT32_MAX
                   ? capabilities.currentExtent.width
                   : std::clamp(width, capabilities.minImageExtent.width, capabilities.maxImageExtent.width);
  made.height = capabilities.currentExtent.height != UINT32_MAX
                    ? capabilities.currentExtent.height
                    : std::clamp(height, capabilities.minImageExtent.height, capabilities.maxImageExtent.height);
  if (made.width == 0 || made.height == 0) return made;  // minimised: no images until it is restored

  auto info = of_type<VkSwapchainCreateInfoKHR>(VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR);
  info.surface = surface;
  info.minImageCount = std::max(3u, capabilities.minImageCount);
  if (capabilities.maxImageCount > 0) info.minImageCount = std::min(info.minImageCount, capabilities.maxImageCount);
  info.imageFormat = format.format;
  info.imageColorSpace = format.colorSpace;
  info.imageExtent = {made.width, made.height};
  info.imageArrayLayers = 1;
  info.imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT |
                    (made.readable ? VkImageUsageFlags(VK_IMAGE_USAGE_TRANSFER_SRC_BIT) : 0u);
  info.imageSharingMode = VK_SHARING_MODE_EXCLUSIVE;
  info.preTransform = capabilities.currentTransform;
  info.compositeAlpha = capabilities.supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            : VK_COMPOSITE_ALPHA_INHERIT_BIT_KHR;
  info.presentMode = VK_PRESENT_MODE_FIFO_KHR;  // the only mode that always exists; the editor draws on demand
  info.clipped = VK_TRUE;
  info.oldSwapchain = old;
  QRY_TRY(checked(vkCreateSwapchainKHR(device.handle(), &info, nullptr, &made.handle), "vkCreateSwapchainKHR"));
  uint32_t count = 0;
  vkGetSwapchainImagesKHR(device.handle(), made.handle, &count, nullptr);
  made.images.resize(count);
  vkGetSwapchainImagesKHR(device.handle(), made.handle, &count, made.images.data());
  made.views.resize(count);
  made.framebuffers.resize(count);
  made.drawn.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    auto view = of_type<VkImageViewCreateInfo>(VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO);
    view.image = made.images[i];
    view.viewType = VK_IMAGE_VIEW_TYPE_2D;
    view.format = format.format;
    view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    auto frame = of_type<VkFramebufferCreateInfo>(VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO);
    frame.renderPass = render_pass;
    frame.attachmentCount = 1;
    frame.pAttachments = &made.views[i];
    frame.width = made.width, frame.height = made.height, frame.layers = 1;
    const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, nullptr, 0};
    auto done = checked(vkCreateImageView(device.handle(), &view, nullptr, &made.views[i]), "vkCreateImageView");
    if (done)
      done =
          checked(vkCreateFramebuffer(device.handle(), &frame, nullptr, &made.framebuffers[i]), "vkCreateFramebuffer");
    if (done)
      done = checked(vkCreateSemaphore(device.handle(), &semaphore, nullptr, &made.drawn[i]), "vkCreateSemaphore");
    if (!done) {
      destroy_swapchain(device.handle(), made);
      return tl::unexpected<Error>(done.error());
    }
  }
  return made;
}

void destroy_swapchain(VkDevice device, Swapchain& swapchain) {
  for (VkFramebuffer framebuffer : swapchain.framebuffers) vkDestroyFramebuffer(device, framebuffer, nullptr);
  for (VkImageView view : swapchain.views) vkDestroyImageView(device, view, nullptr);
  for (VkSemaphore semaphore : swapchain.drawn) vkDestroySemaphore(device, semaphore, nullptr);
  if (swapchain.handle) vkDestroySwapchainKHR(device, swapchain.handle, nullptr);
  swapchain = {};
}

}  // namespace quarry::app
