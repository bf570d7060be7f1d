// SPDX-License-Identifier: Apache-2.0
// adopt_test.cpp - a host engine's own Vulkan device behind the plugin interface. A device created from the published
// requirements works. A device created without one of them is refused with its name. The host here is this file, which
// uses only quarry.h.
#include <dlfcn.h>
#include <vulkan/vulkan.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <quarry/quarry.h>

#include "tests/test_data.hpp"

namespace adopt_test {

namespace {

// One software or hardware device, and a chain of features that a test may change before create().
class Host {
 public:
  Host() {
    features12_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features_.pNext = &features12_;
    library_ = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library_) return;
    get_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library_, "vkGetInstanceProcAddr"));
    VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "host", 1, nullptr, 0, VK_API_VERSION_1_2};
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &app, 0, nullptr, 0, nullptr};
    if (call<PFN_vkCreateInstance>("vkCreateInstance", nullptr)(&info, nullptr, &instance_) != VK_SUCCESS) return;
    uint32_t count = 1;
    call<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(instance_, &count, &physical_);
    if (!count) physical_ = VK_NULL_HANDLE;
  }
  ~Host() {
    if (device_) call<PFN_vkDestroyDevice>("vkDestroyDevice")(device_, nullptr);
    if (instance_) call<PFN_vkDestroyInstance>("vkDestroyInstance")(instance_, nullptr);
  }
  bool there() const { return physical_ != VK_NULL_HANDLE; }
  VkPhysicalDeviceFeatures2& features() { return features_; }
  VkBool32& feature(const std::string& name) {
    const std::map<std::string, VkBool32*> places = {{"shaderInt64", &features_.features.shaderInt64},
                                                     {"timelineSemaphore", &features12_.timelineSemaphore},
                                                     {"bufferDeviceAddress", &features12_.bufferDeviceAddress},
                                                     {"scalarBlockLayout", &features12_.scalarBlockLayout}};
    REQUIRE(places.count(name) == 1);  // a new requirement needs a line above
    return *places.at(name);
  }

  bool create(const std::vector<const char*>& extensions = {}) {
    uint32_t families = 0;
    const auto query = call<PFN_vkGetPhysicalDeviceQueueFamilyProperties>("vkGetPhysicalDeviceQueueFamilyProperties");
    query(physical_, &families, nullptr);
    std::vector<VkQueueFamilyProperties> properties(families);
    query(physical_, &families, properties.data());
    for (family_ = 0; family_ < families && !(properties[family_].queueFlags & VK_QUEUE_COMPUTE_BIT); ++family_) {
    }
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, family_, 1, &priority};
    VkDeviceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &features_;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = uint32_t(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    extensions_ = extensions;
    if (call<PFN_vkCreateDevice>("vkCreateDevice")(physical_, &info, nullptr, &device_) != VK_SUCCESS) return false;
    call<PFN_vkGetDeviceQueue>("vkGetDeviceQueue")(device_, family_, 0, &queue_);
    return true;
  }
  bool has_extension(const char* name) {
    uint32_t count = 0;
    const auto query = call<PFN_vkEnumerateDeviceExtensionProperties>("vkEnumerateDeviceExtensionProperties");
    query(physical_, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> all(count);
    query(physical_, nullptr, &count, all.data());
    for (const auto& extension : all)
      if (std::strcmp(extension.extensionName, name) == 0) return true;
    return false;
  }
  qry_vulkan_device_info info() {
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

 private:
  template <class Function>
  Function call(const char* name) {
    return call<Function>(name, instance_);
  }
  template <class Function>
  Function call(const char* name, VkInstance instance) {
    return reinterpret_cast<Function>(get_(instance, name));
  }

  void* library_ = nullptr;
  PFN_vkGetInstanceProcAddr get_ = nullptr;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  VkPhysicalDeviceVulkan12Features features12_{};
  VkPhysicalDeviceFeatures2 features_{};
  std::vector<const char*> extensions_;
};

bool no_device(const Host& host) {
  if (!host.there()) quarry::test::skip("no Vulkan device for a host engine to create");
  return !host.there();
}

qry_result adopt(qry_vulkan_device_info& device, qry_context** context) {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  info.next = &device;
  return qry_context_create(QRY_ABI_VERSION, &info, context);
}

size_t count_true(const void* structure, size_t begin, size_t end) {
  size_t n = 0;
  for (size_t at = begin; at < end; at += sizeof(VkBool32)) {
    VkBool32 value;
    std::memcpy(&value, static_cast<const char*>(structure) + at, sizeof value);
    n += value == VK_TRUE;
  }
  return n;
}

}  // namespace

