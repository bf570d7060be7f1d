// SPDX-License-Identifier: Apache-2.0
// device.cpp - own and adopted devices. device_requirements.hpp has what a device must have.
#include "engine/vulkan/device.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstring>
#include <mutex>

#include "engine/cuda/device.hpp"
#include "engine/vulkan/device_requirements.hpp"
#include "engine/vulkan/loader.hpp"

namespace quarry::engine {

struct Device::State {
  bool pipeline_statistics = false;
  VulkanFunctions vk;
  PFN_vkGetInstanceProcAddr get = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t queue_family = 0;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  bool owned = false;
  DeviceInfo info;
  int cuda_device = -1;
  std::string cuda_reason;
  std::mutex queue_mutex;
  std::function<void()> lock_queue, unlock_queue;
  std::function<void(int, const char*)> log;
  std::atomic<uint32_t> validation_errors{0};

  ~State() {
    if (!owned) return;
    if (device) vk.vkDestroyDevice(device, nullptr);
    if (messenger) vk.vkDestroyDebugUtilsMessengerEXT(instance, messenger, nullptr);
    if (instance) vk.vkDestroyInstance(instance, nullptr);
  }
};

namespace {

std::string lower(std::string text) {
  for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool has_name(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  bool debug_utils = false;
};

Result<Instance> make_instance(VulkanFunctions& vk, PFN_vkGetInstanceProcAddr get,
                               const std::vector<const char*>& wanted, bool validation) {
  uint32_t count = 0;
  vk.vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> properties(count);
  vk.vkEnumerateInstanceExtensionProperties(nullptr, &count, properties.data());
  std::vector<std::string> present;
  present.reserve(properties.size());
  for (const auto& p : properties) present.emplace_back(p.extensionName);
  for (const char* name : wanted)
    if (!has_name(present, name))
      return fail(ErrorCode::unsupported, std::string("the Vulkan loader lacks the instance extension ") + name);

  Instance instance;
  std::vector<const char*> extensions = wanted, layers;
  if (has_name(present, VK_EXT_DEBUG_UTILS_EXTENSION_NAME)) {
    instance.debug_utils = true;
    if (std::none_of(extensions.begin(), extensions.end(),
                     [](const char* e) { return !std::strcmp(e, VK_EXT_DEBUG_UTILS_EXTENSION_NAME); }))
      extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  }
  const VkValidationFeatureEnableEXT enables[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = enables;
  if (validation) {
    constexpr const char* kLayer = "VK_LAYER_KHRONOS_validation";
    uint32_t layer_count = 0;
    vk.vkEnumerateInstanceLayerProperties(&layer_count, nullptr);
    std::vector<VkLayerProperties> available(layer_count);
    vk.vkEnumerateInstanceLayerProperties(&layer_count, available.data());
    if (std::none_of(available.begin(), available.end(),
                     [&](const auto& l) { return !std::strcmp(l.layerName, kLayer); }))
      return fail(ErrorCode::unsupported,
                  "validation was asked for, but VK_LAYER_KHRONOS_validation is not installed: install the Debian "
                  "package vulkan-validationlayers");
    layers.push_back(kLayer);
  }
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "quarry";
  application.pEngineName = "quarry";
  application.apiVersion = kRequiredVulkanVersion;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pNext = validation ? &features : nullptr;
  info.pApplicationInfo = &application;
  info.enabledLayerCount = uint32_t(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = uint32_t(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const VkResult result = vk.vkCreateInstance(&info, nullptr, &instance.handle);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return fail(ErrorCode::not_found,
                "no Vulkan driver on this machine: install your GPU's driver, or the Debian "
                "package mesa-vulkan-drivers for the "
                "software driver");
  QRY_TRY(vk_check(result, "vkCreateInstance", "Vulkan 1.2"));
  QRY_TRY(load_instance_functions(get, instance.handle, vk));
  return instance;
}

Result<std::vector<VkPhysicalDevice>> physical_devices(const VulkanFunctions& vk, VkInstance instance) {
  uint32_t count = 0;
  const VkResult counted = vk.vkEnumeratePhysicalDevices(instance, &count, nullptr);
  // The loader answers this if drivers are installed but none of them has a device.
  if (counted == VK_ERROR_INITIALIZATION_FAILED) return std::vector<VkPhysicalDevice>();
  QRY_TRY(vk_check(counted, "vkEnumeratePhysicalDevices", "counting devices"));
  std::vector<VkPhysicalDevice> devices(count);
  QRY_TRY(vk_check(vk.vkEnumeratePhysicalDevices(instance, &count, devices.data()), "vkEnumeratePhysicalDevices",
                   "listing devices"));
  devices.resize(count);
  return devices;
}

// A lower rank is better: first a GPU that CUDA also has, then any GPU, then software.
int rank_of(const DeviceInfo& info) {
  if (cuda_device_with_uuid(info.uuid, nullptr) >= 0) return 0;
  switch (info.type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 3;
    default: return 4;
  }
}

// Prefers a family that can also draw, because a window's widgets need that. Otherwise takes any that computes.
uint32_t pick_queue_family(const VulkanFunctions& vk, VkPhysicalDevice device) {
  uint32_t count = 0;
  vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  const VkQueueFlags both = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT;
  for (uint32_t i = 0; i < count; ++i)
    if ((families[i].queueFlags & both) == both) return i;
  for (uint32_t i = 0; i < count; ++i)
    if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) return i;
  return 0;  // not reached: describe_physical_device refuses such a device
}

}  // namespace

Result<std::vector<DeviceInfo>> list_devices() {
  QRY_TRY_ASSIGN(auto get, system_vulkan_loader());
  VulkanFunctions vk;
  QRY_TRY(load_global_functions(get, vk));
  QRY_TRY_ASSIGN(auto instance, make_instance(vk, get, {}, false));
  std::vector<DeviceInfo> infos;
  auto devices = physical_devices(vk, instance.handle);
  if (devices)
    for (VkPhysicalDevice device : *devices) infos.push_back(describe_physical_device(vk, device));
  vk.vkDestroyInstance(instance.handle, nullptr);
  QRY_TRY(devices);
  return infos;
}

Device::Device(std::unique_ptr<State> state) : state_(std::move(state)) {}
Device::~Device() = default;

Result<std::unique_ptr<Device>> Device::create(const DeviceOptions& options) {
  auto state = std::make_unique<State>();
  State& s = *state;
  s.owned = true;
  s.log = options.log;
  QRY_TRY_ASSIGN(auto get, system_vulkan_loader());
  s.get = get;
  QRY_TRY(load_global_functions(s.get, s.vk));
  QRY_TRY_ASSIGN(auto instance, make_instance(s.vk, s.get, options.instance_extensions, options.validation));
  s.instance = instance.handle;

  if (options.validation && instance.debug_utils && s.vk.vkCreateDebugUtilsMessengerEXT) {
    VkDebugUtilsMessengerCreateInfoEXT info{};
    info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    info.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    info.pfnUserCallback = [](VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) -> VkBool32 {
      auto* self = static_cast<State*>(user);
      const bool error = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
      const bool hazard = data->pMessageIdName && std::strstr(data->pMessageIdName, "SYNC-HAZARD") != nullptr;
      if (error || hazard) ++self->validation_errors;
      if (self->log) self->log(error || hazard ? 2 : 1, data->pMessage);
      return VK_FALSE;
    };
    info.pUserData = &s;
    QRY_TRY(vk_check(s.vk.vkCreateDebugUtilsMessengerEXT(s.instance, &info, nullptr, &s.messenger),
                     "vkCreateDebugUtilsMessengerEXT", "validation"));
  }

  QRY_TRY_ASSIGN(auto devices, physical_devices(s.vk, s.instance));
  std::vector<std::string> refused, names;
  int best = 1000;
  for (VkPhysicalDevice device : devices) {
    DeviceInfo info = describe_physical_device(s.vk, device);
    names.push_back(info.name);
    if (!options.prefer.empty() && lower(info.name).find(lower(options.prefer)) == std::string::npos) continue;
    if (!info.missing.empty()) {
      refused.push_back(info.name + " lacks " + joined(info.missing));
      continue;
    }
    const int rank = rank_of(info);
    if (rank < best) {
      best = rank;
      s.physical_device = device;
      s.info = std::move(info);
    }
  }
  if (!s.physical_device) {
    if (!refused.empty()) return fail(ErrorCode::unsupported, "no usable Vulkan device: " + joined(refused));
    if (names.empty())
      return fail(
          ErrorCode::not_found,
          "no Vulkan device on this machine: install the Debian package mesa-vulkan-drivers for the software driver");
    return fail(ErrorCode::not_found,
                "no Vulkan device's name contains '" + options.prefer + "'; there are: " + joined(names));
  }

  s.queue_family = pick_queue_family(s.vk, s.physical_device);
  std::vector<const char*> extensions;
  if (s.info.external_memory_fd) extensions.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  if (s.info.external_memory_host) extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if (options.want_swapchain) {
    if (!has_name(device_extensions(s.vk, s.physical_device), VK_KHR_SWAPCHAIN_EXTENSION_NAME))
      return fail(ErrorCode::unsupported, s.info.name + " lacks VK_KHR_swapchain, which a window needs");
    extensions.push_back(VK_KHR_SWAPCHAIN_EXTENSION_NAME);
  }
  s.pipeline_statistics = options.pipeline_statistics && has_name(device_extensions(s.vk, s.physical_device),
                                                                  VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  if (s.pipeline_statistics) extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable_features{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, nullptr, VK_TRUE};
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.timelineSemaphore = features12.bufferDeviceAddress = features12.scalarBlockLayout = VK_TRUE;
  if (s.pipeline_statistics) features12.pNext = &executable_features;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features12;
  features.features.shaderInt64 = VK_TRUE;
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = s.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = uint32_t(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  QRY_TRY(vk_check(s.vk.vkCreateDevice(s.physical_device, &info, nullptr, &s.device), "vkCreateDevice", s.info.name));
  QRY_TRY(load_device_functions(s.device, s.vk));
  s.vk.vkGetDeviceQueue(s.device, s.queue_family, 0, &s.queue);
  s.cuda_device = cuda_device_with_uuid(s.info.uuid, &s.cuda_reason);
  return std::unique_ptr<Device>(new Device(std::move(state)));
}

Result<std::unique_ptr<Device>> Device::adopt(const AdoptedDevice& adopted) {
  if (!adopted.get_instance_proc_addr || !adopted.instance || !adopted.physical_device || !adopted.device ||
      !adopted.queue)
    return fail(ErrorCode::invalid_argument, std::string("adopting a Vulkan device needs its ") +
                                                 (!adopted.get_instance_proc_addr ? "vkGetInstanceProcAddr"
                                                  : !adopted.instance             ? "VkInstance"
                                                  : !adopted.physical_device      ? "VkPhysicalDevice"
                                                  : !adopted.device               ? "VkDevice"
                                                                                  : "VkQueue"));
  auto state = std::make_unique<State>();
  State& s = *state;
  s.get = adopted.get_instance_proc_addr;
  s.instance = adopted.instance;
  s.physical_device = adopted.physical_device;
  s.device = adopted.device;
  s.queue = adopted.queue;
  s.queue_family = adopted.queue_family;
  s.lock_queue = adopted.lock_queue;
  s.unlock_queue = adopted.unlock_queue;
  QRY_TRY(load_instance_functions(s.get, s.instance, s.vk));
  s.info = describe_physical_device(s.vk, s.physical_device);
  if (!s.info.missing.empty()) return fail(ErrorCode::unsupported, s.info.name + " lacks " + joined(s.info.missing));
  // Vulkan has no query for the features that a device was created with, so the host has to say.
  if (const auto off = missing_features(adopted.enabled_features); !off.empty())
    return fail(ErrorCode::unsupported, "the host's Vulkan device was created without " + joined(off) +
                                            ": enable these features in vkCreateDevice and pass the same chain as "
                                            "enabled_features");
  s.info.external_memory_fd &= has_name(adopted.enabled_extensions, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  s.info.external_memory_host &= has_name(adopted.enabled_extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  QRY_TRY(load_device_functions(s.device, s.vk));
  s.cuda_device = cuda_device_with_uuid(s.info.uuid, &s.cuda_reason);
  return std::unique_ptr<Device>(new Device(std::move(state)));
}

const DeviceInfo& Device::info() const { return state_->info; }
const VulkanFunctions& Device::vk() const { return state_->vk; }
VkInstance Device::instance() const { return state_->instance; }
VkPhysicalDevice Device::physical_device() const { return state_->physical_device; }
VkDevice Device::handle() const { return state_->device; }
VkQueue Device::queue() const { return state_->queue; }
uint32_t Device::queue_family() const { return state_->queue_family; }
PFN_vkGetInstanceProcAddr Device::get_instance_proc_addr() const { return state_->get; }
int Device::cuda_device() const { return state_->cuda_device; }
const std::string& Device::cuda_reason() const { return state_->cuda_reason; }
bool Device::has_pipeline_statistics() const {
  return state_->pipeline_statistics && vk().vkGetPipelineExecutableStatisticsKHR;
}

std::vector<std::pair<std::string, std::string>> Device::pipeline_statistics(VkPipeline pipeline) const {
  std::vector<std::pair<std::string, std::string>> out;
  if (!has_pipeline_statistics()) return out;
  const VkPipelineExecutableInfoKHR which{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, nullptr, pipeline, 0};
  uint32_t count = 0;
  if (vk().vkGetPipelineExecutableStatisticsKHR(handle(), &which, &count, nullptr) < VK_SUCCESS) return out;
  std::vector<VkPipelineExecutableStatisticKHR> found(
      count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR, nullptr, {}, {}, {}, {}});
  if (vk().vkGetPipelineExecutableStatisticsKHR(handle(), &which, &count, found.data()) < VK_SUCCESS) return out;
  for (const auto& s : found) {
    switch (s.format) {
      case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
        out.emplace_back(s.name, s.value.b32 ? "yes" : "no");
        break;
      case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
        out.emplace_back(s.name, std::to_string(s.value.i64));
        break;
      case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
        out.emplace_back(s.name, std::to_string(s.value.u64));
        break;
      default: out.emplace_back(s.name, std::to_string(s.value.f64)); break;
    }
  }
  return out;
}

bool Device::owned() const { return state_->owned; }

uint32_t Device::validation_errors() const { return state_->validation_errors; }

void Device::lock_queue() {
  state_->queue_mutex.lock();
  if (state_->lock_queue) state_->lock_queue();
}

void Device::unlock_queue() {
  if (state_->unlock_queue) state_->unlock_queue();
  state_->queue_mutex.unlock();
}

Result<void> Device::submit(VkCommandBuffer commands, const std::vector<TimelinePoint>& wait,
                            const std::vector<TimelinePoint>& signal) {
  std::vector<VkSemaphore> wait_semaphores, signal_semaphores;
  std::vector<uint64_t> wait_values, signal_values;
  for (const TimelinePoint& p : wait)
    if (p.semaphore && p.value) {
      wait_semaphores.push_back(p.semaphore);
      wait_values.push_back(p.value);
    }
  for (const TimelinePoint& p : signal) {
    signal_semaphores.push_back(p.semaphore);
    signal_values.push_back(p.value);
  }
  const std::vector<VkPipelineStageFlags> stages(wait_semaphores.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.waitSemaphoreValueCount = uint32_t(wait_values.size());
  timeline.pWaitSemaphoreValues = wait_values.data();
  timeline.signalSemaphoreValueCount = uint32_t(signal_values.size());
  timeline.pSignalSemaphoreValues = signal_values.data();
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.waitSemaphoreCount = uint32_t(wait_semaphores.size());
  info.pWaitSemaphores = wait_semaphores.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = commands ? 1 : 0;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = uint32_t(signal_semaphores.size());
  info.pSignalSemaphores = signal_semaphores.data();
  lock_queue();
  const VkResult result = state_->vk.vkQueueSubmit(state_->queue, 1, &info, VK_NULL_HANDLE);
  unlock_queue();
  return vk_check(result, "vkQueueSubmit", state_->info.name);
}

Result<uint32_t> Device::memory_type(uint32_t type_bits, VkMemoryPropertyFlags wanted) const {
  VkPhysicalDeviceMemoryProperties properties{};
  state_->vk.vkGetPhysicalDeviceMemoryProperties(state_->physical_device, &properties);
  for (uint32_t i = 0; i < properties.memoryTypeCount; ++i)
    if ((type_bits >> i & 1u) && (properties.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
  return fail(ErrorCode::unsupported, state_->info.name + " has no memory type with property flags " +
                                          std::to_string(wanted) + " among type bits " + std::to_string(type_bits));
}

void Device::set_name(VkObjectType type, uint64_t handle, const char* name) const {
  if (!state_->vk.vkSetDebugUtilsObjectNameEXT) return;
  VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT, nullptr, type, handle, name};
  state_->vk.vkSetDebugUtilsObjectNameEXT(state_->device, &info);
}

}  // namespace quarry::engine
