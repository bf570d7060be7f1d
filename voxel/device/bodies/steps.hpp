// SPDX-License-Identifier: Apache-2.0
// steps.hpp - the steps of an edit, each over all of its bricks: one text for CUDA's kernels and for the host threads
// that run the same bodies (emulated.cpp).
//
//   touch     bricks of the shape: the records, with what each brick was, and what it becomes if it is none or full
//             after; a place for each other                                     (find_tiles before it, for capsules)
//   cut       the bricks that are made; what came of them; is there room for all of it?
//   morph     instead of both: bricks of a world that grows or is eroded by a voxel (algebra.hpp)
//   settle    instead of both: the records of the step that is undone or redone
//   keys      pairs inserted and assigned;   erase: pairs erased
//   regions   nodes of levels 1 and 2, each written anew
//   tops      those of level 3; the counters of the world, the step of the history, the answer to the host
//   release   indices that nobody holds any more
//   roll_back if a key found no place: what `keys` did is undone
//
// Until `keys` an edit writes only what nobody reads. A step that lacks room says so in Control::missing; the steps
// after it then do nothing, the world is as before, and so are all edits until the host has made room. Nothing is read
// back between the steps. One order of threads is as good as another. Literature: the order of the work is that of a
// GPU's dynamic structures, after S. Ashkiani et al., "A Dynamic Hash Table for the GPU", 2018, whose updates come in
// batches too; nodes that are written once and found from one root are a persistent tree, after J. R. Driscoll et al.,
// "Making Data Structures Persistent", 1989.
#pragma once

#include <cstddef>

#include "voxel/device/bodies/atomics.hpp"
#include "voxel/device/bodies/layout.hpp"
#include "voxel/rays/trace.hpp"
#include "voxel/shapes/change.hpp"

