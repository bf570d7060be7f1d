// SPDX-License-Identifier: Apache-2.0
// device_blocks.cpp - one Vulkan buffer a block, dedicated to it.
#include "engine/sharing/device_blocks.hpp"

#include <utility>

#include "engine/sharing/ownership.hpp"
#include "engine/vulkan/device_memory.hpp"

namespace quarry::engine {

DeviceBlocks::DeviceBlocks(Device& device, std::unique_ptr<OwnershipTransfer> ownership)
    : device_(&device), ownership_(std::move(ownership)) {}
DeviceBlocks::~DeviceBlocks() = default;

Result<std::unique_ptr<DeviceBlocks>> DeviceBlocks::create(Device& device, bool exports) {
  std::unique_ptr<OwnershipTransfer> ownership;
  if (exports) {
    QRY_TRY_ASSIGN(ownership, OwnershipTransfer::create(device));
  } else if (!device.info().external_memory_host) {
    return fail(ErrorCode::unsupported, device.info().name + " cannot import host memory");
  }
  return std::unique_ptr<DeviceBlocks>(new DeviceBlocks(device, std::move(ownership)));
}

Result<device::ShaderMemory::Exported> DeviceBlocks::allocate(size_t size_bytes, const char* label) {
  QRY_TRY_ASSIGN(auto made, DeviceMemory::create(*device_, BufferMemory::exported, size_bytes, label));
  QRY_TRY_ASSIGN(const auto exported, made->export_fd());
  const std::shared_ptr<const DeviceMemory> memory(std::move(made));
  const auto owned = std::make_shared<std::shared_ptr<const DeviceMemory>>(memory);
  std::erase_if(blocks_, [](const auto& block) { return block.expired(); });
  blocks_.push_back(owned);
  return Exported{{memory->address(), owned}, exported.fd, exported.allocation_bytes};
}

Result<device::ShaderMemory::Block> DeviceBlocks::import_host(void* data, size_t size_bytes, const char* label) {
  QRY_TRY_ASSIGN(auto made, DeviceMemory::create(*device_, BufferMemory::host_pointer, size_bytes, label, data));
  const std::shared_ptr<DeviceMemory> memory(std::move(made));
  return Block{memory->address(), memory};
}

// CUDA goes on writing what no frame reads: nothing is given back to it.
Result<Device::TimelinePoint> DeviceBlocks::acquire() {
  if (!ownership_) return Device::TimelinePoint{VK_NULL_HANDLE, 0};
  // Old blocks, which only frames under way read, are among them.
  std::vector<std::shared_ptr<const DeviceMemory>> memory;
  for (const auto& block : blocks_)
    if (const auto owned = block.lock()) memory.push_back(*owned);
  QRY_TRY_ASSIGN(const Device::TimelinePoint point, ownership_->acquire(std::move(memory)));
  hand_overs_.fetch_add(1, std::memory_order_relaxed);
  return point;
}

}  // namespace quarry::engine