TEST_CASE("c_api: the required features are switched on in a host's chain, those and no others") {
  const qry_requirements& needed = *qry_get_requirements();
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features12;
  REQUIRE(qry_enable_required_features(&features) == QRY_OK);
  CHECK(count_true(&features, offsetof(VkPhysicalDeviceFeatures2, features), sizeof features) +
            count_true(&features12, offsetof(VkPhysicalDeviceVulkan12Features, samplerMirrorClampToEdge),
                       offsetof(VkPhysicalDeviceVulkan12Features, subgroupBroadcastDynamicId) + sizeof(VkBool32)) ==
        needed.required_feature_count);

  SECTION("also where each has a structure of its own") {
    VkPhysicalDeviceScalarBlockLayoutFeatures scalar{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES,
                                                     nullptr, VK_FALSE};
    VkPhysicalDeviceBufferDeviceAddressFeatures address{};
    address.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES;
    address.pNext = &scalar;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
                                                       &address, VK_FALSE};
    VkPhysicalDeviceFeatures2 single{};
    single.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    single.pNext = &timeline;
    REQUIRE(qry_enable_required_features(&single) == QRY_OK);
    CHECK(timeline.timelineSemaphore == VK_TRUE);
    CHECK(address.bufferDeviceAddress == VK_TRUE);
    CHECK(scalar.scalarBlockLayout == VK_TRUE);
    CHECK(single.features.shaderInt64 == VK_TRUE);
  }
  SECTION("a chain without a place for some is refused with their names, and left alone") {
    VkPhysicalDeviceFeatures2 alone{};
    alone.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    REQUIRE(qry_enable_required_features(&alone) == QRY_ERROR_MISSING_FEATURE);
    const std::string message = qry_last_error();
    CHECK(message.find("timelineSemaphore (VkPhysicalDeviceVulkan12Features)") != std::string::npos);
    CHECK(message.find("shaderInt64") == std::string::npos);
    CHECK(alone.features.shaderInt64 == VK_FALSE);
    alone.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    CHECK(qry_enable_required_features(&alone) == QRY_ERROR_INVALID_ARGUMENT);
  }
}

TEST_CASE("c_api: a host's device created without a required feature is refused by that feature's name") {
  const qry_requirements& needed = *qry_get_requirements();
  for (uint32_t i = 0; i < needed.required_feature_count; ++i) {
    Host host;
    if (no_device(host)) return;
    REQUIRE(qry_enable_required_features(&host.features()) == QRY_OK);
    host.feature(needed.required_features[i]) = VK_FALSE;
    REQUIRE(host.create());
    qry_vulkan_device_info info = host.info();
    qry_context* context = nullptr;
    INFO(needed.required_features[i]);
    CHECK(adopt(info, &context) == QRY_ERROR_MISSING_FEATURE);
    CHECK(context == nullptr);
    const std::string message = qry_last_error();
    for (uint32_t k = 0; k < needed.required_feature_count; ++k)
      CHECK((message.find(needed.required_features[k]) != std::string::npos) == (k == i));
  }
}

TEST_CASE("c_api: a host's device description with a part missing is refused by that part's name") {
  Host host;
  if (no_device(host)) return;
  REQUIRE(qry_enable_required_features(&host.features()) == QRY_OK);
  REQUIRE(host.create());
  const auto refused = [&](auto change, const char* part) {
    qry_vulkan_device_info info = host.info();
    change(info);
    qry_context* context = nullptr;
    CHECK(adopt(info, &context) == QRY_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(qry_last_error()).find(part) != std::string::npos);
    CHECK(context == nullptr);
  };
  refused([](auto& i) { i.instance = nullptr; }, "instance is NULL");
  refused([](auto& i) { i.physical_device = nullptr; }, "physical_device is NULL");
  refused([](auto& i) { i.device = nullptr; }, "device is NULL");
  refused([](auto& i) { i.queue = nullptr; }, "queue is NULL");
  refused([](auto& i) { i.enabled_features = nullptr; }, "enabled_features is NULL");
  refused([](auto& i) { i.enabled_extension_count = 2, i.enabled_extensions = nullptr; }, "enabled_extensions is NULL");
  refused([](auto& i) { i.lock_queue = [](void*) {}; }, "both lock_queue and unlock_queue");
  refused([](auto& i) { i.reserved = 1; }, "reserved");
}

