// SPDX-License-Identifier: Apache-2.0
// scratch.hpp - the memory in which a device makes a list of bricks: of voxels that are given (lists.hpp), and of what
// is connected with a voxel (flood.hpp); and the launches of the steps that do. What comes out of it is the caller's:
// 68 bytes a brick, 580 with materials.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

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
// For messages about what is outside.
constexpr const char* kWorldExtent =
    "the world is x and z in [-8192, 8191], y in [-4096, 4095], without the brick at its upper corner (x and z from "
    "8184, y from 4088)";
// The error of a voxel of such a list.
Error outside_of_world(Int3 voxel, size_t number);

// Over the bus: 13 bytes a voxel, once, if the list is the host's. On the device: 20 bytes a voxel of the longest list,
// 13 more of one of the host's. Traffic there: about 130 bytes a voxel, most of it the sort's.
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

// On the device: 92 to 108 bytes a brick of the largest flood. Traffic there: about 300 bytes and nine look-ups of keys
// for each time that a brick takes part in a round. Over the bus: the counters, once for some rounds.
class FloodScratch {
 public:
  // Addresses, and no memory yet. It must not outlive the executor. `first_room`: bricks, of which most floods are not
  // more; one that is goes on from what it has, with four times the room. Errors: out_of_memory, device.
  static Result<std::unique_ptr<FloodScratch>> create(Executor& executor, uint64_t first_room = 1u << 15);
  // What uses it must be done.
  ~FloodScratch();
  FloodScratch(const FloodScratch&) = delete;
  FloodScratch& operator=(const FloodScratch&) = delete;

  // Memory::listed_keys and listed_masks, in `keys` and `masks`, become the bricks that are connected with the voxel,
  // which is in the world, and which of their voxels are; it returns how many, 0 if the voxel is empty. No edit may be
  // under way. Waits for the device. Errors: full (more bricks than `most` or kMostFlooded), out_of_memory, device.
  Result<uint32_t> find_connected(Memory& memory, Range& keys, Range& masks, Int3 voxel, uint64_t most);

 private:
  FloodScratch(Executor& executor, uint64_t first_room) : executor_(executor), first_room_(first_room) {}
  Result<void> make_room(Memory& memory, Range& keys, Range& masks, uint64_t bricks);
  std::array<Range*, 6> all() { return {&slots_, &numbers_, &same_, &queued_, &frontiers_[0], &frontiers_[1]}; }

  Executor& executor_;
  uint64_t first_room_;
  Range slots_, numbers_, same_, queued_, frontiers_[2];
};

}  // namespace quarry::device
