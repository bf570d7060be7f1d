// SPDX-License-Identifier: Apache-2.0
// scan.cpp - the lists, the timestamps, and the checks that make a figure valid.
#include "bench/lists/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "bench/lists/shaders/copy_words.h"
#include "copy_words_spirv.h"
#include "engine/lists/scan.hpp"
#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/loader.hpp"
#include "engine/vulkan/pipeline_cache.hpp"
#include "engine/vulkan/timeline.hpp"

namespace quarry::bench {
namespace {

using engine::BufferMemory;
using engine::DeviceMemory;
using engine::vk_check;

// A driver may give vkCmdCopyBuffer to a copy engine: on an H200 that moves a fifth of what threads do, while a
// software driver's is one memcpy. So both are timed, and the faster is the ceiling.
constexpr const char* kRows[] = {"copy", "copy command", "scan", "select 10%", "select 50%", "select 90%"};
constexpr uint32_t kRowCount = std::size(kRows), kCopies = 2, kShares[] = {10, 50, 90};
constexpr uint32_t kBlock = 1u << 16;  // random words, which a list repeats

struct Lists {
  explicit Lists(engine::Device& d) : device(&d) {}
  ~Lists() {
    const engine::VulkanFunctions& vk = device->vk();
    if (copy) vk.vkDestroyPipeline(device->handle(), copy, nullptr);
    if (copy_layout) vk.vkDestroyPipelineLayout(device->handle(), copy_layout, nullptr);
    if (queries) vk.vkDestroyQueryPool(device->handle(), queries, nullptr);
  }
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;
  Result<void> set_up(uint32_t most_words);
  Result<void> submit_and_wait();
  Result<void> fill(uint32_t words);
  void record_copy(VkCommandBuffer to_record, uint32_t words) const;
  Result<void> measure(uint32_t words, uint32_t repeats, double (&median_us)[kRowCount]);

  engine::Device* device;
  VkQueryPool queries = VK_NULL_HANDLE;
  VkPipelineLayout copy_layout = VK_NULL_HANDLE;
  VkPipeline copy = VK_NULL_HANDLE;
  double tick_us = 0;
  std::unique_ptr<engine::Commands> commands;
  std::unique_ptr<engine::Timeline> timeline;
  std::unique_ptr<engine::Scan> scan;
  std::unique_ptr<DeviceMemory> block, from, to, results;  // results: a word for each row but copies
  uint32_t block_sum = 0, block_selected[3] = {};
};

// A word is selected if it is at most this.
uint32_t limit(uint32_t percent) { return uint32_t((uint64_t(percent) << 32) / 100 - 1); }

Result<void> Lists::set_up(uint32_t most_words) {
  const engine::VulkanFunctions& vk = device->vk();
  QRY_TRY_ASSIGN(auto made_commands, engine::Commands::create(*device, "scan benchmark"));
  commands = std::move(made_commands);
  QRY_TRY_ASSIGN(auto made_timeline, engine::Timeline::create(*device, "quarry bench"));
  timeline = std::move(made_timeline);
  QRY_TRY_ASSIGN(auto made_scan, engine::Scan::create(*device, most_words));
  scan = std::move(made_scan);
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryCopyPush)};
  const VkPipelineLayoutCreateInfo layout{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 0, nullptr, 1, &push};
  QRY_TRY(vk_check(vk.vkCreatePipelineLayout(device->handle(), &layout, nullptr, &copy_layout),
                   "vkCreatePipelineLayout", "the copy"));
  QRY_TRY_ASSIGN(auto cache, engine::PipelineCache::open(*device));
  QRY_TRY_ASSIGN(auto made_copy, cache->make(copy_layout, k_copy_words_spirv, sizeof k_copy_words_spirv, "copy", {}));
  copy = made_copy;
  const struct {
    std::unique_ptr<DeviceMemory>* memory;
    BufferMemory kind;
    uint64_t bytes;
  } wanted[] = {{&block, BufferMemory::host_upload, kBlock * 4},
                {&from, BufferMemory::device, uint64_t(most_words) * 4},
                {&to, BufferMemory::device, uint64_t(most_words) * 4},
                {&results, BufferMemory::host_readback, kRowCount * 4}};
  for (const auto& w : wanted) {
    QRY_TRY_ASSIGN(auto made, DeviceMemory::create(*device, w.kind, w.bytes, "quarry bench"));
    *w.memory = std::move(made);
  }
  std::mt19937 random(1);
  auto* words = static_cast<uint32_t*>(block->mapped());
  for (uint32_t i = 0; i < kBlock; ++i) {
    words[i] = uint32_t(random());
    block_sum += words[i];
    for (uint32_t k = 0; k < 3; ++k) block_selected[k] += words[i] <= limit(kShares[k]);
  }
  const VkQueryPoolCreateInfo info{
      VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, 2 * kRowCount, 0};
  QRY_TRY(
      vk_check(vk.vkCreateQueryPool(device->handle(), &info, nullptr, &queries), "vkCreateQueryPool", "timestamps"));
  VkPhysicalDeviceProperties properties{};
  vk.vkGetPhysicalDeviceProperties(device->physical_device(), &properties);
  tick_us = double(properties.limits.timestampPeriod) * 1e-3;
  return {};
}

