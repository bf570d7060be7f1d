// SPDX-License-Identifier: Apache-2.0
// operations.cpp - the bulk operations by host threads. Keys are processed in small groups: their home buckets are
// prefetched and compared together (bucket_kernels.hpp). Keys that the home bucket does not settle go on one by one, by
// view_impl.hpp. Batches of a caller with exclusive use are split by page (pages.hpp). Whole-table passes go page by
// page.
#include "hashgrid/pairs/host/operations.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/parallel.hpp"
#include "hashgrid/pairs/arguments.hpp"
#include "hashgrid/pairs/cuckoo.hpp"
#include "hashgrid/pairs/host/bucket_kernels.hpp"
#include "hashgrid/pairs/host/find.hpp"
#include "hashgrid/pairs/host/pages.hpp"
#include "hashgrid/pairs/host/partitioned.hpp"

namespace quarry::hashgrid {
namespace {

using detail::kKeysPerGroup;
using detail::SharedWords;

constexpr size_t kKeysPerTask = 4096;  // that a thread takes at a time

using detail::check_view;

class HostPairs final : public BulkOperations<GridView> {
 public:
  explicit HostPairs(uint32_t threads) : threads_(threads) {}

  Result<void> clear(const GridView& view) override {
    QRY_TRY(check_view(view));
    for_pages(view.page_count, [&](uint32_t page) { detail::clear_page(page_words(view, page)); });
    return {};
  }

