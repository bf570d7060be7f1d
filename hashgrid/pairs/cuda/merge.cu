#include <algorithm>

#include "hashgrid/pairs/cuda/merge.cuh"
#include "hashgrid/pairs/cuda/page_builds.cuh"
#include "hashgrid/pairs/cuda/put.cuh"

namespace quarry::hashgrid {
namespace {

constexpr uint32_t kMergeThreads = 256;
constexpr uint32_t kMergeHeld = 8;
constexpr uint32_t kMergeBlocks = 5;  // 43 KiB of shared memory each

constexpr uint32_t kPagesAtMost = 1u << 21;
constexpr size_t kLeastBatch = 1u << 18;  // below, five launches cost more than they save
constexpr size_t kMostBatch = 1u << 28;   // list positions are 32-bit
// Streaming a page through shared memory takes 19 ns, 9 ns if it need not be read; a key inserted by itself takes 0.08 ns.
constexpr uint32_t kLeastKeysPerPage = 240, kLeastKeysPerFreshPage = 120;

template <bool kFresh>
cudaError_t merge(cudaStream_t stream, const GridView& view, uint2* lists, uint32_t room, uint32_t* sizes,
                  kernels::MergeTotals* totals) {
  const auto kernel = kernels::merge_pages<kMergeThreads, kMergeHeld, kMergeBlocks, kFresh>;
  constexpr int kSharedBytes = int(sizeof(kernels::MergePage));
  if (const auto error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes)) return error;
  const uint32_t gap_phase = view.phase == 0 ? 1 : view.phase - 1;
  kernel<<<view.page_count, kMergeThreads, kSharedBytes, stream>>>(view, gap_phase, lists, room, sizes, totals);
  const uint32_t blocks = (view.page_count + kernels::kLeavePages - 1) / kernels::kLeavePages;
  kernels::leave_stash<<<blocks, kernels::kLeaveThreads, 0, stream>>>(view, gap_phase, lists, room, sizes, totals);
  return cudaGetLastError();
}

constexpr uint32_t kWindowThreads = 512;
constexpr uint32_t kLeastKeysPerWindow = 256;  // reading a page takes 9 ns, a random sector 0.03

__global__ void __launch_bounds__(kWindowThreads) erase_in_pages(GridView view, PageLists pages) {
  if (pages.totals->overflowed != 0) return;
  const uint32_t size = pages.sizes[blockIdx.x];
  const uint2* const list = pages.lists + size_t{blockIdx.x} * pages.room;
  if (threadIdx.x == 0 && size != 0) kernels::fetch_page(view.words + size_t{blockIdx.x} * kQryPageWords);
  uint32_t absent = 0;
  for (uint32_t i = threadIdx.x; i < size; i += kWindowThreads) {
    const uint32_t stored = __ldcs(list + i).x;
    absent += detail::take<detail::SharedWords>(view, qry_place_stored(stored, view.page_count), stored, nullptr) == Outcome::absent;
  }
  absent = __reduce_add_sync(0xFFFFFFFFu, absent);
  if (threadIdx.x % 32 == 0 && absent != 0) atomicAdd(&pages.totals->refused, (unsigned long long)absent);
}

}  // namespace

bool worth_merging(uint32_t page_count, size_t count, bool fresh) {
  return count >= kLeastBatch && page_count <= kPagesAtMost && count / page_count >= (fresh ? kLeastKeysPerFreshPage : kLeastKeysPerPage);
}

Result<BulkReport> bulk_merge(cudaStream_t stream, const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count,
                              bool fresh) {
  BulkReport report;
  for (size_t begin = 0; begin < count; begin += kMostBatch) {
    const uint32_t batch = uint32_t(std::min(kMostBatch, count - begin));
    const auto got = with_page_lists(stream, view.page_count, kernels::SplitForm(view.locality), keys + begin, values + begin, batch, [&](const PageLists& pages) {
      return fresh && begin == 0 ? merge<true>(stream, view, pages.lists, pages.room, pages.sizes, pages.totals)
                                 : merge<false>(stream, view, pages.lists, pages.room, pages.sizes, pages.totals);
    });
    if (!got) return tl::unexpected(got.error());
    if (got->overflowed != 0) {  // equal keys, more than a list has room for
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

bool worth_windows(uint32_t page_count, size_t count) {
  return count >= kLeastBatch && count <= kMostBatch && page_count <= kPagesAtMost && count / page_count >= kLeastKeysPerWindow;
}

Result<BulkReport> bulk_put(cudaStream_t stream, const GridView& view, const uint32_t* keys, const uint32_t* values, size_t count, bool assigns) {
  const auto got = with_page_lists(stream, view.page_count, kernels::SplitForm(view.locality), keys, values, uint32_t(count), [&](const PageLists& pages) {
    assigns ? put_in_pages<detail::IfPresent::replace>(stream, view, pages) : put_in_pages<detail::IfPresent::keep>(stream, view, pages);
    return cudaGetLastError();
  });
  if (!got) return tl::unexpected(got.error());
  if (got->overflowed != 0) return fail(ErrorCode::out_of_memory, "bulk insert: too many equal keys for the lists of pages");
  BulkReport report;
  report.reserved = got->reserved;
  (assigns ? report.assigned : report.present) = got->present;
  report.full = got->refused;
  report.inserted = count - report.reserved - got->present - report.full;
  return report;
}

Result<BulkReport> bulk_erase(cudaStream_t stream, const GridView& view, const uint32_t* keys, size_t count) {
  const auto got = with_page_lists(stream, view.page_count, kernels::SplitForm(view.locality), keys, keys, uint32_t(count), [&](const PageLists& pages) {
    erase_in_pages<<<view.page_count, kWindowThreads, 0, stream>>>(view, pages);
    return cudaGetLastError();
  });
  if (!got) return tl::unexpected(got.error());
  if (got->overflowed != 0) return fail(ErrorCode::out_of_memory, "bulk erase: too many equal keys for the lists of pages");
  BulkReport report;
  report.reserved = got->reserved;
  report.absent = got->refused;
  report.erased = count - report.reserved - report.absent;
  return report;
}

}  // namespace quarry::hashgrid
