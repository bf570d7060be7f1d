/* SPDX-License-Identifier: Apache-2.0 */
/* header_alone.c - quarry.h as the only header, every INIT macro used, and Vulkan's own types accepted without a cast
 * when both headers are included. */
#include <quarry/quarry.h>

/* Included after quarry.h on purpose, because quarry.h must not need it. */
#include <vulkan/vulkan_core.h>

qry_context_info header_context_info(void);
qry_context_info header_context_info(void) {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  return info;
}

uint32_t header_sum_of_stypes(void);
uint32_t header_sum_of_stypes(void) {
  const qry_device_state device = QRY_DEVICE_STATE_INIT;
  const qry_world_info world = QRY_WORLD_INFO_INIT;
  const qry_open_info open = QRY_OPEN_INFO_INIT;
  const qry_save_info save = QRY_SAVE_INFO_INIT;
  const qry_edit edit = QRY_EDIT_INIT;
  const qry_world_state state = QRY_WORLD_STATE_INIT;
  const qry_grid_stats stats = QRY_GRID_STATS_INIT;
  const qry_render_info render = QRY_RENDER_INFO_INIT;
  return device.stype + world.stype + open.stype + save.stype + edit.stype + state.stype + stats.stype + render.stype;
}

qry_vulkan_device_info header_adopt(PFN_vkGetInstanceProcAddr get, VkInstance instance, VkPhysicalDevice physical,
                                    VkDevice device, VkQueue queue, const VkPhysicalDeviceFeatures2* features);
qry_vulkan_device_info header_adopt(PFN_vkGetInstanceProcAddr get, VkInstance instance, VkPhysicalDevice physical,
                                    VkDevice device, VkQueue queue, const VkPhysicalDeviceFeatures2* features) {
  qry_vulkan_device_info info = QRY_VULKAN_DEVICE_INFO_INIT;
  info.get_instance_proc_addr = get;
  info.instance = instance;
  info.physical_device = physical;
  info.device = device;
  info.queue = queue;
  info.enabled_features = features;
  return info;
}