  Result<BulkReport> insert(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                            Outcome* outcomes) override {
    return put_all<detail::IfPresent::keep>(view, keys, values, count, outcomes, [](size_t, uint32_t) {});
  }
  Result<BulkReport> insert_exclusive(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                      bool) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (const auto report = detail::insert_by_windows(view, keys, values, count, threads_)) return *report;
    return insert(view, keys, values, count, nullptr);
  }
  Result<BulkReport> assign_exclusive(const GridView& view, const uint32_t* keys, const uint32_t* values,
                                      size_t count) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (!may_own(count)) return assign(view, keys, values, count, nullptr);
    // `values` is only read: Present::assign.
    return put_partitioned(view, keys, const_cast<uint32_t*>(values), count, detail::Present::assign);
  }
  Result<BulkReport> find_or_insert_exclusive(const GridView& view, const uint32_t* keys, uint32_t* values,
                                              size_t count) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (!may_own(count)) return find_or_insert(view, keys, values, count, nullptr);
    return put_partitioned(view, keys, values, count, detail::Present::tell);
  }
  Result<BulkReport> erase_exclusive(const GridView& view, const uint32_t* keys, size_t count) override {
    QRY_TRY(detail::check_batch(view, keys, keys, count));
    if (!may_own(count)) return erase(view, keys, count, nullptr, nullptr);
    return detail::erase_partitioned(view, keys, count, threads_);
  }
  Result<BulkReport> assign(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                            Outcome* outcomes) override {
    return put_all<detail::IfPresent::replace>(view, keys, values, count, outcomes, [](size_t, uint32_t) {});
  }
  Result<BulkReport> find_or_insert(const GridView& view, const uint32_t* keys, uint32_t* values, size_t count,
                                    Outcome* outcomes) override {
    return put_all<detail::IfPresent::keep>(view, keys, values, count, outcomes,
                                            [values](size_t i, uint32_t held) { values[i] = held; });
  }
  Result<BulkReport> find(const GridView& view, const uint32_t* keys, size_t count, uint32_t* values_out,
                          uint8_t* depths_out) override {
    return for_pieces(view, keys, keys, count, [&](size_t begin, size_t end, BulkReport& report) {
      size_t next = begin, first = begin;
      detail::for_blocks<false>(
          view,
          [&](detail::Block& block) {
            block.count = std::min(detail::kKeysPerBlock, end - next);
            block.some_refused = detail::bucket_kernels().store(keys + next, block.count, view.locality, block.stored);
            next += block.count;
          },
          [&](const detail::Block& block) {
            uint32_t absent = 0;
            for (size_t i = 0; i < block.count; ++i) absent += block.values[i] == kQryReservedValue;
            report.absent += absent;
            if (block.some_refused)
              report.reserved += uint64_t(std::count(block.stored, block.stored + block.count, kQryReservedKey));
            if (values_out != nullptr) std::memcpy(values_out + first, block.values, block.count * sizeof(uint32_t));
            if (depths_out != nullptr) std::memcpy(depths_out + first, block.depths, block.count);
            first += block.count;
          });
      report.present = end - begin - report.absent;
      report.absent -= report.reserved;
    });
  }
  Result<BulkReport> erase(const GridView& view, const uint32_t* keys, size_t count, uint32_t* old_values,
                           Outcome* outcomes) override {
    return for_each_group(view, keys, keys, count, [&](const Group& group, BulkReport& report) {
      const auto answer = [&](size_t j, Outcome outcome, uint32_t old) {
        if (old_values != nullptr) old_values[group.first + j] = old;
        if (outcomes != nullptr) outcomes[group.first + j] = outcome;
        add(report, outcome);
      };
      uint32_t rest[kKeysPerGroup];
      size_t left = 0;
      for (size_t j = 0; j < group.count; ++j) {
        const uint32_t seen = group.seen[j], key = group.stored[j];
        uint64_t word = detail::pair_word(key, group.values[j]);
        if (key == kQryReservedKey) {
          answer(j, Outcome::reserved, kQryReservedValue);
        } else if ((seen & detail::kFoundKey) != 0 &&
                   SharedWords::exchange(group.bucket(j) + (seen & 3u), word, detail::freed_word(view.phase), false)) {
          answer(j, Outcome::erased, detail::high(word));
        } else if ((seen & (detail::kFoundNeverUsed | detail::kFoundKey)) == detail::kFoundNeverUsed) {
          answer(j, Outcome::absent, kQryReservedValue);
        } else {
          rest[left++] = uint32_t(j);
        }
      }
      group.prefetch_beyond(rest, left);
      for (size_t r = 0; r < left; ++r) {
        const size_t j = rest[r];
        const QryProbeSequence probes = qry_probe_sequence(group.stored[j], view.page_count);
        uint32_t old = kQryReservedValue;
        const Outcome outcome = detail::take<SharedWords>(view, probes, group.stored[j], &old);
        answer(j, outcome, old);
      }
    });
  }

  Result<BulkReport> insert_refused(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                    Outcome* outcomes) override {
    QRY_TRY(check_view(view));
    struct Waiting {
      uint32_t page;
      uint64_t position;
    };
    std::vector<Waiting> waiting;
    for (size_t i = 0; i < count; ++i)
      if (outcomes[i] == Outcome::full)
        waiting.push_back({qry_page(qry_stored_key(keys[i], view.locality), view.page_count), i});
    std::sort(waiting.begin(), waiting.end(), [](const Waiting& a, const Waiting& b) {
      return a.page != b.page ? a.page < b.page : a.position < b.position;
    });
    std::vector<size_t> groups;  // where each page's keys begin
    for (size_t i = 0; i < waiting.size(); ++i)
      if (i == 0 || waiting[i].page != waiting[i - 1].page) groups.push_back(i);
    groups.push_back(waiting.size());
    parallel_for(
        groups.size() - 1, 1,
        [&](size_t begin, size_t end) {
          detail::CuckooScratch scratch;
          for (size_t group = begin; group < end; ++group) {
            scratch.reset();
            const uint32_t page_index = waiting[groups[group]].page;
            uint64_t* page = page_words(view, page_index);
            if (detail::any_in_stash(page))
              detail::for_stash(view, qry_stash_group(page_index, view.page_count), [&](uint64_t* slot) {
                const uint64_t word = SharedWords::load(slot);
                if (!detail::is_empty(word) && qry_page(detail::low(word), view.page_count) == page_index)
                  detail::bring_back(page, view, slot, scratch);
              });
            for (size_t w = groups[group]; w < groups[group + 1]; ++w) {
              const uint64_t i = waiting[w].position;
              outcomes[i] = detail::place_by_cuckoo(
                  page, view, detail::pair_word(qry_stored_key(keys[i], view.locality), values[i]), scratch);
            }
          }
        },
        threads_);
    BulkReport report;
    for (const Waiting& w : waiting) add(report, outcomes[w.position]);
    return report;
  }

  Result<uint64_t> enumerate(const GridView& view, uint32_t* keys, uint32_t* values, size_t capacity) override {
    QRY_TRY(check_view(view));
    // Where each page's pairs begin, then the pairs.
    const detail::BucketKernels& kernels = detail::bucket_kernels();
    constexpr uint32_t kSlotWords = kQryPageWords - detail::kFirstSlotWord;
    std::vector<uint64_t> begins(size_t{view.page_count} + 1, 0);
    for_pages(view.page_count, [&](uint32_t page) {
      begins[page + 1] = kernels.live(page_words(view, page) + detail::kFirstSlotWord, kSlotWords);
    });
    for (uint32_t page = 0; page < view.page_count; ++page) begins[page + 1] += begins[page];
    for_pages(view.page_count, [&](uint32_t page) {
      if (begins[page] >= capacity) return;
      uint32_t page_keys[kSlotWords], page_values[kSlotWords];
      const size_t found = kernels.list(page_words(view, page) + detail::kFirstSlotWord, kSlotWords, view.locality,
                                        page_keys, page_values);
      const size_t count = size_t(std::min<uint64_t>(found, capacity - begins[page]));
      if (keys != nullptr) std::copy_n(page_keys, count, keys + begins[page]);
      if (values != nullptr) std::copy_n(page_values, count, values + begins[page]);
    });
    return begins.back();
  }

  Result<uint64_t> rehash(const GridView& from, const GridView& to) override {
    QRY_TRY(check_view(from));
    QRY_TRY(check_view(to));
    return detail::rehash_by_windows(from, to, threads_);
  }

  Result<void> sweep(const GridView& view) override {
    QRY_TRY(check_view(view));
    for_pages(view.page_count, [&](uint32_t page) { detail::sweep_page(view, page); });
    for_pages(qry_stash_group_count(view.page_count), [&](uint32_t group) { detail::sweep_stash(view, group); });
    return {};
  }

  Result<Stats> stats(const GridView& view) override {
    QRY_TRY(check_view(view));
    constexpr uint32_t kPagesPerTask = 64;
    std::vector<Stats> pieces((view.page_count + kPagesPerTask - 1) / kPagesPerTask);
    parallel_for(
        pieces.size(), 1,
        [&](size_t begin, size_t end) {
          for (size_t piece = begin; piece < end; ++piece) {
            const uint32_t last = uint32_t(std::min<size_t>(view.page_count, (piece + 1) * kPagesPerTask));
            for (uint32_t page = uint32_t(piece * kPagesPerTask); page < last; ++page) {
              uint64_t copy[kQryPageWords];
              const uint64_t* words = page_words(view, page);
              for (uint32_t i = 0; i < kQryPageWords; ++i)
                copy[i] = SharedWords::load(words + i);  // others may be writing
              detail::add_page_stats(pieces[piece], copy, page, view.page_count);
            }
          }
        },
        threads_);
    Stats sum;
    for (const Stats& piece : pieces) add(sum, piece);
    detail::finish_stats(sum, view.page_count, kQrySlotsPerPage);
    return sum;
  }

 private:
  bool may_own(size_t count) const { return threads_ <= detail::kMostOwners && count <= 0xFFFFFFFFu; }

  // Present keys first, then the new ones, as a batch of their own.
  Result<BulkReport> put_partitioned(const GridView& view, const uint32_t* keys, uint32_t* values, size_t count,
                                     detail::Present what) {
    std::vector<uint32_t> absent;
    BulkReport report = detail::visit_partitioned(view, keys, values, count, what, threads_, absent);
    if (absent.empty()) return report;
    std::vector<uint32_t> new_keys(absent.size()), new_values(absent.size());
    for (size_t i = 0; i < absent.size(); ++i) new_keys[i] = keys[absent[i]], new_values[i] = values[absent[i]];
    QRY_TRY_ASSIGN(const auto inserted,
                   insert_exclusive(view, new_keys.data(), new_values.data(), absent.size(), false));
    report.inserted += inserted.inserted;
    report.full += inserted.full;
    if (inserted.present == 0) return report;
    // Duplicates of a new key: a second visit, now that the first copy is inserted.
    std::vector<uint32_t> refused;
    const BulkReport again =
        detail::visit_partitioned(view, new_keys.data(), new_values.data(), absent.size(), what, threads_, refused);
    (what == detail::Present::assign ? report.assigned : report.present) +=
        again.assigned + again.present - inserted.inserted;
    for (size_t i = 0; i < absent.size() && what == detail::Present::tell; ++i) values[absent[i]] = new_values[i];
    return report;
  }

  static uint64_t* page_words(const GridView& view, uint32_t page) { return view.words + size_t{page} * kQryPageWords; }

  template <class Body>
  void for_pages(uint32_t page_count, const Body& body) const {
    parallel_for(
        page_count, 8,
        [&](size_t begin, size_t end) {
          for (size_t page = begin; page < end; ++page) body(uint32_t(page));
        },
        threads_);
  }

  // Keys of a batch from number `first` on, with the content of their home buckets.
  struct Group {
    explicit Group(const GridView& table) : view(table) {}

    const GridView& view;
    const uint32_t* keys = nullptr;
    size_t first = 0, count = 0;
    uint32_t stored[kKeysPerGroup], sectors[kKeysPerGroup];
    uint8_t seen[kKeysPerGroup];
    uint32_t values[kKeysPerGroup];
    bool some_refused = false;

    // The reserved key matches empty slots: such matches are dropped.
    void forget_refused() {
      for (size_t j = 0; j < count && some_refused; ++j) {
        if (keys[j] != kQryReservedKey) continue;
        seen[j] = 0;
        values[j] = kQryReservedValue;
      }
    }
    uint64_t* bucket(size_t j) const { return view.words + size_t{sectors[j]} * kQrySlotsPerSector; }
    // Prefetches the second buckets of the `count` keys in `which`.
    void prefetch_beyond(const uint32_t* which, size_t how_many) const {
      for (size_t r = 0; r < how_many; ++r) {
        const QryProbeSequence probes = qry_probe_sequence(stored[which[r]], view.page_count);
        __builtin_prefetch(detail::page_of(view, probes) + probes.second_sector * kQrySlotsPerSector);
      }
    }
  };

  // Runs work(begin, end, report) for pieces of a batch, on all threads.
  template <class Work>
  Result<BulkReport> for_pieces(const GridView& view, const uint32_t* keys, const uint32_t* inputs, size_t count,
                                const Work& work) const {
    QRY_TRY(detail::check_batch(view, keys, inputs, count));
    std::vector<BulkReport> reports((count + kKeysPerTask - 1) / kKeysPerTask);
    parallel_for(
        count, kKeysPerTask,
        [&](size_t begin, size_t end) {
          BulkReport report;
          work(begin, end, report);
          reports[begin / kKeysPerTask] = report;
        },
        threads_);
    BulkReport sum;
    for (const BulkReport& one : reports) add(sum, one);
    return sum;
  }

  // Runs operation(group) for keys [begin, end), in order, and prefetches the home buckets of the next group meanwhile.
  template <class Operation>
  static void for_groups(const GridView& view, const uint32_t* keys, size_t begin, size_t end,
                         const Operation& operation) {
    const detail::BucketKernels& kernels = detail::bucket_kernels();
    Group groups[2] = {Group(view), Group(view)};
    const auto prepare = [&](Group& group, size_t first) {
      group.keys = keys + first;
      group.first = first;
      group.count = first < end ? std::min(kKeysPerGroup, end - first) : 0;
      group.some_refused = kernels.store(group.keys, group.count, view.locality, group.stored);
      kernels.home_buckets(group.stored, group.count, view.page_count, group.sectors);
      for (size_t j = 0; j < group.count; ++j) __builtin_prefetch(group.bucket(j), 1);
    };
    prepare(groups[0], begin);
    uint32_t now = 0;
    for (size_t first = begin; first < end; first += kKeysPerGroup, now ^= 1) {
      prepare(groups[now ^ 1], first + kKeysPerGroup);
      Group& group = groups[now];
      kernels.buckets(view.words, group.stored, group.sectors, group.count, group.seen, group.values);
      group.forget_refused();
      operation(group);
    }
  }

  template <class Operation>
  Result<BulkReport> for_each_group(const GridView& view, const uint32_t* keys, const uint32_t* inputs, size_t count,
                                    const Operation& operation) const {
    return for_pieces(view, keys, inputs, count, [&](size_t begin, size_t end, BulkReport& report) {
      for_groups(view, keys, begin, end, [&](const Group& group) { operation(group, report); });
    });
  }

  // The common case of an insert: the home bucket did not hold the key, and no key went past it. So the first claimable
  // slot of the key's sequence is in it. False: all of put() must decide.
  static bool claim_at_home(uint64_t* page, const QryProbeSequence& probes, uint32_t seen, uint64_t pair,
                            uint32_t phase) {
    if ((seen & detail::kFoundKey) != 0) return false;
    const uint32_t empties = seen >> 4;
    if ((seen & detail::kFoundNeverUsed) == 0 &&
        (empties == 0 || detail::bucket_state<SharedWords>(page, probes.home_sector) != 0))
      return false;
    // The first empty slot in the key's order. The slots before it held keys: they cannot have become claimable in this
    // phase.
    const uint32_t turned = (empties | empties << 4) >> probes.home_slot;
    uint64_t* const slot = page + detail::bucket_word(probes.home_sector, probes, uint32_t(std::countr_zero(turned)));
    uint64_t word = SharedWords::load(slot);
    return detail::is_claimable(word, phase) && SharedWords::exchange(slot, word, pair, false);
  }

  // insert, assign and find_or_insert: calls note(i, the table's value for the key) unless the key is refused.
  template <detail::IfPresent kIfPresent, class Note>
  Result<BulkReport> put_all(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                             Outcome* outcomes, const Note& note) const {
    return for_each_group(view, keys, values, count, [&](const Group& group, BulkReport& report) {
      for (size_t j = 0; j < group.count; ++j) {
        const size_t i = group.first + j;
        const uint32_t key = group.stored[j];
        uint32_t value = values[i];
        Outcome outcome = Outcome::reserved;
        if (key != kQryReservedKey && value != kQryReservedValue) {
          const bool there = (group.seen[j] & detail::kFoundKey) != 0;
          uint64_t word = detail::pair_word(key, group.values[j]);
          if (kIfPresent == detail::IfPresent::keep && there) {
            value = group.values[j];
            outcome = Outcome::present;
          } else if (kIfPresent == detail::IfPresent::replace && there &&
                     SharedWords::exchange(group.bucket(j) + (group.seen[j] & 3u), word, detail::pair_word(key, value),
                                           false)) {
            outcome = Outcome::assigned;
          } else {
            const QryProbeSequence probes = qry_probe_sequence(group.stored[j], view.page_count);
            uint64_t* const page = detail::page_of(view, probes);
            outcome = claim_at_home(page, probes, group.seen[j], detail::pair_word(key, value), view.phase)
                          ? Outcome::inserted
                          : detail::put<SharedWords, kIfPresent>(view, probes, key, value);
          }
          if (outcome != Outcome::full) note(i, value);
        }
        if (outcomes != nullptr) outcomes[i] = outcome;
        add(report, outcome);
      }
    });
  }

  uint32_t threads_;
};

}  // namespace

std::unique_ptr<BulkOperations<GridView>> make_host_pairs(uint32_t threads) {
  return std::make_unique<HostPairs>(threads);
}

}  // namespace quarry::hashgrid
