// SPDX-License-Identifier: Apache-2.0
// in_order.hpp - pieces of something that several threads make, passed on one by one in their order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace quarry {

// Calls use(i, made) for each piece of [0, count) in order, on this thread, with what make(worker, i), a Result<T>,
// made of it. Each of `workers` threads makes one piece at a time, the next in order; at most `ahead` pieces are being
// made or wait, so that memory does not grow with their number. An error of `use` ends it all and is the result; what
// to do about one of `make` is for `use` to say, which gets it. When this returns, or throws what either throws, every
// thread has ended. Errors: those of `use`.
template <class T, class Make, class Use>
Result<void> make_in_order(size_t count, size_t workers, size_t ahead, const Make& make, const Use& use) {
  std::mutex lock;
  std::condition_variable changed;
  std::vector<std::optional<Result<T>>> made(count);
  std::exception_ptr thrown;
  size_t begun = 0, used = 0;
  bool stop = false;
  const auto work = [&](size_t worker) {
    std::unique_lock held(lock);
    for (;;) {
      changed.wait(held, [&] { return stop || begun == count || begun < used + ahead; });
      if (stop || begun == count) return;
      const size_t own = begun++;
      held.unlock();
      std::optional<Result<T>> result;
      std::exception_ptr failed;
      try {
        result.emplace(make(worker, own));
      } catch (...) {
        failed = std::current_exception();
      }
      held.lock();
      made[own] = std::move(result);
      if (failed && !thrown) thrown = failed;
      changed.notify_all();
    }
  };
  std::vector<std::jthread> threads;
  // However this ends, the threads end first.
  struct Stop {
    std::mutex& lock;
    std::condition_variable& changed;
    bool& stop;
    std::vector<std::jthread>& threads;
    ~Stop() {
      {
        const std::lock_guard held(lock);
        stop = true;
      }
      changed.notify_all();
      threads.clear();
    }
  } const stopping{lock, changed, stop, threads};
  threads.reserve(workers);
  for (size_t worker = 0; worker < workers; ++worker) threads.emplace_back([&work, worker] { work(worker); });
  for (size_t i = 0; i < count; ++i) {
    std::unique_lock held(lock);
    changed.wait(held, [&] { return made[i] || thrown; });
    if (thrown) std::rethrow_exception(thrown);
    Result<T> own = std::move(*made[i]);
    made[i].reset();
    used = i + 1;
    held.unlock();
    changed.notify_all();
    QRY_TRY(use(i, std::move(own)));
  }
  return {};
}

}  // namespace quarry
