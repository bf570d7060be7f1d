#include "hashgrid/host_pages.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <vector>

#include "hashgrid/host_groups.hpp"
#include "hashgrid/page_settle.hpp"
#include "hashgrid/parallel.hpp"

namespace quarry::hashgrid::detail {
namespace {

constexpr uint32_t kWindowPages = 8;        // 256 KiB: a quarter of a second-level cache, beside the keys that stream through
constexpr uint32_t kMostWindows = 1024;     // more streams than a core's caches and address translations keep open
constexpr size_t kKeysPerChunk = size_t{1} << 15;

// Uninitialised words: from the heap, which keeps them for the next batch, or straight from the system where larger pages pay.
class Words {
 public:
  explicit Words(size_t count) {
    constexpr size_t kLarge = size_t{8} << 20;
    if (count * sizeof(uint64_t) >= kLarge) {
      if (const auto block = host_memory_source().allocate(count * sizeof(uint64_t), "hash grid split")) block_ = *block;
      data_ = static_cast<uint64_t*>(block_.data);
    } else {
      small_.reset(new (std::nothrow) uint64_t[count]);
      data_ = small_.get();
    }
  }
  ~Words() { host_memory_source().release(block_); }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  uint64_t* data() const { return data_; }

 private:
  MemoryBlock block_;
  std::unique_ptr<uint64_t[]> small_;
  uint64_t* data_ = nullptr;
};

// Pairs on their way into the pages [first, last) of a table that this thread has to itself.
class WindowWriter {
 public:
  WindowWriter(const GridView& view) : view_(view) {}

  // Stored keys and values, in rising order of `pairs`, none with a reserved key: of equal keys the first stays.
  void add(const uint64_t* pairs, size_t count) {
    const GroupLook& look = group_look();
    uint32_t keys[2][kKeysPerGroup], sectors[2][kKeysPerGroup];
    const auto prepare = [&](size_t group, uint32_t which) {
      const size_t in_group = std::min(kKeysPerGroup, count - group);
      for (size_t j = 0; j < in_group; ++j) keys[which][j] = low(pairs[group + j]);
      look.homes(keys[which], in_group, view_.page_count, sectors[which]);
      for (size_t j = 0; j < in_group; ++j) __builtin_prefetch(view_.words + size_t{sectors[which][j]} * kQrySlotsPerSector, 1);
    };
    uint32_t which = 0;
    if (count != 0) prepare(0, which);
    for (size_t group = 0; group < count; group += kKeysPerGroup, which ^= 1) {
      if (group + kKeysPerGroup < count) prepare(group + kKeysPerGroup, which ^ 1);
      const size_t in_group = std::min(kKeysPerGroup, count - group);
      for (size_t j = 0; j < in_group; ++j) put_one(pairs[group + j], sectors[which][j]);
    }
  }

  // Places what is waiting by moves in these pages; to be called once all their pairs are in. The state bits stay right, if not always exact: a
  // key that moved home leaves its bit behind, as an erase would.
  void finish() {
    if (waiting_.empty()) return;
    std::stable_sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) { return a.page < b.page; });
    if (scratch_ == nullptr) scratch_ = std::make_unique<SettleScratch>();
    for (size_t i = 0; i < waiting_.size();) {
      const uint32_t number = waiting_[i].page;
      uint64_t* page = view_.words + size_t{number} * kQryPageWords;
      scratch_->reset();
      for (; i < waiting_.size() && waiting_[i].page == number; ++i) {
        const uint64_t pair = waiting_[i].pair;
        const QryPlace place = qry_place_stored(low(pair), view_.page_count);
        if (locate<PrivateWords, SharedWords>(page, view_, place, low(pair)).slot != nullptr) {
          ++report_.present;
          continue;
        }
        const uint32_t to = make_room(page, place, view_.page_count, *scratch_);
        if (to == kNoSlot) {
          left_.push_back(pair);
          continue;
        }
        page[to] = pair;
        note_place(page, place, to);
        ++report_.inserted;
      }
    }
    waiting_.clear();
  }

  const BulkReport& report() const { return report_; }
  // What no moves could help: for the stash.
  std::vector<uint64_t> take_left() { return std::move(left_); }

 private:
  struct Waiting {
    uint64_t pair;
    uint32_t page;
  };

