// SPDX-License-Identifier: Apache-2.0
// steps.hpp - the steps of an edit, each over all of its bricks: one text for CUDA's kernels and for the host threads
// that run the same bodies (emulated.cpp).
//
//   begin     the counters of the edit; or the step of the history that is undone or redone
//   touch     bricks of the shape: the records, with what each brick was, what it becomes if it is none or full after,
//             and a place for each other                     (find_cubes before it, for capsules)
//   cut       the bricks that are made, an octant a thread
//   settle    what came of them; keys and nodes of the pyramid that change, counted
//   admit     is there room for all of it?
//   keys      pairs inserted and assigned;   erase: pairs erased, or, if a key found no place, all of `keys` undone
//   regions   nodes of levels 1 and 2, each written anew;   tops: those of level 3
//   seen      the counters of the world, the step of the history, the answer to the host
//   release   indices that nobody holds any more
//
// Until `keys` an edit writes only what nobody reads. A step that lacks room says so in Control::missing; the steps
// after it then do nothing, the world is as before, and so are all edits until the host has made room. Nothing is read
// back between the steps. One order of threads is as good as another. Literature: the order of the work is that of a
// GPU's dynamic structures, after S. Ashkiani et al., "A Dynamic Hash Table for the GPU", 2018, whose updates come in
// batches too; nodes that are written once and found from one root are a persistent tree, after J. R. Driscoll et al.,
// "Making Data Structures Persistent", 1989.
#pragma once

#include <cstddef>

#include "voxel/device/atomics.hpp"
#include "voxel/device/layout.hpp"
#include "voxel/shapes/change.hpp"

