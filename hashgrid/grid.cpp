// SPDX-License-Identifier: Apache-2.0
// grid.cpp - growth when keys are refused or the load is too high, phases of reading and writing, and argument checks.
#include "hashgrid/grid.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <utility>

namespace quarry::hashgrid {
namespace {

// A table whose refused keys crowd into one page is not grown below this load: such keys would take a page for every
// few of them.
constexpr double kLeastLoadToGrow = 1.0 / 64;
constexpr uint32_t kPagesAlwaysAllowed = 64;
constexpr uint64_t kMostPages = uint64_t{1} << 21;  // more slots than there are keys

// Memory that an executor reads and writes, for the duration of a call.
class Scratch {
 public:
  static Result<Scratch> allocate(Executor& executor, size_t size_bytes, const char* label) {
    QRY_TRY_ASSIGN(auto block, executor.memory().allocate(std::max<size_t>(size_bytes, 1), label));
    return Scratch(&executor.memory(), block);
  }
  Scratch(Scratch&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)), block_(other.block_) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (memory_ != nullptr) memory_->release(block_);
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(block_.data);
  }

 private:
  Scratch(MemorySource* memory, const MemoryBlock& block) : memory_(memory), block_(block) {}
  MemorySource* memory_;
  MemoryBlock block_;
};

}  // namespace

