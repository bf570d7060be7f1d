// pipelines.hpp - the compute pipelines, made once per device.
#pragma once

#include <memory>

#include "engine/device.hpp"

namespace quarry::engine {

struct Pipelines {
  // `target_layout`: that of the set through which shade and views write (TargetSets).
  static Result<std::unique_ptr<Pipelines>> create(Device& device, VkDescriptorSetLayout target_layout);
  ~Pipelines();

  VkPipelineLayout frame_layout = VK_NULL_HANDLE;        // set 0 = a target; QryFramePush
  VkPipelineLayout list_layout = VK_NULL_HANDLE;         // no sets; QryTracePush or QryFindPush
  VkPipeline beams = VK_NULL_HANDLE;  // null where the device has no beam_lanes
  VkPipeline march = VK_NULL_HANDLE, march_counted = VK_NULL_HANDLE, shadow = VK_NULL_HANDLE, shadow_one_way = VK_NULL_HANDLE, ambient = VK_NULL_HANDLE;
  VkPipeline behind = VK_NULL_HANDLE, mirror = VK_NULL_HANDLE, shade = VK_NULL_HANDLE, views = VK_NULL_HANDLE, page_load = VK_NULL_HANDLE;
  VkPipeline trace = VK_NULL_HANDLE, find = VK_NULL_HANDLE;

 private:
  explicit Pipelines(Device& d) : device(&d) {}
  Device* device;
};

}  // namespace quarry::engine
