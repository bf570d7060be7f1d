// SPDX-License-Identifier: Apache-2.0
// algebra.hpp - the steps that find what becomes of a world as a set of voxels: combined with another one, grown or
// eroded by a voxel. What comes out is a list of bricks, as TouchList and CutBricks<true> read it, so the rest is an
// edit like any other.
//
// Two worlds:
//   begin_list      nothing is known
//   list_combined   a thread a slot of a grid: bricks of which something changes are counted (EditCall::fills is 0).
//                   The host makes room for so many
//   list_combined   the same once more: keys, and which voxels of each (EditCall::fills is 1)
//   copy_materials  what voxels become that come from the other world
// A union and a difference walk the other world's grid and look its keys up in the world's own, an intersection the
// other way round: an inner, a semi and an anti join of two sets of keys, each of which is a hash table already.
//
// A world by a voxel (what becomes of each is said in voxel/operations/morphology.hpp):
//   begin_list      nothing is known
//   find_around     nodes of level 2 that have bricks, or a neighbour that has
//   list_around     a block of threads a node: bricks that are there, and to grow also those beside them, found in the
//                   masks of 6^3 nodes of level 1 by shifts; counted first, then written
//   morph           a block of threads some bricks: each with the voxels around it in shared memory
#pragma once

#include <utility>

#include "voxel/device/steps.hpp"

namespace quarry::device {

struct ListCombined {
  QRY_HD static const hashgrid::GridView& walked(const Memory& m, const EditCall& call) {
    return call.combination == Combination::intersection ? m.grid : m.other.grid;
  }
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) {
    return uint64_t(walked(m, call).page_count) * kQryPageWords;
  }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    const bool walks_own = call.combination == Combination::intersection;
    const Pair pair = pair_at(walked(m, call), item);
    if (!pair.there) return;
    const hashgrid::Found found = hashgrid::find(walks_own ? m.other.grid : m.grid, pair.key);
    const uint32_t there = found.hit ? found.value : kNone;
    const uint32_t own = walks_own ? pair.index : there, others = walks_own ? there : pair.index;
    uint64_t named[8] = {};
    switch (call.combination) {
      case Combination::union_of:
        if (own == kNone && is_full_index(others)) return list_whole(m, call, pair.key, uint8_t(others + 1));
        for (uint32_t o = 0; o < 8; ++o) named[o] = mask(m.other.masks, others, o) & ~mask(m.masks, own, o);
        break;
      case Combination::intersection:
        if (others == kNone) return list_whole(m, call, pair.key, 0);
        for (uint32_t o = 0; o < 8; ++o) named[o] = mask(m.masks, own, o) & ~mask(m.other.masks, others, o);
        break;
      case Combination::difference:
        if (own == kNone) return;
        if (is_full_index(others)) return list_whole(m, call, pair.key, 0);
        for (uint32_t o = 0; o < 8; ++o) named[o] = mask(m.masks, own, o) & mask(m.other.masks, others, o);
        break;
    }
    uint64_t any = 0;
    for (const uint64_t word : named) any |= word;
    if (any == 0) return;
    const uint32_t number = push(m.control->list_bricks);
    if (!call.fills) return;
    m.listed_keys[call.listed_full + number] = pair.key;
    for (uint32_t o = 0; o < 8; ++o) m.listed_masks[size_t(number) * 8 + o] = named[o];
    // Until they are copied: whose materials they are.
    if (m.listed_materials) m.listed_materials[size_t(number) * 64] = others;
  }

 private:
  QRY_HD static uint64_t mask(const uint64_t* masks, uint32_t index, uint32_t octant) {
    return index == kNone ? 0 : masks[size_t(index) * 8 + octant];  // full bricks have masks, too
  }
  QRY_HD static void list_whole(const Memory& m, const EditCall& call, uint32_t key, uint8_t material) {
    const uint32_t number = push(m.control->list_whole);
    if (!call.fills) return;
    m.listed_keys[number] = key;
    m.listed_full[number] = material;
  }
};

struct CopyMaterials {
  static constexpr uint32_t kThreads = 256, kResident = 8, kBricks = 16;
  struct Shared {
    uint32_t indices[kBricks];
  };
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) {
    return (uint64_t(call.listed - call.listed_full) + kBricks - 1) / kBricks;
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    const size_t first = size_t(item) * kBricks;
    const size_t left = call.listed - call.listed_full - first;
    const auto count = uint32_t(left < kBricks ? left : kBricks);
    block.each([&](uint32_t lane) {
      if (lane < count) s.indices[lane] = uint32_t(m.listed_materials[(first + lane) * 64]);
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < count * 64; i += kThreads)
        m.listed_materials[first * 64 + i] = m.other.materials[size_t(s.indices[i >> 6]) * 64 + (i & 63u)];
    });
  }
};

