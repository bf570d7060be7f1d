// SPDX-License-Identifier: Apache-2.0
// atomics.hpp - the atomic operations of the steps, for kernels and for the host threads that run the same text.
//
// All are relaxed: a step's results are read by later steps, which begin when it has ended.
#pragma once

#include <cstdint>

#include "hashgrid/table/outcome.hpp"

#if defined(__CUDACC__)
#include <cooperative_groups.h>
#endif

namespace quarry::device {

QRY_HD inline uint32_t fetch_add(uint32_t& word, uint32_t by) {
#if defined(__CUDA_ARCH__)
  return atomicAdd(&word, by);
#else
  return __atomic_fetch_add(&word, by, __ATOMIC_RELAXED);
#endif
}
QRY_HD inline void add(uint64_t& word, uint64_t by) {
#if defined(__CUDA_ARCH__)
  atomicAdd(reinterpret_cast<unsigned long long*>(&word), static_cast<unsigned long long>(by));
#else
  __atomic_fetch_add(&word, by, __ATOMIC_RELAXED);
#endif
}
// A counter of 64 bits as hashgrid's statistics have it.
QRY_HD inline void add(unsigned long long& word, uint64_t by) {
#if defined(__CUDA_ARCH__)
  atomicAdd(&word, static_cast<unsigned long long>(by));
#else
  __atomic_fetch_add(&word, by, __ATOMIC_RELAXED);
#endif
}
QRY_HD inline uint64_t fetch_or(uint64_t& word, uint64_t bits) {
#if defined(__CUDA_ARCH__)
  return atomicOr(reinterpret_cast<unsigned long long*>(&word), static_cast<unsigned long long>(bits));
#else
  return __atomic_fetch_or(&word, bits, __ATOMIC_RELAXED);
#endif
}
// What the word was before it; it becomes `desired` if that was `expected`.
QRY_HD inline uint32_t exchange_if(uint32_t& word, uint32_t expected, uint32_t desired) {
#if defined(__CUDA_ARCH__)
  return atomicCAS(&word, expected, desired);
#else
  __atomic_compare_exchange_n(&word, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
#endif
}
QRY_HD inline unsigned long long exchange_if(unsigned long long& word, unsigned long long expected,
                                             unsigned long long desired) {
#if defined(__CUDA_ARCH__)
  return atomicCAS(&word, expected, desired);
#else
  __atomic_compare_exchange_n(&word, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
#endif
}
QRY_HD inline void set_bits(uint32_t& word, uint32_t bits) {
#if defined(__CUDA_ARCH__)
  atomicOr(&word, bits);
#else
  __atomic_fetch_or(&word, bits, __ATOMIC_RELAXED);
#endif
}
QRY_HD inline void lower(int32_t& word, int32_t value) {
#if defined(__CUDA_ARCH__)
  atomicMin(&word, value);
#else
  int32_t seen = __atomic_load_n(&word, __ATOMIC_RELAXED);
  while (value < seen && !__atomic_compare_exchange_n(&word, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}
QRY_HD inline void lower(unsigned long long& word, unsigned long long value) {
#if defined(__CUDA_ARCH__)
  atomicMin(&word, value);
#else
  unsigned long long seen = __atomic_load_n(&word, __ATOMIC_RELAXED);
  while (value < seen && !__atomic_compare_exchange_n(&word, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}
QRY_HD inline void raise(int32_t& word, int32_t value) {
#if defined(__CUDA_ARCH__)
  atomicMax(&word, value);
#else
  int32_t seen = __atomic_load_n(&word, __ATOMIC_RELAXED);
  while (value > seen && !__atomic_compare_exchange_n(&word, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}
QRY_HD inline void raise(unsigned long long& word, unsigned long long value) {
#if defined(__CUDA_ARCH__)
  atomicMax(&word, value);
#else
  unsigned long long seen = __atomic_load_n(&word, __ATOMIC_RELAXED);
  while (value > seen && !__atomic_compare_exchange_n(&word, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}
// A word that another thread of the same step may be changing.
QRY_HD inline uint32_t peek(const uint32_t& word) {
#if defined(__CUDA_ARCH__)
  return *const_cast<const volatile uint32_t*>(&word);
#else
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
#endif
}
QRY_HD inline int32_t peek(const int32_t& word) {
#if defined(__CUDA_ARCH__)
  return *const_cast<const volatile int32_t*>(&word);
#else
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
#endif
}
QRY_HD inline uint64_t peek(const unsigned long long& word) {
#if defined(__CUDA_ARCH__)
  return *const_cast<const volatile unsigned long long*>(&word);
#else
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
#endif
}
QRY_HD inline uint64_t peek(const uint64_t& word) {
#if defined(__CUDA_ARCH__)
  return *const_cast<const volatile uint64_t*>(&word);
#else
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
#endif
}

// Writes a word that other threads of the same step may be reading.
QRY_HD inline void put(uint32_t& word, uint32_t value) {
#if defined(__CUDA_ARCH__)
  *static_cast<volatile uint32_t*>(&word) = value;
#else
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
#endif
}
QRY_HD inline void put(uint64_t& word, uint64_t value) {
#if defined(__CUDA_ARCH__)
  *static_cast<volatile uint64_t*>(&word) = value;
#else
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
#endif
}

// The next number of a list: as fetch_add(counter, 1). On a GPU the threads of a warp that are here take theirs by one
// atomic operation.
QRY_HD inline uint32_t push(uint32_t& counter) {
#if defined(__CUDA_ARCH__)
  const auto here = cooperative_groups::coalesced_threads();
  uint32_t first = 0;
  if (here.thread_rank() == 0) first = atomicAdd(&counter, here.size());
  return here.shfl(first, 0) + here.thread_rank();
#else
  return __atomic_fetch_add(&counter, 1u, __ATOMIC_RELAXED);
#endif
}

// ---- words in a block's shared memory. Host threads run a block each, lane by lane, so there they need no atomic
// operation; those that a lock prefix or a sanitizer makes dear are the most of what a block does.

// Adds to a total of which only the end matters, not what each addition finds. On a GPU the threads of a warp that are
// here add what is theirs together first.
QRY_HD inline void add_together(uint32_t& shared_total, uint32_t by) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800  // no sums over a warp
  if (by) atomicAdd(&shared_total, by);
#elif defined(__CUDA_ARCH__)
  const unsigned here = __activemask();
  const unsigned sum = __reduce_add_sync(here, by);
  if ((threadIdx.x & 31u) == unsigned(__ffs(int(here))) - 1u && sum) atomicAdd(&shared_total, sum);
#else
  shared_total += by;
#endif
}

// Sets bits of a word that all threads of a warp that are here give.
QRY_HD inline void set_bits_together(uint32_t& shared_word, uint32_t bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  if (bits) atomicOr(&shared_word, bits);
#elif defined(__CUDA_ARCH__)
  const unsigned here = __activemask();
  const unsigned all = __reduce_or_sync(here, bits);
  if ((threadIdx.x & 31u) == unsigned(__ffs(int(here))) - 1u && all) atomicOr(&shared_word, all);
#else
  shared_word |= bits;
#endif
}

// As push().
QRY_HD inline uint32_t push_shared(uint32_t& shared_counter) {
#if defined(__CUDA_ARCH__)
  return push(shared_counter);
#else
  return shared_counter++;
#endif
}

// Other threads of the block may be changing it. By an atomic operation, as a checker of races takes any other load
// beside atomic ones for a hazard.
QRY_HD inline uint32_t peek_shared(uint32_t& shared_word) {
#if defined(__CUDA_ARCH__)
  return atomicOr(&shared_word, 0u);
#else
  return shared_word;
#endif
}

// ---- a warp, and words

// True for one of the threads of a warp that are here and give the same value: what all of them would do, it does.
QRY_HD inline bool first_of_equal(uint32_t value) {
#if defined(__CUDA_ARCH__)
  const unsigned same = __match_any_sync(__activemask(), value);
  return (threadIdx.x & 31u) == unsigned(__ffs(int(same))) - 1u;
#else
  (void)value;
  return true;
#endif
}

QRY_HD inline uint32_t bit_count(uint64_t word) {
#if defined(__CUDA_ARCH__)
  return uint32_t(__popcll(static_cast<unsigned long long>(word)));
#else
  return uint32_t(__builtin_popcountll(word));
#endif
}
// The number of the lowest set bit of a word that is not 0.
QRY_HD inline uint32_t lowest_bit(uint64_t word) {
#if defined(__CUDA_ARCH__)
  return uint32_t(__ffsll(static_cast<long long>(word))) - 1u;
#else
  return uint32_t(__builtin_ctzll(word));
#endif
}

}  // namespace quarry::device
