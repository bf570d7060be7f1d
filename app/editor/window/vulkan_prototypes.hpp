// vulkan_prototypes.hpp - Vulkan's plain functions without linking libvulkan; see the .cpp for why.
#pragma once

#include <vulkan/vulkan_core.h>

#include "base/result.hpp"

namespace quarry::app {

// Before any vk* function of this program is called. One device per process at a time: the functions are the instance's dispatchers.
Result<void> load_vulkan_prototypes(PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkInstance instance);

}  // namespace quarry::app
