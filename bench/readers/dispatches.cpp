// SPDX-License-Identifier: Apache-2.0
// dispatches.cpp - pipelines, timestamps, copies to the host.
#include "bench/readers/dispatches.hpp"

#include <algorithm>

#include "engine/vulkan/functions.hpp"
#include "engine/vulkan/loader.hpp"

namespace quarry::bench {

using engine::vk_check;

Result<std::unique_ptr<Dispatches>> Dispatches::create(engine::Device& device) {
  std::unique_ptr<Dispatches> self(new Dispatches(device));
  const engine::VulkanFunctions& vk = device.vk();
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  const VkPipelineLayoutCreateInfo layout{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 0, nullptr, 1, &range};
  QRY_TRY(vk_check(vk.vkCreatePipelineLayout(device.handle(), &layout, nullptr, &self->layout_),
                   "vkCreatePipelineLayout", "benchmark"));
  const VkQueryPoolCreateInfo queries{
      VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, 2, 0};
  QRY_TRY(vk_check(vk.vkCreateQueryPool(device.handle(), &queries, nullptr, &self->queries_), "vkCreateQueryPool",
                   "timestamps"));
  QRY_TRY_ASSIGN(self->commands_, engine::Commands::create(device, "quarry bench"));
  QRY_TRY_ASSIGN(self->timeline_, engine::Timeline::create(device, "quarry bench"));
  VkPhysicalDeviceProperties properties{};
  vk.vkGetPhysicalDeviceProperties(device.physical_device(), &properties);
  self->tick_us_ = double(properties.limits.timestampPeriod) * 1e-3;
  return self;
}

Dispatches::~Dispatches() {
  const engine::VulkanFunctions& vk = device_->vk();
  if (timeline_ && timeline_->last()) (void)timeline_->wait(timeline_->last());
  for (const VkPipeline pipeline : pipelines_) vk.vkDestroyPipeline(device_->handle(), pipeline, nullptr);
  if (layout_) vk.vkDestroyPipelineLayout(device_->handle(), layout_, nullptr);
  if (queries_) vk.vkDestroyQueryPool(device_->handle(), queries_, nullptr);
}

Result<VkPipeline> Dispatches::make(const char* name, std::span<const uint32_t> code, Constants constants) {
  const engine::VulkanFunctions& vk = device_->vk();
  std::vector<VkSpecializationMapEntry> entries;
  std::vector<uint32_t> values;
  for (const auto& [id, value] : constants) {
    entries.push_back({id, uint32_t(values.size() * 4), 4});
    values.push_back(value);
  }
  const VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0, code.size_bytes(),
                                             code.data()};
  VkShaderModule module = VK_NULL_HANDLE;
  QRY_TRY(vk_check(vk.vkCreateShaderModule(device_->handle(), &module_info, nullptr, &module), "vkCreateShaderModule",
                   name));
  const VkSpecializationInfo specialization{uint32_t(entries.size()), entries.data(), values.size() * 4, values.data()};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                nullptr,
                0,
                VK_SHADER_STAGE_COMPUTE_BIT,
                module,
                "main",
                &specialization};
  info.layout = layout_;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vk.vkCreateComputePipelines(device_->handle(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  vk.vkDestroyShaderModule(device_->handle(), module, nullptr);
  QRY_TRY(vk_check(result, "vkCreateComputePipelines", name));
  pipelines_.push_back(pipeline);
  return pipeline;
}

Result<void> Dispatches::submit_and_wait(engine::Device::TimelinePoint ready) {
  QRY_TRY(commands_->end());
  QRY_TRY(device_->submit(commands_->handle(), {ready}, {{timeline_->handle(), timeline_->next()}}));
  return timeline_->wait(timeline_->last());
}

Result<double> Dispatches::microseconds(VkPipeline pipeline, std::span<const std::byte> push, Groups groups,
                                        engine::Device::TimelinePoint ready) {
  const engine::VulkanFunctions& vk = device_->vk();
  QRY_TRY_ASSIGN(const VkCommandBuffer begun, commands_->begin());
  vk.vkCmdResetQueryPool(begun, queries_, 0, 2);
  vk.vkCmdPushConstants(begun, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, uint32_t(push.size()), push.data());
  vk.vkCmdBindPipeline(begun, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  vk.vkCmdWriteTimestamp(begun, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 0);
  vk.vkCmdDispatch(begun, groups.x, groups.y, 1);
  vk.vkCmdWriteTimestamp(begun, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 1);
  QRY_TRY(submit_and_wait(ready));
  uint64_t ticks[2];
  QRY_TRY(vk_check(vk.vkGetQueryPoolResults(device_->handle(), queries_, 0, 2, sizeof ticks, ticks, 8,
                                            VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
                   "vkGetQueryPoolResults", "timestamps"));
  return double(ticks[1] - ticks[0]) * tick_us_;
}

Result<const void*> Dispatches::read(const engine::DeviceMemory& from, size_t size_bytes) {
  const engine::VulkanFunctions& vk = device_->vk();
  QRY_TRY(engine::ensure_memory(*device_, visible_, engine::BufferMemory::host_readback, size_bytes, "quarry bench"));
  QRY_TRY_ASSIGN(const VkCommandBuffer begun, commands_->begin());
  const VkMemoryBarrier written{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                                VK_ACCESS_TRANSFER_READ_BIT};
  vk.vkCmdPipelineBarrier(begun, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &written,
                          0, nullptr, 0, nullptr);
  const VkBufferCopy copy{0, 0, size_bytes};
  vk.vkCmdCopyBuffer(begun, from.buffer(), visible_->buffer(), 1, &copy);
  engine::host_read_barrier(vk, begun, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
  QRY_TRY(submit_and_wait({VK_NULL_HANDLE, 0}));
  return static_cast<const void*>(visible_->mapped());
}

Result<void> Dispatches::clear(const engine::DeviceMemory& memory) {
  const engine::VulkanFunctions& vk = device_->vk();
  QRY_TRY_ASSIGN(const VkCommandBuffer begun, commands_->begin());
  vk.vkCmdFillBuffer(begun, memory.buffer(), 0, VK_WHOLE_SIZE, 0);
  const VkMemoryBarrier cleared{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                                VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
  vk.vkCmdPipelineBarrier(begun, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &cleared,
                          0, nullptr, 0, nullptr);
  return submit_and_wait({VK_NULL_HANDLE, 0});
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ptrdiff_t(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace quarry::bench
