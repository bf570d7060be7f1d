// SPDX-License-Identifier: Apache-2.0
// host.cpp - batches key by key through compact/view.hpp on all threads; sweeps, counts and growth page by page.
#include "hashgrid/compact/host.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/parallel.hpp"
#include "hashgrid/compact/arguments.hpp"
#include "hashgrid/compact/passes.hpp"

namespace quarry::hashgrid {
namespace {

constexpr size_t kCompactKeysPerTask = 4096;  // that a thread takes at a time
constexpr size_t kCompactKeysPerGroup = 16;   // as many cache misses as a core keeps in flight
constexpr uint32_t kPageWords = kQryPageBytes / 4;

// One page, and the part of the table that contains it.
struct Page {
  uint32_t* words;
  const QryCompactPart* part;
  bool stashed;
  uint32_t first_sector;  // of the part
};
Page page_of(const CompactView& view, uint32_t page) {
  const QryCompact& layout = view.layout;
  const bool stashed = page >= layout.table.pages;
  return {view.words + size_t{page} * kPageWords, stashed ? &layout.stash : &layout.table, stashed,
          (page - (stashed ? layout.stash.first_page : 0)) * kQrySectorsPerPage};
}

// Calls use(sector of the part, slot, tag, value) for the tags of a page.
template <class Format, class Use>
void for_page_entries(const Page& page, const Use& use) {
  for (uint32_t s = 0; s < kQrySectorsPerPage; ++s)
    detail::for_entries<Format>(
        page.words + s * detail::kSectorWords,
        [&](uint32_t slot, uint32_t tag, uint32_t value) { use(page.first_sector + s, slot, tag, value); });
}

// Calls use(mixed key, value, depth) for the live pairs of a page, in memory order.
template <class Use>
void for_pairs(const CompactView& view, uint32_t index, const Use& use) {
  const Page page = page_of(view, index);
  const detail::CompactInverse inverse(*page.part);
  detail::with_format(page.part->fields, [&](auto format) {
    for_page_entries<decltype(format)>(page, [&](uint32_t sector, uint32_t, uint32_t tag, uint32_t value) {
      if (value == kQryCompactNoValue) return;
      const detail::CompactKey key = detail::compact_key(view.layout, page.stashed, inverse, sector, tag);
      use(key.mixed, value, key.depth);
    });
  });
}

// Removes erased keys' entries, moves displaced entries closer to their homes, and makes overflow bits exact. Entries
// only move closer, so none can be left without a place.
template <class Format>
void sweep_page(const Page& page) {
  const auto sector_words = [&](uint32_t sector) {
    return page.words + sector % kQrySectorsPerPage * detail::kSectorWords;
  };
  const detail::CompactInverse inverse(*page.part);
  uint8_t taken[kQrySectorsPerPage];
  const auto pack = [&](uint32_t s) {
    uint32_t words[detail::kSectorWords];
    std::copy_n(sector_words(s), detail::kSectorWords, words);
    taken[s] = uint8_t(detail::close_holes<Format>(sector_words(s), words));
  };
  for (uint32_t s = 0; s < kQrySectorsPerPage; ++s) {
    sector_words(s)[0] &= ~kQryCompactOverflow;
    pack(s);
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t s = 0; s < kQrySectorsPerPage; ++s) {
      uint32_t gone = 0;
      detail::for_entries<Format>(sector_words(s), [&](uint32_t slot, uint32_t tag, uint32_t value) {
        const detail::CompactHome at = inverse.home_of_entry(page.first_sector + s, tag, *page.part);
        for (uint32_t d = 0; d < at.distance; ++d) {
          uint8_t& room = taken[(at.place.home + d) % kQrySectorsPerPage];
          if (room == Format::kEntries) continue;
          detail::put_entry<Format>(sector_words(at.place.home + d), room++, at.place.tag + d * page.part->remainders,
                                    value);
          gone |= 1u << slot;
          return;
        }
      });
      if (gone == 0) continue;
      for (; gone != 0; gone &= gone - 1)
        sector_words(s)[Format::kTagWords + detail::lowest_bit(gone)] = kQryCompactNoValue;
      pack(s);
      moved = true;
    }
  }
  for_page_entries<Format>(page, [&](uint32_t sector, uint32_t, uint32_t tag, uint32_t) {
    const detail::CompactHome at = inverse.home_of_entry(sector, tag, *page.part);
    for (uint32_t d = 0; d < at.distance; ++d) sector_words(at.place.home + d)[0] |= kQryCompactOverflow;
  });
}

class HostCompact final : public BulkOperations<CompactView> {
 public:
  explicit HostCompact(uint32_t threads) : threads_(threads) {}

  Result<void> clear(const CompactView& view) override {
    QRY_TRY(detail::check_view(view));
    for_pages(view, [&](uint32_t index) {
      const Page page = page_of(view, index);
      detail::with_format(page.part->fields, [&](auto format) {
        for (uint32_t s = 0; s < kQrySectorsPerPage; ++s)
          detail::clear_sector<decltype(format)>(page.words + s * detail::kSectorWords);
      });
    });
    return {};
  }

