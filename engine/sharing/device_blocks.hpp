// SPDX-License-Identifier: Apache-2.0
// device_blocks.hpp - the memory of worlds that are at home on a device, as shaders see it: the very memory that the
// device's kernels write (voxel/device/). Vulkan allocates each block for one buffer and exports it, CUDA maps it; or
// Vulkan imports what host threads write in a device's place.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/vulkan/commands.hpp"
#include "voxel/device/executor.hpp"

namespace quarry::engine {

class DeviceMemory;
class OwnershipTransfer;

// It must outlive the blocks; the device must outlive it. One thread at a time.
class DeviceBlocks final : public device::ShaderMemory {
 public:
  // `exports`: for CUDA; else for host threads. Errors: unsupported, device.
  static Result<std::unique_ptr<DeviceBlocks>> create(Device& device, bool exports);
  ~DeviceBlocks() override;

  Result<Exported> allocate(size_t size_bytes, const char* label) override;
  Result<Block> import_host(void* data, size_t size_bytes, const char* label) override;

  // Lets the queue see what CUDA has written until now; the caller has waited for it. Frames wait for the point that is
  // returned (value 0: for nothing).
  Result<Device::TimelinePoint> acquire();
  // How often it did, where the memory is not the host's, which nobody hands over. Any thread.
  uint64_t hand_overs() const { return hand_overs_.load(std::memory_order_relaxed); }

 private:
  DeviceBlocks(Device& device, std::unique_ptr<OwnershipTransfer> ownership);
  Device* device_;
  std::unique_ptr<OwnershipTransfer> ownership_;  // null: host memory, which the queue sees as it is
  // What owners hold. The memory of one that is let go is destroyed when no hand-over under way names it any more.
  std::vector<std::weak_ptr<const std::shared_ptr<const DeviceMemory>>> blocks_;
  std::atomic<uint64_t> hand_overs_{0};
};

}  // namespace quarry::engine
