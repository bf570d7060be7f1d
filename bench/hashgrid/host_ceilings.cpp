// SPDX-License-Identifier: Apache-2.0
// host_ceilings.cpp - random 8-byte reads, random prefetched compare-and-swaps, and a copy, each on all threads.
#include "bench/hashgrid/host_ceilings.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "base/memory_source.hpp"
#include "base/parallel.hpp"
#include "hashgrid/pairs/layout.h"

namespace quarry::bench {
namespace {

template <class Body>
double seconds_of(size_t count, size_t grain, const Body& body) {
  double seconds = 0;
  for (int warm = 0; warm < 2; ++warm) {
    const auto start = std::chrono::steady_clock::now();
    parallel_for(count, grain, body);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return seconds;
}

}  // namespace

HostCeilings measure_host_ceilings(size_t size_bytes) {
  HostCeilings c;
  const auto block = host_memory_source().allocate(2 * size_bytes, "ceilings");
  if (!block) return c;
  uint64_t* const words = static_cast<uint64_t*>(block->data);
  const uint64_t slots = size_bytes / sizeof(uint64_t);
  std::memset(words, 1, 2 * size_bytes);
  const size_t count = std::clamp<size_t>(slots, size_t{1} << 18, size_t{1} << 23);
  const auto place = [&](size_t i) { return words + (uint64_t{qry_mix(uint32_t(i))} * slots >> 32); };
  c.read_8 = double(count) * 1e-6 / seconds_of(count, 8192, [&](size_t begin, size_t end) {
               uint64_t sum = 0;
               for (size_t i = begin; i < end; ++i) sum += *place(i);
               asm volatile("" ::"r"(sum));  // so that the compiler keeps the reads
             });
  c.swap_8 = double(count) * 1e-6 / seconds_of(count, 8192, [&](size_t begin, size_t end) {
               // The processor runs nothing beside a compare-and-swap: only prefetches put several in flight.
               constexpr size_t kAhead = 16;
               for (size_t i = begin; i < end; ++i) {
                 __builtin_prefetch(place(i + kAhead), 1);
                 uint64_t expected = 0x0101010101010101u;
                 std::atomic_ref(*place(i)).compare_exchange_strong(expected, expected + i);
               }
             });
  c.copy_gb = 2e-9 * double(size_bytes) / seconds_of(size_bytes / 4096, 64, [&](size_t begin, size_t end) {
                char* const bytes = reinterpret_cast<char*>(words);
                std::memcpy(bytes + size_bytes + begin * 4096, bytes + begin * 4096, (end - begin) * 4096);
              });
  host_memory_source().release(*block);
  return c;
}

}  // namespace quarry::bench
