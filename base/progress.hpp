// SPDX-License-Identifier: Apache-2.0
// progress.hpp - how long work reports its progress and is cancelled.
#pragma once

#include <atomic>
#include <functional>
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

}  // namespace quarry