struct Grid::State {
  Executor* executor = nullptr;
  MemorySource* memory = nullptr;
  GridOptions options;
  MemoryBlock block;
  uint32_t page_count = 0;
  uint32_t phase = 0;
  uint64_t size = 0;
  uint64_t erased = 0;  // compact: since the last sweep; an upper bound of the slots reserved for erased keys
  uint64_t version = 0;
  // The table has not been written since it was cleared, not even by a caller's kernel: no view was handed out.
  mutable std::atomic<bool> untouched{true};
  // Reading before writing matters: readers request a view per key, and threads that all write one cache line wait for
  // each other (a walk of 16 threads through a table was 70 times slower without it).
  void handed_out() const {
    if (untouched.load(std::memory_order_relaxed)) untouched.store(false, std::memory_order_relaxed);
  }

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (block.data != nullptr) memory->release(block);
  }

  bool compact() const { return options.layout == Layout::compact; }
  GridView pairs_view(const MemoryBlock& memory_of_it, uint32_t pages) const {
    return {static_cast<uint64_t*>(memory_of_it.data), pages, phase, uint32_t(options.locality)};
  }
  // Calls use(operations, a function from a block and its pages to a view), for the grid's layout.
  template <class Use>
  auto on_layout(const Use& use) const {
    if (compact())
      return use(executor->compact(),
                 [](const MemoryBlock& of, uint32_t pages) { return hashgrid::compact_view(of.data, pages); });
    return use(executor->pairs(), [this](const MemoryBlock& of, uint32_t pages) { return pairs_view(of, pages); });
  }
  // Calls use(operations, view) for the current table.
  template <class Use>
  auto on_table(const Use& use) const {
    return on_layout(
        [&](auto& operations, const auto& view_of) { return use(operations, view_of(block, page_count)); });
  }

  // Everything started before has finished: slots that it freed may be reused.
  void begin_change() {
    phase = phase + 1 == kQryPhaseNever ? 0 : phase + 1;
    ++version;
  }

  double slots_per_page() const { return compact() ? kQryPageBytes / kQrySlotBytes : kQrySlotsPerPage; }
  uint64_t pages_for(uint64_t keys) const {
    const double slots = double(keys) / options.max_load_factor;
    return std::max<uint64_t>(1, uint64_t(std::ceil(slots / slots_per_page())));
  }

  Result<MemoryBlock> make_table(uint64_t pages) {
    if (pages > kMostPages)
      return fail(ErrorCode::full,
                  "hash grid: " + std::to_string(pages) + " pages asked for, more than 32-bit keys can fill");
    auto fresh = memory->allocate(size_t(pages) * kQryPageBytes, "hash grid");
    QRY_TRY(fresh);
    const auto cleared = on_layout(
        [&](auto& operations, const auto& view_of) { return operations.clear(view_of(*fresh, uint32_t(pages))); });
    if (!cleared) {
      memory->release(*fresh);
      return tl::unexpected(cleared.error());
    }
    return fresh;
  }

  // Whether a table of `pages` is justified for this many keys.
  bool may_have(uint64_t pages, uint64_t keys) const {
    return pages <= kPagesAlwaysAllowed || double(keys) >= kLeastLoadToGrow * double(pages) * slots_per_page();
  }

  // Makes a new table of at least `pages`, larger if the keys need it. The old one is released only after every key is
  // in the new one.
  Result<void> grow_to(uint64_t pages) {
    for (;; pages *= 2) {
      QRY_TRY_ASSIGN(auto fresh, make_table(pages));
      const auto refused = on_layout([&](auto& operations, const auto& view_of) {
        return operations.rehash(view_of(block, page_count), view_of(fresh, uint32_t(pages)));
      });
      if (!refused || *refused != 0) memory->release(fresh);
      QRY_TRY(refused);
      if (*refused != 0) {
        if (may_have(pages * 2, size)) continue;
        return fail(ErrorCode::full,
                    "hash grid: the keys crowd into few pages; left at " + std::to_string(page_count) + " pages");
      }
      memory->release(block);
      block = fresh;
      page_count = uint32_t(pages);
      erased = 0;
      return {};
    }
  }

  Result<void> sweep() {
    auto swept = on_table([](auto& operations, const auto& view) { return operations.sweep(view); });
    if (swept) erased = 0;
    return swept;
  }

  // Whether a batch in host memory most likely has known keys only: all of a sample are known. A few new ones among
  // them may exceed the limit of the load factor; the next batch then corrects that. Many are refused, placed by moves
  // and grown for as in any batch.
  bool seem_known(Span<const uint32_t> keys) const {
    constexpr size_t kSample = 1024, kLeastBatch = 16 * kSample;
    if (keys.size() < kLeastBatch || &executor->memory() != &host_memory_source()) return false;
    uint32_t sample[kSample];
    for (size_t i = 0; i < kSample; ++i) sample[i] = keys[keys.size() * i / kSample];
    const auto there = on_table(
        [&](auto& operations, const auto& view) { return operations.find(view, sample, kSample, nullptr, nullptr); });
    return there && there->absent == 0;
  }

  // Before a batch is placed: sweeps if much is reserved for erased keys, grows if the load factor could exceed its
  // limit.
  Result<void> make_room(Span<const uint32_t> keys) {
    // Slots of erased keys may fill a sixteenth of the table beyond its load factor, so that sweeps stay rare even with
    // small batches.
    const double slots = double(page_count) * slots_per_page() * (options.max_load_factor + 1.0 / 16);
    if (compact() && erased != 0 && double(size + erased + keys.size()) > slots) QRY_TRY(sweep());
    if (!options.may_grow || pages_for(size + keys.size()) <= page_count) return {};
    // Only absent keys will take slots. Counting them costs one look-up each, much less than a growth that a batch of
    // known keys does not need.
    uint64_t added = keys.size();
    if (size != 0) {
      if (pages_for(size) <= page_count && seem_known(keys)) return {};
      QRY_TRY_ASSIGN(const auto there, on_table([&](auto& operations, const auto& view) {
                       return operations.find(view, keys.data(), keys.size(), nullptr, nullptr);
                     }));
      added = there.absent;
    }
    const uint64_t wanted = pages_for(size + added);
    if (wanted <= page_count) return {};
    // Growth does not depend on the batch alone: a series of small batches must not rehash each time. Small tables
    // double; large ones save memory.
    auto grown =
        grow_to(std::max(wanted, page_count + uint64_t{page_count} / (page_count <= kPagesAlwaysAllowed ? 1 : 2)));
    // Without memory, or if keys crowd, the batch is tried in the existing table; keys without a place are reported.
    if (!grown && (grown.error().code == ErrorCode::out_of_memory || grown.error().code == ErrorCode::full)) return {};
    return grown;
  }

  // Runs a batch until every key has its place or the table may not grow. operation(outcomes) runs the batch once; its
  // refused keys are placed by BulkOperations::insert_refused, then by growth. exclusive_operation(fresh) does the same
  // for a caller with exclusive use of the table.
  template <class Operation, class ExclusiveOperation>
  Result<BulkReport> place_all(Span<const uint32_t> keys, const uint32_t* values, std::vector<uint64_t>* refused,
                               const char* what, bool assigns, const Operation& operation,
                               const ExclusiveOperation& exclusive_operation) {
    if (refused != nullptr) refused->clear();
    begin_change();
    QRY_TRY(make_room(keys));
    uint64_t inserted = 0;
    std::string why = "growth is turned off";
    const bool fresh = untouched.exchange(false);
    // A call that may grow has exclusive use of the table, by the contract of grid.hpp.
    bool exclusive = fresh || options.may_grow;
    for (;;) {
      auto report = exclusive ? exclusive_operation(fresh) : operation(nullptr);
      QRY_TRY(report);
      if (exclusive && report->full != 0) {
        auto rest = operation(nullptr);
        QRY_TRY(rest);
        rest->inserted += report->inserted;
        (assigns ? rest->assigned : rest->present) -= report->inserted;
        report = rest;
      }
      exclusive = false;
      size += report->inserted;
      uint64_t inserted_late = 0, still_full = report->full;
      std::vector<Outcome> outcomes;
      if (report->full != 0 || (report->reserved != 0 && refused != nullptr)) {
        // Repeated with an outcome for each key: nothing has changed since, so the same keys are refused.
        QRY_TRY_ASSIGN(auto scratch, Scratch::allocate(*executor, keys.size(), "hash grid outcomes"));
        Outcome* each = scratch.template as<Outcome>();
        QRY_TRY(operation(each));
        if (report->full != 0) {
          begin_change();
          QRY_TRY_ASSIGN(auto moved, on_table([&](auto& operations, const auto& view) {
                           return operations.insert_refused(view, keys.data(), values, keys.size(), each);
                         }));
          erased = 0;
          // Duplicates of an inserted key get the table's value. The moves may also have left a place that
          // insert_refused() had given up on.
          QRY_TRY_ASSIGN(auto again, operation(each));
          inserted_late = moved.inserted + again.inserted;
          size += inserted_late;
          still_full = again.full;
        }
        if (refused != nullptr) {
          outcomes.resize(keys.size());
          QRY_TRY(executor->download(outcomes.data(), each, keys.size()));
        }
      }
      // A repeated batch finds the keys of earlier rounds again: only `inserted` adds up.
      BulkReport total = *report;
      total.full = still_full;
      total.inserted += inserted + inserted_late;
      total.present -= std::min(total.present, inserted);
      total.assigned -= std::min(total.assigned, inserted);
      const uint64_t duplicates =
          keys.size() - total.inserted - total.present - total.assigned - total.full - total.reserved;
      (assigns ? total.assigned : total.present) += duplicates;  // of keys that were inserted late
      inserted = total.inserted;
      if (total.full == 0 && total.reserved == 0) return total;

      bool again = false;
      if (total.full != 0 && options.may_grow) {
        const uint64_t pages = uint64_t{page_count} * 2;
        if (!may_have(pages, size + total.full)) {
          why = "the keys crowd into few pages, and a table twice as large would be nearly empty";
        } else if (auto ok = grow_to(pages); ok) {
          again = true;
        } else if (device_failed(ok.error())) {
          return tl::unexpected(ok.error());
        } else {
          why = ok.error().message;
        }
      }
      if (again) {
        begin_change();
        continue;
      }
      if (refused != nullptr)
        for (uint64_t i = 0; i < outcomes.size(); ++i)
          if (outcomes[i] == Outcome::full || outcomes[i] == Outcome::reserved) refused->push_back(i);
      return refusal(total, keys.size(), what, why);
    }
  }

  tl::unexpected<Error> refusal(const BulkReport& total, uint64_t count, const char* what,
                                const std::string& why) const {
    const std::string head = std::string("hash grid ") + what + ": ", of = " of " + std::to_string(count);
    if (total.full != 0)
      return fail(ErrorCode::full, head + std::to_string(total.full) + of + " keys found no place in " +
                                       std::to_string(page_count) + " pages (" + why + "); all others are in");
    return fail(ErrorCode::invalid_argument, head + std::to_string(total.reserved) + of +
                                                 " keys or values are the reserved 0xFFFFFFFF; all others are in");
  }
};

