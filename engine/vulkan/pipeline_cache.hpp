// SPDX-License-Identifier: Apache-2.0
// pipeline_cache.hpp - makes compute pipelines from SPIR-V and keeps the driver's compiled results on disk between
// runs.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "engine/vulkan/device.hpp"

namespace quarry::engine {

// It stays open while pipelines are made.
class PipelineCache {
 public:
  static Result<std::unique_ptr<PipelineCache>> open(Device& device);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  // Specialisation constants. dispatch_pixel.glsl has tiled. shadow.comp.glsl has one_direction, by_columns and the
  // rows of its workgroups. scan.glsl has those named after it. traverse.glsl in shaders/library has the others. A
  // shader ignores those that it does not have.
  struct Constants {
    bool counts = false, inside = false, skips_material = false, one_direction = false, by_columns = false,
         tiled = false;
    uint32_t rows = 16;
    uint32_t scan_group = 256, scan_quads = 4, scan_spins = 64, scan_trial = 0;
    bool scan_striped = true;
  };
  // The caller owns the pipeline. Any number of threads may call it.
  Result<VkPipeline> make(VkPipelineLayout layout, const uint32_t* code, size_t bytes, const char* name,
                          const Constants& constants);
  // Stores what was made since open(), if anything. A file that cannot be written only costs time at the next start.
  // Only one thread may call it at a time.
  void store();
  bool begins() const { return !file_.empty() && stored_.empty(); }  // there is a place on disk, and it is still empty

 private:
  explicit PipelineCache(Device& device) : device_(&device) {}
  Device* device_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::filesystem::path file_;
  std::vector<uint8_t> stored_;
};

// The folder is $XDG_CACHE_HOME/quarry or ~/.cache/quarry. The file is named after the device's UUID and driver. The
// path is empty without a home folder.
std::filesystem::path pipeline_cache_file(const DeviceInfo& info);
// Gives the stored data if it is whole and for this device. A damaged or foreign file counts as none.
std::vector<uint8_t> load_pipeline_cache(const std::filesystem::path& file);
void store_pipeline_cache(const std::filesystem::path& file, const std::vector<uint8_t>& data);

}  // namespace quarry::engine
