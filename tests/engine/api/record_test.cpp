// SPDX-License-Identifier: Apache-2.0
// record_test.cpp - frames recorded into a host engine's own command buffer. The host here is this file, a small
// renderer with its own device, command buffers, images and other commands, under the validation layers. Its pictures
// must be those of qry_world_render, byte for byte.
#include <dlfcn.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <quarry/quarry.h>

#include "tests/engine/api/world_at.hpp"
#include "tests/test_data.hpp"

namespace record_test {

namespace {

constexpr uint32_t kWidth = 96, kHeight = 64, kInFlight = 3, kFrames = 9;
constexpr VkDeviceSize kPictureBytes = VkDeviceSize(kWidth) * kHeight * 4;

// clang-format off
#define HOST_FUNCTIONS(X)                                                                                      \
  X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) X(vkGetPhysicalDeviceQueueFamilyProperties)               \
  X(vkGetPhysicalDeviceMemoryProperties)                                                                       \
  X(vkEnumerateDeviceExtensionProperties) X(vkCreateDevice) X(vkDestroyDevice) X(vkGetDeviceQueue)             \
  X(vkCreateCommandPool) X(vkDestroyCommandPool)                                                               \
  X(vkAllocateCommandBuffers) X(vkBeginCommandBuffer) X(vkEndCommandBuffer) X(vkCreateImage) X(vkDestroyImage) \
  X(vkGetImageMemoryRequirements)                                                                              \
  X(vkBindImageMemory) X(vkCreateImageView) X(vkDestroyImageView) X(vkCreateBuffer) X(vkDestroyBuffer)         \
  X(vkGetBufferMemoryRequirements)                                                                             \
  X(vkBindBufferMemory) X(vkAllocateMemory) X(vkFreeMemory) X(vkMapMemory) X(vkCmdPipelineBarrier)             \
  X(vkCmdClearColorImage) X(vkCmdFillBuffer)                                                                   \
  X(vkCmdCopyImageToBuffer) X(vkQueueSubmit) X(vkCreateSemaphore) X(vkDestroySemaphore) X(vkWaitSemaphores)
// clang-format on

struct Messages {
  uint32_t count = 0;
  std::string first;
};

VKAPI_ATTR VkBool32 VKAPI_CALL heard(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                     const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto* messages = static_cast<Messages*>(user);
  if (!messages->count++) messages->first = data->pMessage;
  return VK_FALSE;
}

class Engine {
 public:
  // The objects that one frame in flight draws into.
  struct Slot {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkImage image = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
    // The picture, followed by 16 bytes that the engine fills with the frame's number.
    VkBuffer pixels = VK_NULL_HANDLE;
    VkDeviceMemory image_memory = VK_NULL_HANDLE, pixels_memory = VK_NULL_HANDLE;
    const uint8_t* mapped = nullptr;
    uint64_t frame = 0;
  };

  bool create(bool with_extensions) {
    library_ = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library_) return false;
    get_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library_, "vkGetInstanceProcAddr"));
    const VkApplicationInfo app{
        VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "engine", 1, nullptr, 0, VK_API_VERSION_1_2};
    const char* const layer = "VK_LAYER_KHRONOS_validation";
    const char* const utils = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    const VkValidationFeatureEnableEXT synchronisation = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    VkDebugUtilsMessengerCreateInfoEXT messenger{};
    messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messenger.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = heard;
    messenger.pUserData = &messages;
    VkValidationFeaturesEXT validation{
        VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, nullptr, 1, &synchronisation, 0, nullptr};
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, &validation, 0, &app, 1, &layer, 1, &utils};
    const auto create_instance = reinterpret_cast<PFN_vkCreateInstance>(get_(VK_NULL_HANDLE, "vkCreateInstance"));
// The layer is not instrumented, so ThreadSanitizer reports its locked accesses as races.
#if !defined(__SANITIZE_THREAD__)
    validates = create_instance(&info, nullptr, &instance_) == VK_SUCCESS;
#endif
    if (!validates) {
      info.pNext = nullptr;
      info.enabledLayerCount = info.enabledExtensionCount = 0;
      if (create_instance(&info, nullptr, &instance_) != VK_SUCCESS) return false;
    }
#define HOST_LOAD(name) name = reinterpret_cast<PFN_##name>(get_(instance_, #name));
    HOST_FUNCTIONS(HOST_LOAD)