  Result<BulkReport> insert(const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                            Outcome* outcomes) override {
    return for_keys(view, keys, values, count, outcomes,
                    [&](size_t i) { return hashgrid::insert(view, keys[i], values[i]); });
  }
  Result<BulkReport> assign(const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                            Outcome* outcomes) override {
    return for_keys(view, keys, values, count, outcomes,
                    [&](size_t i) { return hashgrid::assign(view, keys[i], values[i]); });
  }
  Result<BulkReport> find_or_insert(const CompactView& view, const uint32_t* keys, uint32_t* values, size_t count,
                                    Outcome* outcomes) override {
    return for_keys(view, keys, values, count, outcomes,
                    [&](size_t i) { return hashgrid::find_or_insert(view, keys[i], values + i); });
  }
  Result<BulkReport> find(const CompactView& view, const uint32_t* keys, size_t count, uint32_t* values_out,
                          uint8_t* depths_out) override {
    return for_keys(view, keys, keys, count, nullptr, [&](size_t i) {
      const Found found = hashgrid::find(view, keys[i]);
      if (values_out != nullptr) values_out[i] = found.value;
      if (depths_out != nullptr) depths_out[i] = uint8_t(std::min(found.sectors, 255u));
      return found.hit ? Outcome::present : keys[i] == kQryReservedKey ? Outcome::reserved : Outcome::absent;
    });
  }
  Result<BulkReport> erase(const CompactView& view, const uint32_t* keys, size_t count, uint32_t* old_values,
                           Outcome* outcomes) override {
    return for_keys(view, keys, keys, count, outcomes, [&](size_t i) {
      uint32_t old = kQryReservedValue;
      const Outcome outcome = hashgrid::erase(view, keys[i], &old);
      if (old_values != nullptr) old_values[i] = old;
      return outcome;
    });
  }

  Result<BulkReport> insert_refused(const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                    Outcome* outcomes) override {
    QRY_TRY(sweep(view));
    BulkReport report;
    for (size_t i = 0; i < count; ++i) {
      if (outcomes[i] != Outcome::full) continue;
      outcomes[i] = hashgrid::insert(view, keys[i], values[i]);
      add(report, outcomes[i]);
    }
    return report;
  }

  Result<uint64_t> enumerate(const CompactView& view, uint32_t* keys, uint32_t* values, size_t capacity) override {
    QRY_TRY(detail::check_view(view));
    // Where each page's pairs begin, then the pairs.
    std::vector<uint64_t> begins(size_t{view.page_count} + 1, 0);
    for_pages(view, [&](uint32_t index) {
      const Page page = page_of(view, index);
      detail::with_format(page.part->fields, [&](auto format) {
        for_page_entries<decltype(format)>(page, [&](uint32_t, uint32_t, uint32_t, uint32_t value) {
          begins[index + 1] += value != kQryCompactNoValue;
        });
      });
    });
    for (uint32_t page = 0; page < view.page_count; ++page) begins[page + 1] += begins[page];
    for_pages(view, [&](uint32_t index) {
      uint64_t at = begins[index];
      if (at >= capacity) return;
      for_pairs(view, index, [&](uint32_t mixed, uint32_t value, uint32_t) {
        if (at < capacity && keys != nullptr) keys[at] = qry_unmix(mixed);
        if (at < capacity && values != nullptr) values[at] = value;
        ++at;
      });
    });
    return begins.back();
  }

  // Both tables' sectors are in the mixed order of keys: reading page by page writes nearly page by page.
  Result<uint64_t> rehash(const CompactView& from, const CompactView& to) override {
    QRY_TRY(detail::check_view(from));
    QRY_TRY(detail::check_view(to));
    std::atomic<uint64_t> refused{0};
    for_pages(from, [&](uint32_t index) {
      for_pairs(from, index, [&](uint32_t mixed, uint32_t value, uint32_t) {
        uint32_t* const place = detail::claimed_entry_of(to, mixed).value;
        if (place != nullptr) *place = value;
        else refused.fetch_add(1, std::memory_order_relaxed);
      });
    });
    return refused.load();
  }

