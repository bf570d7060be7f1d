// SPDX-License-Identifier: Apache-2.0
// paged_grid.hpp - a table larger than its executor's memory: child tables, one for each region of the keys, of which
// as many as a budget allows are in that memory. The others are in a cache in host memory.
//
// A key has 64 bits: the region in the upper half, the key in the region's child table in the lower. A child is a table
// of the pairs layout (pairs/layout.h), of its own number of pages, and grows as it fills.
//
//   batch in host memory -> split by region -> lanes, side by side: pairs, child in | hashing | child, values out
//
// Each lane takes a region at a time. While one hashes, others copy in and out: that is why the lanes are several.
// Literature: Starfish; docs/literature.md has what is different. How to choose a budget: docs/paging.md.
//
// What moves. A batch's part that belongs to a resident child moves its pairs in, 8 bytes each. To a child that is
// not resident, its pages too, and those of the children that leave for it if they have changed since they came; but a
// part of few keys (PagedOptions::host_keys_per_page) is done by host threads in the cache, and nothing moves. The
// child that was needed longest ago leaves first. Parts of resident children are done before the others.
//
// Memory. Of the executor's: budget_bytes, taken at create() and never more, for children and for the lanes' staging.
// On top, while a bulk call runs, the operations' scratch: about 20 bytes for each staged pair (staged_pairs) and lane
// on CUDA. Of the host's: the children that have left or were changed in the cache (their pages; blocks of children
// that are gone are kept for others), and 8 bytes a key of the largest batch, find 12.
//
// Errors. A region's part of a batch is done as a whole or not at all, and the parts that were done before an error
// stay done: the message names the region that failed; repeating the call completes it. If the executor fails within a
// part, its child is taken back to its copy in the cache, or, if that is older than the call, brought to the host and
// the part finished there. Only if that fails as well may a part of the part be in. Nothing that an earlier call put is
// ever lost, as long as the executor's memory can be read.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hashgrid/executor.hpp"
#include "hashgrid/grid.hpp"
#include "hashgrid/paged/view.hpp"
#include "hashgrid/table/span.hpp"

namespace quarry::hashgrid {

constexpr uint64_t paged_key(uint32_t region, uint32_t key) { return uint64_t{region} << 32 | key; }

struct PagedOptions {
  uint64_t budget_bytes = 0;      // of the executor's memory: resident children and staging
  double max_load_factor = 0.80;  // of a child; beyond it the child grows
  Locality locality = Locality::plain;
  uint32_t lanes = 0;  // that work at the same time; 0: four on CUDA, else one
  // Of each of a lane's two buffers, 8 bytes a pair. 0: at most 2^20, and a quarter of the budget for all lanes. From
  // 2^18 on a device puts large parts page by page.
  uint64_t staged_pairs = 0;
  // A part of a batch with fewer keys than this for each page of its child is done by host threads if the child is not
  // resident. 0: every child is brought in.
  uint32_t host_keys_per_page = 64;
};

// A batch that is in the order of regions already: so many of the following keys are in that region.
struct RegionCount {
  uint32_t region = 0;
  uint64_t keys = 0;
};

struct PagedStats {
  uint64_t keys = 0;
  uint64_t regions = 0, resident = 0;  // children that have a table; of these, in the executor's memory
  uint64_t budget_bytes = 0;           // taken from the executor's memory, staging included
  uint64_t resident_bytes = 0;         // of it, pages of children
  uint64_t directory_bytes = 0;        // of the executor's memory, for view()
  uint64_t host_bytes = 0;             // of the host cache: blocks of children, those kept for others, batches
  // Since create():
  uint64_t bytes_in = 0, bytes_out = 0;               // copied to and from the executor's memory
  uint64_t loads = 0, evictions = 0, writebacks = 0;  // children that came, left, were copied out because they changed
  uint64_t growths = 0;                               // children that got a larger table
  uint64_t host_parts = 0;                            // parts of batches that host threads did in the cache
  uint64_t rescued_parts = 0;                         // parts that the executor failed and host threads finished
};

// Spans are host memory; of pinned memory (Executor::host_memory()) the overloads by region copy straight. One call at
// a time. Reserved: the region, the key in it and the value 0xFFFFFFFF. insert, assign and build leave such pairs out:
// all others are in, and the call fails with invalid_argument; find and erase count such keys as `reserved` or
// `absent`. Of equal keys in a batch one is inserted, as in Grid. Errors of every call: invalid_argument (lengths: then
// nothing is changed), full (a child that the budget cannot hold; keys chosen to crowd into few pages), out_of_memory,
// device; see above for what is done then.
class PagedGrid {
 public:
  // Empty. `memory` (null: the executor's own) gives the budget in one block, `host_memory` (null: the executor's
  // host_memory()) the cache. All three must outlive the grid. Errors: invalid_argument (a budget without room for
  // staging and a page: the message says what is needed), out_of_memory, device.
  static Result<PagedGrid> create(Executor& executor, const PagedOptions& options, MemorySource* memory = nullptr,
                                  MemorySource* host_memory = nullptr);
  PagedGrid(PagedGrid&&) noexcept;
  PagedGrid& operator=(PagedGrid&&) noexcept;
  ~PagedGrid();

