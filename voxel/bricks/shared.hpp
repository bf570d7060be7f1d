// SPDX-License-Identifier: Apache-2.0
// shared.hpp - a handle of an immutable brick: none, full of one material, or a counted brick in a pool (pool.hpp).
//
// Volumes, undo records, files being saved, worlds and copies of any of these share bricks through handles. So a copy
// of a volume, an undo record and a snapshot cost a handle a brick, no voxel is written twice, and what a scene holds
// is what its world shows.
//   none   the empty brick                                                               no memory
//   full   all 512 voxels set, all of one material; one handle for each of 255           no memory
//   else   a brick of a pool, shared by all its handles                                  580 B, if packed less
// Bricks that are made from voxels take the cheapest form, so that equal full bricks have equal handles.
// Thread safety: handles of one brick may be copied, read and destroyed by any threads; one handle as any value type.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "voxel/bricks/brick.hpp"

namespace quarry {

class BrickPool;
class BrickPoolState;

constexpr uint32_t kBricksPerSlab = 1u << 12;  // 256 KiB of masks, 2 MiB of materials

// A run of a pool's bricks, for handles: a handle is the address of its brick's count, and the count's place tells the
// brick's. Only the pool makes and changes slabs.
struct alignas(8 * kBricksPerSlab) BrickSlab {
  std::array<std::atomic<uint32_t>, kBricksPerSlab> counts;  // of the handles of each brick; first, see of()
  BrickMask* masks = nullptr;
  BrickMaterials* materials = nullptr;  // null: packed
  BrickPoolState* pool = nullptr;
  uint32_t number = 0;  // brick i has the index number * kBricksPerSlab + i
  uint32_t size = 0;    // bricks that it has room for
  uint32_t free = 0;    // of these
  std::array<uint64_t, kBricksPerSlab / 64> free_bits{}, retired_bits{};

  static BrickSlab* of(std::atomic<uint32_t>* count) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): slabs are aligned so that each address in one leads to its begin
    return reinterpret_cast<BrickSlab*>(reinterpret_cast<uintptr_t>(count) & ~(uintptr_t(alignof(BrickSlab)) - 1));
  }
};

class SharedBrick {
 public:
  SharedBrick() = default;
  // In memory of the process that no world has: for bricks outside pools. A world copies it.
  explicit SharedBrick(const BrickView& value);
  // Material 0: none.
  static SharedBrick full(uint8_t material) {
    SharedBrick brick;
    if (material) brick.bits_ = full_bits(material);
    return brick;
  }
  SharedBrick(const SharedBrick& other) noexcept : bits_(other.bits_) {
    if (auto* const shared = count()) shared->fetch_add(1, std::memory_order_relaxed);
  }
  SharedBrick(SharedBrick&& other) noexcept : bits_(std::exchange(other.bits_, 0)) {}
  SharedBrick& operator=(SharedBrick other) noexcept {
    std::swap(bits_, other.bits_);
    return *this;
  }
  ~SharedBrick() {
    // Release: this handle's reads happen before the count drops. Acquire: the handle that frees sees all of them.
    if (auto* const last = count(); last && last->fetch_sub(1, std::memory_order_acq_rel) == 1) give_back(last);
  }

  // True if there is a voxel.
  explicit operator bool() const { return bits_ != 0; }
  // The voxels; valid while a handle of the brick lives, for ever if it is full or none.
  BrickView operator*() const {
    auto* const counted = count();
    if (!counted) return full_brick(material());
    const BrickSlab& slab = *BrickSlab::of(counted);
    const auto slot = size_t(counted - slab.counts.data());
    return slab.materials ? BrickView(slab.masks[slot], slab.materials[slot]) : packed_view(slab, slot);
  }
  struct Arrow {
    BrickView view;
    const BrickView* operator->() const { return &view; }
  };
  Arrow operator->() const { return {**this}; }
  // The material of a full brick, else 0.
  uint8_t material() const { return bits_ & 1u ? uint8_t(bits_ >> 1) : uint8_t(0); }
  uint32_t voxels() const { return !bits_ ? 0 : bits_ & 1u ? kVoxelsPerBrick : count_of(mask()); }
  // True if both share one brick: then they are equal; equal bricks need not share one.
  bool same_as(const SharedBrick& other) const { return bits_ == other.bits_; }
  // Of a brick in a pool, of which this is one of the handles, with its count; 0 for full bricks and none.
  uint64_t size_bytes() const {
    if (!count()) return 0;
    // Packed: the materials of set voxels, in words, and where they start.
    const uint64_t materials = BrickSlab::of(count())->materials ? sizeof(BrickMaterials) : 4 + (voxels() + 3) / 4 * 4;
    return sizeof(BrickMask) + materials + sizeof(uint32_t);
  }
  friend bool operator==(const SharedBrick& a, const SharedBrick& b) { return a.bits_ == b.bits_ || *a == *b; }