namespace quarry::device {

// What a thread adds up over its items; added to Control when it has done all of them.
struct Sums {
  uint64_t changed = 0;
  int64_t more = 0;
  uint32_t inserted = 0, erased = 0, chunks = 0, reserved = 0;
};

// Adds them up: to those of a block, or to Control.
template <class Total>
QRY_HD inline void add_sums(Total& total, const Sums& sums) {
  if (sums.changed) add(total.changed, sums.changed);
  if (sums.more) add(reinterpret_cast<uint64_t&>(total.more), uint64_t(sums.more));
  if (sums.inserted) fetch_add(total.inserted, sums.inserted);
  if (sums.erased) fetch_add(total.erased, sums.erased);
  if (sums.chunks) fetch_add(total.chunks, sums.chunks);
}

// The same of a block of threads, which has less than 2^31 voxels.
struct BlockSums {
  uint32_t changed, more, inserted, erased, chunks;
  QRY_HD void take(const Sums& sums) {
    add_together(changed, uint32_t(sums.changed));
    add_together(more, uint32_t(sums.more));
    add_together(inserted, sums.inserted);
    add_together(erased, sums.erased);
    add_together(chunks, sums.chunks);
  }
  QRY_HD void add_to(Control& c) const {
    Sums sums;
    sums.changed = changed;
    sums.more = int32_t(more);
    sums.inserted = inserted;
    sums.erased = erased;
    sums.chunks = chunks;
    add_sums(c, sums);
  }
};

// The number of set bits of the mask below `bit`: a child's number in its run.
QRY_HD inline uint32_t number_in_run(uint64_t mask, uint32_t bit) {
  return bit_count(mask & ((uint64_t(1) << bit) - 1u));
}
// Bits 0, 1 of each of the cell's coordinates, as a child's number.
QRY_HD inline uint32_t child_bit(uint32_t x, uint32_t y, uint32_t z) {
  return (x & 3u) | (y & 3u) << 2 | (z & 3u) << 4;
}
QRY_HD inline uint32_t level2_number(uint32_t x, uint32_t y, uint32_t z) { return x | y << 7 | z << 13; }
QRY_HD inline uint32_t level3_number(uint32_t x, uint32_t y, uint32_t z) { return x | y << 5 | z << 9; }

// Each lane's number becomes the sum of those of all lanes up to it, by W. D. Hillis and G. L. Steele, "Data Parallel
// Algorithms", 1986. Returns which of the two rows has them; the numbers are in the first one.
template <class Number, uint32_t kLanes, class Block>
QRY_HD inline uint32_t sum_up(Number (&sums)[2][kLanes], Block& block) {
  uint32_t from = 0;
  for (uint32_t reach = 1; reach < kLanes; reach *= 2, from ^= 1u)
    block.each([&](uint32_t lane) {
      sums[from ^ 1u][lane] = sums[from][lane] + (lane >= reach ? sums[from][lane - reach] : 0);
    });
  return from;
}

// Nothing is done: it is refused, or it changes nothing, or one before it was refused.
QRY_HD inline bool idle(const Memory& m) { return (m.control->stopped | m.control->skip | m.control->missing) != 0; }

// The two sides of a record, in the direction in which it is played.
QRY_HD inline uint32_t from_index(const Memory& m, const Record& r) { return m.control->forward ? r.before : r.after; }
QRY_HD inline uint32_t to_index(const Memory& m, const Record& r) { return m.control->forward ? r.after : r.before; }

// Notes the pyramid's nodes above bricks of a level-1 cell, x, y and z >> 2 of a key, whose indices change.
QRY_HD inline void mark_chunk(const Memory& m, uint32_t x, uint32_t y, uint32_t z, Sums& sums) {
  const uint32_t region = level2_number(x >> 2, y >> 2, z >> 2);
  const uint64_t bit = uint64_t(1) << child_bit(x, y, z);
  if (peek(m.touched2[region]) & bit) return;
  const uint64_t before = fetch_or(m.touched2[region], bit);
  if (before & bit) return;
  ++sums.chunks;
  if (before) return;
  const uint32_t number = push(m.control->regions);
  m.regions[number] = region;
  m.numbers2[region] = number;
  const uint32_t top = level3_number(x >> 4, y >> 4, z >> 4);
  if (fetch_or(m.touched3[top], uint64_t(1) << child_bit(x >> 2, y >> 2, z >> 2)) == 0)
    m.tops[push(m.control->tops)] = top;
}
// The same for a brick. Those of a cell often come together.
QRY_HD inline void mark(const Memory& m, uint32_t key, Sums& sums) {
  const uint32_t x = (key & 2047u) >> 2, y = (key >> 11 & 1023u) >> 2, z = key >> 23;
  if (first_of_equal(x | y << 9 | z << 17)) mark_chunk(m, x, y, z, sums);
}

// A pair of the grid, by the number of its word in the table.
struct Pair {
  bool there;
  uint32_t key, index;
};
QRY_HD inline Pair pair_at(const hashgrid::GridView& grid, uint64_t word_number) {
  if (word_number % kQryPageWords < kQryStateSectors * 4u) return {false, 0, 0};
  const uint64_t word = grid.words[word_number];
  return {uint32_t(word) != kQryReservedKey, qry_key_of_stored(uint32_t(word), grid.locality), uint32_t(word >> 32)};
}

// ---- touch

// Where the number-th brick of this edit is made: the free ones first.
QRY_HD inline uint32_t place_of(const Memory& m, uint32_t number) {
  const Control& c = *m.control;
  return number < c.free_count ? m.free_bricks[c.free_count - 1 - number] : c.bricks_top + (number - c.free_count);
}

QRY_HD inline uint32_t voxels_of(const Memory& m, uint32_t index) {
  if (index == kNone) return 0;
  if (is_full_index(index)) return kVoxelsPerBrick;
  uint32_t count = 0;
  for (uint32_t w = 0; w < 8; ++w) count += bit_count(m.masks[size_t(index) * 8 + w]);
  return count;
}

// True if voxels that are not there may come to be.
QRY_HD inline bool sets_absent(const EditCall& call) {
  return call.material != 0 && (call.mode == Mode::add || call.mode == Mode::fill);
}

// Of the set voxels of a mask: how many come before the eight with this number.
QRY_HD inline uint32_t set_before(const uint64_t* mask, uint32_t at) {
  const uint32_t octant = at >> 3, shift = (at & 7u) * 8;
  uint32_t before = bit_count(mask[octant] & ((uint64_t(1) << shift) - 1u));
  for (uint32_t i = 0; i < octant; ++i) before += bit_count(mask[i]);
  return before;
}
QRY_HD inline uint32_t eight_of_mask(const uint64_t* mask, uint32_t at) {
  return uint32_t(mask[at >> 3] >> ((at & 7u) * 8) & 0xFFu);
}

// The materials of eight voxels of a stored brick, number `at` of the 64 in the order of its mask's bytes; of a world
// or of another one (OtherWorld). Steps of an edit read Memory::materials: it has unpacked its world before.
template <class World>
QRY_HD inline uint64_t eight_materials(const World& world, uint32_t index, uint32_t at) {
  if (!world.packed) return world.materials[size_t(index) * 64 + at];
  const uint64_t* const mask = world.masks + size_t(index) * 8;
  uint32_t set = eight_of_mask(mask, at);
  if (set == 0) return 0;
  const auto* from = reinterpret_cast<const uint8_t*>(world.packed + world.packed[index]) + set_before(mask, at);
  uint64_t eight = 0;
  for (; set; set &= set - 1) eight |= uint64_t(*from++) << (8 * lowest_bit(set));
  return eight;
}

// What an edit does to a brick.
enum class Fate : uint32_t { stays, whole, cut };

// holds(): true if all voxels of the brick are in the shape. False may be wrong.
template <class Holds>
QRY_HD inline Fate fate_of(const EditCall& call, uint32_t before, const Holds& holds) {
  if (before == kNone && !sets_absent(call)) return Fate::stays;
  const bool full = before != kNone && is_full_index(before);
  if (full && (call.mode == Mode::add || (call.material && before == full_index(call.material)) ||
               (call.mode == Mode::replace && before != full_index(call.from))))
    return Fate::stays;
  return (before == kNone || full || call.mode == Mode::remove) && holds() ? Fate::whole : Fate::cut;
}
QRY_HD inline Fate fate_of(const EditCall& call, Int3 brick, uint32_t before) {
  return fate_of(call, before, [&] { return call.shape.holds(brick); });
}

// Adds what becomes of one brick.
QRY_HD inline void count_change(Sums& sums, uint32_t before, uint32_t after, uint32_t changed, int64_t more) {
  sums.changed += changed;
  sums.more += more;
  sums.inserted += before == kNone;
  sums.erased += after == kNone;
}

// How many of a stored brick's voxels have the material.
QRY_HD inline uint32_t voxels_with(const Memory& m, uint32_t index, uint8_t material) {
  uint32_t count = 0;
  for (uint32_t at = 0; at < 64; ++at) count += bit_count(equal_bytes(m.materials[size_t(index) * 64 + at], material));
  return count;
}

// What a brick that is wholly in the shape becomes.
QRY_HD inline uint32_t whole_index(const EditCall& call) { return call.material ? full_index(call.material) : kNone; }

// Writes record `number` of the edit, and, of a brick that is made, cut `cut`.
QRY_HD inline void note(const Memory& m, uint32_t key, uint32_t before, Fate fate, uint32_t after, uint32_t number,
                        uint32_t cut, uint32_t listed, Sums& sums) {
  Control& c = *m.control;
  // Blocks take numbers of records and of cuts one after the other: either may be the larger. Only what is cut has a
  // number of the latter.
  if (number >= m.scratch_room || (fate == Fate::cut && cut >= m.scratch_room))
    return set_bits(c.missing, kMissingScratch);
  if (c.record_top + number >= m.record_room) return set_bits(c.missing, kMissingRecords);
  if (fate == Fate::cut) {
    after = kNone;  // until it is made
    m.cuts[cut] = {number, listed};
  } else {
    const uint32_t voxels = voxels_of(m, before);
    const uint32_t changed = before == kNone ? kVoxelsPerBrick : voxels;
    count_change(sums, before, after, changed, (after == kNone ? 0 : int64_t(kVoxelsPerBrick)) - voxels);
  }
  m.records[c.record_top + number] = {key, before, after};
}

// A brick that is planned by a thread alone.
QRY_HD inline void plan(const Memory& m, uint32_t key, uint32_t before, Fate fate, uint32_t after, uint32_t listed,
                        Sums& sums) {
  const uint32_t number = push(m.control->touched);
  const uint32_t cut = fate == Fate::cut ? push(m.control->cut) : 0;
  note(m, key, before, fate, after, number, cut, listed, sums);
  if (fate == Fate::whole) mark(m, key, sums);
}

// A block of threads plans a tile of 8^3 bricks, one each. kResident: so many blocks a multiprocessor has at once, so
// that a thread gets no more registers than that allows.
constexpr uint32_t kTileEdge = 8;

// Of a capsule, whose box may be much larger: the tiles that it may meet.
struct FindTiles {
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) {
    return idle(m) ? 0 : uint64_t(call.tiles[0]) * call.tiles[1] * call.tiles[2];
  }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    const uint32_t x = call.first_tile[0] + uint32_t(item % call.tiles[0]),
                   y = call.first_tile[1] + uint32_t(item / call.tiles[0] % call.tiles[1]),
                   z = call.first_tile[2] + uint32_t(item / call.tiles[0] / call.tiles[1]);
    if (!call.shape.meets_cube(int64_t(x) * 8 - 1024, int64_t(y) * 8 - 512, int64_t(z) * 8 - 1024, 3)) return;
    const uint32_t number = push(m.control->tiles);
    if (number < m.scratch_room) m.tiles[number] = x | y << 8 | z << 15;
    else set_bits(m.control->missing, kMissingScratch);
  }
};

