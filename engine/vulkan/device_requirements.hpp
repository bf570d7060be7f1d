// SPDX-License-Identifier: Apache-2.0
// device_requirements.hpp - what Quarry needs of a physical device, what it uses if present, and the queries for both.
#pragma once

#include <string>
#include <vector>

#include "engine/vulkan/device.hpp"
#include "engine/vulkan/functions.hpp"

namespace quarry::engine {

constexpr uint32_t kRequiredVulkanVersion = VK_API_VERSION_1_2;

// Fills in all of DeviceInfo. `missing` holds the features' Vulkan names.
DeviceInfo describe_physical_device(const VulkanFunctions& vk, VkPhysicalDevice physical_device);

// The names of required features that are off in a features chain for vkCreateDevice. Null means that all are off.
std::vector<std::string> missing_features(const VkPhysicalDeviceFeatures2* enabled);

std::vector<std::string> device_extensions(const VulkanFunctions& vk, VkPhysicalDevice physical_device);

// "a, b and c"
std::string joined(const std::vector<std::string>& names);

}  // namespace quarry::engine
