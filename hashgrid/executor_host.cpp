// executor_host.cpp - the bulk operations on host threads. Keys are worked on in small groups whose home buckets are fetched ahead, so
// that a group waits for memory once and not once per key. Whole-table passes work on private copies of pages.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "hashgrid/arguments.hpp"
#include "hashgrid/executor.hpp"
#include "hashgrid/page_settle.hpp"
#include "hashgrid/parallel.hpp"

namespace quarry::hashgrid {
namespace {

using detail::SharedWords;

constexpr size_t kKeysPerPiece = 4096;  // what a thread takes at a time
constexpr size_t kKeysPerGroup = 16;    // as many cache misses as a core keeps in flight

void count_outcome(BulkReport& report, Outcome outcome) {
  switch (outcome) {
    case Outcome::inserted: ++report.inserted; break;
    case Outcome::present: ++report.present; break;
    case Outcome::assigned: ++report.assigned; break;
    case Outcome::erased: ++report.erased; break;
    case Outcome::absent: ++report.absent; break;
    case Outcome::full: ++report.full; break;
    case Outcome::reserved: ++report.reserved; break;
  }
}

using detail::check_view;

class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(uint32_t threads) : threads_(threads == 0 ? thread_count() : threads) {}

  const char* name() const override { return "host"; }
  uint32_t parallelism() const override { return threads_; }
  MemorySource& memory() override { return host_memory_source(); }
  Result<void> upload(void* to, const void* from_host, size_t size_bytes) override {
    if (size_bytes != 0) std::memcpy(to, from_host, size_bytes);
    return {};
  }
  Result<void> download(void* to_host, const void* from, size_t size_bytes) override {
    if (size_bytes != 0) std::memcpy(to_host, from, size_bytes);
    return {};
  }

  Result<void> clear(const GridView& view) override {
    if (auto ok = check_view(view); !ok) return ok;
    for_pages(view.page_count, [&](uint32_t page) { detail::clear_page(page_words(view, page)); });
    return {};
  }

  Result<BulkReport> insert(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    return for_keys(view, keys, values, count, outcomes, [&](uint64_t* page, const QryPlace& place, uint32_t stored, size_t i) {
      uint32_t value = values[i];
      if (value == kQryReservedValue) return Outcome::reserved;
      return detail::put<SharedWords, detail::IfPresent::keep>(page, place, stored, value, view.phase);
    });
  }
  Result<BulkReport> assign(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    return for_keys(view, keys, values, count, outcomes, [&](uint64_t* page, const QryPlace& place, uint32_t stored, size_t i) {
      uint32_t value = values[i];
      if (value == kQryReservedValue) return Outcome::reserved;
      return detail::put<SharedWords, detail::IfPresent::replace>(page, place, stored, value, view.phase);
    });
  }
  Result<BulkReport> find_or_insert(const GridView& view, const uint32_t* keys, uint32_t* values, size_t count, Outcome* outcomes) override {
    return for_keys(view, keys, values, count, outcomes, [&](uint64_t* page, const QryPlace& place, uint32_t stored, size_t i) {
      if (values[i] == kQryReservedValue) return Outcome::reserved;
      return detail::put<SharedWords, detail::IfPresent::keep>(page, place, stored, values[i], view.phase);
    });
  }
  Result<BulkReport> find(const GridView& view, const uint32_t* keys, size_t count, uint32_t* values_out, uint8_t* depths_out) override {
    return for_keys(view, keys, keys, count, nullptr, [&](uint64_t* page, const QryPlace& place, uint32_t stored, size_t i) {
      const detail::Located at = detail::locate<SharedWords>(page, place, stored);
      const bool hit = at.index != detail::kNoSlot;
      if (values_out != nullptr) values_out[i] = hit ? detail::high(at.word) : kQryReservedValue;
      if (depths_out != nullptr) depths_out[i] = uint8_t(at.sectors);
      return hit ? Outcome::present : Outcome::absent;
    }, [&](size_t i) {
      if (values_out != nullptr) values_out[i] = kQryReservedValue;
      if (depths_out != nullptr) depths_out[i] = 0;
    });
  }
  Result<BulkReport> erase(const GridView& view, const uint32_t* keys, size_t count, uint32_t* old_values, Outcome* outcomes) override {
    return for_keys(view, keys, keys, count, outcomes, [&](uint64_t* page, const QryPlace& place, uint32_t stored, size_t i) {
      uint32_t old = kQryReservedValue;
      const Outcome outcome = detail::take<SharedWords>(page, place, stored, view.phase, &old);
      if (old_values != nullptr) old_values[i] = old;
      return outcome;
    }, [&](size_t i) {
      if (old_values != nullptr) old_values[i] = kQryReservedValue;
    });
  }

