#include "engine/pipelines.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "ambient_spirv.h"
#include "behind_spirv.h"
#include "engine/vulkan_loader.hpp"
#include "find_spirv.h"
#include "march_spirv.h"
#include "shade_spirv.h"
#include "shaders/frame.h"
#include "shadow_spirv.h"
#include "trace_spirv.h"

namespace quarry::engine {
namespace {

constexpr char kMagic[8] = {'Q', 'R', 'Y', 'P', 'I', 'P', 'E', '1'};

uint64_t checksum(const uint8_t* data, size_t size) {  // FNV-1a: against truncation and stray bytes, not against malice
  uint64_t h = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < size; ++i) h = (h ^ data[i]) * 0x100000001b3ull;
  return h;
}

Result<VkPipeline> make_pipeline(Device& device, VkPipelineCache cache, VkPipelineLayout layout, const uint32_t* code, size_t bytes, const char* name,
                                 bool counts, bool scattered) {
  const VulkanFunctions& vk = device.vk();
  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0, bytes, code};
  VkShaderModule module = VK_NULL_HANDLE;
  if (auto ok = vk_check(vk.vkCreateShaderModule(device.handle(), &module_info, nullptr, &module), "vkCreateShaderModule", name); !ok)
    return tl::unexpected(ok.error());
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  // Constants of shaders/traverse.glsl; a shader without them ignores them.
  const VkBool32 values[3] = {counts, scattered, device.info().type != VK_PHYSICAL_DEVICE_TYPE_CPU};
  constexpr VkSpecializationMapEntry kEntries[3] = {{0, 0, 4}, {5, 4, 4}, {6, 8, 4}};
  const VkSpecializationInfo constants{3, kEntries, sizeof values, values};
  info.stage.pSpecializationInfo = &constants;
  info.layout = layout;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vk.vkCreateComputePipelines(device.handle(), cache, 1, &info, nullptr, &pipeline);
  vk.vkDestroyShaderModule(device.handle(), module, nullptr);
  if (auto ok = vk_check(result, "vkCreateComputePipelines", name); !ok) return tl::unexpected(ok.error());
  device.set_name(VK_OBJECT_TYPE_PIPELINE, reinterpret_cast<uint64_t>(pipeline), name);
  return pipeline;
}

}  // namespace

std::filesystem::path pipeline_cache_file(const DeviceInfo& info) {
  std::filesystem::path base;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/') base = xdg;
  else if (const char* home = std::getenv("HOME"); home && *home == '/') base = std::filesystem::path(home) / ".cache";
  else return {};
  std::string name;
  char hex[3];
  for (uint8_t byte : info.uuid) {
    std::snprintf(hex, sizeof hex, "%02x", byte);
    name += hex;
  }
  char driver[20];
  std::snprintf(driver, sizeof driver, "-%016llx", static_cast<unsigned long long>(checksum(reinterpret_cast<const uint8_t*>(info.driver.data()), info.driver.size())));
  return base / "quarry" / (name + driver + ".pipelines");
}

std::vector<uint8_t> load_pipeline_cache(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  char magic[8];
  uint64_t size = 0, sum = 0;
  if (!in.read(magic, 8) || std::memcmp(magic, kMagic, 8) != 0 || !in.read(reinterpret_cast<char*>(&size), 8) || !in.read(reinterpret_cast<char*>(&sum), 8) ||
      size > (64u << 20))
    return {};
  std::vector<uint8_t> data(size);
  if (!in.read(reinterpret_cast<char*>(data.data()), std::streamsize(size)) || checksum(data.data(), data.size()) != sum) return {};
  return data;
}

void store_pipeline_cache(const std::filesystem::path& file, const std::vector<uint8_t>& data) {
  std::error_code failed;  // a cache that cannot be written costs time at the next start, nothing else
  std::filesystem::create_directories(file.parent_path(), failed);
  if (failed) return;
  std::filesystem::path part = file;
  part += "." + std::to_string(getpid());
  {
    std::ofstream out(part, std::ios::binary);
    const uint64_t size = data.size(), sum = checksum(data.data(), data.size());
    out.write(kMagic, 8);
    out.write(reinterpret_cast<const char*>(&size), 8);
    out.write(reinterpret_cast<const char*>(&sum), 8);
    out.write(reinterpret_cast<const char*>(data.data()), std::streamsize(size));
    if (!out.flush()) failed = std::make_error_code(std::errc::io_error);
  }
  if (!failed) std::filesystem::rename(part, file, failed);
  if (failed) std::filesystem::remove(part, failed);
}

