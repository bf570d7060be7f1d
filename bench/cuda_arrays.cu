// SPDX-License-Identifier: Apache-2.0
// cuda_arrays.cu - arrays by the CUDA runtime.
#include "bench/cuda_arrays.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>

namespace quarry::bench {

void* cuda_allocate(size_t size_bytes) {
  void* at = nullptr;
  return cudaMalloc(&at, size_bytes) == cudaSuccess ? at : nullptr;
}

void cuda_free(void* at) {
  if (at) cudaFree(at);
}

bool cuda_copy(void* to, const void* from, size_t size_bytes) {
  return cudaMemcpy(to, from, size_bytes, cudaMemcpyDefault) == cudaSuccess;
}

bool cuda_wait() { return cudaDeviceSynchronize() == cudaSuccess; }

namespace {

// Bytes a second, the best of five. 0: a copy failed, or an array is missing.
double copy_rate(void* to, const void* from, size_t size_bytes) {
  using namespace std::chrono;
  double best = 0;
  for (int i = 0; i < 5 && to && from; ++i) {
    const auto start = steady_clock::now();
    // A copy within the device is not waited for.
    if (!cuda_copy(to, from, size_bytes) || !cuda_wait()) return 0;
    best = std::max(best, double(size_bytes) / duration<double>(steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

double cuda_bus_rate() {
  constexpr size_t kBytes = size_t(256) << 20;
  void* from = nullptr;
  if (cudaHostAlloc(&from, kBytes, cudaHostAllocDefault) != cudaSuccess) return 0;
  const CudaArray<char> to(kBytes);
  const double rate = copy_rate(to.get(), from, kBytes);
  cudaFreeHost(from);
  return rate;
}

double cuda_copy_rate() {
  constexpr size_t kBytes = size_t(1) << 30;
  const CudaArray<char> to(kBytes), from(kBytes);
  return copy_rate(to.get(), from.get(), kBytes);
}

}  // namespace quarry::bench
