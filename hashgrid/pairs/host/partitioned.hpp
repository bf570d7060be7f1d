// SPDX-License-Identifier: Apache-2.0
// partitioned.hpp - batches for a caller that is the table's only writer (readers may run beside it). Each host thread
// owns some of the pages, reads the whole batch and processes the keys of its pages, in order, by plain stores. A
// compare-and-swap costs a core some 7 ns, as much as everything else. That each thread computes the place of every key
// costs half a nanosecond.
//
// For few threads: kMostOwners. Not for batches of new keys, which pages.hpp splits by page. The same batch leaves the
// same bytes for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hashgrid/pairs/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid::detail {

constexpr uint32_t kMostOwners = 8;  // with more, the other threads' keys cost a thread more than its own

// Erases the keys; of duplicates the first is `erased`, the others `absent`.
BulkReport erase_partitioned(const GridView& view, const uint32_t* keys, size_t count, uint32_t threads);

// What owners do with a present key: store the batch's value, or report the table's.
enum class Present : uint8_t { assign, tell };
// values[i] is read (assign), or written for present keys (tell). `absent`, empty before, gets the positions of absent
// keys, rising. The report counts assigned or present keys, and refused ones.
BulkReport visit_partitioned(const GridView& view, const uint32_t* keys, uint32_t* values, size_t count, Present what,
                             uint32_t threads, std::vector<uint32_t>& absent);

}  // namespace quarry::hashgrid::detail
