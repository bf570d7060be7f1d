// SPDX-License-Identifier: Apache-2.0
// growth.hpp - what the host launches between edits: a larger grid, a pyramid without gaps, a history without steps,
// steps that become one, and a pool whose bricks lie together.
//
// Bricks move together in place, each to a free place that no frame reads, so that what is behind them can be given
// back: find_places, find_moves and move_bricks write only what nobody reads; copy_pyramid makes a pyramid of the new
// places; redirect tells the grid and the history; list_places frees what is left. That is the two-finger compaction of
// R. A. Saunders, 1964 (R. Jones et al., "The Garbage Collection Handbook", 2012, chapter 3.1), for many fingers at
// once: any brick may move to any place.
#pragma once

#include <cstring>

#include "voxel/device/bodies/steps.hpp"

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

// The index that a record holds, by its number; kNone: none that is stored.
QRY_HD inline uint32_t held_by_record(const Memory& m, uint64_t number) {
  const Control& c = *m.control;
  const Step* const last = c.step_position ? m.steps + (c.step_position - 1) : nullptr;
  const bool applied = last && number < last->first + last->count;
  const Record record = m.records[number];
  const uint32_t index = applied ? record.before : record.after;
  return record.before != record.after && is_stored_index(index) ? index : kNone;
}

// Frees what the history's records hold. The host then sets its counters to 0.
struct Forget {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->record_top; }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    if (const uint32_t index = held_by_record(m, item); index != kNone) let_go(m, call, index);
  }
};

// ---- Steps that become one

struct ListRecords {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.joined.count; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    m.joined.keys[item] = m.records[m.joined.first + item].key;
    m.joined.numbers[item] = uint32_t(item);
  }
};

// The records of one key become one: from what was before the first to what is after the last. What was there between
// is held by these records alone, and is let go. The first record of each key's does the work; most have few.
struct JoinRecords {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.joined.count; }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    const JoinedSteps& j = m.joined;
    const uint32_t key = j.keys[item];
    if (item > 0 && j.keys[item - 1] == key) return;
    Record joined{key, kNone, kNone};
    bool begun = false;
    for (uint64_t i = item; i < j.count && j.keys[i] == key; ++i) {
      const Record record = m.records[j.first + j.numbers[i]];
      if (record.before == record.after) continue;
      if (!begun) joined.before = record.before;
      else if (is_stored_index(record.before)) let_go(m, call, record.before);
      joined.after = record.after;
      begun = true;
    }
    if (joined.before != joined.after) j.to[push(m.control->list_bricks)] = joined;
  }
};

// ---- Bricks that move

// Where the brick of an index is after the move.
QRY_HD inline uint32_t moved(const Memory& m, uint32_t index) {
  if (index < m.moves.first || index >= m.moves.end) return index;
  const uint32_t to = m.moves.to[index - m.moves.first];
  return to ? to : index;
}

struct FindPlaces {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.control->free_count; }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const uint32_t index = m.free_bricks[item];
    if (index >= m.moves.first) m.moves.behind[push(m.control->places_behind)] = index;
    else m.moves.places[push(m.control->places_before)] = index;
  }
};

// What holds an index, by its number: the words of the grid first, then the records. Each index that is not of a full
// brick has one holder.
QRY_HD inline uint64_t holders(const Memory& m) {
  return uint64_t(m.grid.page_count) * kQryPageWords + m.control->record_top;
}
// Its index; kNone: none that is stored.
QRY_HD inline uint32_t held_by(const Memory& m, uint64_t holder) {
  const uint64_t words = uint64_t(m.grid.page_count) * kQryPageWords;
  if (holder >= words) return held_by_record(m, holder - words);
  const Pair pair = pair_at(m.grid, holder);
  return pair.there && is_stored_index(pair.index) ? pair.index : kNone;
}

struct FindMoves {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return holders(m); }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const uint32_t index = held_by(m, item);
    if (index == kNone || index < m.moves.first) return;
    // There are fewer places than bricks as long as frames read some of the places.
    const uint32_t number = push(m.control->moves);
    if (number < m.control->places_before) m.moves.to[index - m.moves.first] = m.moves.places[number];
  }
};

// Eight bytes a thread.
struct MoveBricks {
  static constexpr uint32_t kWords = 8 + 64;  // masks, materials
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    return uint64_t(m.moves.end - m.moves.first) * kWords;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const auto number = uint32_t(item / kWords), word = uint32_t(item % kWords);
    const uint32_t to = m.moves.to[number];
    if (to == 0) return;
    const size_t from = m.moves.first + number;
    if (word < 8) m.masks[size_t(to) * 8 + word] = m.masks[from * 8 + word];
    else if (!m.packed) m.materials[size_t(to) * 64 + (word - 8)] = m.materials[from * 64 + (word - 8)];
    // The materials of a packed brick stay where they are.
    else if (word == 8) m.packed[to] = m.packed[from];
  }
};

struct Redirect {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return holders(m); }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    const uint64_t words = uint64_t(m.grid.page_count) * kQryPageWords;
    if (item >= words) {
      Record& record = m.records[item - words];
      record.before = moved(m, record.before);
      record.after = moved(m, record.after);
    } else if (const Pair pair = pair_at(m.grid, item); pair.there) {
      m.grid.words[item] = uint64_t(moved(m, pair.index)) << 32 | uint32_t(m.grid.words[item]);
    }
  }
};

// Frees the places that were left, or, if frames may read them, gives them to the list of EditCall::hold. The list of
// free ones is written anew before: those that were there and have not been taken.
struct ListPlaces {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) {
    const Control& c = *m.control;
    return uint64_t(c.places_behind) + c.places_before;
  }
  QRY_HD static void run(const Memory& m, const EditCall&, uint64_t item, Sums&) {
    Control& c = *m.control;
    const auto number = uint32_t(item);
    if (number < c.places_behind) m.free_bricks[push(c.free_count)] = m.moves.behind[number];
    else if (number - c.places_behind >= c.moves)
      m.free_bricks[push(c.free_count)] = m.moves.places[number - c.places_behind];
  }
};
struct LeavePlaces {
  QRY_HD static uint64_t items(const Memory& m, const EditCall&) { return m.moves.end - m.moves.first; }
  QRY_HD static void run(const Memory& m, const EditCall& call, uint64_t item, Sums&) {
    if (m.moves.to[item]) let_go(m, call, m.moves.first + uint32_t(item));
  }
};

// A granule of a table of indices. What is behind the last of them may be anything.
QRY_HD inline OccupancyNode moved_indices(const Memory& m, const OccupancyNode& granule) {
  uint32_t four[4];
  memcpy(four, &granule, sizeof four);
  for (uint32_t& index : four) index = moved(m, index);
  OccupancyNode out;
  memcpy(&out, four, sizeof out);
  return out;
}

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
          if (!node.mask || (i & 15u) >= granules_of(node)) continue;
          OccupancyNode four = m.old_nodes[s.sources[i >> 4] + (i & 15u)];  // indices
          if (m.moves.to) four = moved_indices(m, four);
          m.nodes[node.child + (i & 15u)] = four;
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