// ---- by a voxel

// Which of the 26 voxels around one are its neighbours, by how many of its axes differ.
QRY_HD constexpr bool is_neighbour(const EditCall& call, int32_t dx, int32_t dy, int32_t dz) {
  const int32_t axes = (dx != 0) + (dy != 0) + (dz != 0);
  return axes >= 1 && axes <= (call.neighbours == 6 ? 1 : call.neighbours == 18 ? 2 : 3);
}

// A node's 4^3 children, of 27 nodes side by side those in the middle: set where one of the 27 around it is, itself
// too. cells(dx, dy, dz): the masks.
template <class Cells>
QRY_HD inline uint64_t spread_children(const Cells& cells) {
  constexpr uint64_t kX0 = 0x1111111111111111u, kY0 = 0x000F000F000F000Fu;
  uint64_t planes[3];
  for (int32_t dz = -1; dz <= 1; ++dz) {
    uint64_t rows[3];
    for (int32_t dy = -1; dy <= 1; ++dy) {
      const uint64_t own = cells(0, dy, dz);
      rows[dy + 1] = own | (own & ~(kX0 << 3)) << 1 | (own & ~kX0) >> 1 | (cells(-1, dy, dz) >> 3 & kX0) |
                     (cells(1, dy, dz) & kX0) << 3;
    }
    planes[dz + 1] =
        rows[1] | (rows[1] & ~(kY0 << 12)) << 4 | (rows[1] & ~kY0) >> 4 | (rows[0] >> 12 & kY0) | (rows[2] & kY0) << 12;
  }
  return planes[1] | planes[1] << 16 | planes[1] >> 16 | planes[0] >> 48 | planes[2] << 48;
}

// The node of level 2 there; none outside of the world.
QRY_HD inline OccupancyNode level2_node(const Memory& m, int32_t x, int32_t y, int32_t z) {
  if (uint32_t(x) >= 128u || uint32_t(y) >= 64u || uint32_t(z) >= 128u) return {0, 0, 0};
  const auto ux = uint32_t(x), uy = uint32_t(y), uz = uint32_t(z);
  return child_node(m.nodes, m.nodes[level3_number(ux >> 2, uy >> 2, uz >> 2)], child_bit(ux, uy, uz));
}

struct FindAround {
  QRY_HD static uint64_t items(const Memory&, const EditCall&) { return kLevel2Nodes; }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    const auto region = uint32_t(item);
    const auto x = int32_t(region & 127u), y = int32_t(region >> 7 & 63u), z = int32_t(region >> 13);
    const int32_t reach = call.grows ? 1 : 0;
    bool any = false;
    for (int32_t dz = -reach; dz <= reach && !any; ++dz)
      for (int32_t dy = -reach; dy <= reach && !any; ++dy)
        for (int32_t dx = -reach; dx <= reach && !any; ++dx) {
          const int32_t ax = x + dx, ay = y + dy, az = z + dz;
          if (uint32_t(ax) >= 128u || uint32_t(ay) >= 64u || uint32_t(az) >= 128u) continue;
          const OccupancyNode& top = m.nodes[level3_number(uint32_t(ax) >> 2, uint32_t(ay) >> 2, uint32_t(az) >> 2)];
          any = top.mask >> child_bit(uint32_t(ax), uint32_t(ay), uint32_t(az)) & 1u;
        }
    if (any) m.regions[push(m.control->list_regions)] = region;
  }
};

