// SPDX-License-Identifier: Apache-2.0
// pages.cpp - radix partition of a batch into windows of pages that fit the L2 cache, then one thread a window.
#include "hashgrid/pairs/host/pages.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <vector>

#include "base/memory_source.hpp"
#include "base/parallel.hpp"
#include "hashgrid/pairs/host/bucket_kernels.hpp"
#include "hashgrid/pairs/host/cuckoo.hpp"

namespace quarry::hashgrid::detail {
namespace {

constexpr uint32_t kWindowPages = 8;     // 256 KiB: a quarter of an L2 cache, besides streamed keys
constexpr uint32_t kFewWindows = 32;     // fewer are unevenly shared among threads
constexpr uint32_t kMostWindows = 1024;  // more streams than a core's caches and TLB keep open
constexpr size_t kPageKeysToShare = size_t{1} << 11;
constexpr size_t kManyMoves = 60;     // in one page, for which it pays to compute the other places of all its keys
constexpr size_t kManyPerPage = 256;  // keys of a batch, for which it pays to scan the page first
constexpr size_t kKeysPerChunk = size_t{1} << 14;  // split at a time: 96 KiB, in the second-level cache

// The pages of a window, as a power of two.
uint32_t window_shift(uint32_t page_count) {
  uint32_t shift = 0;
  while ((1u << shift) < kWindowPages && (page_count >> (shift + 1)) >= kFewWindows) ++shift;
  while (((page_count - 1) >> shift) + 1 > kMostWindows) ++shift;
  return shift;
}

// Uninitialised words: from the heap, which keeps them for the next batch, or directly from the system where larger
// pages pay off.
class Words {
 public:
  explicit Words(size_t count) {
    constexpr size_t kLarge = size_t{8} << 20;
    if (count * sizeof(uint64_t) >= kLarge) {
      if (const auto block = host_memory_source().allocate(count * sizeof(uint64_t), "hash grid split"))
        block_ = *block;
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

// Writes pairs into a run of pages that this thread owns.
class WindowWriter {
 public:
  WindowWriter(const GridView& view) : view_(view), kernels_(bucket_kernels()) {}

  // For a large batch: resets a page without a key to never used, so that it does not keep marks of erased keys. Reads
  // these pages.
  void renew(uint32_t first_page, uint32_t last_page) {
    uint32_t stash_of = kNoSlot;  // first page of the group that was checked last
    bool stash_empty = false;
    for (uint32_t number = first_page; number < last_page; ++number) {
      uint64_t* const page = view_.words + size_t{number} * kQryPageWords;
      if (kernels_.live(page + kFirstSlotWord, kQryOwnWords - kFirstSlotWord) != 0) continue;
      if (any_in_stash(page)) {
        const QryStashGroup group = qry_stash_group(number, view_.page_count);
        if (group.first != stash_of) {
          stash_of = group.first;
          stash_empty = true;
          for_stash(view_, group, [&](const uint64_t* slot) { stash_empty = stash_empty && is_empty(*slot); });
        }
        if (!stash_empty) continue;
      }
      std::fill_n(page, kFirstSlotWord, uint64_t{0});
      std::fill(page + kFirstSlotWord, page + kQryOwnWords, kNeverUsed);
    }
  }

  // Stored keys and values, in rising order of `pairs`, none with a reserved key. Of equal keys the first stays.
  void add(const uint64_t* pairs, size_t count) {
    uint32_t keys[kKeysPerBlock], sectors[2][kKeysPerBlock];
    uint8_t open[kKeysPerBlock];
    const auto prepare = [&](size_t block, uint32_t which) {
      const size_t in_block = std::min(kKeysPerBlock, count - block);
      for (size_t j = 0; j < in_block; ++j) keys[j] = low(pairs[block + j]);
      kernels_.home_buckets(keys, in_block, view_.page_count, sectors[which]);
      for (size_t j = 0; j < in_block; ++j)
        __builtin_prefetch(view_.words + size_t{sectors[which][j]} * kQrySlotsPerSector, 1);
    };
    uint32_t which = 0;
    if (count != 0) prepare(0, which);
    for (size_t block = 0; block < count; block += kKeysPerBlock, which ^= 1) {
      if (block + kKeysPerBlock < count) prepare(block + kKeysPerBlock, which ^ 1);
      const size_t in_block = std::min(kKeysPerBlock, count - block);
      // By (I) of view_impl.hpp no key went past a bucket with a never-used slot: a key that is not in it is absent.
      const PlacedInGroup placed = kernels_.place(view_.words, pairs + block, sectors[which], in_block, open);
      report_.present += placed.present;
      report_.inserted += in_block - placed.present - placed.open;
      put_beyond(pairs + block, sectors[which], open, placed.open);
    }
  }

  // The same for pairs without duplicates, for the pages from `first_page` on. The pages were not written since they
  // were cleared, and no other thread adds to them. Sorted pairs come in runs for one bucket: reading its four slots at
  // once would wait for the last write.
  void add_new(const uint64_t* pairs, size_t count, uint32_t first_page) {
    const uint32_t first_sector = first_page * kQrySectorsPerPage;
    uint32_t keys[kKeysPerBlock], sectors[kKeysPerBlock];
    uint8_t open[kKeysPerBlock];
    for (size_t block = 0; block < count; block += kKeysPerBlock) {
      const size_t in_block = std::min(kKeysPerBlock, count - block);
      for (size_t j = 0; j < in_block; ++j) keys[j] = low(pairs[block + j]);
      kernels_.home_buckets(keys, in_block, view_.page_count, sectors);
      size_t opens = 0;
      uint64_t nowhere = 0;
      for (size_t j = 0; j < in_block; ++j) {
        uint8_t& filled = filled_[sectors[j] - first_sector];
        const bool room = filled < kQrySlotsPerSector;
        *(room ? view_.words + size_t{sectors[j]} * kQrySlotsPerSector + filled : &nowhere) = pairs[block + j];
        filled = uint8_t(filled + room);
        open[opens] = uint8_t(j);
        opens += !room;
      }
      report_.inserted += in_block - opens;
      // Second buckets wait until all home buckets have their final keys: see finish().
      for (size_t n = 0; n < opens; ++n) later_.push_back(pairs[block + open[n]]);
    }
  }
  void begin_new(uint32_t pages) { filled_.assign(size_t{pages} * kQrySectorsPerPage, 0); }

  // Places the waiting pairs by moves in these pages. Call it after all their pairs were added. State bits stay valid
  // but not always exact: a key that moved home leaves its bit behind, as an erase would.
  void finish() {
    for (size_t block = 0; block < later_.size(); block += kKeysPerBlock)
      add(later_.data() + block, std::min(kKeysPerBlock, later_.size() - block));
    later_.clear();
    if (waiting_.empty()) return;
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const Waiting& a, const Waiting& b) { return a.page < b.page; });
    const auto moves = std::make_unique<PageCuckoo>();
    const auto scratch = std::make_unique<CuckooScratch>();
    for (size_t i = 0; i < waiting_.size();) {
      const uint32_t number = waiting_[i].page;
      uint64_t* const page = view_.words + size_t{number} * kQryPageWords;
      // For many keys, the other places of all keys at once; for few, only those that a search visits.
      size_t end = i;
      while (end < waiting_.size() && waiting_[end].page == number) ++end;
      const bool many = end - i >= kManyMoves;
      if (many) moves->begin(page, view_.page_count);
      else scratch->reset();
      for (; i < waiting_.size() && waiting_[i].page == number; ++i) {
        const uint64_t pair = waiting_[i].pair;
        const QryProbeSequence probes = qry_probe_sequence(low(pair), view_.page_count);
        // Later duplicates of a key have waited with it.
        if (locate<PrivateWords, SharedWords>(page, view_, probes, low(pair)).slot != nullptr) {
          ++report_.present;
          continue;
        }
        const uint32_t to = many ? moves->make_room(probes) : make_room(page, probes, view_.page_count, *scratch);
        if (to == kNoSlot) {
          left_.push_back(pair);
          continue;
        }
        if (many) {
          moves->put(to, pair, probes);
        } else {
          page[to] = pair;
          note_place(page, probes, to);
        }
        ++report_.inserted;
      }
    }
    waiting_.clear();
  }

  const BulkReport& report() const { return report_; }
  // Pairs that no moves could help: for the stash.
  std::vector<uint64_t> take_left() { return std::move(left_); }

 private:
  struct Waiting {
    uint64_t pair;
    uint32_t page;
  };

  // Keys whose home bucket has neither the key nor a never-used slot, one after the other. No moves yet, no place
  // outside the two buckets.
  void put_beyond(const uint64_t* pairs, const uint32_t* sectors, const uint8_t* open, size_t count) {
    if (count == 0) return;  // otherwise gcc 12 at -O2 warns of `keys` read uninitialised
    uint32_t keys[kKeysPerBlock], second_buckets[kKeysPerBlock];
    for (size_t n = 0; n < count; ++n) keys[n] = low(pairs[open[n]]);
    kernels_.second_buckets(keys, count, view_.page_count, second_buckets);
    uint64_t nowhere = 0;
    for (size_t n = 0; n < count; ++n) {
      const uint64_t pair = pairs[open[n]];
      const uint32_t home = sectors[open[n]], key = keys[n], sector = home % kQrySectorsPerPage;
      uint64_t* const page = view_.words + size_t{home / kQrySectorsPerPage} * kQryPageWords;
      const uint32_t state = bucket_state<PrivateWords>(page, sector);
      if ((state & kQryBucketToStash) != 0 && in_stash(key)) {
        ++report_.present;
        continue;
      }
      const InBucket at_home = in_bucket(home, key), beyond = in_bucket(second_buckets[n], key);
      // (A duplicate of this key, just placed, may be in either.)
      const bool hit = at_home.hit || beyond.hit;
      const bool stays_home = at_home.empty != nullptr;
      uint64_t* const to = stays_home ? at_home.empty : beyond.empty;
      const bool placed = !hit && to != nullptr;
      *(placed ? to : &nowhere) = pair;
      page[qry_state_word(sector)] |= uint64_t{placed && !stays_home} << qry_state_shift(sector);
      report_.present += hit;
      report_.inserted += placed;
      if (!hit && !placed) waiting_.push_back({pair, home / kQrySectorsPerPage});
    }
  }

  struct InBucket {
    bool hit;
    uint64_t* empty;  // the first empty slot, or null
  };
  InBucket in_bucket(uint32_t sector, uint32_t key) const {
    uint64_t* const bucket = view_.words + size_t{sector} * kQrySlotsPerSector;
    InBucket found{false, nullptr};
    for (uint32_t slot = kQrySlotsPerSector; slot-- > 0;) {
      found.hit |= low(bucket[slot]) == key;
      found.empty = is_empty(bucket[slot]) ? bucket + slot : found.empty;
    }
    return found;
  }
  [[gnu::noinline]] bool in_stash(uint32_t key) const {
    return locate_in_stash<SharedWords>(view_, qry_probe_sequence(key, view_.page_count), key).slot != nullptr;
  }

  const GridView view_;
  const BucketKernels& kernels_;
  BulkReport report_;
  std::vector<Waiting> waiting_;
  std::vector<uint64_t> left_;
  std::vector<uint8_t> filled_;  // by sector: slots taken, from the first on
  std::vector<uint64_t> later_;
};

// Windows of different threads share the stash. So one thread fills it, window after window, and the bytes are always
// the same. All possible moves for these pairs were made.
BulkReport place_left(const GridView& view, const std::vector<std::vector<uint64_t>>& left) {
  BulkReport report;
  for (const std::vector<uint64_t>& pairs : left) {
    for (const uint64_t pair : pairs) {
      const QryProbeSequence probes = qry_probe_sequence(low(pair), view.page_count);
      uint64_t* const page = view.words + size_t{probes.page} * kQryPageWords;
      const bool there = locate<PrivateWords, SharedWords>(page, view, probes, low(pair)).slot != nullptr;
      add(report, there ? Outcome::present : place_behind(page, view, probes, pair));
    }
  }
  return report;
}

}  // namespace

std::optional<BulkReport> insert_by_windows(const GridView& view, const uint32_t* keys, const uint32_t* values,
                                            size_t count, uint32_t threads) {
  // A small batch is not worth sharing or sorting.
  const bool small = count < kPageKeysToShare;
  if (small) threads = 1;
  const uint32_t shift = small ? 31 : window_shift(view.page_count);
  const uint32_t windows = ((view.page_count - 1) >> shift) + 1;
  const size_t chunks = (count + kKeysPerChunk - 1) / kKeysPerChunk;
  const Words pairs(count);
  if (pairs.data() == nullptr || count > 0xFFFFFFFFu) return {};
  // Each chunk is sorted by window on its own, in its own part of `pairs`; `begins` is where each window's part of it
  // begins. The column past the last window takes refused pairs.
  const size_t columns = size_t{windows} + 1;
  std::vector<uint32_t> begins(chunks * (columns + 1), 0);
  parallel_for(
      chunks, 1,
      [&](size_t first_chunk, size_t last_chunk) {
        const std::unique_ptr<uint32_t[]> stored(new uint32_t[std::min(count, kKeysPerChunk)]);
        const std::unique_ptr<uint16_t[]> window(new uint16_t[std::min(count, kKeysPerChunk)]);
        std::vector<uint32_t> cursors(columns + 1);
        for (size_t chunk = first_chunk; chunk < last_chunk; ++chunk) {
          const size_t first = chunk * kKeysPerChunk, in_chunk = std::min(count, first + kKeysPerChunk) - first;
          bool some_refused = bucket_kernels().store(keys + first, in_chunk, view.locality, stored.get());
          for (size_t i = 0; i < in_chunk; ++i) {
            window[i] = uint16_t(qry_page(stored[i], view.page_count) >> shift);
            some_refused = some_refused || values[first + i] == kQryReservedValue;
          }
          for (size_t i = 0; i < in_chunk && some_refused; ++i)
            if (keys[first + i] == kQryReservedKey || values[first + i] == kQryReservedValue)
              window[i] = uint16_t(windows);
          uint32_t* const row = begins.data() + chunk * (columns + 1);
          for (size_t i = 0; i < in_chunk; ++i) ++row[window[i] + 1];
          row[0] = uint32_t(first);
          for (size_t column = 0; column < columns; ++column) row[column + 1] += row[column];
          std::copy_n(row, columns + 1, cursors.begin());
          for (size_t i = 0; i < in_chunk; ++i)
            pairs.data()[cursors[window[i]]++] = pair_word(stored[i], values[first + i]);
        }
      },
      threads);

  std::vector<BulkReport> reports(windows);
  std::vector<std::vector<uint64_t>> left(windows);
  parallel_for(
      windows, 1,
      [&](size_t first, size_t last) {
        for (size_t window = first; window < last; ++window) {
          WindowWriter writer(view);
          const auto first_page = uint32_t(window << shift),
                     last_page = std::min(view.page_count, first_page + (1u << shift));
          if (count / view.page_count >= kManyPerPage) writer.renew(first_page, last_page);
          for (size_t chunk = 0; chunk < chunks; ++chunk) {
            const uint32_t* const row = begins.data() + chunk * (columns + 1) + window;
            writer.add(pairs.data() + row[0], row[1] - row[0]);
          }
          writer.finish();
          reports[window] = writer.report();
          left[window] = writer.take_left();
        }
      },
      threads);
  BulkReport report = place_left(view, left);
  for (const BulkReport& one : reports) add(report, one);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const uint32_t* const row = begins.data() + chunk * (columns + 1) + windows;
    report.reserved += row[1] - row[0];
  }
  return report;
}

uint64_t rehash_by_windows(const GridView& from, const GridView& to, uint32_t threads) {
  // Each run of new pages reads the few old pages that can hold its keys, and their stashes: no two threads touch one
  // page.
  const uint32_t row_pages = std::clamp(to.page_count / 16, 1u, 2 * kWindowPages);
  std::vector<std::vector<uint64_t>> left((to.page_count + row_pages - 1) / row_pages);
  parallel_for(
      to.page_count, row_pages,
      [&](size_t begin, size_t end) {
        WindowWriter writer(to);
        writer.begin_new(uint32_t(end - begin));
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
          writer.add_new(mine, count, uint32_t(begin));
          const QryStashGroup group = qry_stash_group(source, from.page_count);
          if (group.first == gathered || !any_in_stash(words)) continue;
          gathered = group.first;
          for_stash(from, group, [&](const uint64_t* slot) {
            const uint32_t page = qry_page(low(*slot), to.page_count);
            if (!is_empty(*slot) && page >= begin && page < end) writer.add_new(slot, 1, uint32_t(begin));
          });
        }
        writer.finish();
        left[begin / row_pages] = writer.take_left();
      },
      threads);
  return place_left(to, left).full;
}

}  // namespace quarry::hashgrid::detail