  Result<BulkReport> settle(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, Outcome* outcomes) override {
    if (auto ok = check_view(view); !ok) return tl::unexpected(ok.error());
    struct Waiting {
      uint32_t page;
      uint64_t position;
    };
    std::vector<Waiting> waiting;
    for (size_t i = 0; i < count; ++i)
      if (outcomes[i] == Outcome::full) waiting.push_back({qry_page(qry_stored_key(keys[i], view.locality), view.page_count), i});
    std::sort(waiting.begin(), waiting.end(), [](const Waiting& a, const Waiting& b) { return a.page != b.page ? a.page < b.page : a.position < b.position; });
    std::vector<size_t> groups;  // where each page's keys begin
    for (size_t i = 0; i < waiting.size(); ++i)
      if (i == 0 || waiting[i].page != waiting[i - 1].page) groups.push_back(i);
    groups.push_back(waiting.size());
    parallel_for(groups.size() - 1, 1, [&](size_t begin, size_t end) {
      detail::SettleScratch scratch;
      for (size_t group = begin; group < end; ++group) {
        scratch.reset();
        uint64_t* page = page_words(view, waiting[groups[group]].page);
        for (size_t w = groups[group]; w < groups[group + 1]; ++w) {
          const uint64_t i = waiting[w].position;
          const uint32_t stored = qry_stored_key(keys[i], view.locality);
          outcomes[i] = detail::place_with_moves(page, qry_place_stored(stored, view.page_count), stored, values[i], view.page_count, scratch);
        }
        detail::drain_area(page, view.page_count, scratch);
        detail::mark_places(page, view.page_count);
      }
    }, threads_);
    BulkReport report;
    for (const Waiting& w : waiting) count_outcome(report, outcomes[w.position]);
    return report;
  }

  Result<uint64_t> enumerate(const GridView& view, uint32_t* keys, uint32_t* values, size_t capacity) override {
    if (auto ok = check_view(view); !ok) return tl::unexpected(ok.error());
    // Where each page's pairs begin, then the pairs.
    std::vector<uint64_t> begins(size_t{view.page_count} + 1, 0);
    for_pages(view.page_count, [&](uint32_t page) {
      const uint64_t* words = page_words(view, page);
      begins[page + 1] = uint64_t(std::count_if(words + detail::kFirstSlotWord, words + kQryPageWords, [](uint64_t w) { return !detail::is_empty(w); }));
    });
    for (uint32_t page = 0; page < view.page_count; ++page) begins[page + 1] += begins[page];
    for_pages(view.page_count, [&](uint32_t page) {
      const uint64_t* words = page_words(view, page);
      uint64_t at = begins[page];
      for (uint32_t i = detail::kFirstSlotWord; i < kQryPageWords && at < capacity; ++i) {
        if (detail::is_empty(words[i])) continue;
        if (keys != nullptr) keys[at] = qry_key_of_stored(detail::low(words[i]), view.locality);
        if (values != nullptr) values[at] = detail::high(words[i]);
        ++at;
      }
    });
    return begins.back();
  }

