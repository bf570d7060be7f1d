// SPDX-License-Identifier: Apache-2.0
// cuda.cu - the launches of the bulk operations: batches in pieces, ordered by page where that pays off, counters read
// back.
#include "hashgrid/compact/cuda.cuh"

#include <cub/device/device_scan.cuh>
#include <optional>

#include "base/cuda/launch.cuh"
#include "base/cuda/scratch.cuh"
#include "hashgrid/compact/arguments.hpp"
#include "hashgrid/compact/kernels.cuh"
#include "hashgrid/cuda/key_kernels.cuh"
#include "hashgrid/cuda/page_lists.cuh"

namespace quarry::hashgrid {
namespace {

using gpu::check;
using gpu::DeviceScope;
using gpu::launch;
using gpu::Scratch;
using kernels::Atomic64;
using kernels::kCompactThreads;

class CudaCompact final : public BulkOperations<CompactView> {
 public:
  CudaCompact(const gpu::DeviceStream& stream, uint32_t multiprocessors)
      : stream_(stream), multiprocessors_(multiprocessors) {}

  Result<void> clear(const CompactView& view) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(stream_.device());
    QRY_TRY(launch("clear a compact table", {multiprocessors_ * kernels::kPageBlocks, kCompactThreads}, stream_.get(),
                   kernels::clear_compact, view));
    return finish("clear a compact table");
  }