  void put_one(uint64_t pair, uint32_t sector) {
    const uint32_t key = low(pair);
    uint64_t* const bucket = view_.words + size_t{sector} * kQrySlotsPerSector;
    uint32_t hit = 0, empty = kQrySlotsPerSector;
    for (uint32_t slot = kQrySlotsPerSector; slot-- > 0;) {
      hit |= low(bucket[slot]) == key;
      empty = is_empty(bucket[slot]) ? slot : empty;
    }
    if (hit != 0) {
      ++report_.present;
    } else if (empty != kQrySlotsPerSector && (bucket[empty] == kNeverUsed || nothing_went_past(sector))) {
      // By (I) of view_impl.hpp no key went past a bucket with a never-used slot: the key is absent.
      bucket[empty] = pair;
      ++report_.inserted;
    } else {
      put_beyond(pair);
    }
  }
  bool nothing_went_past(uint32_t sector) const {
    const uint64_t* const page = view_.words + size_t{sector / kQrySectorsPerPage} * kQryPageWords;
    return bucket_state<PrivateWords>(page, sector % kQrySectorsPerPage) == 0;
  }
  // A key that its home bucket has neither as a present key nor surely room for. No moves yet, no place outside the two buckets.
  [[gnu::noinline]] void put_beyond(uint64_t pair) {
    const QryPlace place = qry_place_stored(low(pair), view_.page_count);
    uint64_t* const page = view_.words + size_t{place.page} * kQryPageWords;
    const uint32_t state = bucket_state<PrivateWords>(page, place.home_sector);
    if ((state & kQryBucketToStash) != 0 ? locate<PrivateWords, SharedWords>(page, view_, place, low(pair)).slot != nullptr
                                         : (state & kQryBucketSpilled) != 0 && holds(page, place.next_sector, low(pair))) {
      ++report_.present;
      return;
    }
    uint32_t to = empty_word_of(page, place.home_sector);
    if (to == kNoSlot) to = empty_word_of(page, place.next_sector);
    if (to == kNoSlot) {
      waiting_.push_back({pair, place.page});
      return;
    }
    page[to] = pair;
    note_place(page, place, to);
    ++report_.inserted;
  }
  static bool holds(const uint64_t* page, uint32_t sector, uint32_t key) {
    bool hit = false;
    for (uint32_t slot = 0; slot < kQrySlotsPerSector; ++slot) hit |= low(page[sector * kQrySlotsPerSector + slot]) == key;
    return hit;
  }

  const GridView view_;
  BulkReport report_;
  std::vector<Waiting> waiting_;
  std::vector<uint64_t> left_;
  std::unique_ptr<SettleScratch> scratch_;
};

void add_to(BulkReport& sum, const BulkReport& one) {
  sum.inserted += one.inserted;
  sum.present += one.present;
  sum.full += one.full;
  sum.reserved += one.reserved;
}

// The stash is shared by windows of different threads: one thread fills it, window after window, so that the bytes are always the same.
BulkReport place_left(const GridView& view, const std::vector<std::vector<uint64_t>>& left) {
  BulkReport report;
  SettleScratch scratch;
  scratch.reset();
  uint32_t last = kQryReservedKey;
  for (const std::vector<uint64_t>& pairs : left) {
    for (const uint64_t pair : pairs) {
      const uint32_t number = qry_page(low(pair), view.page_count);
      uint64_t* const page = view.words + size_t{number} * kQryPageWords;
      if (number != last) scratch.reset();
      last = number;
      switch (place_with_moves(page, view, pair, scratch)) {
        case Outcome::inserted: ++report.inserted; break;
        case Outcome::present: ++report.present; break;
        default: ++report.full;
      }
    }
  }
  return report;
}

}  // namespace

bool worth_splitting(const GridView& view, size_t count) { return count >= 512 && count >= size_t{view.page_count} * 32; }

