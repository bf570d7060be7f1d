// SPDX-License-Identifier: Apache-2.0
// scan_test.cpp - compares sums and selections on the device with the standard library's, whatever the device does to
// workgroups. ctest runs it with subgroups of 4 and 8 and with workgroups one after the other, too.
//
// What is put wrong, and what then fails: doc comment of each case.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "engine/lists/scan.hpp"
#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/pipeline_cache.hpp"
#include "engine/vulkan/timeline.hpp"
#include "mark_spirv.h"
#include "shaders/shared/scan.h"
#include "tests/engine/shaders/mark.h"
#include "tests/engine/test_device.hpp"

namespace quarry::test::scan_test {
namespace {

using namespace engine;
using Words = std::vector<uint32_t>;

constexpr uint32_t kUntouched = 0xABCD1234u;
constexpr size_t kBeyond = 64;  // words after a list that must stay as they are

class Run {
 public:
  Run(Device& device, uint32_t most_words, const ScanOptions& options = {})
      : device_(device),
        commands_(*Commands::create(device, "scan test")),
        timeline_(*Timeline::create(device, "scan test")) {
    auto made = Scan::create(device, most_words, options);
    REQUIRE(made);
    scan = std::move(*made);
  }

  // A list in memory that host and device see.
  std::unique_ptr<DeviceMemory> list(const Words& words, size_t beyond = 0) const {
    auto made = DeviceMemory::create(device_, BufferMemory::host_readback, (words.size() + beyond + 4) * 4, "list");
    REQUIRE(made);
    auto* to = static_cast<uint32_t*>((*made)->mapped());
    std::copy(words.begin(), words.end(), to);
    std::fill_n(to + words.size(), beyond, kUntouched);
    return std::move(*made);
  }
  std::unique_ptr<DeviceMemory> room(size_t words) const { return list(Words(words, kUntouched), kBeyond); }
  static Words read(const DeviceMemory& memory, size_t words) {
    const auto* from = static_cast<const uint32_t*>(memory.mapped());
    return {from, from + words};
  }
  static bool untouched(const DeviceMemory& memory, size_t words) {
    const auto* from = static_cast<const uint32_t*>(memory.mapped()) + words;
    return std::all_of(from, from + kBeyond, [](uint32_t word) { return word == kUntouched; });
  }

  VkCommandBuffer begin() {
    auto begun = commands_->begin();
    REQUIRE(begun);
    return *begun;
  }
  void finish() {
    host_read_barrier(device_.vk(), commands_->handle(), VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                      VK_ACCESS_SHADER_WRITE_BIT);
    REQUIRE(commands_->end());
    REQUIRE(device_.submit(commands_->handle(), {}, {{timeline_->handle(), timeline_->next()}}));
    REQUIRE(timeline_->wait(timeline_->last()));
  }

  // Both kinds of sums of the words, against the standard library's, in one submission.
  bool sums_are_right(const Words& words) {
    const size_t n = words.size();
    const auto from = list(words), before = room(n), up_to = room(n), total = room(2);
    const VkCommandBuffer commands = begin();
    REQUIRE(scan->record_sums(commands, {from->address(), before->address(), uint32_t(n), false, total->address()}));
    REQUIRE(scan->record_sums(commands, {from->address(), up_to->address(), uint32_t(n), true, total->address() + 4}));
    finish();
    Words wanted(n);
    std::exclusive_scan(words.begin(), words.end(), wanted.begin(), 0u);
    bool right = read(*before, n) == wanted && untouched(*before, n);
    std::inclusive_scan(words.begin(), words.end(), wanted.begin());
    right = right && read(*up_to, n) == wanted && untouched(*up_to, n);
    const uint32_t all = std::accumulate(words.begin(), words.end(), 0u);
    return right && read(*total, 2) == Words{all, all} && untouched(*total, 2);
  }

