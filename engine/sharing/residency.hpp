// SPDX-License-Identifier: Apache-2.0
// residency.hpp - which parts of a world are in memory, for shaders, and which parts their rays have come to. A world
// of which all is there has none of this, and the shaders that draw it know nothing of it.
//
// A part is a page: a cell of level 2 of the pyramid, 128^3 voxels (shaders/shared/residency.h). Of each page the
// coarse level is always known (coarse_level.hpp). A ray that comes to one of its bricks in a page that is not there
// sees that brick full, and the page is among those that were reached. Who draws brings those that are absent, and
// draws again: engine/home/world_pages.hpp, resident_pages.hpp. The way of paging is that of streamed voxel octrees: C.
// Crassin et al., "GigaVoxels: Ray-Guided Streaming for Efficient and Detailed Voxel Rendering", 2009.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/sharing/coarse_level.hpp"
#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "voxel/bricks/coords.hpp"

struct QryResidency;  // shaders/shared/residency.h

namespace quarry::engine {

// The number of a brick's page, and the voxels of a page.
uint32_t page_of(Int3 brick);
Box3 voxels_of_page(uint32_t page);

constexpr uint64_t kPageBricks = 16 * 16 * 16;
// What a brick that is there takes: its pairs of the grid at a load of a half and its places in the pyramid, with what
// both leave behind when they change; and masks and materials, unless it is full of one material.
constexpr uint64_t kKeyBytes = 40, kVoxelBytes = 584;
// Bricks are read this share of a budget at a time, and beside them as many are on their way. The rest is for bricks
// that are there.
constexpr uint64_t kReadShare = 8;
constexpr uint64_t most_bytes_there(uint64_t budget_bytes) { return budget_bytes - budget_bytes / kReadShare * 2; }

// From where a frame is seen, and the angle of a pixel.
struct Eye {
  std::array<double, 3> position{};
  double pixel = 0;
  friend bool operator==(const Eye&, const Eye&) = default;
};

// One thread at a time. Memory, that the host writes and the device reads: 4 MiB, the coarse level, and 128 KiB for
// each version that frames may still show; and 256 KiB, and as much for each frame whose reached pages are not read
// yet.
class Residency {
 public:
  // `coarse` must outlive the result, which follows it. No page is absent yet. `bounds`: a box of all voxels, at which
  // rays start. Errors: out_of_memory, device.
  static Result<std::unique_ptr<Residency>> create(Device& device, const Box3& bounds, CoarseLevel& coarse);
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  // From the next update() on: a page's voxels are not there, or they are. Rays start at these bounds.
  void set_absent(uint32_t page, bool absent);
  bool absent(uint32_t page) const { return (absent_[page >> 6] >> (page & 63u) & 1u) != 0; }
  void set_bounds(const Box3& bounds) { bounds_ = bounds; }
  const Box3& bounds() const { return bounds_; }

  // From the next update() on pages are of another part of a larger world: what frames have told of their pages before,
  // or still will, counts no more.
  void begin_anew();
  // Shows frames that are recorded from here on what is absent now, and the coarse level as it is. Those up to
  // `submitted` were recorded before, those up to `completed` are done. Traffic: what has changed. Errors:
  // out_of_memory, device; then frames see what they saw before.
  Result<void> update(uint64_t submitted, uint64_t completed);
  // What shaders are told, device addresses, as of the last update(); for frames that are recorded before the next.
  QryResidency root() const;

  // Record, before and after commands that draw, that no page has been reached yet, and that the host is told. Frames
  // of one queue, or such as wait for one another.
  void begin(VkCommandBuffer commands);
  Result<void> end(VkCommandBuffer commands, uint64_t frame = 0, const Eye& eye = {});
  // What rays of frames up to `completed` have come to since it was asked last.
  struct Reached {
    std::vector<uint32_t> pages;  // rising, be they there or not
    std::vector<Eye> eyes;        // of these frames
  };
  Reached reached(uint64_t completed = 0);

 private:
  struct Kept {
    std::unique_ptr<DeviceMemory> memory;
    uint64_t last_frame = 0;  // that may read it
  };
  struct Told {
    std::unique_ptr<DeviceMemory> memory;
    uint64_t frame = 0;
    Eye eye{};
    uint64_t part = 0;   // as of the frame
    bool waits = false;  // to be read
  };
  Residency(Device& device, const Box3& bounds, CoarseLevel& coarse)
      : device_(&device), bounds_(bounds), coarse_(&coarse) {}
  template <class Record>
  Result<void> follow(std::unique_ptr<DeviceMemory>& memory, const std::vector<Record>& records,
                      std::span<const uint32_t> changed, uint64_t submitted, const char* label);

  Device* device_;
  Box3 bounds_;
  CoarseLevel* coarse_;
  std::vector<uint64_t> absent_;
  bool changed_ = true;  // `absent_`, since the last update
  std::vector<Kept> masks_;
  size_t shown_ = 0;                    // of these
  uint64_t part_ = 0, shown_part_ = 0;  // of the world, counted; and as of the last update
  std::unique_ptr<DeviceMemory> numbers_, pages_, cells_, reached_;
  std::vector<Told> told_;
  std::vector<Kept> old_;  // smaller ones, which frames may still read
};

}  // namespace quarry::engine
