// SPDX-License-Identifier: Apache-2.0
// growth.hpp - what the host launches between edits: a larger grid, a pyramid without gaps, and a
// history without steps.
#pragma once

#include "voxel/device/steps.hpp"

namespace quarry::device {

// Memory::grid becomes a table without keys.
struct ClearGrid {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return uint64_t(m.grid.page_count) * kQryPageWords; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    m.grid.words[item] = item % kQryPageWords < kQryStateSectors * 4u ? 0 : ~uint64_t(0);
  }
};

// Puts the keys of Memory::old_grid into Memory::grid.
struct Rehash {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return uint64_t(m.old_grid.page_count) * kQryPageWords;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const Pair pair = pair_at(m.old_grid, item);
    if (pair.there && hashgrid::assign(m.grid, pair.key, pair.index) == hashgrid::Outcome::full)
      set_bits(m.control->missing, kMissingPlace);
  }
};

// Frees what the history's records hold. The host then sets its counters to 0.
struct Forget {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->record_top; }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    const Control& c = *m.control;
    const Step* const last = c.step_position ? m.steps + (c.step_position - 1) : nullptr;
    const bool applied = last && item < last->first + last->count;
    const Record record = m.records[item];
    const uint32_t index = applied ? record.before : record.after;
    if (record.before != record.after && is_stored_index(index)) let_go(m, call, index);
  }
};

// Writes what the pyramid at Memory::old_nodes reaches into Memory::nodes, one run after the other from
// Control::nodes_top on. A block of threads has a node of level 3 with all below it.
struct CopyPyramid {
  static constexpr uint32_t kThreads = 256, kResident = 4;
  struct Shared {
    RunOfNodes level2, level1;
    OccupancyNode top, before[64];
    uint32_t sources[64], taken, first;
  };
  QRY_HD static uint64_t items(const Memory&, const EditCall&) { return kLevel3Nodes; }
  template <class Block>
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Shared& s, Block& block) {
    block.each([&](uint32_t lane) {
      if (lane == 0) s.top = m.old_nodes[item];
    });
    if (s.top.mask == 0) {
      block.each([&](uint32_t lane) {
        if (lane == 0) m.nodes[item] = {0, 0, 0};
      });
      return;
    }
    block.each([&](uint32_t lane) {
      if (lane < 64) s.before[lane] = child_node(m.old_nodes, s.top, lane);
      if (lane < 64) s.level2.child[lane] = {0, 0, 0};
    });
    for (uint32_t region = 0; region < 64; ++region) {
      if (s.before[region].mask == 0) continue;
      block.each([&](uint32_t lane) {
        if (lane == 0) s.taken = 0;
      });
      block.each([&](uint32_t lane) {
        if (lane >= 64) return;
        OccupancyNode node = child_node(m.old_nodes, s.before[region], lane);
        s.sources[lane] = node.child;
        const uint32_t room = granules_of(node);
        node.child = room ? fetch_add(s.taken, room) : 0;
        s.level1.child[lane] = node;
      });
      block.each([&](uint32_t lane) {
        if (lane == 0) s.first = fetch_add(m.control->nodes_top, s.taken);
      });
      block.each([&](uint32_t lane) {
        if (lane < 64) s.level1.child[lane].child += s.first;
      });
      block.each([&](uint32_t lane) {
        for (uint32_t i = lane; i < 64 * 16; i += kThreads) {  // tables have 16 granules at most
          const OccupancyNode& node = s.level1.child[i >> 4];
          if (node.mask && (i & 15u) < granules_of(node))
            m.nodes[node.child + (i & 15u)] = m.old_nodes[s.sources[i >> 4] + (i & 15u)];
        }
      });
      write_run(m, s.level1, block);
      block.each([&](uint32_t lane) {
        if (lane == 0) s.level2.child[region] = s.level1.node;
      });
    }
    write_run(m, s.level2, block);
    block.each([&](uint32_t lane) {
      if (lane == 0) m.nodes[item] = s.level2.node;
    });
  }
};

// No frame reads what is in the list EditCall::hold any more.
struct EndRecycle {
  QRY_HD static void run(const Memory& m, const EditCall& call) { m.control->retired[call.hold - 1] = 0; }
};
struct Recycle {
  using Tail = EndRecycle;
  QRY_HD static uint64_t items(const Memory& m, const EditCall& call) { return m.control->retired[call.hold - 1]; }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    m.free_bricks[push(m.control->free_count)] = m.retired[call.hold - 1][item];
  }
};

}  // namespace quarry::device
