// SPDX-License-Identifier: Apache-2.0
// pages.hpp - pages that one host thread has to itself: batches split by page and built in its cache, and growth. No
// atomics; the caller has the table to itself (BulkOperations::insert_exclusive, rehash). The same input gives the same
// bytes whatever the number of threads.
//
//   keys, values ─► counted by window ─► scattered, in order ─► each window by one thread:
//                                                                home bucket, else put(), else cuckoo moves
//
// A window is a row of pages that stays in a core's second-level cache. Literature: splitting by radix before building,
// so that every random access is a cache hit, follows S. Manegold, P. Boncz, M. Kersten, "Optimizing main-memory join
// on modern hardware", 2002.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid::detail {

// insert for a caller that has the table to itself. Of duplicates the first stays. Places by cuckoo moves what finds
// its places taken: `full` of the report counts only what no move can help. Nothing if there was no memory for the
// split (8 bytes a key).
std::optional<BulkReport> insert_by_windows(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, uint32_t threads);

// Moves every pair of `from` into the cleared table `to`; returns how many found no place. Reads a page of `from` twice
// at most.
uint64_t rehash_by_windows(const GridView& from, const GridView& to, uint32_t threads);

}  // namespace quarry::hashgrid::detail
