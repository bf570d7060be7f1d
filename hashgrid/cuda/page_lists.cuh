// SPDX-License-Identifier: Apache-2.0
// page_lists.cuh - a batch in lists by page: launches split.cuh, and has the common parts of every bulk call that goes
// page by page.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/cuda/launch.cuh"
#include "base/cuda/scratch.cuh"
#include "hashgrid/cuda/split.cuh"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

namespace kernels {
// Fetches a page into the L2 cache; does not wait.
__device__ inline void fetch_page(const void* page) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(page)), "r"(kQryPageBytes)
               : "memory");
#endif
}
}  // namespace kernels

// What a batch of inserts or assigns has come to, of whose lists everything was put but what `got` counts as refused.
inline BulkReport report_of_puts(const kernels::MergeTotals& got, size_t count, bool assigns) {
  BulkReport report;
  report.reserved = got.reserved;
  (assigns ? report.assigned : report.present) = got.present;
  report.full = got.refused;
  report.inserted = count - got.reserved - got.present - got.refused;
  return report;
}
// The same of a batch of erases: `got` counts absent keys as refused.
inline BulkReport report_of_erases(const kernels::MergeTotals& got, size_t count) {
  BulkReport report;
  report.reserved = got.reserved;
  report.absent = got.refused;
  report.erased = count - got.reserved - got.refused;
  return report;
}

constexpr uint32_t kRangesAtMost = 256;  // of the first pass: see the head of split.cuh
constexpr uint32_t kMostRoom = 14335;    // of a page's list: longer ones, mostly duplicates, take one block too long

template <bool kFirst>
inline Result<void> split_pass(cudaStream_t stream, const kernels::SplitPass& pass, dim3 grid) {
  const size_t shared_bytes = kernels::split_shared_bytes(pass.ranges);
  QRY_TRY(gpu::allow_shared_bytes("bulk call", kernels::split_pairs<kFirst>, shared_bytes));
  return gpu::launch("split by page", {grid, kernels::kSplitThreads, shared_bytes}, stream,
                     kernels::split_pairs<kFirst>, pass);
}

inline uint32_t split_tiles(uint32_t count) { return (count + kernels::kSplitTile - 1) / kernels::kSplitTile; }

// Splits one batch and calls work(lists) -> Result<void>, which launches the kernels that use the lists; then waits and
// reads the totals. totals->overflowed: some list was too short (or batch or device do not qualify) and the lists are
// invalid; `work`'s kernel must check it and then do nothing.
template <class Work>
Result<kernels::MergeTotals> with_page_lists(const gpu::DeviceStream& device_stream, uint32_t page_count,
                                             kernels::SplitForm form, const uint32_t* keys, const uint32_t* values,
                                             uint32_t count, const Work& work) {
  const cudaStream_t stream = device_stream.get();
  // Roughly as many pages in a range as ranges.
  uint32_t shift = 0;
  while ((page_count - 1) >> shift >= kRangesAtMost || (shift != 0 && (page_count - 1) >> shift >= 2u << shift))
    ++shift;
  const uint32_t ranges = ((page_count - 1) >> shift) + 1;
  const uint32_t range_room = kernels::list_room(uint64_t{count} << shift, std::max(page_count, 1u << shift));
  const uint32_t page_room = kernels::list_room(count, page_count);
  kernels::MergeTotals got{};
  // Devices before Ampere have too little shared memory for a tile: there keys are processed one by one.
  int shared_bytes = 0;
  QRY_TRY(gpu::check(
      cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_stream.device().ordinal),
      "ask the device"));
  constexpr size_t kStaticSharedBytes = 128;
  const size_t needed = kernels::split_shared_bytes(std::max(ranges, 1u << shift)) + kStaticSharedBytes;
  if (page_room > kMostRoom || needed > size_t(shared_bytes)) {
    got.overflowed = 1;
    return got;
  }

  // One allocation: calls to the driver are a good part of what a small batch takes. Counters, then lists.
  constexpr size_t kAligned = 256;
  const auto aligned = [](size_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; };
  const size_t counters_bytes =
      aligned(sizeof(kernels::MergeTotals) + (size_t{ranges} + page_count) * sizeof(uint32_t));
  const size_t ranges_bytes = shift == 0 ? 0 : aligned(size_t{ranges} * range_room * sizeof(uint2));
  const size_t pages_bytes = size_t{page_count} * page_room * sizeof(uint2);
  QRY_TRY_ASSIGN(const gpu::Scratch scratch,
                 gpu::Scratch::allocate(device_stream, counters_bytes + ranges_bytes + pages_bytes,
                                        "scratch memory for a bulk call"));
  auto* const totals = scratch.as<kernels::MergeTotals>();
  QRY_TRY(gpu::check(cudaMemsetAsync(totals, 0, counters_bytes, stream), "bulk call"));
  auto* const range_lists = reinterpret_cast<uint2*>(scratch.as<std::byte>() + counters_bytes);
  auto* const page_lists = reinterpret_cast<uint2*>(scratch.as<std::byte>() + counters_bytes + ranges_bytes);
  auto* const range_sizes = reinterpret_cast<uint32_t*>(totals + 1);
  uint32_t* const page_sizes = range_sizes + ranges;

  kernels::SplitPass pass{};
  pass.keys = keys;
  pass.values = values;
  pass.count = count;
  pass.page_count = page_count;
  pass.form = form;
  pass.shift = shift;
  pass.ranges = ranges;
  pass.lists = shift == 0 ? page_lists : range_lists;
  pass.sizes = shift == 0 ? page_sizes : range_sizes;
  pass.room = shift == 0 ? page_room : range_room;
  pass.totals = totals;
  QRY_TRY(split_pass<true>(stream, pass, dim3(split_tiles(count))));
  if (shift != 0) {
    pass.lists_in = range_lists;
    pass.sizes_in = range_sizes;
    pass.room_in = range_room;
    pass.ranges = 1u << shift;
    pass.lists = page_lists;
    pass.sizes = page_sizes;
    pass.room = page_room;
    QRY_TRY(split_pass<false>(stream, pass, dim3(split_tiles(range_room), ranges)));
  }
  QRY_TRY(work(PageLists{page_lists, page_sizes, page_room, totals}));
  QRY_TRY(gpu::check(cudaMemcpyAsync(&got, totals, sizeof(got), cudaMemcpyDeviceToHost, stream), "bulk call"));
  QRY_TRY(gpu::check(cudaStreamSynchronize(stream), "bulk call"));
  return got;
}

}  // namespace quarry::hashgrid