namespace quarry::device {

// What a thread adds up over its items; added to Control when it has done all of them.
struct Sums {
  uint64_t changed = 0;
  int64_t more = 0;
  uint32_t inserted = 0, erased = 0, chunks = 0, reserved = 0;
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

QRY_HD inline bool idle(const Memory& m) { return m.control->skip != 0 || m.control->missing != 0; }

// The two sides of a record, in the direction in which it is played.
QRY_HD inline uint32_t from_index(const Memory& m, const Record& r) { return m.control->forward ? r.before : r.after; }
QRY_HD inline uint32_t to_index(const Memory& m, const Record& r) { return m.control->forward ? r.after : r.before; }

QRY_HD inline Int3 brick_of_key(uint32_t key) { return {qry_brick_x(key), qry_brick_y(key), qry_brick_z(key)}; }

// Notes the pyramid's nodes above a brick whose index changes.
QRY_HD inline void mark(const Memory& m, uint32_t key, Sums& sums) {
  const uint32_t x = key & 2047u, y = key >> 11 & 1023u, z = key >> 21;
  const uint32_t region = level2_number(x >> 4, y >> 4, z >> 4);
  const uint64_t bit = uint64_t(1) << child_bit(x >> 2, y >> 2, z >> 2);
  if (peek(m.touched2[region]) & bit) return;
  const uint64_t before = fetch_or(m.touched2[region], bit);
  if (before & bit) return;
  ++sums.chunks;
  if (before) return;
  const uint32_t number = push(m.control->regions);
  m.regions[number] = region;
  m.numbers2[region] = number;
  const uint32_t top = level3_number(x >> 6, y >> 6, z >> 6);
  if (fetch_or(m.touched3[top], uint64_t(1) << child_bit(x >> 4, y >> 4, z >> 4)) == 0)
    m.tops[push(m.control->tops)] = top;
}

// ---- begin

QRY_HD inline void begin(const Memory& m, bool is_edit) {
  Control& c = *m.control;
  c.missing = 0;
  c.skip = c.stopped;
  c.forward = 1;
  c.is_edit = is_edit ? 1 : 0;
  c.first = c.record_top;
  c.touched = c.cut = c.cubes = c.unused = 0;
  c.inserted = c.erased = c.chunks = c.regions = c.tops = c.freed_nodes = 0;
  c.nodes_before = c.nodes_top;
  c.changed = 0;
  c.more = 0;
  c.drop_unused = 0;
  c.drop_first = c.drop_end = 0;
}

struct BeginEdit {
  QRY_HD static void run(const Memory& m, const EditCall&) { begin(m, true); }
};
QRY_HD inline void begin_exchange(const Memory& m, bool forward) {
  begin(m, false);
  Control& c = *m.control;
  if (c.skip) return;
  if (forward ? c.step_position == c.step_count : c.step_position == 0) {
    c.skip = 1;
    return;
  }
  const Step& step = m.steps[forward ? c.step_position : c.step_position - 1];
  c.forward = forward ? 1 : 0;
  c.first = step.first;
  c.touched = step.count;
  c.changed = step.changed;
  c.more = forward ? step.more : -step.more;
}
struct BeginUndo {
  QRY_HD static void run(const Memory& m, const EditCall&) { begin_exchange(m, false); }
};
struct BeginRedo {
  QRY_HD static void run(const Memory& m, const EditCall&) { begin_exchange(m, true); }
};

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

// Plans one brick, which is `before` in the grid. It becomes `whole_index` if it is `whole`, else it is made.
QRY_HD inline void plan(const Memory& m, uint32_t key, uint32_t before, bool whole, uint32_t whole_index,
                        uint32_t listed) {
  Control& c = *m.control;
  const uint32_t number = push(c.touched);
  uint32_t after = whole_index, kind = 0, cut = 0;
  if (whole) {
    kind = before == kNone ? kVoxelsPerBrick : voxels_of(m, before);
  } else {
    cut = push(c.cut);
    kind = kIsCut | cut;
    if (cut < c.free_count || uint64_t(c.bricks_top) + (cut - c.free_count) < m.brick_room) after = place_of(m, cut);
    else set_bits(c.missing, kMissingBricks);
  }
  if (number >= m.scratch_room) {
    set_bits(c.missing, kMissingScratch);
  } else if (c.first + number >= m.record_room) {
    set_bits(c.missing, kMissingRecords);
  } else {
    m.records[c.first + number] = {key, before, after};
    m.kinds[number] = kind;
    if (!whole) m.cuts[cut] = {number, listed, 0, 0};
  }
}

QRY_HD inline void touch(const Memory& m, const EditCall& call, Int3 brick, uint32_t key, uint32_t before) {
  if (before == kNone && !sets_absent(call)) return;
  const bool full = before != kNone && is_full_index(before);
  const uint32_t whole_index = call.material ? full_index(call.material) : kNone;
  if (full && (call.mode == Mode::add || before == whole_index ||
               (call.mode == Mode::replace && before != full_index(call.from))))
    return;
  const bool whole = (before == kNone || full || call.mode == Mode::remove) && call.shape.holds(brick);
  plan(m, key, before, whole, whole_index, 0);
}

struct TouchBox {
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) {
    return m.control->skip ? 0 : uint64_t(call.size[0]) * call.size[1] * call.size[2];
  }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    const auto i = uint32_t(item);  // kMostBricksPerEdit bounds the box
    const uint32_t x = i % call.size[0], yz = i / call.size[0], y = yz % call.size[1], z = yz / call.size[1];
    const Int3 brick{call.first.x + int32_t(x), call.first.y + int32_t(y), call.first.z + int32_t(z)};
    if (!call.shape.meets_cube(brick.x, brick.y, brick.z, 0)) return;
    const uint32_t key = qry_pack_brick(brick.x, brick.y, brick.z);
    const hashgrid::Found found = hashgrid::find(m.grid, key);
    touch(m, call, brick, key, found.hit ? found.value : kNone);
  }
};

