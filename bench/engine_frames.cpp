// SPDX-License-Identifier: Apache-2.0
// engine_frames.cpp - what a host engine does around qry_record_frame.
#include "bench/engine_frames.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace quarry::bench {
namespace {

void require(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  std::fprintf(stderr, "quarry bench: %s: Vulkan's error %d\n", call, int(result));
  std::exit(1);
}

}  // namespace

// clang-format off
#define FRAME_FUNCTIONS(X)                                                                                          \
  X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) X(vkGetPhysicalDeviceProperties) X(vkCreateDevice)              \
  X(vkGetPhysicalDeviceQueueFamilyProperties) X(vkGetPhysicalDeviceMemoryProperties) X(vkDestroyDevice)              \
  X(vkEnumerateDeviceExtensionProperties) X(vkGetDeviceQueue) X(vkCreateCommandPool) X(vkDestroyCommandPool)         \
  X(vkAllocateCommandBuffers) X(vkBeginCommandBuffer) X(vkEndCommandBuffer) X(vkCreateImage) X(vkDestroyImage)       \
  X(vkGetImageMemoryRequirements) X(vkBindImageMemory) X(vkCreateImageView) X(vkDestroyImageView) X(vkCreateBuffer)  \
  X(vkDestroyBuffer) X(vkGetBufferMemoryRequirements) X(vkBindBufferMemory) X(vkAllocateMemory) X(vkFreeMemory)      \
  X(vkMapMemory) X(vkCmdPipelineBarrier) X(vkCmdCopyImageToBuffer) X(vkQueueSubmit) X(vkCreateSemaphore)             \
  X(vkDestroySemaphore) X(vkWaitSemaphores)
// clang-format on

struct EngineFrames::Functions {
#define FRAME_DECLARE(name) PFN_##name name = nullptr;
  FRAME_FUNCTIONS(FRAME_DECLARE)
#undef FRAME_DECLARE
};

EngineFrames::EngineFrames(uint32_t width, uint32_t height) : width_(width), height_(height) {}

std::unique_ptr<EngineFrames> EngineFrames::create(uint32_t width, uint32_t height) {
  std::unique_ptr<EngineFrames> frames(new EngineFrames(width, height));
  if (!frames->open_driver()) return nullptr;
  frames->make_device();
  frames->make_slots();
  return frames;
}

EngineFrames::~EngineFrames() {
  if (device_) {
    finish();
    for (const Slot& slot : slots_) {
      vk_->vkDestroyImageView(device_, slot.view, nullptr);
      vk_->vkDestroyImage(device_, slot.image, nullptr);
      vk_->vkFreeMemory(device_, slot.memory, nullptr);
    }
    vk_->vkDestroyBuffer(device_, pixels_, nullptr);
    vk_->vkFreeMemory(device_, pixels_memory_, nullptr);
    vk_->vkDestroySemaphore(device_, done_, nullptr);
    vk_->vkDestroyCommandPool(device_, pool_, nullptr);
    vk_->vkDestroyDevice(device_, nullptr);
  }
  if (instance_) vk_->vkDestroyInstance(instance_, nullptr);
}

bool EngineFrames::open_driver() {
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return false;
  get_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  const VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "flight", 1, nullptr, 0, VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &app, 0, nullptr, 0, nullptr};
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get_(VK_NULL_HANDLE, "vkCreateInstance"));
  if (create(&info, nullptr, &instance_) != VK_SUCCESS) return false;
  vk_ = std::make_unique<Functions>();
#define FRAME_LOAD(name) vk_->name = reinterpret_cast<PFN_##name>(get_(instance_, #name));
  FRAME_FUNCTIONS(FRAME_LOAD)
#undef FRAME_LOAD
  std::array<VkPhysicalDevice, 16> devices{};
  auto count = uint32_t(devices.size());
  (void)vk_->vkEnumeratePhysicalDevices(instance_, &count, devices.data());
  bool gpu = false;
  for (uint32_t i = 0; i < count && !gpu; ++i) {
    VkPhysicalDeviceProperties properties{};
    vk_->vkGetPhysicalDeviceProperties(devices[i], &properties);
    gpu = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    if (!physical_ || gpu) physical_ = devices[i];
  }
  return physical_ != VK_NULL_HANDLE;
}

