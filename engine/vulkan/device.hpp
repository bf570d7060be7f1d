// SPDX-License-Identifier: Apache-2.0
// device.hpp - a Vulkan device, our own or the host engine's, with the functions we call loaded through its own loader.
// Only engine/ includes Vulkan headers. There is no global state, so several devices may live in one process.
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

// Every device must have Vulkan 1.2, timelineSemaphore, bufferDeviceAddress, shaderInt64 and scalarBlockLayout.
struct DeviceOptions {
  // Part of a device's name. "" prefers a GPU that CUDA also has, then any GPU, then software.
  std::string prefer;
  // VK_LAYER_KHRONOS_validation with synchronisation validation; messages go to `log`.
  bool validation = false;
  std::vector<const char*> instance_extensions;  // what a window needs
  bool want_swapchain = false;
  // Asks for register counts and other data of compiled shaders, if the driver has them (pipeline_statistics()).
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
  bool external_memory_fd = false, external_memory_host = false;
  uint64_t min_imported_host_pointer_alignment = 4096;
  // The threads of a subgroup, if compute shaders can find its minimum (shaders/library/beam.glsl). 0 if they cannot.
  uint32_t beam_lanes = 0;
  std::vector<std::string> missing;  // required features it lacks; empty: usable
};

// Lists every device, usable or not, for `quarry doctor`. Without a Vulkan loader the error is not_found and names the
// package to install.
Result<std::vector<DeviceInfo>> list_devices();

struct VulkanFunctions;  // vulkan/functions.hpp

class Device {
 public:
  static Result<std::unique_ptr<Device>> create(const DeviceOptions& options = {});
  // Fails with the missing feature's name. It takes no ownership.
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
  // Calls vkQueueSubmit under the queue lock. The device waits for and signals timeline semaphores. The call itself
  // never waits for them.
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
  // Names an object for debuggers and validation messages. It does nothing if VK_EXT_debug_utils is not enabled.
  void set_name(VkObjectType type, uint64_t handle, const char* name) const;
  // Gives the driver's statistics of a pipeline made with VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR, as pairs of
  // name and number in text. It is empty unless DeviceOptions asked for it and the driver has
  // VK_KHR_pipeline_executable_properties.
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
