// SPDX-License-Identifier: Apache-2.0
// split.cpp - counting and writing a batch by region.
#include "hashgrid/paged/split.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/parallel.hpp"
#include "hashgrid/pairs/host/operations.hpp"
#include "hashgrid/pairs/page_passes.hpp"

namespace quarry::hashgrid {
namespace {

constexpr size_t kLeastPiece = size_t{1} << 15;  // keys for which a thread is worth its start
constexpr size_t kBlock = 4096;                  // keys that stay there while they are looked at twice
constexpr size_t kCloseRegions = 4096;           // counters that stay in a core's nearest cache

uint32_t region_of(uint64_t key) { return uint32_t(key >> 32); }

GridView view_of(const MemoryBlock& block, uint32_t pages) {
  return {static_cast<uint64_t*>(block.data), pages, 0, kQryPlain};
}

}  // namespace

RegionSplit::~RegionSplit() {
  for (const Piece& piece : pieces_)
    if (piece.table.data != nullptr) host_memory_source().release(piece.table);
}

// The numbers of a piece's regions get a table of so many pages.
Result<void> RegionSplit::widen(Piece& piece, uint32_t pages) {
  const auto pairs = make_host_pairs(1);
  for (;; pages *= 2) {
    QRY_TRY_ASSIGN(const MemoryBlock fresh,
                   host_memory_source().allocate(size_t{pages} * kQryPageBytes, "regions of a batch"));
    const GridView view = view_of(fresh, pages);
    for (uint32_t page = 0; page < pages; ++page) detail::clear_page(view.words + size_t{page} * kQryPageWords);
    bool all = true;
    for (uint32_t number = 0; all && number < piece.regions.size(); ++number)
      all =
          piece.regions[number] == kQryReservedKey || insert(view, piece.regions[number], number) == Outcome::inserted;
    if (!all) {
      host_memory_source().release(fresh);
      continue;
    }
    if (piece.table.data != nullptr) host_memory_source().release(piece.table);
    piece.table = fresh;
    piece.table_pages = pages;
    return {};
  }
}

Result<void> RegionSplit::count(Span<const uint64_t> keys, Piece& piece) {
  // Block by block, so that the keys are read from memory once: which regions, then how many keys of each.
  const size_t most_counters = std::max(kCloseRegions, (piece.end - piece.begin) / 16);
  uint32_t least = UINT32_MAX, most = 0;
  for (size_t block = piece.begin; block < piece.end && piece.close; block += kBlock) {
    const size_t block_end = std::min(block + kBlock, piece.end);
    uint32_t first = least, last = most;
    for (size_t i = block; i < block_end; ++i) {
      first = std::min(first, region_of(keys[i]));
      last = std::max(last, region_of(keys[i]));
    }
    piece.close = last - first < most_counters;
    if (!piece.close) break;
    if (first < least) piece.next.insert(piece.next.begin(), piece.next.empty() ? 0 : least - first, 0);
    piece.next.resize(size_t{last - first} + 1, 0);
    least = first;
    most = last;
    for (size_t i = block; i < block_end; ++i) ++piece.next[region_of(keys[i]) - least];
  }
  piece.first_region = least;
  if (piece.close) return {};
  piece.next.clear();
  QRY_TRY(widen(piece, 1));
  uint32_t last = 0, number = 0;
  for (size_t i = piece.begin; i < piece.end; ++i) {
    const uint32_t region = region_of(keys[i]);
    if (i == piece.begin || region != last) {
      QRY_TRY_ASSIGN(number, number_new(piece, region));
      last = region;
    }
    ++piece.next[number];
  }
  return {};
}

// The number of a region, which gets one if it has none.
Result<uint32_t> RegionSplit::number_new(Piece& piece, uint32_t region) {
  const uint32_t next = uint32_t(piece.regions.size());
  uint32_t number = next;
  if (region == kQryReservedKey) {
    if (piece.reserved_number != UINT32_MAX) return piece.reserved_number;
    piece.reserved_number = next;
  } else {
    Outcome outcome = find_or_insert(view_of(piece.table, piece.table_pages), region, &number);
    if (outcome == Outcome::present) return number;
    // A wider table takes the region with the others.
    if (outcome == Outcome::full) {
      piece.regions.push_back(region);
      auto widened = widen(piece, piece.table_pages * 2);
      piece.regions.pop_back();
      QRY_TRY(widened);
    }
  }
  piece.regions.push_back(region);
  piece.next.push_back(0);
  return next;
}

Result<void> RegionSplit::plan(Span<const uint64_t> keys, uint32_t threads) {
  threads_ = std::max(1u, threads);
  const size_t count_all = keys.size(), pieces = std::clamp<size_t>(count_all / kLeastPiece, 1, threads_);
  parts_.clear();
  for (const Piece& piece : pieces_)
    if (piece.table.data != nullptr) host_memory_source().release(piece.table);
  pieces_.assign(pieces, Piece{});
  if (count_all == 0) return {};
  std::mutex mutex;
  Result<void> result;
  parallel_for(
      pieces, 1,
      [&](size_t begin, size_t end) {
        for (size_t p = begin; p < end; ++p) {
          pieces_[p].begin = count_all / pieces * p;
          pieces_[p].end = p + 1 == pieces ? count_all : count_all / pieces * (p + 1);
          if (auto ok = count(keys, pieces_[p]); !ok) {
            const std::lock_guard lock(mutex);
            result = ok;
          }
        }
      },
      threads_);
  QRY_TRY(result);

  struct Entry {
    uint32_t region, piece, number;
  };
  std::vector<Entry> entries;
  for (uint32_t p = 0; p < pieces; ++p)
    for (uint32_t number = 0; number < pieces_[p].next.size(); ++number)
      if (pieces_[p].next[number] != 0)
        entries.push_back(
            {pieces_[p].close ? pieces_[p].first_region + number : pieces_[p].regions[number], p, number});
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.region != b.region ? a.region < b.region : a.piece < b.piece;
  });
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (parts_.empty() || parts_.back().region != entry.region) parts_.push_back({entry.region, at, 0});
    uint64_t& next = pieces_[entry.piece].next[entry.number];
    parts_.back().count += next;
    at += std::exchange(next, at);
  }
  return {};
}

void RegionSplit::write(Span<const uint64_t> keys, const uint32_t* values, uint32_t* keys_out, uint32_t* values_out,
                        uint32_t* positions_out) {
  parallel_for(
      pieces_.size(), 1,
      [&](size_t begin, size_t end) {
        for (size_t p = begin; p < end; ++p) {
          Piece& piece = pieces_[p];
          const ReadOnly<GridView> table{view_of(piece.table, piece.table_pages)};
          uint32_t last = 0, number = 0;
          for (size_t i = piece.begin; i < piece.end; ++i) {
            const uint32_t region = region_of(keys[i]);
            if (piece.close) {
              number = region - piece.first_region;
            } else if (i == piece.begin || region != last) {
              number = region == kQryReservedKey ? piece.reserved_number : find(table, region).value;
              last = region;
            }
            const uint64_t to = piece.next[number]++;
            keys_out[to] = uint32_t(keys[i]);
            if (values != nullptr) values_out[to] = values[i];
            if (positions_out != nullptr) positions_out[to] = uint32_t(i);
          }
        }
      },
      threads_);
}

}  // namespace quarry::hashgrid
