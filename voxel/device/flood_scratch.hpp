// SPDX-License-Identifier: Apache-2.0
// flood_scratch.hpp - the memory in which a device finds what is connected with a voxel, and the launches of the steps
// that do (flood.hpp).
//
// Memory: 92 to 108 bytes a brick of the largest flood, beside the list that comes out of it, 68. Traffic on the
// device: about 300 bytes and nine look-ups of keys for each time that a brick takes part in a round. Over the bus: the
// counters, once for some rounds.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "voxel/bricks/coords.hpp"
#include "voxel/device/executor.hpp"

namespace quarry::device {

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
