// SPDX-License-Identifier: Apache-2.0
// pipelines.hpp - the compute pipelines of a renderer, each made once.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>

#include "engine/vulkan/device.hpp"
#include "engine/vulkan/pipeline_cache.hpp"

namespace quarry::engine {

// A shader and its constants. A device without beam_lanes has no `beams`.
enum class Pass : uint8_t {
  beams,
  march,
  march_counted,
  shadow_rows,
  shadow_rows_one_direction,
  shadow_columns,
  shadow_columns_one_direction,
  ambient,
  refraction,
  reflection,
  shade,
  debug_views,
  page_load_factor,
  trace
};
constexpr size_t kPasses = size_t(Pass::trace) + 1;

class Pipelines {
 public:
  // `target_layout` is the layout of the set through which shade and debug views write (TargetSets). A GPU's pipelines
  // are all made here, so that no frame has to wait for one. A software driver's pipelines are made when a picture
  // first needs them, because it compiles at the first dispatch in any case. `tiled` makes pipelines for tiles of
  // pictures. Those of a software driver are always tiled, because compiling both kinds would be a waste. `paged` makes
  // them for worlds of which some pages are not there (sharing/residency.hpp); there are no beams then.
  static Result<std::unique_ptr<Pipelines>> create(Device& device, VkDescriptorSetLayout target_layout,
                                                   bool tiled = false, bool paged = false);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // Makes the missing pipelines, on all threads at once. Only one thread may call it at a time.
  Result<void> need(std::span<const Pass> passes);
  Result<void> need(std::initializer_list<Pass> passes) { return need(std::span(passes.begin(), passes.size())); }
  bool tiled() const { return tiled_; }
  bool first_start() const { return first_start_; }                       // no pipelines of this driver were on disk
  VkPipeline operator[](Pass pass) const { return made_[size_t(pass)]; }  // after need()

  VkPipelineLayout frame_layout = VK_NULL_HANDLE;  // set 0 = a target; QryFramePush
  VkPipelineLayout list_layout = VK_NULL_HANDLE;   // no sets; QryTracePush; for Pass::trace

 private:
  explicit Pipelines(Device& d) : device_(&d) {}
  Device* device_;
  std::unique_ptr<PipelineCache> cache_;
  std::array<VkPipeline, kPasses> made_{};
  bool first_start_ = false, tiled_ = false, paged_ = false;
};

}  // namespace quarry::engine
