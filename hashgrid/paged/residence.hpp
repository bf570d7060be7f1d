// SPDX-License-Identifier: Apache-2.0
// residence.hpp - where the children of a paged grid are: in the executor's memory, in the cache, or on their way; who
// leaves for whom; growth. paged_grid.cpp has what is done with them.
//
// The mutex guards where children are (Child::at, users, moving), the arena and the lists. A thread that waits for room
// holds no run itself, so one of the others always gets on. A child's content is touched by its users alone, or by the
// thread that has marked it as moving.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/memory_source.hpp"
#include "base/result.hpp"
#include "hashgrid/paged/arena.hpp"
#include "hashgrid/paged/child.hpp"
#include "hashgrid/paged/lane.hpp"

namespace quarry::hashgrid::paged {

inline size_t bytes_of(uint32_t pages) { return size_t{pages} * kQryPageBytes; }

struct Residence {
  MemorySource* host_memory = nullptr;  // of the cache
  BulkOperations<GridView>* host_pairs = nullptr;
  uint32_t locality = kQryPlain;
  uint64_t* pages_of_block = nullptr;  // the arena's pages

  std::mutex mutex;
  std::condition_variable moved;  // a child has come, left or been released
  Arena arena;
  std::vector<Child*> residents;                  // in no order
  std::vector<MemoryBlock> spare;                 // blocks of the cache that no child has
  std::vector<std::pair<Lane*, Child*>> copying;  // by begin_copy(), one a lane
  uint64_t clock = 0;
  std::atomic<uint64_t> bytes_in{0}, bytes_out{0}, loads{0}, evictions{0}, writebacks{0}, growths{0};

  Residence() = default;
  Residence(const Residence&) = delete;
  Residence& operator=(const Residence&) = delete;

  GridView view_at(uint32_t at, uint32_t pages, uint32_t phase) const {
    return {pages_of_block + size_t{at} * kQryPageWords, pages, phase, locality};
  }
  GridView view_in(const MemoryBlock& cached, uint32_t pages, uint32_t phase) const {
    return {static_cast<uint64_t*>(cached.data), pages, phase, locality};
  }
  // Where a job works: on the lane's executor, or without one by host threads in the cache.
  GridView view_of(const Lane* lane, const Child& child) const {
    return lane != nullptr ? view_at(child.at, child.pages, child.phase)
                           : view_in(child.cached, child.cached_pages, child.phase);
  }
  BulkOperations<GridView>& operations(Lane* lane) const { return lane != nullptr ? lane->pairs() : *host_pairs; }

  // A block of the cache of at least so many bytes, not cleared: one that is spare, or a new one. Errors: out_of_memory
  // (then all that were spare have been given back).
  Result<MemoryBlock> take_block(size_t size_bytes);
  // Makes it spare, unless it is none.
  void give_block(MemoryBlock& given);

  // A run of pages for a table. Others leave for it, those first that were needed longest ago. The caller holds no run.
  // Errors: full (more pages than the arena has), and those of copies to the cache.
  Result<uint32_t> take_run(Lane& lane, uint32_t pages);
  // `child` is resident and has no users. The lock is open while it is copied.
  Result<void> send_out(Lane& lane, Child& child, std::unique_lock<std::mutex>& lock);
  // With the lock: the child has this run now; it gives its run back.
  void settle(Child& child, uint32_t at, uint32_t pages);
  void leave(Child& child);
  // Without the lock; the content of the run is given up.
  void drop_run(Child& child);
  // The table is copied to the cache: if that has another content; in any case. It stays where it is, whatever fails.
  Result<void> write_back(Lane& lane, Child& child);
  Result<void> copy_out(Lane& lane, Child& child);
  // The two ends of a copy: the lane begins it, in a block of the cache that the child has or gets; it has waited for
  // it.
  Result<void> send_to_cache(Lane& lane, Child& child);
  void is_in_cache(Child& child);
  // Begins the same of a child that will leave soon, and returns: the lane goes on with its next part meanwhile. The
  // child stays where it is, and is on its way until end_copy(); who waits for a run ends his own copy first. What
  // fails is tried again when the child leaves.
  void begin_copy(Lane& lane, Child& child);
  // Waits for the copy that the lane has begun, if there is one.
  void end_copy(Lane& lane);
  // Makes a child with a table resident, with one more user.
  Result<void> bring(Lane& lane, Child& child);
  // An empty table for a child without one: in the executor's memory with one user, in the cache.
  Result<void> open(Lane& lane, Child& child, uint32_t pages);
  Result<void> open_in_cache(Child& child, uint32_t pages);
  // One user less.
  void release(Child& child);
  // The child has no table and no key any more.
  void drop_table(Child& child);

  // Whether a table of so many pages is justified for so many keys. Errors of the second: full.
  bool may_have(uint64_t pages, uint64_t keys) const;
  // Errors: full (a table of so many pages is more than the budget has room for).
  Result<void> check_budget(uint64_t pages) const;
  Result<void> check_growth(uint64_t pages, uint64_t keys) const;
  // The child's table gets at least so many pages, where it is. `begun`: the table may have a part of the batch that
  // the cache has not. There is no wait while the old table is held: without room beside it, it grows in the cache.
  Result<void> grow(Lane* lane, Child& child, uint64_t pages, uint64_t keys, bool begun);
  Result<void> grow_in_cache(Child& child, uint64_t pages, uint64_t keys);
};

}  // namespace quarry::hashgrid::paged