template <bool kListed>
struct TouchTiles {
  static constexpr uint32_t kThreads = kTileEdge * kTileEdge * kTileEdge, kResident = 3;
  struct Shared {
    BlockSums sums;
    uint32_t touched, cut, first, first_cut;
    uint32_t whole_chunks;  // of the tile's 8 cells of level 1: those with bricks that are whole
    struct Lane {
      uint32_t before, number, cut;
      Fate fate;
    } lanes[kThreads];
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) {
    return idle(m) ? 0 : kListed ? m.control->tiles : uint64_t(call.tiles[0]) * call.tiles[1] * call.tiles[2];
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    uint32_t tx, ty, tz;
    if (kListed) {
      const uint32_t tile = m.tiles[item];
      tx = tile & 255u, ty = tile >> 8 & 127u, tz = tile >> 15;
    } else {
      const auto i = uint32_t(item);
      tx = call.first_tile[0] + i % call.tiles[0];
      ty = call.first_tile[1] + i / call.tiles[0] % call.tiles[1];
      tz = call.first_tile[2] + i / call.tiles[0] / call.tiles[1];
      if (!call.shape.meets_cube(int64_t(tx) * 8 - 1024, int64_t(ty) * 8 - 512, int64_t(tz) * 8 - 1024, 3)) return;
    }
    const auto key_of = [&](uint32_t lane) {
      return (tx * 8 + (lane & 7u)) | (ty * 8 + (lane >> 3 & 7u)) << 11 | (tz * 8 + (lane >> 6)) << 21;
    };
    block.each([&](uint32_t lane) {
      if (lane == 0) {
        s.sums = {};
        s.touched = s.cut = s.whole_chunks = 0;
      }
    });
    block.each([&](uint32_t lane) {
      const uint32_t key = key_of(lane);
      const Int3 brick = brick_from_key(key);
      typename Shared::Lane& mine = s.lanes[lane];
      mine.fate = Fate::stays;
      if (key == kQryReservedKey || !call.shape.meets_cube(brick.x, brick.y, brick.z, 0)) return;
      const hashgrid::Found found = hashgrid::find(m.grid, key);
      mine.before = found.hit ? found.value : kNone;
      mine.fate = fate_of(call, brick, mine.before);
      if (mine.fate != Fate::stays) mine.number = push_shared(s.touched);
      if (mine.fate == Fate::cut) mine.cut = push_shared(s.cut);
      set_bits_together(s.whole_chunks, mine.fate == Fate::whole
                                            ? 1u << ((lane >> 2 & 1u) | (lane >> 5 & 1u) << 1 | (lane >> 8 & 1u) << 2)
                                            : 0);
    });
    block.each([&](uint32_t lane) {
      if (lane == 0 && s.touched) {
        s.first = fetch_add(m.control->touched, s.touched);
        if (s.cut) s.first_cut = fetch_add(m.control->cut, s.cut);
      }
    });
    block.each([&](uint32_t lane) {
      const typename Shared::Lane& mine = s.lanes[lane];
      Sums sums;
      if (lane < 8 && (s.whole_chunks >> lane & 1u)) {
        mark_chunk(m, tx * 2 + (lane & 1u), ty * 2 + (lane >> 1 & 1u), tz * 2 + (lane >> 2), sums);
        s.sums.take(sums);
        sums = {};
      }
      if (mine.fate == Fate::stays) return;
      note(m, key_of(lane), mine.before, mine.fate, whole_index(call), s.first + mine.number, s.first_cut + mine.cut, 0,
           sums);
      if (mine.fate == Fate::whole) s.sums.take(sums);
    });
    block.each([&](uint32_t lane) {
      if (lane == 0) s.sums.add_to(*m.control);
    });
  }
};

// The bricks that are there, for edits that create none and whose box is larger than the grid.
struct TouchGrid {
  static constexpr bool kSums = true;
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return idle(m) ? 0 : uint64_t(m.grid.page_count) * kQryPageWords;
  }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums& sums) {
    const Pair pair = pair_at(m.grid, item);
    if (!pair.there) return;
    const Int3 brick = brick_from_key(pair.key);
    if (!call.shape.meets_cube(brick.x, brick.y, brick.z, 0)) return;
    const Fate fate = fate_of(call, brick, pair.index);
    if (fate != Fate::stays) plan(m, pair.key, pair.index, fate, whole_index(call), 0, sums);
  }
};

