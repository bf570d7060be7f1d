// SPDX-License-Identifier: Apache-2.0
// words.hpp - atomic words of a table, for host threads and kernels.
#pragma once

#include <atomic>
#include <cstdint>

#include "hashgrid/table/outcome.hpp"

#if defined(__CUDACC__)
#include <cuda/atomic>
#endif

namespace quarry::hashgrid::detail {

// The halves of a 64-bit word.
QRY_HD constexpr uint32_t low(uint64_t word) { return uint32_t(word); }
QRY_HD constexpr uint32_t high(uint64_t word) { return uint32_t(word >> 32); }

// The number of the lowest bit that is set; one must be.
QRY_HD inline uint32_t lowest_bit(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return uint32_t(__ffs(int(bits))) - 1;
#else
  return uint32_t(__builtin_ctz(bits));
#endif
}

// A word as an atomic. On the host it replaces std::atomic_ref, which C++17 lacks, by the compiler's builtins.
#if defined(__CUDA_ARCH__)
template <class Word>
using AtomicRef = cuda::atomic_ref<Word, cuda::thread_scope_device>;
#else
template <class Word>
class AtomicRef {
 public:
  explicit AtomicRef(Word& word) : word_(&word) {}
  Word load(std::memory_order order) const { return __atomic_load_n(word_, int(order)); }
  Word exchange(Word desired, std::memory_order order) const { return __atomic_exchange_n(word_, desired, int(order)); }
  bool compare_exchange_strong(Word& expected, Word desired, std::memory_order success,
                               std::memory_order failure) const {
    return __atomic_compare_exchange_n(word_, &expected, desired, false, int(success), int(failure));
  }
  Word fetch_or(Word bits, std::memory_order order) const { return __atomic_fetch_or(word_, bits, int(order)); }

 private:
  Word* word_;
};
#endif

}  // namespace quarry::hashgrid::detail
