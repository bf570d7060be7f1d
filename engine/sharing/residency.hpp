// SPDX-License-Identifier: Apache-2.0
// residency.hpp - which parts of a world are in memory, for shaders, and which parts their rays have come to. A world
// of which all is there has none of this, and the shaders that draw it know nothing of it.
//
// A part is a page: a cell of level 2 of the pyramid, 128^3 voxels (shaders/shared/residency.h). Of each page it is
// always known which of its cells of 32^3 may have voxels: its outline. A ray that comes to such a cell of a page that
// is not there ends, as if there were nothing behind, and the page is among reached(). Who draws brings what was
// reached and is absent, and draws again: engine/home/world_pages.hpp. The way of paging is that of streamed voxel
// octrees: C. Crassin et al., "GigaVoxels: Ray-Guided Streaming for Efficient and Detailed Voxel Rendering", 2009.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "voxel/bricks/coords.hpp"

struct QryResidency;  // shaders/shared/residency.h

namespace quarry::engine {

// The number of a brick's page, and the voxels of a page.
uint32_t page_of(Int3 brick);
Box3 voxels_of_page(uint32_t page);

// Adds the cells of 32^3 voxels that a box meets to the outlines of their pages: masks, by page.
void add_outline(const Box3& voxels, std::unordered_map<uint32_t, uint64_t>& outlines);

constexpr uint64_t kPageBricks = 16 * 16 * 16;
// What a brick that is there takes: its pairs of the grid at a load of a half and its places in the pyramid, with what
// both leave behind when they change; and masks and materials, unless it is full of one material.
constexpr uint64_t kKeyBytes = 40, kVoxelBytes = 584;
// Bricks are read this share of a budget at a time, and beside them as many are on their way. The rest is for bricks
// that are there.
constexpr uint64_t kReadShare = 8;
constexpr uint64_t most_bytes_there(uint64_t budget_bytes) { return budget_bytes - budget_bytes / kReadShare * 2; }

// One thread at a time. Memory: 8 MiB that the host writes and the device reads, and half a MiB.
class Residency {
 public:
  // `outlines`: 2^20 masks, one a page, as of a node of level 2 of the pyramid. Pages with an outline are absent.
  // `bounds`: a box of all voxels, at which rays start. Errors: out_of_memory, device.
  static Result<std::unique_ptr<Residency>> create(Device& device, const Box3& bounds,
                                                   std::span<const uint64_t> outlines);
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  // Of a page with an outline: its voxels are not there, or they are. The device must not be drawing.
  void set_absent(uint32_t page, bool absent);
  bool absent(uint32_t page) const { return (absent_[page >> 6] >> (page & 63u) & 1u) != 0; }
  // Of a page that becomes absent, whose voxels are not where they were when this was made. The device must not be
  // drawing.
  void set_outline(uint32_t page, uint64_t cells);
  const Box3& bounds() const { return bounds_; }

  // Record, before and after commands that draw, that no page has been reached yet, and that the host is told.
  void begin(VkCommandBuffer commands);
  void end(VkCommandBuffer commands);
  // When those commands are done: the pages that rays have come to, rising, be they there or not.
  std::vector<uint32_t> reached() const;

  // What shaders are told, device addresses; as long as this object is there.
  QryResidency root() const;

 private:
  Residency(Device& device, const Box3& bounds) : device_(&device), bounds_(bounds) {}
  Device* device_;
  Box3 bounds_;
  std::vector<uint64_t> absent_;  // as on the device, whose memory is slow to read
  std::unique_ptr<DeviceMemory> masks_, outlines_, reached_, told_;
};

}  // namespace quarry::engine
