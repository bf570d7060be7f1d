// SPDX-License-Identifier: Apache-2.0
// parallel.cpp - the thread pool: one list of open loops. Workers take the next piece by an atomic counter, and poll
// for some 20 microseconds before they sleep.
#include "base/parallel.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace quarry {

namespace {

thread_local uint32_t share = UINT32_MAX;

uint32_t machine_threads() {
  if (const char* wanted = std::getenv("QUARRY_THREADS")) {
    const long n = std::strtol(wanted, nullptr, 10);
    if (n >= 1 && n <= 1024) return uint32_t(n);
  }
  static const uint32_t processors = std::max(1u, std::thread::hardware_concurrency());
  return processors;
}

// One running parallel_for; lives on its caller's stack.
struct Loop {
  const std::function<void(size_t, size_t)>& body;
  const size_t count, grain, pieces;
  uint32_t wanted;                  // helpers that may still join; under the pool's mutex
  std::atomic<uint32_t> inside{0};  // helpers at work; changed under the pool's mutex
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr thrown;  // the first; written by the thread that set `failed`

  void work() {
    try {
      // Relaxed: the counter only hands out pieces. The mutex orders the pieces' writes when a helper leaves.
      for (size_t i = next.fetch_add(1, std::memory_order_relaxed); i < pieces;
           i = next.fetch_add(1, std::memory_order_relaxed))
        body(i * grain, std::min(count, (i + 1) * grain));
    } catch (...) {
      next.store(pieces, std::memory_order_relaxed);
      if (!failed.exchange(true, std::memory_order_relaxed)) thrown = std::current_exception();
    }
  }
};

// Waking a sleeping thread costs both sides some microseconds, and loops often follow closely. So an idle thread polls
// this many times (some 20 microseconds) before it sleeps. It yields in between: the thread that it waits for may need
// this processor.
constexpr uint32_t kLooks = 40;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
#endif
  std::this_thread::yield();
}

class Pool {
 public:
  explicit Pool(Pool* before_fork) : before_fork_(before_fork) {}

  void run(Loop& loop, uint32_t most_threads) {
    {
      const std::lock_guard lock(mutex_);
      try {
        open_.push_back(&loop);
        hire(most_threads);
      } catch (const std::exception&) {
        // Out of memory or threads: the existing ones do all the work. Throwing here would leave the work half done.
      }
      rounds_.fetch_add(1, std::memory_order_release);
      for (uint32_t n = std::min(asleep_, loop.wanted); n > 0; --n) wake_.notify_one();
    }
    loop.work();
    std::unique_lock lock(mutex_);
    std::erase(open_, &loop);
    if (loop.inside.load(std::memory_order_relaxed) == 0) return;
    lock.unlock();
    for (uint32_t look = 0; look < kLooks && loop.inside.load(std::memory_order_acquire) != 0; ++look) pause_briefly();
    lock.lock();
    left_.wait(lock, [&] { return loop.inside.load(std::memory_order_relaxed) == 0; });
  }

  // For the end of the process, or of the library: waits for the helpers, which have no loop left.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      rounds_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& helper : helpers_) {
      // exit() called by a loop's body: this thread cannot wait for itself.
      if (helper.get_id() == std::this_thread::get_id()) helper.detach();
      else helper.join();
    }
    helpers_.clear();
  }

  std::mutex& mutex() { return mutex_; }

 private:
  // Starts as many helpers as the open loops request, if threads are available. Under the mutex.
  void hire(uint32_t most_threads) {
    size_t wanted = at_work_;
    for (const Loop* loop : open_) wanted += loop->wanted;
    const size_t most = std::max(most_threads, machine_threads()) - 1;
    while (!closed_ && helpers_.size() < std::min(wanted, most)) helpers_.emplace_back([this] { help(); });
  }

  void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      // The newest first: inner loops end before outer ones can.
      const auto open = std::find_if(open_.rbegin(), open_.rend(), [](const Loop* loop) { return loop->wanted != 0; });
      if (open != open_.rend()) {
        Loop& loop = **open;
        --loop.wanted;
        loop.inside.fetch_add(1, std::memory_order_relaxed);
        ++at_work_;
        lock.unlock();
        loop.work();
        lock.lock();
        --at_work_;
        // Release: the caller may return as soon as it reads zero. The loop no longer exists from then on.
        if (loop.inside.fetch_sub(1, std::memory_order_release) == 1) left_.notify_all();
        continue;
      }
      if (closed_) return;
      const uint64_t round = rounds_.load(std::memory_order_relaxed);
      lock.unlock();
      for (uint32_t look = 0; look < kLooks && rounds_.load(std::memory_order_acquire) == round; ++look)
        pause_briefly();
      lock.lock();
      ++asleep_;
      wake_.wait(lock, [&] { return rounds_.load(std::memory_order_relaxed) != round; });
      --asleep_;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, left_;
  std::vector<Loop*> open_;
  std::vector<std::thread> helpers_;
  std::atomic<uint64_t> rounds_{0};  // changes with every new thing to look at; changed under the mutex
  uint32_t asleep_ = 0, at_work_ = 0;
  bool closed_ = false;
  [[maybe_unused]] Pool* const before_fork_;  // its threads do not exist here; kept reachable for leak checkers
};

std::atomic<Pool*> the_pool{nullptr};
std::atomic<bool> ended{false};

// The pool object itself is never freed: a loop in a late destructor of another static object must still find it.
struct End {
  ~End() {
    ended = true;
    if (Pool* pool = the_pool.load()) pool->close();
  }
};

Pool& pool() {
  static const bool made = [] {
    the_pool = new Pool(nullptr);
    // The forking thread holds the mutex during the fork, so that the child's copy is consistent.
    (void)pthread_atfork([] { the_pool.load()->mutex().lock(); }, [] { the_pool.load()->mutex().unlock(); },
                         [] {
                           the_pool.load()->mutex().unlock();
                           the_pool = new Pool(the_pool.load());
                         });
    static const End end;
    return true;
  }();
  (void)made;
  return *the_pool.load(std::memory_order_relaxed);
}

}  // namespace

uint32_t thread_count() { return std::min(share, machine_threads()); }

ThreadShare::ThreadShare(uint32_t threads) : before_(share) { share = std::min(share, std::max(1u, threads)); }
ThreadShare::~ThreadShare() { share = before_; }

void parallel_for(size_t count, size_t grain, const std::function<void(size_t, size_t)>& body, uint32_t threads) {
  if (count == 0) return;
  if (grain == 0) grain = 1;
  if (threads == 0) threads = thread_count();
  const size_t pieces = (count + grain - 1) / grain;
  const uint32_t used = uint32_t(std::min<size_t>(threads, pieces));
  Loop loop{.body = body, .count = count, .grain = grain, .pieces = pieces, .wanted = used - 1, .thrown = {}};
  if (used == 1 || ended.load(std::memory_order_relaxed)) loop.work();
  else pool().run(loop, threads);
  if (loop.thrown) std::rethrow_exception(loop.thrown);
}

}  // namespace quarry
