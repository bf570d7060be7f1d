// SPDX-License-Identifier: Apache-2.0
// race_kernel.cu - each CUDA thread runs the plan's steps of one host thread, and logs its results.
#include <cstdio>

#include "base/cuda/launch.cuh"
#include "tests/hashgrid/cuda/race_kernel.hpp"

namespace quarry::hashgrid::test {
namespace {

constexpr uint32_t kThreads = 128;

template <class View>
__global__ void __launch_bounds__(kThreads) race(View view, RacePlan plan, RaceEvent* events) {
  const uint32_t thread = blockIdx.x * kThreads + threadIdx.x;
  for (uint32_t step = 0; step < plan.steps; ++step)
    events[size_t{thread} * plan.steps + step] = race_step(view, plan, thread, step);
}

template <class View>
std::vector<RaceEvent> run_race(const View& view, const RacePlan& plan, uint32_t threads) {
  const uint32_t blocks = (threads + kThreads - 1) / kThreads;
  std::vector<RaceEvent> events(size_t{blocks} * kThreads * plan.steps);
  RaceEvent* device_events = nullptr;
  cudaError_t error = cudaMalloc(&device_events, events.size() * sizeof(RaceEvent));
  if (error == cudaSuccess) {
    if (const auto ok = gpu::launch("race", {blocks, kThreads}, nullptr, race<View>, view, plan, device_events); !ok) {
      std::printf("race kernel: %s\n", ok.error().message.c_str());
      error = cudaErrorLaunchFailure;
    }
  }
  if (error == cudaSuccess)
    error = cudaMemcpy(events.data(), device_events, events.size() * sizeof(RaceEvent), cudaMemcpyDeviceToHost);
  cudaFree(device_events);
  if (error != cudaSuccess) {
    std::printf("race kernel: %s\n", cudaGetErrorString(error));
    for (RaceEvent& event : events) event.outcome = Outcome::reserved;  // every race check rejects this outcome
  }
  return events;
}

}  // namespace

std::vector<RaceEvent> race_on_cuda(const GridView& view, const RacePlan& plan, uint32_t threads) {
  return run_race(view, plan, threads);
}
std::vector<RaceEvent> race_on_cuda(const CompactView& view, const RacePlan& plan, uint32_t threads) {
  return run_race(view, plan, threads);
}

}  // namespace quarry::hashgrid::test