// The bricks of a list, with a mode or with what each voxel becomes.
struct TouchList {
  static constexpr bool kSums = true;
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) { return idle(m) ? 0 : call.listed; }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums& sums) {
    const uint32_t key = m.listed_keys[item];
    const hashgrid::Found found = hashgrid::find(m.grid, key);
    const uint32_t before = found.hit ? found.value : kNone;
    if (item < call.listed_full) {
      const uint8_t material = m.listed_full[item];
      const uint32_t after = material ? full_index(material) : kNone;
      if (before == after) return;
      plan(m, key, before, Fate::whole, after, 0, sums);
      // Of a shape's bricks only those become full that were none or full; of a list's those that are stored, too, and
      // other voxels differ than those that were there.
      if (material && before != kNone && !is_full_index(before))
        sums.changed += uint64_t(kVoxelsPerBrick - voxels_with(m, before, material)) - voxels_of(m, before);
      return;
    }
    const uint32_t listed = uint32_t(item) - call.listed_full;
    Fate fate = Fate::cut;
    if (!m.listed_materials)
      fate = fate_of(call, before, [&] {
        uint64_t both = ~uint64_t(0);
        for (uint32_t octant = 0; octant < 8; ++octant) both &= m.listed_masks[size_t(listed) * 8 + octant];
        return both == ~uint64_t(0);
      });
    if (fate != Fate::stays) plan(m, key, before, fate, whole_index(call), listed, sums);
  }
};

// ---- cut

// A world has room for what an edit makes, or nothing is done. `counted`: what may be missing although all that it
// needs has been counted.
QRY_HD inline void admit(const Memory& m, uint32_t counted = 0) {
  Control& c = *m.control;
  c.nodes_before = c.nodes_top;
  // At most: a table of 16 granules for each node of level 1, and 64 nodes below each of the others.
  const uint64_t nodes = uint64_t(c.chunks) * 16 + uint64_t(c.regions) * 64 + uint64_t(c.tops) * 64;
  c.needed_nodes = uint32_t(nodes);
  if (c.changed == 0) c.skip = 1;
  if (c.missing & ~counted) return;
  if (c.nodes_top + nodes > m.node_room) c.missing |= kMissingNodes;
  if (uint64_t(c.keys) + c.inserted > m.grid_limit) c.missing |= kMissingKeys;
  if (c.is_edit && c.step_position >= m.step_room) c.missing |= kMissingSteps;
}
struct AdmitEdit {
  QRY_HD static void run(const Memory& m, const EditCall&) {
    Control& c = *m.control;
    if (c.stopped) return;
    c.forward = c.is_edit = 1;
    c.first = c.record_top;
    admit(m);
  }
};

// Sixteen voxels: two words of materials next to each other, which are one access of a thread.
struct TwoWords {
  uint64_t word[2];
};
QRY_HD inline TwoWords two_words(const uint64_t* at) {
#if defined(__CUDA_ARCH__)
  const ulonglong2 both = *reinterpret_cast<const ulonglong2*>(at);
  return {{both.x, both.y}};
#else
  return {{at[0], at[1]}};
#endif
}
QRY_HD inline void put_two_words(uint64_t* at, const TwoWords& two) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<ulonglong2*>(at) = {two.word[0], two.word[1]};
#else
  at[0] = two.word[0];
  at[1] = two.word[1];
#endif
}
// The same voxels of a mask: two bytes, `at` even.
QRY_HD inline uint32_t two_bytes(const uint64_t* mask, uint32_t at) {
#if defined(__CUDA_ARCH__)
  return reinterpret_cast<const uint16_t*>(mask)[at >> 1];
#else
  const auto* const bytes = reinterpret_cast<const uint8_t*>(mask) + at;
  return uint32_t(bytes[0]) | uint32_t(bytes[1]) << 8;
#endif
}
QRY_HD inline void put_two_bytes(uint64_t* mask, uint32_t at, uint32_t two) {
#if defined(__CUDA_ARCH__)
  reinterpret_cast<uint16_t*>(mask)[at >> 1] = uint16_t(two);
#else
  auto* const bytes = reinterpret_cast<uint8_t*>(mask) + at;
  bytes[0] = uint8_t(two);
  bytes[1] = uint8_t(two >> 8);
#endif
}

