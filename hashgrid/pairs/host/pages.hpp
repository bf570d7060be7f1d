// SPDX-License-Identifier: Apache-2.0
// pages.hpp - pages that one host thread owns: batches split by page and built in its cache, and growth. No atomics:
// the caller has exclusive use of the table (BulkOperations::insert_exclusive, rehash). The same input gives the same
// bytes for any number of threads.
//
//   keys, values ─► counted by window ─► scattered, in order ─► each window by one thread:
//                                                                home bucket, else put(), else cuckoo moves
//
// A window is a run of pages that stays in a core's second-level cache. Literature: splitting by radix before building,
// so that every random access is a cache hit, follows S. Manegold, P. Boncz, M. Kersten, "Optimizing main-memory join
// on modern hardware", 2002.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid::detail {

// insert for a caller with exclusive use of the table. Of duplicates the first stays. Keys without a free place are
// placed by cuckoo moves: `full` of the report counts only keys that no move can help. Returns nothing without memory
// for the split (8 bytes a key).
std::optional<BulkReport> insert_by_windows(const GridView& view, const uint32_t* keys, const uint32_t* values,
                                            size_t count, uint32_t threads);

// Moves every pair of `from` into the cleared table `to`; returns how many found no place. Reads a page of `from` at
// most twice.
uint64_t rehash_by_windows(const GridView& from, const GridView& to, uint32_t threads);

}  // namespace quarry::hashgrid::detail