Result<void> Lists::submit_and_wait() {
  QRY_TRY(commands->end());
  QRY_TRY(device->submit(commands->handle(), {}, {{timeline->handle(), timeline->next()}}));
  return timeline->wait(timeline->last());
}

Result<void> Lists::fill(uint32_t words) {
  QRY_TRY_ASSIGN(const VkCommandBuffer begun, commands->begin());
  std::vector<VkBufferCopy> copies;
  for (uint64_t at = 0; at < words; at += kBlock) copies.push_back({0, at * 4, kBlock * 4});
  device->vk().vkCmdCopyBuffer(begun, block->buffer(), from->buffer(), uint32_t(copies.size()), copies.data());
  return submit_and_wait();
}

void Lists::record_copy(VkCommandBuffer to_record, uint32_t words) const {
  const engine::VulkanFunctions& vk = device->vk();
  const QryCopyPush push{from->address(), to->address()};
  vk.vkCmdBindPipeline(to_record, VK_PIPELINE_BIND_POINT_COMPUTE, copy);
  vk.vkCmdPushConstants(to_record, copy_layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  constexpr uint32_t kWide = kBlock / 4 / kQryCopyGroup;
  vk.vkCmdDispatch(to_record, kWide, words / kBlock, 1);
}

Result<void> Lists::measure(uint32_t words, uint32_t repeats, double (&median_us)[kRowCount]) {
  const engine::VulkanFunctions& vk = device->vk();
  std::vector<double> times[kRowCount];
  constexpr VkAccessFlags kShader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                          kCopy = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  constexpr VkPipelineStageFlags kWork = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  const VkMemoryBarrier between{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, kShader | kCopy, kShader | kCopy};
  for (uint32_t round = 0; round < repeats + 2; ++round) {
    QRY_TRY_ASSIGN(const VkCommandBuffer begun, commands->begin());
    vk.vkCmdResetQueryPool(begun, queries, 0, 2 * kRowCount);
    for (uint32_t row = 0; row < kRowCount; ++row) {
      vk.vkCmdPipelineBarrier(begun, kWork, kWork, 0, 1, &between, 0, nullptr, 0, nullptr);
      vk.vkCmdWriteTimestamp(begun, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, 2 * row);
      const uint64_t result = results->address() + uint64_t(row) * 4;
      if (row == 0) {
        record_copy(begun, words);
      } else if (row == 1) {
        const VkBufferCopy whole{0, 0, uint64_t(words) * 4};
        vk.vkCmdCopyBuffer(begun, from->buffer(), to->buffer(), 1, &whole);
      } else if (row == kCopies) {
        QRY_TRY(scan->record_sums(begun, {from->address(), to->address(), words, false, result}));
      } else {
        QRY_TRY(scan->record_select(begun, {.flags = from->address(),
                                            .items = from->address(),
                                            .to = to->address(),
                                            .count = words,
                                            .room = words,
                                            .low = 0,
                                            .high = limit(kShares[row - kCopies - 1]),
                                            .number = result}));
      }
      vk.vkCmdWriteTimestamp(begun, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, 2 * row + 1);
    }
    engine::host_read_barrier(vk, begun, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT);
    QRY_TRY(submit_and_wait());
    uint64_t ticks[2 * kRowCount];
    QRY_TRY(vk_check(vk.vkGetQueryPoolResults(device->handle(), queries, 0, 2 * kRowCount, sizeof ticks, ticks, 8,
                                              VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
                     "vkGetQueryPoolResults", "timestamps"));
    const auto* got = static_cast<const uint32_t*>(results->mapped());
    for (uint32_t row = kCopies; row < kRowCount; ++row) {
      const uint32_t wanted = (row == kCopies ? block_sum : block_selected[row - kCopies - 1]) * (words / kBlock);
      if (got[row] != wanted)
        return fail(ErrorCode::device, fmt::format("{} of {} words: {} instead of {}: the measurement is void",
                                                   kRows[row], words, got[row], wanted));
    }
    if (round >= 2)
      for (size_t row = 0; row < kRowCount; ++row)
        times[row].push_back(double(ticks[2 * row + 1] - ticks[2 * row]) * tick_us);
  }
  for (size_t row = 0; row < kRowCount; ++row) {
    std::ranges::sort(times[row]);
    median_us[row] = times[row][times[row].size() / 2];
  }
  return {};
}

}  // namespace

Result<nlohmann::json> bench_scan(const ScanBenchOptions& options) {
  engine::DeviceOptions device_options;
  device_options.prefer = options.device;
  device_options.validation = options.validation;
  device_options.log = [](int severity, const char* message) {
    if (severity > 0) fmt::print(stderr, "{}\n", message);
  };
  for (const uint32_t words : options.sizes)
    if (!words || words % kBlock)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("a list of {} words: must be a multiple of {}", words, kBlock));
  QRY_TRY_ASSIGN(auto device, engine::Device::create(device_options));
  Lists lists(*device);
  QRY_TRY(lists.set_up(std::ranges::max(options.sizes)));
  QRY_TRY(lists.fill(std::ranges::max(options.sizes)));
  nlohmann::json result{{"device", device->info().name},
                        {"driver", device->info().driver},
                        {"repeats", options.repeats},
                        {"sizes", nlohmann::json::array()}};
  for (size_t i = 0; i < options.sizes.size(); ++i) {
    if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "interrupted");
    const uint32_t words = options.sizes[i];
    options.progress.say(fmt::format("{} words", words), double(i) / double(options.sizes.size()));
    double us[kRowCount];
    QRY_TRY(lists.measure(words, options.repeats, us));
    const double copy_us = std::min(us[0], us[1]);
    nlohmann::json rows = nlohmann::json::object();
    for (size_t row = 0; row < kRowCount; ++row)
      rows[kRows[row]] = {
          {"microseconds", us[row]}, {"million_per_s", double(words) / us[row]}, {"of_copy", copy_us / us[row]}};
    result["sizes"].push_back({{"words", words}, {"rows", rows}});
  }
  return result;
}

std::string scan_table(const nlohmann::json& result) {
  std::string text = fmt::format(
      "{} ({}), median of {}; 10^6 words a second, and the rate of the faster copy that this is\n\n{:<12}",
      result["device"].get<std::string>(), result["driver"].get<std::string>(), result["repeats"].get<int>(), "words");
  for (const char* row : kRows) text += fmt::format("{:>18}", row);
  for (const auto& size : result["sizes"]) {
    text += fmt::format("\n{:<12}", size["words"].get<uint32_t>());
    for (const char* row : kRows)
      text += fmt::format("{:>12.0f}{:>6.2f}", size["rows"][row]["million_per_s"].get<double>(),
                          size["rows"][row]["of_copy"].get<double>());
  }
  return text + "\n";
}

}  // namespace quarry::bench