std::optional<BulkReport> insert_by_windows(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, uint32_t threads) {
  uint32_t shift = uint32_t(std::countr_zero(kWindowPages));
  while (((view.page_count - 1) >> shift) + 1 > kMostWindows) ++shift;
  const uint32_t windows = ((view.page_count - 1) >> shift) + 1;
  const size_t chunks = (count + kKeysPerChunk - 1) / kKeysPerChunk;
  const Words pairs(count);
  if (pairs.data() == nullptr || count > 0xFFFFFFFFu) return {};
  // Where each chunk's part of each window begins; the column past the last window takes what is refused.
  const size_t columns = size_t{windows} + 1;
  std::vector<uint32_t> begins(chunks * columns, 0);

  const auto each_chunk = [&](const auto& visit) {
    parallel_for(chunks, 1, [&](size_t first, size_t last) {
      for (size_t chunk = first; chunk < last; ++chunk) {
        uint32_t* const row = begins.data() + chunk * columns;
        const size_t end = std::min(count, (chunk + 1) * kKeysPerChunk);
        uint32_t stored[kKeysPerGroup], window[kKeysPerGroup];
        for (size_t group = chunk * kKeysPerChunk; group < end; group += kKeysPerGroup) {
          const size_t in_group = std::min(kKeysPerGroup, end - group);
          group_look().store(keys + group, in_group, view.locality, stored);
          for (size_t j = 0; j < in_group; ++j) window[j] = qry_page(stored[j], view.page_count) >> shift;
          for (size_t j = 0; j < in_group; ++j) {
            const bool refused = stored[j] == kQryReservedKey || values[group + j] == kQryReservedValue;
            visit(row[refused ? windows : window[j]], pair_word(stored[j], values[group + j]), refused);
          }
        }
      }
    }, threads);
  };
  each_chunk([](uint32_t& cell, uint64_t, bool) { ++cell; });
  std::vector<uint32_t> window_begins(columns + 1);
  uint32_t sum = 0;
  for (size_t column = 0; column < columns; ++column) {
    window_begins[column] = sum;
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      const uint32_t here = begins[chunk * columns + column];
      begins[chunk * columns + column] = sum;
      sum += here;
    }
  }
  window_begins[columns] = sum;
  each_chunk([&](uint32_t& cell, uint64_t pair, bool refused) {
    if (!refused) pairs.data()[cell++] = pair;
  });

  std::vector<BulkReport> reports(windows);
  std::vector<std::vector<uint64_t>> left(windows);
  parallel_for(windows, 1, [&](size_t first, size_t last) {
    for (size_t window = first; window < last; ++window) {
      WindowWriter writer(view);
      writer.add(pairs.data() + window_begins[window], window_begins[window + 1] - window_begins[window]);
      writer.finish();
      reports[window] = writer.report();
      left[window] = writer.take_left();
    }
  }, threads);
  BulkReport report = place_left(view, left);
  for (const BulkReport& one : reports) add_to(report, one);
  report.reserved = window_begins[columns] - window_begins[windows];
  return report;
}

uint64_t rehash_by_windows(const GridView& from, const GridView& to, uint32_t threads) {
  // Each row of new pages gathers its keys from the few old pages that can hold them, and their stashes: no two threads touch one page.
  constexpr uint32_t kRowPages = 2 * kWindowPages;
  std::vector<std::vector<uint64_t>> left((to.page_count + kRowPages - 1) / kRowPages);
  parallel_for(to.page_count, kRowPages, [&](size_t begin, size_t end) {
    WindowWriter writer(to);
    const uint32_t first = source_pages(uint32_t(begin), to.page_count, from.page_count).first;
    const uint32_t last = source_pages(uint32_t(end - 1), to.page_count, from.page_count).last;
    uint64_t mine[kQrySlotsPerPage + 1];
    uint32_t gathered = kQryReservedKey;  // first page of the group whose stash was read last
    for (uint32_t source = first; source <= last; ++source) {
      const uint64_t* words = from.words + size_t{source} * kQryPageWords;
      const bool whole = source != first && source != last;
      size_t count = 0;
      for (uint32_t i = kFirstSlotWord; i < kQryOwnWords; ++i) {
        mine[count] = words[i];
        if (whole) {
          count += !is_empty(words[i]);
        } else {
          const uint32_t page = qry_page(low(words[i]), to.page_count);
          count += !is_empty(words[i]) && page >= begin && page < end;
        }
      }
      writer.add(mine, count);
      const QryGroup group = qry_group(source, from.page_count);
      if (group.first == gathered || !any_in_stash(words)) continue;
      gathered = group.first;
      for_stash(from, group, [&](const uint64_t* slot) {
        const uint32_t page = qry_page(low(*slot), to.page_count);
        if (!is_empty(*slot) && page >= begin && page < end) writer.add(slot, 1);
      });
    }
    writer.finish();
    left[begin / kRowPages] = writer.take_left();
  }, threads);
  return place_left(to, left).full;
}

}  // namespace quarry::hashgrid::detail
