// SPDX-License-Identifier: Apache-2.0
// merge.cu - launches, scratch memory, and the thresholds above which streaming pages is faster than key by key.
#include <algorithm>

#include "hashgrid/cuda/page_lists.cuh"
#include "hashgrid/pairs/cuda/merge.cuh"
#include "hashgrid/pairs/cuda/page_builds.cuh"
#include "hashgrid/pairs/cuda/put.cuh"

namespace quarry::hashgrid {
namespace {

template <bool kFresh>
Result<void> merge(cudaStream_t stream, const GridView& view, const PageLists& pages) {
  const auto kernel = kernels::merge_pages<kernels::kMergeThreads, kernels::kMergeHeld, kernels::kMergeBlocks, kFresh>;
  constexpr size_t kSharedBytes = sizeof(kernels::MergePage);
  QRY_TRY(gpu::allow_shared_bytes("bulk call", kernel, kSharedBytes));
  const uint32_t gap_phase = view.phase == 0 ? 1 : view.phase - 1;
  QRY_TRY(gpu::launch("merge into pages", {view.page_count, kernels::kMergeThreads, kSharedBytes}, stream, kernel, view,
                      gap_phase, pages.lists, pages.room, pages.sizes, pages.totals));
  const uint32_t blocks = (view.page_count + kernels::kLeavePages - 1) / kernels::kLeavePages;
  return gpu::launch("leave to the stash", {blocks, kernels::kLeaveThreads}, stream, kernels::leave_stash, view,
                     gap_phase, pages.lists, pages.room, pages.sizes, pages.totals);
}

template <detail::IfPresent kIfPresent>
Result<void> put_in_pages(cudaStream_t stream, const GridView& view, const PageLists& pages) {
  QRY_TRY(gpu::launch("put, home buckets", {view.page_count, kernels::kPutThreads}, stream,
                      kernels::put_mostly<kIfPresent>, view, pages));
  const uint32_t blocks = (view.page_count + kernels::kRestPages - 1) / kernels::kRestPages;
  return gpu::launch("put, the rest", {blocks, kernels::kRestThreads}, stream, kernels::put_rest<kIfPresent>, view,
                     pages);
}

}  // namespace

bool worth_merging(uint32_t page_count, size_t count, bool fresh) {
  return count >= BulkTuning::kLeastMerge && page_count <= BulkTuning::kMostPages &&
         count / page_count >= (fresh ? BulkTuning::kLeastKeysPerFreshPage : BulkTuning::kLeastKeysPerPage);
}

Result<BulkReport> bulk_merge(const gpu::DeviceStream& stream, const GridView& view, const uint32_t* keys,
                              const uint32_t* values, size_t count, bool fresh) {
  BulkReport report;
  for (size_t begin = 0; begin < count; begin += BulkTuning::kMostBatch) {
    const uint32_t batch = uint32_t(std::min(BulkTuning::kMostBatch, count - begin));
    QRY_TRY_ASSIGN(const auto got, with_page_lists(stream, view.page_count, kernels::SplitForm(view.locality),
                                                   keys + begin, values + begin, batch, [&](const PageLists& pages) {
                                                     return fresh && begin == 0
                                                                ? merge<true>(stream.get(), view, pages)
                                                                : merge<false>(stream.get(), view, pages);
                                                   }));
    if (got.overflowed != 0) {  // more equal keys than a list has room for
      report.full += batch;
      continue;
    }
    report.reserved += got.reserved;
    report.present += got.present;
    report.full += got.refused;
    report.inserted += batch - got.reserved - got.present - got.refused;
  }
  return report;
}

bool worth_windows(uint32_t page_count, size_t count) {
  return count >= BulkTuning::kLeastBatch && count <= BulkTuning::kMostBatch && page_count <= BulkTuning::kMostPages &&
         count / page_count >= BulkTuning::kLeastKeysPerWindow;
}

Result<std::optional<BulkReport>> bulk_upsert(const gpu::DeviceStream& stream, const GridView& view,
                                              const uint32_t* keys, const uint32_t* values, size_t count,
                                              bool assigns) {
  QRY_TRY_ASSIGN(const auto got,
                 with_page_lists(stream, view.page_count, kernels::SplitForm(view.locality), keys, values,
                                 uint32_t(count), [&](const PageLists& pages) {
                                   return assigns ? put_in_pages<detail::IfPresent::replace>(stream.get(), view, pages)
                                                  : put_in_pages<detail::IfPresent::keep>(stream.get(), view, pages);
                                 }));
  if (got.overflowed != 0) return std::nullopt;
  return report_of_puts(got, count, assigns);
}

Result<std::optional<BulkReport>> bulk_erase(const gpu::DeviceStream& stream, const GridView& view,
                                             const uint32_t* keys, size_t count) {
  QRY_TRY_ASSIGN(const auto got, with_page_lists(stream, view.page_count, kernels::SplitForm(view.locality), keys, keys,
                                                 uint32_t(count), [&](const PageLists& pages) {
                                                   return gpu::launch(
                                                       "erase in pages", {view.page_count, kernels::kWindowThreads},
                                                       stream.get(), kernels::erase_in_pages, view, pages);
                                                 }));
  if (got.overflowed != 0) return std::nullopt;
  return report_of_erases(got, count);
}

}  // namespace quarry::hashgrid
