// SPDX-License-Identifier: Apache-2.0
// flood.hpp - the steps that find what is connected with a voxel, through faces, by voxels of its material: a list of
// bricks and which voxels of each (Shape::connected), as TouchList and CutBricks<true> read it.
//
//   clear_table     no key has a number
//   seed_flood      the material, and the first brick; none if the voxel is empty
//   flood_round     of each brick of the round: what its neighbours' faces reach, flooded within it. Neighbours of
//                   which it reaches more are listed, if they were not, and take part in the next round
//   number_bricks   into a larger table, when the list had no room: then all bricks take part in a round once more
//
// WHY ANY ORDER WILL DO. In a round a brick belongs to one block of threads, which alone sets its bits; bits are only
// ever set. It may see a neighbour before or after the neighbour's own part in the round. If it was before, and the
// neighbour gets new bits on the face between the two, the neighbour puts it into the next round, which begins when all
// of this one is in memory. So when a round is of no brick, each has seen the last of what its neighbours reach. A
// brick is listed for a voxel that is reached: the list has as many bricks as the shape. What a brick has that is
// listed while a round runs may not be in memory yet: the round leaves it alone, and it looks around itself in the next
// one.
//
// Literature: rounds over a frontier are the breadth-first search of D. Merrill, M. Garland, A. Grimshaw, "Scalable GPU
// Graph Traversal", 2012; here a node is a brick, and the search within it is by words of 4 x 4 x 4 voxels.
#pragma once

#include "voxel/device/bodies/atomics.hpp"
#include "voxel/device/bodies/layout.hpp"
#include "voxel/device/bodies/steps.hpp"

namespace quarry::device {

// ---- One word, an octant of 4 x 4 x 4 voxels: bit x | y << 2 | z << 4

// The voxels of a neighbour's face, as those that they touch: of the neighbour before along the axis, and the one
// after.
QRY_HD constexpr uint64_t from_before(uint64_t word, uint32_t axis) {
  return axis == 0 ? (word & 0x8888888888888888u) >> 3 : axis == 1 ? (word & 0xF000F000F000F000u) >> 12 : word >> 48;
}
QRY_HD constexpr uint64_t from_after(uint64_t word, uint32_t axis) {
  return axis == 0 ? (word & 0x1111111111111111u) << 3 : axis == 1 ? (word & 0x000F000F000F000Fu) << 12 : word << 48;
}
// What is connected with `word` in `same`, which holds it.
QRY_HD inline uint64_t flooded(uint64_t word, uint64_t same) {
  for (;;) {
    const uint64_t now =
        (word | (word & 0x7777777777777777u) << 1 | (word & 0xEEEEEEEEEEEEEEEEu) >> 1 |
         (word & 0x0FFF0FFF0FFF0FFFu) << 4 | (word & 0xFFF0FFF0FFF0FFF0u) >> 4 | word << 16 | word >> 16) &
        same;
    if (now == word) return word;
    word = now;
  }
}

// ---- The table of keys

// Neighbours in space shall not be neighbours in the table: a box of bricks would fill long runs of it.
QRY_HD inline uint32_t scattered(uint32_t key) {
  key = (key ^ key >> 16) * 0x85EBCA6Bu;
  key = (key ^ key >> 13) * 0xC2B2AE35u;
  return key ^ key >> 16;
}

// The slot of the key, which is put there if it is new; then number(slot) is called. Nothing is ever taken out: equal
// keys meet in one slot. What it returns where `full` is set is of no use.
template <class Number>
QRY_HD inline uint32_t slot_of(const KeyTable& table, uint32_t key, uint32_t& full, const Number& number) {
  uint32_t slot = scattered(key) & table.last_slot;
  for (uint32_t probes = 0; probes <= table.last_slot; ++probes, slot = (slot + 1) & table.last_slot) {
    uint32_t held = peek(table.slots[slot]);
    if (held == kQryReservedKey) {
      // There is no use in a fuller table.
      if (peek(full)) return 0;
      held = exchange_if(table.slots[slot], kQryReservedKey, key);
      if (held == kQryReservedKey) {
        number(slot);
        return slot;
      }
    }
    if (held == key) return slot;
  }
  set_bits(full, 1);
  return 0;
}

// The number of a key that was listed before the round; kNone: it was not.
QRY_HD inline uint32_t flooded_number(const Memory& m, uint32_t key) {
  const KeyTable& table = m.flood.table;
  uint32_t slot = scattered(key) & table.last_slot;
  for (uint32_t probes = 0; probes <= table.last_slot; ++probes, slot = (slot + 1) & table.last_slot) {
    const uint32_t held = peek(table.slots[slot]);
    if (held == kQryReservedKey) return kNone;
    if (held != key) continue;
    const uint32_t number = peek(table.numbers[slot]);
    return number < m.control->flood_known ? number : kNone;
  }
  return kNone;
}

// Lists a brick, if it is not there, for `round`.
QRY_HD inline void list_flooded(const Memory& m, uint32_t key, uint32_t round) {
  Control& c = *m.control;
  const Flood& f = m.flood;
  slot_of(f.table, key, c.list_full, [&](uint32_t slot) {
    const uint32_t number = push(c.list_bricks);
    if (number >= f.brick_room) return set_bits(c.list_full, 1);
    m.listed_keys[number] = key;
    for (uint32_t octant = 0; octant < 8; ++octant) {
      f.same[size_t(number) * 8 + octant] = ~uint64_t(0);
      m.listed_masks[size_t(number) * 8 + octant] = 0;
    }
    f.queued[number] = round;
    put(f.table.numbers[slot], number);
    f.frontier[round & 1u][push(c.flood_fronts[round & 1u])] = number;
  });
}

struct ClearTable {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return uint64_t(m.flood.table.last_slot) + 1; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    m.flood.table.slots[item] = kQryReservedKey;
    m.flood.table.numbers[item] = kNone;
  }
};