Grid::Grid(std::unique_ptr<State> state) : state_(std::move(state)) {}
Grid::Grid(Grid&&) noexcept = default;
Grid& Grid::operator=(Grid&&) noexcept = default;
Grid::~Grid() = default;

Result<Grid> Grid::create(Executor& executor, const GridOptions& options, MemorySource* memory) {
  if (!(options.max_load_factor > 0.0 && options.max_load_factor <= 1.0))
    return fail(ErrorCode::invalid_argument,
                "hash grid: max_load_factor must be in (0, 1], not " + std::to_string(options.max_load_factor));
  if (options.layout == Layout::compact && options.locality != Locality::plain)
    return fail(ErrorCode::invalid_argument,
                "hash grid: the compact layout has plain locality only; "
                "take the pairs layout for rows");
  auto state = std::make_unique<State>();
  state->executor = &executor;
  state->memory = memory != nullptr ? memory : &executor.memory();
  state->options = options;
  const uint64_t pages = state->pages_for(options.capacity);
  QRY_TRY_ASSIGN(auto block, state->make_table(pages));
  state->block = block;
  state->page_count = uint32_t(pages);
  return Grid(std::move(state));
}

Layout Grid::layout() const { return state_->options.layout; }
GridView Grid::view() const {
  if (state_->compact()) return {};
  state_->handed_out();
  return state_->pairs_view(state_->block, state_->page_count);
}
CompactView Grid::compact_view() const {
  if (!state_->compact()) return {};
  state_->handed_out();
  return hashgrid::compact_view(state_->block.data, state_->page_count);
}
uint32_t Grid::page_count() const { return state_->page_count; }
const MemoryBlock& Grid::block() const {
  state_->handed_out();
  return state_->block;
}
uint64_t Grid::size() const { return state_->size; }
uint64_t Grid::version() const { return state_->version; }

