// SPDX-License-Identifier: Apache-2.0
// look_ups.cu - the look-ups as a CUDA kernel, between two events.
#include "bench/readers/look_ups.hpp"

#include "base/cuda/device.cuh"
#include "base/cuda/launch.cuh"

namespace quarry::bench {
namespace {

using gpu::check;

constexpr uint32_t kSectorWords = 4;

// The same shape as look_ups.comp.glsl has.
__global__ void __launch_bounds__(kQryLookUpGroup)
    look_ups_kernel(const __grid_constant__ LookedUp world, uint32_t* __restrict__ sums) {
  __shared__ uint32_t found_here;
  if (threadIdx.x == 0) found_here = 0;
  __syncthreads();
  const uint32_t first = blockIdx.x * kQryLookUpGroup * kQryLookUpsEach + threadIdx.x;
  uint32_t brick[kQryLookUpsEach], found = 0;
#pragma unroll
  for (uint32_t k = 0; k < kQryLookUpsEach; ++k) {
    const uint32_t i = first + k * kQryLookUpGroup;
    brick[k] = i < world.count ? brick_looked_up(world, i) : kQryReservedValue;
  }
#pragma unroll
  for (uint32_t k = 0; k < kQryLookUpsEach; ++k)
    found += found_at(world, brick[k], qry_looked_at(first + k * kQryLookUpGroup));
  atomicAdd(&found_here, found);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(sums + (blockIdx.x & (kQryLookUpSums - 1u)), found_here);
}

// What look-ups read, at places that are known: a word of any sector of the grid, then as they do. How fast that is
// says what the memory allows.
__global__ void __launch_bounds__(kQryLookUpGroup)
    reads_kernel(const __grid_constant__ LookedUp world, uint32_t sectors, uint32_t* __restrict__ sums) {
  const uint32_t first = blockIdx.x * kQryLookUpGroup * kQryLookUpsEach + threadIdx.x;
  uint32_t found = 0;
#pragma unroll
  for (uint32_t k = 0; k < kQryLookUpsEach; ++k) {
    const uint32_t i = first + k * kQryLookUpGroup;
    if (i >= world.count) break;
    const uint64_t* const sector = world.grid.words + size_t(qry_looked_up(~i, sectors)) * kSectorWords;
    found += uint32_t(__ldg(reinterpret_cast<const unsigned long long*>(sector))) +
             found_at(world, qry_looked_up(i, world.bricks), qry_looked_at(i));
  }
  if (found == 0xFFFFFFFFu) atomicAdd(sums, 1u);  // so that no read is left out
}

struct Timed {
  cudaEvent_t begin = nullptr, end = nullptr;
  uint32_t* sums = nullptr;
  ~Timed() {
    if (begin) cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
    if (sums) cudaFree(sums);
  }
};

// launch(sums) between two events.
template <class Launch>
Result<Summed> timed_launch(int device, const Launch& launch) {
  const gpu::DeviceScope scope(device);
  QRY_TRY(check(scope.error(), "select the device"));
  Timed timed;
  QRY_TRY(check(cudaEventCreate(&timed.begin), "make an event"));
  QRY_TRY(check(cudaEventCreate(&timed.end), "make an event"));
  void* sums = nullptr;
  QRY_TRY(check(cudaMalloc(&sums, kQryLookUpSums * sizeof(uint32_t)), "memory for sums"));
  timed.sums = static_cast<uint32_t*>(sums);
  QRY_TRY(check(cudaMemset(timed.sums, 0, kQryLookUpSums * sizeof(uint32_t)), "clear sums"));
  QRY_TRY(check(cudaEventRecord(timed.begin, nullptr), "record an event"));
  QRY_TRY(launch(timed.sums));
  QRY_TRY(check(cudaEventRecord(timed.end, nullptr), "record an event"));
  uint32_t found[kQryLookUpSums];
  QRY_TRY(check(cudaMemcpy(found, timed.sums, sizeof found, cudaMemcpyDeviceToHost), "read sums"));
  float ms = 0;
  QRY_TRY(check(cudaEventElapsedTime(&ms, timed.begin, timed.end), "read an event"));
  Summed summed{double(ms) * 1e3, 0};
  for (const uint32_t one : found) summed.sum += one;
  return summed;
}

gpu::LaunchShape shape_of(const LookedUp& world) {
  constexpr uint32_t kOfBlock = kQryLookUpGroup * kQryLookUpsEach;
  return {(world.count + kOfBlock - 1) / kOfBlock, kQryLookUpGroup};
}

}  // namespace

Result<Summed> look_up_on_cuda(int device, const LookedUp& world) {
  return timed_launch(device, [&](uint32_t* sums) {
    return gpu::launch("look bricks up", shape_of(world), nullptr, look_ups_kernel, world, sums);
  });
}

Result<double> read_on_cuda(int device, const LookedUp& world) {
  const auto sectors = uint32_t(uint64_t(world.grid.page_count) * kQryPageWords / kSectorWords);
  QRY_TRY_ASSIGN(const Summed summed, timed_launch(device, [&](uint32_t* sums) {
                   return gpu::launch("read at random", shape_of(world), nullptr, reads_kernel, world, sectors, sums);
                 }));
  return summed.us;
}

}  // namespace quarry::bench
