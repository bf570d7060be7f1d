// SPDX-License-Identifier: Apache-2.0
// tasks.cpp - the scheduler: worker threads, the largest item first, and a watch over the memory of this process and
// its children.
#include "app/batch/tasks.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "app/console/terminal.hpp"
#include "base/parallel.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;
using std::chrono::milliseconds;

// The pause between two checks of the memory in use. A thread that fills fresh memory takes some 2 MiB a millisecond.
constexpr milliseconds kWatchPause{20}, kWatchPauseNearLimit{4};

// The number after `key` in a file of lines "key number". An empty key means a file that holds only a number. 0: no
// file or no number.
uint64_t number_in(const char* file, const std::string& key) {
  std::ifstream in(file);
  if (!key.empty())
    for (std::string word; in >> word && word != key;) in.ignore(1 << 20, '\n');
  uint64_t number = 0;
  return in >> number ? number : 0;
}

class Scheduler {
 public:
  Scheduler(std::span<const BatchItem> items, const BatchOptions& options, const RunItem& run, const ItemEnded& ended)
      : items_(items), options_(options), run_(run), ended_(ended), free_threads_(std::max(1u, options.threads)) {
    waiting_.resize(items.size());
    std::iota(waiting_.begin(), waiting_.end(), size_t{0});
    if (!options.in_order) std::ranges::stable_sort(waiting_, std::greater(), [&](size_t i) { return items[i].work; });
    for (const BatchItem& item : items) work_left_ += std::max<uint64_t>(1, item.work);
  }

  void go() {
    base_memory_ = memory_in_use();
    std::jthread watch([this](const std::stop_token& stop) { watch_until(stop); });
    std::vector<std::jthread> workers;
    const size_t count = std::min<size_t>(std::max(1u, options_.threads), items_.size());
    for (size_t i = 0; i < count; ++i) workers.emplace_back([this] { serve(); });
    workers.clear();  // joins
  }

 private:
  struct Running {
    size_t item = 0;
    uint64_t memory = 0;
    uint64_t number = 0;   // its place in the order of beginning
    bool alone = false;    // nothing else may run at the same time
    bool saving = false;   // it runs in the way that takes less memory
    bool company = false;  // another item ran at the same time at some point
    bool stopped_for_memory = false;
    uint64_t memory_seen = 0;
    std::atomic<bool> cancel{false};
  };

  bool cancelled() const { return options_.cancel && options_.cancel->load(std::memory_order_relaxed); }