  struct Wanted {
    uint32_t low = 1, high = 0xFFFFFFFFu;
    size_t room = SIZE_MAX;
  };
  // Places, items and the flags themselves, against copy_if.
  bool selections_are_right(const Words& flags, const Wanted& wanted) {
    const size_t n = flags.size(), most = std::min(wanted.room, n);
    Words items(n);
    for (size_t i = 0; i < n; ++i) items[i] = uint32_t(i) * 0x9E3779B1u;
    const auto from = list(flags), item_list = list(items), results = room(15);
    const std::unique_ptr<DeviceMemory> to[] = {room(most), room(most), room(most)};
    const uint64_t sources[] = {0, item_list->address(), from->address()};
    const VkCommandBuffer commands = begin();
    for (size_t k = 0; k < 3; ++k)
      REQUIRE(scan->record_select(commands, {.flags = from->address(),
                                             .items = sources[k],
                                             .to = to[k]->address(),
                                             .count = uint32_t(n),
                                             .room = uint32_t(most),
                                             .low = wanted.low,
                                             .high = wanted.high,
                                             .number = results->address() + k * 20,
                                             .dispatch = results->address() + k * 20 + 4,
                                             .dispatch_group = 96}));
    finish();
    const Words got = read(*results, 15);
    bool right = untouched(*results, 15);
    for (size_t k = 0; k < 3; ++k) {
      Words expected;
      for (size_t i = 0; i < n; ++i)
        if (flags[i] >= wanted.low && flags[i] <= wanted.high)
          expected.push_back(k == 0 ? uint32_t(i) : k == 1 ? items[i] : flags[i]);
      const size_t number = expected.size(), groups = (std::min(number, most) + 95) / 96;
      expected.resize(std::min(number, most));
      const size_t written = expected.size();
      expected.resize(most, kUntouched);
      right = right && read(*to[k], most) == expected && untouched(*to[k], most) && got[k * 5] == number &&
              got[k * 5 + 1] == groups && got[k * 5 + 2] == uint32_t(written > 0) && got[k * 5 + 3] == 1 &&
              got[k * 5 + 4] == kUntouched;
    }
    return right;
  }

  Device& device() { return device_; }
  std::unique_ptr<Scan> scan;

