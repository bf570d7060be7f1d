// SPDX-License-Identifier: Apache-2.0
// dispatches.hpp - single dispatches of compute shaders that get push constants alone, each between two timestamps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "engine/vulkan/timeline.hpp"

namespace quarry::bench {

class Dispatches {
 public:
  static constexpr uint32_t kPushBytes = 128;

  // `device` must outlive it. Errors: device.
  static Result<std::unique_ptr<Dispatches>> create(engine::Device& device);
  ~Dispatches();
  Dispatches(const Dispatches&) = delete;
  Dispatches& operator=(const Dispatches&) = delete;

  // A pipeline, which lives as long as this. Constants: ids and values. Errors: device.
  using Constants = std::initializer_list<std::pair<uint32_t, uint32_t>>;
  Result<VkPipeline> make(const char* name, std::span<const uint32_t> code, Constants constants);
  // Runs it once, after `ready`, and returns when it is done: the microseconds that the device took. Push constants: at
  // most kPushBytes. Errors: device.
  struct Groups {
    uint32_t x, y;
  };
  Result<double> microseconds(VkPipeline pipeline, std::span<const std::byte> push, Groups groups,
                              engine::Device::TimelinePoint ready);
  // Copies a buffer's first bytes into memory that the host reads, which is used again by the next call. Errors:
  // out_of_memory, device.
  Result<const void*> read(const engine::DeviceMemory& from, size_t size_bytes);
  // Makes them 0. Errors: device.
  Result<void> clear(const engine::DeviceMemory& memory);

 private:
  explicit Dispatches(engine::Device& device) : device_(&device) {}
  Result<void> submit_and_wait(engine::Device::TimelinePoint ready);
  engine::Device* device_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  double tick_us_ = 0;
  std::vector<VkPipeline> pipelines_;
  std::unique_ptr<engine::Commands> commands_;
  std::unique_ptr<engine::Timeline> timeline_;
  std::unique_ptr<engine::DeviceMemory> visible_;
};

double median(std::vector<double> values);

}  // namespace quarry::bench
