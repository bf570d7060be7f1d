#include "engine/pipelines.hpp"

#include "ambient_spirv.h"
#include "beams_spirv.h"
#include "behind_spirv.h"
#include "engine/pipeline_cache.hpp"
#include "engine/vulkan_loader.hpp"
#include "find_spirv.h"
#include "march_spirv.h"
#include "mirror_spirv.h"
#include "page_load_spirv.h"
#include "shade_spirv.h"
#include "shaders/frame.h"
#include "shadow_spirv.h"
#include "trace_spirv.h"
#include "views_spirv.h"

namespace quarry::engine {

Result<std::unique_ptr<Pipelines>> Pipelines::create(Device& device, VkDescriptorSetLayout target_layout) {
  std::unique_ptr<Pipelines> self(new Pipelines(device));
  const VulkanFunctions& vk = device.vk();
  VkPushConstantRange frame_push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryFramePush)}, list_push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryTracePush)};
  static_assert(sizeof(QryTracePush) == sizeof(QryFindPush) && sizeof(QryTracePush) <= 128);
  VkPipelineLayoutCreateInfo frame_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &target_layout, 1, &frame_push};
  VkPipelineLayoutCreateInfo list_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 0, nullptr, 1, &list_push};
  if (auto ok = vk_check(vk.vkCreatePipelineLayout(device.handle(), &frame_info, nullptr, &self->frame_layout), "vkCreatePipelineLayout", "frames"); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = vk_check(vk.vkCreatePipelineLayout(device.handle(), &list_info, nullptr, &self->list_layout), "vkCreatePipelineLayout", "lists"); !ok)
    return tl::unexpected(ok.error());

  auto cache = PipelineCache::open(device);
  if (!cache) return tl::unexpected(cache.error());
  const struct {
    VkPipeline* pipeline;
    VkPipelineLayout layout;
    const uint32_t* code;
    size_t bytes;
    const char* name;
    PipelineCache::Constants constants;
  } wanted[] = {{&self->march, self->frame_layout, k_march_spirv, sizeof k_march_spirv, "march", {}},
                {&self->beams, self->frame_layout, k_beams_spirv, sizeof k_beams_spirv, "beams", {}},
                {&self->march_counted, self->frame_layout, k_march_spirv, sizeof k_march_spirv, "march, counted", {.counts = true}},
                {&self->shadow, self->frame_layout, k_shadow_spirv, sizeof k_shadow_spirv, "shadow", {.inside = true}},
                {&self->shadow_one_way, self->frame_layout, k_shadow_spirv, sizeof k_shadow_spirv, "shadow, one way", {.inside = true, .one_way = true}},
                {&self->ambient, self->frame_layout, k_ambient_spirv, sizeof k_ambient_spirv, "ambient", {.inside = true}},
                {&self->behind, self->frame_layout, k_behind_spirv, sizeof k_behind_spirv, "behind", {.inside = true, .ignores = true}},
                {&self->mirror, self->frame_layout, k_mirror_spirv, sizeof k_mirror_spirv, "mirror", {.inside = true}},
                {&self->shade, self->frame_layout, k_shade_spirv, sizeof k_shade_spirv, "shade", {}},
                {&self->views, self->frame_layout, k_views_spirv, sizeof k_views_spirv, "views", {}},
                {&self->page_load, self->frame_layout, k_page_load_spirv, sizeof k_page_load_spirv, "page_load", {}},
                {&self->trace, self->list_layout, k_trace_spirv, sizeof k_trace_spirv, "trace", {.counts = true}},
                {&self->find, self->list_layout, k_find_spirv, sizeof k_find_spirv, "find", {}}};
  for (const auto& w : wanted) {
    if (w.pipeline == &self->beams && !device.info().beam_lanes) continue;
    auto made = (*cache)->make(w.layout, w.code, w.bytes, w.name, w.constants);
    if (!made) return tl::unexpected(made.error());
    *w.pipeline = *made;
  }
  (*cache)->store();
  return self;
}

Pipelines::~Pipelines() {
  const VulkanFunctions& vk = device->vk();
  for (VkPipeline pipeline : {beams, march, march_counted, shadow, shadow_one_way, ambient, behind, mirror, shade, views, page_load, trace, find})
    if (pipeline) vk.vkDestroyPipeline(device->handle(), pipeline, nullptr);
  for (VkPipelineLayout layout : {frame_layout, list_layout})
    if (layout) vk.vkDestroyPipelineLayout(device->handle(), layout, nullptr);
}

}  // namespace quarry::engine
