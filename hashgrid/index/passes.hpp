// SPDX-License-Identifier: Apache-2.0
// passes.hpp - the bulk operations on an ordered index as passes of bodies.hpp, one after the other: one text for every
// machine that runs them.
//
// A Machine has:
//   begin()                             an object that lives as long as the call
//   run(what, count, body)              calls body(i) for every i < count
//   sum(what, count, body, &total)      the same, and adds up what it returns
//   search(what, view, count, body)     calls body(i, place of body.key(i)) for every i < count
//   scratch(size_bytes)                 memory for a call, with as<T>()
//   scan(numbers, count)                in place: sums of those before; of uint32_t or uint64_t
//   sort(keys, values, count, keys_out, values_out)
//   put(to, number), get(from, &number) one uint64_t (get: or uint32_t) from or to the host
//   finish(what)                        waits
//   run_groups(what, count, body)       calls body(group, i) for every i < count (segments.hpp)
//   piece()                             keys of a piece of a list, which a group has
//   box_depth(boxes)                    cuts of a box; 0: each is walked by one thread
#pragma once

#include <string>
#include <utility>

#include "hashgrid/index/bodies.hpp"

namespace quarry::hashgrid {

template <class Machine, class Key>
class IndexPasses final : public IndexOperations<Key> {
 public:
  using View = IndexView<Key>;
  explicit IndexPasses(Machine machine) : machine_(std::move(machine)) {}

  Result<void> build(const View& view, uint32_t per_leaf, const Key* keys, const uint32_t* values,
                     size_t count) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    return write(view, per_leaf, keys, values, count, false);
  }

