// SPDX-License-Identifier: Apache-2.0
// bulk_cuda.cu - the neighbours of many bricks on CUDA, in the executor's stream.
//
// Neighbouring bricks read the same sectors several times, so their loads go through L1. A line read since the launch
// may miss later changes by other kernels. Each look-up of the batch was called at the launch, so it may take effect at
// the instant its line was read. Caches are empty when a kernel begins.
//
// Where rows share lines, one key in eight has gone on to its second bucket: hashgrid/pairs/cuda/rows.cuh says why such
// keys wait in a list.
#include "base/cuda/launch.cuh"
#include "hashgrid/cuda/block_list.cuh"
#include "hashgrid/cuda_stream.cuh"
#include "voxel/neighbours/bulk_stage.hpp"

namespace quarry::neighbour_detail {
namespace {

constexpr uint32_t kAroundThreads = 128;

// Loads that the L1 cache may serve.
struct CachedWords {
  __device__ static uint64_t load(const uint64_t* word) {
    uint64_t value;
    asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(value) : "l"(__cvta_generic_to_global(word)));
    return value;
  }
  __device__ static hashgrid::detail::Bucket load_bucket(const uint64_t* first) {
    hashgrid::detail::Bucket b;
    asm volatile("ld.global.ca.v2.u64 {%0, %1}, [%2];"
                 : "=l"(b.slot[0]), "=l"(b.slot[1])
                 : "l"(__cvta_generic_to_global(first)));
    asm volatile("ld.global.ca.v2.u64 {%0, %1}, [%2];"
                 : "=l"(b.slot[2]), "=l"(b.slot[3])
                 : "l"(__cvta_generic_to_global(first + 2)));
    return b;
  }
};

// values[direction * count + i]: the grid's value for the neighbour of bricks[i] in that direction (one_brick.hpp), or
// the reserved value.
template <Neighbourhood kWhich, bool kRows>
__global__ void __launch_bounds__(kAroundThreads, kWhich == Neighbourhood::faces ? 12 : 8)
    find_around(hashgrid::GridView view, const uint32_t* bricks, size_t count, uint32_t* values) {
  constexpr uint32_t kLocality = kRows ? kQryRows : kQryPlain;
  __shared__ uint16_t later[kAroundThreads * uint32_t(kWhich)];
  __shared__ uint32_t listed;
  const size_t base = size_t{blockIdx.x} * kAroundThreads, i = base + threadIdx.x;
  if (threadIdx.x == 0) listed = 0;
  const uint32_t brick = i < count ? bricks[i] : 0;
  __syncthreads();
  uint32_t wait = neighbour_detail::look_around<CachedWords, kWhich>(view, kLocality, brick,
                                                                     [&](uint32_t direction, uint32_t value) {
                                                                       if (i < count)
                                                                         __stcs(values + direction * count + i, value);
                                                                     });
  if (i >= count) wait = 0;
  uint32_t at = hashgrid::kernels::list_places(&listed, __popc(wait));
  for (; wait != 0; wait &= wait - 1) later[at++] = uint16_t((__ffs(int(wait)) - 1) * kAroundThreads + threadIdx.x);
  __syncthreads();
  for (uint32_t n = threadIdx.x; n < listed; n += kAroundThreads) {
    const uint32_t direction = later[n] / kAroundThreads;
    const size_t whose = base + later[n] % kAroundThreads;
    const NeighbourStep step = step_of<kWhich>(direction);
    const uint32_t stored = qry_stored_key(neighbour_key(bricks[whose], step.x, step.y, step.z), kLocality);
    values[direction * count + whose] = neighbour_detail::value_beyond<CachedWords>(view, stored);
  }
}

}  // namespace

Result<void> find_on_cuda(const hashgrid::Executor& executor, const hashgrid::GridView& view, const uint32_t* bricks,
                          size_t count, Neighbourhood which, uint32_t* values_out) {
  if (count == 0) return {};
  const gpu::DeviceScope scope(hashgrid::cuda_device_of(executor));
  const cudaStream_t stream = hashgrid::cuda_stream_of(executor);
  const bool rows = view.locality == kQryRows;
  const auto kernel = which == Neighbourhood::faces
                          ? (rows ? find_around<Neighbourhood::faces, true> : find_around<Neighbourhood::faces, false>)
                          : (rows ? find_around<Neighbourhood::all, true> : find_around<Neighbourhood::all, false>);
  const uint32_t grid = uint32_t((count + kAroundThreads - 1) / kAroundThreads);
  QRY_TRY(gpu::launch("find_neighbours", {grid, kAroundThreads}, stream, kernel, view, bricks, count, values_out));
  return gpu::check(cudaStreamSynchronize(stream), "find_neighbours");
}

}  // namespace quarry::neighbour_detail
