// SPDX-License-Identifier: Apache-2.0
// device.hpp - a Vulkan device, our own or the host engine's, with the functions we call loaded through its own loader.
// Only engine/ includes Vulkan headers; no global state; several devices may live in one process.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry::engine {

// What we need of any device, as data a host engine can read before it creates one: Vulkan 1.2, timelineSemaphore,
// bufferDeviceAddress, shaderInt64, scalarBlockLayout.
struct DeviceOptions {
  // Part of a device's name; "" : a GPU that CUDA has too, then any GPU, then software.
  std::string prefer;
  // VK_LAYER_KHRONOS_validation with synchronisation validation; messages go to `log`.
  bool validation = false;
  std::vector<const char*> instance_extensions;  // what a window needs
  bool want_swapchain = false;
  // Registers and the like of compiled shaders, where the driver tells (pipeline_statistics())
  bool pipeline_statistics = false;
  std::function<void(int severity, const char* message)> log;  // severity 0 info, 1 warning, 2 error. Any thread.
};

struct AdoptedDevice {  // the host engine's objects; they outlive ours
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t queue_family = 0;
  std::vector<std::string> enabled_extensions;
  const VkPhysicalDeviceFeatures2* enabled_features = nullptr;  // chain the host passed to vkCreateDevice
  std::function<void()> lock_queue, unlock_queue;               // null: we are the only user
};

struct DeviceInfo {
  std::string name, driver;
  uint32_t api_version = 0;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  std::array<uint8_t, 16> uuid{};
  uint64_t device_memory_bytes = 0;
  bool external_memory_fd = false, external_semaphore_fd = false, external_memory_host = false;
  uint64_t min_imported_host_pointer_alignment = 4096;
  // Threads of a subgroup, where compute shaders can take its least number (shaders/library/beam.glsl); 0: they cannot.
  uint32_t beam_lanes = 0;
  std::vector<std::string> missing;  // required features it lacks; empty: usable
};

// Every device there is, usable or not: for `quarry doctor`. not_found without a Vulkan loader, with the package to
// install.
Result<std::vector<DeviceInfo>> list_devices();

struct VulkanFunctions;  // vulkan/functions.hpp

class Device {
 public:
  static Result<std::unique_ptr<Device>> create(const DeviceOptions& options = {});
  // Refuses with the missing feature's name. Takes no ownership.
  static Result<std::unique_ptr<Device>> adopt(const AdoptedDevice& adopted);
  ~Device();

  const DeviceInfo& info() const;
  bool owned() const;  // made by create()
  const VulkanFunctions& vk() const;
  VkInstance instance() const;
  VkPhysicalDevice physical_device() const;
  VkDevice handle() const;
  VkQueue queue() const;
  uint32_t queue_family() const;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr() const;
  // vkQueueSubmit under the queue lock; waits and signals timeline semaphores. Never waits itself.
  struct TimelinePoint {
    VkSemaphore semaphore;
    uint64_t value;
  };
  Result<void> submit(VkCommandBuffer commands, const std::vector<TimelinePoint>& wait,
                      const std::vector<TimelinePoint>& signal);
  void lock_queue();
  void unlock_queue();
  int cuda_device() const;  // ordinal of the CUDA device with our UUID, -1 if none or no CUDA in this build
  const std::string& cuda_reason() const;  // why cuda_device() is -1; "" if it is not
  // Names an object for debuggers and validation messages; nothing where VK_EXT_debug_utils is not enabled.
  void set_name(VkObjectType type, uint64_t handle, const char* name) const;
  // What the driver says about a pipeline made with VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR, name and number as
  // text; empty unless DeviceOptions asked for it and the driver has VK_KHR_pipeline_executable_properties.
  std::vector<std::pair<std::string, std::string>> pipeline_statistics(VkPipeline pipeline) const;
  bool has_pipeline_statistics() const;
  uint32_t validation_errors() const;  // messages of severity error or synchronisation hazards so far
  Result<uint32_t> memory_type(uint32_t type_bits, VkMemoryPropertyFlags wanted) const;

 private:
  struct State;
  explicit Device(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