  Result<uint64_t> rehash(const GridView& from, const GridView& to) override {
    if (auto ok = check_view(from); !ok) return tl::unexpected(ok.error());
    if (auto ok = check_view(to); !ok) return tl::unexpected(ok.error());
    // Each new page gathers its keys from the few old pages that can hold them: no two threads touch one page.
    std::atomic<uint64_t> refused{0};
    for_pages(to.page_count, [&](uint32_t page) {
      detail::SettleScratch scratch;
      scratch.reset();
      uint64_t* target = page_words(to, page);
      const detail::PageRange range = detail::source_pages(page, to.page_count, from.page_count);
      for (uint32_t source = range.first; source <= range.last; ++source) {
        const uint64_t* words = page_words(from, source);
        for (uint32_t i = detail::kFirstSlotWord; i < kQryPageWords; ++i) {
          if (detail::is_empty(words[i])) continue;
          const uint32_t key = detail::low(words[i]);
          const QryPlace place = qry_place_stored(key, to.page_count);
          if (place.page != page) continue;
          uint32_t value = detail::high(words[i]);
          if (detail::put<detail::PrivateWords, detail::IfPresent::keep>(target, place, key, value, to.phase) == Outcome::full &&
              detail::place_absent(target, place, key, value, to.page_count, scratch) == Outcome::full)
            refused.fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
    return refused.load();
  }

  Result<void> sweep(const GridView& view) override {
    if (auto ok = check_view(view); !ok) return ok;
    for_pages(view.page_count, [&](uint32_t page) { detail::sweep_page(page_words(view, page), view.page_count); });
    return {};
  }

  Result<Stats> stats(const GridView& view) override {
    if (auto ok = check_view(view); !ok) return tl::unexpected(ok.error());
    constexpr uint32_t kPagesPerPiece = 64;
    std::vector<Stats> pieces((view.page_count + kPagesPerPiece - 1) / kPagesPerPiece);
    parallel_for(pieces.size(), 1, [&](size_t begin, size_t end) {
      for (size_t piece = begin; piece < end; ++piece) {
        const uint32_t last = uint32_t(std::min<size_t>(view.page_count, (piece + 1) * kPagesPerPiece));
        for (uint32_t page = uint32_t(piece * kPagesPerPiece); page < last; ++page) {
          uint64_t copy[kQryPageWords];
          const uint64_t* words = page_words(view, page);
          for (uint32_t i = 0; i < kQryPageWords; ++i) copy[i] = SharedWords::load(words + i);  // others may be writing
          detail::add_page_stats(pieces[piece], copy, view.page_count);
        }
      }
    }, threads_);
    Stats sum;
    for (const Stats& piece : pieces) {
      sum.live += piece.live;
      sum.freed += piece.freed;
      sum.overflow_live += piece.overflow_live;
      sum.spilled_buckets += piece.spilled_buckets;
      sum.fullest_page_live = std::max(sum.fullest_page_live, piece.fullest_page_live);
      for (size_t i = 0; i < sum.depth_histogram.size(); ++i) sum.depth_histogram[i] += piece.depth_histogram[i];
      for (size_t i = 0; i < sum.bucket_fill.size(); ++i) sum.bucket_fill[i] += piece.bucket_fill[i];
    }
    detail::finish_stats(sum, view.page_count);
    return sum;
  }

 private:
  static uint64_t* page_words(const GridView& view, uint32_t page) { return view.words + size_t{page} * kQryPageWords; }

  template <class Body>
  void for_pages(uint32_t page_count, const Body& body) const {
    parallel_for(page_count, 8, [&](size_t begin, size_t end) {
      for (size_t page = begin; page < end; ++page) body(uint32_t(page));
    }, threads_);
  }

  // operate(page words, place, stored key, i) -> Outcome for every key that is not reserved; refuse(i) for those that are.
  template <class Operate, class Refuse>
  Result<BulkReport> for_keys(const GridView& view, const uint32_t* keys, const uint32_t* inputs, size_t count, Outcome* outcomes,
                              const Operate& operate, const Refuse& refuse) const {
    if (auto ok = detail::check_batch(view, keys, inputs, count); !ok) return tl::unexpected(ok.error());
    std::vector<BulkReport> reports((count + kKeysPerPiece - 1) / kKeysPerPiece);
    parallel_for(count, kKeysPerPiece, [&](size_t begin, size_t end) {
      BulkReport report;
      QryPlace places[kKeysPerGroup];
      uint32_t stored[kKeysPerGroup];
      for (size_t group = begin; group < end; group += kKeysPerGroup) {
        const size_t in_group = std::min(kKeysPerGroup, end - group);
        for (size_t j = 0; j < in_group; ++j) {
          stored[j] = qry_stored_key(keys[group + j], view.locality);
          places[j] = qry_place_stored(stored[j], view.page_count);
          __builtin_prefetch(detail::page_of(view, places[j]) + places[j].home_sector * kQrySlotsPerSector);
        }
        for (size_t j = 0; j < in_group; ++j) {
          const size_t i = group + j;
          Outcome outcome = Outcome::reserved;
          if (keys[i] != kQryReservedKey)
            outcome = operate(detail::page_of(view, places[j]), places[j], stored[j], i);
          else
            refuse(i);
          if (outcomes != nullptr) outcomes[i] = outcome;
          count_outcome(report, outcome);
        }
      }
      reports[begin / kKeysPerPiece] = report;
    }, threads_);
    BulkReport sum;
    for (const BulkReport& r : reports) {
      sum.inserted += r.inserted;
      sum.present += r.present;
      sum.assigned += r.assigned;
      sum.erased += r.erased;
      sum.absent += r.absent;
      sum.full += r.full;
      sum.reserved += r.reserved;
    }
    return sum;
  }
  template <class Operate>
  Result<BulkReport> for_keys(const GridView& view, const uint32_t* keys, const uint32_t* inputs, size_t count, Outcome* outcomes,
                              const Operate& operate) const {
    return for_keys(view, keys, inputs, count, outcomes, operate, [](size_t) {});
  }

  uint32_t threads_;
};

}  // namespace

std::unique_ptr<Executor> make_host_executor(uint32_t threads) { return std::make_unique<HostExecutor>(threads); }

}  // namespace quarry::hashgrid
