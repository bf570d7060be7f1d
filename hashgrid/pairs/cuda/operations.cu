// SPDX-License-Identifier: Apache-2.0
// operations.cu - the bulk operations on a CUDA device: launches and scratch memory. Kernels are in
// hashgrid/cuda/key_kernels.cuh, page_kernels.cuh.
//
// All work runs in the stream of one executor. Every call waits for its own result. Scratch memory comes from the
// stream's pool, so several host threads may call at once. A launch waits only for earlier work of the stream: nothing
// here synchronises the device.
#include <thrust/iterator/counting_iterator.h>
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "base/cuda/launch.cuh"
#include "base/cuda/scratch.cuh"
#include "hashgrid/cuda/key_kernels.cuh"
#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/pairs/arguments.hpp"
#include "hashgrid/pairs/cuda/find_kernels.cuh"
#include "hashgrid/pairs/cuda/merge.cuh"
#include "hashgrid/pairs/cuda/operations.cuh"
#include "hashgrid/pairs/cuda/page_kernels.cuh"
#include "hashgrid/pairs/cuda/rows.cuh"

namespace quarry::hashgrid {
namespace {

using gpu::check;
using gpu::CudaDevice;
using gpu::DeviceScope;
using gpu::launch;
using gpu::Scratch;

// The result of work done page by page. Empty if the keys must be processed one by one: no scratch memory, or too many
// keys are equal.
std::optional<Result<BulkReport>> answer_by_pages(const Result<std::optional<BulkReport>>& done) {
  if (!done && done.error().code != ErrorCode::out_of_memory) return Result<BulkReport>(tl::unexpected(done.error()));
  if (!done || !*done) return std::nullopt;
  return Result<BulkReport>(**done);
}

BulkReport report_of(const unsigned long long (&totals)[kOutcomes]) {
  const auto of = [&](Outcome outcome) { return uint64_t{totals[size_t(outcome)]}; };
  return {of(Outcome::inserted), of(Outcome::present), of(Outcome::assigned), of(Outcome::erased),
          of(Outcome::absent),   of(Outcome::full),    of(Outcome::reserved)};
}

class CudaPairs final : public BulkOperations<GridView> {
 public:
  CudaPairs(const gpu::DeviceStream& stream, uint32_t multiprocessors)
      : stream_(stream), multiprocessors_(multiprocessors) {}

  Result<void> clear(const GridView& view) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(device());
    QRY_TRY(launch("clear", {page_blocks(view.page_count), kernels::kPageThreads}, stream(), kernels::clear_pages,
                   view.words, view.page_count));
    return finish("clear");
  }

