#include <algorithm>
#include <utility>

#include "hashgrid/bulk_merge.cuh"
#include "hashgrid/bulk_pages.cuh"
#include "hashgrid/cuda_stream.cuh"

namespace quarry::hashgrid {
namespace {

constexpr uint32_t kMergeThreads = 256;
constexpr uint32_t kMergeHeld = 8;
constexpr uint32_t kMergeBlocks = 5;  // 43 KiB of shared memory each

constexpr uint32_t kRangesAtMost = 256;  // of the first pass: see the head of bulk_split.cuh
constexpr uint32_t kPagesAtMost = 1u << 21;
constexpr size_t kLeastBatch = 1u << 18;  // below, five launches cost more than they save
constexpr size_t kMostBatch = 1u << 28;   // list positions are 32-bit
// Streaming a page through shared memory takes 19 ns, 9 ns if it need not be read; a key inserted by itself takes 0.08 ns.
constexpr uint32_t kLeastKeysPerPage = 240, kLeastKeysPerFreshPage = 120;
// A bucket's 16-bit counter holds a list's arrivals and every second step of all walks.
constexpr uint32_t kMostRoom = 65535u - kernels::kWalkers * kernels::kWalkSteps / 2;

// Memory from the stream's pool.
class PoolMemory {
 public:
  PoolMemory(cudaStream_t stream, size_t size_bytes) : stream_(stream) { error_ = cudaMallocAsync(&data_, size_bytes, stream); }
  PoolMemory(const PoolMemory&) = delete;
  PoolMemory& operator=(const PoolMemory&) = delete;
  ~PoolMemory() {
    if (data_ != nullptr) cudaFreeAsync(data_, stream_);
  }
  cudaError_t error() const { return error_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  cudaStream_t stream_;
  void* data_ = nullptr;
  cudaError_t error_;
};

template <bool kFirst>
cudaError_t split(cudaStream_t stream, const kernels::SplitPass& pass, dim3 grid) {
  const size_t shared_bytes = kernels::split_shared_bytes(pass.ranges);
  if (const auto error = cudaFuncSetAttribute(kernels::split_pairs<kFirst>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes)))
    return error;
  kernels::split_pairs<kFirst><<<grid, kernels::kSplitThreads, shared_bytes, stream>>>(pass);
  return cudaGetLastError();
}

template <bool kFresh>
cudaError_t merge(cudaStream_t stream, const GridView& view, uint2* lists, uint32_t room, const uint32_t* sizes,
                  kernels::MergeTotals* totals) {
  const auto kernel = kernels::merge_pages<kMergeThreads, kMergeHeld, kMergeBlocks, kFresh>;
  constexpr int kSharedBytes = int(sizeof(kernels::MergePage));
  if (const auto error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes)) return error;
  const uint32_t gap_phase = view.phase == 0 ? 1 : view.phase - 1;
  kernel<<<view.page_count, kMergeThreads, kSharedBytes, stream>>>(view.words, view.page_count, gap_phase, lists, room, sizes, totals);
  return cudaGetLastError();
}

uint32_t tiles(uint32_t count) { return (count + kernels::kSplitTile - 1) / kernels::kSplitTile; }

// A batch's pairs in lists by page, in scratch memory, and what came of it.
struct PageLists {
  uint2* lists;
  const uint32_t* sizes;
  uint32_t room;
  kernels::MergeTotals* totals;
};

// Splits one batch and calls work(lists) -> cudaError_t, which launches what is done with them; then waits and reads the totals.
// `crowded`: some list was too short, the lists are worthless; `work`'s kernel must look at totals->overflowed and do nothing.
template <class Work>
Result<kernels::MergeTotals> with_page_lists(cudaStream_t stream, const GridView& view, const uint32_t* keys, const uint32_t* values,
                                             uint32_t count, const Work& work) {
  // About as many pages in a range as there are ranges.
  uint32_t shift = 0;
  while ((view.page_count - 1) >> shift >= kRangesAtMost || (shift != 0 && (view.page_count - 1) >> shift >= 2u << shift)) ++shift;
  const uint32_t ranges = ((view.page_count - 1) >> shift) + 1;
  const uint32_t range_room = kernels::list_room(uint64_t{count} << shift, std::max(view.page_count, 1u << shift));
  const uint32_t page_room = kernels::list_room(count, view.page_count);
  kernels::MergeTotals got{};
  if (page_room > kMostRoom) {
    got.overflowed = 1;
    return got;
  }

  const size_t counters_bytes = sizeof(kernels::MergeTotals) + (size_t{ranges} + view.page_count) * sizeof(uint32_t);
  const PoolMemory counters(stream, counters_bytes);
  const PoolMemory range_lists(stream, shift == 0 ? 16 : size_t{ranges} * range_room * sizeof(uint2));
  const PoolMemory page_lists(stream, size_t{view.page_count} * page_room * sizeof(uint2));
  for (const PoolMemory* memory : {&counters, &range_lists, &page_lists}) {
    if (auto ok = cuda_result(memory->error(), "scratch memory for a bulk call"); !ok) {
      cudaGetLastError();
      return tl::unexpected(ok.error());
    }
  }
  auto* const totals = counters.as<kernels::MergeTotals>();
  auto* const range_sizes = reinterpret_cast<uint32_t*>(totals + 1);
  uint32_t* const page_sizes = range_sizes + ranges;

  cudaError_t error = cudaMemsetAsync(totals, 0, counters_bytes, stream);
  kernels::SplitPass pass{};
  pass.keys = keys;
  pass.values = values;
  pass.count = count;
  pass.page_count = view.page_count;
  pass.shift = shift;
  pass.ranges = ranges;
  pass.lists = shift == 0 ? page_lists.as<uint2>() : range_lists.as<uint2>();
  pass.sizes = shift == 0 ? page_sizes : range_sizes;
  pass.room = shift == 0 ? page_room : range_room;
  pass.totals = totals;
  if (error == cudaSuccess) error = split<true>(stream, pass, dim3(tiles(count)));
  if (shift != 0 && error == cudaSuccess) {
    pass.lists_in = range_lists.as<uint2>();
    pass.sizes_in = range_sizes;
    pass.room_in = range_room;
    pass.ranges = 1u << shift;
    pass.lists = page_lists.as<uint2>();
    pass.sizes = page_sizes;
    pass.room = page_room;
    error = split<false>(stream, pass, dim3(tiles(range_room), ranges));
  }
  if (error == cudaSuccess) error = work(PageLists{page_lists.as<uint2>(), page_sizes, page_room, totals});
  if (error == cudaSuccess) error = cudaMemcpyAsync(&got, totals, sizeof(got), cudaMemcpyDeviceToHost, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (auto ok = cuda_result(error, "bulk call"); !ok) return tl::unexpected(ok.error());
  return got;
}

constexpr uint32_t kWindowThreads = 512;
constexpr uint32_t kLeastKeysPerWindow = 256;  // reading a page takes 9 ns, a random sector 0.03

__global__ void __launch_bounds__(kWindowThreads) erase_in_pages(GridView view, PageLists pages) {
  if (pages.totals->overflowed != 0) return;
  const uint32_t size = pages.sizes[blockIdx.x];
  const uint2* const list = pages.lists + size_t{blockIdx.x} * pages.room;
  uint64_t* const words = view.words + size_t{blockIdx.x} * kQryPageWords;
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0 && size != 0)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(words)), "r"(kQryPageBytes) : "memory");
#endif
  uint32_t absent = 0;
  for (uint32_t i = threadIdx.x; i < size; i += kWindowThreads) {
    const uint32_t mixed = __ldcs(list + i).x;
    absent += detail::take<detail::SharedWords>(words, qry_place_mixed(mixed, view.page_count), qry_unmix(mixed), view.phase, nullptr) ==
              Outcome::absent;
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
    const auto got = with_page_lists(stream, view, keys + begin, values + begin, batch, [&](const PageLists& pages) {
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

Result<BulkReport> bulk_erase(cudaStream_t stream, const GridView& view, const uint32_t* keys, size_t count) {
  const auto got = with_page_lists(stream, view, keys, keys, uint32_t(count), [&](const PageLists& pages) {
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
