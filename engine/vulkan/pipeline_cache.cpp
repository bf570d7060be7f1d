// SPDX-License-Identifier: Apache-2.0
// pipeline_cache.cpp - makes pipelines and keeps the cache file. The file has a checksum and is named after the driver.
// It is written under a temporary name and renamed. An unreadable file counts as no cache.
#include "engine/vulkan/pipeline_cache.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "engine/vulkan/loader.hpp"
#include "shaders/shared/constant_ids.h"

namespace quarry::engine {
namespace {

constexpr char kMagic[8] = {'Q', 'R', 'Y', 'P', 'I', 'P', 'E', '1'};

uint64_t checksum(const uint8_t* data, size_t size) {  // FNV-1a: it detects truncation and stray bytes, not malice
  uint64_t h = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < size; ++i) h = (h ^ data[i]) * 0x100000001b3ull;
  return h;
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
  std::snprintf(driver, sizeof driver, "-%016llx",
                static_cast<unsigned long long>(
                    checksum(reinterpret_cast<const uint8_t*>(info.driver.data()), info.driver.size())));
  return base / "quarry" / (name + driver + ".pipelines");
}

std::vector<uint8_t> load_pipeline_cache(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  char magic[8];
  uint64_t size = 0, sum = 0;
  if (!in.read(magic, 8) || std::memcmp(magic, kMagic, 8) != 0 || !in.read(reinterpret_cast<char*>(&size), 8) ||
      !in.read(reinterpret_cast<char*>(&sum), 8) || size > (64u << 20))
    return {};
  std::vector<uint8_t> data(size);
  if (!in.read(reinterpret_cast<char*>(data.data()), std::streamsize(size)) ||
      checksum(data.data(), data.size()) != sum)
    return {};
  return data;
}

void store_pipeline_cache(const std::filesystem::path& file, const std::vector<uint8_t>& data) {
  std::error_code failed;  // a cache that cannot be written only costs time at the next start
  std::filesystem::create_directories(file.parent_path(), failed);
  if (failed) return;
  std::filesystem::path part = file;
  part +=
      "." + std::to_string(getpid()) + "-" + std::to_string(std::hash<std::thread::id>()(std::this_thread::get_id()));
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

Result<std::unique_ptr<PipelineCache>> PipelineCache::open(Device& device) {
  std::unique_ptr<PipelineCache> self(new PipelineCache(device));
  self->file_ = pipeline_cache_file(device.info());
  if (!self->file_.empty()) self->stored_ = load_pipeline_cache(self->file_);
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, nullptr, 0, self->stored_.size(),
                                 self->stored_.data()};
  QRY_TRY(vk_check(device.vk().vkCreatePipelineCache(device.handle(), &info, nullptr, &self->cache_),
                   "vkCreatePipelineCache", device.info().name));
  return self;
}

PipelineCache::~PipelineCache() {
  if (cache_) device_->vk().vkDestroyPipelineCache(device_->handle(), cache_, nullptr);
}

Result<VkPipeline> PipelineCache::make(VkPipelineLayout layout, const uint32_t* code, size_t bytes, const char* name,
                                       const Constants& constants) {
  Device& device = *device_;
  const VulkanFunctions& vk = device.vk();
  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0, bytes, code};
  VkShaderModule module = VK_NULL_HANDLE;
  QRY_TRY(
      vk_check(vk.vkCreateShaderModule(device.handle(), &module_info, nullptr, &module), "vkCreateShaderModule", name));
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  // The caller's constants, and those of traverse.glsl, beam.glsl and dispatch_pixel.glsl that depend on the device.
  const bool software = device.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const struct {
    uint32_t id, value;
  } given[] = {{QRY_ID_COUNT, constants.counts},
               {QRY_ID_INSIDE, constants.inside},
               {QRY_ID_FUSED, !software},
               {QRY_ID_SKIPS_MATERIAL, constants.skips_material},
               {QRY_ID_BEAM_LANES, device.info().beam_lanes},
               {QRY_ID_ONE_DIRECTION, constants.one_direction},
               {QRY_ID_STRIDED, software},
               {QRY_ID_BY_COLUMNS, constants.by_columns},
               {QRY_ID_ROWS, constants.rows},
               {QRY_ID_TILED, constants.tiled},
               {QRY_ID_SCAN_GROUP, constants.scan_group},
               {QRY_ID_SCAN_SPINS, constants.scan_spins},
               {QRY_ID_SCAN_STRIPED, constants.scan_striped},
               {QRY_ID_SCAN_TRIAL, constants.scan_trial},
               {QRY_ID_SCAN_QUADS, constants.scan_quads}};
  constexpr uint32_t kGiven = std::size(given);
  uint32_t values[kGiven];
  VkSpecializationMapEntry entries[kGiven];
  for (uint32_t i = 0; i < kGiven; ++i) {
    values[i] = given[i].value;
    entries[i] = {given[i].id, i * 4, 4};
  }
  const VkSpecializationInfo specialization{kGiven, entries, sizeof values, values};
  info.stage.pSpecializationInfo = &specialization;
  info.layout = layout;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vk.vkCreateComputePipelines(device.handle(), cache_, 1, &info, nullptr, &pipeline);
  vk.vkDestroyShaderModule(device.handle(), module, nullptr);
  QRY_TRY(vk_check(result, "vkCreateComputePipelines", name));
  device.set_name(VK_OBJECT_TYPE_PIPELINE, reinterpret_cast<uint64_t>(pipeline), name);
  return pipeline;
}

void PipelineCache::store() {
  const VulkanFunctions& vk = device_->vk();
  size_t size = 0;
  if (file_.empty() || vk.vkGetPipelineCacheData(device_->handle(), cache_, &size, nullptr) != VK_SUCCESS || !size)
    return;
  std::vector<uint8_t> data(size);
  if (vk.vkGetPipelineCacheData(device_->handle(), cache_, &size, data.data()) != VK_SUCCESS) return;
  data.resize(size);
  if (data == stored_) return;
  store_pipeline_cache(file_, data);
  stored_ = std::move(data);
}

}  // namespace quarry::engine
