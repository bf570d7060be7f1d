// SPDX-License-Identifier: Apache-2.0
// algebra.hpp - the steps that find what becomes of a world as a set of voxels: combined with another one, grown or
// eroded by a voxel. Of two worlds a list of bricks comes out, as TouchList and CutBricks<true> read it, so the rest is
// an edit like any other.
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
// A world by a voxel (what becomes of each is said in voxel/operations/morphology.hpp), as a part of the edit, instead
// of its steps touch and cut:
//   begin_list      nothing is known
//   find_around     nodes of level 2 that have bricks, or a neighbour that has
//   list_around     of those the nodes of level 1: that have bricks, and to grow also those beside them, found in the
//                   masks of 6^3 nodes by shifts
//   morph_masks     a block of threads a node of level 1: bricks and those around them from the pyramid, which voxels
//                   change by bits; records, places, masks. Is there room for all of it?
//   morph_materials a block of threads a node: the materials of the bricks that have places
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
        if (own == kNone && is_full_index(others)) {
          const uint32_t its = others + 1u;
          return list_whole(m, call, pair.key, uint8_t(call.maps && call.fills ? m.looks[its] : its));
        }
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
      for (uint32_t i = lane; i < count * 64; i += kThreads) {
        const uint64_t eight = eight_materials(m.other, s.indices[i >> 6], i & 63u);
        m.listed_materials[first * 64 + i] = call.maps ? mapped(m.looks, eight) : eight;
      }
    });
  }

 private:
  QRY_HD static uint64_t mapped(const uint32_t* to, uint64_t eight) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < 64; i += 8) all |= uint64_t(to[uint32_t(eight >> i) & 255u]) << i;
    return all;
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

// The node of level 1 there.
QRY_HD inline OccupancyNode level1_node(const Memory& m, int32_t x, int32_t y, int32_t z) {
  return child_node(m.nodes, level2_node(m, x >> 2, y >> 2, z >> 2), child_bit(uint32_t(x), uint32_t(y), uint32_t(z)));
}

// Of all 4^3 nodes below a node of level 3 at once: those that have bricks, or a neighbour that has.
struct FindAround {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return idle(m) ? 0 : kLevel3Nodes; }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    const auto top = uint32_t(item);
    const auto x = int32_t(top & 31u), y = int32_t(top >> 5 & 15u), z = int32_t(top >> 9);
    const auto mask = [&](int32_t dx, int32_t dy, int32_t dz) -> uint64_t {
      const auto ax = uint32_t(x + dx), ay = uint32_t(y + dy), az = uint32_t(z + dz);
      return ax > 31u || ay > 15u || az > 31u ? 0 : m.nodes[level3_number(ax, ay, az)].mask;
    };
    for (uint64_t left = call.grows ? spread_children(mask) : mask(0, 0, 0); left; left &= left - 1) {
      const uint32_t bit = lowest_bit(left);
      m.regions[push(m.control->list_regions)] =
          level2_number(uint32_t(x) * 4 + (bit & 3u), uint32_t(y) * 4 + (bit >> 2 & 3u), uint32_t(z) * 4 + (bit >> 4));
    }
  }
};

// There was room for all nodes of level 1.
struct EndListAround {
  QRY_HD static void run(const Memory& m, const EditCall&) {
    Control& c = *m.control;
    if (c.missing & kMissingScratch) c.tiles = c.list_bricks * kScratchOfNode;
  }
};
struct ListAround {
  using Tail = EndListAround;
  static constexpr uint32_t kThreads = 256, kResident = 4;
  struct Shared {
    uint64_t cells[216];  // masks of nodes of level 1, from one before the node on
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return idle(m) ? 0 : m.control->list_regions; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    const uint32_t region = m.regions[item];
    const auto rx = int32_t(region & 127u), ry = int32_t(region >> 7 & 63u), rz = int32_t(region >> 13);
    block.each([&](uint32_t lane) {
      if (lane >= 216) return;
      const int32_t x = rx * 4 - 1 + int32_t(lane % 6), y = ry * 4 - 1 + int32_t(lane / 6 % 6),
                    z = rz * 4 - 1 + int32_t(lane / 36);
      s.cells[lane] = level1_node(m, x, y, z).mask;
    });
    block.each([&](uint32_t lane) {
      if (lane >= 64) return;
      const auto x = int32_t(lane & 3u), y = int32_t(lane >> 2 & 3u), z = int32_t(lane >> 4);
      const auto cell = [&](int32_t dx, int32_t dy, int32_t dz) {
        return s.cells[size_t((x + 1 + dx) + 6 * (y + 1 + dy) + 36 * (z + 1 + dz))];
      };
      if ((call.grows ? spread_children(cell) : cell(0, 0, 0)) == 0) return;
      const uint32_t number = push(m.control->list_bricks);
      if (number >= m.scratch_room / kScratchOfNode) return set_bits(m.control->missing, kMissingScratch);
      m.morphed[number].cell = uint32_t(rx * 4 + x) | uint32_t(ry * 4 + y) << 9 | uint32_t(rz * 4 + z) << 17;
    });
  }
};

