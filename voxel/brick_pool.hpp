// brick_pool.hpp - where bricks live: masks and materials in two slab arrays, with a free list.
// The index of a brick is the value that the hash grid holds for its key. When no index is left (`max_bricks`), allocate answers
// ErrorCode::full with both numbers; nothing that is there changes.
#pragma once

#include <cstdint>
#include <vector>

#include "voxel/brick.hpp"
#include "voxel/slab_array.hpp"

namespace quarry {

constexpr uint32_t kBricksPerSlab = 1u << 12;  // 256 KiB of masks, 2 MiB of materials

class BrickPool {
 public:
  explicit BrickPool(MemorySource& memory, uint32_t max_bricks = 0xFFFFFFFEu);

  // An index whose brick is empty. Freed indices come first, the lowest of them first, so that the same history gives the same
  // indices. One thread at a time. Errors: full, out_of_memory.
  Result<uint32_t> allocate();
  // Takes `count` at once; all or none.
  Result<std::vector<uint32_t>> allocate(size_t count);
  // Empties the brick and gives its index back. The index must be in use.
  void free(uint32_t index);

  BrickMask& mask(uint32_t index) { return *static_cast<BrickMask*>(masks_.at(index)); }
  const BrickMask& mask(uint32_t index) const { return *static_cast<const BrickMask*>(masks_.at(index)); }
  BrickMaterials& materials(uint32_t index) { return *static_cast<BrickMaterials*>(materials_.at(index)); }
  const BrickMaterials& materials(uint32_t index) const { return *static_cast<const BrickMaterials*>(materials_.at(index)); }
  Brick get(uint32_t index) const { return {mask(index), materials(index)}; }
  void put(uint32_t index, const Brick& brick) { mask(index) = brick.mask; materials(index) = brick.materials; }

  uint32_t live() const { return live_; }
  uint32_t high_water() const { return high_water_; }  // indices ever used: [0, high_water)
  uint64_t size_bytes() const { return masks_.size_bytes() + materials_.size_bytes(); }
  const SlabArray& mask_slabs() const { return masks_; }
  const SlabArray& material_slabs() const { return materials_; }

 private:
  SlabArray masks_, materials_;
  std::vector<uint32_t> free_;  // a min-heap
  uint32_t max_bricks_, live_ = 0, high_water_ = 0;
};

}  // namespace quarry
