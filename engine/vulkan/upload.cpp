// SPDX-License-Identifier: Apache-2.0
// upload.cpp - the staging buffers and the barriers around the copies. A staging buffer is used again when the timeline
// has passed it.
#include "engine/vulkan/upload.hpp"

#include <algorithm>
#include <cstring>

#include "engine/vulkan/loader.hpp"

namespace quarry::engine {

Result<std::unique_ptr<Upload>> Upload::create(Device& device) {
  std::unique_ptr<Upload> self(new Upload(device));
  QRY_TRY_ASSIGN(auto timeline, Timeline::create(device, "quarry upload"));
  self->timeline_ = std::move(timeline);
  return self;
}

Upload::~Upload() {
  if (timeline_ && timeline_->last()) (void)timeline_->wait(timeline_->last());
}

Result<Upload::Batch*> Upload::free_batch(uint64_t size_bytes) {
  QRY_TRY_ASSIGN(auto reached, timeline_->reached());
  // Picks the smallest free batch that is large enough, else the largest. The memory of a large update is freed when a
  // smaller one follows.
  constexpr uint64_t kKeptBytes = 32u << 20;
  const auto room = [](const Batch& b) { return b.memory ? b.memory->size_bytes() : uint64_t(0); };
  Batch* batch = nullptr;
  for (auto& candidate : batches_) {
    if (candidate->value > reached) continue;
    if (room(*candidate) > std::max(kKeptBytes, size_bytes)) candidate->memory.reset();
    if (!batch || (room(*batch) < size_bytes ? room(*candidate) > room(*batch)
                                             : room(*candidate) >= size_bytes && room(*candidate) < room(*batch)))
      batch = candidate.get();
  }
  if (!batch) {
    auto fresh = std::make_unique<Batch>();
    QRY_TRY_ASSIGN(auto commands, Commands::create(*device_, "uploads"));
    fresh->commands = std::move(commands);
    batches_.push_back(std::move(fresh));
    batch = batches_.back().get();
  }
  if (!batch->memory || batch->memory->size_bytes() < size_bytes) {
    QRY_TRY_ASSIGN(auto memory, DeviceMemory::create(*device_, BufferMemory::host_upload,
                                                     std::max<uint64_t>(size_bytes, 1u << 16), "quarry upload"));
    batch->memory = std::move(memory);
  }
  return batch;
}

Result<Device::TimelinePoint> Upload::submit(const std::vector<Copy>& copies) {
  uint64_t total = 0;
  for (const Copy& c : copies) total += c.size_bytes;
  if (!total) return timeline_->point();
  QRY_TRY_ASSIGN(auto batch, free_batch(total));
  Batch& b = *batch;
  const VulkanFunctions& vk = device_->vk();
  QRY_TRY_ASSIGN(auto begun, b.commands->begin());
  const VkCommandBuffer commands = begun;
  // Earlier frames may still read the bytes that these copies write, and earlier copies may still write them.
  VkMemoryBarrier before{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                         VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_TRANSFER_WRITE_BIT};
  vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &before, 0, nullptr, 0, nullptr);
  uint64_t at = 0;
  std::vector<VkBufferCopy> regions;
  for (size_t i = 0; i < copies.size(); ++i) {
    std::memcpy(static_cast<char*>(b.memory->mapped()) + at, copies[i].from, copies[i].size_bytes);
    regions.push_back({at, copies[i].offset_bytes, copies[i].size_bytes});
    at += copies[i].size_bytes;
    if (i + 1 == copies.size() || copies[i + 1].to != copies[i].to) {
      vk.vkCmdCopyBuffer(commands, b.memory->buffer(), copies[i].to, uint32_t(regions.size()), regions.data());
      regions.clear();
    }
  }
  VkMemoryBarrier after{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                        VK_ACCESS_SHADER_READ_BIT};
  vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &after,
                          0, nullptr, 0, nullptr);
  QRY_TRY(b.commands->end());
  b.value = timeline_->last() + 1;
  QRY_TRY(device_->submit(commands, {}, {{timeline_->handle(), b.value}}));
  timeline_->next();
  return timeline_->point();
}

}  // namespace quarry::engine
