// SPDX-License-Identifier: Apache-2.0
// tasks.hpp - many independent pieces of work in one process: which of them run at once, on how many threads, in how
// much memory. Knows nothing of files and formats; conversion.hpp does the work, batch/log.hpp tells of it.
//
// The largest item goes first. An item gets the part of the threads that its work is of all that is left (at least
// one), so small items run side by side and a large one has the machine. An item starts when its estimated memory fits
// beside those of the running ones, or nothing runs. Estimates can be wrong, so a watch compares the memory that this
// process and its children really use with the limit, some hundred times a second: above it, the item that began last
// is stopped and begun again later, alone, and told to save memory if it can; one that is alone, and can do no more
// about it, then fails. Items that know beforehand what they take ask a MemoryBudget (base/memory_budget.hpp) and end
// with ErrorCode::out_of_memory where it does not fit: such a one too is begun again, alone or in its way that saves
// memory, before that is its result.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/memory_budget.hpp"
#include "base/result.hpp"

namespace quarry::app {

struct BatchItem {
  uint64_t work = 1;          // in any unit, the same for all
  uint64_t memory_bytes = 0;  // estimated peak
  // It has a slower way that heeds a limit; an item that was stopped for its memory is begun again that way.
  bool can_save_memory = false;
  bool saves_memory = false;  // begin it that way at once
};

struct BatchOptions {
  uint32_t threads = 1;                       // at most so many in all
  uint64_t memory_bytes = 0;                  // of this process and its children; 0: no limit
  bool in_order = false;                      // begin items in the order given, not the largest first
  const std::atomic<bool>* cancel = nullptr;  // begin nothing more, stop what runs
};

struct ItemContext {
  uint32_t threads = 1;                       // the part of this item; also set as ThreadShare of the calling thread
  const std::atomic<bool>* cancel = nullptr;  // to be heeded: set by the batch's cancel and by the watch
  bool save_memory = false;                   // heed the batch's limit, if that takes longer
};

// `run` is called on several threads at once, once for each item, or again after an ErrorCode::cancelled that the watch
// caused, or an ErrorCode::out_of_memory. `ended` hears its last result, from one thread at a time; false: begin
// nothing more (what runs is let finish). Items that were never begun are not told of. Returns when all is over.
using RunItem = std::function<Result<void>(size_t item, const ItemContext& context)>;
using ItemEnded = std::function<bool(size_t item, const Result<void>& result)>;
void run_batch(std::span<const BatchItem> items, const BatchOptions& options, const RunItem& run,
               const ItemEnded& ended);

// What a batch may take if nothing is said: three quarters of what the machine, or this process's control group, has
// free now.
uint64_t default_memory_limit();

}  // namespace quarry::app
