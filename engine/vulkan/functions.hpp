// SPDX-License-Identifier: Apache-2.0
// functions.hpp - every Vulkan function the engine calls, as one table per device, loaded through
// vkGetInstanceProcAddr. No prototype is linked. So the process needs no libvulkan at link time, and a host engine's
// own loader works too. The functions of the optional lists are null if their extension is missing. Callers must check
// them first.
#pragma once

#include <vulkan/vulkan_core.h>

namespace quarry::engine {

// clang-format off
#define QRY_VK_GLOBAL_FUNCTIONS(X) \
  X(vkCreateInstance) X(vkEnumerateInstanceExtensionProperties) X(vkEnumerateInstanceLayerProperties)

#define QRY_VK_INSTANCE_FUNCTIONS(X)                                                               \
  X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) X(vkGetPhysicalDeviceProperties2)             \
  X(vkGetPhysicalDeviceFeatures2)                                                                  \
  X(vkGetPhysicalDeviceMemoryProperties) X(vkGetPhysicalDeviceQueueFamilyProperties)               \
  X(vkEnumerateDeviceExtensionProperties)                                                          \
  X(vkGetPhysicalDeviceExternalBufferProperties) X(vkGetPhysicalDeviceExternalSemaphoreProperties) \
  X(vkGetPhysicalDeviceProperties) X(vkCreateDevice) X(vkGetDeviceProcAddr)

#define QRY_VK_DEVICE_FUNCTIONS(X)                                                                                  \
  X(vkDestroyDevice) X(vkGetDeviceQueue) X(vkQueueSubmit) X(vkDeviceWaitIdle)                                       \
  X(vkAllocateMemory) X(vkFreeMemory) X(vkMapMemory) X(vkUnmapMemory)                                               \
  X(vkCreateBuffer) X(vkDestroyBuffer) X(vkBindBufferMemory) X(vkGetBufferMemoryRequirements2)                      \
  X(vkGetBufferDeviceAddress)                                                                                       \
  X(vkCreateImage) X(vkDestroyImage) X(vkBindImageMemory) X(vkGetImageMemoryRequirements)                           \
  X(vkCreateImageView) X(vkDestroyImageView)                                                                        \
  X(vkCreateSemaphore) X(vkDestroySemaphore) X(vkWaitSemaphores) X(vkGetSemaphoreCounterValue)                      \
  X(vkCreateShaderModule) X(vkDestroyShaderModule) X(vkCreatePipelineCache) X(vkDestroyPipelineCache)               \
  X(vkGetPipelineCacheData) X(vkCreateComputePipelines) X(vkDestroyPipeline)                                        \
  X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout) X(vkCreateDescriptorSetLayout)                               \
  X(vkDestroyDescriptorSetLayout)                                                                                   \
  X(vkCreateDescriptorPool) X(vkDestroyDescriptorPool) X(vkAllocateDescriptorSets) X(vkUpdateDescriptorSets)        \
  X(vkCreateCommandPool) X(vkDestroyCommandPool) X(vkAllocateCommandBuffers) X(vkResetCommandPool)                  \
  X(vkBeginCommandBuffer) X(vkEndCommandBuffer) X(vkCmdBindPipeline) X(vkCmdBindDescriptorSets)                     \
  X(vkCmdPushConstants)                                                                                             \
  X(vkCmdDispatch) X(vkCmdDispatchIndirect) X(vkCmdPipelineBarrier) X(vkCmdFillBuffer) X(vkCmdCopyBuffer)            \
  X(vkCmdCopyImageToBuffer)                                                                                         \
  X(vkCreateQueryPool) X(vkDestroyQueryPool) X(vkGetQueryPoolResults) X(vkCmdResetQueryPool) X(vkCmdWriteTimestamp)

#define QRY_VK_OPTIONAL_INSTANCE_FUNCTIONS(X) \
  X(vkCreateDebugUtilsMessengerEXT) X(vkDestroyDebugUtilsMessengerEXT)

#define QRY_VK_OPTIONAL_DEVICE_FUNCTIONS(X)                                                                          \
  X(vkGetMemoryFdKHR) X(vkGetSemaphoreFdKHR) X(vkGetMemoryHostPointerPropertiesEXT)                                  \
  X(vkSetDebugUtilsObjectNameEXT) X(vkCmdBeginDebugUtilsLabelEXT) X(vkCmdEndDebugUtilsLabelEXT)                  \
  X(vkGetPipelineExecutableStatisticsKHR)
// clang-format on

struct VulkanFunctions {
#define QRY_DECLARE(name) PFN_##name name = nullptr;
  QRY_VK_GLOBAL_FUNCTIONS(QRY_DECLARE)
  QRY_VK_INSTANCE_FUNCTIONS(QRY_DECLARE)
  QRY_VK_DEVICE_FUNCTIONS(QRY_DECLARE)
  QRY_VK_OPTIONAL_INSTANCE_FUNCTIONS(QRY_DECLARE)
  QRY_VK_OPTIONAL_DEVICE_FUNCTIONS(QRY_DECLARE)
#undef QRY_DECLARE
};

}  // namespace quarry::engine