  Result<BulkReport> insert(const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                            Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (outcomes == nullptr) {
      QRY_TRY_ASSIGN(const auto done, in_pages("insert in compact pages", kernels::put_in_compact_pages<false>, view,
                                               keys, values, count));
      if (done) return report_of_puts(*done, count, false);
    }
    return for_keys(kernels::InsertKey<CompactView>{view, keys, values}, count, outcomes,
                    "insert into a compact table");
  }
  Result<BulkReport> assign(const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                            Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (outcomes == nullptr) {
      QRY_TRY_ASSIGN(const auto done, in_pages("assign in compact pages", kernels::put_in_compact_pages<true>, view,
                                               keys, values, count));
      if (done) return report_of_puts(*done, count, true);
    }
    return for_keys(kernels::AssignKey<CompactView>{view, keys, values}, count, outcomes, "assign in a compact table");
  }
  Result<BulkReport> find_or_insert(const CompactView& view, const uint32_t* keys, uint32_t* values, size_t count,
                                    Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    return for_keys(kernels::FindOrInsertKey<CompactView>{view, keys, values}, count, outcomes,
                    "find or insert in a compact table");
  }
  Result<BulkReport> find(const CompactView& view, const uint32_t* keys, size_t count, uint32_t* values_out,
                          uint8_t* depths_out) override {
    QRY_TRY(detail::check_batch(view, keys, keys, count));
    if (count == 0) return BulkReport{};
    const DeviceScope scope(stream_.device());
    auto report = counted("find in a compact table", [&](const char* doing, Atomic64* totals) {
      return detail::with_format(view.layout.table.fields, [&](auto format) {
        return launch(doing, {blocks(count), kCompactThreads}, stream_.get(), kernels::find_compact<decltype(format)>,
                      view, keys, count, values_out, depths_out, totals + size_t(Outcome::present),
                      totals + size_t(Outcome::reserved));
      });
    });
    if (report) report->absent = count - report->present - report->reserved;
    return report;
  }
  Result<BulkReport> erase(const CompactView& view, const uint32_t* keys, size_t count, uint32_t* old_values,
                           Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, keys, count));
    if (old_values == nullptr && outcomes == nullptr) {
      QRY_TRY_ASSIGN(const auto done,
                     in_pages("erase in compact pages", kernels::erase_in_compact_pages, view, keys, keys, count));
      if (done) return report_of_erases(*done, count);
    }
    return for_keys(kernels::EraseKey<CompactView>{view, keys, old_values}, count, outcomes,
                    "erase from a compact table");
  }

  Result<BulkReport> insert_exclusive(const CompactView& view, const uint32_t* keys, const uint32_t* values,
                                      size_t count, bool fresh) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (!worth_lists(view, count, fresh ? BulkTuning::kLeastKeysPerFreshPage : BulkTuning::kLeastKeysPerPage))
      return insert(view, keys, values, count, nullptr);
    const DeviceScope scope(stream_.device());
    BulkReport report;
    for (size_t begin = 0; begin < count; begin += BulkTuning::kMostBatch) {
      const uint32_t batch = uint32_t(std::min(BulkTuning::kMostBatch, count - begin));
      const auto got = with_page_lists(
          stream_, view.layout.table.pages, kernels::SplitForm::mixed, keys + begin, values + begin, batch,
          [&](const PageLists& pages) {
            return detail::with_format(view.layout.table.fields, [&](auto format) {
              const auto kernel = fresh && begin == 0 ? kernels::merge_compact<decltype(format), true>
                                                      : kernels::merge_compact<decltype(format), false>;
              return launch("merge into compact pages", {view.layout.table.pages, kCompactThreads, kQryPageBytes},
                            stream_.get(), kernel, view, pages);
            });
          });
      if (!got && got.error().code == ErrorCode::out_of_memory && begin == 0)
        return insert(view, keys, values, count, nullptr);
      QRY_TRY(got);
      if (got->overflowed != 0) {  // more equal keys than a list has room for
        report.full += batch;
        continue;
      }
      report.reserved += got->reserved;
      report.present += got->present;
      report.full += got->refused;
      report.inserted += batch - got->reserved - got->present - got->refused;
    }
    return report;
  }

  Result<BulkReport> insert_refused(const CompactView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                                    Outcome* outcomes) override {
    QRY_TRY(detail::check_batch(view, keys, values, count));
    if (count == 0) return BulkReport{};
    const DeviceScope scope(stream_.device());
    QRY_TRY(sweep(view));
    // The outcomes of other keys are counted too, before and after: the difference is the report on the refused keys.
    QRY_TRY_ASSIGN(const Scratch before, Scratch::allocate(stream_, count, "memory for outcomes"));
    QRY_TRY_ASSIGN(const BulkReport was,
                   for_keys(kernels::SameOutcome{outcomes}, count, before.as<Outcome>(), "count outcomes"));
    QRY_TRY_ASSIGN(const BulkReport now, for_keys(kernels::InsertRefused{view, keys, values, before.as<Outcome>()},
                                                  count, outcomes, "insert refused keys"));
    return BulkReport{.inserted = now.inserted - was.inserted, .present = now.present - was.present, .full = now.full};
  }

  Result<uint64_t> enumerate(const CompactView& view, uint32_t* keys, uint32_t* values, size_t capacity) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(stream_.device());
    // One more than pages: the last prefix sum is the number of pairs.
    const size_t sums = size_t{view.page_count} + 1;
    constexpr const char* kDoing = "enumerate a compact table";
    QRY_TRY_ASSIGN(const Scratch counts,
                   Scratch::zeroed(stream_, sums * 2 * sizeof(uint64_t), "memory for counts of pages"));
    uint64_t *const per_page = counts.as<uint64_t>(), *const begins = per_page + sums;
    const gpu::LaunchShape over_pages{page_blocks(view.page_count), kCompactThreads};
    QRY_TRY(launch(kDoing, over_pages, stream_.get(), kernels::count_compact, view, per_page));
    QRY_TRY(with_temporary(stream_, kDoing, [&](void* temporary, size_t& size_bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, size_bytes, per_page, begins, int(sums), stream_.get());
    }));
    if (capacity != 0)
      QRY_TRY(launch(kDoing, over_pages, stream_.get(), kernels::write_compact, view, of_table(view), of_stash(view),
                     begins, keys, values, capacity));
    uint64_t total = 0;
    QRY_TRY(
        check(cudaMemcpyAsync(&total, begins + view.page_count, sizeof(total), cudaMemcpyDeviceToHost, stream_.get()),
              kDoing));
    QRY_TRY(finish(kDoing));
    return total;
  }

  Result<uint64_t> rehash(const CompactView& from, const CompactView& to) override {
    QRY_TRY(detail::check_view(from));
    QRY_TRY(detail::check_view(to));
    const DeviceScope scope(stream_.device());
    return counting_refused("rehash a compact table", [&](const char* doing, Atomic64* refused) -> Result<void> {
      QRY_TRY(detail::with_format(to.layout.table.fields, [&](auto format) {
        constexpr uint32_t kSharedBytes = kQryPageBytes + kQrySectorsPerPage * 4;
        return launch(doing, {to.layout.table.pages, kCompactThreads, kSharedBytes}, stream_.get(),
                      kernels::rehash_compact<decltype(format)>, from, of_table(from), to, refused);
      }));
      if (from.layout.stash.pages == 0) return {};
      return launch(doing, {stash_blocks(from), kCompactThreads}, stream_.get(), kernels::empty_stash, from,
                    of_stash(from), to, false, refused);
    });
  }

  Result<void> sweep(const CompactView& view) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(stream_.device());
    const QryCompactPart &table = view.layout.table, &stash = view.layout.stash;
    QRY_TRY(counting_refused("sweep a compact table", [&](const char* doing, Atomic64* count) -> Result<void> {
      QRY_TRY(detail::with_format(table.fields, [&](auto format) {
        return launch(doing, {table.pages, kCompactThreads, kQryPageBytes}, stream_.get(),
                      kernels::sweep_compact<decltype(format)>, view, table, of_table(view));
      }));
      if (stash.pages == 0) return {};
      QRY_TRY(launch(doing, {stash_blocks(view), kCompactThreads}, stream_.get(), kernels::empty_stash, view,
                     of_stash(view), view, true, count));
      return launch(doing, {stash.pages, kCompactThreads, kQryPageBytes}, stream_.get(),
                    kernels::sweep_compact<detail::CompactFormat<1>>, view, stash, of_stash(view));
    }));
    return {};
  }

  Result<Stats> stats(const CompactView& view) override {
    QRY_TRY(detail::check_view(view));
    const DeviceScope scope(stream_.device());
    constexpr const char* kDoing = "statistics of a compact table";
    QRY_TRY_ASSIGN(const Scratch sums, Scratch::zeroed(stream_, sizeof(kernels::StatsSums), kDoing));
    kernels::StatsSums got{};
    QRY_TRY(launch(kDoing, {page_blocks(view.page_count), kCompactThreads}, stream_.get(), kernels::sum_compact_stats,
                   view, of_stash(view), sums.as<kernels::StatsSums>()));
    QRY_TRY(check(cudaMemcpyAsync(&got, sums.as<void>(), sizeof(got), cudaMemcpyDeviceToHost, stream_.get()), kDoing));
    QRY_TRY(finish(kDoing));
    Stats stats = kernels::stats_of(got);
    detail::finish_compact_stats(stats, view.page_count);
    return stats;
  }

 private:
  static detail::CompactInverse of_table(const CompactView& view) { return detail::CompactInverse(view.layout.table); }
  static detail::CompactInverse of_stash(const CompactView& view) { return detail::CompactInverse(view.layout.stash); }
  static bool worth_lists(const CompactView& view, size_t count, uint32_t least_per_page) {
    return count >= BulkTuning::kLeastBatch && count / view.layout.table.pages >= least_per_page;
  }
  // Runs the kernel over a large batch's lists by page. Empty if the keys must be processed one by one: the batch is
  // small, there is no scratch memory, or too many keys are equal.
  Result<std::optional<kernels::MergeTotals>> in_pages(const char* doing, void (*kernel)(CompactView, PageLists),
                                                       const CompactView& view, const uint32_t* keys,
                                                       const uint32_t* values, size_t count) const {
    if (!worth_lists(view, count, BulkTuning::kLeastKeysPerWindow) || count > BulkTuning::kMostBatch)
      return std::nullopt;
    const DeviceScope scope(stream_.device());
    const auto got = with_page_lists(stream_, view.layout.table.pages, kernels::SplitForm::mixed, keys, values,
                                     uint32_t(count), [&](const PageLists& pages) {
                                       return launch(doing, {view.layout.table.pages, kernels::kCompactWindowThreads},
                                                     stream_.get(), kernel, view, pages);
                                     });
    if (!got && got.error().code != ErrorCode::out_of_memory) return tl::unexpected(got.error());
    if (!got || got->overflowed != 0) return std::nullopt;
    return *got;
  }
  uint32_t blocks(size_t count) const {
    return uint32_t(std::min<size_t>((count + kCompactThreads - 1) / kCompactThreads,
                                     size_t{multiprocessors_} * kernels::kKeyBlocks));
  }
  uint32_t page_blocks(uint32_t pages) const { return std::min(pages, multiprocessors_ * kernels::kPageBlocks); }
  static uint32_t stash_blocks(const CompactView& view) {
    return view.layout.stash.pages * (kQrySectorsPerPage / kCompactThreads);
  }

  Result<void> finish(const char* doing) const { return check(cudaStreamSynchronize(stream_.get()), doing); }

  // Runs launches(doing, counter) with a zeroed counter of pairs that found no place, waits and reads it.
  template <class Launches>
  Result<uint64_t> counting_refused(const char* doing, const Launches& launches) const {
    QRY_TRY_ASSIGN(const BulkReport report, counted(doing, launches));
    return report.inserted;  // the first of the counters
  }

  // Runs launches(doing, totals) with a zeroed count for each Outcome, waits and reads them.
  template <class Launches>
  Result<BulkReport> counted(const char* doing, const Launches& launches) const {
    Atomic64 got[kOutcomes] = {};
    QRY_TRY_ASSIGN(const Scratch totals, Scratch::zeroed(stream_, sizeof(got), doing));
    QRY_TRY(launches(doing, totals.as<Atomic64>()));
    QRY_TRY(check(cudaMemcpyAsync(got, totals.as<void>(), sizeof(got), cudaMemcpyDeviceToHost, stream_.get()), doing));
    QRY_TRY(finish(doing));
    const auto of = [&](Outcome outcome) { return uint64_t{got[size_t(outcome)]}; };
    return BulkReport{of(Outcome::inserted), of(Outcome::present), of(Outcome::assigned), of(Outcome::erased),
                      of(Outcome::absent),   of(Outcome::full),    of(Outcome::reserved)};
  }

  template <class Operation>
  Result<BulkReport> for_keys(const Operation& operation, size_t count, Outcome* outcomes, const char* of_what) const {
    if (count == 0) return BulkReport{};
    const DeviceScope scope(stream_.device());
    return counted(of_what, [&](const char* doing, Atomic64* totals) {
      return launch(doing, {blocks(count), kernels::kKeyThreads}, stream_.get(), kernels::for_each_key<Operation>,
                    operation, count, outcomes, totals);
    });
  }

  const gpu::DeviceStream& stream_;
  uint32_t multiprocessors_;
};

}  // namespace

std::unique_ptr<BulkOperations<CompactView>> make_cuda_compact(const gpu::DeviceStream& stream,
                                                               uint32_t multiprocessors) {
  return std::make_unique<CudaCompact>(stream, multiprocessors);
}

// For the caller's stream (cuda/enqueue.cuh).
template Result<void> enqueue_insert(cudaStream_t, const CompactView&, const uint32_t*, const uint32_t*, size_t,
                                     Outcome*, OutcomeCounts*);
template Result<void> enqueue_assign(cudaStream_t, const CompactView&, const uint32_t*, const uint32_t*, size_t,
                                     Outcome*, OutcomeCounts*);
template Result<void> enqueue_find_or_insert(cudaStream_t, const CompactView&, const uint32_t*, uint32_t*, size_t,
                                             Outcome*, OutcomeCounts*);
template Result<void> enqueue_find(cudaStream_t, const CompactView&, const uint32_t*, size_t, uint32_t*, Outcome*,
                                   OutcomeCounts*);
template Result<void> enqueue_erase(cudaStream_t, const CompactView&, const uint32_t*, size_t, uint32_t*, Outcome*,
                                    OutcomeCounts*);

}  // namespace quarry::hashgrid
