// SPDX-License-Identifier: Apache-2.0
// occupancy.hpp - the occupancy pyramid: which parts of the world hold a brick, and its index in the pool. It is
// derived from the hash grid, which stays authoritative. It skips empty space, and a ray that enters a brick finds it
// by counting bits instead of hashing. Each batch that edits bricks updates it; it can be rebuilt from keys and values
// at any time.
//
// Every level covers 4x4x4 children, bit = x | y<<2 | z<<4 of the child's low two coordinate bits, as in a brick's
// octants. A node's children are stored consecutively in the order of their bits, set ones only: a child's number is
// the count of lower set bits.
//
//   level 3   one node per 512^3 voxels, dense: nodes 0 .. 2^14 of the arena          256 KiB
//   level 2   128^3 voxels                                                            runs of nodes
//   level 1   32^3 voxels; its children are bricks                                    runs of nodes
//   table     one 32-bit brick index (the grid's value) for each brick of level 1     runs of indices
//
//   arena: | level 3 | run | run | free run | ...          granules of 16 bytes: one node, or four brick indices
//   node:  | mask 64 | first granule of the children's run 32 | granules that the run has room for 8 | its stamp 24 |
//
// One block of memory, so that a shader needs one address. It moves when it grows (block_id() changes). Runs have few
// sizes; freed ones are kept in lists by size.
//
// What the memory's source has published (MemorySource::epoch) stays as it is while a frame may read it: level 3 and a
// run are copied on the first write in an epoch, with the runs above. The old ones are free when the epoch is past. A
// run's stamp tells the epoch in which it was made. So an edit waits for no frame. Where nothing is published, nothing
// is copied.
//
// About 6 bytes a brick in worlds of surfaces. Coordinates are biased so
// that the world's corner is 0: cell = (voxel - kWorldMin) >> shift, shift = 3 brick, 5 level 1, 7 level 2, 9 level 3.
// Dense index: x | y << bits_x | z << (bits_x + bits_y), with the bits of the level: level 2 7/6/7 (dirty lists only),
// level 3 5/4/5.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "base/memory_source.hpp"
#include "voxel/bricks/coords.hpp"

namespace quarry {

struct OccupancyNode {
  uint64_t mask;   // the existing children
  uint32_t child;  // granule where their run starts; meaningless while mask is 0
  uint32_t run;    // granules of that run, and << 8 its stamp; 0 while mask is 0
  uint32_t room() const { return run & 255u; }
};

constexpr uint32_t kLevel2Nodes = 1u << 20, kLevel3Nodes = 1u << 14;
constexpr uint32_t kGranuleBytes = 16;

struct PyramidPlace;

class OccupancyPyramid {
 public:
  // An empty pyramid. Errors: out_of_memory.
  static Result<OccupancyPyramid> create(MemorySource& memory);
  OccupancyPyramid(OccupancyPyramid&&) noexcept;
  OccupancyPyramid& operator=(OccupancyPyramid&&) noexcept;
  ~OccupancyPyramid();

  // add: keys whose bricks now exist, with their pool indices; a known brick gets the new index. remove: keys whose
  // bricks no longer exist; unknown ones are ignored. One thread at a time. Errors: full (more nodes than 32 bits can
  // number), out_of_memory; then every brick is as before.
  Result<void> add(std::span<const uint32_t> keys, std::span<const uint32_t> bricks);
  // Reserves the bookkeeping memory of add(), remove() and replace() for this many keys.
  void reserve_changes(size_t keys);
  // Makes room for the copies of what is published that remove() and replace() of these keys write. Nothing else may
  // change in between. Errors: full, out_of_memory.
  Result<void> reserve_copies(std::initializer_list<std::span<const uint32_t>> keys);
  // After both, these allocate nothing.
  void remove(std::span<const uint32_t> keys);
  // Gives existing bricks other indices.
  void replace(std::span<const uint32_t> keys, std::span<const uint32_t> bricks);
  void clear();  // only if nothing is published
  // Moves to a smaller block: without spare room or, if edits are to come, with a sixty-fourth. id() changes. Errors:
  // out_of_memory; then nothing has changed.
  Result<void> shrink_to_fit(bool edits_to_come);
  Result<void> rebuild(std::span<const uint32_t> keys, std::span<const uint32_t> bricks);

  // The pool index of a brick, found the same way as in a shader.
  std::optional<uint32_t> find_brick(Int3 brick) const;
  bool has_brick(Int3 brick) const { return find_brick(brick).has_value(); }
  std::vector<uint32_t> keys() const;                                     // of all bricks, sorted
  void for_each_index(const std::function<void(uint32_t)>& visit) const;  // of each key's brick, in no order
  // Shows the bricks in a box of brick coordinates with their indices, in no order. It reads the nodes that meet it.
  void visit_box(const Box3& bricks, const std::function<void(Int3 brick, uint32_t index)>& visit) const;
  // The tight box of all bricks, in bricks, and the bricks that touch its faces. It reads only level 3 and the nodes at
  // the faces.
  Box3 brick_bounds(std::vector<Int3>* outermost = nullptr) const;

