// SPDX-License-Identifier: Apache-2.0
// counted_split.cuh - splits a batch of pairs by page into lists that lie side by side, however many equal keys it has:
// before each pass of split.cuh, the pairs of every list are counted.
//
// Cost: of a batch of at most 256 pages, 4 bytes of each pair read, and 16 read or written; of more, 12 and 32.
#pragma once

#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <string>

#include "base/cuda/launch.cuh"
#include "base/cuda/scratch.cuh"
#include "hashgrid/cuda/split.cuh"

namespace quarry::hashgrid {
namespace kernels {

constexpr uint32_t kCountBlocks = 4;  // of the first pass on a multiprocessor: each adds a list's number to memory once
constexpr uint32_t kCountFours = 4;   // loads of a thread at once
constexpr uint32_t kRangeThreads = 512, kRangesEach = 4;

// Counts the pairs that a pass will put into every list. `fault`: the first pair of the batch with a reserved key.
template <bool kFirst>
__global__ void __launch_bounds__(kSplitThreads) count_pairs(SplitPass pass, uint32_t* counts, uint64_t* fault) {
  extern __shared__ uint32_t numbers[];
  const uint32_t thread = threadIdx.x;
  for (uint32_t r = thread; r < pass.ranges; r += kSplitThreads) numbers[r] = 0;
  __syncthreads();
  const auto page_of = [&pass](uint32_t stored) { return __umulhi(stored & ~7u, pass.page_count); };
  uint32_t list_in = 0;
  if constexpr (kFirst) {
    const auto count_key = [&](uint32_t key, size_t i) {
      if (key == kQryReservedKey) atomicMin(reinterpret_cast<unsigned long long*>(fault), (unsigned long long)i);
      atomicAdd(&numbers[page_of(qry_stored_key(key, uint32_t(pass.form))) >> pass.shift], 1u);
    };
    // Four keys a load, of those from the first that lies so.
    const size_t count = pass.count, stride = size_t{gridDim.x} * kSplitThreads;
    const size_t me = size_t{blockIdx.x} * kSplitThreads + thread;
    const size_t ahead = min(count, (16 - reinterpret_cast<uintptr_t>(pass.keys) % 16) % 16 / sizeof(uint32_t));
    const uint4* const fours = reinterpret_cast<const uint4*>(pass.keys + ahead);
    const size_t of_fours = (count - ahead) / 4;
    for (size_t first = me; first < of_fours; first += stride * kCountFours) {
      uint4 four[kCountFours];
#pragma unroll
      for (uint32_t j = 0; j < kCountFours; ++j)
        if (first + j * stride < of_fours) four[j] = fours[first + j * stride];
#pragma unroll
      for (uint32_t j = 0; j < kCountFours; ++j) {
        if (first + j * stride >= of_fours) break;
        const size_t i = ahead + (first + j * stride) * 4;
        count_key(four[j].x, i);
        count_key(four[j].y, i + 1);
        count_key(four[j].z, i + 2);
        count_key(four[j].w, i + 3);
      }
    }
    if (me < ahead) count_key(pass.keys[me], me);
    const size_t rest = ahead + of_fours * 4;
    if (me < count - rest) count_key(pass.keys[rest + me], rest + me);
  } else {
    const SplitTile tile = counted_tile(pass.ranges_in);
    list_in = tile.list;
    if (list_in == pass.ranges_in.number) return;
    const uint32_t count = min(pass.ranges_in.sizes[list_in] - tile.begin, kSplitTile);
    const uint2* const from = pass.lists_in + pass.ranges_in.begins[list_in] + tile.begin;
    uint32_t stored[kSplitPerThread];
#pragma unroll
    for (uint32_t j = 0; j < kSplitPerThread; ++j)
      if (j * kSplitThreads + thread < count) stored[j] = from[j * kSplitThreads + thread].x;
#pragma unroll
    for (uint32_t j = 0; j < kSplitPerThread; ++j)
      if (j * kSplitThreads + thread < count) atomicAdd(&numbers[page_of(stored[j]) & ((1u << pass.shift) - 1u)], 1u);
  }
  __syncthreads();
  for (uint32_t r = thread; r < pass.ranges; r += kSplitThreads)
    if (numbers[r] != 0) atomicAdd(counts + (list_in << pass.shift) + r, numbers[r]);
}

// Where the lists of the first pass begin, which is where their first pairs go, and how many tiles are in those before.
__global__ void __launch_bounds__(kRangeThreads)
    begin_ranges(const uint32_t* sizes, uint32_t ranges, uint32_t* begins, uint32_t* cursors, uint32_t* tiles) {
  using Scan = cub::BlockScan<uint32_t, kRangeThreads>;
  __shared__ typename Scan::TempStorage memory;
  uint32_t size[kRangesEach], tile[kRangesEach], all = 0;
#pragma unroll
  for (uint32_t j = 0; j < kRangesEach; ++j) {
    const uint32_t r = threadIdx.x * kRangesEach + j;
    size[j] = r < ranges ? sizes[r] : 0;
    tile[j] = size[j] / kSplitTile + (size[j] % kSplitTile != 0);
  }
  Scan(memory).ExclusiveSum(size, size);
  __syncthreads();
  Scan(memory).ExclusiveSum(tile, tile, all);
#pragma unroll
  for (uint32_t j = 0; j < kRangesEach; ++j) {
    const uint32_t r = threadIdx.x * kRangesEach + j;
    if (r >= ranges) continue;
    begins[r] = cursors[r] = size[j];
    tiles[r] = tile[j];
  }
  if (threadIdx.x == 0) tiles[ranges] = all;
}

}  // namespace kernels

// A batch's pairs by page, in scratch memory: those of page p from begins[p] to begins[p + 1].
struct CountedLists {
  gpu::Scratch pair_memory, begin_memory;
  const uint2* pairs = nullptr;
  const uint32_t* begins = nullptr;
};

// Divides `count` keys, with `values` or, if that is null, with their numbers, among 2^page_bits pages by the first
// bits of their stored keys (plain). `fault`, in device memory, becomes the number of the first reserved key; if it is
// less than what it was the lists are good for nothing. Does not wait. Errors: unsupported (a device before compute
// capability 8.0, which has too little shared memory), out_of_memory, device.
inline Result<CountedLists> split_counted(const gpu::DeviceStream& device_stream, uint32_t multiprocessors,
                                          const uint32_t* keys, const uint32_t* values, uint32_t count,
                                          uint32_t page_bits, uint64_t* fault) {
  constexpr const char* kMemory = "scratch memory to divide a batch";
  const cudaStream_t stream = device_stream.get();
  const uint32_t pages = 1u << page_bits, shift = page_bits <= 8 ? 0 : page_bits / 2, ranges = pages >> shift;
  static_assert(kernels::kRangeThreads * kernels::kRangesEach >= 1u << 11);  // of 2^22 pages, the most there are
  CountedLists lists;
  QRY_TRY_ASSIGN(lists.pair_memory, gpu::Scratch::allocate(device_stream, size_t{count} * sizeof(uint2), kMemory));
  QRY_TRY_ASSIGN(lists.begin_memory, gpu::Scratch::zeroed(device_stream, (size_t{pages} + 1) * 8, kMemory));
  uint32_t* const begins = lists.begin_memory.as<uint32_t>();  // first, how many there are
  uint32_t* const cursors = begins + pages + 1;
  lists.pairs = lists.pair_memory.as<uint2>();
  lists.begins = begins;

  kernels::SplitPass pass{};
  pass.keys = keys;
  pass.values = values;
  pass.count = count;
  pass.page_count = pages;
  pass.form = kernels::SplitForm::plain;
  pass.shift = shift;
  pass.ranges = ranges;
  int shared_bytes = 0;
  QRY_TRY(gpu::check(
      cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_stream.device().ordinal),
      "ask the device"));
  if (const size_t needed = kernels::split_shared_bytes(ranges) + 128; needed > size_t(shared_bytes))
    return fail(ErrorCode::unsupported, "multi grids and joins take " + std::to_string(needed >> 10) +
                                            " KiB of shared memory of a block, and the CUDA device has " +
                                            std::to_string(shared_bytes >> 10) + "; use the host executor");
  const auto launch = [&](const char* label, auto* kernel, size_t blocks, size_t shared_bytes,
                          auto... arguments) -> Result<void> {
    QRY_TRY(gpu::allow_shared_bytes(label, kernel, shared_bytes));
    return gpu::launch(label, {uint32_t(blocks), kernels::kSplitThreads, shared_bytes}, stream, kernel, arguments...);
  };
  const size_t tiles = (size_t{count} + kernels::kSplitTile - 1) / kernels::kSplitTile;
  const auto begin_pages = [&]() -> Result<void> {
    QRY_TRY(gpu::with_temporary(device_stream, "find pages", [&](void* memory, size_t& size_bytes) {
      return cub::DeviceScan::ExclusiveSum(memory, size_bytes, begins, begins, size_t{pages} + 1, stream);
    }));
    return gpu::check(cudaMemcpyAsync(cursors, begins, size_t{pages} * 4, cudaMemcpyDeviceToDevice, stream),
                      "find pages");
  };
  const auto count_first = [&](uint32_t* counts) {
    return launch("count pairs of ranges", kernels::count_pairs<true>,
                  std::min<size_t>(tiles, size_t{multiprocessors} * kernels::kCountBlocks), ranges * sizeof(uint32_t),
                  pass, counts, fault);
  };
  if (count == 0) return lists;
  if (shift == 0) {
    QRY_TRY(count_first(begins));
    QRY_TRY(begin_pages());
    pass.lists = lists.pair_memory.as<uint2>();
    pass.sizes = cursors;
    QRY_TRY(
        launch("split by page", kernels::split_pairs<true, true>, tiles, kernels::split_shared_bytes(ranges), pass));
    return lists;
  }
  QRY_TRY_ASSIGN(const gpu::Scratch range_pairs,
                 gpu::Scratch::allocate(device_stream, size_t{count} * sizeof(uint2), kMemory));
  QRY_TRY_ASSIGN(const gpu::Scratch range_memory,
                 gpu::Scratch::zeroed(device_stream, (size_t{ranges} * 4 + 1) * 4, kMemory));
  uint32_t* const sizes = range_memory.as<uint32_t>();
  uint32_t *const range_begins = sizes + ranges, *const range_cursors = range_begins + ranges,
                  *const range_tiles = range_cursors + ranges;
  QRY_TRY(count_first(sizes));
  QRY_TRY(gpu::launch("find ranges", {1, kernels::kRangeThreads}, stream, kernels::begin_ranges, sizes, ranges,
                      range_begins, range_cursors, range_tiles));
  pass.lists = range_pairs.as<uint2>();
  pass.sizes = range_cursors;
  QRY_TRY(launch("split by range", kernels::split_pairs<true, true>, tiles, kernels::split_shared_bytes(ranges), pass));

  pass.lists_in = range_pairs.as<uint2>();
  pass.ranges_in = {ranges, sizes, range_begins, range_tiles};
  pass.ranges = 1u << shift;
  // Each list may end with a tile that is not full.
  QRY_TRY(launch("count pairs of pages", kernels::count_pairs<false>, tiles + ranges, pass.ranges * sizeof(uint32_t),
                 pass, begins, nullptr));
  QRY_TRY(begin_pages());
  pass.lists = lists.pair_memory.as<uint2>();
  pass.sizes = cursors;
  QRY_TRY(launch("split by page", kernels::split_pairs<false, true>, tiles + ranges,
                 kernels::split_shared_bytes(pass.ranges), pass));
  return lists;
}

}  // namespace quarry::hashgrid
