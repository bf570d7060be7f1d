// SPDX-License-Identifier: Apache-2.0
// pipeline_warmup.hpp - a software driver's first start, on two threads instead of one.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/render/pipelines.hpp"

namespace quarry::engine {

// Software drivers compile a pass when it is first dispatched, on the one thread that runs a device's queue: one pass
// after the other, while every other thread waits. What was compiled goes to the driver's cache on disk, where any
// device of the same driver finds it. So a second device compiles the passes that come last while the first one is at
// those that come first. Without a cache on disk it is work for nothing, nothing worse.
class PipelineWarmup {
 public:
  // `passes`: what a picture of that size on the device called so needs, in the order of their first dispatch.
  PipelineWarmup(std::string device_name, std::vector<Pass> passes, uint32_t width, uint32_t height);
  ~PipelineWarmup();  // waits for the one pass that it is at
  PipelineWarmup(const PipelineWarmup&) = delete;
  PipelineWarmup& operator=(const PipelineWarmup&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace quarry::engine