// The bricks of a node of level 1 and those around them, from the pyramid: no key is looked up.
struct BricksAround {
  OccupancyNode nodes[27];
  uint32_t indices[216];                       // from one before the node on, x fastest; kNone: there is none
  QRY_HD uint32_t own(uint32_t brick) const {  // by its number among the node's children
    return indices[(brick & 3u) + 1 + 6 * ((brick >> 2 & 3u) + 1) + 36 * ((brick >> 4) + 1)];
  }
};
template <uint32_t kThreads, class Block>
QRY_HD inline void find_bricks_around(const Memory& m, uint32_t cell, BricksAround& s, Block& block) {
  block.each([&](uint32_t lane) {
    if (lane >= 27) return;
    s.nodes[lane] =
        level1_node(m, int32_t(cell & 511u) + int32_t(lane % 3) - 1,
                    int32_t(cell >> 9 & 255u) + int32_t(lane / 3 % 3) - 1, int32_t(cell >> 17) + int32_t(lane / 9) - 1);
  });
  block.each([&](uint32_t lane) {
    for (uint32_t i = lane; i < 216; i += kThreads) {
      const uint32_t x = i % 6 + 3, y = i / 6 % 6 + 3, z = i / 36 + 3;  // from the first node on
      const OccupancyNode& node = s.nodes[(x >> 2) + (y >> 2) * 3 + (z >> 2) * 9];
      const uint32_t bit = child_bit(x, y, z);
      const auto* const table = reinterpret_cast<const uint32_t*>(m.nodes + node.child);
      s.indices[i] = node.mask >> bit & 1u ? table[number_in_run(node.mask, bit)] : kNone;
    }
  });
}

// A world has room for what grows or is eroded, or nothing is done. All of it has been counted, whatever is missing,
// but for nodes that have no place in the list.
struct AdmitMorphed {
  QRY_HD static void run(const Memory& m, const EditCall&) {
    Control& c = *m.control;
    if (c.stopped) return;
    c.forward = c.is_edit = 1;
    c.first = c.record_top;
    admit(m, kMissingRecords | kMissingBricks | (c.tiles ? 0u : uint32_t(kMissingScratch)));
    if (c.list_full) c.skip = 1;  // the host sees why
  }
};