  Result<void> sweep(const CompactView& view) override {
    QRY_TRY(detail::check_view(view));
    const auto sweep_one = [&](uint32_t index) {
      const Page page = page_of(view, index);
      detail::with_format(page.part->fields, [&](auto format) { sweep_page<decltype(format)>(page); });
    };
    const QryCompactPart &table = view.layout.table, &stash = view.layout.stash;
    parallel_for(
        table.pages, 8,
        [&](size_t begin, size_t end) {
          for (size_t page = begin; page < end; ++page) sweep_one(uint32_t(page));
        },
        threads_);
    // From the stash back to the table where it has room now. claimed_entry_of() marks the full sectors that the other
    // entries are behind.
    for (uint32_t p = 0; p < stash.pages; ++p) {
      const Page page = page_of(view, stash.first_page + p);
      const detail::CompactInverse inverse(stash);
      for_page_entries<detail::CompactFormat<1>>(page, [&](uint32_t sector, uint32_t slot, uint32_t tag,
                                                           uint32_t value) {
        if (value == kQryCompactNoValue) return;
        uint32_t* const here =
            detail::compact_sector_words(view, stash, sector) + detail::CompactFormat<1>::kTagWords + slot;
        uint32_t* const place =
            detail::claimed_entry_of(view, detail::compact_key(view.layout, true, inverse, sector, tag).mixed).value;
        if (place == here) return;
        *here = kQryCompactNoValue;
        *place = value;
      });
    }
    for (uint32_t p = 0; p < stash.pages; ++p) sweep_one(stash.first_page + p);
    return {};
  }

  Result<Stats> stats(const CompactView& view) override {
    QRY_TRY(detail::check_view(view));
    constexpr uint32_t kPagesPerTask = 64;
    std::vector<Stats> pieces((view.page_count + kPagesPerTask - 1) / kPagesPerTask);
    parallel_for(
        pieces.size(), 1,
        [&](size_t begin, size_t end) {
          for (size_t piece = begin; piece < end; ++piece)
            for (size_t page = piece * kPagesPerTask;
                 page < std::min<size_t>(view.page_count, (piece + 1) * kPagesPerTask); ++page)
              add_page_stats(pieces[piece], view, uint32_t(page));
        },
        threads_);
    Stats sum;
    for (const Stats& piece : pieces) add(sum, piece);
    detail::finish_compact_stats(sum, view.page_count);
    return sum;
  }

 private:
  static void add_page_stats(Stats& stats, const CompactView& view, uint32_t index) {
    // Other threads may be writing: a copy of the page, read word by word.
    uint32_t copy[kPageWords];
    Page page = page_of(view, index);
    for (uint32_t i = 0; i < kPageWords; ++i) copy[i] = detail::CompactWords::load(page.words + i);
    page.words = copy;
    const detail::CompactInverse inverse(*page.part);
    uint32_t live = 0;
    detail::with_format(page.part->fields, [&](auto format) {
      for (uint32_t s = 0; s < kQrySectorsPerPage; ++s) {
        uint32_t fill = 0;
        detail::for_entries<decltype(format)>(
            copy + s * detail::kSectorWords, [&](uint32_t, uint32_t tag, uint32_t value) {
              stats.freed += value == kQryCompactNoValue;
              if (value == kQryCompactNoValue) return;
              ++fill;
              const uint32_t depth =
                  page.stashed ? detail::compact_key(view.layout, true, inverse, page.first_sector + s, tag).depth
                               : tag / page.part->remainders + 1;
              ++stats.depth_histogram[std::min(depth, kDepthBins) - 1];
            });
        live += fill;
        ++stats.bucket_fill[std::min<uint32_t>(fill, 4)];
        stats.spilled_buckets += copy[s * detail::kSectorWords] >> 31;
      }
    });
    stats.live += live;
    if (page.stashed) stats.overflow_live += live;
    stats.fullest_page_live = std::max(stats.fullest_page_live, live);
  }

  template <class Body>
  void for_pages(const CompactView& view, const Body& body) const {
    parallel_for(
        view.page_count, 8,
        [&](size_t begin, size_t end) {
          for (size_t page = begin; page < end; ++page) body(uint32_t(page));
        },
        threads_);
  }

  template <class Operation>
  Result<BulkReport> for_keys(const CompactView& view, const uint32_t* keys, const uint32_t* inputs, size_t count,
                              Outcome* outcomes, const Operation& operation) const {
    QRY_TRY(detail::check_batch(view, keys, inputs, count));
    std::vector<BulkReport> reports((count + kCompactKeysPerTask - 1) / kCompactKeysPerTask);
    parallel_for(
        count, kCompactKeysPerTask,
        [&](size_t begin, size_t end) {
          BulkReport report;
          for (size_t group = begin; group < end; group += kCompactKeysPerGroup) {
            const size_t last = std::min(group + kCompactKeysPerGroup, end);
            for (size_t i = group; i < last; ++i)
              __builtin_prefetch(detail::compact_sector_words(
                  view, view.layout.table, qry_compact_place(qry_mix(keys[i]), view.layout.table).home));
            for (size_t i = group; i < last; ++i) {
              const Outcome outcome = operation(i);
              if (outcomes != nullptr) outcomes[i] = outcome;
              add(report, outcome);
            }
          }
          reports[begin / kCompactKeysPerTask] = report;
        },
        threads_);
    BulkReport sum;
    for (const BulkReport& one : reports) add(sum, one);
    return sum;
  }

  uint32_t threads_;
};

}  // namespace

std::unique_ptr<BulkOperations<CompactView>> make_host_compact(uint32_t threads) {
  return std::make_unique<HostCompact>(threads);
}

}  // namespace quarry::hashgrid
