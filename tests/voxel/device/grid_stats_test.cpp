// SPDX-License-Identifier: Apache-2.0
// grid_stats_test.cpp - a device's statistics of its grid, beside those of the host for the same words, and beside
// counts of the keys one by one.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "hashgrid/executor.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace grid_stats_test {

using namespace quarry;
using device::Store;
using test::taken;

namespace {

// Words of a table, copied from a device, 32-byte aligned.
struct Words {
  struct alignas(32) Sector {
    uint64_t slots[4];
  };
  std::vector<Sector> sectors;
  hashgrid::GridView view;
  explicit Words(Store& store) : sectors(size_t(store.memory().grid.page_count) * kQrySectorsPerPage) {
    view = store.memory().grid;
    REQUIRE(store.executor().copy_out(sectors.data(), view.words, sectors.size() * sizeof(Sector)));
    view.words = sectors.data()->slots;
  }
};

void require_counted(Store& store) {
  const hashgrid::Stats stats = taken(store.grid_stats());
  const Store::State state = taken(store.state());
  Words words(store);
  // The host's pass over the same words.
  const auto host = hashgrid::make_host_executor(2);
  const hashgrid::Stats expected = taken(host->pairs().stats(words.view));
  REQUIRE(stats.live == expected.live);
  REQUIRE(stats.slots == expected.slots);
  REQUIRE(stats.freed == expected.freed);
  REQUIRE(stats.overflow_live == expected.overflow_live);
  REQUIRE(stats.spilled_buckets == expected.spilled_buckets);
  REQUIRE(stats.size_bytes == expected.size_bytes);
  REQUIRE(stats.page_count == expected.page_count);
  REQUIRE(stats.fullest_page_live == expected.fullest_page_live);
  REQUIRE(stats.load_factor == expected.load_factor);
  REQUIRE(stats.depth_histogram == expected.depth_histogram);
  REQUIRE(stats.bucket_fill == expected.bucket_fill);
  REQUIRE(stats.depth_mean == expected.depth_mean);
  REQUIRE(stats.depth_p50 == expected.depth_p50);
  REQUIRE(stats.depth_p99 == expected.depth_p99);
  REQUIRE(stats.depth_max == expected.depth_max);
  REQUIRE(stats.version == state.version);
  // The keys one by one.
  const auto entries = taken(store.entries());
  REQUIRE(stats.live == entries.size());
  REQUIRE(stats.live == state.keys);
  std::vector<uint32_t> depths;
  std::array<uint64_t, hashgrid::kDepthBins> histogram{};
  double sum = 0;
  for (const Store::Entry& entry : entries) {
    depths.push_back(hashgrid::find(words.view, entry.key).sectors);
    ++histogram[std::min<uint32_t>(depths.back(), hashgrid::kDepthBins) - 1];
    sum += depths.back();
  }
  REQUIRE(stats.depth_histogram == histogram);
  if (depths.empty()) {
    REQUIRE(stats.depth_max == 0);
    REQUIRE(stats.depth_mean == 0);
    return;
  }
  std::sort(depths.begin(), depths.end());
  REQUIRE(stats.depth_mean == Approx(sum / double(depths.size())));
  REQUIRE(stats.depth_max == depths.back());
  REQUIRE(stats.depth_p50 == depths[(depths.size() * 50 + 99) / 100 - 1]);
  REQUIRE(stats.depth_p99 == depths[(depths.size() * 99 + 99) / 100 - 1]);
  uint64_t buckets = 0, in_buckets = 0;
  for (size_t fill = 0; fill < stats.bucket_fill.size(); ++fill) {
    buckets += stats.bucket_fill[fill];
    in_buckets += fill * stats.bucket_fill[fill];
  }
  REQUIRE(buckets == uint64_t(stats.page_count) * kQryBucketsPerPage);
  REQUIRE(in_buckets + stats.overflow_live == stats.live);
}

}  // namespace

TEST_CASE("A device's statistics of its grid are those of the host for the same words, and of its keys one by one") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = taken(Store::create(taken(home.make())));
    require_counted(*store);
    std::mt19937 random(5);
    bool spilled = false, freed = false;
    for (int round = 0; round < 4; ++round) {
      // Far apart, and next to each other; some go again.
      std::vector<uint32_t> keys;
      std::vector<uint8_t> materials;
      for (int i = 0; i < (test::kSanitized ? 15000 : 50000); ++i) {
        const uint32_t key = i % 3 ? uint32_t(random()) : uint32_t(round) << 24 | uint32_t(i);
        if (key == kQryReservedKey) continue;
        keys.push_back(key);
      }
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      materials.assign(keys.size(), uint8_t(1 + round));
      REQUIRE(store->put({keys, materials, {}, {}}));
      require_counted(*store);
      for (size_t i = 0; i < keys.size(); ++i) materials[i] = i % 4 ? uint8_t(9) : uint8_t(0);
      REQUIRE(store->put({keys, materials, {}, {}}));
      require_counted(*store);
      const hashgrid::Stats stats = taken(store->grid_stats());
      spilled = spilled || (stats.spilled_buckets > 0 && stats.depth_max > 1);
      freed = freed || stats.freed > 0;
    }
    REQUIRE(spilled);
    REQUIRE(freed);
  }
}

TEST_CASE("A device's statistics of its grid are of the world that the edits launched before leave") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = taken(Store::create(taken(home.make())));
    for (int32_t i = 0; i < 20; ++i) {
      Edit ball;
      ball.shape = Shape::sphere;
      ball.mode = i % 4 == 3 ? Mode::remove : Mode::fill;
      ball.a = ball.b = {i * 60, 0, 0};
      ball.radius = 40 + i * 4;
      taken(store->edit(*taken(EditShape::create(ball)).solid(), ball));
      if (i % 5 == 4) require_counted(*store);
      if (i % 7 == 6) taken(store->undo());
    }
    require_counted(*store);
  }
}

}  // namespace grid_stats_test