  // The next item to begin now, if any. `again`: it was stopped before, and runs alone.
  bool next(size_t& item, bool& again) {
    if (running_.empty() && !again_.empty() && waiting_.empty()) {
      item = again_.front();
      again_.pop_front();
      return again = true;
    }
    if (waiting_.empty() || (!running_.empty() && running_.front()->alone)) return false;
    item = waiting_.front();
    again = false;
    uint64_t reserved = base_memory_;
    for (const auto& other : running_) reserved += other->memory;
    if (options_.memory_bytes > 0 && !running_.empty() && reserved + items_[item].memory_bytes > options_.memory_bytes)
      return false;
    waiting_.pop_front();
    return true;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      size_t item = 0;
      bool again = false, taken = false;
      changed_.wait(lock, [&] { return over() || (taken = free_threads_ > 0 && next(item, again)); });
      if (!taken) {
        changed_.notify_all();
        return;
      }
      auto running = std::make_shared<Running>();
      running->item = item;
      running->memory = items_[item].memory_bytes;
      running->number = ++begun_;
      running->alone = again;
      running->saving = items_[item].saves_memory || (again && items_[item].can_save_memory);
      running->company = !running_.empty();
      for (const auto& other : running_) other->company = true;
      running->cancel = cancelled();
      const uint64_t work = std::max<uint64_t>(1, items_[item].work);
      const auto part = uint32_t(std::min<double>(
          free_threads_, std::max(1.0, std::round(options_.threads * double(work) / double(work_left_)))));
      const uint32_t threads = again ? free_threads_ : part;
      free_threads_ -= threads;
      running_.push_back(running);
      lock.unlock();
      Result<void> result;
      {
        const ThreadShare share(threads);
        result = run_(item, {threads, &running->cancel, running->saving});
      }
      // Memory that an item leaves behind in the allocator would count against the next ones.
      if (used_.load(std::memory_order_relaxed) > options_.memory_bytes / 2) malloc_trim(0);
      lock.lock();
      free_threads_ += threads;
      std::erase(running_, running);
      const bool for_memory =
          !result && result.error().code == ErrorCode::cancelled && running->stopped_for_memory && !cancelled();
      // An item that found too little room may find more alone, or may have a way that takes less.
      const bool too_large =
          !result && result.error().code == ErrorCode::out_of_memory && options_.memory_bytes > 0 && !cancelled();
      if ((for_memory && !running->alone) ||
          ((for_memory || too_large) && items_[item].can_save_memory && !running->saving) ||
          (too_large && running->company)) {
        again_.push_back(item);
      } else {
        if (for_memory)
          result = fail(ErrorCode::out_of_memory,
                        fmt::format("needs more memory than there is for it: with {} in "
                                    "use, of which {} before it began, it passed --memory {} and was stopped; "
                                    "raise --memory, or make it coarser or smaller",
                                    bytes_text(running->memory_seen), bytes_text(base_memory_),
                                    bytes_text(options_.memory_bytes)));
        work_left_ -= work;
        lock.unlock();
        {
          const std::scoped_lock one(ended_mutex_);
          if (!ended_(item, result)) stop_ = true;
        }
        lock.lock();
      }
      changed_.notify_all();
    }
  }
  bool over() const { return stop_ || cancelled() || (waiting_.empty() && again_.empty() && running_.empty()); }

  void watch_until(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(used_ > options_.memory_bytes / 2 ? kWatchPauseNearLimit : kWatchPause);
      const bool all = cancelled();
      used_ = options_.memory_bytes > 0 ? memory_in_use() : 0;
      if (!all && used_ <= options_.memory_bytes) continue;
      const std::scoped_lock lock(mutex_);
      if (all) {
        for (const auto& r : running_) r->cancel = true;
        changed_.notify_all();
        continue;
      }
      // A stopped item gets time to end before a second one is stopped.
      if (running_.empty() || std::ranges::any_of(running_, [](const auto& r) { return r->stopped_for_memory; }))
        continue;
      malloc_trim(0);
      const uint64_t after = memory_in_use();
      if (after <= options_.memory_bytes) continue;
      Running& last = **std::ranges::max_element(running_, {}, [](const auto& r) { return r->number; });
      last.alone = last.alone || running_.size() == 1;
      last.stopped_for_memory = true;
      last.memory_seen = after;
      last.cancel = true;
    }
  }

  std::span<const BatchItem> items_;
  const BatchOptions& options_;
  const RunItem& run_;
  const ItemEnded& ended_;
  std::mutex mutex_, ended_mutex_;
  std::condition_variable changed_;
  std::deque<size_t> waiting_, again_;
  std::vector<std::shared_ptr<Running>> running_;
  uint32_t free_threads_;
  uint64_t work_left_ = 0, base_memory_ = 0, begun_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> used_{0};  // the watch's last value
};

}  // namespace

void run_batch(std::span<const BatchItem> items, const BatchOptions& options, const RunItem& run,
               const ItemEnded& ended) {
  if (!items.empty()) Scheduler(items, options, run, ended).go();
}

uint64_t default_memory_limit() {
  uint64_t available = number_in("/proc/meminfo", "MemAvailable:") * 1024;
  if (const uint64_t group = number_in("/sys/fs/cgroup/memory.max", ""); group > 0) {
    const uint64_t current = number_in("/sys/fs/cgroup/memory.current", "");
    available = std::min(available, group > current ? group - current : 0);
  }
  return available / 4 * 3;
}

}  // namespace quarry::app
