// SPDX-License-Identifier: Apache-2.0
// timing.cuh - timing by CUDA events on one stream: the median of five runs after a warm-up.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/cuda/launch.cuh"

namespace quarry::bench {

inline void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "bench: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

inline void require(const Result<void>& done) {
  if (done) return;
  std::fprintf(stderr, "bench: %s\n", done.error().message.c_str());
  std::exit(1);
}

// One thread for each of `count` elements, in blocks of `kThreads`; launch_blocks takes the number of blocks.
constexpr uint32_t kThreads = 256;
template <class... Parameters>
void launch_blocks(const char* label, uint32_t blocks, cudaStream_t stream, void (*kernel)(Parameters...),
                   std::type_identity_t<Parameters>... arguments) {
  require(gpu::launch(label, {blocks, kThreads}, stream, kernel, arguments...));
}
template <class... Parameters>
void launch_each(const char* label, uint64_t count, cudaStream_t stream, void (*kernel)(Parameters...),
                 std::type_identity_t<Parameters>... arguments) {
  launch_blocks(label, uint32_t((count + kThreads - 1) / kThreads), stream, kernel, arguments...);
}

struct NoPreparation {
  void operator()() const {}
};

// Seconds that run() takes on `stream`; prepare() runs before each and does not count. run() may also wait itself. runs
// = 0: one run without a warm-up.
template <class Run, class Prepare = NoPreparation>
double seconds_of(const Run& run, const Prepare& prepare = {}, cudaStream_t stream = nullptr, int runs = 5) {
  cudaEvent_t begin = nullptr, end = nullptr;
  require(cudaEventCreate(&begin), "make an event");
  require(cudaEventCreate(&end), "make an event");
  std::vector<float> times;
  for (int i = 0; i <= runs; ++i) {
    prepare();
    require(cudaDeviceSynchronize(), "prepare a run");
    require(cudaEventRecord(begin, stream), "record an event");
    run();
    require(cudaEventRecord(end, stream), "record an event");
    require(cudaEventSynchronize(end), "run");
    require(cudaGetLastError(), "launch");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin, end), "read an event");
    if (i != 0 || runs == 0) times.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return double(times[times.size() / 2]) * 1e-3;
}

}  // namespace quarry::bench
