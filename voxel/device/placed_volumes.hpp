// SPDX-License-Identifier: Apache-2.0
// placed_volumes.hpp - volumes of bricks in a device's memory, each sent once, and what becomes of them where they are
// placed in a world (bodies/flatten.hpp). Store::flatten() puts that into the world.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "voxel/bricks/brick.hpp"
#include "voxel/bricks/coords.hpp"
#include "voxel/device/executor.hpp"

namespace quarry::device {

class Store;

// A volume that a world shows: its voxel v where rotation.apply_to_cell(v) + offset is.
struct Placement {
  uint32_t volume = 0;
  Rotation rotation;
  Int3 offset;
};

// On the device: 16 to 36 bytes a brick of the volumes, 576 more if it is not full of one material; a byte for each
// brick of each placement, and 16 for each brick of the world that such a one has voxels in. One thread at a time.
class PlacedVolumes {
 public:
  // Addresses beside those of the store, which must outlive it, and no memory yet. Errors: out_of_memory, device.
  static Result<std::unique_ptr<PlacedVolumes>> create(Store& store);
  // Waits for what uses it.
  ~PlacedVolumes();
  PlacedVolumes(const PlacedVolumes&) = delete;
  PlacedVolumes& operator=(const PlacedVolumes&) = delete;

  // How many bricks each volume has; 0 for one that is not sent. To be called once, before the first send(). Errors:
  // full (more than 2^27 bricks), out_of_memory, device.
  Result<void> begin(std::span<const uint64_t> bricks);
  // Some bricks, those of a volume in a row; each brick is sent once, and none is empty. indices: material - 1 of one
  // that is full of it, else kFullBricks or more; the materials of these, in the same order. Traffic: 20 or 532 bytes a
  // brick over the bus. Errors: full (more than begin() said), out_of_memory, device.
  struct Row {
    uint32_t volume, count;
  };
  struct Bricks {
    std::span<const Row> rows;
    std::span<const Int3> at;
    std::span<const uint32_t> indices;
    std::span<const BrickMaterials> materials;
  };
  Result<void> send(const Bricks& bricks);

  // What the placements make, the first ones covering what is behind: bricks of the world that become full of a
  // material, and others. Memory::placed is theirs afterwards. Waits for the device. Traffic on the device: of each
  // brick of a placement its mask twice; per contribution about 80 bytes. Over the bus: 24 bytes a placement, the
  // counters twice. Errors: out_of_bounds (outside() has the first placement that has a voxel outside of the world),
  // full (more than a device flattens), out_of_memory, device.
  struct Found {
    uint32_t filled = 0, made = 0;  // bricks of the world
    uint32_t pairs = 0, contributions = 0;
    Box3 box;  // that holds all of it, in voxels
  };
  Result<Found> group(Memory& memory, std::span<const Placement> placements);
  size_t outside() const { return outside_; }
  // Time in which memory was made for it, so far.
  double room_ms() const { return room_ms_; }

 private:
  explicit PlacedVolumes(Store& store);
  // Room for `count` elements; what is not known ahead has more, so that few calls ask for memory.
  Result<void> grow(Range& range, uint64_t count, size_t element_bytes, bool ahead = false);
  std::array<Range*, 14> all() {
    return {&at_,     &indices_, &masks_,  &materials_, &numbers_,   &sent_indices_, &sent_at_,
            &placed_, &parts_,   &before_, &bricks_[0], &bricks_[1], &sources_[0],   &sources_[1]};
  }

  Executor& executor_;
  Control* control_;
  struct Volume {
    uint64_t first = 0, count = 0, sent = 0;
    Box3 bricks;  // of those that were sent
  };
  std::vector<Volume> volumes_;
  uint64_t stored_ = 0;  // bricks that are not full
  size_t outside_ = 0;
  double room_ms_ = 0;
  Range at_, indices_, masks_, materials_, numbers_, sent_indices_, sent_at_, placed_, parts_, before_, bricks_[2],
      sources_[2];
};

}  // namespace quarry::device