void EngineFrames::make_device() {
  std::array<VkQueueFamilyProperties, 16> families{};
  auto count = uint32_t(families.size());
  vk_->vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  while (family_ + 1 < count && !(families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family_;
  require(vk_->vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, nullptr),
          "vkEnumerateDeviceExtensionProperties");
  std::vector<VkExtensionProperties> there(count);
  require(vk_->vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, there.data()),
          "vkEnumerateDeviceExtensionProperties");
  const qry_requirements& needed = *qry_get_requirements();
  for (uint32_t i = 0; i < needed.optional_extension_count; ++i)
    for (const VkExtensionProperties& extension : there)
      if (!std::strcmp(extension.extensionName, needed.optional_extensions[i]))
        extensions_.push_back(needed.optional_extensions[i]);
  features12_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features_.pNext = &features12_;
  (void)qry_enable_required_features(&features_);
  const float priority = 1;
  const VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, family_, 1, &priority};
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features_;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = uint32_t(extensions_.size());
  info.ppEnabledExtensionNames = extensions_.data();
  require(vk_->vkCreateDevice(physical_, &info, nullptr, &device_), "vkCreateDevice");
  vk_->vkGetDeviceQueue(device_, family_, 0, &queue_);
}

VkDeviceMemory EngineFrames::allocate(const VkMemoryRequirements& needed, VkMemoryPropertyFlags wanted) {
  VkPhysicalDeviceMemoryProperties types{};
  vk_->vkGetPhysicalDeviceMemoryProperties(physical_, &types);
  uint32_t type = 0;
  while (type + 1 < types.memoryTypeCount &&
         (!(needed.memoryTypeBits >> type & 1u) || (types.memoryTypes[type].propertyFlags & wanted) != wanted))
    ++type;
  const VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needed.size, type};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  require(vk_->vkAllocateMemory(device_, &info, nullptr, &memory), "vkAllocateMemory");
  return memory;
}

