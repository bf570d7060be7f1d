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
//   morph           a block of threads some bricks: each with the voxels around it in shared memory, whose bits tell
//                   which change
#pragma once

#include "voxel/device/bodies/steps.hpp"

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
        m.listed_materials[first * 64 + i] = eight_materials(m.other, s.indices[i >> 6], i & 63u);
    });
  }
};

// ---- by a voxel

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

// 0xFF for each byte that is not 0.
QRY_HD inline uint64_t widened_bytes(uint64_t eight) {
#if defined(__CUDA_ARCH__)
  return uint64_t(__vcmpne4(uint32_t(eight >> 32), 0)) << 32 | __vcmpne4(uint32_t(eight), 0);
#else
  constexpr uint64_t kLow = kEachByte * 0x7F;
  return ((((eight & kLow) + kLow) | eight) >> 7 & kEachByte) * 0xFF;
#endif
}
// Of each byte the first that is not 0.
QRY_HD inline uint64_t first_of(uint64_t a, uint64_t b) { return a | (b & ~widened_bytes(a)); }
QRY_HD inline uint64_t first_of(uint64_t a, uint64_t b, uint64_t c) { return first_of(first_of(a, b), c); }

// First which voxels change, by bits: rows of ten, from -1 to 8, widened along x, then joined along y and z. What grown
// voxels become is found only for bricks that get any: the order of neighbours has x fastest and z slowest, so the
// first one is the first along x of each row, of those the first along y, of those the first along z.
struct Morph {
  static constexpr uint32_t kThreads = 64, kResident = 16, kBricks = 2, kLanes = kThreads / kBricks;
  static constexpr uint32_t kPlane = 10, kHaloRows = kPlane * kPlane;  // rows of y and z from -1 to 8
  struct Shared {
    struct One {
      uint32_t key, changes, number;
      uint32_t around[27];
      uint64_t octants[64];  // masks of the 4^3 octants from the one before the brick on; of erosions what is empty
      // Of each row: bit x + 1 its voxel x, bit 16 + x whether x or one beside it is.
      uint32_t rows[kHaloRows];
      uint8_t named[64];  // rows of the brick
      // Materials of rows, of their first voxels along x, and of the first of those along y: of rows of z from -1 to 8.
      uint64_t own[kHaloRows], beside[kHaloRows], planes[8 * kPlane], ends[8 * kPlane];
    } bricks[kBricks];
    uint32_t first;
  };
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) {
    return (uint64_t(call.listed) + kBricks - 1) / kBricks;
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    using One = typename Shared::One;
    const auto number_of = [item](uint32_t lane) { return size_t(item) * kBricks + lane / kLanes; };
    block.each([&](uint32_t lane) {
      One& one = s.bricks[lane / kLanes];
      const uint32_t i = lane % kLanes;
      if (i == 0) one.changes = 0;
      if (number_of(lane) >= call.listed) return;
      const uint32_t key = m.candidates[number_of(lane)];
      if (i == 0) one.key = key;
      if (i < 27) one.around[i] = index_beside(m, key, i);
    });
    block.each([&](uint32_t lane) {
      if (number_of(lane) >= call.listed) return;
      One& one = s.bricks[lane / kLanes];
      for (uint32_t i = lane % kLanes; i < 64; i += kLanes) {
        const uint32_t x = (i & 3u) + 1, y = (i >> 2 & 3u) + 1, z = (i >> 4) + 1;
        const uint32_t index = one.around[(x >> 1) + (y >> 1) * 3 + (z >> 1) * 9];
        const uint64_t mask =
            index == kNone ? 0 : m.masks[size_t(index) * 8 + ((x & 1u) | (y & 1u) << 1 | (z & 1u) << 2)];
        one.octants[i] = call.grows ? mask : ~mask;  // full bricks have masks, too
      }
    });
    block.each([&](uint32_t lane) {
      if (number_of(lane) >= call.listed) return;
      One& one = s.bricks[lane / kLanes];
      for (uint32_t row = lane % kLanes; row < kHaloRows; row += kLanes) {
        const uint32_t y = row % kPlane + 3, z = row / kPlane + 3;  // from the first octant on
        const uint64_t* const octants = one.octants + (y >> 2) * 4 + (z >> 2) * 16;
        const uint32_t at = (y & 3u) * 4 + (z & 3u) * 16;
        const auto four = [&](uint32_t octant) { return uint32_t(octants[octant] >> at) & 15u; };
        const uint32_t ten = four(0) >> 3 | four(1) << 1 | four(2) << 5 | (four(3) & 1u) << 9;
        one.rows[row] = ten | ((ten | ten >> 1 | ten >> 2) & 0xFFu) << 16;
      }
    });
    block.each([&](uint32_t lane) {
      if (number_of(lane) >= call.listed) return;
      One& one = s.bricks[lane / kLanes];
      uint32_t any = 0;
      for (uint32_t row = lane % kLanes; row < 64; row += kLanes) {
        const uint32_t* const rows = one.rows + halo_row(row);
        const uint32_t own = rows[0] >> 1;
        const uint32_t named = reached(call, rows) & ~own & 0xFFu;
        one.named[row] = uint8_t(named);
        any |= named;
      }
      if (any) set_bits(one.changes, 1);
    });
    // One number from the counter of all for the bricks of a block.
    block.each([&](uint32_t lane) {
      if (lane) return;
      uint32_t changing = 0;
      for (One& one : s.bricks)
        if (one.changes) one.number = changing++;
      if (changing) s.first = fetch_add(m.control->list_bricks, changing);
    });
    block.each([&](uint32_t lane) {
      const One& one = s.bricks[lane / kLanes];
      if (!one.changes) return;
      const uint32_t number = s.first + one.number;
      if (lane % kLanes == 0) {
        if (one.key == kQryReservedKey) set_bits(m.control->list_full, 1);
        m.listed_keys[number] = one.key;
      }
      for (uint32_t at = lane % kLanes; at < 64; at += kLanes) {
        const uint32_t octant = at >> 3, byte = at & 7u, shift = (octant & 1u) * 4;
        const uint32_t row = (octant >> 1 & 1u) * 4 + (byte & 1u) * 2 + (octant >> 2) * 32 + (byte >> 1) * 8;
        reinterpret_cast<uint8_t*>(m.listed_masks + size_t(number) * 8)[at] =
            uint8_t((one.named[row] >> shift & 15u) | (one.named[row + 1] >> shift & 15u) << 4);
      }
    });
    if (!call.grows) return;
    block.each([&](uint32_t lane) {
      One& one = s.bricks[lane / kLanes];
      if (!one.changes) return;
      for (uint32_t row = lane % kLanes; row < kHaloRows; row += kLanes) read_row(m, call, one, row);
    });
    if (call.neighbours != 6) {
      block.each([&](uint32_t lane) {
        One& one = s.bricks[lane / kLanes];
        if (!one.changes) return;
        for (uint32_t row = lane % kLanes; row < 8 * kPlane; row += kLanes) {
          const uint32_t at = row % 8 + 1 + row / 8 * kPlane;
          one.planes[row] = first_of(one.beside[at - 1], one.beside[at], one.beside[at + 1]);
          if (call.neighbours == 18) one.ends[row] = first_of(one.own[at - 1], one.beside[at], one.own[at + 1]);
        }
      });
    }
    block.each([&](uint32_t lane) {
      const One& one = s.bricks[lane / kLanes];
      if (!one.changes) return;
      const uint64_t* const ends = call.neighbours == 18 ? one.ends : one.planes;
      for (uint32_t row = lane % kLanes; row < 64; row += kLanes) {
        const uint32_t y = row & 7u, z = row >> 3, at = halo_row(row);
        const uint64_t eight = call.neighbours == 6
                                   ? first_of(first_of(one.beside[at], one.own[at - 1], one.own[at + 1]),
                                              one.own[at - kPlane], one.own[at + kPlane])
                                   : first_of(ends[row], one.planes[row + 8], ends[row + 16]);
        // The list has them in the order of a brick's materials. Only those that are named count.
        auto* const to = reinterpret_cast<uint32_t*>(m.listed_materials + size_t(s.first + one.number) * 64) +
                         ((y >> 2) << 1 | (z >> 2) << 2) * 16 + (z & 3u) * 4 + (y & 3u);
        to[0] = uint32_t(eight);
        to[16] = uint32_t(eight >> 32);
      }
    });
  }

 private:
  // Of the 27 bricks around one of a key, x fastest.
  QRY_HD static uint32_t index_beside(const Memory& m, uint32_t key, uint32_t number) {
    const int32_t x = int32_t(key & 2047u) + int32_t(number % 3) - 1,
                  y = int32_t(key >> 11 & 1023u) + int32_t(number / 3 % 3) - 1,
                  z = int32_t(key >> 21) + int32_t(number / 9) - 1;
    if (uint32_t(x) > 2047u || uint32_t(y) > 1023u || uint32_t(z) > 2047u) return kNone;
    const uint32_t beside = uint32_t(x) | uint32_t(y) << 11 | uint32_t(z) << 21;
    if (beside == kQryReservedKey) return kNone;
    const hashgrid::Found found = hashgrid::find(m.grid, beside);
    return found.hit ? found.value : kNone;
  }
  // Of a row of the brick, y fastest: among those of the halo.
  QRY_HD static constexpr uint32_t halo_row(uint32_t row) { return (row & 7u) + 1 + ((row >> 3) + 1) * kPlane; }
  // Which voxels of a row have a neighbour, or are one.
  QRY_HD static uint32_t reached(const EditCall& call, const uint32_t* rows) {
    const auto own = [rows](int32_t row) { return rows[row] >> 1; };
    const auto wide = [rows](int32_t row) { return rows[row] >> 16; };
    constexpr auto kZ = int32_t(kPlane);
    if (call.neighbours == 6) return wide(0) | own(-1) | own(1) | own(-kZ) | own(kZ);
    const uint32_t plane = wide(-1) | wide(0) | wide(1) | wide(-kZ) | wide(kZ);
    const auto corners = [&](const auto& of) { return of(-kZ - 1) | of(-kZ + 1) | of(kZ - 1) | of(kZ + 1); };
    return plane | (call.neighbours == 18 ? corners(own) : corners(wide));
  }
  QRY_HD static void read_row(const Memory& m, const EditCall& call, typename Shared::One& one, uint32_t row) {
    const uint32_t y = row % kPlane + 3, z = row / kPlane + 3;  // from the first octant on
    // Of the three bricks that the row crosses: where it is in each.
    const uint32_t* const around = one.around + (y + 4) / 8 * 3 + (z + 4) / 8 * 9;
    const uint32_t octants = (y >> 2 & 1u ? 0u : 2u) | (z >> 2 & 1u ? 0u : 4u);
    const uint32_t within = (z & 3u) * 4 + (y & 3u);  // words of four voxels
    const auto four = [&](uint32_t brick, uint32_t octant) -> uint64_t {
      const uint32_t index = around[brick];
      if (index == kNone) return 0;
      return reinterpret_cast<const uint32_t*>(m.materials)[size_t(index) * 128 + (octants | octant) * 16 + within];
    };
    const uint64_t eight = four(1, 0) | four(1, 1) << 32;
    const uint64_t before = eight << 8 | four(0, 1) >> 24, after = eight >> 8 | four(2, 0) << 56;
    one.own[row] = eight;
    // Of six neighbours those along x come first; of more, the voxel itself is in the middle, and empty if it grows.
    one.beside[row] = call.neighbours == 6 ? first_of(before, after) : first_of(before, eight, after);
  }
};

}  // namespace quarry::device
