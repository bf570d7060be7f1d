// SPDX-License-Identifier: Apache-2.0
// parallel.hpp - loops over host threads. The threads are kept between calls, so that sharing pays off for a loop of
// some ten microseconds. It uses plain threads, mutexes and atomics, so that ThreadSanitizer sees everything. It is not
// a task scheduler: one loop, its pieces in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace quarry {

// Threads this process may use: $QUARRY_THREADS if set, else the machine's; within a ThreadShare, at most its number.
uint32_t thread_count();

// While it lives, thread_count() on this thread is at most `threads` (at least 1), so that concurrent work keeps to its
// part of the machine. Threads that parallel_for starts do not inherit it. Shares on one thread nest; the smallest
// counts.
class ThreadShare {
 public:
  explicit ThreadShare(uint32_t threads);
  ~ThreadShare();
  ThreadShare(const ThreadShare&) = delete;
  ThreadShare& operator=(const ThreadShare&) = delete;

 private:
  uint32_t before_;
};

// Calls body(begin, end) on disjoint pieces of [0, count), each at most `grain` long, from up to `threads` threads (0:
// thread_count()), the caller's included. Returns when all are done. Pieces are handed out in rising order: a piece may
// wait for an earlier one, never for a later one. If body throws, pieces that are not begun are left out, and the
// first exception is thrown to the caller when all threads have left the loop; a body whose pieces wait for each other
// must not throw. It may call parallel_for itself, and any number of threads may. Helper threads come from a pool that
// the whole process shares: as many as the open loops request, but no more than the machine has processors
// ($QUARRY_THREADS, or the largest `threads` requested, if that is more). A loop without helpers runs on its caller
// alone. Helpers sleep until the process ends or the library is unloaded. A child of fork() begins with none and starts
// its own.
void parallel_for(size_t count, size_t grain, const std::function<void(size_t, size_t)>& body, uint32_t threads = 0);

}  // namespace quarry
