#include "hashgrid/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

namespace quarry {

namespace {
thread_local uint32_t share = UINT32_MAX;
}

uint32_t thread_count() {
  if (const char* wanted = std::getenv("QUARRY_THREADS")) {
    const long n = std::strtol(wanted, nullptr, 10);
    if (n >= 1 && n <= 1024) return std::min(share, uint32_t(n));
  }
  return std::min(share, std::max(1u, std::thread::hardware_concurrency()));
}

ThreadShare::ThreadShare(uint32_t threads) : before_(share) { share = std::min(share, std::max(1u, threads)); }
ThreadShare::~ThreadShare() { share = before_; }

void parallel_for(size_t count, size_t grain, const std::function<void(size_t, size_t)>& body, uint32_t threads) {
  if (count == 0) return;
  if (grain == 0) grain = 1;
  if (threads == 0) threads = thread_count();
  const size_t pieces = (count + grain - 1) / grain;
  threads = uint32_t(std::min<size_t>(threads, pieces));
  std::atomic<size_t> next{0};
  auto work = [&] {
    // Relaxed: the counter only hands out pieces; what the pieces write is ordered by the joins below.
    for (size_t i = next.fetch_add(1, std::memory_order_relaxed); i < pieces; i = next.fetch_add(1, std::memory_order_relaxed))
      body(i * grain, std::min(count, (i + 1) * grain));
  };
  std::vector<std::jthread> others;
  try {
    others.reserve(threads - 1);
    for (uint32_t t = 1; t < threads; ++t) others.emplace_back(work);
  } catch (const std::exception&) {
    // No memory, or no more threads allowed: those there are do it all. Throwing here would leave the work half done.
  }
  work();
}

}  // namespace quarry