// The call's shape begins at the voxel, which is in the world.
struct SeedFlood {
  QRY_HD static void run(const Memory& m, const EditCall& call) {
    Control& c = *m.control;
    c.list_bricks = c.list_full = 0;
    c.flood_material = c.flood_known = c.flood_all = 0;
    c.flood_fronts[0] = c.flood_fronts[1] = 0;
    c.flood_round = 0;
    const Int3 voxel = call.shape.a;
    const uint32_t key = qry_pack_brick(voxel.x >> 3, voxel.y >> 3, voxel.z >> 3);
    const hashgrid::Found found = hashgrid::find(m.grid, key);
    if (!found.hit) return;
    const uint32_t index = voxel_index(voxel);
    c.flood_material = is_full_index(found.value)
                           ? found.value + 1u
                           : reinterpret_cast<const uint8_t*>(m.materials + size_t(found.value) * 64)[index];
    if (!c.flood_material) return;
    list_flooded(m, key, 0);
    c.flood_known = c.list_bricks;
    c.flood_all = 1;
  }
};

struct NumberBricks {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->list_bricks; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    slot_of(m.flood.table, m.listed_keys[item], m.control->list_full,
            [&](uint32_t slot) { m.flood.table.numbers[slot] = uint32_t(item); });
  }
};

// ---- Rounds

struct EndRound {
  QRY_HD static void run(const Memory& m, const EditCall&) {
    Control& c = *m.control;
    c.flood_fronts[c.flood_round & 1u] = 0;
    // Nothing is done before there is room: the host says when.
    if (c.list_full) c.flood_fronts[0] = c.flood_fronts[1] = 0;
    c.flood_all = 0;
    c.flood_known = c.list_bricks;
    ++c.flood_round;
  }
};