// A block of threads makes some bricks, sixteen voxels a thread, a brick a warp. `kListed`: by a list, with what each
// voxel becomes or with a mode; else by the shape.
template <bool kListed>
struct CutBricks {
  using Tail = AdmitEdit;
  // Few threads and many bricks: a multiprocessor has several such blocks under way, some of which read while others
  // write.
  static constexpr uint32_t kThreads = 128, kResident = 8, kBricks = 16;
  struct Shared {
    BlockSums sums;
    struct Account {
      uint32_t voxels;     // that change, that were there, that will be: ten bits each, from the lowest on
      uint32_t materials;  // all bits that any has, and, from bit 8 on, all that any has not
      Record record;
      uint32_t listed, place;
    } accounts[kBricks];
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return idle(m) ? 0 : (uint64_t(m.control->cut) + kBricks - 1) / kBricks;
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    Control& c = *m.control;
    const auto first = uint32_t(item) * kBricks;
    block.each([&](uint32_t lane) {
      if (lane == 0) s.sums = {};
      if (lane >= kBricks || first + lane >= c.cut) return;
      const Cut cut = m.cuts[first + lane];
      const uint32_t place = place_of(m, first + lane);
      if (place >= m.brick_room) set_bits(c.missing, kMissingBricks);
      s.accounts[lane] = {0, 0, m.records[c.record_top + cut.record], cut.listed, place};
    });
    const uint32_t count = c.cut - first < kBricks ? c.cut - first : kBricks;
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < count * 32; i += kThreads) {
        typename Shared::Account& account = s.accounts[i >> 5];
        if (account.place >= m.brick_room) continue;
        const uint32_t at = (i & 31u) * 2, before = account.record.before;
        const bool full = before != kNone && is_full_index(before), stored = is_stored_index(before);
        const uint64_t filled = full ? kEachByte * (before + 1u) : 0;
        TwoWords two{{filled, filled}};
        if (stored) two = two_words(m.materials + (size_t(before) * 64 + at));
        const uint32_t mask = full ? 0xFFFFu : stored ? two_bytes(m.masks + size_t(before) * 8, at) : 0;
        uint32_t shape = 0xFFFFu;  // whole bricks have no masks
        if (!kListed) {
          const Int3 brick = brick_from_key(account.record.key);
          shape = call.shape.eight(brick, at >> 3, at & 7u) | call.shape.eight(brick, at >> 3, (at & 7u) + 1u) << 8;
        } else if (m.listed_masks) {
          shape = two_bytes(m.listed_masks + size_t(account.listed) * 8, at);
        }
        uint32_t differing = 0, now = 0;
        if (kListed && m.listed_materials) {
          const TwoWords listed = two_words(m.listed_materials + (size_t(account.listed) * 64 + at));
          for (uint32_t k = 0; k < 2; ++k) {
            const uint64_t old = two.word[k], bytes = widened(shape >> (8 * k) & 0xFFu);
            two.word[k] = (old & ~bytes) | (listed.word[k] & bytes);
            differing |= (~uint32_t(equal_bytes(old ^ two.word[k], 0)) & 0xFFu) << (8 * k);
            now |= (~uint32_t(equal_bytes(two.word[k], 0)) & 0xFFu) << (8 * k);
          }
        } else {
          const uint64_t reached = reached_by(call.mode, shape, mask);
          for (uint32_t k = 0; k < 2; ++k)
            differing |=
                uint32_t(change_eight(call.mode, call.material, call.from, reached >> (8 * k) & 0xFFu, two.word[k]))
                << (8 * k);
          now = call.material ? mask | differing : mask & ~differing;
        }
        put_two_words(m.materials + (size_t(account.place) * 64 + at), two);
        put_two_bytes(m.masks + size_t(account.place) * 8, at, now);
        uint64_t any = two.word[0] | two.word[1], any_not = ~two.word[0] | ~two.word[1];
        any |= any >> 32;
        any_not |= any_not >> 32;
        uint32_t bits = uint32_t(any), not_bits = uint32_t(any_not);
        bits |= bits >> 16;
        not_bits |= not_bits >> 16;
        // The threads of a warp have one brick.
        add_together(account.voxels, bit_count(differing) | bit_count(mask) << 10 | bit_count(now) << 20);
        set_bits_together(account.materials, ((bits | bits >> 8) & 0xFFu) | ((not_bits | not_bits >> 8) & 0xFFu) << 8);
      }
    });
    block.each([&](uint32_t lane) {
      if (lane >= kBricks || first + lane >= c.cut) return;
      typename Shared::Account& account = s.accounts[lane];
      Record& record = account.record;
      const uint32_t changed = account.voxels & 1023u, before = account.voxels >> 10 & 1023u,
                     after = account.voxels >> 20;
      record.after = account.place;
      if (changed == 0) record.after = record.before;
      else if (after == 0) record.after = kNone;
      else if (after == kVoxelsPerBrick && (account.materials & account.materials >> 8 & 0xFFu) == 0)
        record.after = full_index(uint8_t(account.materials));
      if (record.after != account.place) m.unused[push(c.unused)] = account.place;
      m.records[c.record_top + m.cuts[first + lane].record].after = record.after;
      if (record.before == record.after) return;
      Sums sums;
      count_change(sums, record.before, record.after, changed, int64_t(after) - before);
      mark(m, record.key, sums);
      s.sums.take(sums);
    });
    block.each([&](uint32_t lane) {
      if (lane == 0) s.sums.add_to(c);
    });
  }
};

// ---- settle

// The step that is undone or redone, as a number; kNone: there is none.
QRY_HD inline uint32_t exchanged_step(const Memory& m, bool forward) {
  const Control& c = *m.control;
  if (forward) return c.step_position < c.step_count ? c.step_position : kNone;
  return c.step_position ? c.step_position - 1 : kNone;
}
template <bool kForward>
struct AdmitExchange {
  QRY_HD static void run(const Memory& m, const EditCall&) {
    Control& c = *m.control;
    if (c.stopped) return;
    const uint32_t number = exchanged_step(m, kForward);
    c.forward = kForward ? 1 : 0;
    c.is_edit = 0;
    if (number != kNone) {
      const Step& step = m.steps[number];
      c.first = step.first;
      c.touched = step.count;
      c.changed = step.changed;
      c.more = kForward ? step.more : -step.more;
    }
    admit(m);
  }
};
template <bool kForward>
struct SettleExchange {
  using Tail = AdmitExchange<kForward>;
  static constexpr bool kSums = true;
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    const uint32_t number = idle(m) ? kNone : exchanged_step(m, kForward);
    return number == kNone ? 0 : m.steps[number].count;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums& sums) {
    const Record record = m.records[m.steps[exchanged_step(m, kForward)].first + item];
    if (record.before == record.after) return;
    sums.inserted += (kForward ? record.before : record.after) == kNone;
    sums.erased += (kForward ? record.after : record.before) == kNone;
    mark(m, record.key, sums);
  }
};

// ---- keys