  Result<void> sort_and_build(const View& view, uint32_t per_leaf, const Key* keys, const uint32_t* values,
                              size_t count) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    QRY_TRY_ASSIGN(const Batch batch, sorted(keys, values, count));
    return write(view, per_leaf, batch.keys, batch.values, count, true);
  }

  Result<BulkReport> change(const View& view, uint32_t per_leaf, IndexChange what, const Key* keys,
                            const uint32_t* values, size_t count, const typename IndexOperations<Key>::Room& room,
                            bool* merged) override {
    *merged = false;
    if (count == 0) return BulkReport{};
    [[maybe_unused]] const auto scope = machine_.begin();
    const bool erase = what == IndexChange::erase, assign = what == IndexChange::assign;
    QRY_TRY_ASSIGN(const Batch batch, sorted(keys, values, count));
    if (!erase)
      QRY_TRY(unharmed(batch.keys, count, assign ? "assign" : "insert", true, [&](uint64_t* to) {
        return machine_.run("check keys", count, bodies::CheckBatch<Key>{batch.keys, batch.values, count, to});
      }));
    QRY_TRY_ASSIGN(const auto place_memory, machine_.scratch(count * sizeof(IndexPlace)));
    QRY_TRY_ASSIGN(const auto prefix_memory, machine_.scratch((count + 1) * sizeof(uint32_t)));
    IndexPlace* const places = place_memory.template as<IndexPlace>();
    uint32_t* const prefix = prefix_memory.template as<uint32_t>();
    uint64_t counted = 0;
    QRY_TRY(machine_.search("find an index's leaves", view, count,
                            bodies::Locate<Key>{view, batch.keys, count, erase, places, prefix}, &counted));
    QRY_TRY(machine_.scan(prefix, count + 1));
    BulkReport report;
    if (erase) {
      report.erased = counted;
      report.absent = count - counted;
      if (counted != 0) {
        QRY_TRY(machine_.run("erase from leaves", count, bodies::EraseFromLeaves<Key>{view, places, prefix, count}));
        QRY_TRY(machine_.run("count an index's keys", rank_runs(view),
                             bodies::UpdateBefore<Key>{view, places, prefix, count, true}));
      }
      QRY_TRY(machine_.finish("erase from an index"));
      return report;
    }
    report.inserted = counted;
    (assign ? report.assigned : report.present) = count - counted;
    uint64_t overfull = 0;
    QRY_TRY(machine_.sum("look for room in leaves", count, bodies::CountOverfull<Key>{view, places, prefix, count},
                         &overfull));
    if (overfull == 0) {
      if (assign && counted != count)
        QRY_TRY(
            machine_.run("assign in leaves", count, bodies::AssignPresent<Key>{view, places, prefix, batch.values}));
      if (counted != 0) {
        QRY_TRY(machine_.run("insert into leaves", count,
                             bodies::InsertIntoLeaves<Key>{view, batch.keys, batch.values, places, prefix, count}));
        QRY_TRY(machine_.run("count an index's keys", rank_runs(view),
                             bodies::UpdateBefore<Key>{view, places, prefix, count, false}));
      }
      QRY_TRY(machine_.finish("insert into an index"));
      return report;
    }
    QRY_TRY_ASSIGN(const auto fresh_memory, machine_.scratch(counted * (sizeof(Key) + 2 * sizeof(uint32_t))));
    Key* const fresh_keys = fresh_memory.template as<Key>();
    uint32_t* const fresh_values = reinterpret_cast<uint32_t*>(fresh_keys + counted);
    uint32_t* const fresh_ranks = fresh_values + counted;
    QRY_TRY_ASSIGN(const View to, room(uint64_t{view.size} + counted));
    QRY_TRY(machine_.run("pick absent keys", count,
                         bodies::PickAbsent<Key>{view, batch.keys, batch.values, places, prefix, fresh_keys,
                                                 fresh_values, fresh_ranks}));
    // The old index is given up after this: its values may be the new ones before they are copied.
    if (assign && counted != count)
      QRY_TRY(machine_.run("assign in leaves", count, bodies::AssignPresent<Key>{view, places, prefix, batch.values}));
    QRY_TRY(merge(view, to, per_leaf, fresh_keys, fresh_values, fresh_ranks, counted));
    QRY_TRY(machine_.finish("merge into an index"));
    *merged = true;
    return report;
  }

  Result<void> repack(const View& from, const View& to, uint32_t per_leaf) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    QRY_TRY(merge(from, to, per_leaf, nullptr, nullptr, nullptr, 0));
    return machine_.finish("repack an index");
  }

  Result<uint64_t> find(const View& view, const Key* keys, size_t count, uint32_t* values_out) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    uint64_t hits = 0;
    QRY_TRY(machine_.search("find in an index", view, count, bodies::Find<Key>{view, keys, values_out}, &hits));
    return hits;
  }

  Result<void> lower_bounds(const View& view, const Key* keys, size_t count, uint32_t* ranks_out) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    return machine_.search("find ranks in an index", view, count, bodies::LowerBounds<Key>{view, keys, ranks_out},
                           nullptr);
  }

  Result<uint64_t> count_ranges(const View& view, const KeyRange<Key>* ranges, size_t count, RankRange* out) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    QRY_TRY_ASSIGN(const auto ranks, range_ends(view, ranges, count));
    uint64_t total = 0;
    QRY_TRY(
        machine_.sum("count ranges", count, bodies::RangeCounts{ranks.template as<uint32_t>(), out, nullptr}, &total));
    return total;
  }

  Result<uint64_t> list_ranges(const View& view, const KeyRange<Key>* ranges, size_t count, uint64_t* starts_out,
                               Key* keys_out, uint32_t* values_out, uint64_t room) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    QRY_TRY_ASSIGN(const auto rank_memory, range_ends(view, ranges, count));
    QRY_TRY_ASSIGN(const auto start_memory, machine_.scratch((count + 1) * sizeof(uint64_t)));
    const uint32_t* const ranks = rank_memory.template as<uint32_t>();
    uint64_t* const starts = start_memory.template as<uint64_t>();
    QRY_TRY(machine_.put(starts + count, 0));
    QRY_TRY(machine_.run("count ranges", count, bodies::RangeCounts{ranks, nullptr, starts}));
    QRY_TRY_ASSIGN(const uint64_t total, total_of(starts, count, room, "ranges"));
    const uint32_t piece = machine_.piece();
    if (total != 0 && (keys_out != nullptr || values_out != nullptr))
      QRY_TRY(machine_.run_groups(
          "list ranges", pieces_of(total),
          bodies::ListRanges<Key>{view, ranks, ranks + count * 2, starts, count, piece, keys_out, values_out}));
    if (starts_out != nullptr) QRY_TRY(machine_.run("list ranges", count + 1, bodies::CopyStarts{starts, starts_out}));
    QRY_TRY(machine_.finish("list ranges of an index"));
    return total;
  }

  Result<uint64_t> list_boxes(const View& view, const MortonBox* boxes, size_t count, uint64_t* starts_out,
                              Key* keys_out, uint32_t* values_out, uint64_t room) override {
    if constexpr (sizeof(Key) == 8) {
      [[maybe_unused]] const auto scope = machine_.begin();
      QRY_TRY_ASSIGN(const uint64_t fault, first_fault([&](uint64_t* to) {
                       return machine_.run("check boxes", count, bodies::CheckBoxes{boxes, to});
                     }));
      if (fault != kNoFault)
        return fail(ErrorCode::invalid_argument,
                    "ordered index: box " + std::to_string(fault) + " of " + std::to_string(count) +
                        " has a minimum beyond its maximum, or a coordinate of more than 21 bits; nothing is listed");
      const uint32_t depth = machine_.box_depth(count);
      if (depth != 0) return list_cut_boxes(view, boxes, count, depth, starts_out, keys_out, values_out, room);
      QRY_TRY_ASSIGN(const auto start_memory, machine_.scratch((count + 1) * sizeof(uint64_t)));
      uint64_t* const starts = start_memory.template as<uint64_t>();
      QRY_TRY(machine_.put(starts + count, 0));
      QRY_TRY_ASSIGN(const auto place_memory, machine_.scratch(count * sizeof(IndexPlace)));
      IndexPlace* const places = place_memory.template as<IndexPlace>();
      QRY_TRY(machine_.search("count boxes", view, count, bodies::CountBoxes{view, boxes, places, starts}, nullptr));
      QRY_TRY_ASSIGN(const uint64_t total, total_of(starts, count, room, "boxes"));
      if (total != 0 && (keys_out != nullptr || values_out != nullptr))
        QRY_TRY(
            machine_.run("list boxes", count, bodies::ListBoxes{view, boxes, places, starts, keys_out, values_out}));
      if (starts_out != nullptr) QRY_TRY(machine_.run("list boxes", count + 1, bodies::CopyStarts{starts, starts_out}));
      QRY_TRY(machine_.finish("list boxes of an index"));
      return total;
    } else {
      (void)view, (void)boxes, (void)count, (void)starts_out, (void)keys_out, (void)values_out, (void)room;
      return fail(ErrorCode::unsupported, "ordered index: boxes need 64-bit keys, Morton codes of three coordinates");
    }
  }

 private:
  static constexpr uint64_t kNoFault = ~uint64_t{0};
  struct Batch {
    typename decltype(std::declval<Machine&>().scratch(0))::value_type memory;
    Key* keys;
    uint32_t* values;
  };

  // run(to) writes the least number that is wrong, if there is one.
  template <class Run>
  Result<uint64_t> first_fault(const Run& run) {
    QRY_TRY_ASSIGN(const auto memory, machine_.scratch(sizeof(uint64_t)));
    uint64_t* const fault = memory.template as<uint64_t>();
    QRY_TRY(machine_.put(fault, kNoFault));
    QRY_TRY(run(fault));
    uint64_t first = kNoFault;
    QRY_TRY(machine_.get(fault, &first));
    return first;
  }

  // run(to) looks for the first fault of these keys (bodies.hpp).
  template <class Run>
  Result<void> unharmed(const Key* keys, size_t count, const char* what, bool were_sorted_here, const Run& run) {
    QRY_TRY_ASSIGN(const uint64_t fault, first_fault(run));
    if (fault == kNoFault) return {};
    Key key{};
    QRY_TRY(machine_.get(keys + fault / 4, &key));
    const std::string head = std::string("ordered index ") + what + ": ",
                      place =
                          were_sorted_here ? "" : " at " + std::to_string(fault / 4) + " of " + std::to_string(count);
    const char* const tail = "; nothing is written";
    switch (fault % 4) {
      case bodies::kReservedKey:
        return fail(ErrorCode::invalid_argument, head + "the largest key" + place + " is reserved" + tail);
      case bodies::kReservedValue:
        return fail(ErrorCode::invalid_argument,
                    head + "the value of key " + std::to_string(key) + place + " is the reserved 0xFFFFFFFF" + tail);
      default:
        return fail(ErrorCode::invalid_argument,
                    head +
                        (were_sorted_here ? "key " + std::to_string(key) + " is there twice"
                                          : "the keys do not rise: after key " + std::to_string(key) + place +
                                                " comes one that is not greater") +
                        tail);
    }
  }

  Result<Batch> sorted(const Key* keys, const uint32_t* values, size_t count) {
    QRY_TRY_ASSIGN(auto memory, machine_.scratch(count * (sizeof(Key) + sizeof(uint32_t))));
    Key* const to_keys = memory.template as<Key>();
    uint32_t* const to_values = reinterpret_cast<uint32_t*>(to_keys + count);
    QRY_TRY(machine_.sort(keys, values, count, to_keys, to_values));
    return Batch{std::move(memory), to_keys, to_values};
  }

  // Leaves and inner nodes of rising keys. Waits.
  Result<void> write(const View& view, uint32_t per_leaf, const Key* keys, const uint32_t* values, size_t count,
                     bool were_sorted_here) {
    return unharmed(keys, count, "build", were_sorted_here, [&](uint64_t* to) -> Result<void> {
      QRY_TRY(machine_.run("write leaves", view.shape.slots() / bodies::BuildLeaves<Key>::kAtOnce,
                           bodies::BuildLeaves<Key>{view, per_leaf, keys, values, count, to}));
      return machine_.run("write inner nodes", size_t{view.shape.nodes} * IndexNode<Key>::kSlots,
                          bodies::BuildInner<Key>{view});
    });
  }

  Result<void> merge(const View& from, const View& to, uint32_t per_leaf, const Key* keys, const uint32_t* values,
                     const uint32_t* ranks, size_t count) {
    QRY_TRY(machine_.run("merge leaves", to.shape.leaves,
                         bodies::MergeLeaves<Key>{from, to, per_leaf, keys, values, ranks, count}));
    return machine_.run("write inner nodes", size_t{to.shape.nodes} * IndexNode<Key>::kSlots,
                        bodies::BuildInner<Key>{to});
  }

  // Boxes in parts, whose first and last codes are looked for all at once. What is between is a list of candidates,
  // which groups of threads share; few are not in the box.
  Result<uint64_t> list_cut_boxes(const View& view, const MortonBox* boxes, size_t count, uint32_t depth,
                                  uint64_t* starts_out, uint64_t* keys_out, uint32_t* values_out, uint64_t room) {
    const size_t per_box = detail::box_parts(depth), parts = count * per_box;
    QRY_TRY_ASSIGN(const auto rank_memory, machine_.scratch(parts * 3 * sizeof(uint32_t)));
    uint32_t* const ranks = rank_memory.template as<uint32_t>();
    const bodies::BoxPartEnds ends{view, boxes, depth, ranks, ranks + parts * 2};
    QRY_TRY(machine_.search("find parts of boxes", view, parts * 2, ends, nullptr));
    QRY_TRY_ASSIGN(const auto count_memory, machine_.scratch((parts + 1) * 2 * sizeof(uint64_t)));
    uint64_t* const counts = count_memory.template as<uint64_t>();
    uint64_t* const used = counts + parts + 1;
    QRY_TRY(machine_.put(counts + parts, 0));
    QRY_TRY(machine_.put(used + parts, 0));
    QRY_TRY(machine_.run("count candidates of boxes", parts, bodies::CountCandidates{ranks, counts, used}));
    QRY_TRY(machine_.scan(counts, parts + 1));
    QRY_TRY(machine_.scan(used, parts + 1));
    uint64_t candidates = 0, segments = 0;
    QRY_TRY(machine_.get(counts + parts, &candidates));
    QRY_TRY(machine_.get(used + parts, &segments));
    const size_t pieces = pieces_of(candidates);
    QRY_TRY_ASSIGN(const auto segment_memory, machine_.scratch(segments * sizeof(bodies::BoxSegment) +
                                                               (segments + 1 + pieces + 1) * sizeof(uint64_t)));
    auto* const picked = segment_memory.template as<bodies::BoxSegment>();
    auto* const segment_starts = reinterpret_cast<uint64_t*>(picked + segments);
    uint64_t* const piece_starts = segment_starts + segments + 1;
    QRY_TRY(machine_.put(segment_starts + segments, candidates));
    QRY_TRY(machine_.put(piece_starts + pieces, 0));
    QRY_TRY(
        machine_.run("pick parts of boxes", parts, bodies::PickSegments{ends, counts, used, picked, segment_starts}));
    const bodies::BoxCandidates list{view, picked, segment_starts, size_t(segments)};
    const uint32_t piece = machine_.piece();
    QRY_TRY(machine_.run_groups("count boxes", pieces, bodies::CountInside{list, piece, piece_starts}));
    QRY_TRY_ASSIGN(const uint64_t total, total_of(piece_starts, pieces, room, "boxes"));
    if (total != 0 && (keys_out != nullptr || values_out != nullptr))
      QRY_TRY(machine_.run_groups("list boxes", pieces,
                                  bodies::ListInside{list, piece, piece_starts, keys_out, values_out}));
    if (starts_out != nullptr)
      QRY_TRY(
          machine_.run_groups("list boxes", count + 1,
                              bodies::InsideStarts{list, counts, uint32_t(per_box), piece, piece_starts, starts_out}));
    QRY_TRY(machine_.finish("list boxes of an index"));
    return total;
  }
  size_t pieces_of(uint64_t keys) const { return size_t((keys + machine_.piece() - 1) / machine_.piece()); }

  // The ranks of both ends of each range, and behind them the leaves of their first keys.
  auto range_ends(const View& view, const KeyRange<Key>* ranges, size_t count)
      -> decltype(std::declval<Machine&>().scratch(0)) {
    QRY_TRY_ASSIGN(const uint64_t fault, first_fault([&](uint64_t* to) {
                     return machine_.run("check ranges", count, bodies::CheckRanges<Key>{ranges, to});
                   }));
    if (fault != kNoFault)
      return fail(ErrorCode::invalid_argument, "ordered index: range " + std::to_string(fault) + " of " +
                                                   std::to_string(count) + " ends before it begins; nothing is listed");
    auto memory = machine_.scratch(count * 3 * sizeof(uint32_t));
    QRY_TRY(memory);
    QRY_TRY(machine_.search("find ranges", view, count * 2,
                            bodies::RangeEnds<Key>{view, ranges, memory->template as<uint32_t>(),
                                                   memory->template as<uint32_t>() + count * 2},
                            nullptr));
    return memory;
  }

  static size_t rank_runs(const View& view) {  // of bodies::UpdateBefore
    return size_t{view.shape.leaves} / bodies::UpdateBefore<Key>::kLeaves + 1;
  }

  // Turns counts into starts, with the total behind them.
  Result<uint64_t> total_of(uint64_t* starts, size_t count, uint64_t room, const char* what) {
    QRY_TRY(machine_.scan(starts, count + 1));
    uint64_t total = 0;
    QRY_TRY(machine_.get(starts + count, &total));
    if (total > room)
      return fail(ErrorCode::full, std::string("ordered index: the ") + what + " have " + std::to_string(total) +
                                       " keys, and there is room for " + std::to_string(room) + "; nothing is listed");
    return total;
  }

  Machine machine_;
};

}  // namespace quarry::hashgrid
