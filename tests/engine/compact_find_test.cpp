// The compact layout read by shaders: compact_find.glsl beside hashgrid::find on the same memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "compact_find_spirv.h"
#include "engine/offscreen.hpp"
#include "engine/pipeline_cache.hpp"
#include "hashgrid/executor.hpp"
#include "shaders/compact_find_push.h"
#include "tests/engine/test_device.hpp"

namespace quarry::test {
namespace {

using namespace engine;

// A pipeline of compact_find.comp.glsl, and the calls around it.
class CompactFinder {
 public:
  explicit CompactFinder(Device& device) : device_(device), offscreen_(*Offscreen::create(device, "compact find")), start_(*Timeline::create(device, "compact find")) {
    const VulkanFunctions& vk = device.vk();
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryCompactFindPush)};
    VkPipelineLayoutCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.pushConstantRangeCount = 1;
    info.pPushConstantRanges = &range;
    REQUIRE(vk.vkCreatePipelineLayout(device.handle(), &info, nullptr, &layout_) == VK_SUCCESS);
    auto cache = PipelineCache::open(device);
    REQUIRE(cache);
    auto made = (*cache)->make(layout_, k_compact_find_spirv, sizeof k_compact_find_spirv, "compact find", false, false);
    REQUIRE(made);
    pipeline_ = *made;
  }
  CompactFinder(const CompactFinder&) = delete;
  CompactFinder& operator=(const CompactFinder&) = delete;
  ~CompactFinder() {
    device_.vk().vkDestroyPipeline(device_.handle(), pipeline_, nullptr);
    device_.vk().vkDestroyPipelineLayout(device_.handle(), layout_, nullptr);
  }

  // Value and sectors read, of each key.
  std::vector<uint32_t> operator()(const DeviceMemory& table, const QryCompact& layout, const std::vector<uint32_t>& keys) {
    auto in = DeviceMemory::create(device_, BufferHome::host_upload, keys.size() * 4, "keys");
    auto out = DeviceMemory::create(device_, BufferHome::host_readback, keys.size() * 8, "found");
    REQUIRE(in);
    REQUIRE(out);
    std::memcpy((*in)->mapped(), keys.data(), keys.size() * 4);
    auto commands = offscreen_->begin();
    REQUIRE(commands);
    const VulkanFunctions& vk = device_.vk();
    const QryCompactFindPush push{table.address(), (*in)->address(), (*out)->address(), uint32_t(keys.size()), layout};
    vk.vkCmdBindPipeline(*commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
    vk.vkCmdPushConstants(*commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    vk.vkCmdDispatch(*commands, uint32_t(keys.size() + 63) / 64, 1, 1);
    host_read_barrier(vk, *commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT);
    REQUIRE(offscreen_->submit_and_wait({start_->handle(), 0}));
    const auto* first = static_cast<const uint32_t*>((*out)->mapped());
    return {first, first + keys.size() * 2};
  }

 private:
  Device& device_;
  std::unique_ptr<Offscreen> offscreen_;
  std::unique_ptr<Timeline> start_;  // stands at 0: nothing to wait for
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

TEST_CASE("compact_find: GLSL and host answer alike, value and sectors read, in every format, for present, absent, erased and stashed keys") {
  Device* device = test_device();
  if (!device) return;
  CompactFinder find_in_shader(*device);
  const auto executor = hashgrid::make_host_executor(2);
  for (const uint32_t pages : {1u, 3u, 1024u, 12288u}) {
    INFO(pages << " pages");
    auto memory = DeviceMemory::create(*device, BufferHome::host_upload, size_t{pages} * kQryPageBytes, "compact table");
    REQUIRE(memory);
    const hashgrid::CompactView table = hashgrid::compact_view((*memory)->mapped(), pages);
    REQUIRE(executor->compact().clear(table));
    std::mt19937 random(pages);
    std::vector<uint32_t> keys;
    for (uint32_t i = 0; i < 3600 * std::min(pages, 3u); ++i) keys.push_back(uint32_t(random()));
    // Neighbours in mixed order: full sectors, and in the larger tables the stash; some of them round a page's end.
    const uint64_t sectors = table.layout.table.pages * 1024ull;
    for (const uint64_t sector : {uint64_t{1022}, sectors / 2})
      for (uint32_t i = 0; i < 300; ++i) keys.push_back(qry_unmix(uint32_t(((sector << 32) + sectors - 1) / sectors + i)));
    std::vector<uint32_t> values;
    for (const uint32_t key : keys) values.push_back(key * 0x9E3779B1u >> 1);
    REQUIRE(executor->compact().insert(table, keys.data(), values.data(), keys.size(), nullptr));
    for (size_t i = 0; i < keys.size(); i += 3) erase(table, keys[i]);
    for (uint32_t i = 0; i < 4000; ++i) keys.push_back(uint32_t(random()));
    keys.push_back(0);
    keys.push_back(kQryReservedKey);
    const std::vector<uint32_t> found = find_in_shader(**memory, table.layout, keys);
    size_t unlike = 0, hits = 0;
    uint32_t deepest = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const hashgrid::Found host = find(table, keys[i]);
      unlike += found[2 * i] != host.value || found[2 * i + 1] != host.sectors;
      hits += host.hit;
      deepest = std::max(deepest, host.sectors);
    }
    CHECK(unlike == 0);
    CHECK(hits > 2000);
    CHECK(deepest > (pages >= 12288 ? 3u : 7u));  // else the test saw no crowded sector
  }
}

}  // namespace
}  // namespace quarry::test
