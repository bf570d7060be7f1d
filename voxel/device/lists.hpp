// SPDX-License-Identifier: Apache-2.0
// lists.hpp - the steps that make bricks of a list of voxels: their keys, each once, which voxels of each are named,
// and what these become, as TouchList and CutBricks<true> read them. The last voxel of the list wins among equal ones,
// in any order of threads.
//
//   begin_list      no brick yet
//   find_bricks     for each piece of the list: the bricks' keys, in a table; of each voxel its place. It then is known
//                   how many bricks there are, and the host makes room for them
//   clear_masks, mark_voxels    the masks, and the materials, if the list names no voxel twice; else
//   place_octants   one word for each voxel that is named: as many as the mask has bits, which are at most the list's
//   find_last       the last index that names it
//   fill_materials  the material there
#pragma once

#include "voxel/device/atomics.hpp"
#include "voxel/device/layout.hpp"
#include "voxel/device/steps.hpp"

namespace quarry::device {

constexpr uint32_t kVoxelBits = 9;  // of a place

struct BeginList {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return uint64_t(m.voxels.last_slot) + 1; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    m.voxels.slots[item] = kQryReservedKey;
    if (item) return;
    Control& c = *m.control;
    c.list_bricks = c.list_full = c.list_repeats = c.list_top = 0;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      c.low[axis] = 1 << 30;
      c.high[axis] = -(1 << 30);
    }
  }
};

// Neighbours in space shall not be neighbours in the table: a box of bricks would fill long runs of it.
QRY_HD inline uint32_t scattered(uint32_t key) {
  key = (key ^ key >> 16) * 0x85EBCA6Bu;
  key = (key ^ key >> 13) * 0xC2B2AE35u;
  return key ^ key >> 16;
}

// Of a brick that is new in the list: its number, and the box of all.
QRY_HD inline void number_brick(const Memory& m, uint32_t slot, uint32_t key) {
  Control& c = *m.control;
  const uint32_t number = push(c.list_bricks);
  if (number >= m.voxels.brick_room) return set_bits(c.list_full, 1);
  m.voxels.numbers[slot] = number;
  m.listed_keys[number] = key;
  const Int3 brick = brick_of_key(key);
  const int32_t low[3] = {brick.x * 8, brick.y * 8, brick.z * 8};
  const auto told = [](const int32_t& value) { return int32_t(peek(reinterpret_cast<const uint32_t&>(value))); };
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if (told(c.low[axis]) > low[axis]) lower(c.low[axis], low[axis]);
    if (told(c.high[axis]) < low[axis] + 7) raise(c.high[axis], low[axis] + 7);
  }
}

// The slot of the key, which is put there if it is new. Nothing is ever taken out: equal keys meet in one slot.
QRY_HD inline uint32_t slot_of(const Memory& m, uint32_t key) {
  const ListedVoxels& l = m.voxels;
  uint32_t slot = scattered(key) & l.last_slot;
  for (uint32_t probes = 0; probes <= l.last_slot; ++probes, slot = (slot + 1) & l.last_slot) {
    uint32_t held = peek(l.slots[slot]);
    if (held == kQryReservedKey) {
      // The list is not grouped: there is no use in a fuller table.
      if (peek(m.control->list_full)) return 0;
      held = exchange_if(l.slots[slot], kQryReservedKey, key);
      if (held == kQryReservedKey) {
        number_brick(m, slot, key);
        return slot;
      }
    }
    if (held == key) return slot;
  }
  set_bits(m.control->list_full, 1);
  return 0;
}

struct FindBricks {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.voxels.size; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const ListedVoxels& l = m.voxels;
    const Int3 voxel{l.xyz[3 * item], l.xyz[3 * item + 1], l.xyz[3 * item + 2]};
    const uint32_t key = qry_pack_brick(voxel.x >> 3, voxel.y >> 3, voxel.z >> 3);
    const uint32_t slot = found_once(key, [&](uint32_t its) { return slot_of(m, its); });
    l.places[l.first + item] = slot << kVoxelBits | voxel_index(voxel);
  }
};

// A voxel of the list: its brick's number in the list of bricks, and its own in the brick.
struct ListedVoxel {
  uint32_t brick, octant, bit;
};
QRY_HD inline ListedVoxel listed_voxel(const ListedVoxels& l, uint64_t index) {
  const uint32_t place = l.places[index];
  return {l.numbers[place >> kVoxelBits], place >> 6 & 7u, place & 63u};
}

struct ClearMasks {
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) { return uint64_t(call.listed) * 8; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) { m.listed_masks[item] = 0; }
};

struct MarkVoxels {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.voxels.count; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const ListedVoxel voxel = listed_voxel(m.voxels, item);
    const size_t word = size_t(voxel.brick) * 8 + voxel.octant;
    const uint64_t bit = uint64_t(1) << voxel.bit;
    if (fetch_or(m.listed_masks[word], bit) & bit) {
      if (!peek(m.control->list_repeats)) set_bits(m.control->list_repeats, 1);
    } else {
      reinterpret_cast<uint8_t*>(m.listed_materials)[word * 64 + voxel.bit] = m.voxels.materials[item];
    }
  }
};

struct PlaceOctants {
  // An item a voxel, of which the first are the bricks too.
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return m.control->list_repeats ? m.voxels.count : 0;
  }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    m.voxels.last[item] = 0;
    if (item >= call.listed) return;
    uint32_t before[8], voxels = 0;
    for (uint32_t octant = 0; octant < 8; ++octant) {
      before[octant] = voxels;
      voxels += bit_count(m.listed_masks[item * 8 + octant]);
    }
    const uint32_t first = push_some(m.control->list_top, voxels);
    for (uint32_t octant = 0; octant < 8; ++octant) m.voxels.firsts[item * 8 + octant] = first + before[octant];
  }
};

struct FindLast {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return m.control->list_repeats ? m.voxels.count : 0;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const ListedVoxel voxel = listed_voxel(m.voxels, item);
    const size_t word = size_t(voxel.brick) * 8 + voxel.octant;
    int32_t& last = m.voxels.last[m.voxels.firsts[word] + number_in_run(m.listed_masks[word], voxel.bit)];
    const auto index = int32_t(item) + 1;
    if (int32_t(peek(reinterpret_cast<const uint32_t&>(last))) < index) raise(last, index);
  }
};

// Eight voxels a thread.
struct FillMaterials {
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) {
    return m.control->list_repeats ? uint64_t(call.listed) * 64 : 0;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const uint64_t mask = m.listed_masks[item >> 3];
    const uint32_t first_bit = uint32_t(item & 7u) * 8;
    const auto named = uint32_t(mask >> first_bit & 0xFFu);
    if (!named) return;
    const int32_t* last = m.voxels.last + m.voxels.firsts[item >> 3] + number_in_run(mask, first_bit);
    uint64_t eight = 0;
    for (uint32_t i = 0; i < 8; ++i)
      if (named >> i & 1u) eight |= uint64_t(m.voxels.materials[*last++ - 1]) << (8 * i);
    m.listed_materials[item] = eight;
  }
};

}  // namespace quarry::device
