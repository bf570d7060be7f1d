// SPDX-License-Identifier: Apache-2.0
// vulkan_prototypes.cpp - looks up the functions through one vkGetInstanceProcAddr, for this program and for Dear
// ImGui's backend.
#include "app/editor/window/vulkan_prototypes.hpp"

#include <imgui_impl_vulkan.h>

#include <string>

namespace quarry::app {
namespace {

struct Lookup {
  PFN_vkGetInstanceProcAddr get;
  VkInstance instance;
  const char* missing = nullptr;
  PFN_vkVoidFunction operator()(const char* name) {
    const PFN_vkVoidFunction found = get(instance, name);
    if (!found && !missing) missing = name;
    return found;
  }
};

}  // namespace

Result<void> load_vulkan_prototypes(PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkInstance instance) {
  Lookup lookup{get_instance_proc_addr, instance};
#define QRY_LOAD(name) name = reinterpret_cast<PFN_##name>(lookup(#name));
  QRY_EDITOR_VULKAN_FUNCTIONS(QRY_LOAD)
#undef QRY_LOAD
  ImGui_ImplVulkan_LoadFunctions([](const char* name, void* user) { return (*static_cast<Lookup*>(user))(name); },
                                 &lookup);
  if (lookup.missing)
    return fail(ErrorCode::unsupported,
                std::string("the Vulkan loader lacks ") + lookup.missing + ", which a window needs");
  return {};
}

}  // namespace quarry::app
