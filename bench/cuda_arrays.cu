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

double cuda_bus_rate() {
  using namespace std::chrono;
  constexpr size_t kBytes = size_t(256) << 20;
  void* from = nullptr;
  void* const to = cuda_allocate(kBytes);
  double best = 0;
  if (to && cudaHostAlloc(&from, kBytes, cudaHostAllocDefault) == cudaSuccess)
    for (int i = 0; i < 5; ++i) {
      const auto start = steady_clock::now();
      if (!cuda_copy(to, from, kBytes)) break;
      best = std::max(best, double(kBytes) / duration<double>(steady_clock::now() - start).count());
    }
  cudaFreeHost(from);
  cuda_free(to);
  return best;
}

}  // namespace quarry::bench
