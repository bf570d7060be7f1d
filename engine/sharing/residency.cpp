// SPDX-License-Identifier: Apache-2.0
// residency.cpp - the masks that the host writes for shaders, and the bits that shaders set for the host.
#include "engine/sharing/residency.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "shaders/shared/residency.h"
#include "voxel/bricks/occupancy.hpp"

namespace quarry::engine {

static_assert(sizeof(QryResidency) == 24 && offsetof(QryResidency, reached) == 16,
              "the residency's layout in C++ is not GLSL's scalar layout");
static_assert(kQryPages == kLevel3Nodes * 64 && kQryPages == kLevel2Nodes);

namespace {
constexpr size_t kReachedBytes = kQryPages / 8;
}

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

void add_outline(const Box3& voxels, std::unordered_map<uint32_t, uint64_t>& outlines) {
  const Box3 box = intersected(voxels, {kWorldMin, kWorldMax});
  if (box.empty()) return;
  for (int32_t z = box.min.z >> 5; z <= box.max.z >> 5; ++z)
    for (int32_t y = box.min.y >> 5; y <= box.max.y >> 5; ++y)
      for (int32_t x = box.min.x >> 5; x <= box.max.x >> 5; ++x) {
        const Int3 brick{x * 4, y * 4, z * 4};
        outlines[page_of(brick)] |= uint64_t(1) << pyramid_place(brick).level2_bit;
      }
}

Result<std::unique_ptr<Residency>> Residency::create(Device& device, const Box3& bounds,
                                                     std::span<const uint64_t> outlines) {
  std::unique_ptr<Residency> self(new Residency(device, bounds));
  self->absent_.assign(kLevel3Nodes, 0);
  QRY_TRY(ensure_memory(device, self->masks_, BufferMemory::device_mapped, kLevel3Nodes * sizeof(uint64_t),
                        "quarry absent pages"));
  for (uint32_t page = 0; page < kQryPages; ++page)
    self->absent_[page >> 6] |= uint64_t(outlines[page] != 0) << (page & 63u);
  std::ranges::copy(self->absent_, static_cast<uint64_t*>(self->masks_->mapped()));
  QRY_TRY(ensure_memory(device, self->outlines_, BufferMemory::device_mapped, kQryPages * sizeof(uint64_t),
                        "quarry outlines of pages"));
  std::ranges::copy(outlines, static_cast<uint64_t*>(self->outlines_->mapped()));
  QRY_TRY(ensure_memory(device, self->reached_, BufferMemory::device, kReachedBytes, "quarry reached pages"));
  QRY_TRY(ensure_memory(device, self->told_, BufferMemory::host_readback, kReachedBytes, "quarry reached pages, told"));
  return self;
}

void Residency::set_absent(uint32_t page, bool absent) {
  uint64_t& mask = absent_[page >> 6];
  const uint64_t bit = uint64_t(1) << (page & 63u);
  mask = absent ? mask | bit : mask & ~bit;
  static_cast<uint64_t*>(masks_->mapped())[page >> 6] = mask;
}

void Residency::set_outline(uint32_t page, uint64_t cells) {
  static_cast<uint64_t*>(outlines_->mapped())[page] = cells;
}

void Residency::begin(VkCommandBuffer commands) {
  const VulkanFunctions& vk = device_->vk();
  vk.vkCmdFillBuffer(commands, reached_->buffer(), 0, kReachedBytes, 0);
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
  vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                          &barrier, 0, nullptr, 0, nullptr);
}

void Residency::end(VkCommandBuffer commands) {
  const VulkanFunctions& vk = device_->vk();
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                          VK_ACCESS_TRANSFER_READ_BIT};
  vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1,
                          &barrier, 0, nullptr, 0, nullptr);
  const VkBufferCopy copy{0, 0, kReachedBytes};
  vk.vkCmdCopyBuffer(commands, reached_->buffer(), told_->buffer(), 1, &copy);
  host_read_barrier(vk, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
}

std::vector<uint32_t> Residency::reached() const {
  std::vector<uint32_t> pages;
  const auto* const words = static_cast<const uint32_t*>(told_->mapped());
  for (uint32_t i = 0; i < kQryPages / 32; ++i)
    for (uint32_t word = words[i]; word; word &= word - 1) pages.push_back(i * 32 + uint32_t(std::countr_zero(word)));
  return pages;
}

QryResidency Residency::root() const { return {masks_->address(), outlines_->address(), reached_->address()}; }

}  // namespace quarry::engine