  // After a part that failed twice (see above) an estimate, until that region is changed again.
  uint64_t size() const;
  PagedStats stats() const;
  bool is_resident(uint32_t region) const;
  // For kernels (CUDA) or threads of the caller's own: what is resident now, and what is away. Writes the directory in
  // the executor's memory if something has moved since the last call: 50 bytes a region at most, 32 KiB at least, which
  // are on top of the budget. Errors: out_of_memory, device.
  Result<PagedView> view();

  // insert: a key that is there keeps its value; assign: it gets the new one.
  Result<BulkReport> insert(Span<const uint64_t> keys, Span<const uint32_t> values);
  Result<BulkReport> assign(Span<const uint64_t> keys, Span<const uint32_t> values);
  // insert into an empty grid. Errors: also invalid_argument if it is not empty.
  Result<BulkReport> build(Span<const uint64_t> keys, Span<const uint32_t> values);
  Result<BulkReport> erase(Span<const uint64_t> keys);
  // values_out[i] = kQryReservedValue for an absent key.
  Result<BulkReport> find(Span<const uint64_t> keys, Span<uint32_t> values_out);

  // The same for keys in the order of regions: `parts` name each region once. Nothing is sorted or copied on the host.
  Result<BulkReport> insert(Span<const RegionCount> parts, Span<const uint32_t> keys, Span<const uint32_t> values);
  Result<BulkReport> assign(Span<const RegionCount> parts, Span<const uint32_t> keys, Span<const uint32_t> values);
  Result<BulkReport> build(Span<const RegionCount> parts, Span<const uint32_t> keys, Span<const uint32_t> values);
  Result<BulkReport> erase(Span<const RegionCount> parts, Span<const uint32_t> keys);
  Result<BulkReport> find(Span<const RegionCount> parts, Span<const uint32_t> keys, Span<uint32_t> values_out);

  // Takes all keys away. The memory is kept for the next.
  Result<void> clear();
  // The region's child will have room for so many keys at max_load_factor from its next change on, without growth.
  void reserve(uint32_t region, uint64_t keys);
  // Brings children in, from the first on, as many as the budget holds at once; others leave for them. Regions without
  // a child are passed over. Returns how many of these regions are resident now.
  Result<uint64_t> prefetch(Span<const uint32_t> regions);
  // Sends children out; those that changed are copied to the cache. evict_all: every one.
  Result<void> evict(Span<const uint32_t> regions);
  Result<void> evict_all();

 private:
  struct State;
  explicit PagedGrid(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::hashgrid
