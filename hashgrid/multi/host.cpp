// SPDX-License-Identifier: Apache-2.0
// host.cpp - the passes by host threads. A radix sort by the whole stored key, which is by page, too, takes the place
// of the build in shared memory.
#include "hashgrid/multi/host.hpp"

#include "hashgrid/index/host_threads.hpp"
#include "hashgrid/multi/passes.hpp"

namespace quarry::hashgrid {
namespace {

class HostMulti : public HostThreads {
 public:
  using HostThreads::HostThreads;
  static constexpr bool kSplits = false;
  // Beyond it, look-ups in a table wait for memory more than a sort of the keys takes.
  bool divides_probes(size_t size_bytes) const { return size_bytes > (size_t{1} << 24); }

  Result<void> partition(const uint32_t* stored, const uint32_t* values, size_t count, uint32_t* stored_out,
                         uint32_t* values_out, uint32_t) const {
    return sort(stored, values, count, stored_out, values_out);
  }

  template <class Predicate>
  Result<void> select(const char*, size_t count, const Predicate& predicate, uint32_t* out, uint64_t* number) const {
    const size_t pieces = std::clamp<size_t>(count / kPiece, 1, threads_), piece = (count + pieces - 1) / pieces;
    std::vector<size_t> places(pieces);
    const auto each_piece = [&](const auto& use) {
      parallel_for(
          pieces, 1, [&](size_t p, size_t) { use(p, std::min(count, p * piece), std::min(count, (p + 1) * piece)); },
          threads_);
    };
    each_piece([&](size_t p, size_t begin, size_t end) {
      size_t some = 0;
      for (size_t i = begin; i < end; ++i) some += predicate(uint32_t(i));
      places[p] = some;
    });
    size_t total = 0;
    for (size_t& place : places) total += std::exchange(place, total);
    each_piece([&](size_t p, size_t begin, size_t end) {
      size_t at = places[p];
      for (size_t i = begin; i < end; ++i)
        if (predicate(uint32_t(i))) out[at++] = uint32_t(i);
    });
    *number = total;
    return {};
  }

  template <class Body>
  Result<void> expand(const char*, const uint64_t* starts, size_t count, uint64_t total, const Body& body) const {
    if (total == 0) return {};
    parallel_for(
        count + size_t(total), kPiece,
        [&](size_t begin, size_t end) {
          size_t owner = bodies::owner_at(starts, count, begin);
          const uint64_t last = end - bodies::owner_at(starts, count, end);
          for (uint64_t to = begin - owner; to < last;) {
            while (starts[owner + 1] <= to) ++owner;
            const uint64_t stop = std::min(last, starts[owner + 1]);
            body.put_all(owner, uint32_t(to - starts[owner]), size_t(stop - to), size_t(to));
            to = stop;
          }
        },
        threads_);
    return {};
  }

 private:
  static constexpr size_t kPiece = 1 << 14;
};

}  // namespace

std::unique_ptr<MultiOperations> make_host_multi(uint32_t threads) {
  return std::make_unique<MultiPasses<HostMulti>>(HostMulti(threads));
}

}  // namespace quarry::hashgrid