// Which voxels change, by bits: octants of 4^3 voxels widened along x, then joined along y and z, a block of threads a
// node of level 1. The bricks that change get their records, places and masks.
struct MorphMasks {
  using Tail = AdmitMorphed;
  static constexpr uint32_t kThreads = 128, kResident = 12;
  static constexpr uint32_t kEdge = 10;  // octants from the one before the node on
  struct Shared {
    BricksAround around;
    uint64_t octants[kEdge * kEdge * kEdge];  // masks; of erosions what is empty
    uint64_t after[64 * 8];                   // what the node's bricks have then
    uint32_t changing[2], left[2];            // bricks that change; that have voxels then
    uint32_t voxels;                          // that change
    Sums sums;                                // of all nodes of the block
    uint64_t changes, made;                   // the bricks; those that need a place
    uint32_t first_record, first_cut, places[64];
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return idle(m) ? 0 : m.control->list_bricks; }
  // Few atomic operations of many blocks meet in the counters.
  template <class Block>
  QRY_HD static void begin(Shared& s, Block& block) {
    block.each([&](uint32_t lane) {
      if (lane == 0) s.sums = {};
    });
  }
  template <class Block>
  QRY_HD static void end(const Memory& m, const EditCall& call, Shared& s, Block& block) {
    block.each([&](uint32_t lane) {
      if (lane) return;
      s.sums.more = call.grows ? int64_t(s.sums.changed) : -int64_t(s.sums.changed);
      add_sums(*m.control, s.sums);
    });
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    Control& c = *m.control;
    const uint32_t cell = m.morphed[item].cell;
    find_bricks_around<kThreads>(m, cell, s.around, block);
    block.each([&](uint32_t lane) {
      if (lane < 2) s.changing[lane] = s.left[lane] = 0;
      if (lane == 2) s.voxels = 0;
      if (lane >= kEdge * kEdge) return;
      // All octants above each other, two a brick.
      const uint32_t x = lane % kEdge + 1, y = lane / kEdge + 1;
      const uint32_t* const indices = s.around.indices + (x >> 1) + (y >> 1) * 6;
      const uint64_t* const masks = m.masks + ((x & 1u) | (y & 1u) << 1);
      for (uint32_t z = 0; z < 6; ++z) {
        const uint32_t index = indices[z * 36];
        const auto read = [&](uint32_t octant) {  // full bricks have masks, too
          const uint64_t mask = index == kNone ? 0 : masks[size_t(index) * 8 + octant];
          return call.grows ? mask : ~mask;
        };
        uint64_t* const to = s.octants + lane + z * 2 * kEdge * kEdge;
        if (z > 0) *(to - kEdge * kEdge) = read(0);
        if (z < 5) *to = read(4);
      }
    });
    // A thread has four octants above each other. Rows of a warp are four apart, in which no two of its threads meet in
    // one bank.
    block.each([&](uint32_t lane) {
      const uint32_t x = lane & 7u, y = (lane >> 3 & 1u) * 4 + (lane >> 4 & 3u), from = lane >> 6 << 2;
      const uint64_t* const at = s.octants + (x + 1) + (y + 1) * kEdge + from * kEdge * kEdge;
      uint32_t changing = 0, left = 0, voxels = 0;
      Plane below = plane(call, at), here = plane(call, at + kEdge * kEdge);
      for (uint32_t z = from; z < from + 4; ++z) {
        const Plane above = plane(call, at + (z - from + 2) * kEdge * kEdge);
        const uint64_t reached = here.mid | here.side << 16 | here.side >> 16 | below.side >> 48 | above.side << 48;
        const uint64_t named = reached & ~here.own, after = call.grows ? reached : ~reached;
        const uint32_t brick = (x >> 1) + (y >> 1) * 4 + (z >> 1) * 16;
        s.after[brick * 8 + ((x & 1u) | (y & 1u) << 1 | (z & 1u) << 2)] = after;
        changing |= uint32_t(named != 0) << (brick & 31u);
        left |= uint32_t(after != 0) << (brick & 31u);
        voxels += bit_count(named);
        below = here;
        here = above;
      }
      set_bits_together(s.changing[lane >> 6], changing);
      set_bits_together(s.left[lane >> 6], left);
      add_together(s.voxels, voxels);
    });
    // Counters are far away: several threads ask at once.
    block.each([&](uint32_t lane) {
      const uint64_t changes = s.changing[0] | uint64_t(s.changing[1]) << 32,
                     made = changes & (s.left[0] | uint64_t(s.left[1]) << 32);
      const uint32_t changing = bit_count(changes), places = bit_count(made);
      MorphedNode& node = m.morphed[item];
      if (lane == 0) {
        node.changes = s.changes = changes;
        node.made = s.made = made;
        if (changes == 0) return;
        const uint32_t first = fetch_add(c.touched, changing);
        node.first_record = s.first_record = first;
        if (first + changing > m.scratch_room) set_bits(c.missing, kMissingScratch);
        if (c.record_top + first + changing > m.record_room) set_bits(c.missing, kMissingRecords);
      } else if (lane == 32 && made) {
        s.first_cut = fetch_add(c.cut, places);
      } else if (lane == 64 && changes) {
        s.sums.changed += s.voxels;
        s.sums.inserted += bit_count(changes & ~s.around.nodes[13].mask);
        s.sums.erased += changing - places;
        mark_chunk(m, cell & 511u, cell >> 9 & 255u, cell >> 17, s.sums);
      }
    });
    if (s.changes == 0) return;
    block.each([&](uint32_t lane) {
      if (lane >= 64 || !(s.changes >> lane & 1u)) return;
      const uint32_t key = ((cell & 511u) * 4 + (lane & 3u)) | ((cell >> 9 & 255u) * 4 + (lane >> 2 & 3u)) << 11 |
                           ((cell >> 17) * 4 + (lane >> 4)) << 21;
      if (key == kQryReservedKey) set_bits(c.list_full, 1);
      uint32_t place = kNone;
      if (s.made >> lane & 1u) {
        place = place_of(m, s.first_cut + number_in_run(s.made, lane));
        if (place >= m.brick_room) {
          set_bits(c.missing, kMissingBricks);
          place = kNone;
        }
      }
      s.places[lane] = place;
      const uint64_t record = c.record_top + s.first_record + number_in_run(s.changes, lane);
      if (record < m.record_room) m.records[record] = {key, s.around.own(lane), place};
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < 64 * 8; i += kThreads)
        if ((s.made >> (i >> 3) & 1u) && s.places[i >> 3] != kNone)
          m.masks[size_t(s.places[i >> 3]) * 8 + (i & 7u)] = s.after[i];
    });
  }

 private:
  // Of an octant, with those beside it along x and y: what it has; what of it is reached in its own planes across z;
  // what reaches the planes above and below.
  struct Plane {
    uint64_t own, mid, side;
  };
  QRY_HD static Plane plane(const EditCall& call, const uint64_t* at) {
    constexpr uint64_t kX0 = 0x1111111111111111u, kY0 = 0x000F000F000F000Fu;
    const auto along_x = [](const uint64_t* row) {
      return row[0] | (row[0] & ~(kX0 << 3)) << 1 | (row[0] & ~kX0) >> 1 | (row[-1] >> 3 & kX0) | (row[1] & kX0) << 3;
    };
    const auto along_y = [](uint64_t before, uint64_t here, uint64_t after) {
      return here | (here & ~(kY0 << 12)) << 4 | (here & ~kY0) >> 4 | (before >> 12 & kY0) | (after & kY0) << 12;
    };
    constexpr auto kRow = int32_t(kEdge);
    const uint64_t own = at[0], wide = along_x(at);
    if (call.neighbours == 26) {
      const uint64_t all = along_y(along_x(at - kRow), wide, along_x(at + kRow));
      return {own, all, all};
    }
    const uint64_t cross = wide | along_y(at[-kRow], own, at[kRow]);
    if (call.neighbours == 6) return {own, cross, own};
    return {own, along_y(along_x(at - kRow), wide, along_x(at + kRow)), cross};
  }
};

