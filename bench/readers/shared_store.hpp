// SPDX-License-Identifier: Apache-2.0
// shared_store.hpp - a world in a device's memory (voxel/device/store.hpp) that kernels and shaders read in place, the
// same bytes: CUDA's, or host threads' where a driver imports host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/sharing/device_blocks.hpp"
#include "engine/sharing/world.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/world.hpp"

namespace quarry::bench {

class SharedStore {
 public:
  enum class Kernels : uint8_t { automatic, cuda, host_threads };
  // An empty world. `device` must outlive it. `automatic`: CUDA where it shares memory with the device, else host
  // threads. Errors: unsupported, with the reason; out_of_memory, device.
  static Result<std::unique_ptr<SharedStore>> create(engine::Device& device, Kernels kernels);
  ~SharedStore();
  SharedStore(const SharedStore&) = delete;
  SharedStore& operator=(const SharedStore&) = delete;

  bool on_cuda() const { return store_->executor().device() >= 0; }
  device::Store& store() { return *store_; }
  engine::SharedWorld& shared() { return *shared_; }
  // Puts all bricks of a world on the host there. Errors: as device::Store::put.
  Result<void> put(const World& world);
  // An array of that memory, for kernels by its pointer and for shaders by its address. It lives as long as this.
  // Errors: out_of_memory, device.
  struct Array {
    void* data = nullptr;
    uint64_t address = 0;
  };
  Result<Array> array(size_t size_bytes, const char* label);
  // Lets shaders see the world, and arrays, as they are now. A dispatch waits for the point. Errors: as
  // device::Store::publish.
  Result<engine::Device::TimelinePoint> publish();

 private:
  SharedStore() = default;
  std::unique_ptr<engine::DeviceBlocks> blocks_;  // outlives the store
  std::unique_ptr<device::Store> store_;
  std::unique_ptr<engine::SharedWorld> shared_;
  std::vector<device::Range> arrays_;
};

}  // namespace quarry::bench
