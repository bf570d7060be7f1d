// occupancy.hpp - the occupancy pyramid: which parts of the world hold a brick. Derived from the hash grid's keys, for skipping
// empty space; updated by the batch that edits bricks and rebuilt from the keys at any time.
//
// Every word covers 4x4x4 children, bit = x | y<<2 | z<<4 of the child's low two coordinate bits, as in a brick's octants:
//   level 1   chunk32   one word per 32^3 voxels: which of its 4^3 bricks exist        in blocks of 64 words, see below
//   level 2   region    one word per 128^3 voxels: which of its 4^3 chunks have any    dense, 2^20 words    8 MiB
//   level 3   one word per 512^3 voxels                                                dense, 2^14 words  128 KiB
//   level 4   one word per 2048^3 voxels                                               dense, 2^8 words     2 KiB
// A region with any brick owns one block of 64 level-1 words (512 B, in the bit order of the region's word); block_of_region says
// which (dense, 2^20 x 32 bits, 4 MiB; 0 = the block that is always empty).
// Coordinates are biased so that the world's corner is 0: cell = (voxel - kWorldMin) >> shift, shift = 3 brick, 5 chunk, 7 region, 9, 11.
// Dense index: x | y << bits_x | z << (bits_x + bits_y), with the bits of the level: region 7/6/7, level 3 5/4/5, level 4 3/2/3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "voxel/coords.hpp"
#include "voxel/slab_array.hpp"

namespace quarry {

constexpr uint32_t kRegionWords = 1u << 20, kLevel3Words = 1u << 14, kLevel4Words = 1u << 8;
constexpr uint32_t kBlockWords = 64, kBlocksPerSlab = 1u << 12;  // 2 MiB

class OccupancyPyramid {
 public:
  // An empty pyramid: the dense part and the block that is always empty. Errors: out_of_memory.
  static Result<OccupancyPyramid> create(MemorySource& memory);
  OccupancyPyramid(OccupancyPyramid&&) noexcept;
  OccupancyPyramid& operator=(OccupancyPyramid&&) noexcept;
  ~OccupancyPyramid();

  // Keys whose bricks now exist / no longer exist; one that already does / does not changes nothing. One thread at a time.
  // Errors: out_of_memory, and then nothing has changed.
  Result<void> add(std::span<const uint32_t> keys);
  // Takes the memory that add() and remove() of so many keys need for their notes; remove() then needs none.
  void reserve_changes(size_t keys);
  void remove(std::span<const uint32_t> keys);
  void clear();
  Result<void> rebuild(std::span<const uint32_t> keys);

  bool has_brick(Int3 brick) const;
  std::vector<uint32_t> keys() const;  // of all bricks, sorted
  uint64_t level2(uint32_t index) const { return level2_words()[index]; }
  const uint64_t* level2_words() const { return static_cast<const uint64_t*>(dense_.data); }
  const uint64_t* level3_words() const { return level2_words() + kRegionWords; }
  const uint64_t* level4_words() const { return level3_words() + kLevel3Words; }
  const uint32_t* block_of_region() const { return reinterpret_cast<const uint32_t*>(level4_words() + kLevel4Words); }
  // The dense part: level 2, level 3, level 4, block_of_region, in this order, one block of memory.
  const MemoryBlock& dense() const { return dense_; }
  const SlabArray& block_slabs() const { return blocks_; }
  uint64_t size_bytes() const;
  // Regions whose block, words or block index changed since the last call, sorted: what a mirror on a GPU copies.
  std::vector<uint32_t> take_dirty_regions();

 private:
  explicit OccupancyPyramid(MemorySource& memory);
  uint64_t* dense_words() { return static_cast<uint64_t*>(dense_.data); }
  uint32_t* block_indices() { return reinterpret_cast<uint32_t*>(dense_words() + kRegionWords + kLevel3Words + kLevel4Words); }
  void mark_dirty(uint32_t region);

  MemorySource* memory_;
  MemoryBlock dense_;
  SlabArray blocks_;
  std::vector<uint32_t> free_blocks_;  // all of them zero
  uint32_t next_block_ = 1;
  std::vector<uint32_t> dirty_regions_;
  std::vector<uint8_t> region_is_dirty_;
};

// Where a brick's bit is. Shaders do the same arithmetic.
struct PyramidPlace {
  uint32_t region, region_bit;  // level-2 word and its bit: the chunk within the region, and the word within the region's block
  uint32_t chunk_bit;           // the brick within its chunk
  uint32_t level3, level3_bit;
  uint32_t level4, level4_bit;
};
inline PyramidPlace pyramid_place(Int3 brick) {
  const uint32_t x = uint32_t(brick.x + 1024), y = uint32_t(brick.y + 512), z = uint32_t(brick.z + 1024);
  const auto bit = [&](uint32_t shift) { return (x >> shift & 3u) | (y >> shift & 3u) << 2 | (z >> shift & 3u) << 4; };
  return {(x >> 4) | (y >> 4) << 7 | (z >> 4) << 13, bit(2), bit(0), (x >> 6) | (y >> 6) << 5 | (z >> 6) << 9, bit(4),
          (x >> 8) | (y >> 8) << 3 | (z >> 8) << 5, bit(6)};
}

}  // namespace quarry