 private:
  friend class BrickGather;
  friend class BrickMap;  // writes bricks that nobody else has yet,
  friend class BrickMove;
  friend class BrickPool;
  friend class BrickWriter;  // as these do
  friend class EndOfBricks;

  explicit SharedBrick(std::atomic<uint32_t>* adopted) : bits_(reinterpret_cast<uintptr_t>(adopted)) {}
  static void give_back(std::atomic<uint32_t>* last) noexcept;
  static BrickView packed_view(const BrickSlab& slab, size_t slot);
  static uintptr_t full_bits(uint8_t material) { return uintptr_t(material) << 1 | 1u; }
  std::atomic<uint32_t>* count() const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the tag in its lowest bit is what makes the handle 8 bytes
    return bits_ & 1u ? nullptr : reinterpret_cast<std::atomic<uint32_t>*>(bits_);
  }
  // True if this is the only handle of a counted brick that is not packed. No other can be made then but from this one,
  // and the brick may be written in place. Acquire pairs with the release of the last other handle, whose reads are
  // therefore over.
  bool unique() const {
    return count() && count()->load(std::memory_order_acquire) == 1 && BrickSlab::of(count())->materials;
  }
  // Of a counted brick, for writing.
  BrickMask& mask() const {
    const BrickSlab& slab = *BrickSlab::of(count());
    return slab.masks[count() - slab.counts.data()];
  }
  BrickMaterials& materials() const {
    const BrickSlab& slab = *BrickSlab::of(count());
    return slab.materials[count() - slab.counts.data()];
  }

  uintptr_t bits_ = 0;  // 0: none; odd: a full brick's material << 1 | 1; else the address of its count
};

// Ends many handles, which are none afterwards: their pools are locked once for many bricks that nobody else has. These
// are free at the latest when this object is gone. For one thread.
class EndOfBricks {
 public:
  EndOfBricks() = default;
  EndOfBricks(const EndOfBricks&) = delete;
  EndOfBricks& operator=(const EndOfBricks&) = delete;
  ~EndOfBricks() { give_back(); }
  void end(std::span<SharedBrick> handles) noexcept;

 private:
  void give_back() noexcept;

  std::array<std::atomic<uint32_t>*, 1024> last_;  // NOLINT: of bricks of one pool; `found_` of them are
  size_t found_ = 0;
};

// Sees a handle, and may exchange it for another of an equal brick.
using VisitBrick = std::function<void(SharedBrick& brick)>;

// What comes to be at a place: a whole brick, or none.
struct BrickPut {
  Int3 brick;
  SharedBrick value;
};

// A brick before and after a change; none: it was, or is, absent. Both are shared with whoever else has them, so a
// change costs no copy of voxels. Bricks next to each other along z that are none or full of one material, all of them
// the same before and the same after, are one change: a large shape of one material costs as many as it has rows.
struct BrickChange {
  Int3 brick;          // the first
  uint32_t count = 1;  // of bricks
  SharedBrick before, after;

  Int3 at(uint32_t number) const { return {brick.x, brick.y, int32_t(int64_t(brick.z) + number)}; }
  Int3 last() const { return at(count - 1); }
};
// Whether `next` goes on where `change` ends, so that both are one.
bool goes_on(const BrickChange& change, const BrickChange& next);
// Adds a change that comes after all of `changes`, to the last of them if it goes on where that ends.
void append_change(std::vector<BrickChange>& changes, BrickChange change);
// The number of bricks in all of them.
uint64_t bricks_in(std::span<const BrickChange> changes);

}  // namespace quarry
