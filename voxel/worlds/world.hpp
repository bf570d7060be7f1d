// SPDX-License-Identifier: Apache-2.0
// world.hpp - the flattened scene: hash grid (brick key -> pool index), brick pool, occupancy pyramid. Its memory is
// supplied from outside, so a Vulkan-shared MemorySource makes it readable by shaders.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.hpp"
#include "hashgrid/grid.hpp"
#include "voxel/bricks/map.hpp"
#include "voxel/bricks/occupancy.hpp"
#include "voxel/bricks/pool.hpp"
#include "voxel/bricks/shared.hpp"

namespace quarry {

struct WorldMemory {
  // null: a host executor owned by the world. Only host executors: the world reads its own tables with host threads. A
  // GPU reads the same memory if it is shared, or a mirror fed by take_dirty_keys() and take_dirty_level2().
  hashgrid::Executor* executor = nullptr;
  MemorySource* memory = nullptr;     // null: host_memory_source(). Must be host-readable and -writable.
  uint32_t max_bricks = 0xFFFFFFFEu;  // of keys, see brick_count()
  // A pool of this memory that no other world has, with bricks that the world is to show, as readers put them there:
  // then they are not copied. None: a new one.
  std::optional<BrickPool> pool = std::nullopt;

  // `pool`, made now if there is none: for a reader's bricks.
  const BrickPool& new_pool() { return pool ? *pool : pool.emplace(source()); }
  MemorySource& source() const { return memory ? *memory : host_memory_source(); }
};

// Shows `visit` each handle that somebody but the world has of bricks of its pool, when they move. It is called twice:
// first to see which bricks there are, with `to` null, then to exchange the handles for those of the pool `to`. The
// second call may allocate nothing.
using OtherHandles = std::function<void(const VisitBrick& visit, const BrickPool* to)>;

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

  // The only way to change voxels: bricks in any order, each coordinate at most once; an empty brick removes. Atomic:
  // on failure (out_of_bounds, full, out_of_memory, invalid_argument for a duplicate coordinate) the world is as
  // before. One thread at a time. New bricks reuse the indices of removed ones, so a batch fits whenever the resulting
  // world fits.
  struct BrickWrite {
    Int3 brick;
    Brick value;
  };
  Result<void> write(std::span<const BrickWrite> writes);
  // The same with bricks that are shared: those of pool() are not copied. One that is full of one material takes
  // no memory in the pool but what the first of its kind takes.
  Result<void> write(std::span<const BrickPut> puts);
  // The same for the changes of a record: to `after` (forward) or to `before`. They rise, and none covers another's
  // bricks. `planned_now`: they were planned from this very state of the world, so that the bricks that go need not be
  // looked up.
  Result<void> exchange(std::span<const BrickChange> changes, bool forward, bool planned_now = false);
  // The same with all bricks of a volume, for an empty world: its table and pyramid are made at once, of their size.
  // Errors: as write(), invalid_argument (the world is not empty), cancelled.
  Result<void> fill(BrickMap bricks, const Progress& progress = {});
  Result<void> clear();

  // Makes the world read-only, in about a third of the memory: materials of set voxels only (see bricks/pool.hpp),
  // bricks in the order of the pyramid, a fuller grid, no spare room. Voxels, version, pictures and all query results
  // stay the same; indices of bricks change. Both forms are in memory until it is done; it reads each brick once. The
  // bricks of the `others` are packed too; those that have handles and are not among them keep the old pool's memory.
  // The next write(), clear() or unpack() reverses it first, at the same cost. On failure (out_of_memory, device, full:
  // over 16 GiB of materials) the world is as before. One thread at a time, without concurrent readers.
  Result<void> pack(const OtherHandles& others = {});
  Result<void> unpack(const OtherHandles& others = {});
  bool packed() const;
  // Frees memory that no brick uses. The world stays editable, and grows again in small steps. For a world that was
  // just built or has lost many bricks. It moves bricks if a sixteenth of the pool or more is unused between them:
  // those at the end to free places, where they lie, but not those of which somebody beside the `others` has handles.
  // Voxels and version stay, indices of bricks may change, a device is sent the whole world again. It does nothing for
  // a packed world. On failure (out_of_memory) it is as before. One thread at a time, without concurrent readers.
  Result<void> shrink_to_fit(const OtherHandles& others = {});

  uint64_t version() const;  // rises with every successful write
  uint64_t voxel_count() const;
  uint32_t brick_count() const;  // keys of the grid; full bricks of one material share one brick of the pool
  Box3 bounds() const;           // tight in voxels; costs a pass over the bricks' masks after a change
  uint64_t size_bytes() const;   // grid + pool + pyramid
  uint64_t spare_bytes() const;  // of these, what holds no brick and no node
  // The size_bytes() of the packed world; if it is not packed, accurate to a few pages of the grid. A pass over the
  // masks.
  uint64_t packed_bytes() const;
  const hashgrid::Grid& grid() const;
  const BrickPool& pool() const;
  const OccupancyPyramid& pyramid() const;
  // The world's bricks, for a volume that is a view of them (bricks/map.hpp). It stays where it is when the world is
  // moved.
  const BrickTable& table() const;
  // Keys written since the last call, sorted, without duplicates; a mirror on a GPU copies them. Removed bricks are
  // included. The first call returns all keys: nobody wanted the changes before, and they were not noted.
  std::vector<uint32_t> take_dirty_keys();
  std::vector<uint32_t> take_dirty_level2();
  void drop_dirty();  // for a mirror that copies everything now
  Result<hashgrid::Stats> stats() const;
  void for_each_brick(const std::function<void(Int3, const Brick&)>& visit) const;  // in key order

 private:
  struct State;
  explicit World(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry
