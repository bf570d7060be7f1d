// SPDX-License-Identifier: Apache-2.0
// layout.hpp - a world's memory on a device: arrays that grow without moving, and one block of counters. Kernels, and
// the host threads that stand in for them, read and write it; the host only asks for the counters.
//
//   grid        key -> brick index (hashgrid/pairs/layout.h)
//   masks       64 B a brick    } by index; an index below kFullBricks is the brick full of material index + 1, which
//   materials   512 B a brick   } any number of keys may have
//   nodes       the occupancy pyramid (voxel/bricks/occupancy.hpp): level 3 first, then copies of it for frames, then
//               runs, each written once
//   records     key, index before, index after: 12 B a changed brick
//   steps       the history: which records belong to each
//   free        indices of bricks that nobody holds, a stack
//   packed      instead of materials, of a world that is packed for reading (voxel/bricks/pool.hpp): word `index` is
//   the
//               start, in words, of the materials of that brick's set voxels, 0 of a place that is free
//
// OWNERSHIP. An index that is not of a full brick is held by the grid, or by one record: a record that is applied holds
// its index before, one that is undone its index after. What neither holds is free.
#pragma once

#include <cstdint>

#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/stats_sums.hpp"
#include "voxel/bricks/occupancy.hpp"
#include "voxel/shapes/shape.hpp"

namespace quarry::device {

// Runs begin behind level 3 and places for copies of it, which frames read while edits change it.
constexpr uint32_t kTopCopies = 8, kFirstRun = kLevel3Nodes * (1 + kTopCopies);
constexpr uint32_t kFullBricks = 255;
constexpr uint32_t kNone = 0xFFFFFFFFu;  // no brick
QRY_HD constexpr uint32_t full_index(uint8_t material) { return material - 1u; }
QRY_HD constexpr bool is_full_index(uint32_t index) { return index < kFullBricks; }
QRY_HD constexpr bool is_stored_index(uint32_t index) { return index >= kFullBricks && index != kNone; }

struct Record {
  uint32_t key, before, after;
};

// One step of the history.
struct Step {
  uint64_t first;  // record
  uint32_t count;  // of records; some may change nothing
  uint32_t reserved;
  int64_t more;      // voxels more after it than before
  uint64_t changed;  // voxels that differ
};

// What of the memory an edit lacked.
enum Missing : uint32_t {
  kMissingRecords = 1,
  kMissingScratch = 2,
  kMissingBricks = 4,
  kMissingNodes = 8,
  kMissingKeys = 16,   // the grid would be fuller than it may be
  kMissingPlace = 32,  // a key found no place in the grid
  kMissingSteps = 64,
};

enum class Answer : uint32_t {
  none,  // it has not run
  done,
  unchanged,  // it would change no voxel, or there is no such step
  refused,    // room was missing: nothing has changed
  skipped,    // an edit before it was refused: nothing has changed
};

// What became of an edit, where the host sees it.
struct Outcome {
  uint64_t ticket;  // written last
  uint64_t changed;
  uint64_t version;
  Answer answer;
  uint32_t missing;
  // What is in use after it.
  uint64_t records;
  uint32_t bricks, nodes, keys;
  uint32_t nodes_live;  // of the nodes those that the pyramid reaches, level 3 apart
};

// Voxels in which two worlds differ: those that only the other has, that only this one has, or whose materials do.
enum Difference : uint32_t { kAdded, kRemoved, kRecoloured };
struct Differing {
  uint64_t voxels;
  int32_t low[3], high[3];  // in voxels; low is above high: there are none
};

// The counters: of the world, and of the edit under way. One block of the device's memory.
struct Control {
  // The world.
  uint64_t voxels, version;
  uint64_t record_top;
  uint32_t bricks_top, free_count;
  uint32_t keys;
  uint32_t nodes_top;   // granules
  uint32_t nodes_live;  // granules that the pyramid reaches, level 3 apart
  uint32_t step_count, step_position;
  uint32_t stopped;  // an edit lacked room: what comes after does nothing until the host has made some

  // The edit under way: 0 when it begins. One that was refused leaves them, for the host.
  uint32_t missing;
  uint32_t skip;                       // it changes nothing
  uint32_t forward;                    // 0: it goes from `after` to `before`
  uint32_t is_edit;                    // its records are new
  uint64_t first;                      // its first record
  uint32_t touched;                    // its records
  uint32_t cut;                        // bricks that are made
  uint32_t tiles;                      // of a capsule
  uint32_t unused;                     // places of bricks that came to nothing
  uint32_t inserted, erased;           // keys
  uint32_t chunks, regions, tops;      // nodes of levels 1, 2 and 3 that change
  uint32_t nodes_before, freed_nodes;  // granules: nodes_top when it began; those that it reaches no more
  uint64_t changed;
  int64_t more;
  // What it leaves to be freed.
  uint32_t drop_unused;
  uint32_t drop_before;  // 1: of the records the index before, not the one after
  uint32_t retired[2];   // indices in each of Memory::retired
  uint32_t reserved2;
  uint32_t blocks_done;           // of the step that runs
  uint64_t drop_first, drop_end;  // records that can no longer be redone
  // For the host's questions.
  int32_t low[3], high[3];
  uint32_t needed_nodes, reserved;
  // Of the list of voxels that is grouped (lists.hpp).
  uint32_t list_bricks;   // distinct ones; of steps that become one: its records; of a growth: nodes of level 1
  int32_t list_outside;   // the first voxel that is outside of the world
  uint32_t list_full;     // they are more than there is room for, in a flood; of a growth: the world has no such brick
  uint32_t list_regions;  // nodes of level 2, of a world that is grown or eroded
  uint32_t list_whole;    // of two worlds combined: bricks that become full or none; list_bricks are the others
  // Of a flood (flood.hpp), whose bricks are list_bricks.
  uint32_t flood_material;  // 0: it begins in an empty voxel
  uint32_t flood_round;
  uint32_t flood_known;      // bricks that the list had when the round began
  uint32_t flood_all;        // 1: all bricks take part in the round
  uint32_t flood_fronts[2];  // how many do, by Flood::frontier
  // Of the parts of a world (parts.hpp), whose bricks are list_bricks.
  uint32_t part_labels;  // bricks with several pieces
  uint32_t part_pieces;  // that single bricks fall into
  uint32_t part_count;
  uint32_t contributions;  // of placed volumes (flatten.hpp)
  // Of bricks that move: how many are to, and how many places are free before and behind.
  uint32_t moves, places_before, places_behind;
  // Of a world that is packed, or would be (pack.hpp): words of materials, and of the starts of each place's.
  uint64_t packed_words;
  // Of the grid, when it was asked for (grid_stats.hpp).
  hashgrid::kernels::StatsSums grid;
  // Of a world's voxels, or of two worlds (compare.hpp).
  uint64_t place_sum, colour_sum, alike;
  Differing differing[3];
};

// A brick that an edit makes.
struct Cut {
  uint32_t record;
  uint32_t listed;  // its number in the list, for an edit by a list
};

// A box of the world's bricks, each of which has a number in it of so many bits.
struct BrickBox {
  int32_t low[3];
  uint32_t bits[3];  // that tell its bricks apart
};
QRY_HD inline uint32_t number_in(const BrickBox& box, Int3 brick) {
  return uint32_t(brick.x - box.low[0]) | uint32_t(brick.y - box.low[1]) << box.bits[0] |
         uint32_t(brick.z - box.low[2]) << (box.bits[0] + box.bits[1]);
}
QRY_HD inline Int3 brick_in(const BrickBox& box, uint32_t number) {
  const uint32_t yz = number >> box.bits[0];
  return {box.low[0] + int32_t(number & ((1u << box.bits[0]) - 1u)),
          box.low[1] + int32_t(yz & ((1u << box.bits[1]) - 1u)), box.low[2] + int32_t(yz >> box.bits[1])};
}

// A list of voxels on its way to bricks (lists.hpp): words, as lists come over the bus, or, where those are null, two
// arrays. A word has x, y and z from the world's corner in 14, 13 and 14 bits, x lowest, and above them the material.
struct ListedVoxels {
  const uint64_t* words;
  const int32_t* xyz;  // 3 a voxel
  const uint8_t* materials;
  uint32_t* bricks;  // of each voxel its brick's number in the list's box; sorted later
  uint32_t* packed;  // its place in the brick and its material, sorted with them
  uint32_t* starts;  // of each brick: where it begins among the sorted
  uint32_t count;    // voxels
  BrickBox box;
};
QRY_HD inline Int3 listed_voxel(const ListedVoxels& list, uint64_t number) {
  if (!list.words) {
    const int32_t* const voxel = list.xyz + 3 * number;
    return {voxel[0], voxel[1], voxel[2]};
  }
  const uint64_t word = list.words[number];
  return {int32_t(word & 0x3FFFu) + kWorldMin.x, int32_t(word >> 14 & 0x1FFFu) + kWorldMin.y,
          int32_t(word >> 27 & 0x3FFFu) + kWorldMin.z};
}
QRY_HD inline uint8_t listed_material(const ListedVoxels& list, uint64_t number) {
  return list.words ? uint8_t(list.words[number] >> 41) : list.materials[number];
}
constexpr int32_t kNoVoxel = 0x7FFFFFFF;    // of a list
constexpr uint64_t kMostListed = 1u << 26;  // voxels, by what the memory for them may be

// A dense box of voxels, x fastest, and the bricks that it meets.
struct DenseBox {
  uint8_t* voxels;
  int32_t min[3], max[3];  // of the box, in voxels
  int32_t first[3];        // brick
  uint32_t bricks[3];
};

// The numbers of keys, each key once, by linear probing (flood.hpp).
struct KeyTable {
  uint32_t* slots;     // keys
  uint32_t* numbers;   // of each slot: its key's
  uint32_t last_slot;  // slots are a power of two; this is one less
};

// What is connected with a voxel, on its way to a list of bricks (flood.hpp): arrays by a brick's number in the list.
// What is reached of each brick is in Memory::listed_masks.
struct Flood {
  KeyTable table;
  uint64_t* same;         // 8 words a brick: its voxels of the material; all ones until that is known
  uint32_t* queued;       // the last round that it takes part in
  uint32_t* frontier[2];  // bricks that take part in rounds with an even number, and in those with an odd one
  uint32_t brick_room;
};
constexpr uint64_t kMostFlooded = 1u << 24;  // bricks

// What of one brick is connected within it: a piece.
struct PartPiece {
  uint32_t brick;   // its number
  uint32_t planes;  // that it has voxels in: a bit for each x, y and z, from bits 0, 8 and 16 on
  uint32_t first;   // of its voxels the first in the order of z, then y, then x: x | y << 3 | z << 6
  uint32_t parent;  // another piece of its part, with a lower number; itself: it is the root
};
// A part, as the host sees it.
struct PartFound {
  unsigned long long voxels;
  unsigned long long
      first;  // of its pieces the lowest place of the brick in the order of x, y, z, then PartPiece::first
  unsigned long long material;  // of each material how many voxels, << 8, | 255 - material: the highest
  int32_t low[3], high[3];      // in voxels from the world's corner
};
// The parts of a world on their way to a table (parts.hpp). Its bricks' numbers are in Flood::table.
struct Parts {
  // By a brick's number.
  uint32_t* keys;
  uint32_t* indices;
  uint32_t* firsts;  // the number of its first piece
  uint32_t* labels;  // where its voxels' pieces are; kNone: it is one piece
  uint32_t brick_room;
  uint64_t* voxel_labels;  // 64 words a brick: of each voxel, in the order of z, y, x, its piece's number in the brick
  uint32_t label_room;     // bricks
  PartPiece* pieces;
  uint32_t* numbers;  // of a piece that is a root: its part's
  uint32_t piece_room;
  PartFound* found;
  // How many voxels of a part have a material, by linear probing. Keys are part << 8 | material, or kNoShare.
  unsigned long long *share_keys, *share_counts;
  uint32_t last_share;   // slots are a power of two; this is one less
  const uint8_t* keeps;  // of each part: 1: it stays
};
constexpr unsigned long long kNoShare = ~0ull;

// A volume as it is placed in a world: each of its voxels turned about the volume's origin, then shifted.
struct Placed {
  uint32_t first_pair;   // of its pairs with the volume's bricks, among those of all placed volumes
  uint32_t first_brick;  // of the volume
  uint32_t turn;         // of each axis of the world, from bit 3 * axis on: the volume's axis, | 4: backwards
  int32_t offset[3];     // voxels
};
// Placed volumes on their way to bricks of a world (flatten.hpp). What a brick of a volume gives a brick of the world
// is a contribution: one of its up to eight parts, for the eight bricks of the world that it may meet.
struct PlacedBricks {
  // Of each brick of the volumes, those of a volume one after the other.
  Int3* at;           // in its volume
  uint32_t* indices;  // as those of the world: it is full, or kFullBricks and its number among those that are not
  uint64_t* masks;    // of the latter: 8 words a brick
  const uint64_t* materials;  // 64 words a brick
  // Of bricks that have been sent, of any volumes: their numbers among all, and the same of them.
  const uint32_t *sent_numbers, *sent_indices;
  const Int3* sent_at;
  const Placed* placed;   // in the order of precedence: where several have a voxel it is the first one's
  uint32_t placed_count;  // behind them is one more, where their pairs end
  uint32_t pairs;
  uint8_t* parts;    // of each pair: which have voxels
  uint32_t* before;  // of each run of pairs: the number of its contributions; then of those before it
  // Of each contribution, sorted by brick, and those of a brick by precedence.
  uint32_t* bricks;   // of the world, by number in `box`
  uint32_t* sources;  // pair << 3 | part
  uint32_t count;
  // Where those of a brick begin: of bricks that become full from the first one on, of others from the last one on.
  uint32_t* starts;
  uint32_t first_made;  // of the others: how many are made already
  BrickBox box;
};

// Where bricks move when the pool is made smaller (growth.hpp): those at `first` and behind it.
struct BrickMoves {
  uint32_t first, end;
  uint32_t* to;      // of each of them its new place, 0: it stays; null: nothing moves
  uint32_t* places;  // free ones before `first`
  uint32_t* behind;  // free ones that are not
};

// Steps of the history that become one (growth.hpp): what is read of their records, and what these become.
struct JoinedSteps {
  // Sorted by key; records of one key in the order of the steps.
  uint32_t* keys;
  uint32_t* numbers;  // of the records, from `first` on
  uint64_t first;
  uint32_t count;  // of records
  Record* to;
};

// A world on its way to its packed form (pack.hpp).
struct Packing {
  uint32_t places;   // of the pool, that are used or free
  uint32_t* words;   // of each: how many the materials of its brick take, 0: it is free
  uint64_t* before;  // of each run of places: their words; then all words before them
};

// Of a world that this one is combined with: what is read of it (algebra.hpp).
struct OtherWorld {
  hashgrid::GridView grid;
  const uint64_t *masks, *materials;
  const uint32_t* packed;
};
// What a world becomes: voxels of either; of both; of the world alone. Where it has a voxel its own material stays.
enum class Combination : uint8_t { union_of, intersection, difference };

// A node of level 1 of a world that is grown or eroded, and what becomes of its bricks (algebra.hpp).
struct MorphedNode {
  uint64_t changes, made;  // bricks that change; those of them that get a place
  uint32_t cell;           // of level 1, from the world's corner: x | y << 9 | z << 17
  uint32_t first_record;   // of the edit's
};
constexpr uint32_t kScratchOfNode = 4;  // such a node for so much of Memory::scratch_room

// All of it, as kernels get it. Trivially copyable.
struct Memory {
  hashgrid::GridView grid;
  hashgrid::GridView old_grid;  // where keys come from when the grid grows
  uint32_t grid_limit;          // keys
  uint64_t* masks;              // 8 words a brick
  uint64_t* materials;          // 64 words a brick; no memory is there while the world is packed
  uint32_t* packed;             // null: it is not
  uint32_t brick_room;
  OccupancyNode* nodes;
  uint32_t node_room;              // granules
  const OccupancyNode* old_nodes;  // where nodes come from when the pyramid is written without gaps
  Record* records;
  uint64_t record_room;
  Step* steps;
  uint32_t step_room;
  uint32_t* free_bricks;  // brick_room of them
  uint32_t* retired[2];   // as many: of bricks that frames may still read
  Control* control;
  Outcome* outcomes;  // kOutcomes of them, where the host sees them
  // Of the edit under way.
  Cut* cuts;
  uint32_t* unused;
  uint32_t scratch_room;  // of each of these
  uint32_t* tiles;        // of a capsule: numbers of cells of 8^3 bricks
  // An edit by a list: keys, each once. The first EditCall::listed_full of these bricks have a material that fills
  // each, 0 for none; the others have which voxels, or null for all, and what these become, or null for a mode. What is
  // read is written there too.
  uint32_t* listed_keys;
  uint8_t* listed_full;
  uint64_t* listed_masks;      // 8 words a brick
  uint64_t* listed_materials;  // 64 words a brick, 0: removed
  ListedVoxels voxels;
  DenseBox box;
  Flood flood;
  Parts parts;
  PlacedBricks placed;
  OtherWorld other;
  const uint32_t* looks;  // of each material, 256 of this world, then of the other one: equal ones are alike; or
                          // colours; or what it becomes
  MorphedNode* morphed;   // of a world that is grown or eroded; its nodes of level 1 that have bricks that may change
  uint64_t* touched2;     // of each level-2 node: its children that change
  uint64_t* touched3;     // of each level-3 node
  uint32_t* numbers2;     // of each level-2 node: its number in regions
  uint32_t* regions;      // level-2 nodes that change
  uint32_t* tops;         // level-3 nodes that change
  OccupancyNode* made2;   // what the level-2 nodes become, by number
  BrickMoves moves;
  JoinedSteps joined;
  Packing packing;
};

constexpr uint32_t kOutcomes = 4096;

// One edit, as kernels get it.
struct EditCall {
  SolidShape shape;  // its box is in the world
  Mode mode;
  uint8_t material;  // what the voxels become; 0: removed
  uint8_t from;
  // Of its box: tiles of 8^3 bricks, from the world's corner.
  uint32_t first_tile[3], tiles[3];
  uint32_t listed;  // bricks, of an edit by a list
  uint32_t listed_full;
  uint32_t hold;     // bricks that nobody holds any more: 0: are free; 1, 2: go to that list of Memory::retired
  uint32_t no_step;  // 1: it is no step of the history, which holds nothing of what it replaces
  Combination combination;
  uint8_t fills;        // 1: a list is written; 0: its bricks are counted
  uint8_t grows;        // 1: by a voxel, 0: it is eroded
  uint8_t neighbours;   // of a voxel: 6, 18 or 26
  uint8_t same_looks;   // 1: of two worlds each material is alike in both
  uint8_t walks_other;  // 1: of two worlds compared the other's grid is walked, for bricks that only it has
  uint8_t maps;         // 1: what comes from the other world gets the material that `looks` has for it
  uint64_t ticket;
};

}  // namespace quarry::device
