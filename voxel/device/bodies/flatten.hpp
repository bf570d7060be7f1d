// SPDX-License-Identifier: Apache-2.0
// flatten.hpp - the steps that lay volumes, turned, shifted and overlapping, into bricks of a world. What comes out is
// a list of bricks, as TouchList and CutBricks<true> read it, so the rest is an edit like any other. What becomes of
// each voxel is said in voxel/worlds/flatten.hpp, whose flattener does the same on the host.
//
//   sort_in          bricks that have been sent come to the others of their volumes
//   mask_bricks      masks of those whose materials have been sent
//   survey_placed    a thread a pair of a placed volume and one of its bricks: which of up to eight bricks of the world
//                    get voxels of it, how many they are, and whether one is outside of the world
//   scan_placed      where each run of pairs puts its contributions. The host makes room for so many
//   contribute       of each contribution its brick of the world, and where it comes from
//   (sort)           by brick; a stable sort keeps the order of precedence within each (Executor::sort)
//   group_placed     where the contributions of a brick begin, and whether full bricks of one material make it full:
//                    then no voxel is looked at. The host makes room for so many bricks
//   list_filled      those that become full
//   compose          a block of threads puts each other brick together, placed volume by placed volume, until no voxel
//                    is empty
//
// The contributions of a brick by one placed volume are at most eight bricks of it, each to a part of its own. They are
// read into shared memory, each in whole lines, and each voxel is taken from there: where it lies is a sum of three
// numbers, one for each axis.
#pragma once

#include "voxel/device/bodies/algebra.hpp"
#include "voxel/device/bodies/atomics.hpp"
#include "voxel/device/bodies/layout.hpp"
#include "voxel/device/bodies/steps.hpp"

namespace quarry::device {

// Of pairs, and of contributions: what a block of threads has.
constexpr uint32_t kPairRun = 256, kContributionRun = 2048;
QRY_HD inline uint64_t runs_of_pairs(const Memory& m) { return (uint64_t(m.placed.pairs) + kPairRun - 1) / kPairRun; }

// ---- How a volume is placed. Part: bit `axis` is set if it is on the higher side of the world's axis.

QRY_HD inline uint32_t axis_of(const Placed& placed, uint32_t axis) { return placed.turn >> (3 * axis) & 3u; }
QRY_HD inline bool is_backwards(const Placed& placed, uint32_t axis) { return placed.turn >> (3 * axis + 2) & 1u; }
QRY_HD inline uint32_t shift_of(const Placed& placed, uint32_t axis) { return uint32_t(placed.offset[axis]) & 7u; }
constexpr uint32_t kNotTurned = 0u | 1u << 3 | 2u << 6;
// Bit p: part p may have voxels.
QRY_HD inline uint32_t possible_parts(const Placed& placed) {
  return (shift_of(placed, 0) ? 0xFFu : 0x55u) & (shift_of(placed, 1) ? 0xFFu : 0x33u) &
         (shift_of(placed, 2) ? 0xFFu : 0x0Fu);
}
// Its bricks are the world's but for their coordinates.
QRY_HD inline bool is_moved_only(const Placed& placed) {
  return placed.turn == kNotTurned && possible_parts(placed) == 1u;
}

// The brick of the world that gets part 0 of a volume's brick. A volume may be anywhere.
struct Target {
  int64_t at[3];
  QRY_HD bool is_in_world(uint32_t part) const {
    const int64_t x = at[0] + (part & 1u), y = at[1] + (part >> 1 & 1u), z = at[2] + (part >> 2);
    if (x < -1024 || x > 1023 || y < -512 || y > 511 || z < -1024 || z > 1023) return false;
    return brick_in_world({int32_t(x), int32_t(y), int32_t(z)});
  }
  QRY_HD Int3 brick(uint32_t part) const {
    return {int32_t(at[0]) + int32_t(part & 1u), int32_t(at[1]) + int32_t(part >> 1 & 1u),
            int32_t(at[2]) + int32_t(part >> 2)};
  }
};
QRY_HD inline Target target_of(const Placed& placed, Int3 brick) {
  const int32_t from[3] = {brick.x, brick.y, brick.z};
  Target target;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    const int64_t along = from[axis_of(placed, axis)];
    target.at[axis] = (is_backwards(placed, axis) ? -1 - along : along) + (placed.offset[axis] >> 3);
  }
  return target;
}

// Voxels of an octant's word whose coordinate along x, y or z is one of those that have a bit in `four`.
QRY_HD inline uint64_t planes_of_x(uint32_t four) { return (four & 15u) * 0x1111111111111111u; }
QRY_HD inline uint64_t planes_of_y(uint32_t four) {
  const uint32_t rows = four & 15u;
  return (((rows | rows << 3 | rows << 6 | rows << 9) & 0x1111u) * 0xFu) * 0x0001000100010001u;
}
QRY_HD inline uint64_t planes_of_z(uint32_t four) {
  const uint64_t planes = four & 15u;
  return ((planes | planes << 15 | planes << 30 | planes << 45) & 0x0001000100010001u) * 0xFFFFu;
}

// Bit p: the brick with this index has voxels of part p.
QRY_HD inline uint32_t parts_with_voxels(const Memory& m, const Placed& placed, uint32_t index) {
  const uint32_t possible = possible_parts(placed);
  if (is_full_index(index) || possible == 1u) return possible;
  // By axes of the volume: the planes that come to the higher side.
  uint32_t higher[3] = {0, 0, 0};
  for (uint32_t axis = 0; axis < 3; ++axis) {
    const uint32_t shift = shift_of(placed, axis);
    const uint32_t planes = is_backwards(placed, axis) ? (1u << shift) - 1u : (0xFFu << (8 - shift)) & 0xFFu;
    for (uint32_t own = 0; own < 3; ++own)
      if (axis_of(placed, axis) == own) higher[own] = planes;
  }
  uint32_t found = 0;
  for (uint32_t octant = 0; octant < 8; ++octant) {
    const uint64_t word = m.placed.masks[size_t(index - kFullBricks) * 8 + octant];
    const uint64_t x = planes_of_x(higher[0] >> (octant & 1u ? 4 : 0)),
                   y = planes_of_y(higher[1] >> (octant & 2u ? 4 : 0)),
                   z = planes_of_z(higher[2] >> (octant & 4u ? 4 : 0));
    for (uint32_t side = 0; side < 8; ++side) {
      const uint64_t in = word & (side & 1u ? x : ~x) & (side & 2u ? y : ~y) & (side & 4u ? z : ~z);
      found |= uint32_t(in != 0) << side;
    }
  }
  uint32_t parts = 0;
  for (uint32_t side = 0; side < 8; ++side) {
    if (!(found >> side & 1u)) continue;
    uint32_t part = 0;
    for (uint32_t axis = 0; axis < 3; ++axis) part |= (side >> axis_of(placed, axis) & 1u) << axis;
    parts |= 1u << part;
  }
  return parts;
}

// The number of the placed volume whose pair it is.
QRY_HD inline uint32_t placed_with(const Memory& m, uint32_t pair) {
  uint32_t low = 0, high = m.placed.placed_count;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (m.placed.placed[middle].first_pair <= pair) low = middle;
    else high = middle;
  }
  return low;
}
QRY_HD inline uint32_t brick_number(const Placed& placed, uint32_t pair) {
  return placed.first_brick + (pair - placed.first_pair);
}

// ---- Contributions

struct SortIn {
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) { return call.listed; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const uint32_t number = m.placed.sent_numbers[item];
    m.placed.at[number] = m.placed.sent_at[item];
    m.placed.indices[number] = m.placed.sent_indices[item];
  }
};

// Eight voxels a thread.
struct MaskBricks {
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) { return uint64_t(call.listed) * 64; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    reinterpret_cast<uint8_t*>(m.placed.masks)[item] = uint8_t(~equal_bytes(m.placed.materials[item], 0));
  }
};

struct SurveyPlaced {
  static constexpr uint32_t kThreads = kPairRun, kResident = 6;
  struct Shared {
    uint32_t count;
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return runs_of_pairs(m); }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const PlacedBricks& p = m.placed;
    block.each([&](uint32_t lane) {
      if (lane == 0) s.count = 0;
    });
    block.each([&](uint32_t lane) {
      const uint32_t pair = uint32_t(item) * kPairRun + lane;
      uint32_t parts = 0;
      if (pair < p.pairs) {
        const Placed placed = p.placed[placed_with(m, pair)];
        const uint32_t number = brick_number(placed, pair);
        parts = parts_with_voxels(m, placed, p.indices[number]);
        p.parts[pair] = uint8_t(parts);
        const Target target = target_of(placed, p.at[number]);
        bool inside = true;
        for (uint32_t part = 0; part < 8; ++part)
          inside = inside && (!(parts >> part & 1u) || target.is_in_world(part));
        if (!inside) lower(m.control->list_outside, int32_t(pair));
      }
      add_together(s.count, bit_count(parts));
    });
    block.each([&](uint32_t lane) {
      if (lane == 0) p.before[item] = s.count;
    });
  }
};

// One block of threads: there are few runs.
struct ScanPlaced {
  static constexpr uint32_t kThreads = 1024, kResident = 1;
  struct Shared {
    uint32_t sums[2][kThreads];
  };
  QRY_HD static uint64_t items(const Memory&, const EditCall&) { return 1; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t, Shared& s, Block& block) {
    const auto runs = uint32_t(runs_of_pairs(m)), share = (runs + kThreads - 1) / kThreads;
    const auto end_of = [=](uint32_t lane) { return (lane + 1) * share < runs ? (lane + 1) * share : runs; };
    block.each([&](uint32_t lane) {
      uint32_t sum = 0;
      for (uint32_t i = lane * share; i < end_of(lane); ++i) sum += m.placed.before[i];
      s.sums[0][lane] = sum;
    });
    const uint32_t row = sum_up(s.sums, block);
    block.each([&](uint32_t lane) {
      uint32_t sum = lane ? s.sums[row][lane - 1] : 0;
      for (uint32_t i = lane * share; i < end_of(lane); ++i) {
        const uint32_t count = m.placed.before[i];
        m.placed.before[i] = sum;
        sum += count;
      }
      if (lane == kThreads - 1) m.control->contributions = s.sums[row][lane];
    });
  }
};

struct Contribute {
  static constexpr uint32_t kThreads = kPairRun, kResident = 8;
  struct Shared {
    uint32_t sums[2][kThreads];
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return runs_of_pairs(m); }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const PlacedBricks& p = m.placed;
    const auto parts_of = [&](uint32_t lane) {
      const uint32_t pair = uint32_t(item) * kPairRun + lane;
      return pair < p.pairs ? uint32_t(p.parts[pair]) : 0u;
    };
    block.each([&](uint32_t lane) { s.sums[0][lane] = bit_count(parts_of(lane)); });
    const uint32_t row = sum_up(s.sums, block);
    block.each([&](uint32_t lane) {
      const uint32_t pair = uint32_t(item) * kPairRun + lane, parts = parts_of(lane);
      if (parts == 0) return;
      const Placed placed = p.placed[placed_with(m, pair)];
      const Target target = target_of(placed, p.at[brick_number(placed, pair)]);
      uint32_t to = p.before[item] + (lane ? s.sums[row][lane - 1] : 0);
      for (uint32_t left = parts; left; left &= left - 1, ++to) {
        const uint32_t part = lowest_bit(left);
        p.bricks[to] = number_in(p.box, target.brick(part));
        p.sources[to] = pair << 3 | part;
      }
    });
  }
};

// ---- Bricks of the world

struct GroupPlaced {
  static constexpr uint32_t kThreads = 256, kResident = 6;
  struct Shared {
    uint32_t filled[kContributionRun], made[kContributionRun];  // where those begin that become full, and others
    uint32_t filled_count, made_count, first_filled, first_made;
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return (uint64_t(m.placed.count) + kContributionRun - 1) / kContributionRun;
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const PlacedBricks& p = m.placed;
    const auto begin = uint32_t(item * kContributionRun);
    const uint32_t end = p.count - begin < kContributionRun ? p.count : begin + kContributionRun;
    block.each([&](uint32_t lane) {
      if (lane == 0) s.filled_count = s.made_count = 0;
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = begin + lane; i < end; i += kThreads) {
        if (i != 0 && p.bricks[i - 1] == p.bricks[i]) continue;
        if (filling_index(m, i) != kNone) s.filled[push_shared(s.filled_count)] = i;
        else s.made[push_shared(s.made_count)] = i;
      }
    });
    block.each([&](uint32_t lane) {
      if (lane == 0 && s.filled_count) s.first_filled = fetch_add(m.control->list_whole, s.filled_count);
      if (lane == 32 && s.made_count) s.first_made = fetch_add(m.control->list_bricks, s.made_count);
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < s.filled_count; i += kThreads) p.starts[s.first_filled + i] = s.filled[i];
      for (uint32_t i = lane; i < s.made_count; i += kThreads) p.starts[p.count - 1 - (s.first_made + i)] = s.made[i];
    });
  }

  // The index of the full brick that the first placed volume makes of the brick whose contributions begin there; kNone:
  // voxels are to be looked at.
  QRY_HD static uint32_t filling_index(const Memory& m, uint32_t begin) {
    const PlacedBricks& p = m.placed;
    const uint32_t number = placed_with(m, p.sources[begin] >> 3);
    const Placed placed = p.placed[number];
    const uint32_t end_of_pairs = p.placed[number + 1].first_pair, needed = bit_count(possible_parts(placed));
    if (p.count - begin < needed) return kNone;
    uint32_t filling = kNone;
    for (uint32_t i = begin; i < begin + needed; ++i) {
      const uint32_t pair = p.sources[i] >> 3;
      if (p.bricks[i] != p.bricks[begin] || pair >= end_of_pairs) return kNone;
      const uint32_t index = p.indices[brick_number(placed, pair)];
      if (!is_full_index(index) || (i != begin && index != filling)) return kNone;
      filling = index;
    }
    return filling;
  }
};

struct ListFilled {
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) { return call.listed_full; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const PlacedBricks& p = m.placed;
    const uint32_t begin = p.starts[item], pair = p.sources[begin] >> 3;
    const uint32_t index = p.indices[brick_number(p.placed[placed_with(m, pair)], pair)];
    m.listed_keys[item] = brick_key(brick_in(p.box, p.bricks[begin]));
    m.listed_full[item] = uint8_t(index + 1u);
  }
};

struct Compose {
  static constexpr uint32_t kThreads = 64, kResident = 32;
  struct Shared {
    uint64_t bricks[8][64];  // materials of a placed volume's bricks, by the parts that they have here
    uint64_t made[64];
    uint32_t indices[8];    // of these bricks; kNone: there is none
    uint32_t places[3][8];  // of a voxel here: what its coordinate on each axis adds to its place in `bricks`
    Placed placed;
    uint32_t end_of_pairs, at, brick, taken, empty, ends;
  };
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) { return call.listed - call.listed_full; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    const PlacedBricks& p = m.placed;
    block.each([&](uint32_t lane) {
      s.made[lane] = 0;
      if (lane) return;
      s.at = p.starts[p.count - 1 - (p.first_made + uint32_t(item))];
      s.brick = p.bricks[s.at];
      s.taken = 0;
      s.empty = 1;
    });
    for (;;) {
      block.each([&](uint32_t lane) {
        if (lane < 8) s.indices[lane] = kNone;
        if (lane != 32) return;
        s.at += s.taken;
        s.ends = s.empty == 0 || s.at >= p.count || p.bricks[s.at] != s.brick;
        s.taken = s.empty = 0;
        if (s.ends) return;
        const uint32_t number = placed_with(m, p.sources[s.at] >> 3);
        s.placed = p.placed[number];
        s.end_of_pairs = p.placed[number + 1].first_pair;
      });
      if (s.ends) break;
      block.each([&](uint32_t lane) {
        if (lane < 8) {
          const uint32_t i = s.at + lane;
          if (i >= p.count || p.bricks[i] != s.brick) return;
          const uint32_t pair = p.sources[i] >> 3;
          if (pair >= s.end_of_pairs) return;
          s.indices[p.sources[i] & 7u] = p.indices[brick_number(s.placed, pair)];
          add_together(s.taken, 1);
        } else if (lane >= 32 && lane < 56) {
          const uint32_t axis = (lane - 32) >> 3, here = lane & 7u;
          s.places[axis][here] = place_along(s.placed, axis, here);
        }
      });
      if (is_moved_only(s.placed)) {
        block.each([&](uint32_t lane) {
          s.made[lane] = first_of(s.made[lane], eight_of(m, s.indices[0], lane));
          add_together(s.empty, bit_count(equal_bytes(s.made[lane], 0)));
        });
        continue;
      }
      block.each([&](uint32_t lane) {
        const uint32_t possible = possible_parts(s.placed);
        for (uint32_t part = 0; part < 8; ++part)
          if (possible >> part & 1u) s.bricks[part][lane] = eight_of(m, s.indices[part], lane);
      });
      block.each([&](uint32_t lane) {
        const uint32_t octant = lane >> 3, x = (octant & 1u) * 4, y = (octant >> 1 & 1u) * 4 + (lane & 1u) * 2,
                       z = (octant >> 2) * 4 + (lane >> 1 & 3u);
        const auto* const materials = reinterpret_cast<const uint8_t*>(s.bricks);
        uint64_t eight = 0;
        for (uint32_t i = 0; i < 8; ++i)
          eight |= uint64_t(materials[s.places[0][x + (i & 3u)] + s.places[1][y + (i >> 2)] + s.places[2][z]])
                   << (8 * i);
        s.made[lane] = first_of(s.made[lane], eight);
        add_together(s.empty, bit_count(equal_bytes(s.made[lane], 0)));
      });
    }
    block.each([&](uint32_t lane) {
      const size_t number = size_t(item);
      if (lane == 0) m.listed_keys[call.listed_full + number] = brick_key(brick_in(p.box, s.brick));
      m.listed_materials[number * 64 + lane] = s.made[lane];
    });
  }

 private:
  // Of the voxels here whose coordinate on the world's axis is `here`: what that is of the place of those that come
  // there, 512 bytes for each part.
  QRY_HD static uint32_t place_along(const Placed& placed, uint32_t axis, uint32_t here) {
    const uint32_t shift = shift_of(placed, axis), own = axis_of(placed, axis);
    const bool higher = here < shift;  // it comes from a brick that has its higher side here
    uint32_t along = higher ? here + 8 - shift : here - shift;
    if (is_backwards(placed, axis)) along = 7 - along;
    return (along & 3u) << (2 * own) | (along >> 2) << (6 + own) | uint32_t(higher) << (9 + axis);
  }
  QRY_HD static uint64_t eight_of(const Memory& m, uint32_t index, uint32_t lane) {
    if (index == kNone) return 0;
    if (is_full_index(index)) return kEachByte * (index + 1u);
    return m.placed.materials[size_t(index - kFullBricks) * 64 + lane];
  }
};

}  // namespace quarry::device
