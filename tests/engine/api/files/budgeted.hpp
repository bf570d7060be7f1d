// SPDX-License-Identifier: Apache-2.0
// budgeted.hpp - worlds of the C interface that keep to a budget, changes of them at random, and all of their voxels
// beside those of a twin that has none.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/api/files/faulty.hpp"
#include "tests/engine/api/files/twin.hpp"

namespace quarry::test::budgeted {

// Of a small budget, as quarry.h says it.
inline constexpr uint64_t kSlack = 24'000'000;

// A new world, or the one of a file, that keeps to a budget.
inline Made with_budget(const Worlds& worlds, uint32_t home, uint64_t budget_bytes,
                        const std::filesystem::path& file = {}, Fault* fault = nullptr) {
  qry_emulation_info emulation;
  if (fault) emulation = fault->info();
  qry_device_budget_info budget = QRY_DEVICE_BUDGET_INFO_INIT;
  budget.bytes = budget_bytes;
  budget.next = fault ? &emulation : nullptr;
  qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
  wanted.home = home;
  wanted.next = &budget;
  return made_as(worlds, wanted, file);
}

// Little more than the least, which is told to who asks for less: there is room for some thirty thousand bricks that
// are not full.
inline uint64_t budget_at(const Worlds& worlds, uint32_t home) {
  REQUIRE(with_budget(worlds, home, 1000).result == QRY_ERROR_INVALID_ARGUMENT);
  const std::string message = qry_last_error();
  const size_t at = message.find(" takes ");
  REQUIRE(at != std::string::npos);
  return (std::stoull(message.substr(at + 7)) + 4) << 20;
}

inline OneWorld attached(const Worlds& worlds, uint32_t home, const std::filesystem::path& file, Fault* fault = nullptr,
                         uint64_t more_bytes = 0) {
  Made made = with_budget(worlds, home, budget_at(worlds, home) + more_bytes, {}, fault);
  require_ok(made.result);
  std::filesystem::remove(file);
  require_ok(qry_world_attach(made.world.get(), file.c_str()));
  return std::move(made.world);
}

struct Paging {
  qry_paging_state pages = QRY_PAGING_STATE_INIT;
  uint64_t device_bytes = 0;
};
inline Paging paging_of(qry_world* world) {
  Paging paging;
  qry_home_state home = QRY_HOME_STATE_INIT;
  home.next = &paging.pages;
  require_ok(qry_world_get_home(world, &home));
  paging.device_bytes = home.device_bytes;
  return paging;
}

// Of the homes of this machine those on a device; at home on the host such a world is edited as on the emulated one.
inline std::vector<uint32_t> device_homes(const Worlds& worlds) {
  std::vector<uint32_t> there = homes(worlds);
  std::erase(there, uint32_t(QRY_HOME_HOST));
  return there;
}
inline std::vector<uint32_t> homes_with_host(const Worlds& worlds) {
  std::vector<uint32_t> there = homes(worlds);
  std::erase(there, uint32_t(QRY_HOME_EMULATED));
  return there;
}

// All edits but a few are within these voxels: 4 by 2 by 4 pages.
inline constexpr std::array<int32_t, 3> kMin{-256, -128, -256}, kMax{255, 127, 255};

inline int32_t at_random(std::mt19937& random, int a) {
  return kMin[size_t(a)] + int32_t(random() % uint32_t(kMax[size_t(a)] - kMin[size_t(a)] + 1));
}

// The same change of any world: shapes, regions of noise, lists.
inline qry_result random_change(qry_world* world, uint32_t seed) {
  std::mt19937 random(seed);
  const auto at = [&](int a, int32_t margin) {
    const int32_t low = kMin[size_t(a)] + margin, high = kMax[size_t(a)] - margin;
    return low + int32_t(random() % uint32_t(high - low + 1));
  };
  const auto dice = random() % 10;
  if (dice < 4) {
    // Noise, of which every brick is stored.
    constexpr int32_t kEdge = 120;
    std::array<int32_t, 3> min{}, max{};
    for (int a = 0; a < 3; ++a) min[size_t(a)] = at(a, kEdge), max[size_t(a)] = min[size_t(a)] + kEdge - 1;
    std::vector<uint8_t> noise(size_t(kEdge) * kEdge * kEdge);
    for (size_t i = 0; i < noise.size(); i += 4) {
      const auto four = uint32_t(random());
      for (size_t j = 0; j < 4; ++j) noise[i + j] = uint8_t(four >> (8 * j));
    }
    return qry_world_write_region(world, 0, min.data(), max.data(), noise.data(), noise.size(), nullptr);
  }
  if (dice == 4) {
    std::vector<int32_t> xyz;
    std::vector<uint8_t> materials;
    const std::array<int32_t, 3> near{at(0, 60), at(1, 60), at(2, 60)};
    for (int i = 0; i < 500; ++i) {
      for (const int32_t middle : near) xyz.push_back(middle + int32_t(random() % 100) - 50);
      materials.push_back(uint8_t(random()));
    }
    return qry_world_set_voxels(world, 0, xyz.data(), materials.data(), materials.size(), nullptr);
  }
  qry_edit edit = QRY_EDIT_INIT;
  const bool ball = dice < 8;
  edit.shape = ball ? QRY_SHAPE_SPHERE : dice == 8 ? QRY_SHAPE_BOX : QRY_SHAPE_LINE;
  edit.mode = random() % 4 ? QRY_MODE_FILL : QRY_MODE_REMOVE;
  edit.material = 1 + uint32_t(random() % 255);
  edit.radius = ball ? double(3 + random() % 90) : double(random() % 5);
  for (int a = 0; a < 3; ++a) {
    edit.a[a] = at(a, 100);
    edit.b[a] = edit.a[a] + int32_t(random() % 160) - 80;
  }
  return qry_world_edit(world, &edit, nullptr);
}

inline void expect_same_state(qry_world* world, qry_world* twin) {
  const qry_world_state ours = state_of(world), others = state_of(twin);
  REQUIRE(ours.voxel_count == others.voxel_count);
  REQUIRE(ours.brick_count == others.brick_count);
  for (int a = 0; a < 3; ++a) {
    REQUIRE(ours.min[a] == others.min[a]);
    REQUIRE(ours.max[a] == others.max[a]);
  }
}

inline void expect_same_voxels(qry_world* world, qry_world* twin, std::array<int32_t, 3> min,
                               std::array<int32_t, 3> max) {
  size_t count = 1;
  for (size_t a = 0; a < 3; ++a) count *= size_t(max[a] - min[a] + 1);
  std::vector<uint8_t> ours(count, 1), others(count, 2);
  require_ok(qry_world_read_region(world, min.data(), max.data(), ours.data(), count));
  require_ok(qry_world_read_region(twin, min.data(), max.data(), others.data(), count));
  REQUIRE((ours == others));
}

// All of them, in layers.
inline void expect_same(qry_world* world, qry_world* twin) {
  expect_same_state(world, twin);
  for (int32_t y = kMin[1]; y <= kMax[1]; y += 64) {
    auto min = kMin, max = kMax;
    min[1] = y, max[1] = y + 63;
    expect_same_voxels(world, twin, min, max);
  }
}

// Noise in all of it.
inline void fill_with_noise(const std::array<qry_world*, 2>& worlds) {
  std::mt19937 random(77);
  constexpr int32_t kEdge = 128;
  std::vector<uint8_t> noise(size_t(kEdge) * kEdge * kEdge);
  for (uint8_t& voxel : noise) voxel = uint8_t(random() % 40);
  for (int32_t z = kMin[2]; z < kMax[2]; z += kEdge)
    for (int32_t y = kMin[1]; y < kMax[1]; y += kEdge)
      for (int32_t x = kMin[0]; x < kMax[0]; x += kEdge) {
        std::rotate(noise.begin(), noise.begin() + 12345, noise.end());
        const std::array<int32_t, 3> min{x, y, z}, max{x + kEdge - 1, y + kEdge - 1, z + kEdge - 1};
        for (qry_world* one : worlds)
          require_ok(qry_world_write_region(one, 0, min.data(), max.data(), noise.data(), noise.size(), nullptr));
      }
}

}  // namespace quarry::test::budgeted