#undef HOST_LOAD
    if (validates)
      reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(get_(instance_, "vkCreateDebugUtilsMessengerEXT"))(
          instance_, &messenger, nullptr, &messenger_);
    uint32_t count = 1;
    vkEnumeratePhysicalDevices(instance_, &count, &physical_);
    return count && create_device(with_extensions) && create_slots();
  }

  ~Engine() {
    if (device_) {
      for (const Slot& slot : slots) {
        vkDestroyImageView(device_, slot.view, nullptr);
        vkDestroyImage(device_, slot.image, nullptr);
        vkDestroyBuffer(device_, slot.pixels, nullptr);
        vkFreeMemory(device_, slot.image_memory, nullptr);
        vkFreeMemory(device_, slot.pixels_memory, nullptr);
      }
      vkDestroySemaphore(device_, done_, nullptr);
      vkDestroyCommandPool(device_, pool_, nullptr);
      vkDestroyDevice(device_, nullptr);
    }
    if (messenger_)
      reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(get_(instance_, "vkDestroyDebugUtilsMessengerEXT"))(
          instance_, messenger_, nullptr);
    if (instance_) vkDestroyInstance(instance_, nullptr);
  }

  qry_vulkan_device_info info() const {
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

  // The engine's own part of a frame before ours: it clears the image and hands it over as quarry.h requires.
  void begin(Slot& slot, uint64_t frame) {
    slot.frame = frame;
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                         VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
    REQUIRE(vkBeginCommandBuffer(slot.commands, &begin) == VK_SUCCESS);
    barrier(slot, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, 0,
            VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
    const VkClearColorValue pink{{1, 0, 1, 1}};
    const VkImageSubresourceRange whole{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    vkCmdClearColorImage(slot.commands, slot.image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &pink, 1, &whole);
    vkCmdFillBuffer(slot.commands, slot.pixels, kPictureBytes, 16, uint32_t(frame));
    barrier(slot, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_GENERAL, VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT);
  }
  // The engine's part after ours: it takes the picture back and submits.
  void end(Slot& slot, const qry_published& published) {
    barrier(slot, VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    VkBufferImageCopy copy{};
    copy.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    copy.imageExtent = {kWidth, kHeight, 1};
    vkCmdCopyImageToBuffer(slot.commands, slot.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, slot.pixels, 1, &copy);
    const VkMemoryBarrier to_host{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                                  VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(slot.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0,
                         nullptr, 0, nullptr);
    REQUIRE(vkEndCommandBuffer(slot.commands) == VK_SUCCESS);
    VkSemaphore wait = VK_NULL_HANDLE;
    static_assert(sizeof(VkSemaphore) == sizeof published.semaphore);
    std::memcpy(&wait, &published.semaphore, sizeof(VkSemaphore));
    const VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                               nullptr,
                                               published.value ? 1u : 0u,
                                               &published.value,
                                               1,
                                               &slot.frame};
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    const VkSubmitInfo submit{
        VK_STRUCTURE_TYPE_SUBMIT_INFO, &values, published.value ? 1u : 0u, &wait, &stage, 1, &slot.commands, 1, &done_};
    REQUIRE(vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS);
  }
  void wait_for(uint64_t frame) {
    const VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &done_, &frame};
    REQUIRE(vkWaitSemaphores(device_, &info, 60'000'000'000ull) == VK_SUCCESS);
  }

  bool validates = false;
  Messages messages;
  std::vector<Slot> slots;

 private:
  bool create_device(bool with_extensions) {
    uint32_t families = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &families, nullptr);
    std::vector<VkQueueFamilyProperties> properties(families);
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &families, properties.data());
    while (family_ < families && !(properties[family_].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family_;
    uint32_t count = 0;
    vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> there(count);
    vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, there.data());
    const qry_requirements& needed = *qry_get_requirements();
    for (uint32_t i = 0; with_extensions && i < needed.optional_extension_count; ++i)
      for (const auto& extension : there)
        if (!std::strcmp(extension.extensionName, needed.optional_extensions[i]))
          extensions_.push_back(needed.optional_extensions[i]);
    features12_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features_.pNext = &features12_;
    if (qry_enable_required_features(&features_) != QRY_OK) return false;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, family_, 1, &priority};
    const VkDeviceCreateInfo info{
        VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features_,         0,      1, &queue, 0, nullptr,
        uint32_t(extensions_.size()),         extensions_.data(), nullptr};
    if (vkCreateDevice(physical_, &info, nullptr, &device_) != VK_SUCCESS) return false;
    vkGetDeviceQueue(device_, family_, 0, &queue_);
    return true;
  }
  VkDeviceMemory allocate(const VkMemoryRequirements& needed, VkMemoryPropertyFlags wanted) {
    VkPhysicalDeviceMemoryProperties types{};
    vkGetPhysicalDeviceMemoryProperties(physical_, &types);
    uint32_t type = 0;
    while (type < types.memoryTypeCount &&
           (!(needed.memoryTypeBits >> type & 1u) || (types.memoryTypes[type].propertyFlags & wanted) != wanted))
      ++type;
    const VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needed.size, type};
    VkDeviceMemory memory = VK_NULL_HANDLE;
    REQUIRE(vkAllocateMemory(device_, &info, nullptr, &memory) == VK_SUCCESS);
    return memory;
  }
  bool create_slots() {
    const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr,
                                         VK_SEMAPHORE_TYPE_TIMELINE, 0};
    const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
    const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                       VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, family_};
    if (vkCreateSemaphore(device_, &semaphore, nullptr, &done_) != VK_SUCCESS ||
        vkCreateCommandPool(device_, &pool, nullptr, &pool_) != VK_SUCCESS)
      return false;
    slots.resize(kInFlight);
    for (Slot& slot : slots) {
      const VkCommandBufferAllocateInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_,
                                                 VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
      REQUIRE(vkAllocateCommandBuffers(device_, &commands, &slot.commands) == VK_SUCCESS);
      VkImageCreateInfo image{};
      image.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
      image.imageType = VK_IMAGE_TYPE_2D;
      image.format = VK_FORMAT_R8G8B8A8_UNORM;
      image.extent = {kWidth, kHeight, 1};
      image.mipLevels = image.arrayLayers = 1;
      image.samples = VK_SAMPLE_COUNT_1_BIT;
      image.usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
      REQUIRE(vkCreateImage(device_, &image, nullptr, &slot.image) == VK_SUCCESS);
      VkMemoryRequirements needed{};
      vkGetImageMemoryRequirements(device_, slot.image, &needed);
      slot.image_memory = allocate(needed, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
      REQUIRE(vkBindImageMemory(device_, slot.image, slot.image_memory, 0) == VK_SUCCESS);
      const VkImageViewCreateInfo view{
          VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO, nullptr, 0, slot.image, VK_IMAGE_VIEW_TYPE_2D, image.format, {},
          {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
      REQUIRE(vkCreateImageView(device_, &view, nullptr, &slot.view) == VK_SUCCESS);
      const VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                      nullptr,
                                      0,
                                      kPictureBytes + 16,
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                                      VK_SHARING_MODE_EXCLUSIVE,
                                      0,
                                      nullptr};
      REQUIRE(vkCreateBuffer(device_, &buffer, nullptr, &slot.pixels) == VK_SUCCESS);
      vkGetBufferMemoryRequirements(device_, slot.pixels, &needed);
      slot.pixels_memory = allocate(needed, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
      REQUIRE(vkBindBufferMemory(device_, slot.pixels, slot.pixels_memory, 0) == VK_SUCCESS);
      void* mapped = nullptr;
      REQUIRE(vkMapMemory(device_, slot.pixels_memory, 0, VK_WHOLE_SIZE, 0, &mapped) == VK_SUCCESS);
      slot.mapped = static_cast<const uint8_t*>(mapped);
    }
    return true;
  }
  void barrier(const Slot& slot, VkImageLayout from, VkImageLayout to, VkPipelineStageFlags from_stage,
               VkAccessFlags from_access, VkPipelineStageFlags to_stage, VkAccessFlags to_access) {
    const VkImageMemoryBarrier image{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                     nullptr,
                                     from_access,
                                     to_access,
                                     from,
                                     to,
                                     VK_QUEUE_FAMILY_IGNORED,
                                     VK_QUEUE_FAMILY_IGNORED,
                                     slot.image,
                                     {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
    vkCmdPipelineBarrier(slot.commands, from_stage, to_stage, 0, 0, nullptr, 0, nullptr, 1, &image);
  }

#define HOST_DECLARE(name) PFN_##name name = nullptr;
  HOST_FUNCTIONS(HOST_DECLARE)
#undef HOST_DECLARE
  void* library_ = nullptr;
  PFN_vkGetInstanceProcAddr get_ = nullptr;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkSemaphore done_ = VK_NULL_HANDLE;  // timeline: the newest frame that is done
  VkPhysicalDeviceVulkan12Features features12_{};
  VkPhysicalDeviceFeatures2 features_{};
  std::vector<const char*> extensions_;
};

// Of the slot's frame, which has been begun.
qry_record_info record_info(const Engine::Slot& slot, uint64_t safe) {
  qry_record_info info = QRY_RECORD_INFO_INIT;
  info.command_buffer = slot.commands;
  std::memcpy(&info.image_view, &slot.view, sizeof info.image_view);
  info.frame = slot.frame;
  info.safe_frame = safe;
  return info;
}

qry_context* context_on(const Engine& engine, uint32_t sharing) {
  qry_vulkan_device_info device = engine.info();
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  info.next = &device;
  info.sharing = sharing;
  qry_context* context = nullptr;
  REQUIRE(qry_context_create(QRY_ABI_VERSION, &info, &context) == QRY_OK);
  return context;
}

// Adds one storey of 600 bricks. Some of them make the tables grow.
void build(qry_world* world, uint64_t frame) {
  qry_edit edit = QRY_EDIT_INIT;
  edit.material = uint32_t(17 * frame % 200 + 1);
  edit.a[1] = int32_t(frame) * 24;
  edit.b[0] = 159 - int32_t(frame) * 8;
  edit.b[1] = edit.a[1] + 11;
  edit.b[2] = 119;
  REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
}

qry_render_info picture_of(uint64_t frame) {
  qry_render_info render = QRY_RENDER_INFO_INIT;
  render.width = kWidth;
  render.height = kHeight;
  render.camera.position[0] = 420 - 5 * double(frame);
  render.camera.position[1] = 260;
  render.camera.position[2] = 380;
  render.camera.target[0] = 80, render.camera.target[1] = 90, render.camera.target[2] = 60;
  return render;
}

using quarry::test::world_at;

}  // namespace

TEST_CASE(
    "c_api: frames recorded into an engine's command buffer are the pictures that rendering gives, and nothing "
    "waits or complains") {
  const bool with_extensions = GENERATE(false, true);
  const uint32_t sharing = with_extensions ? QRY_SHARING_AUTOMATIC : QRY_SHARING_STAGED;
  Engine engine;
  if (!engine.create(with_extensions)) return quarry::test::skip("no Vulkan device for a host engine to create");
  if (!engine.validates)
    quarry::test::skip(
        "the Vulkan validation layer is not installed (Debian package "
        "vulkan-validationlayers), or this is ThreadSanitizer's build");

  std::vector<std::vector<uint8_t>> expected(kFrames + 1, std::vector<uint8_t>(size_t(kPictureBytes)));
  {
    qry_context* context = context_on(engine, sharing);
    qry_world* world = nullptr;
    REQUIRE(qry_world_create(context, nullptr, &world) == QRY_OK);
    for (uint64_t frame = 1; frame <= kFrames; ++frame) {
      build(world, frame);
      const qry_render_info render = picture_of(frame);
      REQUIRE(qry_world_render(world, &render, expected[frame].data(), kPictureBytes, 0) == QRY_OK);
    }
    qry_world_destroy(&world);
    qry_context_destroy(&context);
  }
  CHECK(expected[1] != expected[2]);

  qry_context* context = context_on(engine, sharing);
  qry_world* world = nullptr;
  qry_recorder* recorder = nullptr;
  REQUIRE(qry_world_create(context, nullptr, &world) == QRY_OK);
  REQUIRE(qry_recorder_create(context, nullptr, &recorder) == QRY_OK);
  const auto check = [&](const Engine::Slot& slot) {
    INFO("frame " << slot.frame << " with sharing " << sharing);
    CHECK(std::memcmp(slot.mapped, expected[slot.frame].data(), kPictureBytes) == 0);
    uint32_t own = 0;
    std::memcpy(&own, slot.mapped + kPictureBytes, 4);
    CHECK(own == slot.frame);
  };
  for (uint64_t frame = 1; frame <= kFrames; ++frame) {
    Engine::Slot& slot = engine.slots[frame % kInFlight];
    const uint64_t safe = frame > kInFlight ? frame - kInFlight : 0;
    if (safe) {
      engine.wait_for(safe);
      check(slot);
    }
    build(world, frame);
    qry_published published = QRY_PUBLISHED_INIT;
    REQUIRE(qry_world_publish(world, &published) == QRY_OK);
    CHECK(published.version == frame);
    engine.begin(slot, frame);
    const qry_render_info render = picture_of(frame);
    const qry_record_info record = record_info(slot, safe);
    const qry_result recorded = qry_record_frame(recorder, world, &render, &record);
    INFO(qry_last_error());
    REQUIRE(recorded == QRY_OK);
    engine.end(slot, published);
  }
  engine.wait_for(kFrames);
  for (const Engine::Slot& slot : engine.slots) check(slot);

  // Memory that only those frames could read is freed when they are reported as done.
  qry_memory_state before = QRY_MEMORY_STATE_INIT, after = QRY_MEMORY_STATE_INIT;
  REQUIRE(qry_world_get_memory(world, &before) == QRY_OK);
  REQUIRE(qry_world_frames_done(world, kFrames) == QRY_OK);
  REQUIRE(qry_world_get_memory(world, &after) == QRY_OK);
  CHECK(after.device_bytes <= before.device_bytes);
  qry_recorder_destroy(&recorder);
  CHECK(recorder == nullptr);
  qry_world_destroy(&world);
  qry_context_destroy(&context);
  INFO(engine.messages.first);
  CHECK(engine.messages.count == 0);
}

TEST_CASE(
    "c_api: wherever a world is at home, each of three frames under way shows it as it was published, whatever edits, "
    "undo, growth and trim come between recording and submitting, and after",
    "[one-caller]") {
  constexpr uint64_t kStates = 8;
  const uint64_t frames = std::getenv("QUARRY_LONG") ? 1000 : 120;
  const auto ball = [](uint64_t number, double radius) {
    qry_edit edit = QRY_EDIT_INIT;
    edit.shape = QRY_SHAPE_SPHERE;
    edit.mode = QRY_MODE_FILL;
    edit.material = uint32_t(1 + number * 37 % 200);
    edit.a[0] = int32_t(number * 53 % 150), edit.a[1] = int32_t(40 + number * 31 % 90),
    edit.a[2] = int32_t(number * 71 % 110);
    edit.radius = radius;
    return edit;
  };
  for (const uint32_t home : {uint32_t(QRY_HOME_HOST), uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_DEVICE)}) {
    INFO("home " << home);
    Engine engine;
    if (!engine.create(true)) return quarry::test::skip("no Vulkan device for a host engine to create");
    qry_context* context = context_on(engine, QRY_SHARING_AUTOMATIC);
    qry_world *world = world_at(context, home), *reference = world_at(context, QRY_HOME_HOST);
    if (!world) {
      qry_world_destroy(&reference);
      qry_context_destroy(&context);
      continue;
    }
    // The states: storeys, and a ball that is another in each.
    std::vector<std::vector<uint8_t>> expected(kStates, std::vector<uint8_t>(size_t(kPictureBytes)));
    const qry_render_info render = picture_of(4);
    for (uint64_t storey = 1; storey <= 4; ++storey) build(world, storey), build(reference, storey);
    for (uint64_t state = 0; state < kStates; ++state) {
      const qry_edit edit = ball(state, 20);
      REQUIRE(qry_world_edit(reference, &edit, nullptr) == QRY_OK);
      REQUIRE(qry_world_render(reference, &render, expected[state].data(), kPictureBytes, 0) == QRY_OK);
      REQUIRE(qry_world_undo(reference, nullptr) == QRY_OK);
    }
    CHECK(expected[1] != expected[2]);
    qry_world_destroy(&reference);

    qry_recorder* recorder = nullptr;
    REQUIRE(qry_recorder_create(context, nullptr, &recorder) == QRY_OK);
    uint64_t wrong = 0;
    const auto check = [&](const Engine::Slot& slot) {
      wrong += std::memcmp(slot.mapped, expected[slot.frame % kStates].data(), kPictureBytes) != 0;
    };
    uint64_t ticket = 0;
    for (uint64_t frame = 1; frame <= frames; ++frame) {
      Engine::Slot& slot = engine.slots[frame % kInFlight];
      const uint64_t safe = frame > kInFlight ? frame - kInFlight : 0;
      if (safe) {
        engine.wait_for(safe);
        check(slot);
      }
      const qry_edit now = ball(frame % kStates, 20);
      REQUIRE(qry_world_submit_edit(world, &now, &ticket) == QRY_OK);
      qry_published published = QRY_PUBLISHED_INIT;
      REQUIRE(qry_world_publish(world, &published) == QRY_OK);
      engine.begin(slot, frame);
      const qry_record_info record = record_info(slot, safe);
      REQUIRE(qry_record_frame(recorder, world, &render, &record) == QRY_OK);
      // What the frame shows goes out of use, and its places would be used again.
      const uint64_t edits = frame % 16 == 5 ? 100 : 4;
      for (uint64_t i = 0; i < edits; ++i) {
        const qry_edit edit = ball(frame + i, frame % 29 == 7 && i == 0 ? 150 : 12 + double(i % 9));
        REQUIRE(qry_world_submit_edit(world, &edit, &ticket) == QRY_OK);
      }
      // One that is of the same material already is no step.
      qry_world_state state = QRY_WORLD_STATE_INIT;
      REQUIRE(qry_world_get_state(world, &state) == QRY_OK);
      for (uint64_t i = 4; i < state.history_position; ++i) REQUIRE(qry_world_submit_undo(world, &ticket) == QRY_OK);
      if (frame % 23 == 11) REQUIRE(qry_world_trim(world) == QRY_OK);
      engine.end(slot, published);
    }
    engine.wait_for(frames);
    for (const Engine::Slot& slot : engine.slots) check(slot);
    CHECK(wrong == 0);
    qry_home_state where = QRY_HOME_STATE_INIT;
    REQUIRE(qry_world_get_home(world, &where) == QRY_OK);
    CHECK(where.home == home);
    qry_recorder_destroy(&recorder);
    qry_world_destroy(&world);
    qry_context_destroy(&context);
    INFO(engine.messages.first);
    CHECK(engine.messages.count == 0);
  }
}

TEST_CASE("c_api: what cannot be recorded is refused with the reason") {
  Engine engine;
  if (!engine.create(false)) return quarry::test::skip("no Vulkan device for a host engine to create");
  qry_context* context = context_on(engine, QRY_SHARING_STAGED);
  qry_context* other = context_on(engine, QRY_SHARING_STAGED);
  qry_world *world = nullptr, *foreign = nullptr;
  qry_recorder* recorder = nullptr;
  qry_recorder_info slots = QRY_RECORDER_INFO_INIT;
  slots.slots = 0;
  CHECK(qry_recorder_create(context, &slots, &recorder) == QRY_ERROR_INVALID_ARGUMENT);
  slots.slots = 1;
  REQUIRE(qry_recorder_create(context, &slots, &recorder) == QRY_OK);
  REQUIRE(qry_world_create(context, nullptr, &world) == QRY_OK);
  REQUIRE(qry_world_create(other, nullptr, &foreign) == QRY_OK);
  build(world, 1);
  qry_published published = QRY_PUBLISHED_INIT;
  REQUIRE(qry_world_publish(foreign, &published) == QRY_OK);

  Engine::Slot& slot = engine.slots[0];
  engine.begin(slot, 1);
  const qry_render_info render = picture_of(1);
  qry_record_info record = QRY_RECORD_INFO_INIT;
  const auto refused = [&](qry_world* of, qry_result expected, const char* reason) {
    CHECK(qry_record_frame(recorder, of, &render, &record) == expected);
    CHECK(std::string(qry_last_error()).find(reason) != std::string::npos);
  };
  refused(world, QRY_ERROR_INVALID_ARGUMENT, "command_buffer is NULL");
  record.command_buffer = slot.commands;
  refused(world, QRY_ERROR_INVALID_ARGUMENT, "image_view is NULL");
  std::memcpy(&record.image_view, &slot.view, sizeof record.image_view);
  refused(world, QRY_ERROR_INVALID_ARGUMENT, "expected a frame above the safe one");
  record.frame = 2;
  refused(world, QRY_ERROR_INVALID_ARGUMENT, "never published");
  refused(foreign, QRY_ERROR_INVALID_ARGUMENT, "different contexts");
  REQUIRE(qry_world_publish(world, &published) == QRY_OK);
  REQUIRE(qry_record_frame(recorder, world, &render, &record) == QRY_OK);
  record.frame = 3;
  refused(world, QRY_ERROR_FULL, "all 1 slots");
  record.frame = 1;
  refused(world, QRY_ERROR_INVALID_ARGUMENT, "below");
  engine.end(slot, published);
  engine.wait_for(1);

  qry_context* own = nullptr;
  qry_world* plain = nullptr;
  REQUIRE(qry_context_create(QRY_ABI_VERSION, nullptr, &own) == QRY_OK);
  REQUIRE(qry_world_create(own, nullptr, &plain) == QRY_OK);
  qry_recorder* none = nullptr;
  CHECK(qry_recorder_create(own, nullptr, &none) == QRY_ERROR_UNSUPPORTED);
  CHECK(qry_world_publish(plain, &published) == QRY_ERROR_UNSUPPORTED);
  CHECK(qry_world_frames_done(plain, 7) == QRY_OK);
  qry_world_destroy(&plain);
  qry_context_destroy(&own);

  qry_recorder_destroy(&recorder);
  qry_world_destroy(&world);
  qry_world_destroy(&foreign);
  qry_context_destroy(&context);
  qry_context_destroy(&other);
  INFO(engine.messages.first);
  CHECK(engine.messages.count == 0);
}

namespace {

// Hills of 1024 x 1024 voxels, of which every brick is stored, and rings above them: 50 MB at home on a device.
void build_hills(qry_world* world) {
  constexpr int32_t kEdge = 128, kUp = 64;
  std::vector<uint8_t> materials(size_t(kEdge) * kEdge * kUp);
  uint32_t random = 1;
  for (int32_t z = 0; z < 1024; z += kEdge)
    for (int32_t x = 0; x < 1024; x += kEdge) {
      size_t at = 0;
      for (int32_t k = z; k < z + kEdge; ++k)
        for (int32_t j = 0; j < kUp; ++j)
          for (int32_t i = x; i < x + kEdge; ++i) {
            random = random * 1664525u + 1013904223u;
            const double hill = 36 + 14 * std::sin(i * 0.021) + 12 * std::cos(k * 0.027);
            materials[at++] = j > hill ? 0 : uint8_t(1 + (random >> 29));
          }
      const int32_t min[3] = {x, 0, z}, max[3] = {x + kEdge - 1, kUp - 1, z + kEdge - 1};
      REQUIRE(qry_world_write_region(world, 0, min, max, materials.data(), materials.size(), nullptr) == QRY_OK);
    }
  for (int32_t i = 0; i < 12; ++i) {
    qry_edit edit = QRY_EDIT_INIT;
    edit.shape = QRY_SHAPE_SPHERE;
    edit.material = uint32_t(20 + i);
    edit.a[0] = 60 + i * 80, edit.a[1] = 90, edit.a[2] = 960 - i * 77;
    edit.radius = 9;
    REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
  }
}

// From above the hills; what is behind them is transparent.
qry_render_info hills_from(double x, double z) {
  static const qry_look_info look = [] {
    qry_look_info info = QRY_LOOK_INFO_INIT;
    info.background = QRY_BACKGROUND_NONE;
    return info;
  }();
  qry_render_info render = QRY_RENDER_INFO_INIT;
  render.next = &look;
  render.width = kWidth;
  render.height = kHeight;
  render.camera.position[0] = x, render.camera.position[1] = 160, render.camera.position[2] = z;
  render.camera.target[0] = x + 60, render.camera.target[1] = 60, render.camera.target[2] = z - 70;
  render.camera.vertical_fov_degrees = 40;
  return render;
}

}  // namespace

TEST_CASE(
    "c_api: frames of a world that is larger than its part of a device's memory have no hole, and are those of the "
    "whole world as soon as the pages that they want have come",
    "[one-caller]") {
  const std::filesystem::path file = quarry::test::scratch_dir("record-streamed") / "hills.quarry";
  for (const uint32_t home : {uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_DEVICE)}) {
    INFO("home " << home);
    Engine engine;
    if (!engine.create(true)) return quarry::test::skip("no Vulkan device for a host engine to create");
    qry_context* context = context_on(engine, QRY_SHARING_AUTOMATIC);
    qry_world *world = world_at(context, home), *whole = world_at(context, QRY_HOME_HOST);
    if (!world) {
      qry_world_destroy(&whole);
      qry_context_destroy(&context);
      continue;
    }
    qry_world_destroy(&world);
    build_hills(whole);
    qry_save_info save = QRY_SAVE_INFO_INIT;
    const std::string path = file.string();
    save.path = path.c_str();
    REQUIRE(qry_world_save(whole, &save) == QRY_OK);

    qry_device_budget_info budget = QRY_DEVICE_BUDGET_INFO_INIT;
    qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
    wanted.home = home;
    wanted.next = &budget;
    qry_open_info open = QRY_OPEN_INFO_INIT;
    open.path = path.c_str();
    open.next = &wanted;
    budget.bytes = 1000;
    REQUIRE(qry_world_open(context, &open, &world) == QRY_ERROR_INVALID_ARGUMENT);
    const std::string message = qry_last_error();
    const size_t at = message.find(" takes ");
    REQUIRE(at != std::string::npos);
    budget.bytes = (std::stoull(message.substr(at + 7)) + 8) << 20;
    const qry_result opened = qry_world_open(context, &open, &world);
    INFO(qry_last_error());
    REQUIRE(opened == QRY_OK);
    qry_home_state where = QRY_HOME_STATE_INIT;
    REQUIRE(qry_world_get_home(world, &where) == QRY_OK);
    if (!where.in_place) {  // a copy of all of it is drawn
      CHECK(home == QRY_HOME_EMULATED);
      quarry::test::skip("shaders of this device cannot read memory of the host in its place");
      for (qry_world** one : {&world, &whole}) qry_world_destroy(one);
      qry_context_destroy(&context);
      continue;
    }

    qry_recorder* recorder = nullptr;
    REQUIRE(qry_recorder_create(context, nullptr, &recorder) == QRY_OK);
    uint64_t last = 0, streamed_pages = 0;
    bool views_refused = false;
    const auto record = [&](const qry_render_info& render) {
      const uint64_t frame = ++last;
      Engine::Slot& slot = engine.slots[frame % kInFlight];
      const uint64_t safe = frame > kInFlight ? frame - kInFlight : 0;
      if (safe) engine.wait_for(safe);
      qry_published published = QRY_PUBLISHED_INIT;
      const qry_result shown = qry_world_publish(world, &published);
      INFO(qry_last_error());
      REQUIRE(shown == QRY_OK);
      engine.begin(slot, frame);
      const qry_record_info info = record_info(slot, safe);
      if (!views_refused) {
        qry_render_info load = render;
        load.view = QRY_VIEW_LOAD;
        CHECK(qry_record_frame(recorder, world, &load, &info) == QRY_ERROR_UNSUPPORTED);
        views_refused = true;
      }
      REQUIRE(qry_record_frame(recorder, world, &render, &info) == QRY_OK);
      engine.end(slot, published);
      return &slot;
    };
    const auto expected_of = [&](const qry_render_info& render) {
      std::vector<uint8_t> picture(kPictureBytes);
      REQUIRE(qry_world_render(whole, &render, picture.data(), kPictureBytes, 0) == QRY_OK);
      return picture;
    };
    const auto holes = [](const uint8_t* picture, const std::vector<uint8_t>& expected) {
      int count = 0;
      for (size_t i = 3; i < kPictureBytes; i += 4) count += expected[i] == 255 && picture[i] != 255;
      return count;
    };
    // At each place: frames with three under way, each followed by what a host engine does between frames.
    const std::array<std::array<double, 2>, 5> places{{{100, 900}, {760, 400}, {140, 300}, {640, 960}, {100, 900}}};
    bool first = true;
    for (const auto& [x, z] : places) {
      INFO("from " << x << ", " << z);
      const qry_render_info render = hills_from(x, z);
      for (qry_world* one : {whole, world}) {
        qry_edit edit = QRY_EDIT_INIT;
        edit.shape = QRY_SHAPE_SPHERE;
        edit.mode = QRY_MODE_REMOVE;
        edit.a[0] = int32_t(x) + 40, edit.a[1] = 50, edit.a[2] = int32_t(z) - 60;
        edit.radius = 14;
        REQUIRE(qry_world_edit(one, &edit, nullptr) == QRY_OK);
      }
      const std::vector<uint8_t> expected = expected_of(render);
      CHECK(std::ranges::count(expected, 0) < std::ptrdiff_t(kPictureBytes / 2));
      Engine::Slot* slot = nullptr;
      int frames = 0;
      // Pages come for what frames saw that are done; behind those there may be others.
      for (uint32_t quiet = 0; quiet <= kInFlight && frames < 80; ++frames) {
        slot = record(render);
        if (frames == 0) {
          engine.wait_for(slot->frame);
          CHECK(holes(slot->mapped, expected) == 0);
          CHECK(std::memcmp(slot->mapped, expected.data(), kPictureBytes) != 0);
          if (first) {
            qry_stream_state state = QRY_STREAM_STATE_INIT;
            REQUIRE(qry_world_stream(world, nullptr, &state) == QRY_OK);
            CHECK(state.missing_pages == 0);  // no frame is known to be done yet
            first = false;
          }
        }
        qry_stream_info info = QRY_STREAM_INFO_INIT;
        info.max_bytes = 3'000'000;
        qry_stream_state state = QRY_STREAM_STATE_INIT;
        const qry_result streamed = qry_world_stream(world, &info, &state);
        INFO(qry_last_error());
        REQUIRE(streamed == QRY_OK);
        streamed_pages += state.brought_pages;
        CHECK((state.brought_pages <= 1 || state.brought_bytes <= info.max_bytes));
        quiet = frames > int(kInFlight) && state.brought_pages == 0 && state.missing_pages == 0 ? quiet + 1 : 0;
        engine.wait_for(last);
        CHECK(holes(slot->mapped, expected) == 0);
      }
      CHECK(frames < 80);
      CHECK(std::memcmp(slot->mapped, expected.data(), kPictureBytes) == 0);
    }
    // Edits whose steps alone keep about half of the memory, and more: pages elsewhere come all the same.
    for (int32_t part = 0; part < 6; ++part) {
      INFO("painted " << part);
      for (qry_world* one : {whole, world}) {
        qry_edit paint = QRY_EDIT_INIT;
        paint.mode = QRY_MODE_PAINT;
        paint.material = uint32_t(200 + part);
        paint.a[0] = 512 + 64 * part, paint.a[2] = 256;
        paint.b[0] = paint.a[0] + 63, paint.b[1] = 255, paint.b[2] = 767;
        qry_result painted = qry_world_edit(one, &paint, nullptr);
        // What has left is kept for frames, until they are done.
        for (int tries = 0; painted == QRY_ERROR_OUT_OF_MEMORY && one == world && tries < 8; ++tries) {
          engine.wait_for(record(hills_from(100, 900))->frame);
          painted = qry_world_edit(one, &paint, nullptr);
        }
        REQUIRE(painted == QRY_OK);
      }
      const qry_render_info render = hills_from(part % 2 ? 140 : 100, part % 2 ? 300 : 900);
      const std::vector<uint8_t> expected = expected_of(render);
      const Engine::Slot* slot = nullptr;
      int frames = 0;
      for (uint32_t quiet = 0; quiet <= kInFlight && frames < 80; ++frames) {
        slot = record(render);
        qry_stream_state state = QRY_STREAM_STATE_INIT;
        REQUIRE(qry_world_stream(world, nullptr, &state) == QRY_OK);
        streamed_pages += state.brought_pages;
        quiet = frames > int(kInFlight) && state.brought_pages == 0 && state.missing_pages == 0 ? quiet + 1 : 0;
        engine.wait_for(last);
      }
      CHECK(frames < 80);
      CHECK(std::memcmp(slot->mapped, expected.data(), kPictureBytes) == 0);
    }
    qry_paging_state pages = QRY_PAGING_STATE_INIT;
    qry_home_state state = QRY_HOME_STATE_INIT;
    state.next = &pages;
    REQUIRE(qry_world_get_home(world, &state) == QRY_OK);
    CHECK(pages.absent_pages > 0);
    CHECK(pages.left_pages > 0);
    CHECK(state.device_bytes <= budget.bytes + std::max<uint64_t>(budget.bytes / 10, 24'000'000));
    CHECK(std::accumulate(std::begin(pages.waits), std::end(pages.waits), uint64_t(0)) == streamed_pages);
    // Pages that are there before a camera is there: the first frame has them.
    const qry_render_info render = hills_from(760, 400);
    const std::vector<uint8_t> expected = expected_of(render);
    const int32_t min[3] = {768, 0, 256}, max[3] = {895, 127, 383};
    REQUIRE(qry_world_prefetch(world, min, max) == QRY_OK);
    CHECK(qry_world_prefetch(world, max, min) == QRY_ERROR_INVALID_ARGUMENT);
    const uint64_t before = pages.brought_pages;
    REQUIRE(qry_world_prefetch(world, min, max) == QRY_OK);
    REQUIRE(qry_world_get_home(world, &state) == QRY_OK);
    CHECK(pages.brought_pages >= before);
    const Engine::Slot* const slot = record(render);
    engine.wait_for(slot->frame);
    CHECK(holes(slot->mapped, expected) == 0);
    // The picture that waits is exact at once, and frames after it still have no hole.
    REQUIRE(qry_world_frames_done(world, last) == QRY_OK);
    std::vector<uint8_t> own(kPictureBytes);
    const qry_render_info back = hills_from(140, 300);
    REQUIRE(qry_world_render(world, &back, own.data(), kPictureBytes, 0) == QRY_OK);
    CHECK(own == expected_of(back));
    const Engine::Slot* const after = record(render);
    engine.wait_for(after->frame);
    CHECK(holes(after->mapped, expected) == 0);
    REQUIRE(qry_world_frames_done(world, last) == QRY_OK);

    // What the host keeps of its pages, and that a world can go at any time, while they are read behind its frames.
    qry_page_cache_state kept = QRY_PAGE_CACHE_STATE_INIT;
    pages.next = &kept;
    REQUIRE(qry_world_get_home(world, &state) == QRY_OK);
    CHECK(kept.budget_bytes == uint64_t(32) << 20);
    CHECK(kept.bytes <= kept.budget_bytes);
    CHECK(kept.pages > 0);
    CHECK(kept.found_pages > 0);
    CHECK(kept.read_pages >= kept.pages);
    for (size_t i = 0; i < std::size(kept.waits); ++i) CHECK(kept.waits[i] <= pages.waits[i]);
    qry_host_budget_info host = QRY_HOST_BUDGET_INFO_INIT;
    host.bytes = uint64_t(48) << 20;
    budget.next = &host;
    for (int round = 0; round < 4; ++round) {
      qry_world_destroy(&world);
      REQUIRE(qry_world_open(context, &open, &world) == QRY_OK);
      REQUIRE(qry_world_get_home(world, &state) == QRY_OK);
      CHECK(kept.budget_bytes == host.bytes);
      CHECK(kept.pages == 0);
      engine.wait_for(record(back)->frame);
      REQUIRE(qry_world_frames_done(world, last) == QRY_OK);
      qry_stream_state streamed = QRY_STREAM_STATE_INIT;
      REQUIRE(qry_world_stream(world, nullptr, &streamed) == QRY_OK);
      CHECK(streamed.brought_pages + streamed.missing_pages > 0);
      if (round == 3) REQUIRE(qry_world_flush(world) == QRY_OK);
    }

    qry_recorder_destroy(&recorder);
    qry_world_destroy(&world);
    qry_world_destroy(&whole);
    qry_context_destroy(&context);
    INFO(engine.messages.first);
    CHECK(engine.messages.count == 0);
  }
}

}  // namespace record_test
