// page_lists.cuh - a batch in lists by page: the launches of split.cuh, and what stands around every bulk call that goes page by page.
#pragma once

#include <algorithm>

#include "hashgrid/cuda/error.cuh"
#include "hashgrid/cuda/split.cuh"

namespace quarry::hashgrid {

constexpr uint32_t kRangesAtMost = 256;  // of the first pass: see the head of split.cuh
constexpr uint32_t kMostRoom = 14335;    // of a page's list: longer ones, most of which are copies, keep one block busy for too long

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
inline cudaError_t split_pass(cudaStream_t stream, const kernels::SplitPass& pass, dim3 grid) {
  const size_t shared_bytes = kernels::split_shared_bytes(pass.ranges);
  if (const auto error = cudaFuncSetAttribute(kernels::split_pairs<kFirst>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes)))
    return error;
  kernels::split_pairs<kFirst><<<grid, kernels::kSplitThreads, shared_bytes, stream>>>(pass);
  return cudaGetLastError();
}

inline uint32_t split_tiles(uint32_t count) { return (count + kernels::kSplitTile - 1) / kernels::kSplitTile; }

// A batch's pairs in lists by page, in scratch memory, and what came of it.
struct PageLists {
  uint2* lists;
  uint32_t* sizes;
  uint32_t room;
  kernels::MergeTotals* totals;
};

// Splits one batch and calls work(lists) -> cudaError_t, which launches what is done with them; then waits and reads the totals.
// totals->overflowed: some list was too short (or the batch or the device is not for this), the lists are worthless; `work`'s kernel must
// look at it and then do nothing.
template <class Work>
Result<kernels::MergeTotals> with_page_lists(cudaStream_t stream, uint32_t page_count, kernels::SplitForm form, const uint32_t* keys,
                                             const uint32_t* values, uint32_t count, const Work& work) {
  // About as many pages in a range as there are ranges.
  uint32_t shift = 0;
  while ((page_count - 1) >> shift >= kRangesAtMost || (shift != 0 && (page_count - 1) >> shift >= 2u << shift)) ++shift;
  const uint32_t ranges = ((page_count - 1) >> shift) + 1;
  const uint32_t range_room = kernels::list_room(uint64_t{count} << shift, std::max(page_count, 1u << shift));
  const uint32_t page_room = kernels::list_room(count, page_count);
  kernels::MergeTotals got{};
  // Devices before Ampere have too little shared memory for a tile: there keys go one by one.
  int device = 0, shared_bytes = 0;
  cudaError_t asked = cudaGetDevice(&device);
  if (asked == cudaSuccess) asked = cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (auto ok = cuda_result(asked, "ask the device"); !ok) return tl::unexpected(ok.error());
  constexpr size_t kStaticSharedBytes = 128;
  const size_t needed = kernels::split_shared_bytes(std::max(ranges, 1u << shift)) + kStaticSharedBytes;
  if (page_room > kMostRoom || needed > size_t(shared_bytes)) {
    got.overflowed = 1;
    return got;
  }

  const size_t counters_bytes = sizeof(kernels::MergeTotals) + (size_t{ranges} + page_count) * sizeof(uint32_t);
  const PoolMemory counters(stream, counters_bytes);
  const PoolMemory range_lists(stream, shift == 0 ? 16 : size_t{ranges} * range_room * sizeof(uint2));
  const PoolMemory page_lists(stream, size_t{page_count} * page_room * sizeof(uint2));
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
  pass.page_count = page_count;
  pass.form = form;
  pass.shift = shift;
  pass.ranges = ranges;
  pass.lists = shift == 0 ? page_lists.as<uint2>() : range_lists.as<uint2>();
  pass.sizes = shift == 0 ? page_sizes : range_sizes;
  pass.room = shift == 0 ? page_room : range_room;
  pass.totals = totals;
  if (error == cudaSuccess) error = split_pass<true>(stream, pass, dim3(split_tiles(count)));
  if (shift != 0 && error == cudaSuccess) {
    pass.lists_in = range_lists.as<uint2>();
    pass.sizes_in = range_sizes;
    pass.room_in = range_room;
    pass.ranges = 1u << shift;
    pass.lists = page_lists.as<uint2>();
    pass.sizes = page_sizes;
    pass.room = page_room;
    error = split_pass<false>(stream, pass, dim3(split_tiles(range_room), ranges));
  }
  if (error == cudaSuccess) error = work(PageLists{page_lists.as<uint2>(), page_sizes, page_room, totals});
  if (error == cudaSuccess) error = cudaMemcpyAsync(&got, totals, sizeof(got), cudaMemcpyDeviceToHost, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (auto ok = cuda_result(error, "bulk call"); !ok) return tl::unexpected(ok.error());
  return got;
}

}  // namespace quarry::hashgrid
