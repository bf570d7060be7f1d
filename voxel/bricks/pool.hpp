// SPDX-License-Identifier: Apache-2.0
// pool.hpp - where bricks live: masks and materials in two slab arrays, with a free list.
// The index of a brick is the value that the hash grid holds for its key. When no index is left (`max_bricks`),
// allocate answers ErrorCode::full with both numbers; nothing that is there changes.
//
// A packed pool is for reading only: it has a material for set voxels alone, and no room to spare.
//
//   masks      64 B a brick, as in a pool under edit; the last slab is cut off behind the last brick
//   materials  | where each brick's materials start, a 32-bit number of words | brick 0's materials | brick 1's | ...
//              one byte for each set voxel of the brick in the order of the mask's bits, up to 3 bytes of nothing
//              behind the last. A voxel's byte is found by counting the mask's bits below its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "voxel/bricks/brick.hpp"
#include "voxel/bricks/slab_array.hpp"

namespace quarry {

constexpr uint32_t kBricksPerSlab = 1u << 12;  // 256 KiB of masks, 2 MiB of materials

class BrickPool {
 public:
  explicit BrickPool(MemorySource& memory, uint32_t max_bricks = 0xFFFFFFFEu);

  // A packed pool of bricks [0, indices.size()): those that `from` has at `indices`, in this order. A pass over their
  // masks and one over all of them, by all threads; the same bytes whatever their number. Errors: full (over 2^32 words
  // of materials), out_of_memory, device.
  static Result<BrickPool> pack(MemorySource& memory, const BrickPool& from, std::span<const uint32_t> indices);
  bool packed() const { return packed_; }

  // What changes a pool - the next seven - may be called for one that is not packed only.

  // An index whose brick is empty. Freed indices come first, the lowest of them first, so that the same history gives
  // the same indices. One thread at a time. Errors: full, out_of_memory.
  Result<uint32_t> allocate();
  // Takes `count` at once; all or none.
  Result<std::vector<uint32_t>> allocate(size_t count);
  // Empties the brick and gives its index back. The index must be in use.
  void free(uint32_t index);
  // For a pool that has nothing yet: the memory of that many bricks and no more. Errors: out_of_memory.
  Result<void> shrink_to_fit(uint32_t count);
  // Gives back the memory behind the last index that was ever used. No index changes; what comes next has an index that is up to a slab's
  // number of bricks higher, and other blocks may lie where the last ones did.
  void trim();

  BrickMaterials& materials(uint32_t index) { return *static_cast<BrickMaterials*>(materials_.at(index)); }
  void put(uint32_t index, const Brick& brick) { mask(index) = brick.mask; materials(index) = brick.materials; }

  BrickMask& mask(uint32_t index) { return *static_cast<BrickMask*>(masks_.at(index)); }
  const BrickMask& mask(uint32_t index) const { return *static_cast<const BrickMask*>(masks_.at(index)); }
  uint8_t material(uint32_t index, uint32_t voxel) const;  // 0: that voxel is not set
  Brick get(uint32_t index) const;

  uint32_t live() const { return live_; }
  size_t free_count() const { return free_.size(); }  // indices that were given back
  uint32_t high_water() const { return high_water_; }  // indices ever used are below it
  uint64_t size_bytes() const { return masks_.size_bytes() + materials_.size_bytes(); }
  const SlabArray& mask_slabs() const { return masks_; }
  const SlabArray& material_slabs() const { return materials_; }
  // Elements of material_slabs() that hold anything are below this number: 512 bytes each, also when packed.
  uint64_t material_elements() const { return packed_ ? materials_.capacity() : high_water_; }

 private:
  static constexpr uint32_t kWordsPerSlab = kBricksPerSlab * (sizeof(BrickMaterials) / 4);
  uint32_t* word(uint64_t index) const { return static_cast<uint32_t*>(materials_.slabs()[index / kWordsPerSlab].data) + index % kWordsPerSlab; }

  SlabArray masks_, materials_;
  std::vector<uint32_t> free_;  // a min-heap
  uint32_t max_bricks_, live_ = 0, high_water_ = 0;
  bool packed_ = false;
};

}  // namespace quarry
