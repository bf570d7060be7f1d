// pipelines.hpp - the compute pipelines, made once per device, and their cache on disk.
#pragma once

#include <filesystem>
#include <memory>

#include "engine/device.hpp"

namespace quarry::engine {

struct Pipelines {
  static Result<std::unique_ptr<Pipelines>> create(Device& device);
  ~Pipelines();

  VkDescriptorSetLayout target_layout = VK_NULL_HANDLE;  // binding 0: the storage image that shade writes
  VkPipelineLayout frame_layout = VK_NULL_HANDLE;        // set 0 = target_layout, QryFramePush
  VkPipelineLayout list_layout = VK_NULL_HANDLE;         // no sets; QryTracePush or QryFindPush
  VkPipeline march = VK_NULL_HANDLE, march_counted = VK_NULL_HANDLE, shadow = VK_NULL_HANDLE, ambient = VK_NULL_HANDLE;
  VkPipeline behind = VK_NULL_HANDLE, shade = VK_NULL_HANDLE;
  VkPipeline trace = VK_NULL_HANDLE, find = VK_NULL_HANDLE;

 private:
  explicit Pipelines(Device& d) : device(&d) {}
  Device* device;
};

// $XDG_CACHE_HOME/quarry or ~/.cache/quarry, the file named after the device's UUID and driver; empty where there is no home.
std::filesystem::path pipeline_cache_file(const DeviceInfo& info);
// What was stored, whole and for this device, or nothing: a damaged or foreign file is as good as none.
std::vector<uint8_t> load_pipeline_cache(const std::filesystem::path& file);
void store_pipeline_cache(const std::filesystem::path& file, const std::vector<uint8_t>& data);

}  // namespace quarry::engine
