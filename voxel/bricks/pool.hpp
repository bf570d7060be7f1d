// SPDX-License-Identifier: Apache-2.0
// pool.hpp - storage of bricks: masks and materials in two slab arrays. The index of a brick is the value that the hash
// grid holds for its key; handles (shared.hpp) refer to the same bricks by their addresses. So a world, its scene's
// volumes, its history and snapshots of any of them have one pool, and nothing is held twice. A brick is written once,
// by who allocates it, before others know of it. It is free when its last handle is gone and the epoch in which that
// happened is past (MemorySource::epoch): until then frames may read it.
//
// Bricks that are full of one material need not be stored for each key: full() gives one index a material, which any
// number of keys may have.
//
// A packed pool is read-only: it has materials for set voxels only, and no spare room. A brick that is freed leaves its
// room unused.
//
//   masks      64 B a brick, as in a pool under edit; the last slab ends after the last brick
//   materials  | where each brick's materials start, a 32-bit number of words | brick 0's materials | brick 1's | ...
//              one byte for each set voxel of the brick in the order of the mask's bits, then up to 3 bytes of padding.
//              A voxel's byte is found by counting the mask's bits below its own.
//
// Thread safety: allocate(), make(), free() and handles may be used by any threads at once. What changes or reads the
// arrays by index (put, mask, get, trim, full, store_full ...) is for one thread at a time beside those.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "voxel/bricks/brick.hpp"
#include "voxel/bricks/shared.hpp"
#include "voxel/bricks/slab_array.hpp"

namespace quarry {

constexpr uint32_t kNoBrick = kQryReservedValue;  // what the hash grid finds for an absent key

// A reference of a pool: copies refer to the same one. Its memory lives until the last reference and the last handle of
// its bricks are gone, so the MemorySource must live as long.
class BrickPool {
 public:
  explicit BrickPool(MemorySource& memory, uint32_t max_bricks = 0xFFFFFFFEu);
  // The process's own, in host memory, for bricks that are in no world: the calling thread's of several, so that
  // threads seldom wait for each other. It has no indices, and gives back slabs that come free.
  static const BrickPool& loose();

  // Makes a packed pool of bricks [0, indices.size()): the bricks of `from` at `indices`, in this order, each with one
  // handle, the caller's. All threads make a pass over their masks and a pass over the whole bricks; the bytes do not
  // depend on the number of threads. Errors: full (over 2^32 words of materials), out_of_memory, device.
  static Result<BrickPool> pack(MemorySource& memory, const BrickPool& from, std::span<const uint32_t> indices);
  bool packed() const;

  // A handle of a brick with these voxels: none, full, or a brick of this pool. If the pool gets no memory or is
  // packed, the brick is one of loose(): whoever puts it into the pool's world will hear why. Throws std::bad_alloc.
  SharedBrick make(const BrickView& value) const;

  // The rest, as far as "Reading", changes bricks that are there or come: not for packed pools, but for free() and
  // share().

  // Lets handles of bricks that are elsewhere be of equal bricks of this pool: one for all handles of a brick. Errors:
  // full, out_of_memory; then no handle has changed.
  Result<void> adopt(std::span<SharedBrick* const> handles) const;
  // Returns an index of a brick with one handle, the caller's, that is to be written. The lowest free index comes
  // first. Errors: full, out_of_memory.
  Result<uint32_t> allocate();
  // Allocates `count` indices at once; all or none.
  Result<std::vector<uint32_t>> allocate(size_t count);
  // Ends the caller's handle. The index must be in use, and not one of full().
  void free(uint32_t index);
  // Makes a handle more, which free() ends.
  void share(uint32_t index);
  // True if the brick has other handles than the caller's.
  bool shared(uint32_t index) const;
  // The index of a brick that is in this pool; kNoBrick: the handle is none, full, or of another pool.
  uint32_t index_of(const SharedBrick& brick) const;
  // A handle more of the brick at an index in use. Any threads at once, beside make() too.
  SharedBrick at(uint32_t index) const;
  // True for a handle of a brick of another pool.
  bool elsewhere(const SharedBrick& brick) const;
  // Stores the full brick of each of these materials that has none yet. Errors: full, out_of_memory; then none.
  Result<void> store_full(std::span<const uint8_t> materials);
  // Frees the full bricks of these materials, which no key may have any more. Those that have none are passed over.
  void free_full(std::span<const uint8_t> materials);
  // Allocates memory for exactly `count` bricks. The pool must be empty. Errors: out_of_memory.
  Result<void> shrink_to_fit(uint32_t count);
  // Frees the memory after the last index in use. No brick moves. Later indices are up to a slab's number of bricks
  // higher.
  void trim();
  // Where the pool would end if bricks moved to free places before them (BrickGather): indices are below it.
  uint32_t gathered_end() const;

  void put(uint32_t index, const BrickView& brick) {
    mask(index) = brick.mask;
    materials(index) = brick.materials;
  }
  BrickMask& mask(uint32_t index);
  BrickMaterials& materials(uint32_t index);

  // Reading

  const BrickMask& mask(uint32_t index) const;
  uint8_t material(uint32_t index, uint32_t voxel) const;  // 0: that voxel is not set
  // The index of the full brick of a material; kNoBrick: not stored.
  uint32_t full(uint8_t material) const;
  // Of the material whose full() has this index; 0: of none, the brick is the key's own.
  uint8_t full_material(uint32_t index) const;
  // All of them, as they are in another pool after bricks were moved there.
  void set_full(const std::array<uint32_t, 256>& indices);
  Brick get(uint32_t index) const;