namespace {
Result<void> same_length(const char* what, size_t keys, size_t values) {
  if (keys == values) return {};
  return fail(ErrorCode::invalid_argument, std::string("hash grid ") + what + ": " + std::to_string(keys) +
                                               " keys but " + std::to_string(values) + " values");
}
}  // namespace

Result<BulkReport> Grid::insert(Span<const uint32_t> keys, Span<const uint32_t> values,
                                std::vector<uint64_t>* refused) {
  QRY_TRY(same_length("insert", keys.size(), values.size()));
  return state_->place_all(
      keys, values.data(), refused, "insert", false,
      [&](Outcome* outcomes) {
        return state_->on_table([&](auto& operations, const auto& view) {
          return operations.insert(view, keys.data(), values.data(), keys.size(), outcomes);
        });
      },
      [&](bool fresh) {
        return state_->on_table([&](auto& operations, const auto& view) {
          return operations.insert_exclusive(view, keys.data(), values.data(), keys.size(), fresh);
        });
      });
}

Result<BulkReport> Grid::assign(Span<const uint32_t> keys, Span<const uint32_t> values,
                                std::vector<uint64_t>* refused) {
  QRY_TRY(same_length("assign", keys.size(), values.size()));
  return state_->place_all(
      keys, values.data(), refused, "assign", true,
      [&](Outcome* outcomes) {
        return state_->on_table([&](auto& operations, const auto& view) {
          return operations.assign(view, keys.data(), values.data(), keys.size(), outcomes);
        });
      },
      [&](bool) {
        return state_->on_table([&](auto& operations, const auto& view) {
          return operations.assign_exclusive(view, keys.data(), values.data(), keys.size());
        });
      });
}