// Of a capsule: the cells of level 1 that it may meet.
struct FindCubes {
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) {
    return m.control->skip ? 0 : uint64_t((call.size[0] + 7) / 4) * ((call.size[1] + 7) / 4) * ((call.size[2] + 7) / 4);
  }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    const uint32_t nx = (call.size[0] + 7) / 4, ny = (call.size[1] + 7) / 4;
    // From the world's corner: no coordinate is negative.
    const uint32_t x = (uint32_t(call.first.x + 1024) >> 2) + uint32_t(item % nx),
                   y = (uint32_t(call.first.y + 512) >> 2) + uint32_t(item / nx % ny),
                   z = (uint32_t(call.first.z + 1024) >> 2) + uint32_t(item / nx / ny);
    if (x >= 512 || y >= 256 || z >= 512) return;
    if (!call.shape.meets_cube(int64_t(x) * 4 - 1024, int64_t(y) * 4 - 512, int64_t(z) * 4 - 1024, 2)) return;
    const uint32_t number = push(m.control->cubes);
    if (number < m.cube_room) m.cubes[number] = x | y << 9 | z << 17;
    else set_bits(m.control->missing, kMissingScratch);
  }
};
struct TouchCubes {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return idle(m) ? 0 : uint64_t(m.control->cubes) * 64;
  }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    const uint32_t cube = m.cubes[item >> 6], bit = uint32_t(item) & 63u;
    const Int3 brick{int32_t((cube & 511u) * 4 + (bit & 3u)) - 1024,
                     int32_t((cube >> 9 & 255u) * 4 + (bit >> 2 & 3u)) - 512,
                     int32_t((cube >> 17) * 4 + (bit >> 4)) - 1024};
    if (!call.shape.meets_cube(brick.x, brick.y, brick.z, 0)) return;
    const uint32_t key = qry_pack_brick(brick.x, brick.y, brick.z);
    const hashgrid::Found found = hashgrid::find(m.grid, key);
    touch(m, call, brick, key, found.hit ? found.value : kNone);
  }
};

// The bricks that are there, for edits that create none and whose box is larger than the grid.
struct TouchGrid {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return m.control->skip ? 0 : uint64_t(m.grid.page_count) * kQryPageWords;
  }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    if (item % kQryPageWords < kQryStateSectors * 4u) return;
    const uint64_t word = m.grid.words[item];
    if (uint32_t(word) == kQryReservedKey) return;
    const uint32_t key = qry_key_of_stored(uint32_t(word), m.grid.locality);
    const Int3 brick = brick_of_key(key);
    if (call.shape.meets_cube(brick.x, brick.y, brick.z, 0)) touch(m, call, brick, key, uint32_t(word >> 32));
  }
};

// The bricks of a list, with a mode or with what each voxel becomes.
struct TouchList {
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) { return m.control->skip ? 0 : call.listed; }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    const uint32_t key = m.listed_keys[item];
    const hashgrid::Found found = hashgrid::find(m.grid, key);
    const uint32_t before = found.hit ? found.value : kNone;
    if (before == kNone && !m.listed_materials && !sets_absent(call)) return;
    plan(m, key, before, false, kNone, uint32_t(item));
  }
};

// ---- cut

// What came of an octant, added to its brick's account.
QRY_HD inline void account(Cut& cut, uint64_t before, uint64_t after, uint64_t differing, uint64_t any,
                           uint64_t any_not) {
  any |= any >> 32;
  any_not |= any_not >> 32;
  any |= any >> 16;
  any_not |= any_not >> 16;
  set_bits(cut.materials, uint32_t((any | any >> 8) & 0xFFu) | uint32_t((any_not | any_not >> 8) & 0xFFu) << 16);
  add(cut.counts,
      uint64_t(bit_count(differing)) | uint64_t(bit_count(after)) << 16 | uint64_t(bit_count(before)) << 32);
}

// `kListed`: by a list, with what each voxel becomes or with a mode; else by the shape.
template <bool kListed>
struct CutOctants {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return idle(m) ? 0 : uint64_t(m.control->cut) * 8; }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    Cut& cut = m.cuts[item >> 3];
    const uint32_t octant = uint32_t(item) & 7u;
    const Record record = m.records[m.control->first + cut.record];
    const uint32_t before = record.before;
    const bool full = before != kNone && is_full_index(before), stored = is_stored_index(before);
    const uint64_t mask = full ? ~uint64_t(0) : stored ? m.masks[size_t(before) * 8 + octant] : 0;
    const uint64_t all = full ? kEachByte * (before + 1u) : 0;
    const uint64_t* const from = m.materials + size_t(before) * 64 + octant * 8;
    uint64_t* const to = m.materials + size_t(record.after) * 64 + octant * 8;
    const uint64_t shape =
        kListed ? m.listed_masks[size_t(cut.listed) * 8 + octant] : call.shape.octant(brick_of_key(record.key), octant);
    uint64_t differing = 0, any = 0, any_not = 0, now = 0;
    if (kListed && m.listed_materials) {
      const uint64_t* const wanted = m.listed_materials + size_t(cut.listed) * 64 + octant * 8;
      for (uint32_t byte = 0; byte < 8; ++byte) {
        const uint64_t old = stored ? from[byte] : all, bytes = widened(shape >> (byte * 8) & 0xFFu);
        const uint64_t eight = (old & ~bytes) | (wanted[byte] & bytes);
        to[byte] = eight;
        differing |= (~equal_bytes(old ^ eight, 0) & 0xFFu) << (byte * 8);
        now |= (~equal_bytes(eight, 0) & 0xFFu) << (byte * 8);
        any |= eight;
        any_not |= ~eight;
      }
    } else {
      const uint64_t reached = reached_by(call.mode, shape, mask);
      for (uint32_t byte = 0; byte < 8; ++byte) {
        uint64_t eight = stored ? from[byte] : all;
        differing |= change_eight(call.mode, call.material, call.from, reached >> (byte * 8) & 0xFFu, eight)
                     << (byte * 8);
        to[byte] = eight;
        any |= eight;
        any_not |= ~eight;
      }
      now = call.material ? mask | differing : mask & ~differing;
    }
    m.masks[size_t(record.after) * 8 + octant] = now;
    account(cut, mask, now, differing, any, any_not);
  }
};