  void for_each_brick(const std::function<void(uint32_t index)>& visit) const;  // the indices in use, rising
  uint32_t live() const;                                                        // indices in use
  size_t free_count() const;    // indices below high_water() that are not
  uint32_t high_water() const;  // all indices ever used are below it
  uint64_t size_bytes() const;
  const SlabArray& mask_slabs() const;
  const SlabArray& material_slabs() const;
  // All elements of material_slabs() in use are below this number: 512 bytes each, also when packed.
  uint64_t material_elements() const;

 private:
  friend class BrickPoolState;
  friend class BrickGather;
  friend class BrickMap;
  friend class BrickMove;
  friend class BrickWriter;
  explicit BrickPool(std::shared_ptr<BrickPoolState> state) : state_(std::move(state)) {}

  SharedBrick stored(const BrickView& value) const;  // as make(), but a brick of a pool also if it is full or none

  std::shared_ptr<BrickPoolState> state_;
};

// Makes many bricks in a pool: it takes places by the dozen, or as many as it is told to expect, and gives back what it
// did not need. So threads that make many bricks at once seldom wait for each other. For one thread.
class BrickWriter {
 public:
  // `expected`: how many bricks it will make, if that is known. `ahead`: how many it and other writers are expected to:
  // where the pool grows, it has room for them at once, if there is memory.
  explicit BrickWriter(BrickPool pool, size_t expected = 0, size_t ahead = 0)
      : pool_(std::move(pool)), expected_(expected), ahead_(ahead) {}
  BrickWriter(const BrickWriter&) = delete;
  BrickWriter& operator=(const BrickWriter&) = delete;
  ~BrickWriter();
  SharedBrick make(const BrickView& value);  // as BrickPool::make

 private:
  // Places taken at once; the second, of those that are expected.
  static constexpr size_t kMost = 64, kMostExpected = 2048;

  BrickPool pool_;
  std::vector<std::atomic<uint32_t>*> places_;
  size_t expected_, ahead_, step_ = 4;
};

// Moves bricks to a new pool: each brick once, however many handles it has. First add() all that are to move, then
// make() the pool, which may fail, then exchange the handles. For one thread.
class BrickMove {
 public:
  explicit BrickMove(const BrickPool& from) : from_(from), places_(from_.high_water(), kNoBrick) {}
  BrickMove(const BrickMove&) = delete;
  BrickMove& operator=(const BrickMove&) = delete;
  ~BrickMove();
  // Their order is that of the bricks in the new pool. A brick that was added before, and one of another pool, counts
  // as none.
  void add(uint32_t index);
  void add(const SharedBrick& brick) { add(from_.index_of(brick)); }
  // Copies the bricks that were added into a new pool. Errors: as BrickPool::allocate and BrickPool::pack; then nothing
  // has happened.
  Result<BrickPool> make(MemorySource& memory, bool packed);
  // After make(): the index in the new pool of the brick at `index` in the old one, kNoBrick if it was not added. The
  // brick's only handle there is the move's; whoever is to have it must share() it.
  uint32_t place(uint32_t index) const { return places_[index]; }
  // After make(): a handle of the same brick in the new pool; one that was not added stays as it is.
  SharedBrick moved(const SharedBrick& brick) const;

 private:
  BrickPool from_;
  std::optional<BrickPool> to_;
  std::vector<uint32_t> bricks_;  // their indices in the old pool; in the new one they are 0, 1, 2 ...
  std::vector<uint32_t> places_;  // in the new pool, by the old index
};

// Moves bricks from the end of a pool to free places before them, each brick once, however many handles it has: its
// memory then ends after as many places as it has bricks. First add() all handles, then take() the places, then make
// what names bricks by place() and is to follow, which may fail; then copy(), exchange the handles, and end(). Before
// copy() nothing has changed but that the places are taken; an object that goes before gives them back. The rest
// allocates nothing. For one thread, beside which others may end and copy handles that were not added.
class BrickGather {
 public:
  explicit BrickGather(const BrickPool& pool);
  BrickGather(const BrickGather&) = delete;
  BrickGather& operator=(const BrickGather&) = delete;
  ~BrickGather();
  // A handle more of the brick there.
  void add(uint32_t index) {
    if (index != kNoBrick && index >= first_) ++places_[index - first_];
  }
  void add(const SharedBrick& brick) { add(pool_.index_of(brick)); }
  // Takes places for the bricks that are to move: not for those that have handles which were not added, as snapshots
  // have. They stay, and the memory before them. Returns their number.
  size_t take();
  // After take(): the index to which the brick at `index` moves; its own, if it stays.
  uint32_t place(uint32_t index) const { return index < first_ ? index : places_[index - first_]; }
  void copy();
  // After copy(): exchanges a handle, if its brick moves. Each of those that were added must come, once.
  void exchange(SharedBrick& brick) const;
  // Frees the former places, and the memory after the last brick. What frames may still read of it, the memory's source
  // keeps for them.
  void end();

 private:
  BrickPool pool_;
  uint32_t first_ = 0;            // before it nothing moves
  std::vector<uint32_t> places_;  // from first_ on: handles that were added, then where the brick moves
  struct Moved {
    uint32_t from, to;
  };
  std::vector<Moved> moved_;
  std::function<void(size_t, size_t)> copy_some_;
  bool ended_ = false;
};

}  // namespace quarry
