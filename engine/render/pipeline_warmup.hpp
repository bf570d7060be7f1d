// SPDX-License-Identifier: Apache-2.0
// pipeline_warmup.hpp - runs a software driver's first start on two threads instead of one.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/render/pipelines.hpp"

namespace quarry::engine {

// Software drivers compile a pass when it is first dispatched. They do so on the one thread that runs a device's queue,
// one pass after the other, while every other thread waits. The compiled code goes to the driver's cache on disk, where
// any device of the same driver finds it. So a second device compiles the last passes while the first device compiles
// the first ones. Without a cache on disk this is wasted work, but harmless.
class PipelineWarmup {
 public:
  // `passes` are those that a picture of this size needs on this device, in the order of their first dispatch.
  PipelineWarmup(std::string device_name, std::vector<Pass> passes, uint32_t width, uint32_t height);
  ~PipelineWarmup();  // waits for the pass that is being compiled
  PipelineWarmup(const PipelineWarmup&) = delete;
  PipelineWarmup& operator=(const PipelineWarmup&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace quarry::engine
