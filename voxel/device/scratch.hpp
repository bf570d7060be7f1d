// SPDX-License-Identifier: Apache-2.0
// scratch.hpp - the memory in which a device makes a list of bricks: of voxels that are given (lists.hpp), of what is
// connected with a voxel (flood.hpp), and of parts that go (parts.hpp); and the launches of the steps that do. What
// comes out of it is the caller's: 68 bytes a brick, 580 with materials.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

// Over the bus: 8 bytes a voxel, once, if the list is the host's: its threads make a word of each. On the device: 20
// bytes a voxel of the longest list, 8 more of one of the host's. Traffic there: about 130 bytes a voxel, most of it
// the sort's.
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
  // A list of the host's to `words_`. Errors: out_of_bounds, out_of_memory, device.
  Result<void> send(const GivenVoxels& list);
  // What find_bricks() sorts.
  Executor::Pairs pairs();
  std::array<Range*, 6> all() { return {&words_, &bricks_[0], &bricks_[1], &packed_[0], &packed_[1], &starts_}; }

  Executor& executor_;
  Range words_, bricks_[2], packed_[2], starts_;
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

// On the device: 36 bytes a brick and 20 to 40 a piece of one, of which most bricks have one; 512 for each brick of
// several; 48 a part, and 32 to 128 for each material of one. Traffic there: the grid once; of each brick its materials
// once, its mask up to 14 times, and 4 to 14 look-ups of keys. Over the bus: the counters three times, and 56 bytes a
// part.
class PartScratch {
 public:
  // Addresses, and no memory yet. It must not outlive the executor. `first_shares`: materials of parts, of which most
  // worlds have no more; one that has is counted once more, with four times the room. Errors: out_of_memory, device.
  static Result<std::unique_ptr<PartScratch>> create(Executor& executor, uint64_t first_shares = 1u << 16);
  // What uses it must be done.
  ~PartScratch();
  PartScratch(const PartScratch&) = delete;
  PartScratch& operator=(const PartScratch&) = delete;

  struct Part {
    uint64_t voxels = 0;
    Box3 box;              // tight, in voxels
    uint8_t material = 0;  // the commonest; of several the lowest
    uint32_t number = 0;   // on the device
  };
  // The parts of the world, which has so many bricks: the same in the same order as ConnectedParts::parts().
  // `neighbours`: 6, 18 or 26. No edit may be under way. Waits for the device. Errors: full (more bricks than
  // kMostFlooded, or more pieces, parts or materials than it has addresses for), out_of_memory, device.
  Result<std::vector<Part>> find(Memory& memory, uint32_t bricks, uint32_t neighbours);
  // Memory::listed_keys and listed_masks, in `keys` and `masks`, become the bricks of the world that lose voxels, and
  // which, if of the parts that were found last only the first `count` stay; it returns how many bricks. The world must
  // be as it was then. Waits for the device. Errors: out_of_memory, device.
  Result<uint32_t> list_lost(Memory& memory, Range& keys, Range& masks, std::span<const Part> parts, size_t count);

 private:
  PartScratch(Executor& executor, uint64_t first_shares) : executor_(executor), first_shares_(first_shares) {}
  Result<void> make_brick_room(Memory& memory, uint32_t bricks);
  Result<void> make_piece_room(Memory& memory, uint64_t pieces, uint64_t labels);
  Result<void> make_share_room(Memory& memory, uint64_t slots);
  std::array<Range*, 13> all() {
    return {&slots_,  &slot_numbers_, &keys_,  &indices_,    &firsts_,       &labels_, &voxel_labels_,
            &pieces_, &numbers_,      &found_, &share_keys_, &share_counts_, &keeps_};
  }

  Executor& executor_;
  uint64_t first_shares_;
  uint32_t bricks_ = 0;  // of the world, when its parts were found
  Range slots_, slot_numbers_, keys_, indices_, firsts_, labels_, voxel_labels_, pieces_, numbers_, found_, share_keys_,
      share_counts_, keeps_;
};

}  // namespace quarry::device
