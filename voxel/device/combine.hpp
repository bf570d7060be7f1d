// SPDX-License-Identifier: Apache-2.0
// combine.hpp - the steps that find what becomes of a world when it is combined with another one as a set of voxels.
// What comes out is a list of bricks, as TouchList and CutBricks<true> read it, so the rest is an edit like any other.
//
//   begin_list      nothing is known
//   list_combined   a thread a slot of a grid: bricks of which something changes are counted (EditCall::fills is 0)
//                   The host makes room for so many
//   list_combined   the same once more: keys, and which voxels of each (EditCall::fills is 1)
//   copy_materials  what voxels become that come from the other world
//
// A union and a difference walk the other world's grid and look its keys up in the world's own, an intersection the
// other way round: an inner, a semi and an anti join of two sets of keys, each of which is a hash table already.
#pragma once

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

}  // namespace quarry::device
