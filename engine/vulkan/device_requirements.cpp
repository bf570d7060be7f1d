// SPDX-License-Identifier: Apache-2.0
// device_requirements.cpp - queries features, extensions and exportable handles, and names what is missing.
#include "engine/vulkan/device_requirements.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace quarry::engine {
namespace {

bool has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool buffer_is_exportable(const VulkanFunctions& vk, VkPhysicalDevice physical_device) {
  VkPhysicalDeviceExternalBufferInfo info{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO, nullptr, 0,
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
      VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkExternalBufferProperties properties{VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES, nullptr, {}};
  vk.vkGetPhysicalDeviceExternalBufferProperties(physical_device, &info, &properties);
  return (properties.externalMemoryProperties.externalMemoryFeatures & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT) != 0;
}

}  // namespace

std::vector<std::string> device_extensions(const VulkanFunctions& vk, VkPhysicalDevice physical_device) {
  uint32_t count = 0;
  vk.vkEnumerateDeviceExtensionProperties(physical_device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> properties(count);
  if (vk.vkEnumerateDeviceExtensionProperties(physical_device, nullptr, &count, properties.data()) < VK_SUCCESS)
    return {};
  properties.resize(count);
  std::vector<std::string> names;
  names.reserve(count);
  for (const VkExtensionProperties& p : properties) names.emplace_back(p.extensionName);
  return names;
}

std::vector<std::string> missing_features(const VkPhysicalDeviceFeatures2* enabled) {
  bool int64 = false, timeline = false, address = false, scalar = false;
  for (auto* s = reinterpret_cast<const VkBaseInStructure*>(enabled); s; s = s->pNext) {
    switch (s->sType) {
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2:
        int64 |= reinterpret_cast<const VkPhysicalDeviceFeatures2*>(s)->features.shaderInt64 == VK_TRUE;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES: {
        auto* f = reinterpret_cast<const VkPhysicalDeviceVulkan12Features*>(s);
        timeline |= f->timelineSemaphore == VK_TRUE;
        address |= f->bufferDeviceAddress == VK_TRUE;
        scalar |= f->scalarBlockLayout == VK_TRUE;
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES:
        timeline |= reinterpret_cast<const VkPhysicalDeviceTimelineSemaphoreFeatures*>(s)->timelineSemaphore == VK_TRUE;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES:
        address |=
            reinterpret_cast<const VkPhysicalDeviceBufferDeviceAddressFeatures*>(s)->bufferDeviceAddress == VK_TRUE;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES:
        scalar |= reinterpret_cast<const VkPhysicalDeviceScalarBlockLayoutFeatures*>(s)->scalarBlockLayout == VK_TRUE;
        break;
      default: break;
    }
  }
  std::vector<std::string> missing;
  if (!int64) missing.emplace_back("shaderInt64");
  if (!timeline) missing.emplace_back("timelineSemaphore");
  if (!address) missing.emplace_back("bufferDeviceAddress");
  if (!scalar) missing.emplace_back("scalarBlockLayout");
  return missing;
}

DeviceInfo describe_physical_device(const VulkanFunctions& vk, VkPhysicalDevice physical_device) {
  DeviceInfo info;
  VkPhysicalDeviceProperties basic{};
  vk.vkGetPhysicalDeviceProperties(physical_device, &basic);
  info.name = basic.deviceName;
  info.api_version = basic.apiVersion;
  info.type = basic.deviceType;
  VkPhysicalDeviceMemoryProperties memory{};
  vk.vkGetPhysicalDeviceMemoryProperties(physical_device, &memory);
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i)
    if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      info.device_memory_bytes += memory.memoryHeaps[i].size;
  if (basic.apiVersion < kRequiredVulkanVersion) {
    info.missing.push_back("Vulkan 1.2 (it has " + std::to_string(VK_API_VERSION_MAJOR(basic.apiVersion)) + "." +
                           std::to_string(VK_API_VERSION_MINOR(basic.apiVersion)) + ")");
    return info;  // the structures below need Vulkan 1.2
  }

  const std::vector<std::string> extensions = device_extensions(vk, physical_device);
  const bool host_memory = has(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT, nullptr, 4096};
  VkPhysicalDeviceIDProperties id{};
  id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  id.pNext = host_memory ? &host : nullptr;
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  driver.pNext = &id;
  VkPhysicalDeviceSubgroupProperties subgroup{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, &driver, 0, 0, 0, VK_FALSE};
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &subgroup;
  vk.vkGetPhysicalDeviceProperties2(physical_device, &properties);
  info.driver = std::string(driver.driverName) + (driver.driverInfo[0] ? " " : "") + driver.driverInfo;
  std::copy(std::begin(id.deviceUUID), std::end(id.deviceUUID), info.uuid.begin());
  const uint32_t lanes = subgroup.subgroupSize;
  if ((subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
      (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0 && std::has_single_bit(lanes) &&
      lanes <= 64)
    info.beam_lanes = lanes;
  info.external_memory_host = host_memory;
  info.min_imported_host_pointer_alignment = host.minImportedHostPointerAlignment;
  info.external_memory_fd =
      has(extensions, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) && buffer_is_exportable(vk, physical_device);

  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features12;
  vk.vkGetPhysicalDeviceFeatures2(physical_device, &features);
  info.missing = missing_features(&features);

  uint32_t family_count = 0;
  vk.vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &family_count, nullptr);
  std::vector<VkQueueFamilyProperties> families(family_count);
  vk.vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &family_count, families.data());
  if (std::none_of(families.begin(), families.end(),
                   [](const auto& f) { return (f.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0; }))
    info.missing.emplace_back("a queue family with VK_QUEUE_COMPUTE_BIT");
  return info;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace quarry::engine
