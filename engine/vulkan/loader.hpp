// SPDX-License-Identifier: Apache-2.0
// loader.hpp - fills a VulkanFunctions table, and turns VkResult into Result.
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/vulkan/functions.hpp"

namespace quarry::engine {

// Gives vkGetInstanceProcAddr of the system's loader (libvulkan.so.1). The loader is opened on the first call and kept
// for the life of the process: drivers leave threads behind that crash when their library is unloaded. Without a loader
// the error is not_found and names the package to install.
Result<PFN_vkGetInstanceProcAddr> system_vulkan_loader();

// Each fails with the error `device` and names the function that the driver lacks.
Result<void> load_global_functions(PFN_vkGetInstanceProcAddr get, VulkanFunctions& vk);
Result<void> load_instance_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance, VulkanFunctions& vk);
Result<void> load_device_functions(VkDevice device, VulkanFunctions& vk);

const char* vk_result_name(VkResult result);

// Returns success, or an error that names the call and its purpose. VK_ERROR_OUT_OF_*_MEMORY becomes out_of_memory.
Result<void> vk_check(VkResult result, const char* call, const std::string& purpose);

}  // namespace quarry::engine
