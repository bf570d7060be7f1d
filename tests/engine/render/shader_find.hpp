// SPDX-License-Identifier: Apache-2.0
// shader_find.hpp - look-ups by a shader, which the tests compare with hashgrid::find: find.comp.glsl for the table of
// a world, pairs_find.comp.glsl and compact_find.comp.glsl for any table.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/render/offscreen.hpp"
#include "engine/vulkan/pipeline_cache.hpp"
#include "tests/engine/shaders/find_push.h"

namespace quarry::test {

// The pipeline of one of these shaders, and the calls around it. Push is the type of its push constants.
template <class Push>
class ShaderFind {
 public:
  ShaderFind(engine::Device& device, std::span<const uint32_t> spirv)
      : device_(device),
        offscreen_(*engine::Offscreen::create(device, "shader find")),
        start_(*engine::Timeline::create(device, "shader find")) {
    const engine::VulkanFunctions& vk = device.vk();
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Push)};
    VkPipelineLayoutCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.pushConstantRangeCount = 1;
    info.pPushConstantRanges = &range;
    REQUIRE(vk.vkCreatePipelineLayout(device.handle(), &info, nullptr, &layout_) == VK_SUCCESS);
    auto cache = engine::PipelineCache::open(device);
    REQUIRE(cache);
    auto made = (*cache)->make(layout_, spirv.data(), spirv.size_bytes(), "shader find", {});
    REQUIRE(made);
    pipeline_ = *made;
  }
  ShaderFind(const ShaderFind&) = delete;
  ShaderFind& operator=(const ShaderFind&) = delete;
  ~ShaderFind() {
    device_.vk().vkDestroyPipeline(device_.handle(), pipeline_, nullptr);
    device_.vk().vkDestroyPipelineLayout(device_.handle(), layout_, nullptr);
  }

  // Returns the value and the sectors read for each key. `push` has all but the addresses of keys and results, and the
  // count. The look-up waits for `ready`.
  std::vector<uint32_t> operator()(Push push, const std::vector<uint32_t>& keys,
                                   std::optional<engine::Device::TimelinePoint> ready = {}) {
    auto in = engine::DeviceMemory::create(device_, engine::BufferMemory::host_upload, keys.size() * 4, "keys");
    auto out = engine::DeviceMemory::create(device_, engine::BufferMemory::host_readback, keys.size() * 8, "found");
    REQUIRE(in);
    REQUIRE(out);
    std::memcpy((*in)->mapped(), keys.data(), keys.size() * 4);
    auto commands = offscreen_->begin();
    REQUIRE(commands);
    const engine::VulkanFunctions& vk = device_.vk();
    push.keys = (*in)->address(), push.found = (*out)->address(), push.count = uint32_t(keys.size());
    vk.vkCmdBindPipeline(*commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
    vk.vkCmdPushConstants(*commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    vk.vkCmdDispatch(*commands, uint32_t(keys.size() + 63) / 64, 1, 1);
    engine::host_read_barrier(vk, *commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT);
    REQUIRE(offscreen_->submit_and_wait(ready.value_or(engine::Device::TimelinePoint{start_->handle(), 0})));
    const auto* first = static_cast<const uint32_t*>((*out)->mapped());
    return {first, first + keys.size() * 2};
  }

 private:
  engine::Device& device_;
  std::unique_ptr<engine::Offscreen> offscreen_;
  std::unique_ptr<engine::Timeline> start_;  // stays at 0: nothing to wait for
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

}  // namespace quarry::test
