// SPDX-License-Identifier: Apache-2.0
// passes.hpp - the bulk operations on multi grids, and joins, as passes of bodies.hpp, one after the other: one text
// for every machine that runs them.
//
// Beyond what index/passes.hpp needs, a Machine has:
//   partition(stored, values, count, stored_out, values_out, page_bits)
//                                       sorts pairs by page at least; one that splits nothing: by the whole stored key
//   select(what, count, predicate, out, &number)    the i < count with predicate(i), in order
//   expand(what, starts, count, total, body)        body.put(result, body.get(owner, i)) for every result, or
//                                       body.put_all(owner, i, count, result) for several
//   divides_probes(size_bytes)          whether keys looked up in a table of this size are divided by page before
// and one that kSplits, for which build_large() is the road of pages with too many equal keys:
//   split(keys, values, count, page_bits, fault)             a batch by page, mixed and checked on the way
//   build_pages(view, lists, fault, large)                   nothing if there is a fault; else the pages of at most
//                                       kMostPagePairs; `large`: pairs of the others
//   pairs(lists)                        as bodies::StoredPair
//   sides(lefts, rights, outer), count_joined(sides, ...), write_joined(sides, ...)       a join, page by page
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "hashgrid/multi/bodies.hpp"
#include "hashgrid/multi/operations.hpp"

namespace quarry::hashgrid {

template <class Machine>
class MultiPasses final : public MultiOperations {
 public:
  explicit MultiPasses(Machine machine) : machine_(std::move(machine)) {}

  Result<MultiView> build(void* memory, const MultiView* from, uint64_t from_pairs, const uint32_t* keys,
                          const uint32_t* values, size_t count) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    if (from == nullptr) {
      QRY_TRY_ASSIGN(const MultiView view, filled(memory, keys, values, count, "multi grid", "pair"));
      QRY_TRY(machine_.finish("build a multi grid"));
      return view;
    }
    QRY_TRY(check_keys(keys, count, "multi grid", "pair"));
    const size_t all = size_t(from_pairs) + count;
    QRY_TRY_ASSIGN(auto pairs_memory, machine_.scratch(all * 2 * sizeof(uint32_t)));
    uint32_t* const all_keys = pairs_memory.template as<uint32_t>();
    uint32_t* const all_values = all_keys + all;
    QRY_TRY(list_to(*from, all_keys, all_values, from_pairs));
    QRY_TRY(machine_.run("append a batch", count,
                         bodies::CopyPairs{keys, values, all_keys + from_pairs, all_values + from_pairs}));
    QRY_TRY_ASSIGN(const MultiView view, filled(memory, all_keys, all_values, all, "multi grid", "pair"));
    QRY_TRY(machine_.finish("build a multi grid"));
    return view;
  }

