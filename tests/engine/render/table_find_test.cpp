// SPDX-License-Identifier: Apache-2.0
// table_find_test.cpp - tables read by shaders: compares grid_find.glsl in both localities and compact_find.glsl with
// hashgrid::find on the same memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "compact_find_spirv.h"
#include "hashgrid/executor.hpp"
#include "pairs_find_spirv.h"
#include "tests/engine/render/shader_find.hpp"
#include "tests/engine/test_device.hpp"

namespace quarry::test::table_find_test {
namespace {

using namespace engine;

// Compares the shader's results with the host's. Returns the number of keys found and the most sectors read for one.
template <class Table>
std::pair<size_t, uint32_t> check_alike(const Table& table, const std::vector<uint32_t>& keys,
                                        const std::vector<uint32_t>& found) {
  size_t unlike = 0, hits = 0;
  uint32_t deepest = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const hashgrid::Found host = find(table, keys[i]);
    unlike += found[2 * i] != host.value || found[2 * i + 1] != host.sectors;
    hits += host.hit;
    deepest = std::max(deepest, host.sectors);
  }
  CHECK(unlike == 0);
  return {hits, deepest};
}

TEST_CASE(
    "compact_find: GLSL and host answer alike, value and sectors read, in every format, for present, absent, "
    "erased and stashed keys") {
  Device* device = test_device();
  if (!device) return;
  ShaderFind<QryCompactFindPush> find_in_shader(*device, k_compact_find_spirv);
  const auto executor = hashgrid::make_host_executor(2);
  for (const uint32_t pages : {1u, 3u, 1024u, 12288u}) {
    INFO(pages << " pages");
    auto memory =
        DeviceMemory::create(*device, BufferMemory::host_upload, size_t{pages} * kQryPageBytes, "compact table");
    REQUIRE(memory);
    const hashgrid::CompactView table = hashgrid::compact_view((*memory)->mapped(), pages);
    REQUIRE(executor->compact().clear(table));
    std::mt19937 random(pages);
    std::vector<uint32_t> keys;
    for (uint32_t i = 0; i < 3600 * std::min(pages, 3u); ++i) keys.push_back(uint32_t(random()));
    // Neighbours in mixed order fill sectors, and in the larger tables the stash. Some of them wrap around a page's
    // end.
    const uint64_t sectors = table.layout.table.pages * 1024ull;
    for (const uint64_t sector : {uint64_t{1022}, sectors / 2})
      for (uint32_t i = 0; i < 300; ++i)
        keys.push_back(qry_unmix(uint32_t(((sector << 32) + sectors - 1) / sectors + i)));
    std::vector<uint32_t> values;
    values.reserve(keys.size());
    for (const uint32_t key : keys) values.push_back(key * 0x9E3779B1u >> 1);
    REQUIRE(executor->compact().insert(table, keys.data(), values.data(), keys.size(), nullptr));
    for (size_t i = 0; i < keys.size(); i += 3) erase(table, keys[i]);
    for (uint32_t i = 0; i < 4000; ++i) keys.push_back(uint32_t(random()));
    keys.push_back(0);
    keys.push_back(kQryReservedKey);
    const std::vector<uint32_t> found = find_in_shader({(*memory)->address(), 0, 0, 0, table.layout}, keys);
    const auto [hits, deepest] = check_alike(table, keys, found);
    CHECK(hits > 2000);
    CHECK(deepest > (pages >= 12288 ? 3u : 7u));  // otherwise the test had no full sector
  }
}

TEST_CASE(
    "grid_find: GLSL and host answer alike, value and sectors read, for plain keys and for rows, in homes, "
    "second buckets and the stash") {
  Device* device = test_device();
  if (!device) return;
  ShaderFind<QryPairsFindPush> find_in_shader(*device, k_pairs_find_spirv);
  const auto executor = hashgrid::make_host_executor(2);
  for (const uint32_t locality : {kQryPlain, kQryRows})
    for (const uint32_t pages : {1u, 3u, 70u}) {
      INFO(pages << " pages, " << (locality == kQryRows ? "rows" : "plain"));
      auto memory =
          DeviceMemory::create(*device, BufferMemory::host_upload, size_t{pages} * kQryPageBytes, "table of pairs");
      REQUIRE(memory);
      const hashgrid::GridView first{static_cast<uint64_t*>((*memory)->mapped()), pages, 1, locality},
          table{first.words, pages, 2, locality};
      REQUIRE(executor->pairs().clear(first));
      // Rows of bricks with gaps, and single keys. There are as many as the pages hold, and the first page is as full
      // as possible.
      std::mt19937 random(pages);
      std::vector<uint32_t> keys;
      while (keys.size() < pages * size_t{3000}) {
        const uint32_t row = uint32_t(random()) & ~7u, there = uint32_t(random()) % 256;
        for (uint32_t i = 0; i < 8; ++i)
          if ((there >> i & 1u) != 0 && row + i != kQryReservedKey) keys.push_back(row + i);
      }
      for (uint32_t stored = 0; stored < 400; ++stored) keys.push_back(qry_key_of_stored(stored, locality));
      std::vector<uint32_t> values;
      values.reserve(keys.size());
      for (const uint32_t key : keys) values.push_back(key * 0x9E3779B1u >> 1);
      const auto put = executor->pairs().insert(first, keys.data(), values.data(), keys.size(), nullptr);
      REQUIRE(put);
      CHECK(put->inserted > keys.size() * 3 / 4);
      for (size_t i = 0; i < keys.size(); i += 3) erase(table, keys[i]);
      for (uint32_t i = 0; i < 4000; ++i) keys.push_back(i % 2 == 0 ? uint32_t(random()) : keys[i] ^ 1u);
      keys.push_back(0);
      keys.push_back(kQryReservedKey);
      const std::vector<uint32_t> found = find_in_shader({(*memory)->address(), 0, 0, 0, pages, locality}, keys);
      const auto [hits, deepest] = check_alike(table, keys, found);
      CHECK(hits > pages * size_t{1500});
      CHECK(deepest > 3u);  // otherwise the test had no keys in the stash
    }
}

}  // namespace
}  // namespace quarry::test::table_find_test