// 0xFF for each byte that is not 0.
QRY_HD inline uint32_t widened_bytes(uint32_t four) {
#if defined(__CUDA_ARCH__)
  return __vcmpne4(four, 0);
#else
  constexpr uint32_t kLow = 0x7F7F7F7Fu;
  return ((((four & kLow) + kLow) | four) >> 7 & 0x01010101u) * 0xFF;
#endif
}
QRY_HD inline uint64_t widened_bytes(uint64_t eight) {
#if defined(__CUDA_ARCH__)
  return uint64_t(widened_bytes(uint32_t(eight >> 32))) << 32 | widened_bytes(uint32_t(eight));
#else
  constexpr uint64_t kLow = kEachByte * 0x7F;
  return ((((eight & kLow) + kLow) | eight) >> 7 & kEachByte) * 0xFF;
#endif
}
// Of each byte the first that is not 0.
QRY_HD inline uint64_t first_of(uint64_t a, uint64_t b) { return a | (b & ~widened_bytes(a)); }

// The materials of four voxels, and which are set: 0xFF.
struct Four {
  uint32_t bytes, set;
};
QRY_HD inline Four four_of(uint32_t bytes) { return {bytes, widened_bytes(bytes)}; }
// Of eight voxels along x, in two words, four: from the last one of the first word on; to the first of the second.
QRY_HD inline uint32_t later(uint32_t first, uint32_t second) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(first, second, 0x6543);
#else
  return second << 8 | first >> 24;
