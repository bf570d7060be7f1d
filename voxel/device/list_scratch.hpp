// SPDX-License-Identifier: Apache-2.0
// list_scratch.hpp - the memory in which a device makes bricks of a list of voxels, and the launches of the steps that
// do (lists.hpp).
//
// Over the bus: 13 bytes a voxel, once, if the list is the host's. On the device: 24 bytes a voxel of the longest list,
// 13 more of one of the host's; what comes out of it is the caller's. Traffic there: about 130 bytes a voxel, most of
// it the sort's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "voxel/bricks/coords.hpp"
#include "voxel/device/executor.hpp"

namespace quarry::device {

// Where a caller's array is: in host memory, or in the device's.
enum class Side : uint8_t { host, device };
// Voxels in any order: x, y, z of each, and what it becomes, 0: removed. Of equal ones the last counts.
struct GivenVoxels {
  const int32_t* xyz = nullptr;
  const uint8_t* materials = nullptr;
  size_t count = 0;
  Side side = Side::host;
};
// The error of a voxel of such a list.
Error outside_of_world(Int3 voxel, size_t number);

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
  // Memory::listed_keys, in `keys`, become those of the list's bricks. Not empty. Waits for the device. Errors: full
  // (more voxels than it groups), out_of_bounds (names the first voxel that is outside), out_of_memory, device.
  Result<Found> find_bricks(Memory& memory, Range& keys, const GivenVoxels& list);
  // Memory::listed_masks and listed_materials, which have room for the bricks, become those of the list. What is not in
  // a mask has any material. Errors: device.
  Result<void> fill_bricks(const Memory& memory, uint32_t bricks);

 private:
  explicit ListScratch(Executor& executor) : executor_(executor) {}
  // What find_bricks() sorts.
  Executor::Pairs pairs();
  std::array<Range*, 7> all() {
    return {&xyz_, &materials_, &bricks_[0], &bricks_[1], &packed_[0], &packed_[1], &starts_};
  }

  Executor& executor_;
  Range xyz_, materials_, bricks_[2], packed_[2], starts_;
};

}  // namespace quarry::device
