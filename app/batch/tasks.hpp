// SPDX-License-Identifier: Apache-2.0
// tasks.hpp - many independent pieces of work in one process: which of them run at once, on how many threads, in how
// much memory. It knows nothing of files and formats. conversion.hpp does the work; batch/log.hpp reports on it.
//
// The largest item goes first. An item gets a share of the threads, at least one: the share of its work in all
// remaining work. So small items run at the same time and a large one has the machine. An item starts when its
// estimated memory fits in addition to that of the running ones, or when nothing runs. Estimates can be wrong, so a
// watch compares the memory that this process and its children really use with the limit, some hundred times a second.
// Above the limit it stops the item that began last. That item is begun again later, alone, and told to save memory if
// it can. If an item runs alone and cannot use less, it fails. Items that know beforehand how much they need ask a
// MemoryBudget (base/memory_budget.hpp), and end with ErrorCode::out_of_memory if it does not fit. Such an item is also
// begun again, alone or in its way that saves memory, before that becomes its result.
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
  // The item has a slower way that keeps a limit. If it is stopped for its memory, it is begun again that way.
  bool can_save_memory = false;
  bool saves_memory = false;  // begin it that way at once
};

struct BatchOptions {
  uint32_t threads = 1;                       // at most this many in all
  uint64_t memory_bytes = 0;                  // of this process and its children; 0: no limit
  bool in_order = false;                      // begin items in the order given, not the largest first
  const std::atomic<bool>* cancel = nullptr;  // begin nothing more, stop running items
};

struct ItemContext {
  uint32_t threads = 1;                       // this item's share; also set as ThreadShare of the calling thread
  const std::atomic<bool>* cancel = nullptr;  // must be obeyed: set by the batch's cancel and by the watch
  bool save_memory = false;                   // keep the batch's limit, even if that takes longer
};

// `run` is called on several threads at once, once for each item. It is called again after an ErrorCode::cancelled that
// the watch caused, or an ErrorCode::out_of_memory. `ended` gets an item's last result, from one thread at a time. If
// it returns false, nothing more is begun and running items finish. Items that were never begun are not reported.
// Returns when everything has ended.
using RunItem = std::function<Result<void>(size_t item, const ItemContext& context)>;
using ItemEnded = std::function<bool(size_t item, const Result<void>& result)>;
void run_batch(std::span<const BatchItem> items, const BatchOptions& options, const RunItem& run,
               const ItemEnded& ended);

// The memory limit of a batch without --memory: three quarters of what the machine, or this process's control group,
// has free now.
uint64_t default_memory_limit();

}  // namespace quarry::app
