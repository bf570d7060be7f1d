// parallel.hpp - loops over host threads. std::jthread only, so that ThreadSanitizer sees everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace quarry {

// Threads this process may use: $QUARRY_THREADS if set, else the machine's.
uint32_t thread_count();

// Calls body(begin, end) on disjoint pieces of [0, count), each at most `grain` long, from up to `threads` threads (0: thread_count()),
// the calling one included; returns when all are done. Pieces are handed out in rising order. body must not throw.
void parallel_for(size_t count, size_t grain, const std::function<void(size_t, size_t)>& body, uint32_t threads = 0);

}  // namespace quarry
