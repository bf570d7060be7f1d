// SPDX-License-Identifier: Apache-2.0
// requirements.cpp - what Quarry needs of a Vulkan device, as data that a host reads before it creates its own.
// The list is the same as in engine/vulkan/device.hpp. tests/engine keeps the two equal: it adopts devices that lack
// one feature each.
#include <cstddef>
#include <cstring>
#include <string>

#include <vulkan/vulkan_core.h>

#include "engine/api/handles.hpp"

namespace quarry::c_api {
namespace {

// A feature has one name and may have several places: the structure of the Vulkan version that adopted it, or its own.
struct Place {
  VkStructureType stype;
  size_t offset;
};
struct Feature {
  const char* name;
  const char* structure;  // the one to name in messages
  Place places[2];
};

constexpr VkStructureType kNone = VK_STRUCTURE_TYPE_MAX_ENUM;
const Feature kFeatures[] = {
    {"shaderInt64",
     "VkPhysicalDeviceFeatures",
     {{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
       offsetof(VkPhysicalDeviceFeatures2, features) + offsetof(VkPhysicalDeviceFeatures, shaderInt64)},
      {kNone, 0}}},
    {"timelineSemaphore",
     "VkPhysicalDeviceVulkan12Features",
     {{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
       offsetof(VkPhysicalDeviceVulkan12Features, timelineSemaphore)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
       offsetof(VkPhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore)}}},
    {"bufferDeviceAddress",
     "VkPhysicalDeviceVulkan12Features",
     {{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
       offsetof(VkPhysicalDeviceVulkan12Features, bufferDeviceAddress)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
       offsetof(VkPhysicalDeviceBufferDeviceAddressFeatures, bufferDeviceAddress)}}},
    {"scalarBlockLayout",
     "VkPhysicalDeviceVulkan12Features",
     {{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
       offsetof(VkPhysicalDeviceVulkan12Features, scalarBlockLayout)},
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES,
       offsetof(VkPhysicalDeviceScalarBlockLayoutFeatures, scalarBlockLayout)}}},
};
constexpr uint32_t kFeatureCount = sizeof kFeatures / sizeof kFeatures[0];

const char* const kFeatureNames[] = {kFeatures[0].name, kFeatures[1].name, kFeatures[2].name, kFeatures[3].name};
const char* const kFeatureStructs[] = {kFeatures[0].structure, kFeatures[1].structure, kFeatures[2].structure,
                                       kFeatures[3].structure};
static_assert(sizeof kFeatureNames == sizeof(char*) * kFeatureCount && sizeof kFeatureStructs == sizeof kFeatureNames);

const char* const kOptionalExtensions[] = {
    "VK_EXT_external_memory_host",  // sharing mode host-import: shaders read the world in host memory without copies
    "VK_KHR_external_memory_fd",    // sharing mode zero-copy, with CUDA
};

const qry_requirements kRequirements = {
    VK_API_VERSION_1_2,
    kFeatureCount,
    kFeatureNames,
    kFeatureStructs,
    0,
    uint32_t(sizeof kOptionalExtensions / sizeof kOptionalExtensions[0]),
    nullptr,
    kOptionalExtensions,
};

// Returns the place of `feature` in the chain, or null.
VkBool32* find_place(VkPhysicalDeviceFeatures2* chain, const Feature& feature) {
  for (auto* link = reinterpret_cast<VkBaseOutStructure*>(chain); link; link = link->pNext)
    for (const Place& place : feature.places)
      if (place.stype != kNone && link->sType == place.stype)
        return reinterpret_cast<VkBool32*>(reinterpret_cast<char*>(link) + place.offset);
  return nullptr;
}

}  // namespace
}  // namespace quarry::c_api

using namespace quarry::c_api;

const qry_requirements* qry_get_requirements(void) { return &kRequirements; }

qry_result qry_enable_required_features(VkPhysicalDeviceFeatures2* chain) {
  const char* const function = "qry_enable_required_features";
  return guarded(function, [&]() -> qry_result {
    if (!chain) return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: chain is NULL", function);
    if (chain->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
      return refuse(QRY_ERROR_INVALID_ARGUMENT, "%s: chain->sType is not VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2",
                    function);
    VkBool32* places[kFeatureCount];
    std::string missing;
    for (uint32_t i = 0; i < kFeatureCount; ++i) {
      places[i] = find_place(chain, kFeatures[i]);
      if (!places[i])
        missing += std::string(missing.empty() ? "" : ", ") + kFeatures[i].name + " (" + kFeatures[i].structure + ")";
    }
    if (!missing.empty())
      return refuse(QRY_ERROR_MISSING_FEATURE,
                    "%s: no structure of the chain has a place for %s: add what is in brackets", function,
                    missing.c_str());
    for (VkBool32* place : places) *place = VK_TRUE;
    return QRY_OK;
  });
}