  // The arena. A node's children start at nodes()[child], the indices of one of level 1 at table(level1).
  const OccupancyNode* nodes() const { return static_cast<const OccupancyNode*>(block_.data); }
  // Level 3: kLevel3Nodes nodes. They start at this granule, which is 0 where nothing is published.
  const OccupancyNode* level3() const { return nodes() + level3_; }
  uint32_t level3_granule() const { return level3_; }
  const uint32_t* table(const OccupancyNode& level1) const {
    return reinterpret_cast<const uint32_t*>(nodes() + level1.child);
  }
  const MemoryBlock& block() const { return block_; }
  uint64_t id() const { return id_; }  // unique among the pyramids of this process; new after shrink_to_fit()
  uint64_t block_id() const { return block_id_; }  // unique among all blocks of all pyramids
  // Of the block, from its start; at least 64 granules follow.
  uint64_t used_bytes() const { return uint64_t(next_) * kGranuleBytes; }
  uint64_t size_bytes() const { return block_.size_bytes; }

  // Numbers of level-2 nodes that changed since the last call, sorted. A mirror on a GPU copies each with its level-3
  // node, that node's run, its own run and its children's tables.
  std::vector<uint32_t> take_dirty_level2();

 private:
  static constexpr std::array<uint32_t, 12> kRooms{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

  explicit OccupancyPyramid(MemorySource& memory);
  OccupancyNode* own() { return static_cast<OccupancyNode*>(block_.data); }
  Result<void> ensure_room(uint64_t granules, uint64_t to_come = 0);
  Result<void> move_to(uint64_t granules);
  uint32_t take_run(size_t size);
  void free_run(OccupancyNode& node);
  // Of what is written in the present epoch; 0 where nothing is published.
  uint32_t stamp() const;
  void begin_changes();
  void reserve_retired(size_t runs);
  Result<void> reserve_level3();
  void own_level3();
  void own_run(OccupancyNode& node);
  void forget_stamps();
  void* insert_child(OccupancyNode& node, uint32_t bit, size_t child_bytes);
  void remove_child(OccupancyNode& node, uint32_t bit, size_t child_bytes);
  void insert_bricks(OccupancyNode& level1, uint64_t reached);
  void remove_bricks(const PyramidPlace& at, uint64_t reached);
  const uint32_t* index_of(uint32_t key) const;  // null: no such brick
  void mark_dirty(uint32_t level2);

  MemorySource* memory_;
  MemoryBlock block_;
  uint64_t id_ = 0, block_id_ = 0;
  uint32_t next_ = kLevel3Nodes;                     // granules in use or in a list of free runs
  std::array<uint32_t, kRooms.size()> free_runs_{};  // heads of lists through the runs' first words; 0: none
  uint32_t level3_ = 0, level3_stamp_ = 0;
  struct Retired {
    uint64_t epoch;
    uint32_t first, size;  // granule, and number in kRooms; kRooms.size(): a level 3
  };
  std::vector<Retired> retired_;       // rising epochs
  std::vector<uint32_t> free_level3_;  // granules
  uint64_t stamps_since_ = 0;          // epochs / kStamps when all stamps were forgotten
  std::vector<uint32_t> dirty_level2_;
  std::vector<uint8_t> level2_is_dirty_;
};

// Where a brick's bits are. Shaders use the same arithmetic.
struct PyramidPlace {
  uint32_t level3, level3_bit;  // node 0 .. 2^14, and the level-2 node in it
  uint32_t level2_bit;          // the level-1 node in it
  uint32_t level1_bit;          // the brick in that
  uint32_t level2;              // number of the level-2 node, for dirty lists
};
inline PyramidPlace pyramid_place(Int3 brick) {
  const uint32_t x = uint32_t(brick.x + 1024), y = uint32_t(brick.y + 512), z = uint32_t(brick.z + 1024);
  const auto bit = [&](uint32_t shift) { return (x >> shift & 3u) | (y >> shift & 3u) << 2 | (z >> shift & 3u) << 4; };
  return {(x >> 6) | (y >> 6) << 5 | (z >> 6) << 9, bit(4), bit(2), bit(0), (x >> 4) | (y >> 4) << 7 | (z >> 4) << 13};
}
inline uint32_t level3_of_level2(uint32_t level2) {
  return (level2 >> 2 & 31u) | (level2 >> 9 & 15u) << 5 | (level2 >> 15) << 9;
}
inline uint32_t bit_of_level2(uint32_t level2) {
  return (level2 & 3u) | (level2 >> 7 & 3u) << 2 | (level2 >> 13 & 3u) << 4;
}

// The number of set bits of `mask` below `bit`: a child's number in its run.
uint32_t child_number(uint64_t mask, uint32_t bit);

}  // namespace quarry
