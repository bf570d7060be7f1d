// SPDX-License-Identifier: Apache-2.0
// partitioned.hpp - batches for a caller who is the only one to write to the table (readers may be about): each host
// thread has some of the pages, reads the whole batch and does the keys that fall to it, in order, by plain stores. A
// compare-and-swap costs a core some 7 ns, as much as all the rest; that each thread works out the place of every key,
// half a nanosecond.
//
// For few threads: kMostOwners. Not for batches of new keys, which pages.hpp splits by page. The same batch leaves the
// same bytes whatever the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid::detail {

constexpr uint32_t kMostOwners = 8;  // beyond, the keys of others cost a thread more than its own

// Erases the keys; of copies the first is `erased`, the others `absent`.
BulkReport erase_partitioned(const GridView& view, const uint32_t* keys, size_t count, uint32_t threads);

// What owners do with a key that is there: take over the batch's value, or tell the table's.
enum class Present : uint8_t { assign, tell };
// values[i] is read (assign), or written for keys that are there (tell). `absent`, empty before, gets the positions of
// keys that are not there, rising. The report counts assigned or present keys, and refused ones.
BulkReport visit_partitioned(const GridView& view, const uint32_t* keys, uint32_t* values, size_t count, Present what, uint32_t threads,
                       std::vector<uint32_t>& absent);

}  // namespace quarry::hashgrid::detail
