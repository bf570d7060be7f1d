// SPDX-License-Identifier: Apache-2.0
// compare.hpp - what tells worlds apart: sums over a world's voxels, and the voxels in which two worlds differ. A block
// of threads has a part of a grid: it lists the part's bricks in shared memory, then each thread takes eight voxels at
// a time of all of them.
//
//   begin_compare   nothing is counted
//   sum_voxels      the world's sums, by the hash of voxel/bricks/coords.hpp
//   compare_bricks  this world's bricks, each with the other's; then, over the other's grid (EditCall::walks_other),
//                   those that only it has: a left and an anti join of two sets of keys, each of which is a hash table
//                   already
#pragma once

#include "voxel/device/bodies/steps.hpp"

namespace quarry::device {

struct BeginCompare {
  QRY_HD static void run(const Memory& m, const EditCall&) {
    Control& c = *m.control;
    c.place_sum = c.colour_sum = c.alike = 0;
    for (Differing& kind : c.differing) {
      kind.voxels = 0;
      for (uint32_t axis = 0; axis < 3; ++axis) kind.low[axis] = 1 << 30, kind.high[axis] = -(1 << 30);
    }
  }
};

// The bricks of a part of a grid, in a block's shared memory.
template <uint32_t kThreads>
struct PartOfGrid {
  static constexpr uint32_t kWords = 1024;
  uint32_t keys[kWords], indices[kWords], count;

  QRY_HD static uint64_t parts(const hashgrid::GridView& grid) {
    return (uint64_t(grid.page_count) * kQryPageWords + kWords - 1) / kWords;
  }
  // takes(key, number): whether the brick is one; `number` is its own if it is the next.
  template <class Block, class Takes>
  QRY_HD void list(const hashgrid::GridView& grid, uint64_t part, Block& block, const Takes& takes) {
    block.each([&](uint32_t lane) {
      if (lane == 0) count = 0;
    });
    block.each([&](uint32_t lane) {
      const uint64_t first = part * kWords, all = uint64_t(grid.page_count) * kQryPageWords;
      for (uint32_t i = lane; i < kWords && first + i < all; i += kThreads) {
        const Pair pair = pair_at(grid, first + i);
        if (!pair.there || !takes(pair.key)) continue;
        const uint32_t number = push(count);
        keys[number] = pair.key;
        indices[number] = pair.index;
      }
    });
  }
};

// Eight voxels next to each other, by their number in a brick: the place of the first, from the brick's corner. Bit i
// of theirs is at x + (i & 3), y + (i >> 2), z.
QRY_HD inline Int3 place_of_eight(uint32_t at) { return voxel_from_index(at * 8); }
QRY_HD inline uint32_t eight_bits(const uint64_t* masks, uint32_t index, uint32_t at) {
  return index == kNone ? 0 : eight_of_mask(masks + size_t(index) * 8, at);
}

struct SumVoxels {
  static constexpr uint32_t kThreads = 256, kResident = 6;
  using Part = PartOfGrid<kThreads>;
  struct Shared {
    Part part;
    uint64_t place_sum, colour_sum;
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return Part::parts(m.grid); }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    block.each([&](uint32_t lane) {
      if (lane == 0) s.place_sum = s.colour_sum = 0;
    });
    s.part.list(m.grid, item, block, [](uint32_t) { return true; });
    block.each([&](uint32_t lane) {
      uint64_t places = 0, colours = 0;
      for (uint32_t i = lane; i < s.part.count * 64; i += kThreads) {
        const uint32_t index = s.part.indices[i >> 6], at = i & 63u;
        const uint32_t bits = eight_bits(m.masks, index, at);
        if (bits == 0) continue;
        const uint64_t eight = eight_materials(m, index, at);
        const Int3 brick = brick_from_key(s.part.keys[i >> 6]), corner = place_of_eight(at);
        const uint32_t x = uint32_t(brick.x * 8 + corner.x), y = uint32_t(brick.y * 8 + corner.y),
                       z = uint32_t(brick.z * 8 + corner.z);
        for (uint32_t dx = 0; dx < 4; ++dx) {
          if (!(bits >> dx & 0x11u)) continue;
          const uint64_t first = mixed_hash(kVoxelHash + (x + dx));
          for (uint32_t dy = 0; dy < 2; ++dy) {
            const uint32_t i8 = dx + 4 * dy;
            if (!(bits >> i8 & 1u)) continue;
            const uint64_t place = mixed_hash(mixed_hash(first + (y + dy)) + z);
            places += place;
            colours += mixed_hash(place + m.looks[uint32_t(eight >> (8 * i8)) & 255u]);
          }
        }
      }
      if (places) add(s.place_sum, places);
      if (colours) add(s.colour_sum, colours);
    });
    block.each([&](uint32_t lane) {
      if (lane) return;
      if (s.place_sum) add(m.control->place_sum, s.place_sum);
      if (s.colour_sum) add(m.control->colour_sum, s.colour_sum);
    });
  }
};

