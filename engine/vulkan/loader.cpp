// SPDX-License-Identifier: Apache-2.0
// loader.cpp - opens libvulkan by dlopen and looks up the functions of instance and device. The program starts without
// libvulkan.
#include "engine/vulkan/loader.hpp"

#include <dlfcn.h>

namespace quarry::engine {

Result<PFN_vkGetInstanceProcAddr> system_vulkan_loader() {
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return fail(ErrorCode::not_found, std::string("no Vulkan loader on this machine (") +
                                          (why ? why : "libvulkan.so.1") +
                                          "): install the Debian packages libvulkan1 and mesa-vulkan-drivers");
  }
  auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (!get)
    return fail(ErrorCode::not_found,
                "libvulkan.so.1 has no vkGetInstanceProcAddr: reinstall the Debian package libvulkan1");
  return get;
}

Result<void> load_global_functions(PFN_vkGetInstanceProcAddr get, VulkanFunctions& vk) {
#define QRY_LOAD(name)                                         \
  vk.name = reinterpret_cast<PFN_##name>(get(nullptr, #name)); \
  if (!vk.name) return fail(ErrorCode::device, "the Vulkan loader has no " #name ": it is older than Vulkan 1.2");
  QRY_VK_GLOBAL_FUNCTIONS(QRY_LOAD)
#undef QRY_LOAD
  return {};
}

Result<void> load_instance_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance, VulkanFunctions& vk) {
#define QRY_LOAD(name)                                          \
  vk.name = reinterpret_cast<PFN_##name>(get(instance, #name)); \
  if (!vk.name)                                                 \
    return fail(ErrorCode::device, "the Vulkan instance has no " #name ": it must be created for Vulkan 1.2");
  QRY_VK_INSTANCE_FUNCTIONS(QRY_LOAD)
#undef QRY_LOAD
#define QRY_LOAD(name) vk.name = reinterpret_cast<PFN_##name>(get(instance, #name));
  QRY_VK_OPTIONAL_INSTANCE_FUNCTIONS(QRY_LOAD)
#undef QRY_LOAD
  return {};
}

Result<void> load_device_functions(VkDevice device, VulkanFunctions& vk) {
#define QRY_LOAD(name)                                                           \
  vk.name = reinterpret_cast<PFN_##name>(vk.vkGetDeviceProcAddr(device, #name)); \
  if (!vk.name)                                                                  \
    return fail(ErrorCode::device, "the Vulkan device has no " #name             \
                                   ": it must be created for Vulkan "            \
                                   "1.2");
  QRY_VK_DEVICE_FUNCTIONS(QRY_LOAD)
#undef QRY_LOAD
#define QRY_LOAD(name) vk.name = reinterpret_cast<PFN_##name>(vk.vkGetDeviceProcAddr(device, #name));
  QRY_VK_OPTIONAL_DEVICE_FUNCTIONS(QRY_LOAD)
#undef QRY_LOAD
  return {};
}

const char* vk_result_name(VkResult result) {
  switch (result) {
    case VK_SUCCESS: return "VK_SUCCESS";
    case VK_NOT_READY: return "VK_NOT_READY";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    case VK_INCOMPLETE: return "VK_INCOMPLETE";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_FORMAT_NOT_SUPPORTED: return "VK_ERROR_FORMAT_NOT_SUPPORTED";
    case VK_ERROR_INVALID_EXTERNAL_HANDLE: return "VK_ERROR_INVALID_EXTERNAL_HANDLE";
    default: return "an unnamed VkResult";
  }
}

Result<void> vk_check(VkResult result, const char* call, const std::string& purpose) {
  if (result >= VK_SUCCESS) return {};
  const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const bool lost = result == VK_ERROR_DEVICE_LOST;
  return fail(memory ? ErrorCode::out_of_memory
              : lost ? ErrorCode::device_lost
                     : ErrorCode::device,
              std::string(call) + " failed for " + purpose + ": " + vk_result_name(result) + " (" +
                  std::to_string(int(result)) + ")" +
                  (lost ? "; the device is lost: destroy the context and its worlds, and make them anew" : ""));
}

}  // namespace quarry::engine