#endif
}
QRY_HD inline uint32_t earlier(uint32_t first, uint32_t second) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(first, second, 0x4321);
#else
  return first >> 8 | second << 24;
#endif
}
// Four words next to each other in a block's shared memory, aligned, as one access of a thread: the compiler would make
// it four, in which threads meet in a bank.
QRY_HD inline void put_four(uint32_t* at, const uint32_t (&words)[4]) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(uint32_t(__cvta_generic_to_shared(at))), "r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
#else
  for (uint32_t i = 0; i < 4; ++i) at[i] = words[i];
#endif
}
// Of each voxel the first that is set.
QRY_HD inline Four first_of(const Four& a, const Four& b) { return {a.bytes | (b.bytes & ~a.set), a.set | b.set}; }
QRY_HD inline Four first_of(const Four& a, const Four& b, const Four& c) {
  return {a.bytes | (b.bytes & ~a.set) | (c.bytes & ~(a.set | b.set)), a.set | b.set | c.set};
}

// The materials of the bricks that have places: a block of threads a node of level 1. What grown voxels become: the
// order of neighbours has x fastest and z slowest, so the first one is the first along x of each row, of those the
// first along y, of those the first along z.
struct MorphMaterials {
  static constexpr uint32_t kThreads = 256, kResident = 4;
  // Rows of fours of voxels, along y and z from the one before the node on. Planes are apart, so that threads of a warp
  // that have a row of several planes do not meet in a bank.
  static constexpr uint32_t kRows = 34, kFours = 8, kPlane = kRows * kFours + 20;
  struct Shared {
    BricksAround around;
    uint32_t befores[64], places[64];           // of the node's bricks
    uint32_t rows;                              // of four bricks along x, of which one has a place
    alignas(16) uint32_t wide[kRows * kPlane];  // of each voxel the first along x
    uint32_t full[2], mixed[2];                 // bricks: all voxels are set; not all have one material
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return idle(m) ? 0 : m.control->list_bricks; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    const MorphedNode& node = m.morphed[item];
    const uint64_t made = node.made;
    if (made == 0) return;
    block.each([&](uint32_t lane) {
      if (lane == 64) {
        s.rows = 0;
        for (uint32_t row = 0; row < 16; ++row) s.rows |= uint32_t((made >> (row * 4) & 15u) != 0) << row;
      }
      if (lane >= 64 || !(made >> lane & 1u)) return;
      const Record& record = record_of(m, node, lane);
      s.befores[lane] = record.before;
      s.places[lane] = record.after;
    });
    if (!call.grows) return erode(m, made, s, block);
    find_bricks_around<kThreads>(m, node.cell, s.around, block);
    switch (call.neighbours) {
      case 6: grow<6>(m, made, s, block); break;
      case 18: grow<18>(m, made, s, block); break;
      default: grow<26>(m, made, s, block); break;
    }
    // A brick that one material fills takes no place.
    block.each([&](uint32_t lane) {
      if (lane >= 64 || !(made >> lane & 1u)) return;
      uint64_t all = ~uint64_t(0);
      for (uint32_t octant = 0; octant < 8; ++octant) all &= m.masks[size_t(s.places[lane]) * 8 + octant];
      set_bits_together(s.full[lane >> 5], uint32_t(all == ~uint64_t(0)) << (lane & 31u));
    });
    if ((s.full[0] | s.full[1]) == 0) return;
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < 64 * 16; i += kThreads) {
        const uint32_t brick = i >> 4;
        if (!(s.full[brick >> 5] >> (brick & 31u) & 1u)) continue;
        const uint64_t* const words = m.materials + size_t(s.places[brick]) * 64;
        const uint64_t one = (words[0] & 0xFFu) * kEachByte;
        for (uint32_t at = i & 15u; at < 64; at += 16)
          if (words[at] != one) set_bits(s.mixed[brick >> 5], 1u << (brick & 31u));
      }
    });
    block.each([&](uint32_t lane) {
      if (lane >= 64 || !((s.full[lane >> 5] & ~s.mixed[lane >> 5]) >> (lane & 31u) & 1u)) return;
      const uint32_t place = s.places[lane];
      record_of(m, node, lane).after = full_index(uint8_t(m.materials[size_t(place) * 64]));
      m.unused[push(m.control->unused)] = place;
    });
  }

 private:
  QRY_HD static Record& record_of(const Memory& m, const MorphedNode& node, uint32_t brick) {
    return m.records[m.control->record_top + node.first_record + number_in_run(node.changes, brick)];
  }
  template <class Block>
  QRY_HD static void erode(const Memory& m, uint64_t made, Shared& s, Block& block) {
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < 64 * 32; i += kThreads) {
        if (!(made >> (i >> 5) & 1u)) continue;
        const uint32_t place = s.places[i >> 5], at = (i & 31u) * 2;
        TwoWords two = two_words(m.materials + (size_t(s.befores[i >> 5]) * 64 + at));  // full bricks have them, too
        const uint32_t left = two_bytes(m.masks + size_t(place) * 8, at);
        for (uint32_t k = 0; k < 2; ++k) two.word[k] &= widened(left >> (8 * k) & 0xFFu);
        put_two_words(m.materials + (size_t(place) * 64 + at), two);
      }
    });
  }
  template <uint32_t kNeighbours, class Block>
  QRY_HD static void grow(const Memory& m, uint64_t made, Shared& s, Block& block) {
    block.each([&](uint32_t lane) {
      if (lane < 2) s.full[lane] = s.mixed[lane] = 0;
      for (uint32_t i = lane; i < 10 * 2 * kRows; i += kThreads) widen_half_rows<kNeighbours>(m, i, s);
    });
    block.each([&](uint32_t lane) {
      if (made >> ((lane >> 1 & 3u) + (lane >> 4 & 3u) * 4 + (lane >> 6) * 16) & 1u)
        write_column<kNeighbours>(m, lane, s);
    });
  }
  // Where a row is in its plane. Four rows that follow each other change places from four to four, so that threads of a
  // warp that have the same one of four do not meet in a bank.
  QRY_HD static uint32_t row_at(uint32_t row) { return (row >> 2) * 32 + ((row + (row >> 2)) & 3u) * 8; }
  // Four voxels along x of a row, from the brick before the node on.
  QRY_HD static uint32_t voxels_at(const Memory& m, const Shared& s, uint32_t x, uint32_t y, uint32_t z) {
    const uint32_t index = s.around.indices[(x >> 1) + (y >> 3) * 6 + (z >> 3) * 36];
    const uint32_t octant = (x & 1u) | (y >> 2 & 1u) << 1 | (z >> 2 & 1u) << 2;
    return index == kNone ? 0
                          : reinterpret_cast<const uint32_t*>(
                                m.materials)[size_t(index) * 128 + octant * 16 + (z & 3u) * 4 + (y & 3u)];
  }
  // Whether a brick beside one of the voxels of these rows has a place.
  QRY_HD static bool is_near(const Shared& s, uint32_t first_row, uint32_t last_row, uint32_t plane) {
    const auto first = [](uint32_t at) { return at < 2 ? 0u : (at - 2) >> 3; };
    const auto last = [](uint32_t at) { return at > 31 ? 3u : at >> 3; };
    const uint32_t rows = s.rows >> (first(plane) * 4) | s.rows >> (last(plane) * 4);
    return ((rows >> first(first_row) | rows >> last(last_row)) & 1u) != 0;
  }
  // Of four rows of an octant, half of each.
  template <uint32_t kNeighbours>
  QRY_HD static void widen_half_rows(const Memory& m, uint32_t number, Shared& s) {
    const uint32_t plane = number % kRows, half = number / kRows & 1u, octant = number / (2 * kRows);
    const uint32_t y = octant + 1, z = plane + 7;  // octant and voxel, from the brick before on
    if (!is_near(s, octant ? octant * 4 - 3 : 0, octant < 9 ? octant * 4 : kRows - 1, plane)) return;
    const uint32_t* const indices = s.around.indices + half * 2 + (y >> 1) * 6 + (z >> 3) * 36;
    const uint32_t within = ((y & 1u) << 1 | (z >> 2 & 1u) << 2) * 8 + (z & 3u) * 2;
    const auto read = [&](uint32_t brick, uint32_t x) -> TwoWords {
      const uint32_t index = indices[brick];
      if (index == kNone) return {{0, 0}};
      return two_words(m.materials + (size_t(index) * 64 + within + x * 8));
    };
    const TwoWords read_four[6] = {read(0, 1), read(1, 0), read(1, 1), read(2, 0), read(2, 1), read(3, 0)};
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t row = octant * 4 + k - 3;
      if (row >= kRows) continue;
      Four fours[6];
      for (uint32_t i = 0; i < 6; ++i) fours[i] = four_of(uint32_t(read_four[i].word[k >> 1] >> (k & 1u) * 32));
      uint32_t wide[4];
      for (uint32_t i = 0; i < 4; ++i) {
        const Four &left = fours[i], &own = fours[i + 1], &right = fours[i + 2];
        const Four before{later(left.bytes, own.bytes), later(left.set, own.set)},
            after{earlier(own.bytes, right.bytes), earlier(own.set, right.set)};
        // Of six neighbours those along x come first; of more, the voxel itself is in the middle, and empty if it
        // grows.
        wide[i] = kNeighbours == 6 ? first_of(before, after).bytes : first_of(before, own, after).bytes;
      }
      put_four(s.wide + plane * kPlane + row_at(row) + half * 4, wide);
    }
  }
  // Four by four voxels along x and y, of each z of a brick.
  template <uint32_t kNeighbours>
  QRY_HD static void write_column(const Memory& m, uint32_t lane, Shared& s) {
    const uint32_t x = lane & 7u, y = lane >> 3 & 7u, layer = lane >> 6, brick = (x >> 1) + (y >> 1) * 4 + layer * 16;
    const uint32_t before = s.befores[brick], octants = (x & 1u) | (y & 1u) << 1;
    const uint64_t* const from = m.materials + size_t(before == kNone ? 0 : before) * 64 + octants * 8;
    uint64_t* const to = m.materials + size_t(s.places[brick]) * 64 + octants * 8;
    uint32_t at[6];
    for (uint32_t k = 0; k < 6; ++k) at[k] = layer * 8 * kPlane + row_at(y * 4 + k) + x;
    // Of each y: what comes of the plane for voxels in it, and for those in the planes beside it.
    Four below[4] = {}, here[4] = {}, mid[4] = {};
    for (uint32_t z = 0; z < 10; ++z) {
      Four wide[6], own[6] = {};
      for (uint32_t k = 0; k < 6; ++k) {
        wide[k] = four_of(s.wide[z * kPlane + at[k]]);
        if (kNeighbours != 26) own[k] = four_of(voxels_at(m, s, x + 2, y * 4 + k + 7, layer * 8 + z + 7));
      }
      uint64_t old[2] = {0, 0};
      const uint32_t to_z = z - 2, word = (to_z >> 2) * 32 + (to_z & 3u) * 2;
      if (z >= 2 && before != kNone) {
        const TwoWords two = two_words(from + word);
        old[0] = two.word[0], old[1] = two.word[1];
      }
      uint32_t now[4];
      for (uint32_t k = 0; k < 4; ++k) {
        Four middle =
            kNeighbours == 6 ? first_of(wide[k + 1], own[k], own[k + 2]) : first_of(wide[k], wide[k + 1], wide[k + 2]);
        Four end = kNeighbours == 26   ? middle
                   : kNeighbours == 18 ? first_of(own[k], wide[k + 1], own[k + 2])
                                       : own[k + 1];
        if (z >= 2) {
          const Four grown = kNeighbours == 6 ? first_of(mid[k], below[k], end) : first_of(below[k], mid[k], end);
          now[k] = first_of(four_of(uint32_t(old[k >> 1] >> (k & 1u) * 32)), grown).bytes;
        }
        below[k] = here[k];
        here[k] = end;
        mid[k] = middle;
      }
      if (z >= 2) put_two_words(to + word, {{now[0] | uint64_t(now[1]) << 32, now[2] | uint64_t(now[3]) << 32}});
    }
  }
};

}  // namespace quarry::device
