// SPDX-License-Identifier: Apache-2.0
// host_threads.hpp - the Machine of passes.hpp by host threads. Other rooms' passes run on it too.
#pragma once

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "hashgrid/index/host_scratch.hpp"
#include "hashgrid/index/host_search.hpp"
#include "hashgrid/index/radix_sort.hpp"
#include "hashgrid/index/segments.hpp"

namespace quarry::hashgrid {

class HostThreads {
 public:
  struct Scope {};
  explicit HostThreads(uint32_t threads) : threads_(threads) {}

  Scope begin() const { return {}; }
  Result<void> finish(const char*) const { return {}; }
  Result<HostScratch> scratch(size_t size_bytes) const { return HostScratch::allocate(size_bytes); }
  uint32_t piece() const { return 4096; }
  // Whole boxes if there are several for each thread: their parts cost a search each.
  uint32_t box_depth(size_t boxes) const { return boxes >= size_t{threads_} * 8 ? 0 : 3; }

  template <class Body>
  Result<void> run(const char* what, size_t count, const Body& body) const {
    return sum(what, count, body, nullptr);
  }
  template <class Body>
  Result<void> run_groups(const char*, size_t count, const Body& body) const {
    add_up(count, nullptr, [&body](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) body(bodies::OneLane{}, i);
      return uint64_t{0};
    });
    return {};
  }
  template <class Body>
  Result<void> sum(const char*, size_t count, const Body& body, uint64_t* total) const {
    add_up(count, total, [&body](size_t begin, size_t end) {
      uint64_t sum = 0;
      for (size_t i = begin; i < end; ++i) sum += body(i);
      return sum;
    });
    return {};
  }
  template <class Key, class Body>
  Result<void> search(const char*, const IndexView<Key>& view, size_t count, const Body& body, uint64_t* total) const {
    add_up(count, total, [&](size_t begin, size_t end) {
      uint64_t sum = 0;
      Key keys[kIndexGroup];
      IndexPlace places[kIndexGroup];
      for (size_t first = begin; first < end; first += kIndexGroup) {
        const uint32_t group = uint32_t(std::min<size_t>(kIndexGroup, end - first));
        for (uint32_t i = 0; i < group; ++i) keys[i] = body.key(first + i);
        places_of(view, keys, group, places);
        for (uint32_t i = 0; i < group; ++i) sum += body(first + i, places[i]);
      }
      return sum;
    });
    return {};
  }

  template <class T>
  Result<void> scan(T* numbers, size_t count) const {
    constexpr size_t kLeastPiece = 1 << 14;
    const size_t pieces = std::clamp<size_t>(count / kLeastPiece, 1, threads_), piece = (count + pieces - 1) / pieces;
    std::vector<T> sums(pieces);
    const auto each_piece = [&](const auto& use) {
      parallel_for(
          pieces, 1, [&](size_t p, size_t) { use(p, std::min(count, p * piece), std::min(count, (p + 1) * piece)); },
          threads_);
    };
    if (pieces > 1)
      each_piece([&](size_t p, size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) sums[p] += numbers[i];
      });
    T before = 0;
    for (T& sum : sums) before += std::exchange(sum, before);
    each_piece([&](size_t p, size_t begin, size_t end) {
      T sum = sums[p];
      for (size_t i = begin; i < end; ++i) sum += std::exchange(numbers[i], sum);
    });
    return {};
  }
  template <class Key>
  Result<void> sort(const Key* keys, const uint32_t* values, size_t count, Key* keys_out, uint32_t* values_out) const {
    return radix_sort(keys, values, count, keys_out, values_out, threads_);
  }

  Result<void> put(uint64_t* to, uint64_t number) const {
    *to = number;
    return {};
  }
  template <class T>
  Result<void> get(const T* from, T* number) const {
    *number = *from;
    return {};
  }

 protected:
  template <class Part>
  void add_up(size_t count, uint64_t* total, const Part& part) const {
    // Pieces of whole groups, several for each thread; few bodies are not worth a second thread.
    size_t grain = std::clamp<size_t>(count / (size_t{threads_} * 8), 1, 8192);
    if (grain > kIndexGroup) grain = grain / kIndexGroup * kIndexGroup;
    if (count <= kIndexGroup) grain = count;
    std::atomic<uint64_t> sum{0};
    parallel_for(
        count, grain, [&](size_t begin, size_t end) { sum.fetch_add(part(begin, end), std::memory_order_relaxed); },
        threads_);
    if (total != nullptr) *total = sum.load(std::memory_order_relaxed);
  }

  uint32_t threads_;
};

}  // namespace quarry::hashgrid
