// SPDX-License-Identifier: Apache-2.0
// cuda.cu - the passes as kernels. Pairs are divided by page, each page's counted before; pages of usual size are then
// built, or joined, in shared memory, and only the others' pairs are sorted to the end. What has too many equal keys to
// be joined by page looks up in a table of the right side, its left rows divided by CUB's radix sort.
#include "hashgrid/multi/cuda.cuh"

#include <thrust/iterator/counting_iterator.h>

#include <cub/device/device_select.cuh>

#include "hashgrid/cuda/counted_split.cuh"
#include "hashgrid/index/cuda_threads.cuh"
#include "hashgrid/multi/build.cuh"
#include "hashgrid/multi/expand.cuh"
#include "hashgrid/multi/join.cuh"
#include "hashgrid/multi/passes.hpp"

namespace quarry::hashgrid {
namespace {

class CudaMulti : public CudaThreads {
 public:
  using CudaThreads::CudaThreads;
  static constexpr bool kSplits = true;
  static constexpr uint32_t kMostPagePairs = kernels::kMultiMostPairs;
  // Tables in the second-level cache answer keys in any order as fast.
  bool divides_probes(size_t size_bytes) const { return size_bytes > (size_t{1} << 24); }

  Result<void> partition(const uint32_t* stored, const uint32_t* values, size_t count, uint32_t* stored_out,
                         uint32_t* values_out, uint32_t page_bits) const {
    if (count == 0) return {};
    return gpu::with_temporary(*stream_, "divide pairs by page", [&](void* memory, size_t& size_bytes) {
      return cub::DeviceRadixSort::SortPairs(memory, size_bytes, stored, stored_out, values, values_out,
                                             uint32_t(count), int(32 - page_bits), 32, stream_->get());
    });
  }

  Result<CountedLists> split(const uint32_t* keys, const uint32_t* values, size_t count, uint32_t page_bits,
                             uint64_t* fault) const {
    return split_counted(*stream_, multiprocessors_, keys, values, uint32_t(count), page_bits, fault);
  }
  static const bodies::StoredPair* pairs(const CountedLists& lists) {
    return reinterpret_cast<const bodies::StoredPair*>(lists.pairs);
  }
  Result<void> build_pages(const MultiView& view, const CountedLists& lists, const uint64_t* fault,
                           uint64_t* large) const {
    constexpr size_t kShared = sizeof(kernels::MultiPageBuild);
    QRY_TRY(gpu::allow_shared_bytes("build pages", kernels::build_multi_pages, kShared));
    return gpu::launch("build pages", {view.shape.pages(), kernels::kMultiThreads, kShared}, stream_->get(),
                       kernels::build_multi_pages, view, lists.pairs, lists.begins, fault, large);
  }

  static kernels::JoinSides sides(const CountedLists& left, const CountedLists& right, bool outer) {
    return {left.pairs, left.begins, right.pairs, right.begins, outer};
  }
  Result<void> count_joined(const kernels::JoinSides& sides, uint32_t pages, uint64_t* numbers, uint64_t* unfit) const {
    return gpu::launch("count joined rows", {pages, kernels::kJoinThreads}, stream_->get(), kernels::join_pages<false>,
                       sides, numbers, unfit, nullptr, nullptr);
  }
  Result<void> write_joined(const kernels::JoinSides& sides, uint32_t pages, uint64_t* numbers, uint32_t* left_out,
                            uint32_t* right_out) const {
    return gpu::launch("list pairs of rows", {pages, kernels::kJoinThreads}, stream_->get(), kernels::join_pages<true>,
                       sides, numbers, nullptr, left_out, right_out);
  }

  template <class Predicate>
  Result<void> select(const char* what, size_t count, const Predicate& predicate, uint32_t* out,
                      uint64_t* number) const {
    *number = 0;
    if (count == 0) return {};
    QRY_TRY_ASSIGN(const gpu::Scratch selected, gpu::Scratch::zeroed(*stream_, sizeof(uint64_t)));
    QRY_TRY(gpu::with_temporary(*stream_, what, [&](void* memory, size_t& size_bytes) {
      return cub::DeviceSelect::If(memory, size_bytes, thrust::counting_iterator<uint32_t>(0), out,
                                   selected.as<uint64_t>(), int64_t(count), predicate, stream_->get());
    }));
    return get(selected.as<uint64_t>(), number);
  }

  template <class Body>
  Result<void> expand(const char* what, const uint64_t* starts, size_t count, uint64_t total, const Body& body) const {
    if (total == 0) return {};
    const uint64_t tiles = (count + total + kernels::kExpandTile - 1) / kernels::kExpandTile;
    if (tiles > 0x7FFFFFFFu)
      return fail(ErrorCode::full, std::string(what) + ": " + std::to_string(total) +
                                       " results are more than a launch can write; take fewer keys at a time");
    return gpu::launch(what, {uint32_t(tiles), kernels::kExpandThreads}, stream_->get(), kernels::expand_bodies<Body>,
                       starts, count, total, body);
  }
};

}  // namespace

std::unique_ptr<MultiOperations> make_cuda_multi(const gpu::DeviceStream& stream, uint32_t multiprocessors) {
  return std::make_unique<MultiPasses<CudaMulti>>(CudaMulti(stream, multiprocessors));
}

}  // namespace quarry::hashgrid