Result<BulkReport> Grid::find_or_insert(Span<const uint32_t> keys, Span<uint32_t> values,
                                        std::vector<uint64_t>* refused) {
  QRY_TRY(same_length("find_or_insert", keys.size(), values.size()));
  return state_->place_all(
      keys, values.data(), refused, "find_or_insert", false,
      [&](Outcome* outcomes) {
        return state_->on_table([&](auto& operations, const auto& view) {
          return operations.find_or_insert(view, keys.data(), values.data(), keys.size(), outcomes);
        });
      },
      [&](bool) {
        return state_->on_table([&](auto& operations, const auto& view) {
          return operations.find_or_insert_exclusive(view, keys.data(), values.data(), keys.size());
        });
      });
}

Result<BulkReport> Grid::find(Span<const uint32_t> keys, Span<uint32_t> values_out) const {
  QRY_TRY(same_length("find", keys.size(), values_out.size()));
  return state_->on_table([&](auto& operations, const auto& view) {
    return operations.find(view, keys.data(), keys.size(), values_out.data(), nullptr);
  });
}

Result<BulkReport> Grid::erase(Span<const uint32_t> keys) {
  state_->begin_change();
  auto report = state_->on_table(
      [&](auto& operations, const auto& view) { return operations.erase_exclusive(view, keys.data(), keys.size()); });
  if (report) {
    state_->size -= std::min(state_->size, report->erased);
    state_->erased += report->erased;
  }
  return report;
}

Result<void> Grid::clear() {
  state_->begin_change();
  auto ok = state_->on_table([](auto& operations, const auto& view) { return operations.clear(view); });
  if (ok) {
    state_->size = state_->erased = 0;
    state_->untouched = true;
  }
  return ok;
}

Result<void> Grid::reserve(uint64_t keys) {
  const uint64_t pages = state_->pages_for(keys);
  if (pages <= state_->page_count) return {};
  state_->begin_change();
  return state_->grow_to(pages);
}

Result<void> Grid::sweep() {
  state_->begin_change();
  return state_->sweep();
}

Result<Stats> Grid::stats() const {
  auto stats = state_->on_table([](auto& operations, const auto& view) { return operations.stats(view); });
  if (stats) stats->version = state_->version;
  return stats;
}

Result<Grid::Pairs> Grid::enumerate(bool ordered) const {
  Executor& executor = *state_->executor;
  Pairs pairs;
  // The caller's kernels may have added keys that size() does not count: then the second round has the right size. Host
  // threads can write to any memory.
  const bool straight = &executor.memory() == &host_memory_source();
  for (uint64_t capacity = state_->size;;) {
    const auto list = [&](uint32_t* keys, uint32_t* values) {
      return state_->on_table(
          [&](auto& operations, const auto& view) { return operations.enumerate(view, keys, values, capacity); });
    };
    if (straight) {
      pairs.keys.resize(capacity);
      pairs.values.resize(capacity);
      QRY_TRY_ASSIGN(const auto count, list(pairs.keys.data(), pairs.values.data()));
      const bool all = count <= capacity;
      capacity = count;
      if (!all) continue;
      pairs.keys.resize(capacity);
      pairs.values.resize(capacity);
      break;
    }
    QRY_TRY_ASSIGN(auto scratch,
                   Scratch::allocate(executor, size_t(capacity) * 2 * sizeof(uint32_t), "hash grid enumeration"));
    uint32_t* keys = scratch.as<uint32_t>();
    QRY_TRY_ASSIGN(const auto count, list(keys, keys + capacity));
    if (count > capacity) {
      capacity = count;
      continue;
    }
    pairs.keys.resize(count);
    pairs.values.resize(count);
    QRY_TRY(executor.download(pairs.keys.data(), keys, count * sizeof(uint32_t)));
    QRY_TRY(executor.download(pairs.values.data(), keys + capacity, count * sizeof(uint32_t)));
    break;
  }
  if (ordered) {
    std::vector<uint64_t> both(pairs.keys.size());
    for (size_t i = 0; i < both.size(); ++i) both[i] = uint64_t{pairs.keys[i]} << 32 | pairs.values[i];
    std::sort(both.begin(), both.end());
    for (size_t i = 0; i < both.size(); ++i) {
      pairs.keys[i] = uint32_t(both[i] >> 32);
      pairs.values[i] = uint32_t(both[i]);
    }
  }
  return pairs;
}

}  // namespace quarry::hashgrid
