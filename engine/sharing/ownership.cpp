// SPDX-License-Identifier: Apache-2.0
// ownership.cpp - records and submits the queue family ownership transfers from VK_QUEUE_FAMILY_EXTERNAL.
#include "engine/sharing/ownership.hpp"

#include "engine/vulkan/functions.hpp"
#include "engine/vulkan/loader.hpp"

namespace quarry::engine {

Result<std::unique_ptr<OwnershipTransfer>> OwnershipTransfer::create(Device& device) {
  std::unique_ptr<OwnershipTransfer> self(new OwnershipTransfer(device));
  QRY_TRY_ASSIGN(self->done_, Timeline::create(device, "quarry hand-over"));
  return self;
}

OwnershipTransfer::~OwnershipTransfer() {
  if (done_ && done_->last()) (void)done_->wait(done_->last());
}

Result<OwnershipTransfer::Batch*> OwnershipTransfer::free_batch() {
  QRY_TRY_ASSIGN(auto reached, done_->reached());
  Batch* free = nullptr;
  for (auto& batch : batches_) {
    if (batch->value > reached) continue;
    batch->memory.clear();
    free = batch.get();
  }
  if (free) return free;
  QRY_TRY_ASSIGN(auto commands, Commands::create(*device_, "hand-over"));
  batches_.push_back(std::make_unique<Batch>(Batch{std::move(commands)}));
  return batches_.back().get();
}

Result<Device::TimelinePoint> OwnershipTransfer::acquire(std::vector<std::shared_ptr<const DeviceMemory>> memory) {
  // Shared buffers are read by compute passes and by copies.
  constexpr VkPipelineStageFlags kReaders = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
  std::vector<VkBufferMemoryBarrier> barriers;
  barriers.reserve(memory.size());
  for (const auto& block : memory)
    barriers.push_back({VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER, nullptr, 0, kReads, VK_QUEUE_FAMILY_EXTERNAL,
                        device_->queue_family(), block->buffer(), 0, VK_WHOLE_SIZE});
  Batch* batch = nullptr;
  if (!barriers.empty()) {
    QRY_TRY_ASSIGN(batch, free_batch());
    QRY_TRY_ASSIGN(const VkCommandBuffer begun, batch->commands->begin());
    device_->vk().vkCmdPipelineBarrier(begun, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, kReaders, 0, 0, nullptr,
                                       uint32_t(barriers.size()), barriers.data(), 0, nullptr);
    QRY_TRY(batch->commands->end());
  }
  const uint64_t value = done_->last() + 1;
  QRY_TRY(device_->submit(batch ? batch->commands->handle() : VK_NULL_HANDLE, {}, {{done_->handle(), value}}));
  if (batch) {
    batch->value = value;
    batch->memory = std::move(memory);
  }
  done_->next();
  return done_->point();
}

}  // namespace quarry::engine