struct Keys {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    // A key that finds no place does not stop the others: all of them are taken back.
    const Control& c = *m.control;
    return c.stopped || c.skip || (c.missing & ~uint32_t(kMissingPlace)) ? 0 : c.touched;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const Record record = m.records[m.control->first + item];
    const uint32_t to = to_index(m, record);
    if (record.before == record.after) return;
    if (to == kNone) {
      // Where no key is new all find their place, and none has to be taken back.
      if (m.control->inserted == 0) hashgrid::erase(m.grid, record.key);
      return;
    }
    if (hashgrid::assign(m.grid, record.key, to) == hashgrid::Outcome::full)
      set_bits(m.control->missing, kMissingPlace);
  }
};
struct Erase {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return idle(m) || m.control->erased == 0 || m.control->inserted == 0 ? 0 : m.control->touched;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const Record record = m.records[m.control->first + item];
    if (record.before != record.after && to_index(m, record) == kNone) hashgrid::erase(m.grid, record.key);
  }
};
// After `keys`, when a key found no place, and in a phase of its own.
struct RollBack {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->touched; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const Record record = m.records[m.control->first + item];
    const uint32_t from = from_index(m, record), to = to_index(m, record);
    if (record.before == record.after || to == kNone) return;
    if (from == kNone) hashgrid::erase(m.grid, record.key);
    else hashgrid::assign(m.grid, record.key, from);
  }
};

// ---- the pyramid. A block of threads writes a node of level 2 or 3 with what is below it.

QRY_HD inline OccupancyNode child_node(const OccupancyNode* nodes, const OccupancyNode& node, uint32_t bit) {
  if (!(node.mask >> bit & 1u)) return {0, 0, 0};
  return nodes[node.child + number_in_run(node.mask, bit)];
}
// Of its children's run; OccupancyNode::room() is for the host alone.
QRY_HD inline uint32_t granules_of(const OccupancyNode& node) { return node.run & 255u; }
// The number-th set bit; 64: there are fewer.
QRY_HD inline uint32_t nth_bit(uint64_t bits, uint32_t number) {
  for (; number && bits; --number) bits &= bits - 1;
  return bits ? lowest_bit(bits) : 64;
}

// Writes the run of a node's children, which the block has in `child`, and returns the node.
struct RunOfNodes {
  OccupancyNode child[64];
  OccupancyNode node;
  uint32_t halves[2];  // of its mask
};
template <class Block>
QRY_HD inline void write_run(const Memory& m, RunOfNodes& s, Block& block) {
  block.each([&](uint32_t lane) {
    if (lane < 2) s.halves[lane] = 0;
  });
  block.each([&](uint32_t lane) {
    if (lane < 64) set_bits_together(s.halves[lane >> 5], uint32_t(s.child[lane].mask != 0) << (lane & 31u));
  });
  block.each([&](uint32_t lane) {
    if (lane) return;
    s.node = {s.halves[0] | uint64_t(s.halves[1]) << 32, 0, 0};
    s.node.run = bit_count(s.node.mask);
    if (s.node.run) s.node.child = fetch_add(m.control->nodes_top, s.node.run);
  });
  block.each([&](uint32_t lane) {
    if (lane < 64 && (s.node.mask >> lane & 1u))
      m.nodes[s.node.child + number_in_run(s.node.mask, lane)] = s.child[lane];
  });
}

struct Regions {
  static constexpr uint32_t kThreads = 1024, kResident = 2;
  struct Shared {
    RunOfNodes run;
    OccupancyNode before;
    uint64_t touched;
    uint32_t masks[64][2];
    uint32_t indices[64 * 64];
    uint8_t children[64];  // those that are touched, in a row
    uint32_t freed, taken, first;
    QRY_HD uint64_t mask(uint32_t number) const { return masks[number][0] | uint64_t(masks[number][1]) << 32; }
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->regions; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const uint32_t region = m.regions[item], rx = region & 127u, ry = region >> 7 & 63u, rz = region >> 13;
    block.each([&](uint32_t lane) {
      if (lane) return;
      s.touched = m.touched2[region];
      m.touched2[region] = 0;
      s.before = child_node(m.nodes, m.nodes[level3_number(rx >> 2, ry >> 2, rz >> 2)], child_bit(rx, ry, rz));
      s.freed = granules_of(s.before);
      s.taken = 0;
    });
    if (idle(m)) return;
    const uint32_t count = bit_count(s.touched);
    block.each([&](uint32_t lane) {
      if (lane >= 64) return;
      s.masks[lane][0] = s.masks[lane][1] = 0;
      s.run.child[lane] = child_node(m.nodes, s.before, lane);
      if (!(s.touched >> lane & 1u)) return;
      s.children[number_in_run(s.touched, lane)] = uint8_t(lane);
      if (const uint32_t room = granules_of(s.run.child[lane])) fetch_add(s.freed, room);
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < count * 64; i += kThreads) {
        const uint32_t child = s.children[i >> 6], bit = i & 63u;
        const uint32_t x = rx * 16 + (child & 3u) * 4 + (bit & 3u),
                       y = ry * 16 + (child >> 2 & 3u) * 4 + (bit >> 2 & 3u),
                       z = rz * 16 + (child >> 4) * 4 + (bit >> 4);
        const uint32_t key = x | y << 11 | z << 21;
        hashgrid::Found found{0, 0, false};
        if (key != kQryReservedKey) found = hashgrid::find(m.grid, key);
        s.indices[i] = found.value;
        set_bits_together(s.masks[i >> 6][bit >> 5], uint32_t(found.hit) << (bit & 31u));
      }
    });
    // Tables take whole granules: their places in what all take together.
    block.each([&](uint32_t lane) {
      if (lane >= count) return;
      const uint64_t mask = s.mask(lane);
      const uint32_t room = (bit_count(mask) + 3) / 4;
      s.run.child[s.children[lane]] = {mask, room ? fetch_add(s.taken, room) : 0, room};
    });
    block.each([&](uint32_t lane) {
      if (lane == 0 && s.taken) s.first = fetch_add(m.control->nodes_top, s.taken);
    });
    block.each([&](uint32_t lane) {
      if (lane < count) s.run.child[s.children[lane]].child += s.first;
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < count * 64; i += kThreads) {
        const uint64_t mask = s.mask(i >> 6);
        if (!(mask >> (i & 63u) & 1u)) continue;
        auto* const table = reinterpret_cast<uint32_t*>(m.nodes + s.run.child[s.children[i >> 6]].child);
        table[number_in_run(mask, i & 63u)] = s.indices[i];
      }
    });
    write_run(m, s.run, block);
    block.each([&](uint32_t lane) {
      if (lane) return;
      m.made2[item] = s.run.node;
      fetch_add(m.control->freed_nodes, s.freed);
    });
  }
};

