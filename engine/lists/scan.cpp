// SPDX-License-Identifier: Apache-2.0
// scan.cpp - the two pipelines, the state that they share, and what a list must be to be recorded.
#include "engine/lists/scan.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <initializer_list>
#include <string>

#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/loader.hpp"
#include "engine/vulkan/pipeline_cache.hpp"
#include "engine/vulkan/timeline.hpp"
#include "scan_spirv.h"
#include "select_spirv.h"
#include "shaders/shared/scan.h"

namespace quarry::engine {

static_assert(sizeof(QryScanPush) == 80 && offsetof(QryScanPush, count) == 48,
              "the push constants' layout in C++ is not GLSL's scalar layout");

namespace {

// How a workgroup shares a tile. On a GPU a tile takes some 10 us from its number to its sums, however few run at once,
// so what counts is how many words are on their way: as many as registers hold, in workgroups of which several fit. An
// H200: docs/results/h200/algorithms.md. A software driver is as fast with 64 threads as with 256, within what
// `quarry bench scan` can tell; small tiles spread short lists over its threads.
struct Tile {
  uint32_t group, quads;  // threads, and fours of words of each
  uint32_t words() const { return group * quads * 4; }
};
constexpr Tile kSumsTile{1024, 8}, kSelectTile{512, 8}, kSoftwareTile{64, 4};

// A list or a single word, as the caller gave it.
struct Range {
  const char* name;
  uint64_t address, words, align;
  bool written;
};

Result<void> check_ranges(std::initializer_list<Range> ranges) {
  const auto bad = [](const std::string& what) -> Result<void> {
    return fail(ErrorCode::invalid_argument, "a scan whose " + what);
  };
  for (const Range& range : ranges) {
    if (!range.words) continue;
    if (!range.address) return bad(std::string(range.name) + " must have an address");
    if (range.address % range.align)
      return bad(std::string(range.name) + " must be at a multiple of " + std::to_string(range.align) + " bytes");
    for (const Range& other : ranges)
      if (&other != &range && other.words && range.written && range.address < other.address + other.words * 4 &&
          other.address < range.address + range.words * 4)
        return bad(std::string(range.name) + " must not overlap its " + other.name);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Scan>> Scan::create(Device& device, uint32_t most_words, const ScanOptions& options) {
  const VulkanFunctions& vk = device.vk();
  VkPhysicalDeviceSubgroupProperties subgroups{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, nullptr, 0, 0, 0, VK_FALSE};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroups, {}};
  vk.vkGetPhysicalDeviceProperties2(device.physical_device(), &properties);
  const VkPhysicalDeviceLimits& limits = properties.properties.limits;
  const bool software = device.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const uint32_t most_threads =
      std::bit_floor(std::min({1024u, limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]}));
  const auto chosen = [&](Tile tile) {
    if (software) tile = kSoftwareTile;
    tile.group = options.group ? options.group : std::min(tile.group, most_threads);
    if (options.quads) tile.quads = options.quads;
    return tile;
  };
  const Tile sums_tile = chosen(kSumsTile), select_tile = chosen(kSelectTile);
  if (options.group && (options.group < 64 || options.group > most_threads || !std::has_single_bit(options.group)))
    return fail(ErrorCode::invalid_argument, "a scan by workgroups of " + std::to_string(options.group) +
                                                 " threads: must be a power of two from 64 to " +
                                                 std::to_string(most_threads) + " on " + device.info().name);
  if (options.quads > 16)
    return fail(ErrorCode::invalid_argument,
                "a scan of " + std::to_string(options.quads) + " fours of words a thread: must be at most 16");
  if (!device.info().beam_lanes || !(subgroups.supportedOperations & VK_SUBGROUP_FEATURE_BALLOT_BIT))
    return fail(
        ErrorCode::unsupported,
        device.info().name + " has no arithmetic or no ballots over subgroups in compute shaders, which scans need");
  std::unique_ptr<Scan> self(new Scan(device));
  self->most_words_ = most_words;
  self->sums_tile_words_ = sums_tile.words();
  self->select_tile_words_ = select_tile.words();
  const uint64_t least = std::min(sums_tile.words(), select_tile.words());
  const uint64_t tiles = std::max<uint64_t>((uint64_t(most_words) + least - 1) / least, 1);
  QRY_TRY_ASSIGN(auto state, DeviceMemory::create(device, BufferMemory::device, (kQryScanHeader + 4 * tiles) * 4,
                                                  "quarry scan state"));
  self->state_ = std::move(state);
  QRY_TRY(self->clear_state());
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryScanPush)};
  const VkPipelineLayoutCreateInfo layout{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 0, nullptr, 1, &push};
  QRY_TRY(vk_check(vk.vkCreatePipelineLayout(device.handle(), &layout, nullptr, &self->layout_),
                   "vkCreatePipelineLayout", "scans"));
  QRY_TRY_ASSIGN(auto cache, PipelineCache::open(device));
  const auto constants = [&](Tile tile) {
    return PipelineCache::Constants{.scan_group = tile.group,
                                    .scan_quads = tile.quads,
                                    .scan_spins = options.spins,
                                    .scan_trial = options.trial,
                                    .scan_striped = software == options.own_order};
  };
  QRY_TRY_ASSIGN(auto sums,
                 cache->make(self->layout_, k_scan_spirv, sizeof k_scan_spirv, "scan", constants(sums_tile)));
  self->sums_ = sums;
  QRY_TRY_ASSIGN(auto select,
                 cache->make(self->layout_, k_select_spirv, sizeof k_select_spirv, "select", constants(select_tile)));
  self->select_ = select;
  cache->store();
  return self;
}