Result<std::unique_ptr<Pipelines>> Pipelines::create(Device& device) {
  std::unique_ptr<Pipelines> self(new Pipelines(device));
  const VulkanFunctions& vk = device.vk();
  VkDescriptorSetLayoutBinding binding{0, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, nullptr, 0, 1, &binding};
  if (auto ok = vk_check(vk.vkCreateDescriptorSetLayout(device.handle(), &set_info, nullptr, &self->target_layout), "vkCreateDescriptorSetLayout", "shade"); !ok)
    return tl::unexpected(ok.error());
  VkPushConstantRange frame_push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryFramePush)}, list_push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryTracePush)};
  static_assert(sizeof(QryTracePush) == sizeof(QryFindPush) && sizeof(QryTracePush) <= 128);
  VkPipelineLayoutCreateInfo frame_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &self->target_layout, 1, &frame_push};
  VkPipelineLayoutCreateInfo list_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 0, nullptr, 1, &list_push};
  if (auto ok = vk_check(vk.vkCreatePipelineLayout(device.handle(), &frame_info, nullptr, &self->frame_layout), "vkCreatePipelineLayout", "frames"); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = vk_check(vk.vkCreatePipelineLayout(device.handle(), &list_info, nullptr, &self->list_layout), "vkCreatePipelineLayout", "lists"); !ok)
    return tl::unexpected(ok.error());

  const std::filesystem::path file = pipeline_cache_file(device.info());
  const std::vector<uint8_t> stored = file.empty() ? std::vector<uint8_t>{} : load_pipeline_cache(file);
  VkPipelineCacheCreateInfo cache_info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, nullptr, 0, stored.size(), stored.data()};
  VkPipelineCache cache = VK_NULL_HANDLE;
  if (auto ok = vk_check(vk.vkCreatePipelineCache(device.handle(), &cache_info, nullptr, &cache), "vkCreatePipelineCache", device.info().name); !ok)
    return tl::unexpected(ok.error());
  const struct {
    VkPipeline* pipeline;
    VkPipelineLayout layout;
    const uint32_t* code;
    size_t bytes;
    const char* name;
    bool counts, scattered;
  } wanted[] = {{&self->march, self->frame_layout, k_march_spirv, sizeof k_march_spirv, "march", false, false},
                {&self->march_counted, self->frame_layout, k_march_spirv, sizeof k_march_spirv, "march, counted", true, false},
                {&self->shadow, self->frame_layout, k_shadow_spirv, sizeof k_shadow_spirv, "shadow", false, true},
                {&self->ambient, self->frame_layout, k_ambient_spirv, sizeof k_ambient_spirv, "ambient", false, true},
                {&self->behind, self->frame_layout, k_behind_spirv, sizeof k_behind_spirv, "behind", false, false},
                {&self->shade, self->frame_layout, k_shade_spirv, sizeof k_shade_spirv, "shade", false, false},
                {&self->trace, self->list_layout, k_trace_spirv, sizeof k_trace_spirv, "trace", true, true},
                {&self->find, self->list_layout, k_find_spirv, sizeof k_find_spirv, "find", false, false}};
  Result<void> outcome;
  for (const auto& w : wanted) {
    auto made = make_pipeline(device, cache, w.layout, w.code, w.bytes, w.name, w.counts, w.scattered);
    if (!made) {
      outcome = tl::unexpected(made.error());
      break;
    }
    *w.pipeline = *made;
  }
  size_t size = 0;
  if (outcome && !file.empty() && vk.vkGetPipelineCacheData(device.handle(), cache, &size, nullptr) == VK_SUCCESS && size) {
    std::vector<uint8_t> data(size);
    if (vk.vkGetPipelineCacheData(device.handle(), cache, &size, data.data()) == VK_SUCCESS) {
      data.resize(size);
      if (data != stored) store_pipeline_cache(file, data);
    }
  }
  vk.vkDestroyPipelineCache(device.handle(), cache, nullptr);
  if (!outcome) return tl::unexpected(outcome.error());
  return self;
}

Pipelines::~Pipelines() {
  const VulkanFunctions& vk = device->vk();
  for (VkPipeline pipeline : {march, march_counted, shadow, ambient, behind, shade, trace, find})
    if (pipeline) vk.vkDestroyPipeline(device->handle(), pipeline, nullptr);
  for (VkPipelineLayout layout : {frame_layout, list_layout})
    if (layout) vk.vkDestroyPipelineLayout(device->handle(), layout, nullptr);
  if (target_layout) vk.vkDestroyDescriptorSetLayout(device->handle(), target_layout, nullptr);
}

}  // namespace quarry::engine
