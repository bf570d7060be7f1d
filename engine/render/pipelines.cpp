// SPDX-License-Identifier: Apache-2.0
// pipelines.cpp - the table from pass to SPIR-V and specialisation constants, and the compute pipelines, made when
// first needed.
#include "engine/render/pipelines.hpp"

#include <vector>

#include "ambient_paged_spirv.h"
#include "ambient_spirv.h"
#include "base/parallel.hpp"
#include "beams_spirv.h"
#include "debug_views_spirv.h"
#include "engine/render/shadow_order.hpp"
#include "engine/vulkan/loader.hpp"
#include "march_paged_spirv.h"
#include "march_spirv.h"
#include "page_load_factor_spirv.h"
#include "reflection_paged_spirv.h"
#include "reflection_spirv.h"
#include "refraction_paged_spirv.h"
#include "refraction_spirv.h"
#include "shade_spirv.h"
#include "shaders/shared/frame.h"
#include "shadow_paged_spirv.h"
#include "shadow_spirv.h"
#include "trace_spirv.h"

namespace quarry::engine {
namespace {

struct Source {
  std::span<const uint32_t> code, paged;  // the same where the pass follows no ray
  const char* name;
  PipelineCache::Constants constants;
};

// In the order of Pass.
const Source kSources[] = {
    {k_beams_spirv, k_beams_spirv, "beams", {}},
    {k_march_spirv, k_march_paged_spirv, "march", {}},
    {k_march_spirv, k_march_paged_spirv, "march, counted", {.counts = true}},
    {k_shadow_spirv, k_shadow_paged_spirv, "shadow by rows", {.inside = true, .rows = kShadowRows}},
    {k_shadow_spirv,
     k_shadow_paged_spirv,
     "shadow by rows, one way",
     {.inside = true, .one_direction = true, .rows = kShadowRows}},
    {k_shadow_spirv,
     k_shadow_paged_spirv,
     "shadow by columns",
     {.inside = true, .by_columns = true, .rows = kShadowColumnRows}},
    {k_shadow_spirv,
     k_shadow_paged_spirv,
     "shadow by columns, one way",
     {.inside = true, .one_direction = true, .by_columns = true, .rows = kShadowColumnRows}},
    {k_ambient_spirv, k_ambient_paged_spirv, "ambient", {.inside = true}},
    {k_refraction_spirv, k_refraction_paged_spirv, "behind", {.inside = true, .skips_material = true}},
    {k_reflection_spirv, k_reflection_paged_spirv, "mirror", {.inside = true}},
    {k_shade_spirv, k_shade_spirv, "shade", {}},
    {k_debug_views_spirv, k_debug_views_spirv, "views", {}},
    {k_page_load_factor_spirv, k_page_load_factor_spirv, "page_load", {}},
    {k_trace_spirv, k_trace_spirv, "trace", {.counts = true}}};
static_assert(std::size(kSources) == kPasses);

}  // namespace

Result<std::unique_ptr<Pipelines>> Pipelines::create(Device& device, VkDescriptorSetLayout target_layout, bool tiled,
                                                     bool paged) {
  std::unique_ptr<Pipelines> self(new Pipelines(device));
  const VulkanFunctions& vk = device.vk();
  self->paged_ = paged;
  self->tiled_ = tiled || device.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  VkPushConstantRange frame_push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryFramePush)},
      list_push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryTracePush)};
  static_assert(sizeof(QryTracePush) <= 128);
  VkPipelineLayoutCreateInfo frame_info{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &target_layout, 1, &frame_push};
  VkPipelineLayoutCreateInfo list_info{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 0, nullptr, 1, &list_push};
  QRY_TRY(vk_check(vk.vkCreatePipelineLayout(device.handle(), &frame_info, nullptr, &self->frame_layout),
                   "vkCreatePipelineLayout", "frames"));
  QRY_TRY(vk_check(vk.vkCreatePipelineLayout(device.handle(), &list_info, nullptr, &self->list_layout),
                   "vkCreatePipelineLayout", "lists"));
  QRY_TRY_ASSIGN(auto cache, PipelineCache::open(device));
  self->cache_ = std::move(cache);
  self->first_start_ = self->cache_->begins();
  if (device.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU) return self;
  std::array<Pass, kPasses> all;
  for (size_t i = 0; i < kPasses; ++i) all[i] = Pass(i);
  QRY_TRY(self->need(all));
  return self;
}

Result<void> Pipelines::need(std::span<const Pass> passes) {
  std::vector<Pass> missing;
  for (const Pass pass : passes)
    if (!(*this)[pass] && (pass != Pass::beams || (device_->info().beam_lanes && !paged_))) missing.push_back(pass);
  if (missing.empty()) return {};
  std::vector<Result<VkPipeline>> results(missing.size(), VkPipeline(VK_NULL_HANDLE));
  parallel_for(missing.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const Source& from = kSources[size_t(missing[i])];
      const VkPipelineLayout layout = missing[i] == Pass::trace ? list_layout : frame_layout;
      PipelineCache::Constants constants = from.constants;
      constants.tiled = tiled_;
      const std::span<const uint32_t> code = paged_ ? from.paged : from.code;
      results[i] = cache_->make(layout, code.data(), code.size_bytes(), from.name, constants);
    }
  });
  Result<void> ok;
  for (size_t i = 0; i < missing.size(); ++i)
    if (results[i]) made_[size_t(missing[i])] = *results[i];
    else ok = tl::unexpected(results[i].error());
  cache_->store();
  return ok;
}

Pipelines::~Pipelines() {
  const VulkanFunctions& vk = device_->vk();
  for (const VkPipeline pipeline : made_)
    if (pipeline) vk.vkDestroyPipeline(device_->handle(), pipeline, nullptr);
  for (const VkPipelineLayout layout : {frame_layout, list_layout})
    if (layout) vk.vkDestroyPipelineLayout(device_->handle(), layout, nullptr);
}

}  // namespace quarry::engine
