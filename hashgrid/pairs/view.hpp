// SPDX-License-Identifier: Apache-2.0
// view.hpp - one key, any thread: the operations on a table of the pairs layout as functions for host threads and CUDA
// kernels alike.
//
// Data flow: pairs/host and pairs/cuda (bulk calls) and the caller's own kernels -> these functions -> memory as in
// layout.h.
//
// CONCURRENCY CONTRACT (every line has a test in tests/hashgrid/)
//  * insert, assign, find, find_or_insert and erase may run concurrently on one grid, from any number of kernels,
//    streams and host threads (but not host threads and CUDA kernels on the same memory at once). Each is linearizable
//    per key.
//  * Each ends after a bounded number of probes: at most 2 buckets and 6 sectors of the stash, 32 slots. erase retries
//    its compare-and-swap for every assign to the same key that overtakes it; nothing else retries without bound.
//  * A find never returns a value that was not inserted for that key: key and value are read by one 64-bit load.
//  * Phases. An erase stamps the slot that it frees with the view's phase. insert claims never-used slots and slots
//    freed in *another* phase, never those freed in its own: two inserts of one key must not both succeed when a third
//    key's slot is freed between their probes. All operations that may overlap in time must carry the same phase. The
//    owner (Grid) begins the next phase after everything started before has finished. So slots freed by an erase are
//    reused from the next phase on, without a sweep.
//  * Full is an outcome: an insert that finds no place returns Outcome::full and has changed no key.
//  * Of duplicate keys in a batch exactly one is reported `inserted`, the others `present`; the host executor with one
//    thread makes it the first one. (assign: the last one to be applied stays, and any later find returns its value.)
#pragma once

#include <cstdint>

#include "hashgrid/pairs/layout.h"
#include "hashgrid/table/outcome.hpp"

namespace quarry::hashgrid {

// A trivially copyable reference to a table in memory that this thread or kernel can dereference. Owns nothing.
struct GridView {
  uint64_t* words = nullptr;      // page_count * kQryPageWords words, 32-byte aligned
  uint32_t page_count = 0;        // > 0
  uint32_t phase = 0;             // see the contract; never kQryPhaseNever
  uint32_t locality = kQryPlain;  // how keys are stored (table/key_hash.h): the same for all views of one table
};

// The bodies are in view_impl.hpp, included below.
// find: 1 sector for a key in its home bucket. An absent key also reads the bucket's state word (state words are 0.8%
// of the table and stay in cache).
QRY_HD inline Found find(const GridView& view, uint32_t key);
// The same in a table that nobody changes meanwhile.
QRY_HD inline Found find(const ReadOnly<GridView>& table, uint32_t key);
QRY_HD inline Outcome insert(const GridView& view, uint32_t key, uint32_t value);
QRY_HD inline Outcome assign(const GridView& view, uint32_t key, uint32_t value);
// On `present` or `inserted`, *value is the table's value for the key.
QRY_HD inline Outcome find_or_insert(const GridView& view, uint32_t key, uint32_t* value);
// On `erased`, *old (may be null) is the erased value.
QRY_HD inline Outcome erase(const GridView& view, uint32_t key, uint32_t* old = nullptr);

}  // namespace quarry::hashgrid

#include "hashgrid/pairs/view_impl.hpp"
