// vulkan_prototypes.cpp - the Vulkan functions that Dear ImGui's packaged backend and the editor's presentation call, as forwarders to
// the loader that the engine opened at run time.
//
// Debian's libimgui.a calls vkCreateBuffer and its like as linked functions. Linking libvulkan for them would make the whole program,
// `quarry convert` included, refuse to start where there is no Vulkan loader; these definitions do not.
#include "app/editor/window/vulkan_prototypes.hpp"

#include <vulkan/vulkan.h>

#include <string>

namespace quarry::app {
namespace {

struct Forwarder {
  const char* name;
  PFN_vkVoidFunction* target;
  Forwarder* next;
};
Forwarder* first = nullptr;

struct Registration : Forwarder {
  Registration(const char* function, PFN_vkVoidFunction* pointer) : Forwarder{function, pointer, first} { first = this; }
};

}  // namespace
}  // namespace quarry::app

// Parameters are named a, b, c, ... in the order of the Vulkan specification.
#define QRY_FORWARD(result, name, parameters, arguments)                                                                        \
  static PFN_##name name##_pointer;                                                                                             \
  static quarry::app::Registration name##_registration(#name, reinterpret_cast<PFN_vkVoidFunction*>(&name##_pointer));          \
  extern "C" VKAPI_ATTR result VKAPI_CALL name parameters { return name##_pointer arguments; }

// clang-format off
QRY_FORWARD(VkResult, vkAcquireNextImageKHR, (VkDevice a, VkSwapchainKHR b, uint64_t c, VkSemaphore d, VkFence e, uint32_t* f), (a, b, c, d, e, f))
QRY_FORWARD(VkResult, vkAllocateCommandBuffers, (VkDevice a, const VkCommandBufferAllocateInfo* b, VkCommandBuffer* c), (a, b, c))
QRY_FORWARD(VkResult, vkAllocateDescriptorSets, (VkDevice a, const VkDescriptorSetAllocateInfo* b, VkDescriptorSet* c), (a, b, c))
QRY_FORWARD(VkResult, vkAllocateMemory, (VkDevice a, const VkMemoryAllocateInfo* b, const VkAllocationCallbacks* c, VkDeviceMemory* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkBeginCommandBuffer, (VkCommandBuffer a, const VkCommandBufferBeginInfo* b), (a, b))
QRY_FORWARD(VkResult, vkBindBufferMemory, (VkDevice a, VkBuffer b, VkDeviceMemory c, VkDeviceSize d), (a, b, c, d))
QRY_FORWARD(VkResult, vkBindImageMemory, (VkDevice a, VkImage b, VkDeviceMemory c, VkDeviceSize d), (a, b, c, d))
QRY_FORWARD(void, vkCmdBeginRenderPass, (VkCommandBuffer a, const VkRenderPassBeginInfo* b, VkSubpassContents c), (a, b, c))
QRY_FORWARD(void, vkCmdBindDescriptorSets, (VkCommandBuffer a, VkPipelineBindPoint b, VkPipelineLayout c, uint32_t d, uint32_t e, const VkDescriptorSet* f, uint32_t g, const uint32_t* h), (a, b, c, d, e, f, g, h))
QRY_FORWARD(void, vkCmdBindIndexBuffer, (VkCommandBuffer a, VkBuffer b, VkDeviceSize c, VkIndexType d), (a, b, c, d))
QRY_FORWARD(void, vkCmdBindPipeline, (VkCommandBuffer a, VkPipelineBindPoint b, VkPipeline c), (a, b, c))
QRY_FORWARD(void, vkCmdBindVertexBuffers, (VkCommandBuffer a, uint32_t b, uint32_t c, const VkBuffer* d, const VkDeviceSize* e), (a, b, c, d, e))
QRY_FORWARD(void, vkCmdBlitImage, (VkCommandBuffer a, VkImage b, VkImageLayout c, VkImage d, VkImageLayout e, uint32_t f, const VkImageBlit* g, VkFilter h), (a, b, c, d, e, f, g, h))
QRY_FORWARD(void, vkCmdClearColorImage, (VkCommandBuffer a, VkImage b, VkImageLayout c, const VkClearColorValue* d, uint32_t e, const VkImageSubresourceRange* f), (a, b, c, d, e, f))
QRY_FORWARD(void, vkCmdCopyBufferToImage, (VkCommandBuffer a, VkBuffer b, VkImage c, VkImageLayout d, uint32_t e, const VkBufferImageCopy* f), (a, b, c, d, e, f))
QRY_FORWARD(void, vkCmdCopyImageToBuffer, (VkCommandBuffer a, VkImage b, VkImageLayout c, VkBuffer d, uint32_t e, const VkBufferImageCopy* f), (a, b, c, d, e, f))
QRY_FORWARD(void, vkCmdDrawIndexed, (VkCommandBuffer a, uint32_t b, uint32_t c, uint32_t d, int32_t e, uint32_t f), (a, b, c, d, e, f))
QRY_FORWARD(void, vkCmdEndRenderPass, (VkCommandBuffer a), (a))
QRY_FORWARD(void, vkCmdPipelineBarrier, (VkCommandBuffer a, VkPipelineStageFlags b, VkPipelineStageFlags c, VkDependencyFlags d, uint32_t e, const VkMemoryBarrier* f, uint32_t g, const VkBufferMemoryBarrier* h, uint32_t i, const VkImageMemoryBarrier* j), (a, b, c, d, e, f, g, h, i, j))
QRY_FORWARD(void, vkCmdPushConstants, (VkCommandBuffer a, VkPipelineLayout b, VkShaderStageFlags c, uint32_t d, uint32_t e, const void* f), (a, b, c, d, e, f))
QRY_FORWARD(void, vkCmdResetQueryPool, (VkCommandBuffer a, VkQueryPool b, uint32_t c, uint32_t d), (a, b, c, d))
QRY_FORWARD(void, vkCmdSetScissor, (VkCommandBuffer a, uint32_t b, uint32_t c, const VkRect2D* d), (a, b, c, d))
QRY_FORWARD(void, vkCmdSetViewport, (VkCommandBuffer a, uint32_t b, uint32_t c, const VkViewport* d), (a, b, c, d))
QRY_FORWARD(void, vkCmdWriteTimestamp, (VkCommandBuffer a, VkPipelineStageFlagBits b, VkQueryPool c, uint32_t d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateBuffer, (VkDevice a, const VkBufferCreateInfo* b, const VkAllocationCallbacks* c, VkBuffer* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateCommandPool, (VkDevice a, const VkCommandPoolCreateInfo* b, const VkAllocationCallbacks* c, VkCommandPool* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateDescriptorPool, (VkDevice a, const VkDescriptorPoolCreateInfo* b, const VkAllocationCallbacks* c, VkDescriptorPool* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateDescriptorSetLayout, (VkDevice a, const VkDescriptorSetLayoutCreateInfo* b, const VkAllocationCallbacks* c, VkDescriptorSetLayout* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateFence, (VkDevice a, const VkFenceCreateInfo* b, const VkAllocationCallbacks* c, VkFence* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateFramebuffer, (VkDevice a, const VkFramebufferCreateInfo* b, const VkAllocationCallbacks* c, VkFramebuffer* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateGraphicsPipelines, (VkDevice a, VkPipelineCache b, uint32_t c, const VkGraphicsPipelineCreateInfo* d, const VkAllocationCallbacks* e, VkPipeline* f), (a, b, c, d, e, f))
QRY_FORWARD(VkResult, vkCreateImage, (VkDevice a, const VkImageCreateInfo* b, const VkAllocationCallbacks* c, VkImage* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateImageView, (VkDevice a, const VkImageViewCreateInfo* b, const VkAllocationCallbacks* c, VkImageView* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreatePipelineLayout, (VkDevice a, const VkPipelineLayoutCreateInfo* b, const VkAllocationCallbacks* c, VkPipelineLayout* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateQueryPool, (VkDevice a, const VkQueryPoolCreateInfo* b, const VkAllocationCallbacks* c, VkQueryPool* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateRenderPass, (VkDevice a, const VkRenderPassCreateInfo* b, const VkAllocationCallbacks* c, VkRenderPass* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateSampler, (VkDevice a, const VkSamplerCreateInfo* b, const VkAllocationCallbacks* c, VkSampler* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateSemaphore, (VkDevice a, const VkSemaphoreCreateInfo* b, const VkAllocationCallbacks* c, VkSemaphore* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateShaderModule, (VkDevice a, const VkShaderModuleCreateInfo* b, const VkAllocationCallbacks* c, VkShaderModule* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkCreateSwapchainKHR, (VkDevice a, const VkSwapchainCreateInfoKHR* b, const VkAllocationCallbacks* c, VkSwapchainKHR* d), (a, b, c, d))
QRY_FORWARD(void, vkDestroyBuffer, (VkDevice a, VkBuffer b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyCommandPool, (VkDevice a, VkCommandPool b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyDescriptorPool, (VkDevice a, VkDescriptorPool b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyDescriptorSetLayout, (VkDevice a, VkDescriptorSetLayout b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyFence, (VkDevice a, VkFence b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyFramebuffer, (VkDevice a, VkFramebuffer b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyImage, (VkDevice a, VkImage b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyImageView, (VkDevice a, VkImageView b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyPipeline, (VkDevice a, VkPipeline b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyPipelineLayout, (VkDevice a, VkPipelineLayout b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyQueryPool, (VkDevice a, VkQueryPool b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyRenderPass, (VkDevice a, VkRenderPass b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroySampler, (VkDevice a, VkSampler b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroySemaphore, (VkDevice a, VkSemaphore b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroyShaderModule, (VkDevice a, VkShaderModule b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroySurfaceKHR, (VkInstance a, VkSurfaceKHR b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkDestroySwapchainKHR, (VkDevice a, VkSwapchainKHR b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(VkResult, vkDeviceWaitIdle, (VkDevice a), (a))
QRY_FORWARD(VkResult, vkEndCommandBuffer, (VkCommandBuffer a), (a))
QRY_FORWARD(VkResult, vkFlushMappedMemoryRanges, (VkDevice a, uint32_t b, const VkMappedMemoryRange* c), (a, b, c))
QRY_FORWARD(void, vkFreeCommandBuffers, (VkDevice a, VkCommandPool b, uint32_t c, const VkCommandBuffer* d), (a, b, c, d))
QRY_FORWARD(void, vkFreeMemory, (VkDevice a, VkDeviceMemory b, const VkAllocationCallbacks* c), (a, b, c))
QRY_FORWARD(void, vkGetBufferMemoryRequirements, (VkDevice a, VkBuffer b, VkMemoryRequirements* c), (a, b, c))
QRY_FORWARD(void, vkGetImageMemoryRequirements, (VkDevice a, VkImage b, VkMemoryRequirements* c), (a, b, c))
QRY_FORWARD(void, vkGetPhysicalDeviceMemoryProperties, (VkPhysicalDevice a, VkPhysicalDeviceMemoryProperties* b), (a, b))
QRY_FORWARD(void, vkGetPhysicalDeviceProperties, (VkPhysicalDevice a, VkPhysicalDeviceProperties* b), (a, b))
QRY_FORWARD(void, vkGetPhysicalDeviceQueueFamilyProperties, (VkPhysicalDevice a, uint32_t* b, VkQueueFamilyProperties* c), (a, b, c))
QRY_FORWARD(VkResult, vkGetPhysicalDeviceSurfaceCapabilitiesKHR, (VkPhysicalDevice a, VkSurfaceKHR b, VkSurfaceCapabilitiesKHR* c), (a, b, c))
QRY_FORWARD(VkResult, vkGetPhysicalDeviceSurfaceFormatsKHR, (VkPhysicalDevice a, VkSurfaceKHR b, uint32_t* c, VkSurfaceFormatKHR* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkGetPhysicalDeviceSurfacePresentModesKHR, (VkPhysicalDevice a, VkSurfaceKHR b, uint32_t* c, VkPresentModeKHR* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkGetPhysicalDeviceSurfaceSupportKHR, (VkPhysicalDevice a, uint32_t b, VkSurfaceKHR c, VkBool32* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkGetQueryPoolResults, (VkDevice a, VkQueryPool b, uint32_t c, uint32_t d, size_t e, void* f, VkDeviceSize g, VkQueryResultFlags h), (a, b, c, d, e, f, g, h))
QRY_FORWARD(VkResult, vkGetSemaphoreCounterValue, (VkDevice a, VkSemaphore b, uint64_t* c), (a, b, c))
QRY_FORWARD(VkResult, vkGetSwapchainImagesKHR, (VkDevice a, VkSwapchainKHR b, uint32_t* c, VkImage* d), (a, b, c, d))
QRY_FORWARD(VkResult, vkMapMemory, (VkDevice a, VkDeviceMemory b, VkDeviceSize c, VkDeviceSize d, VkMemoryMapFlags e, void** f), (a, b, c, d, e, f))
QRY_FORWARD(VkResult, vkQueuePresentKHR, (VkQueue a, const VkPresentInfoKHR* b), (a, b))
QRY_FORWARD(VkResult, vkQueueSubmit, (VkQueue a, uint32_t b, const VkSubmitInfo* c, VkFence d), (a, b, c, d))
QRY_FORWARD(VkResult, vkResetCommandPool, (VkDevice a, VkCommandPool b, VkCommandPoolResetFlags c), (a, b, c))
QRY_FORWARD(void, vkUnmapMemory, (VkDevice a, VkDeviceMemory b), (a, b))
QRY_FORWARD(void, vkUpdateDescriptorSets, (VkDevice a, uint32_t b, const VkWriteDescriptorSet* c, uint32_t d, const VkCopyDescriptorSet* e), (a, b, c, d, e))
QRY_FORWARD(VkResult, vkWaitSemaphores, (VkDevice a, const VkSemaphoreWaitInfo* b, uint64_t c), (a, b, c))
// clang-format on

namespace quarry::app {

Result<void> load_vulkan_prototypes(PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkInstance instance) {
  for (const Forwarder* at = first; at; at = at->next) {
    *at->target = get_instance_proc_addr(instance, at->name);
    if (!*at->target) return fail(ErrorCode::unsupported, std::string("the Vulkan loader lacks ") + at->name + ", which a window needs");
  }
  return {};
}

}  // namespace quarry::app
