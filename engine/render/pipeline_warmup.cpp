// SPDX-License-Identifier: Apache-2.0
// pipeline_warmup.cpp - a second device runs each pass over no pixels on its own thread, so that the driver has
// compiled it before the first picture needs it.
#include "engine/render/pipeline_warmup.hpp"

#include <bit>
#include <cstring>

#include "engine/render/offscreen.hpp"
#include "engine/vulkan/loader.hpp"
#include "shaders/shared/frame.h"

namespace quarry::engine {
namespace {

// Runs each pass over a picture of no pixels, from the last to the first. A failure is left to the device that draws,
// which reports it.
void compile(const std::string& device_name, const std::vector<Pass>& passes, uint32_t width, uint32_t height,
             const std::atomic<bool>& stop) {
  DeviceOptions options;
  options.prefer = device_name;
  const auto device = Device::create(options);
  if (!device || (*device)->info().type != VK_PHYSICAL_DEVICE_TYPE_CPU) return;
  const auto targets = TargetSets::create(**device, 1, true);
  if (!targets) return;
  const auto pipelines = Pipelines::create(**device, (*targets)->layout());
  const auto offscreen = Offscreen::create(**device, "quarry compiling");
  const auto parameters =
      DeviceMemory::create(**device, BufferMemory::host_upload, sizeof(QryFrame), "quarry empty frame");
  if (!pipelines || !offscreen || !parameters) return;
  std::memset((*parameters)->mapped(), 0, (*parameters)->size_bytes());
  const VulkanFunctions& vk = (*device)->vk();
  // llvmpipe compiles separately for images whose sides are powers of two.
  const uint32_t across = std::has_single_bit(width) ? 8 : 9, down = std::has_single_bit(height) ? 8 : 9;
  for (auto pass = passes.rbegin(); pass != passes.rend() && !stop; ++pass) {
    if (!(*pipelines)->need({*pass})) return;
    const auto commands = (*offscreen)->begin();
    if (!commands) return;
    const auto target = (*offscreen)->begin_image(across, down);
    if (!target) return;
    const VkPipelineLayout layout = (*pipelines)->frame_layout;
    (*targets)->bind(*commands, layout, 0, *target, parameters->get());
    const QryFramePush push{};
    vk.vkCmdPushConstants(*commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    vk.vkCmdBindPipeline(*commands, VK_PIPELINE_BIND_POINT_COMPUTE, (**pipelines)[*pass]);
    vk.vkCmdDispatch(*commands, 1, 1, 1);
    if (!(*offscreen)->submit_and_wait({})) return;
  }
}

}  // namespace

PipelineWarmup::PipelineWarmup(std::string device_name, std::vector<Pass> passes, uint32_t width, uint32_t height)
    : thread_([this, name = std::move(device_name), passes = std::move(passes), width, height] {
        compile(name, passes, width, height, stop_);
      }) {}

PipelineWarmup::~PipelineWarmup() {
  stop_ = true;
  thread_.join();
}

}  // namespace quarry::engine