Scan::~Scan() {
  const VulkanFunctions& vk = device_->vk();
  for (VkPipeline pipeline : {sums_, select_})
    if (pipeline) vk.vkDestroyPipeline(device_->handle(), pipeline, nullptr);
  if (layout_) vk.vkDestroyPipelineLayout(device_->handle(), layout_, nullptr);
}

// Once, and not with each use: a use leaves the state ready for the next one.
Result<void> Scan::clear_state() {
  QRY_TRY_ASSIGN(auto commands, Commands::create(*device_, "scan state"));
  QRY_TRY_ASSIGN(auto timeline, Timeline::create(*device_, "quarry scan state"));
  QRY_TRY_ASSIGN(const VkCommandBuffer buffer, commands->begin());
  device_->vk().vkCmdFillBuffer(buffer, state_->buffer(), 0, VK_WHOLE_SIZE, 0);
  QRY_TRY(commands->end());
  QRY_TRY(device_->submit(buffer, {}, {{timeline->handle(), timeline->next()}}));
  return timeline->wait(timeline->last());
}

void Scan::record(VkCommandBuffer commands, VkPipeline pipeline, uint32_t tile_words, QryScanPush& push) const {
  const VulkanFunctions& vk = device_->vk();
  push.state = state_->address();
  push.tiles = uint32_t(std::max<uint64_t>((uint64_t(push.count) + tile_words - 1) / tile_words, 1));
  push.capacity = uint32_t((state_->size_bytes() / 4 - kQryScanHeader) / 4);
  constexpr VkAccessFlags kShader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                          kCopy = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  constexpr VkPipelineStageFlags kWork = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  const VkMemoryBarrier before{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, kShader | kCopy, kShader},
      after{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, kShader, kShader | kCopy | VK_ACCESS_INDIRECT_COMMAND_READ_BIT};
  vk.vkCmdPipelineBarrier(commands, kWork | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                          0, 1, &before, 0, nullptr, 0, nullptr);
  vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  vk.vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  // Workgroups beyond the last tile take none and end.
  const uint32_t rows = (push.tiles + kQryScanMostWide - 1) / kQryScanMostWide;
  vk.vkCmdDispatch(commands, (push.tiles + rows - 1) / rows, rows, 1);
  vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, kWork | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT,
                          0, 1, &after, 0, nullptr, 0, nullptr);
}

Result<void> Scan::record_sums(VkCommandBuffer commands, const Sums& sums) const {
  if (sums.count > most_words_)
    return fail(ErrorCode::invalid_argument, "a scan of " + std::to_string(sums.count) + " words, made for at most " +
                                                 std::to_string(most_words_) + ": create a larger one");
  QRY_TRY(check_ranges({{"words", sums.words, sums.count, 16, false},
                        {"sums", sums.to, sums.count, 16, true},
                        {"total", sums.total, sums.total != 0, 4, true}}));
  QryScanPush push{};
  push.from = sums.words;
  push.to = sums.to;
  push.sum = sums.total;
  push.count = sums.count;
  push.inclusive = sums.inclusive;
  record(commands, sums_, sums_tile_words_, push);
  return {};
}

Result<void> Scan::record_select(VkCommandBuffer commands, const Selection& selection) const {
  if (selection.count > most_words_)
    return fail(ErrorCode::invalid_argument, "a selection from " + std::to_string(selection.count) +
                                                 " words, made for at most " + std::to_string(most_words_) +
                                                 ": create a larger scan");
  if (selection.low > selection.high || !selection.dispatch_group)
    return fail(ErrorCode::invalid_argument, "a selection of flags from " + std::to_string(selection.low) + " to " +
                                                 std::to_string(selection.high) + ", for workgroups of " +
                                                 std::to_string(selection.dispatch_group) +
                                                 ": must be in order, and at least one thread");
  const uint64_t items = selection.items == selection.flags ? 0 : selection.items;
  const uint64_t most = std::min(selection.room, selection.count);
  QRY_TRY(check_ranges({{"flags", selection.flags, selection.count, 16, false},
                        {"items", items, items ? selection.count : 0, 4, false},
                        {"selected words", selection.to, most, 4, true},
                        {"number", selection.number, selection.number != 0, 4, true},
                        {"dispatch", selection.dispatch, selection.dispatch ? 3u : 0u, 4, true}}));
  QryScanPush push{};
  push.from = selection.flags;
  push.items = selection.items;
  push.to = selection.to;
  push.sum = selection.number;
  push.dispatch = selection.dispatch;
  push.count = selection.count;
  push.low = selection.low;
  push.span = selection.high - selection.low;
  push.room = selection.room;
  push.dispatch_group = selection.dispatch_group;
  record(commands, select_, select_tile_words_, push);
  return {};
}

}  // namespace quarry::engine
