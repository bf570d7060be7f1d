// SPDX-License-Identifier: Apache-2.0
// pipeline_cache.hpp - compute pipelines from SPIR-V, and what a driver made of them kept on disk from one run to the
// next.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "engine/vulkan/device.hpp"

namespace quarry::engine {

// Open while pipelines are made.
class PipelineCache {
 public:
  static Result<std::unique_ptr<PipelineCache>> open(Device& device);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  // Of shaders/library/traverse.glsl, of dispatch_pixel.glsl tiled, and of shadow.comp.glsl one_direction, by_columns
  // and the rows of its workgroups; a shader without them ignores them.
  struct Constants {
    bool counts = false, inside = false, skips_material = false, one_direction = false, by_columns = false,
         tiled = false;
    uint32_t rows = 16;
  };
  // The pipeline is the caller's. Any number of threads.
  Result<VkPipeline> make(VkPipelineLayout layout, const uint32_t* code, size_t bytes, const char* name,
                          const Constants& constants);
  // What was made since open(), if anything was; a file that cannot be written costs time at the next start, nothing
  // else. One thread at a time.
  void store();
  bool begins() const { return !file_.empty() && stored_.empty(); }  // there is a place on disk, and nothing in it yet

 private:
  explicit PipelineCache(Device& device) : device_(&device) {}
  Device* device_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::filesystem::path file_;
  std::vector<uint8_t> stored_;
};

// $XDG_CACHE_HOME/quarry or ~/.cache/quarry, the file named after the device's UUID and driver; empty where there is no
// home.
std::filesystem::path pipeline_cache_file(const DeviceInfo& info);
// What was stored, whole and for this device, or nothing: a damaged or foreign file is as good as none.
std::vector<uint8_t> load_pipeline_cache(const std::filesystem::path& file);
void store_pipeline_cache(const std::filesystem::path& file, const std::vector<uint8_t>& data);

}  // namespace quarry::engine