// ---- settle

struct Settle {
  static constexpr bool kSums = true;
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return idle(m) ? 0 : m.control->touched; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums& sums) {
    Record& record = m.records[m.control->first + item];
    const uint32_t kind = m.kinds[item];
    uint32_t changed = kind;
    int64_t more = 0;
    if (kind & kIsCut) {
      const Cut cut = m.cuts[kind & ~kIsCut];
      changed = uint32_t(cut.counts & 0xFFFFu);
      const auto after = uint32_t(cut.counts >> 16 & 0xFFFFu), before = uint32_t(cut.counts >> 32);
      const uint32_t any = cut.materials & 0xFFu, any_not = cut.materials >> 16;
      const uint32_t place = record.after;
      if (changed == 0) record.after = record.before;
      else if (after == 0) record.after = kNone;
      else if (after == kVoxelsPerBrick && (any & any_not) == 0) record.after = full_index(uint8_t(any));
      if (record.after != place) m.unused[push(m.control->unused)] = place;
      more = int64_t(after) - before;
    } else {
      more = record.after == kNone ? -int64_t(changed) : record.before == kNone ? int64_t(changed) : 0;
    }
    if (record.before == record.after) return;
    sums.changed += changed;
    sums.more += more;
    sums.inserted += record.before == kNone;
    sums.erased += record.after == kNone;
    mark(m, record.key, sums);
  }
};
// Of a record that is played again.
struct SettleExchange {
  static constexpr bool kSums = true;
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return idle(m) ? 0 : m.control->touched; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums& sums) {
    const Record record = m.records[m.control->first + item];
    if (record.before == record.after) return;
    sums.inserted += from_index(m, record) == kNone;
    sums.erased += to_index(m, record) == kNone;
    mark(m, record.key, sums);
  }
};

struct Admit {
  QRY_HD static void run(const Memory& m, const EditCall&) {
    Control& c = *m.control;
    if (c.skip) return;
    if (!c.missing) {
      // At most: a table of 16 granules for each node of level 1, and 64 nodes below each of the others.
      const uint64_t nodes = uint64_t(c.chunks) * 16 + uint64_t(c.regions) * 64 + uint64_t(c.tops) * 64;
      c.needed_nodes = uint32_t(nodes);
      if (c.nodes_top + nodes > m.node_room) c.missing |= kMissingNodes;
      if (uint64_t(c.keys) + c.inserted > m.grid_limit) c.missing |= kMissingKeys;
      if (c.is_edit && c.step_position >= m.step_room) c.missing |= kMissingSteps;
      if (c.changed == 0) c.skip = 1;
    }
    c.needed_touched = c.touched > c.cubes ? c.touched : c.cubes;
    c.needed_bricks = c.cut;
    c.needed_keys = c.keys + c.inserted;
  }
};

// ---- keys