struct ListAround {
  static constexpr uint32_t kThreads = 256, kResident = 4;
  struct Shared {
    uint64_t cells[216];  // masks of nodes of level 1, from one before the node on
    uint64_t found[64];
    uint32_t before[64];
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->list_regions; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    const uint32_t region = m.regions[item];
    const auto rx = int32_t(region & 127u), ry = int32_t(region >> 7 & 63u), rz = int32_t(region >> 13);
    block.each([&](uint32_t lane) {
      if (lane >= 216) return;
      const int32_t x = rx * 4 - 1 + int32_t(lane % 6), y = ry * 4 - 1 + int32_t(lane / 6 % 6),
                    z = rz * 4 - 1 + int32_t(lane / 36);
      const OccupancyNode above = level2_node(m, x >> 2, y >> 2, z >> 2);
      s.cells[lane] = child_node(m.nodes, above, child_bit(uint32_t(x), uint32_t(y), uint32_t(z))).mask;
    });
    block.each([&](uint32_t lane) {
      if (lane >= 64) return;
      const auto x = int32_t(lane & 3u) + 1, y = int32_t(lane >> 2 & 3u) + 1, z = int32_t(lane >> 4) + 1;
      const auto cell = [&](int32_t dx, int32_t dy, int32_t dz) {
        return s.cells[size_t((x + dx) + 6 * (y + dy) + 36 * (z + dz))];
      };
      s.found[lane] = call.grows ? spread_children(cell) : cell(0, 0, 0);
    });
    block.each([&](uint32_t lane) {
      if (lane) return;
      uint32_t sum = 0;
      for (uint32_t i = 0; i < 64; ++i) {
        s.before[i] = sum;
        sum += bit_count(s.found[i]);
      }
      const uint32_t first = sum ? fetch_add(m.control->list_bricks, sum) : 0;
      for (uint32_t i = 0; i < 64; ++i) s.before[i] += first;
    });
    if (!call.fills) return;
    block.each([&](uint32_t lane) {
      if (lane >= 64) return;
      uint32_t to = s.before[lane];
      for (uint64_t left = s.found[lane]; left; left &= left - 1) {
        const uint32_t bit = lowest_bit(left);
        const uint32_t x = uint32_t(rx) * 16 + (lane & 3u) * 4 + (bit & 3u),
                       y = uint32_t(ry) * 16 + (lane >> 2 & 3u) * 4 + (bit >> 2 & 3u),
                       z = uint32_t(rz) * 16 + (lane >> 4) * 4 + (bit >> 4);
        m.candidates[to++] = x | y << 11 | z << 21;
      }
    });
  }
};

// What eight voxels become. rows[z][y]: the voxels of rows y - 1 to y + 2 in planes z - 1 to z + 1, each as three words
// of which the middle one has the four in question.
struct EightAround {
  uint32_t rows[3][4][3];
  // The eight that lie by so much aside.
  QRY_HD uint64_t shifted(int32_t dx, int32_t dy, int32_t dz) const {
    return four(rows[dz + 1][dy + 1], dx) | uint64_t(four(rows[dz + 1][dy + 2], dx)) << 32;
  }

 private:
  QRY_HD static uint32_t four(const uint32_t (&row)[3], int32_t dx) {
    return dx == 0 ? row[1] : dx < 0 ? row[1] << 8 | row[0] >> 24 : row[1] >> 8 | row[2] << 24;
  }
};
// 0xFF for each byte that is not 0.
QRY_HD constexpr uint64_t widened_bytes(uint64_t eight) {
  constexpr uint64_t kLow = kEachByte * 0x7F;
  return ((((eight & kLow) + kLow) | eight) >> 7 & kEachByte) * 0xFF;
}
// Calls meet(dx, dy, dz) for 27 steps, x fastest, each a constant there: so a thread's rows stay in registers.
template <size_t... kSteps, class Meet>
QRY_HD inline void for_each_step(std::index_sequence<kSteps...>, const Meet& meet) {
  (meet(int32_t(kSteps % 3) - 1, int32_t(kSteps / 3 % 3) - 1, int32_t(kSteps / 9) - 1), ...);
}
// Materials after a step: of grown ones the first neighbour's in the order of voxel/neighbours.
QRY_HD inline uint64_t morphed(const EditCall& call, const EightAround& around) {
  uint64_t eight = around.shifted(0, 0, 0);
  const auto meet = [&](int32_t dx, int32_t dy, int32_t dz) {
    const uint64_t beside = around.shifted(dx, dy, dz);
    if (call.grows) eight |= beside & ~widened_bytes(eight);
    else eight &= widened_bytes(beside);
  };
  if (call.neighbours == 6) {
    meet(-1, 0, 0), meet(1, 0, 0), meet(0, -1, 0), meet(0, 1, 0), meet(0, 0, -1), meet(0, 0, 1);
    return eight;
  }
  for_each_step(std::make_index_sequence<27>(), [&](int32_t dx, int32_t dy, int32_t dz) {
    if (is_neighbour(call, dx, dy, dz)) meet(dx, dy, dz);
  });
  return eight;
}