 private:
  Device& device_;
  std::unique_ptr<Commands> commands_;
  std::unique_ptr<Timeline> timeline_;
};

Words random_words(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  Words words(n);
  for (uint32_t& word : words) word = uint32_t(random());
  return words;
}
// 1 with a share of `percent`, else 0.
Words random_flags(size_t n, uint32_t percent, uint32_t seed) {
  Words words = random_words(n, seed);
  for (uint32_t& word : words) word = word % 100 < percent ? 1 : 0;
  return words;
}

// 0, 1, powers of two and their neighbours, and the neighbours of a tile's multiples.
std::vector<size_t> telling_sizes(size_t most, size_t tile) {
  std::vector<size_t> sizes{0};
  for (size_t power = 1; power <= most; power *= 2)
    for (const size_t size : {power - 1, power, power + 1}) sizes.push_back(size);
  for (const size_t tiles : {3, 5, 33})
    for (const size_t size : {tiles * tile - 1, tiles * tile, tiles * tile + 1}) sizes.push_back(size);
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

constexpr uint32_t kMost = 1u << 21;

// Fails without: the barrier after subgroups' totals, the tile that a full group misses, the guard of the last tile,
// the carry from quad to quad, the other half's clearing (lists of different lengths follow each other).
TEST_CASE("scan: sums of any number of words are those of the standard library", "[scan]") {
  Device* device = test_device();
  if (!device) return;
  // Each setting is a shader to be compiled, so not all pairs of them.
  for (const bool own_order : {false, true}) {
    const uint32_t group = own_order ? 256 : 0;
    Run run(*device, kMost, {.group = group, .own_order = own_order});
    INFO("tiles of " << run.scan->sums_tile_words() << (own_order ? ", other order" : ""));
    for (const size_t n : telling_sizes(1 << 15, run.scan->sums_tile_words())) {
      INFO(n << " words");
      CHECK(run.sums_are_right(random_words(n, uint32_t(n))));
    }
    std::mt19937 random(group + own_order);
    for (int i = 0; i < 60; ++i) {
      const size_t n = random() % (2u << random() % 15);
      INFO(n << " words");
      CHECK(run.sums_are_right(random_words(n, uint32_t(i))));
    }
    CHECK(run.sums_are_right(random_words(kMost, 7)));
  }
}

// Fails with a sum of fewer than 32 bits, and with halves of different sums taken for one.
TEST_CASE("scan: sums are right for words that are all zero, all one, all ones, sorted, and that overflow", "[scan]") {
  Device* device = test_device();
  if (!device) return;
  Run run(*device, kMost);
  const size_t n = 40'000;
  Words sorted = random_words(n, 1);
  std::ranges::sort(sorted);
  const Words reversed(sorted.rbegin(), sorted.rend());
  CHECK(run.sums_are_right(Words(n, 0)));
  CHECK(run.sums_are_right(Words(n, 1)));
  CHECK(run.sums_are_right(Words(n, 0xFFFFFFFFu)));
  CHECK(run.sums_are_right(Words(n, 0x80000000u)));
  CHECK(run.sums_are_right(Words(n, 0x10000u)));
  CHECK(run.sums_are_right(Words(n, 0xFFFFu)));
  CHECK(run.sums_are_right(sorted));
  CHECK(run.sums_are_right(reversed));
  Words last(n, 0);
  last.back() = 5;
  CHECK(run.sums_are_right(last));
}

// Fails if flags beyond the end count, if a write is not bounded by the room, where few are selected of a tile and
// where many are, or if the order is not the list's.
TEST_CASE("scan: selections are those of copy_if, in order, with their number and a dispatch over them", "[scan]") {
  Device* device = test_device();
  if (!device) return;
  for (const uint32_t group : {0u, 256u}) {
    Run run(*device, kMost, {.group = group});
    for (const size_t n : telling_sizes(1 << 13, run.scan->select_tile_words())) {
      INFO(n << " words");
      CHECK(run.selections_are_right(random_flags(n, 50, uint32_t(n)), {}));
    }
    for (const uint32_t percent : {0u, 1u, 10u, 90u, 100u})
      CHECK(run.selections_are_right(random_flags(20'000, percent, percent), {}));
    std::mt19937 random(group);
    for (int i = 0; i < 50; ++i) {
      const size_t n = random() % 9000;
      const auto a = uint32_t(random()), b = uint32_t(random());
      INFO(n << " words from " << std::min(a, b) << " to " << std::max(a, b));
      CHECK(run.selections_are_right(random_words(n, uint32_t(i)),
                                     {.low = std::min(a, b), .high = std::max(a, b), .room = random() % (n + 1)}));
    }
    // Words beyond a list read as zero, which is a flag here.
    CHECK(run.selections_are_right(Words(1001, 0), {.low = 0, .high = 0}));
    CHECK(run.selections_are_right(Words(1001, 7), {.low = 0, .high = 6}));
  }
}

// Fails, by not ending, if a workgroup waits for another without bound; fails if a tile is summed twice or left out, or
// if what one publishes for another replaces a prefix.
TEST_CASE("scan: results are right when no workgroup publishes its sum, or when the last tile is taken first",
          "[scan]") {
  Device* device = test_device();
  if (!device) return;
  const std::pair<uint32_t, uint32_t> trials[] = {
      {0u, 0u},
      {kQryScanOwnersStall, 5u},
      {kQryScanOwnersStall | kQryScanFallbackStalls, 0u},
      {kQryScanBackwards, 5u},
      {kQryScanBackwards | kQryScanOwnersStall | kQryScanFallbackStalls, 0u}};
  for (const auto& [trial, spins] : trials) {
    INFO("trial " << trial << ", " << spins << " spins");
    Run run(*device, kMost, {.spins = spins, .trial = trial});
    const uint32_t tile = run.scan->sums_tile_words();
    for (const size_t n : {size_t{0}, size_t{1}, size_t{tile}, size_t{tile} + 1, size_t{tile} * 9 + 5,
                           size_t{tile} * 33 - 1, size_t{tile} * 2}) {
      INFO(n << " words");
      CHECK(run.sums_are_right(random_words(n, uint32_t(n))));
      for (const uint32_t percent : {3u, 30u})
        CHECK(run.selections_are_right(random_flags(n, percent, uint32_t(n)), {}));
    }
  }
}

// Fails if a use leaves anything behind that a later one takes for its own.
TEST_CASE("scan: long and short lists may follow each other in one command buffer, sums and selections mixed",
          "[scan]") {
  Device* device = test_device();
  if (!device) return;
  Run run(*device, kMost);
  const Words words = random_words(100'000, 3);
  const auto from = run.list(words);
  std::vector<std::unique_ptr<DeviceMemory>> to;
  std::vector<uint32_t> sizes;
  std::mt19937 random(4);
  for (int i = 0; i < 24; ++i) sizes.push_back(i % 3 == 0 ? 100'000 - i : uint32_t(random() % (2u << random() % 16)));
  VkCommandBuffer commands = run.begin();
  for (const uint32_t n : sizes) {
    to.push_back(run.room(n));
    if (to.size() % 2 == 0) REQUIRE(run.scan->record_sums(commands, {from->address(), to.back()->address(), n}));
    else
      REQUIRE(run.scan->record_select(
          commands, {.flags = from->address(), .to = to.back()->address(), .count = n, .room = n, .low = 1u << 31}));
  }
  run.finish();
  for (size_t i = 0; i < sizes.size(); ++i) {
    INFO("list " << i << " of " << sizes[i] << " words");
    Words wanted;
    if (i % 2 == 1) {
      wanted.resize(sizes[i]);
      std::exclusive_scan(words.begin(), words.begin() + sizes[i], wanted.begin(), 0u);
    } else {
      for (uint32_t k = 0; k < sizes[i]; ++k)
        if (words[k] >> 31) wanted.push_back(k);
      wanted.resize(sizes[i], kUntouched);
    }
    CHECK(Run::read(*to[i], sizes[i]) == wanted);
  }
}

TEST_CASE("scan: a selection's dispatch runs over what was selected, without the host", "[scan]") {
  Device* device = test_device();
  if (!device) return;
  const VulkanFunctions& vk = device->vk();
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(QryMarkPush)};
  const VkPipelineLayoutCreateInfo info{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 0, nullptr, 1, &range};
  VkPipelineLayout layout = VK_NULL_HANDLE;
  REQUIRE(vk.vkCreatePipelineLayout(device->handle(), &info, nullptr, &layout) == VK_SUCCESS);
  auto cache = PipelineCache::open(*device);
  REQUIRE(cache);
  auto pipeline = (*cache)->make(layout, k_mark_spirv, sizeof k_mark_spirv, "mark", {});
  REQUIRE(pipeline);
  Run run(*device, kMost);
  for (const uint32_t percent : {0u, 3u, 70u}) {
    const Words flags = random_flags(30'000, percent, 11);
    const auto from = run.list(flags), to = run.room(flags.size()), results = run.room(4),
               marks = run.list(Words(flags.size(), 0));
    VkCommandBuffer commands = run.begin();
    REQUIRE(run.scan->record_select(commands, {.flags = from->address(),
                                               .to = to->address(),
                                               .count = uint32_t(flags.size()),
                                               .room = uint32_t(flags.size()),
                                               .number = results->address(),
                                               .dispatch = results->address() + 4}));
    const QryMarkPush push{to->address(), results->address(), marks->address()};
    vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, *pipeline);
    vk.vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    vk.vkCmdDispatchIndirect(commands, results->buffer(), 4);
    run.finish();
    CHECK(Run::read(*marks, flags.size()) == flags);
  }
  vk.vkDestroyPipeline(device->handle(), *pipeline, nullptr);
  vk.vkDestroyPipelineLayout(device->handle(), layout, nullptr);
}

TEST_CASE("scan: lists that are too long, missing, misplaced or that overlap are refused, and nothing is recorded",
          "[scan]") {
  Device* device = test_device();
  if (!device) return;
  CHECK(Scan::create(*device, 100, {.group = 48}).error().code == ErrorCode::invalid_argument);
  CHECK(Scan::create(*device, 100, {.group = 2048}).error().code == ErrorCode::invalid_argument);
  Run run(*device, 5000);
  const auto from = run.list(Words(6000, 1)), to = run.room(6000);
  const uint64_t a = from->address(), b = to->address();
  VkCommandBuffer commands = run.begin();
  const auto sums = [&](const Scan::Sums& wanted) {
    const auto done = run.scan->record_sums(commands, wanted);
    return done ? std::string() : done.error().message;
  };
  CHECK(sums({a, b, 5001}) == "a scan of 5001 words, made for at most 5000: create a larger one");
  CHECK(sums({0, b, 5}) == "a scan whose words must have an address");
  CHECK(sums({a, 0, 5}) == "a scan whose sums must have an address");
  CHECK(sums({a + 4, b, 5}) == "a scan whose words must be at a multiple of 16 bytes");
  CHECK(sums({a, b, 5, false, b + 22}) == "a scan whose total must be at a multiple of 4 bytes");
  CHECK(sums({a, a, 5}) == "a scan whose sums must not overlap its words");
  CHECK(sums({a, a + 16, 5}) == "a scan whose sums must not overlap its words");
  CHECK(sums({a, b, 5, false, b + 16}) == "a scan whose sums must not overlap its total");
  const auto select = [&](const Scan::Selection& wanted) {
    const auto done = run.scan->record_select(commands, wanted);
    return done ? std::string() : done.error().message;
  };
  CHECK(select({.flags = a, .to = b, .count = 5001, .room = 9}) ==
        "a selection from 5001 words, made for at most 5000: create a larger scan");
  CHECK(select({.flags = a, .to = a + 16, .count = 9, .room = 9}) ==
        "a scan whose selected words must not overlap its flags");
  CHECK(select({.flags = a, .to = b, .count = 9, .room = 9, .low = 2, .high = 1}) ==
        "a selection of flags from 2 to 1, for workgroups of 64: must be in order, and at least one thread");
  CHECK(select({.flags = a, .to = b, .count = 9, .room = 9, .dispatch_group = 0}) ==
        "a selection of flags from 1 to 4294967295, for workgroups of 0: must be in order, and at least one thread");
  // Nothing was recorded, and empty lists need no address.
  CHECK(sums({0, 0, 0}).empty());
  CHECK(select({}).empty());
  run.finish();
  CHECK(Run::read(*to, 6000) == Words(6000, kUntouched));
  CHECK(Run::read(*from, 6000) == Words(6000, 1));
}

}  // namespace
}  // namespace quarry::test::scan_test