TEST_CASE(
    "c_api: a host's device renders, its queue is locked around every submission, and it still works afterwards") {
  Host host;
  if (no_device(host)) return;
  std::vector<const char*> extensions;
  const qry_requirements& needed = *qry_get_requirements();
  const bool import_host = GENERATE(false, true);  // with the optional extensions, and without
  for (uint32_t i = 0; import_host && i < needed.optional_extension_count; ++i)
    if (host.has_extension(needed.optional_extensions[i])) extensions.push_back(needed.optional_extensions[i]);
  REQUIRE(qry_enable_required_features(&host.features()) == QRY_OK);
  REQUIRE(host.create(extensions));

  struct Lock {
    int locked = 0, unlocked = 0;
    bool nested = false;
    std::thread::id holder;
  } lock;
  qry_vulkan_device_info info = host.info();
  info.queue_user = &lock;
  info.lock_queue = [](void* user) {
    auto* l = static_cast<Lock*>(user);
    l->nested = l->nested || l->locked != l->unlocked;
    l->holder = std::this_thread::get_id();
    ++l->locked;
  };
  info.unlock_queue = [](void* user) {
    auto* l = static_cast<Lock*>(user);
    l->nested = l->nested || l->locked != l->unlocked + 1 || l->holder != std::this_thread::get_id();
    ++l->unlocked;
  };
  qry_context* context = nullptr;
  REQUIRE(adopt(info, &context) == QRY_OK);
  qry_device_state state = QRY_DEVICE_STATE_INIT;
  REQUIRE(qry_context_get_device(context, &state) == QRY_OK);
  CHECK(state.adopted == 1);
  INFO(state.name << ", sharing " << state.sharing << ": " << state.sharing_reason);
  CHECK(state.sharing != QRY_SHARING_AUTOMATIC);
  if (!import_host) CHECK(state.sharing == QRY_SHARING_STAGED);

  qry_world* world = nullptr;
  REQUIRE(qry_world_create(context, nullptr, &world) == QRY_OK);
  qry_edit edit = QRY_EDIT_INIT;
  edit.b[0] = edit.b[1] = edit.b[2] = 9;
  REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
  qry_render_info render = QRY_RENDER_INFO_INIT;
  render.width = render.height = 32;
  REQUIRE(qry_world_fit_camera(world, 45, 1, 30, 20, &render.camera) == QRY_OK);
  std::vector<uint8_t> rgba(32 * 32 * 4);
  const qry_result rendered = qry_world_render(world, &render, rgba.data(), rgba.size(), 0);
  INFO(qry_last_error());
  REQUIRE(rendered == QRY_OK);
  CHECK(std::memcmp(&rgba[0], &rgba[4 * (16 * 32 + 16)], 3) != 0);  // sky in the corner, the box in the middle
  CHECK(lock.locked > 0);
  CHECK(lock.locked == lock.unlocked);
  CHECK_FALSE(lock.nested);
  qry_world_destroy(&world);
  qry_context_destroy(&context);

  // The device still belongs to the host and works as before: another context on it renders the same.
  REQUIRE(adopt(info, &context) == QRY_OK);
  REQUIRE(qry_world_create(context, nullptr, &world) == QRY_OK);
  REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
  std::vector<uint8_t> again(rgba.size());
  REQUIRE(qry_world_render(world, &render, again.data(), again.size(), 0) == QRY_OK);
  CHECK(again == rgba);
  qry_world_destroy(&world);
  qry_context_destroy(&context);
}

TEST_CASE("c_api: a sharing mode that the device cannot do is refused when the context is made") {
  Host host;
  if (no_device(host)) return;
  REQUIRE(qry_enable_required_features(&host.features()) == QRY_OK);
  REQUIRE(host.create());  // without VK_EXT_external_memory_host
  qry_vulkan_device_info info = host.info();
  qry_context_info wanted = QRY_CONTEXT_INFO_INIT;
  wanted.next = &info;
  wanted.sharing = QRY_SHARING_HOST_IMPORT;
  qry_context* context = nullptr;
  CHECK(qry_context_create(QRY_ABI_VERSION, &wanted, &context) == QRY_ERROR_UNSUPPORTED);
  CHECK(std::string(qry_last_error()).size() > 10);
  CHECK(context == nullptr);
}

}  // namespace adopt_test