struct CompareBricks {
  static constexpr uint32_t kThreads = 256, kResident = 6;
  using Part = PartOfGrid<kThreads>;
  struct Shared {
    Part part;
    uint32_t others[Part::kWords];  // the other world's index of each brick
    uint32_t alike, voxels[3];
    // By Difference. What other blocks have told: most voxels are inside of it.
    int32_t low[3][3], high[3][3], told_low[3][3], told_high[3][3];
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) {
    return Part::parts(call.walks_other ? m.other.grid : m.grid);
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    block.each([&](uint32_t lane) {
      if (lane == 0) s.alike = 0;
      if (lane < 3) s.voxels[lane] = 0;
      if (lane >= 9) return;
      const Differing& kind = m.control->differing[lane / 3];
      s.low[lane / 3][lane % 3] = s.told_low[lane / 3][lane % 3] = peek(kind.low[lane % 3]);
      s.high[lane / 3][lane % 3] = s.told_high[lane / 3][lane % 3] = peek(kind.high[lane % 3]);
    });
    if (call.walks_other)
      s.part.list(m.other.grid, item, block, [&](uint32_t key) { return !hashgrid::find(m.grid, key).hit; });
    else s.part.list(m.grid, item, block, [](uint32_t) { return true; });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < s.part.count; i += kThreads) {
        if (call.walks_other) {
          s.others[i] = s.part.indices[i];
          s.part.indices[i] = kNone;
        } else {
          const hashgrid::Found found = hashgrid::find(m.other.grid, s.part.keys[i]);
          s.others[i] = found.hit ? found.value : kNone;
        }
      }
    });
    block.each([&](uint32_t lane) {
      uint32_t alike = 0, voxels[3] = {};
      int32_t low[3][3], high[3][3];
      for (uint32_t i = 0; i < 9; ++i) {
        low[i / 3][i % 3] = s.told_low[i / 3][i % 3];
        high[i / 3][i % 3] = s.told_high[i / 3][i % 3];
      }
      for (uint32_t i = lane; i < s.part.count * 64; i += kThreads) {
        const uint32_t own = s.part.indices[i >> 6], others = s.others[i >> 6], at = i & 63u;
        const uint32_t mine = eight_bits(m.masks, own, at), its = eight_bits(m.other.masks, others, at);
        uint32_t recoloured = 0;
        if (const uint32_t both = mine & its) {
          const uint64_t a = eight_materials(m, own, at), b = eight_materials(m.other, others, at);
          for (uint32_t left = call.same_looks ? both & ~uint32_t(equal_bytes(a ^ b, 0)) : both; left;
               left &= left - 1) {
            const uint32_t shift = 8 * lowest_bit(left);
            if (m.looks[uint32_t(a >> shift) & 255u] != m.looks[256u + (uint32_t(b >> shift) & 255u)])
              recoloured |= left & (~left + 1);
          }
          alike += bit_count(both & ~recoloured);
        }
        const uint32_t bits[3] = {its & ~mine, mine & ~its, recoloured};
        if (!(bits[kAdded] | bits[kRemoved] | bits[kRecoloured])) continue;
        const Int3 brick = brick_from_key(s.part.keys[i >> 6]);
        for (uint32_t kind = 0; kind < 3; ++kind) {
          if (bits[kind] == 0) continue;
          voxels[kind] += bit_count(bits[kind]);
          widen(low[kind], high[kind], brick, at, bits[kind]);
        }
      }
      add_together(s.alike, alike);
      for (uint32_t kind = 0; kind < 3; ++kind) add_together(s.voxels[kind], voxels[kind]);
      for (uint32_t i = 0; i < 9; ++i) {
        const uint32_t kind = i / 3, axis = i % 3;
        if (low[kind][axis] < s.told_low[kind][axis]) lower(s.low[kind][axis], low[kind][axis]);
        if (high[kind][axis] > s.told_high[kind][axis]) raise(s.high[kind][axis], high[kind][axis]);
      }
    });
    block.each([&](uint32_t lane) {
      Control& c = *m.control;
      if (lane == 0 && s.alike) add(c.alike, s.alike);
      if (lane < 3 && s.voxels[lane]) add(c.differing[lane].voxels, s.voxels[lane]);
      if (lane >= 9) return;
      const uint32_t kind = lane / 3, axis = lane % 3;
      if (s.low[kind][axis] < s.told_low[kind][axis]) lower(c.differing[kind].low[axis], s.low[kind][axis]);
      if (s.high[kind][axis] > s.told_high[kind][axis]) raise(c.differing[kind].high[axis], s.high[kind][axis]);
    });
  }

 private:
  // The box, so that it holds the voxels of these eight bits.
  QRY_HD static void widen(int32_t (&low)[3], int32_t (&high)[3], Int3 brick, uint32_t at, uint32_t bits) {
    const Int3 corner = place_of_eight(at);
    const uint32_t in_x = (bits | bits >> 4) & 15u, first_y = (bits & 15u) == 0, last_y = (bits >> 4) != 0;
    uint32_t last_x = 3;
    while (!(in_x >> last_x & 1u)) --last_x;
    const int32_t x = brick.x * 8 + corner.x, y = brick.y * 8 + corner.y, z = brick.z * 8 + corner.z;
    const int32_t from[3] = {x + int32_t(lowest_bit(in_x)), y + int32_t(first_y), z},
                  to[3] = {x + int32_t(last_x), y + int32_t(last_y), z};
    for (uint32_t axis = 0; axis < 3; ++axis) {
      if (from[axis] < low[axis]) low[axis] = from[axis];
      if (to[axis] > high[axis]) high[axis] = to[axis];
    }
  }
};

}  // namespace quarry::device