  Result<BulkReport> insert(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                            Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (outcomes == nullptr && worth_windows(view.page_count, count)) {
      const DeviceScope scope(device());
      if (auto done = answer_by_pages(bulk_upsert(stream_, view, keys, values, count, false))) return *std::move(done);
    }
    return for_keys(kernels::InsertKey<GridView>{view, keys, values}, count, outcomes, "insert");
  }
  Result<BulkReport> insert_exclusive(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                      bool fresh) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (!worth_merging(view.page_count, count, fresh)) return insert(view, keys, values, count, nullptr);
    const DeviceScope scope(device());
    auto merged = bulk_merge(stream_, view, keys, values, count, fresh);
    // A merge needs more scratch memory than plain insertion; it has no other extra need.
    if (!merged && merged.error().code == ErrorCode::out_of_memory) return insert(view, keys, values, count, nullptr);
    return merged;
  }
  Result<BulkReport> assign(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                            Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (outcomes == nullptr && worth_windows(view.page_count, count)) {
      const DeviceScope scope(device());
      if (auto done = answer_by_pages(bulk_upsert(stream_, view, keys, values, count, true))) return *std::move(done);
    }
    return for_keys(kernels::AssignKey<GridView>{view, keys, values}, count, outcomes, "assign");
  }
  Result<BulkReport> find_or_insert(const GridView& view, const uint32_t* keys, uint32_t* values, size_t count,
                                    Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    return for_keys(kernels::FindOrInsertKey<GridView>{view, keys, values}, count, outcomes, "find_or_insert");
  }
  Result<BulkReport> find(const GridView& view, const uint32_t* keys, size_t count, uint32_t* values_out,
                          uint8_t* depths_out) override {
    QRY_TRY(detail::check_batch(view, keys, keys, count));
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device());
    QRY_TRY_ASSIGN(const Scratch totals, Scratch::zeroed(stream_, sizeof(unsigned long long) * kOutcomes));
    auto* const counts = totals.as<unsigned long long>();
    auto *const hits = counts + size_t(Outcome::present), *const reserved = counts + size_t(Outcome::reserved);
    if (view.locality == kQryRows) {
      constexpr uint32_t kKeys = kernels::kRowThreads * kernels::kRowKeys;
      QRY_TRY(launch("find", {uint32_t((count + kKeys - 1) / kKeys), kernels::kRowThreads}, stream(),
                     kernels::find_in_rows, view, keys, count, values_out, depths_out, hits, reserved));
    } else {
      QRY_TRY(launch("find", {key_blocks(count, kernels::kFindThreads), kernels::kFindThreads}, stream(),
                     kernels::find_keys, view, keys, count, values_out, depths_out, hits, reserved));
    }
    auto report = read_report(totals);
    if (report) report->absent = count - report->present - report->reserved;
    return report;
  }
  Result<BulkReport> erase(const GridView& view, const uint32_t* keys, size_t count, uint32_t* old_values,
                           Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, keys, count));
    if (old_values == nullptr && outcomes == nullptr && worth_windows(view.page_count, count)) {
      const DeviceScope scope(device());
      if (auto done = answer_by_pages(bulk_erase(stream_, view, keys, count))) return *std::move(done);
    }
    return for_keys(kernels::EraseKey<GridView>{view, keys, old_values}, count, outcomes, "erase");
  }

  Result<BulkReport> insert_refused(const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                    Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device());
    const thrust::counting_iterator<uint64_t> all(0);

    // The refused keys, in the order of the batch.
    QRY_TRY_ASSIGN(const Scratch number, Scratch::allocate(stream_, sizeof(uint64_t)));
    QRY_TRY_ASSIGN(const Scratch chosen, Scratch::allocate(stream_, count * sizeof(uint64_t)));
    QRY_TRY(with_temporary(stream_, "select refused keys", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceSelect::If(temporary, size_bytes, all, chosen.as<uint64_t>(), number.as<uint64_t>(), count,
                                   kernels::IsFull{outcomes}, stream());
    }));
    uint64_t waiting = 0;
    QRY_TRY(download(&waiting, number.as<uint64_t>(), sizeof(waiting)));
    if (waiting == 0) return BulkReport{};

    // Sorted by page; the sort is stable, so the order of the batch is kept within a page.
    QRY_TRY_ASSIGN(const Scratch pages, Scratch::allocate(stream_, waiting * 2 * sizeof(uint32_t)));
    QRY_TRY_ASSIGN(const Scratch positions, Scratch::allocate(stream_, waiting * sizeof(uint64_t)));
    uint32_t* unsorted_pages = pages.as<uint32_t>();
    uint32_t* sorted_pages = unsorted_pages + waiting;
    const gpu::LaunchShape one_a_key{simple_blocks(waiting), kernels::kSimpleThreads};
    QRY_TRY(launch("sort refused keys", one_a_key, stream(), kernels::pages_of_positions, keys, chosen.as<uint64_t>(),
                   waiting, view.page_count, view.locality, unsorted_pages));
    QRY_TRY(with_temporary(stream_, "sort refused keys", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceRadixSort::SortPairs(temporary, size_bytes, unsorted_pages, sorted_pages, chosen.as<uint64_t>(),
                                             positions.as<uint64_t>(), waiting, 0, 32, stream());
    }));

    // One group for each page that is touched.
    QRY_TRY_ASSIGN(const Scratch groups,
                   Scratch::allocate(stream_, waiting * (sizeof(uint32_t) + 2 * sizeof(uint64_t)) + sizeof(uint64_t)));
    uint64_t* sizes = groups.as<uint64_t>();
    uint64_t* begins = sizes + waiting;
    uint32_t* group_pages = reinterpret_cast<uint32_t*>(begins + waiting);
    QRY_TRY(with_temporary(stream_, "group refused keys", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceRunLengthEncode::Encode(temporary, size_bytes, sorted_pages, group_pages, sizes,
                                                number.as<uint64_t>(), waiting, stream());
    }));
    uint64_t group_count = 0;
    QRY_TRY(download(&group_count, number.as<uint64_t>(), sizeof(group_count)));
    QRY_TRY(with_temporary(stream_, "place groups", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, size_bytes, sizes, begins, group_count, stream());
    }));

    QRY_TRY_ASSIGN(const Scratch totals, Scratch::zeroed(stream_, sizeof(unsigned long long) * kOutcomes));
    QRY_TRY(launch("settle", {page_blocks(group_count), kernels::kPageThreads}, stream(), kernels::cuckoo_pages, view,
                   keys, values, outcomes, group_pages, begins, sizes, positions.as<uint64_t>(), group_count));
    QRY_TRY(launch("settle", one_a_key, stream(), kernels::count_outcomes_at, outcomes, positions.as<uint64_t>(),
                   waiting, totals.as<unsigned long long>()));
    return read_report(totals);
  }

  Result<uint64_t> enumerate(const GridView& view, uint32_t* keys, uint32_t* values, size_t capacity) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(device());
    // One more than pages: the last prefix sum is the number of pairs.
    QRY_TRY_ASSIGN(const Scratch counts,
                   Scratch::zeroed(stream_, (size_t{view.page_count} + 1) * 2 * sizeof(uint64_t)));
    uint64_t* per_page = counts.as<uint64_t>();
    uint64_t* begins = per_page + view.page_count + 1;
    const gpu::LaunchShape over_pages{page_blocks(view.page_count), kernels::kPageThreads};
    QRY_TRY(launch("enumerate", over_pages, stream(), kernels::count_pairs, view.words, view.page_count, per_page));
    QRY_TRY(with_temporary(stream_, "sum pairs of pages", [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, size_bytes, per_page, begins, view.page_count + 1, stream());
    }));
    if (capacity != 0)
      QRY_TRY(launch("enumerate", over_pages, stream(), kernels::write_pairs, view.words, view.page_count,
                     view.locality, begins, keys, values, capacity));
    QRY_TRY(finish("enumerate"));
    uint64_t total = 0;
    QRY_TRY(download(&total, begins + view.page_count, sizeof(total)));
    return total;
  }

  Result<uint64_t> rehash(const GridView& from, const GridView& to) override {
    QRY_TRY(detail::check_view(from));
    QRY_TRY(detail::check_view(to));
    const DeviceScope scope(device());
    QRY_TRY_ASSIGN(const Scratch refused, Scratch::zeroed(stream_, sizeof(unsigned long long)));
    QRY_TRY(launch("rehash", {page_blocks(to.page_count), kernels::kPageThreads}, stream(), kernels::rehash_pages, from,
                   to, refused.as<unsigned long long>()));
    QRY_TRY(finish("rehash"));
    unsigned long long count = 0;
    QRY_TRY(download(&count, refused.as<unsigned long long>(), sizeof(count)));
    return uint64_t{count};
  }

  Result<void> sweep(const GridView& view) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(device());
    QRY_TRY(launch("sweep", {page_blocks(view.page_count), kernels::kPageThreads}, stream(), kernels::sweep_pages,
                   view.words, view.page_count));
    QRY_TRY(launch("sweep", {qry_stash_group_count(view.page_count), kernels::kPageThreads}, stream(),
                   kernels::sweep_stashes, view.words, view.page_count));
    return finish("sweep");
  }

  Result<Stats> stats(const GridView& view) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(device());
    QRY_TRY_ASSIGN(const Scratch sums, Scratch::zeroed(stream_, sizeof(kernels::StatsSums)));
    QRY_TRY(launch("stats", {page_blocks(view.page_count), kernels::kPageThreads}, stream(), kernels::sum_stats,
                   view.words, view.page_count, sums.as<kernels::StatsSums>()));
    QRY_TRY(finish("stats"));
    kernels::StatsSums got{};
    QRY_TRY(download(&got, sums.as<kernels::StatsSums>(), sizeof(got)));
    Stats stats = kernels::stats_of(got);
    detail::finish_stats(stats, view.page_count, kQrySlotsPerPage);
    return stats;
  }

 private:
  const CudaDevice& device() const { return stream_.device(); }
  cudaStream_t stream() const { return stream_.get(); }

  // Enough blocks to fill the device several times; kernels stride over the rest.
  uint32_t blocks(uint64_t wanted, uint32_t per_multiprocessor) const {
    return uint32_t(std::clamp<uint64_t>(wanted, 1, uint64_t{multiprocessors_} * per_multiprocessor));
  }
  uint32_t page_blocks(uint64_t pages) const { return blocks(pages, kernels::kPageBlocks); }
  uint32_t key_blocks(uint64_t count, uint32_t threads) const {
    return blocks((count + threads - 1) / threads, kernels::kKeyBlocks);
  }
  uint32_t simple_blocks(uint64_t count) const {
    return blocks((count + kernels::kSimpleThreads - 1) / kernels::kSimpleThreads, kernels::kSimpleBlocks);
  }

  Result<void> finish(const char* doing) const { return check(cudaStreamSynchronize(stream()), doing); }

  Result<void> download(void* to_host, const void* from, size_t size_bytes) const {
    QRY_TRY(check(cudaMemcpyAsync(to_host, from, size_bytes, cudaMemcpyDefault, stream()), "download"));
    return finish("download");
  }

  Result<BulkReport> read_report(const Scratch& totals) {
    unsigned long long got[kOutcomes] = {};
    QRY_TRY(download(got, totals.as<void>(), sizeof(got)));
    return report_of(got);
  }

  template <class Operation>
  Result<BulkReport> for_keys(const Operation& operation, size_t count, Outcome* outcomes, const char* doing) {
    if (count == 0) return BulkReport{};
    const DeviceScope scope(device());
    QRY_TRY_ASSIGN(const Scratch totals, Scratch::zeroed(stream_, sizeof(unsigned long long) * kOutcomes));
    QRY_TRY(launch(doing, {key_blocks(count, kernels::kKeyThreads), kernels::kKeyThreads}, stream(),
                   kernels::for_each_key<Operation>, operation, count, outcomes, totals.as<unsigned long long>()));
    return read_report(totals);
  }

  const gpu::DeviceStream& stream_;
  uint32_t multiprocessors_;
};

}  // namespace

std::unique_ptr<BulkOperations<GridView>> make_cuda_pairs(const gpu::DeviceStream& stream, uint32_t multiprocessors) {
  return std::make_unique<CudaPairs>(stream, multiprocessors);
}

bool cuda_pairs_run_here() {
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, kernels::clear_pages) == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

// For the caller's stream (cuda/enqueue.cuh).
template Result<void> enqueue_insert(cudaStream_t, const GridView&, const uint32_t*, const uint32_t*, size_t, Outcome*,
                                     OutcomeCounts*);
template Result<void> enqueue_assign(cudaStream_t, const GridView&, const uint32_t*, const uint32_t*, size_t, Outcome*,
                                     OutcomeCounts*);
template Result<void> enqueue_find_or_insert(cudaStream_t, const GridView&, const uint32_t*, uint32_t*, size_t,
                                             Outcome*, OutcomeCounts*);
template Result<void> enqueue_find(cudaStream_t, const GridView&, const uint32_t*, size_t, uint32_t*, Outcome*,
                                   OutcomeCounts*);
template Result<void> enqueue_erase(cudaStream_t, const GridView&, const uint32_t*, size_t, uint32_t*, Outcome*,
                                    OutcomeCounts*);

}  // namespace quarry::hashgrid
