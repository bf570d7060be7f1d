// SPDX-License-Identifier: Apache-2.0
// timing.cuh - timing by CUDA events on one stream: the median of five runs after a warm-up.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace quarry::bench {

inline void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "bench: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

struct NoPreparation {
  void operator()() const {}
};

// Seconds that run() takes on `stream`; prepare() comes before each run and does not count. run() may also wait by itself.
// runs = 0: one run without a warm-up.
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
