#include "engine/upload.hpp"

#include <algorithm>
#include <cstring>

#include "engine/vulkan_loader.hpp"

namespace quarry::engine {

Result<std::unique_ptr<Upload>> Upload::create(Device& device) {
  std::unique_ptr<Upload> self(new Upload(device));
  auto timeline = Timeline::create(device, "quarry upload");
  if (!timeline) return tl::unexpected(timeline.error());
  self->timeline_ = std::move(*timeline);
  return self;
}

Upload::~Upload() {
  if (timeline_ && timeline_->last()) (void)timeline_->wait(timeline_->last());
  for (auto& batch : batches_) device_->vk().vkDestroyCommandPool(device_->handle(), batch->pool, nullptr);
}

Result<Upload::Batch*> Upload::free_batch(uint64_t size_bytes) {
  auto reached = timeline_->reached();
  if (!reached) return tl::unexpected(reached.error());
  // The smallest that is large enough, else the largest. What one large update needed is given back once a smaller one follows.
  constexpr uint64_t kKeptBytes = 32u << 20;
  const auto room = [](const Batch& b) { return b.memory ? b.memory->size_bytes() : uint64_t(0); };
  Batch* batch = nullptr;
  for (auto& candidate : batches_) {
    if (candidate->value > *reached) continue;
    if (room(*candidate) > std::max(kKeptBytes, size_bytes)) candidate->memory.reset();
    if (!batch || (room(*batch) < size_bytes ? room(*candidate) > room(*batch) : room(*candidate) >= size_bytes && room(*candidate) < room(*batch)))
      batch = candidate.get();
  }
  const VulkanFunctions& vk = device_->vk();
  if (!batch) {
    auto fresh = std::make_unique<Batch>();
    VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT, device_->queue_family()};
    if (auto ok = vk_check(vk.vkCreateCommandPool(device_->handle(), &pool_info, nullptr, &fresh->pool), "vkCreateCommandPool", "uploads"); !ok)
      return tl::unexpected(ok.error());
    batches_.push_back(std::move(fresh));
    batch = batches_.back().get();
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, batch->pool, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    if (auto ok = vk_check(vk.vkAllocateCommandBuffers(device_->handle(), &info, &batch->commands), "vkAllocateCommandBuffers", "uploads"); !ok)
      return tl::unexpected(ok.error());
  }
  if (!batch->memory || batch->memory->size_bytes() < size_bytes) {
    auto memory = DeviceMemory::create(*device_, BufferHome::host_upload, std::max<uint64_t>(size_bytes, 1u << 16), "quarry upload");
    if (!memory) return tl::unexpected(memory.error());
    batch->memory = std::move(*memory);
  }
  return batch;
}

Result<Device::TimelinePoint> Upload::submit(const std::vector<Copy>& copies) {
  uint64_t total = 0;
  for (const Copy& c : copies) total += c.size_bytes;
  if (!total) return timeline_->point();
  auto batch = free_batch(total);
  if (!batch) return tl::unexpected(batch.error());
  Batch& b = **batch;
  const VulkanFunctions& vk = device_->vk();
  if (auto ok = vk_check(vk.vkResetCommandPool(device_->handle(), b.pool, 0), "vkResetCommandPool", "uploads"); !ok) return tl::unexpected(ok.error());
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
  if (auto ok = vk_check(vk.vkBeginCommandBuffer(b.commands, &begin), "vkBeginCommandBuffer", "uploads"); !ok) return tl::unexpected(ok.error());
  // Frames submitted before may still read what is about to be written, and earlier copies may write the same bytes.
  VkMemoryBarrier before{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_TRANSFER_WRITE_BIT};
  vk.vkCmdPipelineBarrier(b.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &before, 0,
                          nullptr, 0, nullptr);
  uint64_t at = 0;
  std::vector<VkBufferCopy> regions;
  for (size_t i = 0; i < copies.size(); ++i) {
    std::memcpy(static_cast<char*>(b.memory->mapped()) + at, copies[i].from, copies[i].size_bytes);
    regions.push_back({at, copies[i].offset_bytes, copies[i].size_bytes});
    at += copies[i].size_bytes;
    if (i + 1 == copies.size() || copies[i + 1].to != copies[i].to) {
      vk.vkCmdCopyBuffer(b.commands, b.memory->buffer(), copies[i].to, uint32_t(regions.size()), regions.data());
      regions.clear();
    }
  }
  VkMemoryBarrier after{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT};
  vk.vkCmdPipelineBarrier(b.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &after, 0, nullptr, 0, nullptr);
  if (auto ok = vk_check(vk.vkEndCommandBuffer(b.commands), "vkEndCommandBuffer", "uploads"); !ok) return tl::unexpected(ok.error());
  b.value = timeline_->last() + 1;
  if (auto ok = device_->submit(b.commands, {}, {{timeline_->handle(), b.value}}); !ok) return tl::unexpected(ok.error());
  timeline_->next();
  return timeline_->point();
}

}  // namespace quarry::engine