struct Morph {
  static constexpr uint32_t kThreads = 128, kResident = 12, kBricks = 2, kLanes = kThreads / kBricks;
  static constexpr uint32_t kPlane = 42;
  struct Shared {
    struct One {
      uint32_t key, changes, number;
      uint32_t around[27];
      // Rows of the voxels from -1 to 8, which are bytes 3 to 12 of each. Planes are 42 words apart: threads of a warp
      // then read from 32 banks.
      uint32_t halo[10 * kPlane];
      uint64_t now[64];
      uint8_t named[64];
    } bricks[kBricks];
  };
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) {
    return (uint64_t(call.listed) + kBricks - 1) / kBricks;
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    const auto number_of = [item](uint32_t lane) { return size_t(item) * kBricks + lane / kLanes; };
    block.each([&](uint32_t lane) {
      typename Shared::One& one = s.bricks[lane / kLanes];
      const uint32_t i = lane % kLanes;
      if (i == 0) one.changes = 0;
      if (number_of(lane) >= call.listed) return;
      const uint32_t key = m.candidates[number_of(lane)];
      if (i == 0) one.key = key;
      if (i >= 27) return;
      const int32_t x = int32_t(key & 2047u) + int32_t(i % 3) - 1,
                    y = int32_t(key >> 11 & 1023u) + int32_t(i / 3 % 3) - 1,
                    z = int32_t(key >> 21) + int32_t(i / 9) - 1;
      one.around[i] = kNone;
      if (uint32_t(x) > 2047u || uint32_t(y) > 1023u || uint32_t(z) > 2047u) return;
      const uint32_t beside = uint32_t(x) | uint32_t(y) << 11 | uint32_t(z) << 21;
      if (beside == kQryReservedKey) return;
      const hashgrid::Found found = hashgrid::find(m.grid, beside);
      if (found.hit) one.around[i] = found.value;
    });
    block.each([&](uint32_t lane) {
      if (number_of(lane) >= call.listed) return;
      typename Shared::One& one = s.bricks[lane / kLanes];
      for (uint32_t row = lane % kLanes; row < 100; row += kLanes) {
        const auto y = int32_t(row % 10) - 1, z = int32_t(row / 10) - 1;
        // Of the three bricks that the row crosses: where it is in each.
        const uint32_t first = uint32_t(((z >> 3) + 1) * 9 + ((y >> 3) + 1) * 3);
        const uint32_t octants = (uint32_t(y) >> 2 & 1u) << 1 | (uint32_t(z) >> 2 & 1u) << 2;
        const uint32_t within = (uint32_t(z) & 3u) * 4 + (uint32_t(y) & 3u);  // words of four voxels
        const auto four = [&](uint32_t brick, uint32_t octant) {
          const uint32_t index = one.around[first + brick];
          if (index == kNone) return 0u;
          return reinterpret_cast<const uint32_t*>(m.materials)[size_t(index) * 128 + (octants | octant) * 16 + within];
        };
        uint32_t* const to = one.halo + row / 10 * kPlane + row % 10 * 4;
        to[0] = four(0, 1);
        to[1] = four(1, 0);
        to[2] = four(1, 1);
        to[3] = four(2, 0);
      }
    });
    block.each([&](uint32_t lane) {
      if (number_of(lane) >= call.listed) return;
      typename Shared::One& one = s.bricks[lane / kLanes];
      const uint32_t at = lane % kLanes, octant = at >> 3, byte = at & 7u;
      const uint32_t y = (octant >> 1 & 1u) * 4 + (byte & 1u) * 2, z = (octant >> 2) * 4 + (byte >> 1);
      EightAround around;
      const uint32_t* const from = one.halo + z * kPlane + y * 4 + (octant & 1u);
      for (uint32_t dz = 0; dz < 3; ++dz)
        for (uint32_t dy = 0; dy < 4; ++dy)
          for (uint32_t w = 0; w < 3; ++w) around.rows[dz][dy][w] = from[dz * kPlane + dy * 4 + w];
      const uint64_t before = around.shifted(0, 0, 0), now = morphed(call, around);
      one.now[at] = now;
      one.named[at] = uint8_t(~equal_bytes(now ^ before, 0));
      if (now != before) set_bits(one.changes, 1);
    });
    block.each([&](uint32_t lane) {
      typename Shared::One& one = s.bricks[lane / kLanes];
      if (lane % kLanes || !one.changes) return;
      if (one.key == kQryReservedKey) set_bits(m.control->list_full, 1);
      one.number = push(m.control->list_bricks);
      m.listed_keys[one.number] = one.key;
    });
    block.each([&](uint32_t lane) {
      const typename Shared::One& one = s.bricks[lane / kLanes];
      if (!one.changes) return;
      const uint32_t at = lane % kLanes;
      if (call.grows) m.listed_materials[size_t(one.number) * 64 + at] = one.now[at];
      reinterpret_cast<uint8_t*>(m.listed_masks + size_t(one.number) * 8)[at] = one.named[at];
    });
  }
};

}  // namespace quarry::device
