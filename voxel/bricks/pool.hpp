// SPDX-License-Identifier: Apache-2.0
// pool.hpp - storage of bricks: masks and materials in two slab arrays, with a free list. The index of a brick is the
// value that the hash grid holds for its key. Without a free index (`max_bricks`), allocate returns ErrorCode::full
// with both numbers and changes nothing.
//
// Bricks that are full of one material need not be stored for each key: full() gives one index a material, which any
// number of keys may have.
//
// A packed pool is read-only: it has materials for set voxels only, and no spare room.
//
//   masks      64 B a brick, as in a pool under edit; the last slab ends after the last brick
//   materials  | where each brick's materials start, a 32-bit number of words | brick 0's materials | brick 1's | ...
//              one byte for each set voxel of the brick in the order of the mask's bits, then up to 3 bytes of padding.
//              A voxel's byte is found by counting the mask's bits below its own.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "voxel/bricks/brick.hpp"
#include "voxel/bricks/slab_array.hpp"

namespace quarry {

constexpr uint32_t kBricksPerSlab = 1u << 12;     // 256 KiB of masks, 2 MiB of materials
constexpr uint32_t kNoBrick = kQryReservedValue;  // what the hash grid finds for an absent key

class BrickPool {
 public:
  explicit BrickPool(MemorySource& memory, uint32_t max_bricks = 0xFFFFFFFEu);

  // Makes a packed pool of bricks [0, indices.size()): the bricks of `from` at `indices`, in this order. All threads
  // make a pass over their masks and a pass over the whole bricks; the bytes do not depend on the number of threads.
  // Errors: full (over 2^32 words of materials), out_of_memory, device.
  static Result<BrickPool> pack(MemorySource& memory, const BrickPool& from, std::span<const uint32_t> indices);
  bool packed() const { return packed_; }

  // The next nine change the pool: they must not be called for a packed one.

  // Returns an index whose brick is empty. The lowest freed index comes first, so that the same history gives the same
  // indices. One thread at a time. Errors: full, out_of_memory.
  Result<uint32_t> allocate();
  // Allocates `count` indices at once; all or none.
  Result<std::vector<uint32_t>> allocate(size_t count);
  // Empties the brick and frees its index. The index must be in use, and not one of full().
  void free(uint32_t index);
  // Stores the full brick of each of these materials that has none yet. Errors: full, out_of_memory; then none.
  Result<void> store_full(std::span<const uint8_t> materials);
  // Frees the full bricks of these materials, which no key may have any more. Those that have none are passed over.
  void free_full(std::span<const uint8_t> materials);
  // Allocates memory for exactly `count` bricks. The pool must be empty. Errors: out_of_memory.
  Result<void> shrink_to_fit(uint32_t count);
  // Frees the memory after the last index that was ever used. No index changes. Later indices are up to a slab's number
  // of bricks higher, and blocks may get other addresses than the freed ones.
  void trim();

  BrickMaterials& materials(uint32_t index) { return *static_cast<BrickMaterials*>(materials_.at(index)); }
  void put(uint32_t index, const Brick& brick) {
    mask(index) = brick.mask;
    materials(index) = brick.materials;
  }

  BrickMask& mask(uint32_t index) { return *static_cast<BrickMask*>(masks_.at(index)); }
  const BrickMask& mask(uint32_t index) const { return *static_cast<const BrickMask*>(masks_.at(index)); }
  uint8_t material(uint32_t index, uint32_t voxel) const;  // 0: that voxel is not set
  // The index of the full brick of a material; kNoBrick: not stored.
  uint32_t full(uint8_t material) const { return full_[material]; }
  // Of the material whose full() has this index; 0: of none, the brick is the key's own.
  uint8_t full_material(uint32_t index) const;
  // All of them, as they are in another pool after bricks were moved there.
  void set_full(const std::array<uint32_t, 256>& indices) { full_ = indices; }
  Brick get(uint32_t index) const;

  uint32_t live() const { return live_; }
  size_t free_count() const { return free_.size(); }   // freed indices
  uint32_t high_water() const { return high_water_; }  // all indices ever used are below it
  uint64_t size_bytes() const { return masks_.size_bytes() + materials_.size_bytes(); }
  const SlabArray& mask_slabs() const { return masks_; }
  const SlabArray& material_slabs() const { return materials_; }
  // All elements of material_slabs() in use are below this number: 512 bytes each, also when packed.
  uint64_t material_elements() const { return packed_ ? materials_.capacity() : high_water_; }

 private:
  static constexpr uint32_t kWordsPerSlab = kBricksPerSlab * (sizeof(BrickMaterials) / 4);
  uint32_t* word(uint64_t index) const {
    return static_cast<uint32_t*>(materials_.slabs()[index / kWordsPerSlab].data) + index % kWordsPerSlab;
  }

  SlabArray masks_, materials_;
  std::vector<uint32_t> free_;  // a min-heap
  std::array<uint32_t, 256> full_;
  uint32_t max_bricks_, live_ = 0, high_water_ = 0;
  bool packed_ = false;
};

}  // namespace quarry
