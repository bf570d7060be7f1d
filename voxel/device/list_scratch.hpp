// SPDX-License-Identifier: Apache-2.0
// list_scratch.hpp - the memory in which a device makes bricks of a list of voxels, and the launches of the steps that
// do (lists.hpp).
//
// Over the bus: 13 bytes a voxel, once. On the device: 9 bytes a voxel of the longest list, 32 a brick of it, up to
// 24 MiB for a piece of its positions and up to 64 MiB for the table of keys; what comes out of it is the caller's.
// Traffic there: 29 bytes a voxel and 8 to 16 a brick's octant; 45 a voxel if the list names one more than once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "voxel/bricks/coords.hpp"
#include "voxel/device/executor.hpp"

namespace quarry::device {

class ListScratch {
 public:
  // Addresses, and no memory yet. It must not outlive the executor. Errors: out_of_memory, device.
  static Result<std::unique_ptr<ListScratch>> create(Executor& executor);
  // What uses it must be done.
  ~ListScratch();
  ListScratch(const ListScratch&) = delete;
  ListScratch& operator=(const ListScratch&) = delete;

  struct Found {
    uint32_t bricks = 0;
    Box3 box;  // of these bricks, in voxels
  };
  // Memory::listed_keys, in `keys`, become those of the list's bricks. Not empty; all voxels are in the world. Waits
  // for the device. Errors: full (more voxels or bricks than it groups), out_of_memory, device.
  Result<Found> find_bricks(Memory& memory, Range& keys, std::span<const int32_t> xyz,
                            std::span<const uint8_t> materials);
  // Memory::listed_masks and listed_materials, which have room for the bricks, become those of the list. What is not in
  // a mask has any material. Errors: device.
  Result<void> fill_bricks(const Memory& memory, uint32_t bricks);

 private:
  explicit ListScratch(Executor& executor) : executor_(executor) {}
  Result<void> make_room(Memory& memory, Range& keys, uint32_t voxels);
  std::array<Range*, 7> all() { return {&xyz_, &materials_, &places_, &last_, &firsts_, &slots_, &numbers_}; }

  Executor& executor_;
  Range xyz_, materials_, places_, last_, firsts_, slots_, numbers_;
};

}  // namespace quarry::device