struct Keys {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    // A key that finds no place does not stop the others: all of them are taken back.
    return m.control->skip || (m.control->missing & ~uint32_t(kMissingPlace)) ? 0 : m.control->touched;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const Record record = m.records[m.control->first + item];
    const uint32_t to = to_index(m, record);
    if (record.before == record.after || to == kNone) return;
    if (hashgrid::assign(m.grid, record.key, to) == hashgrid::Outcome::full)
      set_bits(m.control->missing, kMissingPlace);
  }
};
struct Erase {
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) { return Keys::items(m, call); }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const Record record = m.records[m.control->first + item];
    if (record.before == record.after) return;
    const uint32_t from = from_index(m, record), to = to_index(m, record);
    if (m.control->missing) {
      if (to == kNone) return;
      if (from == kNone) hashgrid::erase(m.grid, record.key);
      else hashgrid::assign(m.grid, record.key, from);
    } else if (to == kNone) {
      hashgrid::erase(m.grid, record.key);
    }
  }
};

// ---- the pyramid. A block of threads writes a node of level 2 or 3 with what is below it.

constexpr uint32_t kNodeThreads = 256;

QRY_HD inline uint32_t lowest_but(uint64_t bits, uint32_t number) {
  for (; number && bits; --number) bits &= bits - 1;
  return bits ? lowest_bit(bits) : 64;
}
QRY_HD inline OccupancyNode child_node(const Memory& m, const OccupancyNode& node, uint32_t bit) {
  if (!(node.mask >> bit & 1u)) return {0, 0, 0};
  return m.nodes[node.child + number_in_run(node.mask, bit)];
}

// Of its children's run; OccupancyNode::room() is for the host alone.
QRY_HD inline uint32_t granules_of(const OccupancyNode& node) { return node.run & 255u; }

// Writes the run of a node's children, which the block has in `child`, and returns the node.
struct RunOfNodes {
  OccupancyNode child[64];
  OccupancyNode node;
};
template <class Block>
QRY_HD inline void write_run(const Memory& m, RunOfNodes& s, Block& block) {
  block.each([&](uint32_t lane) {
    if (lane) return;
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 64; ++i) mask |= uint64_t(s.child[i].mask != 0) << i;
    const uint32_t count = bit_count(mask);
    s.node = {mask, count ? fetch_add(m.control->nodes_top, count) : 0, count};
  });
  block.each([&](uint32_t lane) {
    if (lane < 64 && (s.node.mask >> lane & 1u))
      m.nodes[s.node.child + number_in_run(s.node.mask, lane)] = s.child[lane];
  });
}

struct Regions {
  static constexpr uint32_t kAtOnce = kNodeThreads / 64;  // nodes of level 1
  struct Shared {
    RunOfNodes run;
    OccupancyNode before;
    uint64_t touched, masks[kAtOnce];
    uint32_t indices[kNodeThreads];
    uint32_t freed;
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->regions; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const uint32_t region = m.regions[item], rx = region & 127u, ry = region >> 7 & 63u, rz = region >> 13;
    block.each([&](uint32_t lane) {
      if (lane) return;
      s.touched = m.touched2[region];
      m.touched2[region] = 0;
      s.before = child_node(m, m.nodes[level3_number(rx >> 2, ry >> 2, rz >> 2)], child_bit(rx, ry, rz));
      s.freed = granules_of(s.before);
    });
    if (idle(m)) return;
    block.each([&](uint32_t lane) {
      if (lane < 64 && !(s.touched >> lane & 1u)) s.run.child[lane] = child_node(m, s.before, lane);
    });
    for (uint64_t left = s.touched; left;) {
      block.each([&](uint32_t lane) {
        if (lane < kAtOnce) s.masks[lane] = 0;
      });
      block.each([&](uint32_t lane) {
        const uint32_t child = lowest_but(left, lane >> 6), bit = lane & 63u;
        if (child == 64) return;
        const uint32_t x = rx * 16 + (child & 3u) * 4 + (bit & 3u),
                       y = ry * 16 + (child >> 2 & 3u) * 4 + (bit >> 2 & 3u),
                       z = rz * 16 + (child >> 4) * 4 + (bit >> 4);
        const uint32_t key = x | y << 11 | z << 21;
        if (key == kQryReservedKey) return;
        const hashgrid::Found found = hashgrid::find(m.grid, key);
        if (!found.hit) return;
        s.indices[lane] = found.value;
        fetch_or(s.masks[lane >> 6], uint64_t(1) << bit);
      });
      block.each([&](uint32_t lane) {
        const uint32_t child = lowest_but(left, lane >> 6);
        if (child == 64 || (lane & 63u)) return;
        const uint64_t mask = s.masks[lane >> 6];
        const uint32_t room = (bit_count(mask) + 3) / 4;
        s.run.child[child] = {mask, room ? fetch_add(m.control->nodes_top, room) : 0, room};
        if (s.before.mask >> child & 1u) fetch_add(s.freed, granules_of(child_node(m, s.before, child)));
      });
      block.each([&](uint32_t lane) {
        const uint32_t child = lowest_but(left, lane >> 6), bit = lane & 63u;
        if (child == 64 || !(s.masks[lane >> 6] >> bit & 1u)) return;
        auto* const table = reinterpret_cast<uint32_t*>(m.nodes + s.run.child[child].child);
        table[number_in_run(s.masks[lane >> 6], bit)] = s.indices[lane];
      });
      for (uint32_t i = 0; i < kAtOnce && left; ++i) left &= left - 1;
    }
    write_run(m, s.run, block);
    block.each([&](uint32_t lane) {
      if (lane) return;
      m.made2[item] = s.run.node;
      fetch_add(m.control->freed_nodes, s.freed);
    });
  }
};