  Result<BulkReport> count(const MultiView& view, const uint32_t* keys, size_t count, uint32_t* counts_out) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    uint64_t hits = 0;
    QRY_TRY(machine_.sum("count values", count, bodies::CountValues{view, keys, counts_out}, &hits));
    BulkReport report;
    report.present = hits;
    report.absent = count - hits;
    return report;
  }

  Result<uint64_t> retrieve(const MultiView& view, const uint32_t* keys, size_t count, uint64_t* starts_out,
                            uint32_t* values_out, uint64_t room) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    QRY_TRY_ASSIGN(const Runs runs, runs_for(count));
    QRY_TRY(machine_.run("look up runs", count + 1,
                         bodies::LocateRuns<false>{view, keys, count, false, runs.of, runs.starts}));
    QRY_TRY_ASSIGN(const uint64_t total, total_of(runs.starts, count, room, "multi grid", "keys have", "values"));
    if (values_out != nullptr)
      QRY_TRY(
          machine_.expand("retrieve values", runs.starts, count, total, bodies::PutValues{view, runs.of, values_out}));
    if (starts_out != nullptr)
      QRY_TRY(machine_.run("retrieve starts", count + 1, bodies::CopyStarts{runs.starts, starts_out}));
    QRY_TRY(machine_.finish("retrieve from a multi grid"));
    return total;
  }

  Result<uint64_t> erase(const MultiView& view, const uint32_t* keys, size_t count) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    uint64_t erased = 0;
    QRY_TRY(machine_.sum("erase runs", count, bodies::EraseRuns{view, keys}, &erased));
    return erased;
  }

  Result<uint64_t> list(const MultiView& view, uint32_t* keys_out, uint32_t* values_out, uint64_t room) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    QRY_TRY_ASSIGN(const uint64_t total, list_to(view, keys_out, values_out, room));
    QRY_TRY(machine_.finish("list a multi grid"));
    return total;
  }

  Result<uint64_t> join(JoinKind kind, const uint32_t* left, size_t left_count, const uint32_t* right,
                        size_t right_count, uint32_t* left_rows_out, uint32_t* right_rows_out, uint64_t room) override {
    [[maybe_unused]] const auto scope = machine_.begin();
    const bool pairs = kind == JoinKind::inner || kind == JoinKind::left;
    const MultiShape shape = MultiShape::of(right_count);
    // Rows divided by page look up in one page after the other. Semi and anti joins keep their order.
    const bool divides = pairs && machine_.divides_probes(shape.size_bytes());
    if constexpr (Machine::kSplits) {
      if (divides) {
        QRY_TRY_ASSIGN(const std::optional<uint64_t> done,
                       join_by_page(kind == JoinKind::left, left, left_count, right, right_count, left_rows_out,
                                    right_rows_out, room));
        if (done) return *done;
      }
    }
    if (!divides) QRY_TRY(check_keys(left, left_count, "join", "left row"));
    QRY_TRY_ASSIGN(const auto table, machine_.scratch(shape.size_bytes()));
    QRY_TRY_ASSIGN(const MultiView view,
                   filled(table.template as<void>(), right, nullptr, right_count, "join", "right row"));
    Batch rows;
    if (divides) {
      QRY_TRY_ASSIGN(rows, divided(left, nullptr, left_count, "join", "left row", shape.page_bits));
    }
    QRY_TRY_ASSIGN(const Runs runs, runs_for(left_count));
    const bool outer = kind == JoinKind::left;
    uint64_t hits = 0;
    if (divides) {
      QRY_TRY(machine_.run("look up rows", left_count + 1,
                           bodies::LocateRuns<true>{view, rows.stored, left_count, outer, runs.of, runs.starts}));
    } else {
      QRY_TRY(machine_.sum("look up rows", left_count + 1,
                           bodies::LocateRuns<false>{view, left, left_count, outer, runs.of, runs.starts}, &hits));
    }
    if (!pairs) {
      const bool semi = kind == JoinKind::semi;
      uint64_t number = semi ? hits : left_count - hits;
      QRY_TRY(check_room(number, room, "join", "tables have", "rows"));
      if (left_rows_out != nullptr)
        QRY_TRY(machine_.select("list rows", left_count, bodies::IsPresent{runs.of, semi}, left_rows_out, &number));
      QRY_TRY(machine_.finish("join"));
      return number;
    }
    QRY_TRY_ASSIGN(const uint64_t total,
                   total_of(runs.starts, left_count, room, "join", "tables have", "pairs of rows"));
    if (left_rows_out != nullptr || right_rows_out != nullptr)
      QRY_TRY(machine_.expand("list pairs of rows", runs.starts, left_count, total,
                              bodies::PutJoined{view, runs.of, rows.values, left_rows_out, right_rows_out}));
    QRY_TRY(machine_.finish("join"));
    return total;
  }

 private:
  using Memory = typename decltype(std::declval<Machine&>().scratch(0))::value_type;
  // Pairs divided by page.
  struct Batch {
    Memory memory;
    const uint32_t* stored = nullptr;
    const uint32_t* values = nullptr;
  };
  struct Runs {
    Memory run_memory, start_memory;
    MultiRun* of = nullptr;
    uint64_t* starts = nullptr;  // one more
  };

  Result<Runs> runs_for(size_t count) {
    Runs runs;
    QRY_TRY_ASSIGN(runs.run_memory, machine_.scratch(count * sizeof(MultiRun)));
    QRY_TRY_ASSIGN(runs.start_memory, machine_.scratch((count + 1) * sizeof(uint64_t)));
    runs.of = runs.run_memory.template as<MultiRun>();
    runs.starts = runs.start_memory.template as<uint64_t>();
    return runs;
  }

  static Result<void> check_room(uint64_t total, uint64_t room, const char* what, const char* have, const char* name) {
    if (total <= room) return {};
    return fail(ErrorCode::full, std::string(what) + ": the " + have + " " + std::to_string(total) + " " + name +
                                     ", and there is room for " + std::to_string(room) + "; nothing is written");
  }
  // A join that needs no table in memory. Nothing if a page of it is too large, which is of many equal keys.
  Result<std::optional<uint64_t>> join_by_page(bool outer, const uint32_t* left, size_t left_count,
                                               const uint32_t* right, size_t right_count, uint32_t* left_rows_out,
                                               uint32_t* right_rows_out, uint64_t room) {
    const MultiShape shape = MultiShape::of(std::max(left_count, right_count));
    struct Joined {
      uint64_t results = 0, right_fault = kNoFault, left_fault = kNoFault, unfit = 0;
    } found;
    // Of each page its number of results, then where they go; and what else is found.
    QRY_TRY_ASSIGN(const auto memory, machine_.scratch(shape.pages() * sizeof(uint64_t) + sizeof(Joined)));
    uint64_t* const numbers = memory.template as<uint64_t>();
    Joined* const to = reinterpret_cast<Joined*>(numbers + shape.pages());
    QRY_TRY(machine_.put(to, found));
    QRY_TRY_ASSIGN(const auto rights, machine_.split(right, nullptr, right_count, shape.page_bits, &to->right_fault));
    QRY_TRY_ASSIGN(const auto lefts, machine_.split(left, nullptr, left_count, shape.page_bits, &to->left_fault));
    const auto sides = machine_.sides(lefts, rights, outer);
    QRY_TRY(machine_.count_joined(sides, shape.pages(), numbers, &to->unfit));
    QRY_TRY(machine_.scan(numbers, size_t{shape.pages()} + 1));
    QRY_TRY(machine_.get(to, &found));
    QRY_TRY(check_fault(found.right_fault, right_count, "join", "right row"));
    QRY_TRY(check_fault(found.left_fault, left_count, "join", "left row"));
    if (found.unfit != 0) return std::optional<uint64_t>();
    QRY_TRY(check_room(found.results, room, "join", "tables have", "pairs of rows"));
    if (left_rows_out != nullptr || right_rows_out != nullptr)
      QRY_TRY(machine_.write_joined(sides, shape.pages(), numbers, left_rows_out, right_rows_out));
    QRY_TRY(machine_.finish("join"));
    return std::optional<uint64_t>(found.results);
  }

  // Turns counts into starts, with the total behind them.
  Result<uint64_t> total_of(uint64_t* starts, size_t count, uint64_t room, const char* what, const char* have,
                            const char* name) {
    QRY_TRY(machine_.scan(starts, count + 1));
    uint64_t total = 0;
    QRY_TRY(machine_.get(starts + count, &total));
    QRY_TRY(check_room(total, room, what, have, name));
    return total;
  }

  // body(to) makes a pass that writes the number of the first reserved key.
  template <class Body>
  Result<void> check_by(const Body& body, size_t count, const char* what, const char* item) {
    QRY_TRY_ASSIGN(const auto memory, machine_.scratch(sizeof(uint64_t)));
    uint64_t* const fault = memory.template as<uint64_t>();
    QRY_TRY(machine_.put(fault, kNoFault));
    QRY_TRY(machine_.run("check keys", count, body(fault)));
    uint64_t first = kNoFault;
    QRY_TRY(machine_.get(fault, &first));
    return check_fault(first, count, what, item);
  }
  static constexpr uint64_t kNoFault = ~uint64_t{0};
  static Result<void> check_fault(uint64_t first, size_t count, const char* what, const char* item) {
    if (first == kNoFault) return {};
    return fail(ErrorCode::invalid_argument, std::string(what) + ": the key of " + item + " " + std::to_string(first) +
                                                 " of " + std::to_string(count) +
                                                 " is the reserved 0xFFFFFFFF; nothing is written");
  }
  Result<void> check_keys(const uint32_t* keys, size_t count, const char* what, const char* item) {
    return check_by(
        [&](uint64_t* fault) {
          return bodies::MixBatch{keys, nullptr, nullptr, fault};
        },
        count, what, item);
  }

  // A batch divided by the page of its keys; values null: the numbers of its rows.
  Result<Batch> divided(const uint32_t* keys, const uint32_t* values, size_t count, const char* what, const char* item,
                        uint32_t page_bits) {
    const bool rows = values == nullptr;
    QRY_TRY_ASSIGN(const auto stored_memory, machine_.scratch(count * sizeof(uint32_t) * (rows ? 2 : 1)));
    uint32_t* const stored = stored_memory.template as<uint32_t>();
    uint32_t* const row_numbers = rows ? stored + count : nullptr;
    if (rows) values = row_numbers;
    QRY_TRY(check_by(
        [&](uint64_t* fault) {
          return bodies::MixBatch{keys, stored, row_numbers, fault};
        },
        count, what, item));
    Batch batch;
    QRY_TRY_ASSIGN(batch.memory, machine_.scratch(count * 2 * sizeof(uint32_t)));
    uint32_t* const out = batch.memory.template as<uint32_t>();
    QRY_TRY(machine_.partition(stored, values, count, out, out + count, page_bits));
    batch.stored = out;
    batch.values = out + count;
    return batch;
  }

  // Builds a grid of a batch; values null: the numbers of its rows.
  Result<MultiView> filled(void* memory, const uint32_t* keys, const uint32_t* values, size_t count, const char* what,
                           const char* item) {
    MultiView view;
    view.shape = MultiShape::of(count);
    const auto* const bytes = static_cast<const std::byte*>(memory);
    view.pages = reinterpret_cast<const MultiPage*>(bytes);
    view.buckets = reinterpret_cast<const MultiBucket*>(bytes + view.shape.buckets_at());
    view.values = reinterpret_cast<const uint32_t*>(bytes + view.shape.values_at());
    view.large = reinterpret_cast<const uint32_t*>(bytes + view.shape.large_at());
    if constexpr (Machine::kSplits) {
      struct Divided {
        uint64_t fault = kNoFault, large = 0;
      } found;
      QRY_TRY_ASSIGN(const auto found_memory, machine_.scratch(sizeof(Divided)));
      Divided* const to = found_memory.template as<Divided>();
      QRY_TRY(machine_.put(to, found));
      QRY_TRY_ASSIGN(const auto lists, machine_.split(keys, values, count, view.shape.page_bits, &to->fault));
      QRY_TRY(machine_.build_pages(view, lists, &to->fault, &to->large));
      QRY_TRY(machine_.get(to, &found));
      QRY_TRY(check_fault(found.fault, count, what, item));
      if (found.large != 0) QRY_TRY(build_large(view, machine_.pairs(lists), count));
    } else {
      QRY_TRY_ASSIGN(const Batch batch, divided(keys, values, count, what, item, view.shape.page_bits));
      QRY_TRY(machine_.run("find pages", size_t{view.shape.pages()} + 1, bodies::PageStarts{view, batch.stored}));
      QRY_TRY(machine_.run("clear pages", view.shape.pages(), bodies::ClearEmptyPages{view}));
      if (count != 0) QRY_TRY(build_sorted(view, batch.stored, batch.values, count));
    }
    return view;
  }

  // The pages that the machine has left out for their size, of all pairs.
  Result<void> build_large(const MultiView& view, const bodies::StoredPair* pairs, size_t count) {
    QRY_TRY_ASSIGN(const auto picked_memory, machine_.scratch(count * sizeof(uint32_t)));
    uint32_t* const picked = picked_memory.template as<uint32_t>();
    uint64_t number = 0;
    QRY_TRY(machine_.select("pick large pages", count, bodies::InLargePage{view, pairs, Machine::kMostPagePairs},
                            picked, &number));
    QRY_TRY_ASSIGN(const auto pair_memory, machine_.scratch(size_t(number) * 4 * sizeof(uint32_t)));
    uint32_t* const stored = pair_memory.template as<uint32_t>();
    uint32_t *const values = stored + number, *const sorted = values + number, *const sorted_values = sorted + number;
    QRY_TRY(machine_.run("pick large pages", size_t(number), bodies::PickPairs{picked, pairs, stored, values}));
    QRY_TRY(machine_.sort(stored, values, size_t(number), sorted, sorted_values));
    return build_sorted(view, sorted, sorted_values, size_t(number));
  }

  Result<void> build_sorted(const MultiView& view, const uint32_t* stored, const uint32_t* values, size_t count) {
    QRY_TRY_ASSIGN(const auto from_memory, machine_.scratch(size_t{view.shape.pages()} * sizeof(uint32_t)));
    QRY_TRY_ASSIGN(const auto run_memory, machine_.scratch(count * sizeof(uint32_t)));
    const bodies::SortedPairs pairs{view, stored, values, count, from_memory.template as<uint32_t>()};
    uint32_t* const runs = run_memory.template as<uint32_t>();
    uint64_t run_count = 0;
    QRY_TRY(machine_.select("find runs", count, bodies::BeginsRun{stored}, runs, &run_count));
    QRY_TRY(machine_.run("count runs", size_t(run_count), bodies::CountRunsOfPages{pairs, runs, size_t(run_count)}));
    QRY_TRY(machine_.run("clear buckets", count, bodies::ClearBuckets{pairs}));
    QRY_TRY(machine_.run("put values", count, bodies::PutRunValues{pairs}));
    return machine_.run("claim slots", size_t(run_count), bodies::ClaimSlots{pairs, runs, size_t(run_count)});
  }

  Result<uint64_t> list_to(const MultiView& view, uint32_t* keys_out, uint32_t* values_out, uint64_t room) {
    const size_t slots = size_t(view.shape.buckets()) * kMultiSlots;
    QRY_TRY_ASSIGN(const Runs runs, runs_for(slots));
    QRY_TRY(machine_.run("read slots", slots + 1, bodies::SlotRuns{view, slots, runs.of, runs.starts}));
    QRY_TRY_ASSIGN(const uint64_t total, total_of(runs.starts, slots, room, "multi grid", "keys have", "values"));
    if (keys_out != nullptr || values_out != nullptr)
      QRY_TRY(machine_.expand("list pairs", runs.starts, slots, total,
                              bodies::PutPairs{view, runs.of, keys_out, values_out}));
    return total;
  }

  Machine machine_;
};

}  // namespace quarry::hashgrid