void EngineFrames::make_slots() {
  const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr,
                                       VK_SEMAPHORE_TYPE_TIMELINE, 0};
  const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  require(vk_->vkCreateSemaphore(device_, &semaphore, nullptr, &done_), "vkCreateSemaphore");
  const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                     VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, family_};
  require(vk_->vkCreateCommandPool(device_, &pool, nullptr, &pool_), "vkCreateCommandPool");
  const VkCommandBufferAllocateInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_,
                                             VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  require(vk_->vkAllocateCommandBuffers(device_, &commands, &copies_), "vkAllocateCommandBuffers");
  VkMemoryRequirements needed{};
  for (Slot& slot : slots_) {
    require(vk_->vkAllocateCommandBuffers(device_, &commands, &slot.commands), "vkAllocateCommandBuffers");
    VkImageCreateInfo image{};
    image.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
    image.imageType = VK_IMAGE_TYPE_2D;
    image.format = VK_FORMAT_R8G8B8A8_UNORM;
    image.extent = {width_, height_, 1};
    image.mipLevels = image.arrayLayers = 1;
    image.samples = VK_SAMPLE_COUNT_1_BIT;
    image.usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
    require(vk_->vkCreateImage(device_, &image, nullptr, &slot.image), "vkCreateImage");
    vk_->vkGetImageMemoryRequirements(device_, slot.image, &needed);
    slot.memory = allocate(needed, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    require(vk_->vkBindImageMemory(device_, slot.image, slot.memory, 0), "vkBindImageMemory");
    VkImageViewCreateInfo view{};
    view.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
    view.image = slot.image;
    view.viewType = VK_IMAGE_VIEW_TYPE_2D;
    view.format = image.format;
    view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    require(vk_->vkCreateImageView(device_, &view, nullptr, &slot.view), "vkCreateImageView");
  }
  VkBufferCreateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer.size = VkDeviceSize(width_) * height_ * 4;
  buffer.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  require(vk_->vkCreateBuffer(device_, &buffer, nullptr, &pixels_), "vkCreateBuffer");
  vk_->vkGetBufferMemoryRequirements(device_, pixels_, &needed);
  pixels_memory_ = allocate(needed, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  require(vk_->vkBindBufferMemory(device_, pixels_, pixels_memory_, 0), "vkBindBufferMemory");
  void* mapped = nullptr;
  require(vk_->vkMapMemory(device_, pixels_memory_, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
  mapped_ = static_cast<const uint8_t*>(mapped);
}

qry_vulkan_device_info EngineFrames::device_info() const {
  qry_vulkan_device_info info = QRY_VULKAN_DEVICE_INFO_INIT;
  info.get_instance_proc_addr = get_;
  info.instance = instance_;
  info.physical_device = physical_;
  info.device = device_;
  info.queue = queue_;
  info.queue_family = family_;
  info.enabled_extension_count = uint32_t(extensions_.size());
  info.enabled_extensions = extensions_.data();
  info.enabled_features = &features_;
  return info;
}

void EngineFrames::change_layout(VkCommandBuffer commands, VkImage image, VkImageLayout from, VkImageLayout to) {
  VkImageMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.oldLayout = from;
  barrier.newLayout = to;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  vk_->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0,
                            nullptr, 0, nullptr, 1, &barrier);
}

namespace {

constexpr VkCommandBufferBeginInfo kOnce{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                         VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};

}  // namespace

qry_record_info EngineFrames::begin() {
  ++frame_;
  const uint64_t safe = frame_ > kUnderWay ? frame_ - kUnderWay : 0;
  const VkSemaphoreWaitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &done_, &safe};
  if (safe) require(vk_->vkWaitSemaphores(device_, &wait, UINT64_MAX), "vkWaitSemaphores");
  const Slot& slot = slots_[frame_ % kUnderWay];
  require(vk_->vkBeginCommandBuffer(slot.commands, &kOnce), "vkBeginCommandBuffer");
  change_layout(slot.commands, slot.image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
  qry_record_info info = QRY_RECORD_INFO_INIT;
  info.command_buffer = slot.commands;
  std::memcpy(&info.image_view, &slot.view, sizeof info.image_view);
  info.frame = frame_;
  info.safe_frame = safe;
  return info;
}

void EngineFrames::submit(VkCommandBuffer commands, VkSemaphore wait, uint64_t value) {
  const uint32_t waits = value ? 1 : 0;
  const VkTimelineSemaphoreSubmitInfo values{
      VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, nullptr, waits, &value, 1, &frame_};
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  const VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values, waits, &wait, &stage, 1, &commands, 1, &done_};
  require(vk_->vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
}

void EngineFrames::submit(const qry_published& published) {
  const Slot& slot = slots_[frame_ % kUnderWay];
  require(vk_->vkEndCommandBuffer(slot.commands), "vkEndCommandBuffer");
  VkSemaphore wait = VK_NULL_HANDLE;
  std::memcpy(&wait, &published.semaphore, sizeof(VkSemaphore));
  submit(slot.commands, wait, published.value);
}

void EngineFrames::finish() {
  const VkSemaphoreWaitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &done_, &frame_};
  if (frame_) require(vk_->vkWaitSemaphores(device_, &wait, UINT64_MAX), "vkWaitSemaphores");
}

// As a frame of its own: the timeline's values are frames.
std::vector<uint8_t> EngineFrames::picture() {
  finish();
  const Slot& slot = slots_[frame_ % kUnderWay];
  ++frame_;
  require(vk_->vkBeginCommandBuffer(copies_, &kOnce), "vkBeginCommandBuffer");
  change_layout(copies_, slot.image, VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  VkBufferImageCopy copy{};
  copy.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  copy.imageExtent = {width_, height_, 1};
  vk_->vkCmdCopyImageToBuffer(copies_, slot.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, pixels_, 1, &copy);
  const VkMemoryBarrier to_host{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                                VK_ACCESS_HOST_READ_BIT};
  vk_->vkCmdPipelineBarrier(copies_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0,
                            nullptr, 0, nullptr);
  require(vk_->vkEndCommandBuffer(copies_), "vkEndCommandBuffer");
  submit(copies_, VK_NULL_HANDLE, 0);
  finish();
  return {mapped_, mapped_ + size_t(width_) * height_ * 4};
}

}  // namespace quarry::bench