struct Tops {
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
      if (lane >= 64) return;
      const uint32_t region = level2_number(tx * 4 + (lane & 3u), ty * 4 + (lane >> 2 & 3u), tz * 4 + (lane >> 4));
      s.run.child[lane] = s.touched >> lane & 1u ? m.made2[m.numbers2[region]] : child_node(m, s.before, lane);
    });
    write_run(m, s.run, block);
    block.each([&](uint32_t lane) {
      if (lane) return;
      m.nodes[top] = s.run.node;
      fetch_add(m.control->freed_nodes, granules_of(s.before));
    });
  }
};

// ---- seen

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
        if (position < c.step_count) {
          c.drop_first = m.steps[position].first;
          c.drop_end = c.record_top;
        }
        m.steps[position] = {c.first, c.touched, 0, c.more, c.changed};
        c.record_top = c.first + c.touched;
        c.step_count = c.step_position = position + 1;
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
#if defined(__CUDA_ARCH__)
    __threadfence_system();
#endif
    *const_cast<volatile uint64_t*>(&outcome.ticket) = call.ticket;
  }
};

// ---- release

struct Release {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    const Control& c = *m.control;
    return c.drop_unused + (c.drop_end - c.drop_first);
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    Control& c = *m.control;
    if (item < c.drop_unused) {
      m.free_bricks[push(c.free_count)] = m.unused[item];
      return;
    }
    Record& record = m.records[c.drop_first + (item - c.drop_unused)];
    if (record.before != record.after && is_stored_index(record.after))
      m.free_bricks[push(c.free_count)] = record.after;
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
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return uint64_t(m.grid.page_count) * kQryPageWords; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    if (item % kQryPageWords < kQryStateSectors * 4u) return;
    const uint64_t word = m.grid.words[item];
    if (uint32_t(word) == kQryReservedKey) return;
    const Int3 brick = brick_of_key(qry_key_of_stored(uint32_t(word), m.grid.locality));
    Control& c = *m.control;
    const int32_t x = brick.x * 8, y = brick.y * 8, z = brick.z * 8;
    // Most bricks are inside of what the others have told.
    const auto told = [](const int32_t& value) { return int32_t(peek(reinterpret_cast<const uint32_t&>(value))); };
    if (told(c.low[0]) <= x && told(c.low[1]) <= y && told(c.low[2]) <= z && told(c.high[0]) >= x + 7 &&
        told(c.high[1]) >= y + 7 && told(c.high[2]) >= z + 7)
      return;
    // Of the brick: which planes across each axis have a voxel.
    const auto index = uint32_t(word >> 32);
    uint32_t across[3] = {0, 0, 0};
    for (uint32_t octant = 0; octant < 8; ++octant) {
      const uint64_t mask = is_full_index(index) ? ~uint64_t(0) : m.masks[size_t(index) * 8 + octant];
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
      lower(c.low[axis], at[axis] + int32_t(lowest_bit(across[axis])));
      uint32_t highest = 7;
      while (!(across[axis] >> highest & 1u)) --highest;
      raise(c.high[axis], at[axis] + int32_t(highest));
    }
  }
};

}  // namespace quarry::device
