// SPDX-License-Identifier: Apache-2.0
// progress.hpp - how long work reports its progress and is cancelled.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string_view>

namespace quarry {

struct Progress {
  // Called from one thread at a time, at most some tens of times a second. fraction in 0..1, or negative if unknown.
  std::function<void(std::string_view stage, double fraction)> report;
  const std::atomic<bool>* cancel = nullptr;  // true: work ends soon with ErrorCode::cancelled, with no partial output

  void say(std::string_view stage, double fraction) const {
    if (report) report(stage, fraction);
  }
  bool cancelled() const { return cancel && cancel->load(std::memory_order_relaxed); }
};

// The progress of a stage that threads do in pieces. It reports at once, and then, from any of the threads, one at a
// time, fractions that rise, with a pause between two reports.
class PieceProgress {
 public:
  // `progress` and the text of `stage` must outlive this.
  PieceProgress(const Progress& progress, std::string_view stage,
                std::chrono::milliseconds pause = std::chrono::milliseconds(40))
      : progress_(progress), stage_(stage), pause_(pause) {
    progress_.say(stage_, 0);
    next_ = std::chrono::steady_clock::now() + pause_;
  }
  // The next `pieces` pieces take the stage from the fraction `from` to `to`. Not beside piece_done().
  void begin(size_t pieces, double from, double to) {
    pieces_ = pieces, from_ = from, to_ = to;
    done_ = said_ = 0;
  }
  // Call it after each piece. False if the work is to stop. Free-threaded.
  bool piece_done() {
    const size_t done = done_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (progress_.report && !progress_.cancelled()) {
      // While another thread reports, nobody else needs to.
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (lock.owns_lock() && done > said_ && std::chrono::steady_clock::now() >= next_) {
        said_ = done;
        progress_.say(stage_, from_ + (to_ - from_) * double(done) / double(pieces_));
        next_ = std::chrono::steady_clock::now() + pause_;
      }
    }
    return !progress_.cancelled();
  }
  bool cancelled() const { return progress_.cancelled(); }

 private:
  const Progress& progress_;
  std::string_view stage_;
  std::chrono::milliseconds pause_;
  size_t pieces_ = 1;
  double from_ = 0, to_ = 1;
  std::atomic<size_t> done_{0};
  std::mutex mutex_;
  size_t said_ = 0;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace quarry
