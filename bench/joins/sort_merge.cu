// SPDX-License-Identifier: Apache-2.0
// sort_merge.cu - both sides sorted by CUB with their row numbers; the equal rows of each left row found by binary
// search, counted, summed up, and written. Pairs are written by the kernel that our own joins use, so that the rival is
// as good as it can be.
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "base/cuda/launch.cuh"
#include "base/cuda/scratch.cuh"
#include "bench/joins/sort_merge.hpp"
#include "hashgrid/cuda_stream.cuh"
#include "hashgrid/multi/expand.cuh"

namespace quarry::bench {
namespace {

constexpr uint32_t kThreads = 256;

__global__ void number_rows(uint32_t* rows, size_t count) {
  const size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) rows[i] = uint32_t(i);
}
// Of each left row, in order of the keys: its first partner, and how many there are.
__global__ void find_partners(const uint32_t* left, size_t left_count, const uint32_t* right, size_t right_count,
                              uint32_t* firsts, uint64_t* counts) {
  const size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i > left_count) return;
  if (i == left_count) {
    counts[i] = 0;
    return;
  }
  const uint32_t* const first = thrust::lower_bound(thrust::seq, right, right + right_count, left[i]);
  const uint32_t* const end = thrust::upper_bound(thrust::seq, first, right + right_count, left[i]);
  firsts[i] = uint32_t(first - right);
  counts[i] = uint64_t(end - first);
}
struct PutPair {
  const uint32_t* left_rows;
  const uint32_t* right_rows;
  const uint32_t* firsts;
  uint32_t* left_out;
  uint32_t* right_out;
  __device__ uint2 get(size_t owner, uint32_t i) const {
    return make_uint2(left_rows[owner], right_rows[firsts[owner] + i]);
  }
  __device__ void put(size_t to, uint2 rows) const {
    left_out[to] = rows.x;
    right_out[to] = rows.y;
  }
};

uint32_t blocks_of(size_t count) { return uint32_t((count + kThreads - 1) / kThreads); }

// A stream on the executor's device, with a pool that is kept between calls. It is never destroyed: at the process's
// end CUDA may have ended before.
Result<const gpu::DeviceStream*> stream_of(hashgrid::Executor& executor) {
  static gpu::DeviceStream* stream = nullptr;
  if (stream == nullptr) {
    QRY_TRY_ASSIGN(auto made, gpu::DeviceStream::create(hashgrid::cuda_device_of(executor), uint64_t{16} << 30));
    stream = made.release();
  }
  return stream;
}

Result<void> sort_on(const gpu::DeviceStream& stream, const uint32_t* keys, const uint32_t* values, size_t count,
                     uint32_t* keys_out, uint32_t* values_out) {
  return gpu::with_temporary(stream, "sort a side", [&](void* memory, size_t& size_bytes) {
    return cub::DeviceRadixSort::SortPairs(memory, size_bytes, keys, keys_out, values, values_out, count, 0, 32,
                                           stream.get());
  });
}

}  // namespace

Result<uint64_t> sort_merge_join(hashgrid::Executor& executor, const uint32_t* left, size_t left_count,
                                 const uint32_t* right, size_t right_count, uint32_t* left_out, uint32_t* right_out,
                                 uint64_t room) {
  QRY_TRY_ASSIGN(const gpu::DeviceStream* const stream, stream_of(executor));
  const gpu::DeviceScope scope(stream->device());
  const auto sorted = [&](const uint32_t* keys, size_t count) -> Result<gpu::Scratch> {
    QRY_TRY_ASSIGN(auto out, gpu::Scratch::allocate(*stream, count * 2 * sizeof(uint32_t)));
    QRY_TRY_ASSIGN(const auto rows, gpu::Scratch::allocate(*stream, count * sizeof(uint32_t)));
    uint32_t* const to = out.as<uint32_t>();
    QRY_TRY(gpu::launch("number rows", {blocks_of(count), kThreads}, stream->get(), number_rows, rows.as<uint32_t>(),
                        count));
    QRY_TRY(sort_on(*stream, keys, rows.as<uint32_t>(), count, to, to + count));
    return out;
  };
  QRY_TRY_ASSIGN(const auto left_memory, sorted(left, left_count));
  QRY_TRY_ASSIGN(const auto right_memory, sorted(right, right_count));
  QRY_TRY_ASSIGN(const auto first_memory, gpu::Scratch::allocate(*stream, left_count * sizeof(uint32_t)));
  QRY_TRY_ASSIGN(const auto start_memory, gpu::Scratch::allocate(*stream, (left_count + 1) * sizeof(uint64_t)));
  const uint32_t *const left_keys = left_memory.as<uint32_t>(), *const right_keys = right_memory.as<uint32_t>();
  uint32_t* const firsts = first_memory.as<uint32_t>();
  uint64_t* const starts = start_memory.as<uint64_t>();
  QRY_TRY(gpu::launch("find partners", {blocks_of(left_count + 1), kThreads}, stream->get(), find_partners, left_keys,
                      left_count, right_keys, right_count, firsts, starts));
  QRY_TRY(gpu::with_temporary(*stream, "sum up partners", [&](void* memory, size_t& size_bytes) {
    return cub::DeviceScan::ExclusiveSum(memory, size_bytes, starts, starts, left_count + 1, stream->get());
  }));
  uint64_t total = 0;
  QRY_TRY(gpu::check(cudaMemcpyAsync(&total, starts + left_count, sizeof(total), cudaMemcpyDefault, stream->get()),
                     "read a sum"));
  QRY_TRY(gpu::check(cudaStreamSynchronize(stream->get()), "join by sorting"));
  if (total > room) return fail(ErrorCode::full, "join by sorting: more results than room");
  if (total != 0) {
    constexpr uint32_t kTile = hashgrid::kernels::kExpandTile;
    QRY_TRY(gpu::launch("write pairs",
                        {uint32_t((left_count + total + kTile - 1) / kTile), hashgrid::kernels::kExpandThreads},
                        stream->get(), hashgrid::kernels::expand_bodies<PutPair>, starts, left_count, total,
                        PutPair{left_keys + left_count, right_keys + right_count, firsts, left_out, right_out}));
  }
  QRY_TRY(gpu::check(cudaStreamSynchronize(stream->get()), "join by sorting"));
  return total;
}

Result<void> sort_pairs(hashgrid::Executor& executor, const uint32_t* keys, const uint32_t* values, size_t count,
                        uint32_t* keys_out, uint32_t* values_out) {
  QRY_TRY_ASSIGN(const gpu::DeviceStream* const stream, stream_of(executor));
  const gpu::DeviceScope scope(stream->device());
  QRY_TRY(sort_on(*stream, keys, values, count, keys_out, values_out));
  return gpu::check(cudaStreamSynchronize(stream->get()), "sort pairs");
}

}  // namespace quarry::bench
