// SPDX-License-Identifier: Apache-2.0
// ownership.cpp - records and submits the queue family ownership transfers to VK_QUEUE_FAMILY_EXTERNAL and back.
#include "engine/sharing/ownership.hpp"

#include "engine/vulkan/functions.hpp"
#include "engine/vulkan/loader.hpp"

namespace quarry::engine {
namespace {

// Shared buffers are read by compute passes and by copies.
constexpr VkPipelineStageFlags kReaders = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

std::vector<VkBufferMemoryBarrier> barriers_for(std::span<const VkBuffer> buffers, uint32_t from, uint32_t to,
                                                VkAccessFlags before, VkAccessFlags after) {
  std::vector<VkBufferMemoryBarrier> barriers;
  for (VkBuffer buffer : buffers)
    barriers.push_back(
        {VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER, nullptr, before, after, from, to, buffer, 0, VK_WHOLE_SIZE});
  return barriers;
}

}  // namespace

Result<std::unique_ptr<OwnershipTransfer>> OwnershipTransfer::create(Device& device) {
  std::unique_ptr<OwnershipTransfer> self(new OwnershipTransfer(device));
  QRY_TRY_ASSIGN(auto to_cuda, Timeline::create(device, "quarry queue, to CUDA", true));
  self->to_cuda_ = std::move(to_cuda);
  QRY_TRY_ASSIGN(auto done, Timeline::create(device, "quarry hand-over"));
  self->done_ = std::move(done);
  return self;
}

OwnershipTransfer::~OwnershipTransfer() {
  if (done_ && done_->last()) (void)done_->wait(done_->last());
}

Result<OwnershipTransfer::Batch*> OwnershipTransfer::free_batch() {
  QRY_TRY_ASSIGN(auto reached, done_->reached());
  for (auto& batch : batches_)
    if (batch->value <= reached) return batch.get();
  QRY_TRY_ASSIGN(auto commands, Commands::create(*device_, "hand-over"));
  batches_.push_back(std::make_unique<Batch>(Batch{std::move(commands)}));
  return batches_.back().get();
}

Result<void> OwnershipTransfer::submit(const std::vector<VkBufferMemoryBarrier>& barriers, VkPipelineStageFlags from,
                                       VkPipelineStageFlags to, Device::TimelinePoint wait,
                                       std::vector<Device::TimelinePoint> signal) {
  Batch* batch = nullptr;
  if (!barriers.empty()) {
    QRY_TRY_ASSIGN(auto free, free_batch());
    batch = free;
    QRY_TRY_ASSIGN(auto begun, batch->commands->begin());
    device_->vk().vkCmdPipelineBarrier(begun, from, to, 0, 0, nullptr, uint32_t(barriers.size()), barriers.data(), 0,
                                       nullptr);
    QRY_TRY(batch->commands->end());
  }
  const uint64_t value = done_->last() + 1;
  signal.push_back({done_->handle(), value});
  QRY_TRY(device_->submit(batch ? batch->commands->handle() : VK_NULL_HANDLE, {wait}, signal));
  if (batch) batch->value = value;
  done_->next();
  return {};
}

Result<uint64_t> OwnershipTransfer::release(std::span<const VkBuffer> buffers) {
  // The queue wrote nothing, so there is nothing to make available. The barrier only orders the earlier reads.
  const uint64_t value = to_cuda_->last() + 1;
  QRY_TRY(submit(barriers_for(buffers, device_->queue_family(), VK_QUEUE_FAMILY_EXTERNAL, 0, 0), kReaders,
                 VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, {VK_NULL_HANDLE, 0}, {{to_cuda_->handle(), value}}));
  return to_cuda_->next();
}

Result<Device::TimelinePoint> OwnershipTransfer::acquire(std::span<const VkBuffer> buffers,
                                                         Device::TimelinePoint written) {
  // The first stages are those at which submit() waits for `written`, so that the barrier comes after that wait.
  QRY_TRY(submit(barriers_for(buffers, VK_QUEUE_FAMILY_EXTERNAL, device_->queue_family(), 0, kReads),
                 VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, kReaders, written, {}));
  return done_->point();
}

}  // namespace quarry::engine
