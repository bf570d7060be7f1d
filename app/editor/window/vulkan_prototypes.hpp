// SPDX-License-Identifier: Apache-2.0
// vulkan_prototypes.hpp - the Vulkan functions that a window needs, by their plain names and without linking libvulkan.
// So `quarry convert` and other commands start without a Vulkan loader. Each is a pointer that load_vulkan_prototypes()
// fills. Dear ImGui's backend has its own pointers, which are filled there too.
#pragma once

#ifndef VK_NO_PROTOTYPES
#error "compile this with VK_NO_PROTOTYPES: vulkan.h must not declare functions of the same names"
#endif
#include <vulkan/vulkan.h>

#include "base/result.hpp"

namespace quarry::app {

// clang-format off
#define QRY_EDITOR_VULKAN_FUNCTIONS(X) \
  X(vkAcquireNextImageKHR) X(vkCmdBeginRenderPass) X(vkCmdBlitImage) X(vkCmdClearColorImage) \
  X(vkCmdCopyImageToBuffer) X(vkCmdEndRenderPass) \
  X(vkCmdResetQueryPool) X(vkCmdWriteTimestamp) X(vkCreateDescriptorPool) X(vkCreateFramebuffer) \
  X(vkCreateImageView) X(vkCreateQueryPool) \
  X(vkCreateRenderPass) X(vkCreateSemaphore) X(vkCreateSwapchainKHR) X(vkDestroyDescriptorPool) \
  X(vkDestroyFramebuffer) X(vkDestroyImageView) \
  X(vkDestroyQueryPool) X(vkDestroyRenderPass) X(vkDestroySemaphore) X(vkDestroySurfaceKHR) \
  X(vkDestroySwapchainKHR) X(vkDeviceWaitIdle) \
  X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkGetPhysicalDeviceSurfaceCapabilitiesKHR) \
  X(vkGetPhysicalDeviceSurfaceFormatsKHR) X(vkGetPhysicalDeviceSurfaceSupportKHR) X(vkGetQueryPoolResults) \
  X(vkGetSwapchainImagesKHR) \
  X(vkQueuePresentKHR) X(vkQueueSubmit)
// clang-format on

#define QRY_DECLARE(name) inline PFN_##name name = nullptr;
QRY_EDITOR_VULKAN_FUNCTIONS(QRY_DECLARE)
#undef QRY_DECLARE

// Call it before any of them. One device per process at a time: the functions are the instance's dispatchers.
Result<void> load_vulkan_prototypes(PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkInstance instance);

}  // namespace quarry::app