// ---- tops, and what the host sees

// The counters of an edit are 0 when the next one begins.
QRY_HD inline void end_edit(Control& c) {
  c.missing = c.skip = c.forward = c.is_edit = 0;
  c.first = 0;
  c.touched = c.cut = c.tiles = c.unused = c.inserted = c.erased = 0;
  c.chunks = c.regions = c.tops = c.nodes_before = c.freed_nodes = 0;
  c.changed = 0;
  c.more = 0;
  c.drop_unused = c.drop_before = 0;
  c.drop_first = c.drop_end = 0;
}

struct Seen {
  QRY_HD static void run(const Memory& m, const EditCall& call) {
    Control& c = *m.control;
    Answer answer = Answer::done;
    if (c.stopped) {
      answer = Answer::skipped;
    } else if (c.missing) {
      answer = Answer::refused;
      c.stopped = 1;
    } else if (c.skip) {
      answer = Answer::unchanged;
    } else {
      const uint32_t position = c.step_position;
      if (c.is_edit) {
        const uint32_t reused = c.cut < c.free_count ? c.cut : c.free_count;
        c.free_count -= reused;
        c.bricks_top += c.cut - reused;
        c.drop_unused = c.unused;
        if (call.no_step) {
          c.drop_first = c.first;
          c.drop_end = c.first + c.touched;
          c.drop_before = 1;
        } else {
          if (position < c.step_count) {
            c.drop_first = m.steps[position].first;
            c.drop_end = c.record_top;
          }
          m.steps[position] = {c.first, c.touched, 0, c.more, c.changed};
          c.record_top = c.first + c.touched;
          c.step_count = c.step_position = position + 1;
        }
      } else {
        c.step_position = c.forward ? position + 1 : position - 1;
      }
      c.voxels = uint64_t(int64_t(c.voxels) + c.more);
      c.keys += c.inserted - c.erased;
      c.nodes_live += c.nodes_top - c.nodes_before - c.freed_nodes;
      ++c.version;
    }
    Outcome& outcome = m.outcomes[call.ticket % kOutcomes];
    outcome.changed = answer == Answer::done ? c.changed : 0;
    outcome.version = c.version;
    outcome.answer = answer;
    outcome.missing = c.missing;
    outcome.records = c.record_top;
    outcome.bricks = c.bricks_top - c.free_count;
    outcome.nodes = c.nodes_top;
    outcome.keys = c.keys;
    outcome.nodes_live = c.nodes_live;
#if defined(__CUDA_ARCH__)
    __threadfence_system();
    *const_cast<volatile uint64_t*>(&outcome.ticket) = call.ticket;
#else
    __atomic_store_n(&outcome.ticket, call.ticket, __ATOMIC_RELEASE);
#endif
    if (!c.is_edit && !c.stopped) end_edit(c);
  }
};

struct Tops {
  using Tail = Seen;
  static constexpr uint32_t kThreads = 64, kResident = 16;
  struct Shared {
    RunOfNodes run;
    OccupancyNode before;
    uint64_t touched;
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->tops; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const uint32_t top = m.tops[item], tx = top & 31u, ty = top >> 5 & 15u, tz = top >> 9;
    block.each([&](uint32_t lane) {
      if (lane) return;
      s.touched = m.touched3[top];
      m.touched3[top] = 0;
      s.before = m.nodes[top];
    });
    if (idle(m)) return;
    block.each([&](uint32_t lane) {
      const uint32_t region = level2_number(tx * 4 + (lane & 3u), ty * 4 + (lane >> 2 & 3u), tz * 4 + (lane >> 4));
      s.run.child[lane] = s.touched >> lane & 1u ? m.made2[m.numbers2[region]] : child_node(m.nodes, s.before, lane);
    });
    write_run(m, s.run, block);
    block.each([&](uint32_t lane) {
      if (lane) return;
      m.nodes[top] = s.run.node;
      fetch_add(m.control->freed_nodes, granules_of(s.before));
    });
  }
};

// ---- release

struct EndEdit {
  QRY_HD static void run(const Memory& m, const EditCall&) {
    if (!m.control->stopped) end_edit(*m.control);
  }
};
// An index that neither the grid nor a record holds. Frames may read what was published before.
QRY_HD inline void let_go(const Memory& m, const EditCall& call, uint32_t index) {
  Control& c = *m.control;
  if (call.hold == 0) m.free_bricks[push(c.free_count)] = index;
  else m.retired[call.hold - 1][push(c.retired[call.hold - 1])] = index;
}

struct Release {
  using Tail = EndEdit;
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    const Control& c = *m.control;
    return c.drop_unused + (c.drop_end - c.drop_first);
  }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    Control& c = *m.control;
    if (item < c.drop_unused) {  // it was never seen
      m.free_bricks[push(c.free_count)] = m.unused[item];
      return;
    }
    Record& record = m.records[c.drop_first + (item - c.drop_unused)];
    const uint32_t index = c.drop_before ? record.before : record.after;
    if (record.before != record.after && is_stored_index(index)) let_go(m, call, index);
    record.before = record.after = kNone;
  }
};

// ---- what is asked

