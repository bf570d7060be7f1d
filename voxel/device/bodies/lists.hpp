// SPDX-License-Identifier: Apache-2.0
// lists.hpp - the steps that make bricks of what callers give: a list of voxels, or a dense box. What comes out is a
// list of bricks, as TouchList and CutBricks<true> read it: keys, each once, which voxels of each are named, and what
// these become.
//
//   begin_list     nothing is known
//   survey_list    the box of the list's bricks; a voxel outside of the world. The host then knows how many bits tell
//                  bricks of the list apart
//   key_voxels     of each voxel its brick's number in the box, and what it is: its place in the brick and its material
//   (sort)         by brick; a stable sort keeps the list's order within each (Executor::sort)
//   begin_bricks   where a brick begins in the sorted list, and its key. The host makes room for so many bricks
//   assemble       a warp of threads puts a brick together: of equal voxels the last in the list wins
//
// Every byte of a brick is written once, whatever the order of the list. Literature: the sort is A. Adinets and D.
// Merrill's onesweep radix sort, 2022, whose passes are chained by decoupled look-back.
#pragma once

#include "voxel/device/bodies/atomics.hpp"
#include "voxel/device/bodies/layout.hpp"
#include "voxel/device/bodies/steps.hpp"

namespace quarry::device {

constexpr uint32_t kVoxelBits = 9;  // of a voxel's place in its brick; its material is above them

struct BeginList {
  QRY_HD static void run(const Memory& m, const EditCall& call) {
    m.control->list_bricks = m.control->list_whole = m.control->list_regions = m.control->list_full = 0;
    m.control->list_outside = kNoVoxel;
    BeginBounds::run(m, call);
  }
};

// A block of threads has a part of the list, so that few atomic operations meet in the counters.
constexpr uint32_t kListPart = 4096;
QRY_HD inline uint64_t parts_of_list(const Memory& m) { return (uint64_t(m.voxels.count) + kListPart - 1) / kListPart; }

struct SurveyList {
  static constexpr uint32_t kThreads = 256, kResident = 8;
  struct Shared {
    int32_t low[3], high[3], outside;
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return parts_of_list(m); }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const uint64_t first = item * kListPart;
    const auto size = uint32_t(m.voxels.count - first < kListPart ? m.voxels.count - first : kListPart);
    block.each([&](uint32_t lane) {
      if (lane < 3) s.low[lane] = 1 << 30, s.high[lane] = -(1 << 30);
      if (lane == 3) s.outside = kNoVoxel;
    });
    block.each([&](uint32_t lane) {
      int32_t low[3] = {1 << 30, 1 << 30, 1 << 30}, high[3] = {-(1 << 30), -(1 << 30), -(1 << 30)};
      int32_t outside = kNoVoxel;
      for (uint32_t i = lane; i < size; i += kThreads) {
        const Int3 brick = brick_of(listed_voxel(m.voxels, first + i));
        const int32_t at[3] = {brick.x, brick.y, brick.z};
        if (!brick_in_world(brick) && outside == kNoVoxel) outside = int32_t(first + i);
        for (uint32_t axis = 0; axis < 3; ++axis) {
          if (at[axis] < low[axis]) low[axis] = at[axis];
          if (at[axis] > high[axis]) high[axis] = at[axis];
        }
      }
      for (uint32_t axis = 0; axis < 3; ++axis) {
        lower(s.low[axis], low[axis]);
        raise(s.high[axis], high[axis]);
      }
      if (outside != kNoVoxel) lower(s.outside, outside);
    });
    block.each([&](uint32_t lane) {
      if (lane < 3) lower(m.control->low[lane], s.low[lane]);
      else if (lane < 6) raise(m.control->high[lane - 3], s.high[lane - 3]);
      else if (lane == 6 && s.outside != kNoVoxel) lower(m.control->list_outside, s.outside);
    });
  }
};

struct KeyVoxels {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.voxels.count; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const ListedVoxels& l = m.voxels;
    const Int3 voxel = listed_voxel(l, item);
    l.bricks[item] = number_in(l.box, brick_of(voxel));
    l.packed[item] = voxel_index(voxel) | uint32_t(listed_material(l, item)) << kVoxelBits;
  }
};

struct BeginBricks {
  static constexpr uint32_t kThreads = 256, kResident = 8;
  static constexpr uint32_t kTogether = 8;  // voxels whose bricks a thread reads before it looks at them
  struct Shared {
    uint32_t starts[kListPart];  // of the part's bricks
    uint32_t count, first;
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return parts_of_list(m); }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const ListedVoxels& l = m.voxels;
    const auto begin = uint32_t(item * kListPart), end = l.count - begin < kListPart ? l.count : begin + kListPart;
    block.each([&](uint32_t lane) {
      if (lane == 0) s.count = 0;
    });
    block.each([&](uint32_t lane) {
      for (uint32_t at = begin + lane; at < end; at += kTogether * kThreads) {
        uint32_t here[kTogether], before[kTogether];
        for (uint32_t k = 0; k < kTogether; ++k) {
          const uint32_t i = at + k * kThreads;
          here[k] = i < end ? l.bricks[i] : 0;
          before[k] = i >= end ? 0 : i == 0 ? ~here[k] : l.bricks[i - 1];
        }
        for (uint32_t k = 0; k < kTogether; ++k)
          if (here[k] != before[k]) s.starts[push_shared(s.count)] = at + k * kThreads;
      }
    });
    block.each([&](uint32_t lane) {
      if (lane == 0 && s.count) s.first = fetch_add(m.control->list_bricks, s.count);
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < s.count; i += kThreads) {
        l.starts[s.first + i] = s.starts[i];
        m.listed_keys[s.first + i] = brick_key(brick_in(l.box, l.bricks[s.starts[i]]));
      }
    });
  }
};

struct Assemble {
  static constexpr uint32_t kThreads = 128, kResident = 16, kBricks = kThreads / 32;
  struct Shared {
    int32_t last[kBricks][kVoxelsPerBrick];  // of each voxel: 1 + the last in the list, from where its brick begins
  };
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) {
    return (uint64_t(call.listed) + kBricks - 1) / kBricks;
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    const ListedVoxels& l = m.voxels;
    const auto number_of = [item](uint32_t lane) { return uint32_t(item) * kBricks + (lane >> 5); };
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane & 31u; i < kVoxelsPerBrick; i += 32) s.last[lane >> 5][i] = 0;
    });
    block.each([&](uint32_t lane) {
      if (number_of(lane) >= call.listed) return;
      const uint32_t start = l.starts[number_of(lane)], brick = l.bricks[start];
      for (uint32_t i = start + (lane & 31u); i < l.count && l.bricks[i] == brick; i += 32)
        raise(s.last[lane >> 5][l.packed[i] & (kVoxelsPerBrick - 1u)], int32_t(i - start) + 1);
    });
    block.each([&](uint32_t lane) {
      const uint32_t number = number_of(lane);
      if (number >= call.listed) return;
      const uint32_t start = l.starts[number];
      for (uint32_t at = lane & 31u; at < 64; at += 32) {
        uint64_t eight = 0;
        uint32_t named = 0;
        for (uint32_t i = 0; i < 8; ++i)
          if (const int32_t last = s.last[lane >> 5][at * 8 + i]) {
            eight |= uint64_t(l.packed[start + uint32_t(last) - 1u] >> kVoxelBits) << (8 * i);
            named |= 1u << i;
          }
        m.listed_materials[size_t(number) * 64 + at] = eight;
        reinterpret_cast<uint8_t*>(m.listed_masks + size_t(number) * 8)[at] = uint8_t(named);
      }
    });
  }
};

// ---- a dense box

// Eight voxels of a brick that the box meets, by their number among all; calls visit(which of the eight, where in the
// box's array) for those that are in the box.
struct EightOfBox {
  Int3 brick;
  uint32_t octant, byte;
};
QRY_HD inline EightOfBox eight_of_box(const DenseBox& box, uint64_t item) {
  const uint64_t number = item >> 6;
  return {
      {box.first[0] + int32_t(number % box.bricks[0]), box.first[1] + int32_t(number / box.bricks[0] % box.bricks[1]),
       box.first[2] + int32_t(number / box.bricks[0] / box.bricks[1])},
      uint32_t(item >> 3) & 7u,
      uint32_t(item) & 7u};
}
template <class Visit>
QRY_HD inline void visit_eight(const DenseBox& box, const EightOfBox& eight, const Visit& visit) {
  const uint64_t row = uint64_t(box.max[0] - box.min[0]) + 1, plane = row * (uint64_t(box.max[1] - box.min[1]) + 1);
  const int32_t x = eight.brick.x * 8 + int32_t(eight.octant & 1u) * 4,
                y = eight.brick.y * 8 + int32_t(eight.octant >> 1 & 1u) * 4 + int32_t(eight.byte & 1u) * 2,
                z = eight.brick.z * 8 + int32_t(eight.octant >> 2) * 4 + int32_t(eight.byte >> 1);
  if (z < box.min[2] || z > box.max[2]) return;
  for (int32_t i = 0; i < 8; ++i) {
    const int32_t at_x = x + (i & 3), at_y = y + (i >> 2);
    if (at_x < box.min[0] || at_x > box.max[0] || at_y < box.min[1] || at_y > box.max[1]) continue;
    visit(uint32_t(i),
          uint64_t(at_x - box.min[0]) + row * uint64_t(at_y - box.min[1]) + plane * uint64_t(z - box.min[2]));
  }
}

// A list of the box's bricks. The box is in the world.
struct ListBox {
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) { return uint64_t(call.listed) * 64; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const EightOfBox eight = eight_of_box(m.box, item);
    uint64_t materials = 0, named = 0;
    visit_eight(m.box, eight, [&](uint32_t i, uint64_t at) {
      materials |= uint64_t(m.box.voxels[at]) << (8 * i);
      named |= 1u << i;
    });
    if ((item & 63u) == 0) m.listed_keys[item >> 6] = brick_key(eight.brick);
    m.listed_materials[item] = materials;
    reinterpret_cast<uint8_t*>(m.listed_masks)[item] = uint8_t(named);
  }
};

// The world's voxels in the box, of which parts may be outside.
struct ReadBox {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return uint64_t(m.box.bricks[0]) * m.box.bricks[1] * m.box.bricks[2] * 64;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const EightOfBox eight = eight_of_box(m.box, item);
    uint64_t materials = 0;
    if (brick_in_world(eight.brick)) {
      const hashgrid::Found found = hashgrid::find(m.grid, brick_key(eight.brick));
      if (found.hit) materials = eight_materials(m, found.value, uint32_t(item) & 63u);
    }
    visit_eight(m.box, eight, [&](uint32_t i, uint64_t at) { m.box.voxels[at] = uint8_t(materials >> (8 * i)); });
  }
};

}  // namespace quarry::device
