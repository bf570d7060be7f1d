// SPDX-License-Identifier: Apache-2.0
// residency.cpp - the masks that the host writes for shaders, and the bits that shaders set for the host.
#include "engine/sharing/residency.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "shaders/shared/residency.h"
#include "voxel/bricks/occupancy.hpp"

namespace quarry::engine {

static_assert(sizeof(QryResidency) == 40 && offsetof(QryResidency, reached) == 32,
              "the residency's layout in C++ is not GLSL's scalar layout");
static_assert(kQryPages == kLevel3Nodes * 64 && kQryPages == kLevel2Nodes);

namespace {
constexpr size_t kReachedBytes = kQryPages / 8, kAbsentBytes = kLevel3Nodes * sizeof(uint64_t);

// Which number each page of the grid has; 0: none.
void write_numbers(const CoarseLevel& coarse, DeviceMemory& memory) {
  auto* const numbers = static_cast<uint32_t*>(memory.mapped());
  std::memset(numbers, 0, kQryPages * sizeof(uint32_t));
  coarse.each_page([&](uint32_t page) { numbers[page] = coarse.number(page); });
}
}  // namespace

uint32_t page_of(Int3 brick) {
  const PyramidPlace place = pyramid_place(brick);
  return place.level3 << 6 | place.level3_bit;
}

Box3 voxels_of_page(uint32_t page) {
  const uint32_t node = page >> 6;
  const auto along = [&](uint32_t of_node, uint32_t of_bit, int32_t lowest) {
    return lowest + int32_t(of_node << 9 | (page >> of_bit & 3u) << 7);
  };
  const Int3 low{along(node & 31u, 0, kWorldMin.x), along(node >> 5 & 15u, 2, kWorldMin.y),
                 along(node >> 9, 4, kWorldMin.z)};
  return {low, low + Int3{127, 127, 127}};
}

Result<std::unique_ptr<Residency>> Residency::create(Device& device, const Box3& bounds, CoarseLevel& coarse) {
  std::unique_ptr<Residency> self(new Residency(device, bounds, coarse));
  self->absent_.assign(kLevel3Nodes, 0);
  QRY_TRY(ensure_memory(device, self->numbers_, BufferMemory::device_mapped, kQryPages * sizeof(uint32_t),
                        "quarry numbers of pages"));
  QRY_TRY(ensure_memory(device, self->reached_, BufferMemory::device, kReachedBytes, "quarry reached pages"));
  coarse.follow();
  write_numbers(coarse, *self->numbers_);
  QRY_TRY(self->update(0, 0));
  return self;
}

void Residency::set_absent(uint32_t page, bool absent) {
  uint64_t& mask = absent_[page >> 6];
  const uint64_t bit = uint64_t(1) << (page & 63u), before = mask;
  mask = absent ? mask | bit : mask & ~bit;
  changed_ |= mask != before;
}

void Residency::begin_anew() {
  ++part_;
  changed_ = true;
}

// Writes what has changed of an array; all of it, into a larger one, where it has outgrown its memory.
template <class Record>
Result<void> Residency::follow(std::unique_ptr<DeviceMemory>& memory, const std::vector<Record>& records,
                               std::span<const uint32_t> changed, uint64_t submitted, const char* label) {
  const size_t bytes = records.size() * sizeof(Record);
  if (!memory || memory->size_bytes() < bytes) {
    QRY_TRY_ASSIGN(auto larger, DeviceMemory::create(*device_, BufferMemory::device_mapped, bytes + bytes / 2, label));
    std::memcpy(larger->mapped(), records.data(), bytes);
    if (memory) old_.push_back({std::move(memory), submitted});
    memory = std::move(larger);
    return {};
  }
  for (const uint32_t i : changed) static_cast<Record*>(memory->mapped())[i] = records[i];
  return {};
}

Result<void> Residency::update(uint64_t submitted, uint64_t completed) {
  std::erase_if(old_, [&](const Kept& one) { return one.last_frame <= completed; });
  const CoarseLevel::Changes changes = coarse_->take_changes();
  std::vector<uint32_t> pages;
  pages.reserve(changes.pages.size());
  for (const uint32_t page : changes.pages) pages.push_back(coarse_->number(page));
  QRY_TRY(follow(cells_, coarse_->cells(), changes.cells, submitted, "quarry coarse cells"));
  QRY_TRY(follow(pages_, coarse_->pages(), pages, submitted, "quarry coarse pages"));
  // A frame that is not done and in which the page is absent may see it as it will be; all that it can read is kept.
  // Not so in another part of the world.
  if (shown_part_ != part_) {
    QRY_TRY_ASSIGN(auto fresh, DeviceMemory::create(*device_, BufferMemory::device_mapped, numbers_->size_bytes(),
                                                    "quarry numbers of pages"));
    write_numbers(*coarse_, *fresh);
    old_.push_back({std::exchange(numbers_, std::move(fresh)), submitted});
    shown_part_ = part_;
  }
  for (const uint32_t page : changes.pages) static_cast<uint32_t*>(numbers_->mapped())[page] = coarse_->number(page);
  coarse_->set_frames(submitted, completed);
  if (!changed_) return {};
  if (shown_ < masks_.size()) masks_[shown_].last_frame = submitted;
  size_t next = 0;
  while (next < masks_.size() && masks_[next].last_frame > completed) ++next;
  if (next == masks_.size()) {
    QRY_TRY_ASSIGN(auto memory,
                   DeviceMemory::create(*device_, BufferMemory::device_mapped, kAbsentBytes, "quarry absent pages"));
    masks_.push_back({std::move(memory)});
  }
  std::memcpy(masks_[next].memory->mapped(), absent_.data(), kAbsentBytes);
  shown_ = next;
  changed_ = false;
  return {};
}

void Residency::begin(VkCommandBuffer commands) {
  const VulkanFunctions& vk = device_->vk();
  // The frame before may still be told of its pages.
  const auto barrier = [&](VkAccessFlags before, VkAccessFlags after, VkPipelineStageFlags first,
                           VkPipelineStageFlags second) {
    const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, before, after};
    vk.vkCmdPipelineBarrier(commands, first, second, 0, 1, &memory, 0, nullptr, 0, nullptr);
  };
  barrier(VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
          VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT);
  vk.vkCmdFillBuffer(commands, reached_->buffer(), 0, kReachedBytes, 0);
  barrier(VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
          VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
}

Result<void> Residency::end(VkCommandBuffer commands, uint64_t frame, const Eye& eye) {
  auto told = std::ranges::find_if(told_, [](const Told& one) { return !one.waits; });
  if (told == told_.end()) {
    QRY_TRY_ASSIGN(auto memory, DeviceMemory::create(*device_, BufferMemory::host_readback, kReachedBytes,
                                                     "quarry reached pages, told"));
    told_.push_back({std::move(memory)});
    told = std::prev(told_.end());
  }
  const VulkanFunctions& vk = device_->vk();
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                          VK_ACCESS_TRANSFER_READ_BIT};
  vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1,
                          &barrier, 0, nullptr, 0, nullptr);
  const VkBufferCopy copy{0, 0, kReachedBytes};
  vk.vkCmdCopyBuffer(commands, reached_->buffer(), told->memory->buffer(), 1, &copy);
  host_read_barrier(vk, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
  told->frame = frame;
  told->eye = eye;
  told->part = shown_part_;
  told->waits = true;
  return {};
}

Residency::Reached Residency::reached(uint64_t completed) {
  Reached reached;
  std::vector<uint32_t> all(kQryPages / 32);
  for (Told& told : told_) {
    if (!told.waits || told.frame > completed) continue;
    told.waits = false;
    if (told.part != part_) continue;
    const auto* const words = static_cast<const uint32_t*>(told.memory->mapped());
    for (size_t i = 0; i < all.size(); ++i) all[i] |= words[i];
    if (!std::ranges::count(reached.eyes, told.eye)) reached.eyes.push_back(told.eye);
  }
  for (uint32_t i = 0; i < kQryPages / 32; ++i)
    for (uint32_t word = all[i]; word; word &= word - 1)
      reached.pages.push_back(i * 32 + uint32_t(std::countr_zero(word)));
  return reached;
}

QryResidency Residency::root() const {
  return {masks_[shown_].memory->address(), numbers_->address(), pages_->address(), cells_->address(),
          reached_->address()};
}

}  // namespace quarry::engine
