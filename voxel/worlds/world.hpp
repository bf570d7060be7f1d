// SPDX-License-Identifier: Apache-2.0
// world.hpp - the flattened scene as everything else sees it: hash grid (brick key -> pool index), brick pool,
// occupancy pyramid. It works in memory it is given, so a Vulkan-shared MemorySource makes it readable by shaders.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hashgrid/grid.hpp"
#include "voxel/bricks/pool.hpp"
#include "voxel/bricks/occupancy.hpp"

namespace quarry {

struct WorldMemory {
  // null: a host executor owned by the world. Only host executors: the world reads its own tables with host threads (a
  // GPU reads the same memory where it is shared, or a mirror fed by take_dirty_keys() and take_dirty_regions()).
  hashgrid::Executor* executor = nullptr;
  MemorySource* memory = nullptr;          // null: host_memory_source(). Must be host-readable and -writable.
  uint32_t max_bricks = 0xFFFFFFFEu;
};

class World {
 public:
  // Errors: out_of_memory, device, unsupported (not a host executor).
  static Result<World> create(const WorldMemory& memory = {});
  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  // 0 if empty or outside the world. Free-threaded beside other reads.
  uint8_t get(Int3 voxel) const;
  bool find_brick(Int3 brick, Brick* out) const;

  // The one way in: bricks in any order, each coordinate at most once; an empty brick removes. Atomic: on failure
  // (out_of_bounds, full, out_of_memory, invalid_argument for a coordinate given twice) the world is as before. One
  // thread at a time. New bricks take over the places of removed ones, so a batch fits whenever the world after it
  // fits.
  struct BrickWrite { Int3 brick; Brick value; };
  Result<void> write(std::span<const BrickWrite> writes);
  // The same without copying: the bricks are read where they are.
  struct BrickRef { Int3 brick; const Brick* value; };
  Result<void> write(std::span<const BrickRef> writes);
  Result<void> clear();

  // Makes the world one for reading, in about a third of the memory: materials of set voxels alone (see
  // bricks/pool.hpp), bricks in the order of the pyramid, a fuller grid, nothing to spare. Voxels, version and pictures
  // stay the same, and so does everything that may be asked; indices of bricks change. Both forms are in memory until
  // it is done; it reads each brick once. The next write(), clear() or unpack() turns it back first, which costs as
  // much again. On failure (out_of_memory, device, full: over 16 GiB of materials) the world is as before. One thread
  // at a time, and none that reads beside it.
  Result<void> pack();
  Result<void> unpack();
  bool packed() const;
  // Lets go of memory that no brick uses; the world stays one under edit, and grows again by small parts of itself. For
  // a world that was just built or has lost much. Moves little, unless a sixteenth of the pool or more lies idle
  // between bricks: then all of them, with both copies in memory until it is done. Voxels and version stay, indices of
  // bricks may not, and a device is given the whole world anew. Nothing to do for a packed world. On failure
  // (out_of_memory) the world is as before. One thread at a time, and none that reads beside it.
  Result<void> shrink_to_fit();

  uint64_t version() const;          // rises with every successful write
  uint64_t voxel_count() const;
  uint32_t brick_count() const;
  Box3 bounds() const;               // tight in voxels; costs a pass over the bricks' masks after a change
  uint64_t size_bytes() const;       // grid + pool + pyramid
  // What that is when packed; of one that is not, within a few pages of the grid. A pass over the bricks' masks.
  uint64_t packed_bytes() const;
  const hashgrid::Grid& grid() const;
  const BrickPool& pool() const;
  const OccupancyPyramid& pyramid() const;
  // Keys written since the last call, sorted, each once: what a mirror on a GPU copies. Bricks that went are in the
  // list too.
  std::vector<uint32_t> take_dirty_keys();
  std::vector<uint32_t> take_dirty_regions();
  Result<hashgrid::Stats> stats() const;
  void for_each_brick(const std::function<void(Int3, const Brick&)>& visit) const;  // in key order

 private:
  struct State;
  explicit World(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry
