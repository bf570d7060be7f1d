// SPDX-License-Identifier: Apache-2.0
// parts.hpp - the steps that find the connected parts of a world: of each how many voxels it has, its box, and its
// commonest material (what parts are, and their order: voxel/operations/connected_parts.hpp). And which voxels go when
// only some parts stay: a list of bricks, as TouchList and CutBricks<true> read it.
//
//   begin_parts      nothing is known
//   clear_table      no key has a number
//   list_bricks      a thread a slot of the grid: each brick gets a number
//   label_bricks     a block of threads some bricks: which of a brick's voxels are connected within it. Runs of a row
//                    are joined with those beside them in a forest in shared memory; each tree is a piece. Of pieces or
//                    labelled bricks that have no room the host knows by their count, makes room, and does it again
//   join_bricks      a block of threads a brick: its pieces are joined with those of the bricks after it that they
//                    touch, in one forest of all
//   number_parts     each root is a part. The host makes room for so many
//   clear_parts      nothing is known of any part
//   measure_pieces   boxes, and which piece is the first
//   count_materials  a block of threads a brick: voxels of a material and part, added up in the brick first
//   pick_materials   the commonest of each part. Then the host reads the parts, and puts them in order
//   list_lost        of each brick the voxels of parts that do not stay
//
// WHY ANY ORDER WILL DO. A piece is joined with another by an exchange of its root's parent, which succeeds once: roots
// only ever get a parent with a lower number, so there are no rings, and a join that fails looks for the roots once
// more. Which piece becomes a part's root depends on the order; what is known of the part does not: sums, and the
// lowest and highest of what its pieces have.
//
// Literature: R. J. Anderson, H. Woll, "Wait-free Parallel Algorithms for the Union-Find Problem", 1991; as a GPU's
// threads do it, with paths that are halved on the way: J. Jaiganesh, M. Burtscher, "A High-Performance Connected
// Components Implementation for GPUs", 2018. Blocks by themselves first, then across their borders: V. M. A. Oliveira,
// R. A. Lotufo, "A Study on Connected Components Labeling Algorithms using GPUs", 2010.
#pragma once

#include "voxel/device/bodies/atomics.hpp"
#include "voxel/device/bodies/flood.hpp"
#include "voxel/device/bodies/layout.hpp"
#include "voxel/device/bodies/lists.hpp"
#include "voxel/device/bodies/steps.hpp"

namespace quarry::device {

// How many axes may differ between neighbours.
QRY_HD inline uint32_t most_axes(const EditCall& call) {
  return call.neighbours == 6 ? 1 : call.neighbours == 18 ? 2 : 3;
}

// ---- The forest of pieces

// Makes one tree of the trees of two elements: the higher root gets the lower one as its parent.
template <class RootOf, class ParentOf>
QRY_HD inline void join_trees(uint32_t a, uint32_t b, const RootOf& root_of, const ParentOf& parent_of) {
  for (;;) {
    a = root_of(a);
    b = root_of(b);
    if (a == b) return;
    const uint32_t high = a > b ? a : b, low = a > b ? b : a;
    if (exchange_if(parent_of(high), high, low) == high) return;
  }
}

QRY_HD inline uint32_t root_of(PartPiece* pieces, uint32_t of) {
  for (;;) {
    const uint32_t parent = peek(pieces[of].parent);
    if (parent == of) return of;
    const uint32_t above = peek(pieces[parent].parent);
    // Halves the path. Parents only ever fall, so an exchange that fails does no harm.
    if (above != parent) exchange_if(pieces[of].parent, parent, above);
    of = above;
  }
}
QRY_HD inline void join_pieces(PartPiece* pieces, uint32_t a, uint32_t b) {
  join_trees(
      a, b, [=](uint32_t of) { return root_of(pieces, of); },
      [=](uint32_t of) -> uint32_t& { return pieces[of].parent; });
}

// ---- Bricks

struct BeginParts {
  QRY_HD static void run(const Memory& m, const EditCall& call) {
    Control& c = *m.control;
    // EditCall::fills: the bricks are listed already.
    if (!call.fills) c.list_bricks = 0;
    c.list_full = 0;
    c.part_labels = c.part_pieces = c.part_count = 0;
  }
};

struct ListBricks {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return uint64_t(m.grid.page_count) * kQryPageWords; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const Pair pair = pair_at(m.grid, item);
    if (!pair.there) return;
    const uint32_t number = push(m.control->list_bricks);
    if (number >= m.parts.brick_room) return set_bits(m.control->list_full, 1);
    m.parts.keys[number] = pair.key;
    m.parts.indices[number] = pair.index;
    slot_of(m.flood.table, pair.key, m.control->list_full,
            [&](uint32_t slot) { m.flood.table.numbers[slot] = number; });
  }
};

// The number of a listed key; kNone: it is not listed.
QRY_HD inline uint32_t listed_number(const KeyTable& table, uint32_t key) {
  uint32_t slot = scattered(key) & table.last_slot;
  for (uint32_t probes = 0; probes <= table.last_slot; ++probes, slot = (slot + 1) & table.last_slot) {
    if (table.slots[slot] == key) return table.numbers[slot];
    if (table.slots[slot] == kQryReservedKey) break;
  }
  return kNone;
}

// ---- label

// A forest of the voxels of one brick, in shared memory; of each run along x only the first voxel. Once it is done:
QRY_HD inline uint32_t root_in_brick(const uint32_t* parents, uint32_t of) {
  while (parents[of] != of) of = parents[of];
  return of;
}
QRY_HD inline uint32_t growing_root_in_brick(uint32_t* parents, uint32_t of) {
  for (;;) {
    const uint32_t parent = peek_shared(parents[of]);
    if (parent == of) return of;
    of = parent;
  }
}
QRY_HD inline void join_in_brick(uint32_t* parents, uint32_t a, uint32_t b) {
  join_trees(
      a, b, [=](uint32_t of) { return growing_root_in_brick(parents, of); },
      [=](uint32_t of) -> uint32_t& { return parents[of]; });
}
// Of each run of set bits the first.
QRY_HD constexpr uint32_t run_starts(uint32_t row) { return row & ~(row << 1); }
// The first bit of the run that the bit is in.
QRY_HD inline uint32_t run_start(uint32_t row, uint32_t bit) {
  while (bit && (row >> (bit - 1) & 1u)) --bit;
  return bit;
}

// A lane a row of eight voxels. A voxel is x | y << 3 | z << 6 here.
struct LabelBricks {
  static constexpr uint32_t kThreads = 128, kResident = 12, kBricks = 2, kLanes = kThreads / kBricks;
  static constexpr uint32_t kMostPieces = 256;  // a brick: every other voxel, through faces
  struct Shared {
    struct One {
      uint32_t index, count, first, label;
      uint32_t rows[64];
      uint32_t parents[kVoxelsPerBrick];
      uint32_t planes[kMostPieces];      // of each piece
      uint16_t firsts[kMostPieces];      // of each piece: its root
      uint8_t numbers[kVoxelsPerBrick];  // of roots: the piece
    } bricks[kBricks];
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return (uint64_t(m.control->list_bricks) + kBricks - 1) / kBricks;
  }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    using One = typename Shared::One;
    Control& c = *m.control;
    const Parts& p = m.parts;
    const uint32_t most = most_axes(call);
    const auto number_of = [item](uint32_t lane) { return uint32_t(item) * kBricks + lane / kLanes; };
    const auto is_cut = [](const One& one) { return is_stored_index(one.index); };
    block.each([&](uint32_t lane) {
      One& one = s.bricks[lane / kLanes];
      const uint32_t at = lane % kLanes, number = number_of(lane);
      const uint32_t index = number < c.list_bricks ? p.indices[number] : kNone;
      if (at == 0) {
        one.index = index;
        one.count = is_full_index(index) ? 1 : 0;
        one.label = kNone;
      }
      if (!is_stored_index(index)) {
        if (at == 0) {
          one.planes[0] = 0xFFFFFFu;
          one.firsts[0] = 0;
        }
        return;
      }
      const uint32_t y = at & 7u, z = at >> 3, octant = (y >> 2) << 1 | (z >> 2) << 2,
                     shift = (y & 3u) * 4 + (z & 3u) * 16;
      const uint64_t* const mask = m.masks + size_t(index) * 8;
      const uint32_t row = uint32_t(mask[octant] >> shift & 15u) | uint32_t(mask[octant + 1] >> shift & 15u) << 4;
      one.rows[at] = row;
      for (uint32_t left = run_starts(row); left; left &= left - 1) {
        const uint32_t first = at * 8 + lowest_bit(left);
        one.parents[first] = first;
      }
      for (uint32_t i = at; i < kMostPieces; i += kLanes) one.planes[i] = 0;
    });
    // With the four rows before that touch it.
    block.each([&](uint32_t lane) {
      One& one = s.bricks[lane / kLanes];
      if (!is_cut(one)) return;
      const uint32_t at = lane % kLanes, y = at & 7u, z = at >> 3, row = one.rows[at];
      if (!row) return;
      const auto join = [&](int32_t dy, int32_t dz) {
        const auto differing = uint32_t(dy != 0) + uint32_t(dz != 0);
        const int32_t other_y = int32_t(y) + dy, other_z = int32_t(z) + dz;
        if (differing > most || other_y < 0 || other_y > 7 || other_z < 0) return;
        const uint32_t other = uint32_t(other_y) | uint32_t(other_z) << 3, beside = one.rows[other];
        if (!beside) return;
        const auto join_at = [&](uint32_t meeting, int32_t dx) {
          for (uint32_t left = run_starts(meeting); left; left &= left - 1) {
            const uint32_t bit = lowest_bit(left);
            join_in_brick(one.parents, at * 8 + run_start(row, bit),
                          other * 8 + run_start(beside, uint32_t(int32_t(bit) + dx)));
          }
        };
        join_at(row & beside, 0);
        if (differing == most) return;
        // Those that touch by an edge or a corner alone.
        join_at(row & ~beside & (beside << 1) & 0xFFu, -1);
        join_at(row & ~beside & (beside >> 1), 1);
      };
      join(-1, 0);
      join(0, -1);
      join(-1, -1);
      join(1, -1);
    });
    block.each([&](uint32_t lane) {
      One& one = s.bricks[lane / kLanes];
      if (!is_cut(one)) return;
      const uint32_t at = lane % kLanes;
      for (uint32_t left = run_starts(one.rows[at]); left; left &= left - 1) {
        const uint32_t voxel = at * 8 + lowest_bit(left);
        if (one.parents[voxel] != voxel) continue;
        const uint32_t piece = fetch_add(one.count, 1);
        one.numbers[voxel] = uint8_t(piece);
        one.firsts[piece] = uint16_t(voxel);
      }
    });
    block.each([&](uint32_t lane) {
      One& one = s.bricks[lane / kLanes];
      if (lane % kLanes || one.index == kNone) return;
      one.first = fetch_add(c.part_pieces, one.count);
      if (one.count > 1) one.label = push(c.part_labels);
      p.firsts[number_of(lane)] = one.first;
      p.labels[number_of(lane)] = one.label;
    });
    block.each([&](uint32_t lane) {
      One& one = s.bricks[lane / kLanes];
      if (!is_cut(one)) return;
      const uint32_t at = lane % kLanes, row = one.rows[at];
      uint64_t labels = 0;
      uint32_t piece = 0, run = 0;
      for (uint32_t x = 0; x < 8; ++x) {
        if (!(row >> x & 1u)) continue;
        if (x == 0 || !(row >> (x - 1) & 1u)) {
          piece = one.numbers[root_in_brick(one.parents, at * 8 + x)];
          run = 0;
        }
        labels |= uint64_t(piece) << (8 * x);
        run |= 1u << x;
        if (x == 7 || !(row >> (x + 1) & 1u))
          set_bits(one.planes[piece], run | 256u << (at & 7u) | 65536u << (at >> 3));
      }
      if (one.label < p.label_room) p.voxel_labels[size_t(one.label) * 64 + at] = labels;
    });
    block.each([&](uint32_t lane) {
      const One& one = s.bricks[lane / kLanes];
      if (one.index == kNone) return;
      for (uint32_t i = lane % kLanes; i < one.count; i += kLanes) {
        const uint64_t piece = uint64_t(one.first) + i;
        if (piece < p.piece_room) p.pieces[piece] = {number_of(lane), one.planes[i], one.firsts[i], uint32_t(piece)};
      }
    });
  }
};

// ---- join

// A step to each of the 13 bricks around one that come after it in the order of x, y, z: three share a face, six an
// edge, four a corner.
struct StepAfter {
  int32_t x, y, z;
};
QRY_HD constexpr StepAfter step_after(uint32_t number) {
  constexpr int8_t kSteps[13][3] = {{1, 0, 0}, {0, 1, 0},  {0, 0, 1}, {1, 1, 0},  {1, -1, 0}, {1, 0, 1},  {1, 0, -1},
                                    {0, 1, 1}, {0, 1, -1}, {1, 1, 1}, {1, 1, -1}, {1, -1, 1}, {1, -1, -1}};
  return {kSteps[number][0], kSteps[number][1], kSteps[number][2]};
}

struct JoinBricks {
  static constexpr uint32_t kThreads = 64, kResident = 16, kSteps = 13;
  // Voxels that touch the bricks after: of three faces, six edges, four corners.
  static constexpr uint32_t kOfFaces = 3 * 64, kOfEdges = kOfFaces + 6 * 8, kOfCorners = kOfEdges + 4;
  struct Shared {
    // The brick itself, and those after it.
    uint32_t indices[1 + kSteps], firsts[1 + kSteps], labels[1 + kSteps];
    uint64_t masks[1 + kSteps][8];
    uint32_t touched[1 + kSteps];  // of two bricks that are one piece each
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->list_bricks; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Shared& s, Block& block) {
    const Parts& p = m.parts;
    const uint32_t most = most_axes(call);
    block.each([&](uint32_t lane) {
      if (lane > kSteps) return;
      s.touched[lane] = 0;
      s.indices[lane] = kNone;
      auto number = uint32_t(item);
      if (lane) {
        const uint32_t key = p.keys[item];
        const StepAfter step = step_after(lane - 1);
        if (uint32_t((step.x != 0) + (step.y != 0) + (step.z != 0)) > most) return;
        const int32_t x = int32_t(key & 2047u) + step.x, y = int32_t(key >> 11 & 1023u) + step.y,
                      z = int32_t(key >> 21) + step.z;
        if (uint32_t(x) > 2047u || uint32_t(y) > 1023u || uint32_t(z) > 2047u) return;
        const uint32_t beside = uint32_t(x) | uint32_t(y) << 11 | uint32_t(z) << 21;
        if (beside == kQryReservedKey) return;
        number = listed_number(m.flood.table, beside);
        if (number == kNone) return;
      }
      s.indices[lane] = p.indices[number];
      s.firsts[lane] = p.firsts[number];
      s.labels[lane] = p.labels[number];
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < (1 + kSteps) * 8; i += kThreads)
        if (const uint32_t index = s.indices[i >> 3]; index != kNone)
          s.masks[i >> 3][i & 7u] = m.masks[size_t(index) * 8 + (i & 7u)];  // full bricks have masks, too
    });
    block.each([&](uint32_t lane) {
      const uint32_t count = most == 1 ? kOfFaces : most == 2 ? kOfEdges : kOfCorners;
      for (uint32_t i = lane; i < count; i += kThreads) meet(p, s, most, i);
    });
    block.each([&](uint32_t lane) {
      if (lane && lane <= kSteps && s.touched[lane]) join_pieces(p.pieces, s.firsts[0], s.firsts[lane]);
    });
  }

 private:
  QRY_HD static bool has(const uint64_t (&mask)[8], Int3 voxel) { return mask[octant_of(voxel)] >> bit_of(voxel) & 1u; }
  QRY_HD static uint32_t piece_at(const Parts& p, const Shared& s, uint32_t brick, Int3 voxel) {
    const uint32_t label = s.labels[brick];
    if (label == kNone) return s.firsts[brick];
    const auto at = uint32_t(voxel.x) | uint32_t(voxel.y) << 3 | uint32_t(voxel.z) << 6;
    return s.firsts[brick] + reinterpret_cast<const uint8_t*>(p.voxel_labels)[size_t(label) * kVoxelsPerBrick + at];
  }
  // One voxel of the brick with those of one brick after it that it touches.
  QRY_HD static void meet(const Parts& p, Shared& s, uint32_t most, uint32_t number) {
    uint32_t after = number >> 6, free = number & 63u;  // its coordinates on axes that do not step
    if (number >= kOfEdges) after = 9 + (number - kOfEdges);
    else if (number >= kOfFaces) after = 3 + ((number - kOfFaces) >> 3), free = (number - kOfFaces) & 7u;
    const uint32_t there = 1 + after;
    if (s.indices[there] == kNone) return;
    const bool whole = s.labels[0] == kNone && s.labels[there] == kNone;
    if (whole && peek_shared(s.touched[there])) return;
    const StepAfter step = step_after(after);
    const auto coordinate = [&](int32_t way) {
      if (way) return way < 0 ? 0 : 7;
      const auto own = int32_t(free & 7u);
      free >>= 3;
      return own;
    };
    Int3 voxel;
    voxel.x = coordinate(step.x);
    voxel.y = coordinate(step.y);
    voxel.z = coordinate(step.z);
    if (!has(s.masks[0], voxel)) return;
    const uint32_t mine = piece_at(p, s, 0, voxel);
    uint32_t last = kNone;
    const auto from = [](int32_t way) { return way ? way : -1; };
    const auto to = [](int32_t way) { return way ? way : 1; };
    // In the other brick, or beside it.
    const auto is_there = [](int32_t way, int32_t at) { return way || (at >= 0 && at < 8); };
    for (int32_t dz = from(step.z); dz <= to(step.z); ++dz)
      for (int32_t dy = from(step.y); dy <= to(step.y); ++dy)
        for (int32_t dx = from(step.x); dx <= to(step.x); ++dx) {
          if (uint32_t((dx != 0) + (dy != 0) + (dz != 0)) > most) continue;
          const int32_t x = voxel.x + dx, y = voxel.y + dy, z = voxel.z + dz;
          if (!is_there(step.x, x) || !is_there(step.y, y) || !is_there(step.z, z)) continue;
          Int3 other;
          other.x = x & 7;
          other.y = y & 7;
          other.z = z & 7;
          if (!has(s.masks[there], other)) continue;
          if (whole) return set_bits(s.touched[there], 1u);
          const uint32_t its = piece_at(p, s, there, other);
          if (its != last) join_pieces(p.pieces, mine, its);
          last = its;
        }
  }
};

// ---- parts

struct NumberParts {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->part_pieces; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const auto piece = uint32_t(item);
    const uint32_t root = root_of(m.parts.pieces, piece);
    if (root == piece) m.parts.numbers[piece] = push(m.control->part_count);
    else put(m.parts.pieces[piece].parent, root);
  }
};
QRY_HD inline uint32_t part_of(const Parts& p, uint32_t piece) { return p.numbers[p.pieces[piece].parent]; }

struct ClearParts {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    const uint64_t slots = uint64_t(m.parts.last_share) + 1, parts = m.control->part_count;
    return slots > parts ? slots : parts;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    if (item <= m.parts.last_share) {
      m.parts.share_keys[item] = kNoShare;
      m.parts.share_counts[item] = 0;
    }
    if (item >= m.control->part_count) return;
    constexpr int32_t kFar = 1 << 30;
    m.parts.found[item] = {0, ~0ull, 0, {kFar, kFar, kFar}, {-kFar, -kFar, -kFar}};
  }
};

struct MeasurePieces {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->part_pieces; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const Parts& p = m.parts;
    const PartPiece piece = p.pieces[item];
    PartFound& part = p.found[p.numbers[piece.parent]];
    const uint32_t key = p.keys[piece.brick];
    const uint32_t brick[3] = {key & 2047u, key >> 11 & 1023u, key >> 21};
    const unsigned long long first =
        (uint64_t(brick[0]) << 21 | uint64_t(brick[1]) << 11 | brick[2]) << kVoxelBits | piece.first;
    // Most of them change nothing.
    if (first < peek(part.first)) lower(part.first, first);
    for (uint32_t axis = 0; axis < 3; ++axis) {
      const uint32_t planes = piece.planes >> (8 * axis) & 0xFFu;
      uint32_t highest = 7;
      while (!(planes >> highest & 1u)) --highest;
      const auto low = int32_t(brick[axis] * 8 + lowest_bit(planes)), high = int32_t(brick[axis] * 8 + highest);
      if (low < peek(part.low[axis])) lower(part.low[axis], low);
      if (high > peek(part.high[axis])) raise(part.high[axis], high);
    }
  }
};

// ---- materials

// Adds voxels of one material to a part, in all.
QRY_HD inline void add_share(const Memory& m, uint32_t part, uint32_t material, uint32_t voxels) {
  constexpr uint32_t kMostProbes = 128;  // what is fuller than that shall be larger
  const Parts& p = m.parts;
  const unsigned long long key = uint64_t(part) << 8 | material;
  uint32_t slot = scattered(part * 0x9E3779B1u + material) & p.last_share;
  for (uint32_t probes = 0; probes < kMostProbes; ++probes, slot = (slot + 1) & p.last_share) {
    unsigned long long held = peek(p.share_keys[slot]);
    if (held == kNoShare) {
      held = exchange_if(p.share_keys[slot], kNoShare, key);
      if (held == kNoShare) held = key;
    }
    if (held == key) return add(p.share_counts[slot], voxels);
  }
  set_bits(m.control->list_full, 1);
}

struct CountMaterials {
  static constexpr uint32_t kThreads = 64, kResident = 16;
  static constexpr uint32_t kSlots = 1024;  // twice as many as a brick has voxels
  struct Shared {
    uint32_t index, first, label;
    uint32_t shares[kSlots];  // piece << 24 | material << 16 | voxels; 0: none
  };
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->list_bricks; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const Parts& p = m.parts;
    block.each([&](uint32_t lane) {
      if (lane == 0) {
        s.index = p.indices[item];
        s.first = p.firsts[item];
        s.label = p.labels[item];
      }
      for (uint32_t i = lane; i < kSlots; i += kThreads) s.shares[i] = 0;
    });
    if (is_full_index(s.index)) {
      block.each([&](uint32_t lane) {
        if (lane == 0) add_share(m, part_of(p, s.first), s.index + 1, kVoxelsPerBrick);
      });
      return;
    }
    block.each([&](uint32_t lane) {
      const uint64_t eight = eight_materials(m, s.index, lane);
      if (!eight) return;
      const uint32_t two = pieces_of(p, s.label, lane, 0), next = pieces_of(p, s.label, lane, 1);
      uint32_t key = 0, voxels = 0;
      for (uint32_t i = 0; i < 8; ++i) {
        const auto material = uint32_t(eight >> (8 * i)) & 0xFFu;
        if (!material) continue;
        const uint32_t now = ((i < 4 ? two : next) >> (8 * (i & 3u)) & 0xFFu) << 8 | material;
        if (now != key) {
          if (voxels) add_here(s, key, voxels);
          key = now;
          voxels = 0;
        }
        ++voxels;
      }
      add_here(s, key, voxels);
    });
    block.each([&](uint32_t lane) {
      for (uint32_t i = lane; i < kSlots; i += kThreads)
        if (const uint32_t share = s.shares[i])
          add_share(m, part_of(p, s.first + (share >> 24)), share >> 16 & 0xFFu, share & 0xFFFFu);
    });
  }

  // Of the four voxels of one row among the eight of a lane: their pieces in the brick.
  QRY_HD static uint32_t pieces_of(const Parts& p, uint32_t label, uint32_t lane, uint32_t row) {
    if (label == kNone) return 0;
    const uint32_t octant = lane >> 3, byte = lane & 7u;
    const uint32_t x = (octant & 1u) * 4, y = (octant >> 1 & 1u) * 4 + (byte & 1u) * 2 + row,
                   z = (octant >> 2) * 4 + (byte >> 1);
    return uint32_t(p.voxel_labels[size_t(label) * 64 + (y | z << 3)] >> (8 * x));
  }

 private:
  QRY_HD static void add_here(Shared& s, uint32_t key, uint32_t voxels) {
    for (uint32_t slot = scattered(key) & (kSlots - 1u);; slot = (slot + 1) & (kSlots - 1u)) {
      const uint32_t held = exchange_if(s.shares[slot], 0, key << 16 | voxels);
      if (held == 0) return;
      if (held >> 16 == key) {
        fetch_add(s.shares[slot], voxels);
        return;
      }
    }
  }
};

struct PickMaterials {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return uint64_t(m.parts.last_share) + 1; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const unsigned long long key = m.parts.share_keys[item], voxels = m.parts.share_counts[item];
    if (key == kNoShare) return;
    PartFound& part = m.parts.found[key >> 8];
    add(part.voxels, voxels);
    raise(part.material, voxels << 8 | (255u - (key & 255u)));
  }
};

// ---- what is lost

struct ListLost {
  static constexpr uint32_t kThreads = 64, kResident = 16;
  struct Shared {
    uint32_t index, first, label, number;
    uint32_t lost, kept;  // 1: any voxel is
    uint8_t bytes[64];    // of the mask of voxels that are
  };
  QRY_HD static uint64_t items(const Memory&, const EditCall& call) { return call.listed; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    const Parts& p = m.parts;
    block.each([&](uint32_t lane) {
      if (lane) return;
      s.index = p.indices[item];
      s.first = p.firsts[item];
      s.label = p.labels[item];
      s.lost = s.kept = 0;
    });
    block.each([&](uint32_t lane) {
      if (s.label == kNone) {
        if (lane == 0) (p.keeps[part_of(p, s.first)] ? s.kept : s.lost) = 1;
        return;
      }
      const uint32_t mask = reinterpret_cast<const uint8_t*>(m.masks + size_t(s.index) * 8)[lane];
      const uint32_t rows[2] = {CountMaterials::pieces_of(p, s.label, lane, 0),
                                CountMaterials::pieces_of(p, s.label, lane, 1)};
      uint32_t lost = 0;
      for (uint32_t left = mask; left; left &= left - 1) {
        const uint32_t i = lowest_bit(left);
        if (!p.keeps[part_of(p, s.first + (rows[i >> 2] >> (8 * (i & 3u)) & 0xFFu))]) lost |= 1u << i;
      }
      s.bytes[lane] = uint8_t(lost);
      if (lost) set_bits(s.lost, 1);
      if (mask & ~lost) set_bits(s.kept, 1);
    });
    block.each([&](uint32_t lane) {
      if (lane || !s.lost) return;
      s.number = push(m.control->list_bricks);
      m.listed_keys[s.number] = p.keys[item];
    });
    // A brick that loses all is whole in the list.
    block.each([&](uint32_t lane) {
      if (!s.lost) return;
      reinterpret_cast<uint8_t*>(m.listed_masks + size_t(s.number) * 8)[lane] = s.kept ? s.bytes[lane] : uint8_t(0xFF);
    });
  }
};

}  // namespace quarry::device