struct FloodRound {
  using Tail = EndRound;
  static constexpr uint32_t kThreads = 64, kResident = 16;
  struct Shared {
    uint64_t same[8];
    uint64_t reached[2][8];  // by turns
    uint64_t before[8];
    uint64_t fresh[8];     // what the neighbours have not been told
    uint64_t seeds[6][4];  // by face: what that is of the neighbour's four octants there
    uint32_t key, index;   // of the brick; the index if its voxels of the material are to be found, else kNone
    uint32_t neighbours[6], indices[6], found[6];
    uint32_t changed[3];  // by turns
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    const Control& c = *m.control;
    return c.flood_all ? c.flood_known : c.flood_fronts[c.flood_round & 1u];
  }
  // Face 2 * axis is towards the brick before along the axis, the next one towards the brick after. kQryReservedKey:
  // there is none in the world.
  QRY_HD static uint32_t neighbour_key(uint32_t key, uint32_t face) {
    const uint32_t shift = face >> 1 == 0 ? 0 : face >> 1 == 1 ? 11 : 21, last = face >> 1 == 1 ? 1023 : 2047;
    const uint32_t at = key >> shift & last;
    if (at == (face & 1u ? last : 0)) return kQryReservedKey;
    return face & 1u ? key + (1u << shift) : key - (1u << shift);
  }
  // The number-th of a brick's octants on the side of the face that is towards it.
  QRY_HD static uint32_t octant_behind(uint32_t face, uint32_t number) {
    const uint32_t axis = face >> 1, low = number & ((1u << axis) - 1u);
    return low | (number >> axis) << (axis + 1) | (face & 1u ? 0 : 1u << axis);
  }

  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    Control& c = *m.control;
    const Flood& f = m.flood;
    const uint32_t round = c.flood_round, all = c.flood_all;
    const auto material = uint8_t(c.flood_material);
    const uint32_t number = all ? uint32_t(item) : f.frontier[round & 1u][item];
    uint64_t* const reached = m.listed_masks + size_t(number) * 8;
    block.each([&](uint32_t lane) {
      if (lane < 8) {
        s.same[lane] = f.same[size_t(number) * 8 + lane];
        s.before[lane] = reached[lane];
      } else if (lane < 14) {
        const uint32_t key = neighbour_key(m.listed_keys[number], lane - 8);
        s.neighbours[lane - 8] = key == kQryReservedKey ? kNone : flooded_number(m, key);
      } else if (lane == 14) {
        s.key = m.listed_keys[number];
      } else if (lane < 18) {
        s.changed[lane - 15] = 0;
      }
    });
    // What the neighbours reach. Each octant has three faces to the outside.
    block.each([&](uint32_t lane) {
      if (lane < 8) {
        uint64_t now = s.before[lane];
        for (uint32_t axis = 0; axis < 3; ++axis) {
          const uint32_t after = lane >> axis & 1u, neighbour = s.neighbours[axis * 2 + after];
          if (neighbour == kNone) continue;
          const uint64_t its = peek(m.listed_masks[size_t(neighbour) * 8 + (lane ^ 1u << axis)]);
          now |= after ? from_after(its, axis) : from_before(its, axis);
        }
        const uint32_t seed = voxel_index(call.shape.a);
        if (number == 0 && seed >> 6 == lane) now |= uint64_t(1) << (seed & 63u);
        s.reached[0][lane] = now;
      } else if (lane == 8) {
        // A brick that is full keeps all ones.
        s.index = kNone;
        uint64_t both = ~uint64_t(0);
        for (uint32_t octant = 0; octant < 8; ++octant) both &= s.same[octant];
        if (both != ~uint64_t(0)) return;
        const uint32_t index = hashgrid::find(m.grid, s.key).value;
        if (is_stored_index(index)) s.index = index;
      }
    });
    if (s.index != kNone)
      block.each([&](uint32_t lane) {
        reinterpret_cast<uint8_t*>(s.same)[lane] =
            uint8_t(equal_bytes(m.materials[size_t(s.index) * 64 + lane], material));
      });
    // Within the brick: octants by themselves, and then what they tell each other.
    uint32_t turn = 0;
    for (;; ++turn) {
      block.each([&](uint32_t lane) {
        if (lane == 8) s.changed[(turn + 1) % 3] = 0;
        if (lane >= 8) return;
        const auto& from = s.reached[turn & 1u];
        uint64_t now = from[lane];
        for (uint32_t axis = 0; axis < 3; ++axis) {
          const uint32_t other = lane ^ 1u << axis;
          const uint64_t its = from[other] & s.same[other];
          now |= lane >> axis & 1u ? from_before(its, axis) : from_after(its, axis);
        }
        now = flooded(now & s.same[lane], s.same[lane]);
        s.reached[~turn & 1u][lane] = now;
        if (now != from[lane]) set_bits(s.changed[turn % 3], 1);
      });
      if (!s.changed[turn % 3]) break;
    }
    block.each([&](uint32_t lane) {
      if (lane >= 8) return;
      const uint64_t now = s.reached[0][lane];
      s.fresh[lane] = now & ~(all ? 0 : s.before[lane]);
      if (now != s.before[lane]) put(reached[lane], now);
      if (s.index != kNone) put(f.same[size_t(number) * 8 + lane], s.same[lane]);
    });
    // Bricks that are listed reach more by it, or do not; of others it depends on their voxels at the face.
    block.each([&](uint32_t lane) {
      if (lane >= 6) return;
      const uint32_t face = lane, axis = face >> 1, neighbour = s.neighbours[face];
      s.indices[face] = kNone;
      s.found[face] = 0;
      uint64_t any = 0, more = 0;
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t its = octant_behind(face, i);
        const uint64_t fresh = s.fresh[its ^ 1u << axis];
        const uint64_t seeds = face & 1u ? from_before(fresh, axis) : from_after(fresh, axis);
        s.seeds[face][i] = seeds;
        any |= seeds;
        if (seeds && neighbour != kNone) {
          const size_t word = size_t(neighbour) * 8 + its;
          more |= seeds & peek(f.same[word]) & ~peek(m.listed_masks[word]);
        }
      }
      if (!any) return;
      if (neighbour == kNone) {
        const uint32_t key = neighbour_key(s.key, face);
        if (key == kQryReservedKey) return;
        const hashgrid::Found found = hashgrid::find(m.grid, key);
        if (!found.hit) return;
        if (is_full_index(found.value)) s.found[face] = found.value == full_index(material);
        else s.indices[face] = found.value;
        return;
      }
      if (!more) return;
      uint32_t& queued = f.queued[neighbour];
      const uint32_t seen = peek(queued);
      // Another block may do the same.
      if (seen != round + 1 && exchange_if(queued, seen, round + 1) == seen)
        f.frontier[~round & 1u][push(c.flood_fronts[~round & 1u])] = neighbour;
    });
    // Eight voxels a thread.
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < 6 * 4 * 8; i += kThreads) {
        const uint32_t face = i >> 5, octant = i >> 3 & 3u, byte = i & 7u;
        const auto seeds = uint32_t(s.seeds[face][octant] >> (8 * byte) & 0xFFu);
        if (s.indices[face] == kNone || !seeds) continue;
        const size_t at = size_t(s.indices[face]) * 64 + octant_behind(face, octant) * 8 + byte;
        if (equal_bytes(m.materials[at], material) & seeds) set_bits(s.found[face], 1);
      }
    });
    block.each([&](uint32_t lane) {
      if (lane < 6 && s.found[lane]) list_flooded(m, neighbour_key(s.key, lane), round + 1);
    });
  }
};

}  // namespace quarry::device
