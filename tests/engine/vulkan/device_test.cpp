// SPDX-License-Identifier: Apache-2.0
// device_test.cpp - what a device must have, the messages for missing features, and memory that both sides see.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "engine/sharing/memory_source.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "engine/vulkan/functions.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/test_data.hpp"

namespace device_test {

using namespace quarry;
using namespace quarry::engine;

namespace {

AdoptedDevice as_adopted(const Device& device) {
  AdoptedDevice adopted;
  adopted.get_instance_proc_addr = device.get_instance_proc_addr();
  adopted.instance = device.instance();
  adopted.physical_device = device.physical_device();
  adopted.device = device.handle();
  adopted.queue = device.queue();
  adopted.queue_family = device.queue_family();
  return adopted;
}

struct Features {
  VkPhysicalDeviceVulkan12Features features12{};
  VkPhysicalDeviceFeatures2 features{};
  Features() {
    features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features12.timelineSemaphore = features12.bufferDeviceAddress = features12.scalarBlockLayout = VK_TRUE;
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &features12;
    features.features.shaderInt64 = VK_TRUE;
  }
};

}  // namespace

TEST_CASE("device: every device is listed with its name and what it lacks") {
  auto devices = list_devices();
  if (!devices) return test::skip(devices.error().message);
  for (const DeviceInfo& info : *devices) {
    CHECK(!info.name.empty());
    CHECK(info.api_version >= VK_API_VERSION_1_0);
  }
  if (test::test_device()) CHECK(!devices->empty());
}

TEST_CASE("device: a name that no device has is refused with the names there are") {
  Device* device = test::test_device();
  if (!device) return;
  DeviceOptions options;
  options.prefer = "no such device";
  auto made = Device::create(options);
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::not_found);
  CHECK(made.error().message.find(device->info().name) != std::string::npos);
}

TEST_CASE("device: a host device created without a required feature is refused by the feature's name") {
  Device* device = test::test_device();
  if (!device) return;
  Features on;
  AdoptedDevice adopted = as_adopted(*device);
  SECTION("nothing said") { adopted.enabled_features = nullptr; }
  SECTION("timelineSemaphore") {
    on.features12.timelineSemaphore = VK_FALSE;
    adopted.enabled_features = &on.features;
  }
  auto made = Device::adopt(adopted);
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::unsupported);
  CHECK(made.error().message.find("timelineSemaphore") != std::string::npos);
  CHECK((made.error().message.find("shaderInt64") != std::string::npos) == (adopted.enabled_features == nullptr));
}

TEST_CASE(
    "device: an adopted device uses the host's lock around every submission and only extensions that the host "
    "enabled") {
  Device* device = test::test_device();
  if (!device) return;
  Features on;
  AdoptedDevice adopted = as_adopted(*device);
  adopted.enabled_features = &on.features;
  int locked = 0, unlocked = 0;
  adopted.lock_queue = [&] { ++locked; };
  adopted.unlock_queue = [&] { ++unlocked; };
  auto made = Device::adopt(adopted);
  REQUIRE(made);
  REQUIRE((*made)->submit(VK_NULL_HANDLE, {}, {}));
  CHECK(locked == 1);
  CHECK(unlocked == 1);
  CHECK(!(*made)->info().external_memory_host);
  auto choice = choose_sharing(**made);
  REQUIRE(choice);
  CHECK(choice->mode == SharingMode::staged);
  CHECK(choice->reason.find("VK_EXT_external_memory_host") != std::string::npos);
}

TEST_CASE("device: adopting without a queue says so") {
  Device* device = test::test_device();
  if (!device) return;
  AdoptedDevice adopted = as_adopted(*device);
  adopted.queue = VK_NULL_HANDLE;
  auto made = Device::adopt(adopted);
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::invalid_argument);
  CHECK(made.error().message.find("VkQueue") != std::string::npos);
}

TEST_CASE(
    "choose_sharing: a mode that cannot be had is refused with the reason, automatic says what it became and why") {
  Device* device = test::test_device();
  if (!device) return;
  auto automatic = choose_sharing(*device);
  REQUIRE(automatic);
  CHECK(automatic->mode != SharingMode::automatic);
  CHECK(!automatic->reason.empty());
  auto zero_copy = choose_sharing(*device, SharingMode::zero_copy);
  if (device->cuda_device() < 0) {
    REQUIRE(!zero_copy);
    CHECK(zero_copy.error().code == ErrorCode::unsupported);
    CHECK(zero_copy.error().message.find(device->cuda_reason()) != std::string::npos);
    CHECK(automatic->reason.find("no zero-copy because") != std::string::npos);
  } else {
    CHECK(zero_copy.has_value());
  }
  const auto host = choose_host_sharing(*device);
  REQUIRE(host);
  if (automatic->mode == SharingMode::zero_copy) {
    CHECK(host->mode == SharingMode::staged);
    CHECK(host->reason.find("copied") != std::string::npos);
  } else {
    CHECK(host->mode == automatic->mode);
  }
}

TEST_CASE("shared_buffer: memory of each mode is zero, page-aligned and has a device address") {
  Device* device = test::test_device();
  if (!device) return;
  for (const SharingMode mode : test::possible_modes(*device)) {
    INFO(to_string(mode));
    auto buffer = SharedBuffer::create(*device, mode, 5000, "test");
    REQUIRE(buffer);
    CHECK((*buffer)->size_bytes() == 5000);
    CHECK((*buffer)->device_address() != 0);
    const auto* bytes = static_cast<const uint8_t*>((*buffer)->host());
    REQUIRE(bytes);
    CHECK(reinterpret_cast<uintptr_t>(bytes) % 4096 == 0);
    CHECK(std::count(bytes, bytes + 5000, 0) == 5000);
  }
  auto empty = SharedBuffer::create(*device, SharingMode::automatic, 0, "none");
  REQUIRE(!empty);
  CHECK(empty.error().code == ErrorCode::invalid_argument);
}

TEST_CASE("device_memory: memory that shaders read at random is its buffer's alone, whatever its size") {
  Device* device = test::test_device();
  if (!device) return;
  for (const size_t size_bytes : {size_t(4096), size_t(1) << 20, size_t(65) << 20}) {
    const auto memory = DeviceMemory::create(*device, BufferMemory::device, size_bytes, "test");
    REQUIRE(memory);
    CHECK((*memory)->dedicated());
    if (!device->info().external_memory_fd) continue;
    const auto exported = DeviceMemory::create(*device, BufferMemory::exported, size_bytes, "test");
    REQUIRE(exported);
    CHECK((*exported)->dedicated());
    const auto to_import = (*exported)->export_fd();
    REQUIRE(to_import);
    CHECK(to_import->dedicated);
    ::close(to_import->fd);
  }
}

TEST_CASE("shared_memory_source: a released block lives until the frames that were submitted by then are done") {
  Device* device = test::test_device();
  if (!device) return;
  SharedMemorySource source(*device, SharingMode::staged);
  auto a = source.allocate(4096, "a"), b = source.allocate(8192, "b");
  REQUIRE(a);
  REQUIRE(b);
  CHECK(source.size_bytes() == 12288);
  source.release(*a);  // no frame was submitted, so it is freed at once
  CHECK(source.size_bytes() == 8192);
  source.frame_submitted(7);
  source.release(*b);
  CHECK(source.size_bytes() == 8192);
  source.frame_completed(6);
  CHECK(source.size_bytes() == 8192);
  source.frame_completed(7);
  CHECK(source.size_bytes() == 0);
}

}  // namespace device_test