// The tight box of all voxels.
struct BeginBounds {
  QRY_HD static void run(const Memory& m, const EditCall&) {
    for (uint32_t axis = 0; axis < 3; ++axis) {
      m.control->low[axis] = 1 << 30;
      m.control->high[axis] = -(1 << 30);
    }
  }
};
struct Bounds {
  static constexpr uint32_t kThreads = 256, kResident = 8, kPart = 4096;  // words of the grid
  struct Shared {
    int32_t told_low[3], told_high[3];  // by other blocks: most bricks are inside of it
    int32_t low[3], high[3];
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return (uint64_t(m.grid.page_count) * kQryPageWords + kPart - 1) / kPart;
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    Control& c = *m.control;
    const uint64_t first = item * kPart, all = uint64_t(m.grid.page_count) * kQryPageWords;
    const uint64_t end = all - first < kPart ? all : first + kPart;
    const auto told = [](const int32_t& value) { return int32_t(peek(reinterpret_cast<const uint32_t&>(value))); };
    block.each([&](uint32_t lane) {
      if (lane >= 3) return;
      s.low[lane] = s.told_low[lane] = told(c.low[lane]);
      s.high[lane] = s.told_high[lane] = told(c.high[lane]);
    });
    block.each([&](uint32_t lane) {
      int32_t low[3], high[3];
      for (uint32_t axis = 0; axis < 3; ++axis) low[axis] = s.told_low[axis], high[axis] = s.told_high[axis];
      bool wider = false;
      for (uint64_t i = first + lane; i < end; i += kThreads) wider |= widen(m, i, low, high);
      if (!wider) return;
      for (uint32_t axis = 0; axis < 3; ++axis) {
        lower(s.low[axis], low[axis]);
        raise(s.high[axis], high[axis]);
      }
    });
    block.each([&](uint32_t lane) {
      if (lane < 3 && s.low[lane] < s.told_low[lane]) lower(c.low[lane], s.low[lane]);
      if (lane < 3 && s.high[lane] > s.told_high[lane]) raise(c.high[lane], s.high[lane]);
    });
  }
  // The box, so that it holds the voxels of the pair with this number. False: it does already.
  QRY_HD static bool widen(const Memory& m, uint64_t number, int32_t (&low)[3], int32_t (&high)[3]) {
    const Pair pair = pair_at(m.grid, number);
    if (!pair.there) return false;
    const Int3 brick = brick_from_key(pair.key);
    const int32_t x = brick.x * 8, y = brick.y * 8, z = brick.z * 8;
    if (low[0] <= x && low[1] <= y && low[2] <= z && high[0] >= x + 7 && high[1] >= y + 7 && high[2] >= z + 7)
      return false;
    // Of the brick: which planes across each axis have a voxel.
    uint32_t across[3] = {0, 0, 0};
    for (uint32_t octant = 0; octant < 8; ++octant) {
      const uint64_t mask = is_full_index(pair.index) ? ~uint64_t(0) : m.masks[size_t(pair.index) * 8 + octant];
      uint64_t rows = mask | mask >> 32;
      rows |= rows >> 16;
      uint32_t in_x = uint32_t(rows & 0xFFFFu), in_y = 0, in_z = 0;
      for (uint32_t i = 0; i < 4; ++i) {
        in_y |= uint32_t((rows >> (4 * i) & 15u) != 0) << i;
        in_z |= uint32_t((mask >> (16 * i) & 0xFFFFu) != 0) << i;
      }
      in_x |= in_x >> 8;
      in_x = (in_x | in_x >> 4) & 15u;
      across[0] |= in_x << (octant & 1u ? 4 : 0);
      across[1] |= in_y << (octant & 2u ? 4 : 0);
      across[2] |= in_z << (octant & 4u ? 4 : 0);
    }
    const int32_t at[3] = {x, y, z};
    for (uint32_t axis = 0; axis < 3; ++axis) {
      if (!across[axis]) continue;
      uint32_t highest = 7;
      while (!(across[axis] >> highest & 1u)) --highest;
      const int32_t from = at[axis] + int32_t(lowest_bit(across[axis])), to = at[axis] + int32_t(highest);
      if (from < low[axis]) low[axis] = from;
      if (to > high[axis]) high[axis] = to;
    }
    return true;
  }
};

// A ray as its caller gave it, to a hit as callers get it, with the number of sectors of the grid that are read for its
// brick. What cannot be traced meets nothing.
QRY_HD inline RayHit trace_given(const RayWorld& world, const hashgrid::GridView& grid, const Ray& ray) {
  const bool traced = can_be_traced(ray);
  RayHit hit = trace_ray(world, traced ? of_unit_length(ray) : Ray{{0, 0, 0}, {0, 1, 0}});
  if (!traced || hit.t < 0) return told({-1, {0, 0, 0}, 0, 0, 0, 0});
  // Nobody changes the grid while rays are traced.
  hit.probe_depth = hashgrid::find(hashgrid::ReadOnly<hashgrid::GridView>{grid},
                                   qry_pack_brick(hit.voxel[0] >> 3, hit.voxel[1] >> 3, hit.voxel[2] >> 3))
                        .sectors;
  return hit;
}

// The bricks of a list of keys, eight voxels a thread; of those that are not there no voxel.
struct Gather {
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) { return uint64_t(call.listed) * 64; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const hashgrid::Found found = hashgrid::find(m.grid, m.listed_keys[item >> 6]);
    const uint32_t at = uint32_t(item) & 63u;
    const uint64_t eight = found.hit ? eight_materials(m, found.value, at) : 0;
    m.listed_materials[item] = eight;
    reinterpret_cast<uint8_t*>(m.listed_masks)[item] = uint8_t(~equal_bytes(eight, 0));
  }
};

// Each key of a list becomes the index of its brick; kNone: there is none.
struct LookUp {
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) { return call.listed; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const hashgrid::Found found = hashgrid::find(m.grid, m.listed_keys[item]);
    m.listed_keys[item] = found.hit ? found.value : kNone;
  }
};

// As Gather, of places of the pool instead of keys.
struct GatherPlaces {
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) { return uint64_t(call.listed) * 64; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    m.listed_materials[item] = eight_materials(m, m.listed_keys[item >> 6], uint32_t(item) & 63u);
  }
};

}  // namespace quarry::device
