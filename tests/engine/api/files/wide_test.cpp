// SPDX-License-Identifier: Apache-2.0
// wide_test.cpp - worlds that one grid does not hold: what is done anywhere in one, beside worlds at home on the host
// that each have a neighbourhood of it about their own origin.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/engine/api/files/budgeted.hpp"
#include "tests/engine/api/files/faulty.hpp"
#include "tests/engine/api/files/twin.hpp"
#include "tests/voxel/io/quarry/killed_child.hpp"

namespace wide_test {

using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kBudget = uint64_t(110) << 20;
// Of the neighbourhoods: some windows apart, and nearly at the end of all coordinates.
constexpr std::array<std::array<int32_t, 3>, 3> kPlaces{
    {{0, 0, 0}, {1'000'003, 300'001, -700'009}, {-1'073'000'000, 1'072'999'999, -1'073'000'001}}};
constexpr int32_t kReach = 200;

// A new world that keeps to a budget and follows a new file, or the file's.
OneWorld wide(const Worlds& worlds, uint32_t home, const fs::path& file, bool opens = false, Fault* fault = nullptr) {
  Made made = budgeted::with_budget(worlds, home, kBudget, opens ? file : fs::path(), fault);
  require_ok(made.result);
  if (opens) return std::move(made.world);
  fs::remove(file);
  require_ok(qry_world_attach(made.world.get(), file.c_str()));
  return std::move(made.world);
}

qry_edit at_place(qry_edit edit, const std::array<int32_t, 3>& place) {
  for (size_t a = 0; a < 3; ++a) edit.a[a] += place[a], edit.b[a] += place[a];
  return edit;
}

qry_edit random_edit(std::mt19937& random) {
  qry_edit edit = QRY_EDIT_INIT;
  edit.shape = std::array{QRY_SHAPE_SPHERE, QRY_SHAPE_BOX, QRY_SHAPE_LINE}[random() % 3];
  edit.mode = random() % 4 ? QRY_MODE_FILL : QRY_MODE_REMOVE;
  edit.material = 1 + uint32_t(random() % 255);
  edit.radius = double(random() % 30);
  for (size_t a = 0; a < 3; ++a) {
    edit.a[a] = int32_t(random() % 300) - 150;
    edit.b[a] = edit.a[a] + int32_t(random() % 20);
  }
  return edit;
}

std::vector<uint8_t> around(qry_world* world, const std::array<int32_t, 3>& place) {
  std::array<int32_t, 3> min{}, max{};
  for (size_t a = 0; a < 3; ++a) min[a] = place[a] - kReach, max[a] = place[a] + kReach;
  std::vector<uint8_t> voxels(size_t(2 * kReach + 1) * (2 * kReach + 1) * (2 * kReach + 1));
  require_ok(qry_world_read_region(world, min.data(), max.data(), voxels.data(), voxels.size()));
  return voxels;
}

// The wide world, and what it must have at each place.
struct Both {
  OneWorld wide;
  std::vector<OneWorld> near;
  std::vector<std::vector<size_t>> steps = {};  // of the history: the places that each changes

  explicit Both(const Worlds& worlds, OneWorld of) : wide(std::move(of)) {
    for (size_t i = 0; i < kPlaces.size(); ++i) near.push_back(new_world(worlds, QRY_HOME_HOST));
  }

  void compare() const {
    uint64_t voxels = 0;
    for (size_t i = 0; i < kPlaces.size(); ++i) {
      INFO("at place " << i);
      REQUIRE(around(wide.get(), kPlaces[i]) == around(near[i].get(), {0, 0, 0}));
      voxels += state_of(near[i].get()).voxel_count;
    }
    const qry_world_state state = state_of(wide.get());
    CHECK(state.voxel_count == voxels);
    CHECK(state.history_position == state.history_length);
    for (size_t a = 0; a < 3; ++a) {
      int64_t low = INT64_MAX, high = INT64_MIN;
      for (size_t i = 0; i < kPlaces.size(); ++i) {
        const qry_world_state its = state_of(near[i].get());
        if (its.voxel_count == 0) continue;
        low = std::min(low, int64_t(its.min[a]) + kPlaces[i][a]);
        high = std::max(high, int64_t(its.max[a]) + kPlaces[i][a]);
      }
      CHECK(state.min[a] == low);
      CHECK(state.max[a] == high);
    }
  }
  // One edit at a place.
  void edit(size_t place, const qry_edit& edit) {
    uint64_t expected = 0, changed = 0;
    require_ok(qry_world_edit(near[place].get(), &edit, &expected));
    const qry_edit there = at_place(edit, kPlaces[place]);
    require_ok(qry_world_edit(wide.get(), &there, &changed));
    REQUIRE(changed == expected);
    if (changed) steps.push_back({place});
  }
  // A list of voxels at all places.
  void set_voxels(std::mt19937& random) {
    std::vector<int32_t> all;
    std::vector<uint8_t> all_materials;
    std::array<std::vector<int32_t>, 3> xyz;
    std::array<std::vector<uint8_t>, 3> materials;
    for (int i = 0; i < 900; ++i) {
      const size_t place = random() % 3;
      for (size_t a = 0; a < 3; ++a) {
        xyz[place].push_back(int32_t(random() % 30) - 15);
        all.push_back(kPlaces[place][a] + xyz[place].back());
      }
      materials[place].push_back(uint8_t(1 + random() % 255));
      all_materials.push_back(materials[place].back());
    }
    uint64_t changed = 0, expected = 0;
    for (size_t i = 0; i < 3; ++i) {
      uint64_t its = 0;
      require_ok(qry_world_set_voxels(near[i].get(), 0, xyz[i].data(), materials[i].data(), materials[i].size(), &its));
      REQUIRE(its > 0);
      expected += its;
    }
    require_ok(qry_world_set_voxels(wide.get(), 0, all.data(), all_materials.data(), all_materials.size(), &changed));
    CHECK(changed == expected);
    steps.push_back({0, 1, 2});
  }
  void undo() {
    if (steps.empty()) {
      REQUIRE(qry_world_undo(wide.get(), nullptr) == QRY_NOTHING_TO_DO);
      return;
    }
    require_ok(qry_world_undo(wide.get(), nullptr));
    for (const size_t place : steps.back()) require_ok(qry_world_undo(near[place].get(), nullptr));
  }
  void redo() {
    require_ok(qry_world_redo(wide.get(), nullptr));
    for (const size_t place : steps.back()) require_ok(qry_world_redo(near[place].get(), nullptr));
  }
};

}  // namespace

TEST_CASE("c_api: a world with a budget that follows a file is edited anywhere, undone and reopened as its parts are",
          "[one-caller]") {
  const Worlds worlds;
  const fs::path file = scratch_dir("api_wide") / "w.quarry";
  for (const uint32_t home : budgeted::device_homes(worlds)) {
    INFO("home " << home);
    Both both(worlds, wide(worlds, home, file));
    std::mt19937 random(20261129);
    for (int i = 0; i < 40; ++i) {
      const auto dice = random() % 10;
      if (dice == 0) {
        both.set_voxels(random);
      } else if (dice < 3 && !both.steps.empty()) {
        both.undo();
        if (random() % 2) both.redo();
        else both.steps.pop_back();
      } else {
        both.edit(random() % 3, random_edit(random));
      }
      const auto can_redo = [&] {
        const qry_world_state state = state_of(both.wide.get());
        return state.history_position < state.history_length;
      };
      while (can_redo()) both.edit(0, random_edit(random));
      if (i % 8 == 7) both.compare();
    }
    require_ok(qry_world_flush(both.wide.get()));
    both.wide = OneWorld(nullptr);
    both.wide = wide(worlds, home, file, true);
    CHECK(state_of(both.wide.get()).voxel_count > 0);
    for (size_t i = 0; i < kPlaces.size(); ++i)
      REQUIRE(around(both.wide.get(), kPlaces[i]) == around(both.near[i].get(), {0, 0, 0}));
    while (!both.steps.empty()) {
      both.undo();
      both.steps.pop_back();
    }
    both.undo();
    CHECK(state_of(both.wide.get()).voxel_count == 0);
  }
}

TEST_CASE("c_api: an edit that is longer than one grid is one step, there wholly or not at all", "[one-caller]") {
  const Worlds worlds;
  const fs::path file = scratch_dir("api_wide_long") / "w.quarry";
  for (const uint32_t home : budgeted::device_homes(worlds)) {
    INFO("home " << home);
    Fault fault;
    const OneWorld world = wide(worlds, home, file, false, home == QRY_HOME_EMULATED ? &fault : nullptr);
    // A line of 30,001 voxels, and boxes on its way.
    qry_edit line = QRY_EDIT_INIT;
    line.shape = QRY_SHAPE_LINE;
    line.mode = QRY_MODE_FILL;
    line.material = 7;
    for (size_t a = 0; a < 3; ++a) line.a[a] = line.b[a] = 100'000 * int32_t(a);
    line.a[0] = -5'000;
    line.b[0] = 25'000;
    uint64_t changed = 0;
    require_ok(qry_world_edit(world.get(), &line, &changed));
    CHECK(changed == 30'001);
    CHECK(state_of(world.get()).voxel_count == 30'001);
    CHECK(state_of(world.get()).history_length == 1);
    for (const int32_t x : {-5'001, -5'000, 0, 12'345, 25'000, 25'001}) {
      const int32_t xyz[3] = {x, 100'000, 200'000};
      uint8_t material = 99;
      require_ok(qry_world_get_voxels(world.get(), xyz, &material, 1));
      CHECK(material == (x >= -5'000 && x <= 25'000 ? 7 : 0));
    }
    // What removes needs no grid that holds it.
    qry_edit all = QRY_EDIT_INIT;
    all.shape = QRY_SHAPE_BOX;
    all.mode = QRY_MODE_REMOVE;
    for (size_t a = 0; a < 3; ++a) all.a[a] = -1'000'000'000, all.b[a] = 1'000'000'000;
    require_ok(qry_world_edit(world.get(), &all, &changed));
    CHECK(changed == 30'001);
    CHECK(state_of(world.get()).voxel_count == 0);
    require_ok(qry_world_undo(world.get(), &changed));
    CHECK(state_of(world.get()).voxel_count == 30'001);
    require_ok(qry_world_undo(world.get(), &changed));
    CHECK(state_of(world.get()).voxel_count == 0);
    REQUIRE(qry_world_undo(world.get(), nullptr) == QRY_NOTHING_TO_DO);
    require_ok(qry_world_redo(world.get(), &changed));
    CHECK(changed == 30'001);
    CHECK(state_of(world.get()).voxel_count == 30'001);

    qry_edit beyond = line;
    beyond.a[1] = beyond.b[1] = 1 << 30;
    CHECK(qry_world_edit(world.get(), &beyond, nullptr) == QRY_ERROR_OUT_OF_BOUNDS);
    CHECK(std::string(qry_last_error()).find("beyond all coordinates") != std::string::npos);
    const int32_t far[3] = {0, 0, 1 << 30};
    const uint8_t material = 1;
    CHECK(qry_world_set_voxels(world.get(), 0, far, &material, 1, nullptr) == QRY_ERROR_OUT_OF_BOUNDS);
    CHECK(state_of(world.get()).voxel_count == 30'001);
    // What needs all of it together says that it does.
    CHECK(qry_world_detach(world.get()) == QRY_ERROR_UNSUPPORTED);
    CHECK(qry_world_dilate(world.get(), 0, 6, 1, nullptr, nullptr) == QRY_ERROR_UNSUPPORTED);
    CHECK(std::string(qry_last_error()).find("one grid") != std::string::npos);

    if (home != QRY_HOME_EMULATED) continue;
    // Memory that the device refuses on the way: the line is there or not.
    require_ok(qry_world_undo(world.get(), nullptr));
    for (uint64_t after = 0, made = 0; made == 0; after = after * 3 / 2 + 1) {
      fault.arm(QRY_ERROR_OUT_OF_MEMORY, after + 1);
      const qry_result result = qry_world_edit(world.get(), &line, &changed);
      fault.disarm();
      const uint64_t voxels = state_of(world.get()).voxel_count;
      INFO("after " << after << " calls: " << qry_last_error());
      REQUIRE((result == QRY_OK ? voxels == 30'001 : voxels == 0));
      made = voxels;
    }
  }
}

TEST_CASE("c_api: of a world of more pages than are kept in mind the window finds the others in the file",
          "[one-caller]") {
  const Worlds worlds;
  const fs::path file = scratch_dir("api_wide_pages") / "w.quarry";
  // A voxel in each page of a plane of 29,440 by 29,440.
  constexpr int32_t kEdge = kSanitized ? 40 : 230;
  std::vector<int32_t> xyz;
  for (int32_t z = 0; z < kEdge; ++z)
    for (int32_t x = 0; x < kEdge; ++x) xyz.insert(xyz.end(), {x * 128 + 5, 70, z * 128 + (x + z) % 128});
  std::vector<uint8_t> materials(xyz.size() / 3);
  for (size_t i = 0; i < materials.size(); ++i) materials[i] = uint8_t(1 + i % 255);
  for (const uint32_t home : budgeted::device_homes(worlds)) {
    INFO("home " << home);
    OneWorld world = wide(worlds, home, file);
    uint64_t changed = 0;
    require_ok(qry_world_set_voxels(world.get(), 0, xyz.data(), materials.data(), materials.size(), &changed));
    CHECK(changed == materials.size());
    require_ok(qry_world_flush(world.get()));
    world = OneWorld(nullptr);
    world = wide(worlds, home, file, true);
    CHECK(state_of(world.get()).voxel_count == materials.size());
    // A voxel beside one of them, from corner to corner.
    uint64_t more = 0;
    for (const auto& [x, z] : {std::array{0, 0}, {kEdge - 1, kEdge - 1}, {0, kEdge - 1}, {kEdge - 1, 0}}) {
      const size_t i = size_t(z) * kEdge + size_t(x);
      const int32_t beside[3] = {xyz[3 * i] + 1, xyz[3 * i + 1], xyz[3 * i + 2]};
      const uint8_t material = 77;
      require_ok(qry_world_set_voxels(world.get(), 0, beside, &material, 1, &changed));
      CHECK(changed == 1);
      ++more;
      CHECK(state_of(world.get()).voxel_count == materials.size() + more);
      std::vector<uint8_t> found(materials.size());
      if (more == 1 || more == 4) {
        require_ok(qry_world_get_voxels(world.get(), xyz.data(), found.data(), found.size()));
        CHECK(found == materials);
      }
      const int32_t lists[6] = {xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2], beside[0], beside[1], beside[2]};
      uint8_t two[2] = {0, 0};
      require_ok(qry_world_get_voxels(world.get(), lists, two, 2));
      CHECK(two[0] == materials[i]);
      CHECK(two[1] == 77);
    }
    for (; more > 0; --more) require_ok(qry_world_undo(world.get(), nullptr));
    CHECK(state_of(world.get()).voxel_count == materials.size());
    require_ok(qry_world_undo(world.get(), &changed));
    CHECK(state_of(world.get()).voxel_count == 0);
  }
}

TEST_CASE("c_api: rays and pictures far from a wide world's origin are those of its parts", "[one-caller]") {
  const Worlds worlds(QRY_DEVICE_LAZY);
  const fs::path file = scratch_dir("api_wide_seen") / "w.quarry";
  for (const uint32_t home : budgeted::device_homes(worlds)) {
    INFO("home " << home);
    Both both(worlds, wide(worlds, home, file));
    std::mt19937 random(7);
    for (size_t place = 0; place < kPlaces.size(); ++place) {
      qry_edit ball = QRY_EDIT_INIT;
      ball.shape = QRY_SHAPE_SPHERE;
      ball.mode = QRY_MODE_FILL;
      ball.material = 40 + uint32_t(place);
      ball.radius = 90;
      both.edit(place, ball);
    }
    for (int i = 0; i < 24; ++i) both.edit(random() % 3, random_edit(random));
    // Where a float has all bits of a ray's origin, beside those where it has not.
    for (const size_t place : {size_t(1), size_t(0), size_t(1)}) {
      std::vector<qry_ray> near(400), far;
      for (qry_ray& ray : near)
        for (size_t a = 0; a < 3; ++a) {
          ray.origin[a] = float(int32_t(random() % 500) - 250) + 0.25f;
          ray.direction[a] = float(int32_t(random() % 200000) - 100000) / 1000 - ray.origin[a];
        }
      far = near;
      for (qry_ray& ray : far)
        for (size_t a = 0; a < 3; ++a) ray.origin[a] += float(kPlaces[place][a]);
      std::vector<qry_hit> hits(far.size()), expected(near.size());
      require_ok(qry_world_trace(both.wide.get(), far.data(), far.size(), hits.data()));
      require_ok(qry_world_trace(both.near[place].get(), near.data(), near.size(), expected.data()));
      size_t met = 0, same = 0;
      for (size_t i = 0; i < near.size(); ++i) {
        REQUIRE((hits[i].t >= 0) == (expected[i].t >= 0));
        if (hits[i].t < 0) continue;
        ++met;
        // One that grazes an edge may meet the voxel beside it.
        REQUIRE(std::abs(hits[i].t - expected[i].t) < 0.02f);
        int64_t beside = 0;
        for (size_t a = 0; a < 3; ++a)
          beside += std::abs(int64_t(hits[i].voxel[a]) - expected[i].voxel[a] - kPlaces[place][a]);
        REQUIRE(beside <= 2);
        same += beside == 0 && hits[i].material == expected[i].material;
      }
      CHECK(met > 100);
      CHECK(same * 50 >= met * 49);
    }
    constexpr uint32_t kWidth = 160, kHeight = 100;
    const auto picture = [&](qry_world* world, const std::array<int32_t, 3>& place) {
      qry_render_info info = QRY_RENDER_INFO_INIT;
      info.width = kWidth;
      info.height = kHeight;
      for (size_t a = 0; a < 3; ++a) {
        info.camera.position[a] = double(place[a]) + std::array{420.0, 310.0, 530.0}[a];
        info.camera.target[a] = place[a];
      }
      info.camera.vertical_fov_degrees = 45;
      std::vector<uint8_t> rgba(size_t(kWidth) * kHeight * 4);
      require_ok(qry_world_render(world, &info, rgba.data(), rgba.size(), 0));
      return rgba;
    };
    for (size_t place = 0; place < kPlaces.size(); ++place) {
      INFO("place " << place);
      const auto far = picture(both.wide.get(), kPlaces[place]), near = picture(both.near[place].get(), {0, 0, 0});
      size_t differ = 0;
      for (size_t i = 0; i < far.size(); i += 4) {
        int most = 0;
        for (size_t c = 0; c < 3; ++c) most = std::max(most, std::abs(int(far[i + c]) - int(near[i + c])));
        differ += most > 8;
      }
      CHECK(differ * 100 < size_t(kWidth) * kHeight);
      CHECK(std::ranges::count_if(near, [&](uint8_t value) { return value != near[0]; }) > 1000);
    }
    both.compare();
  }
}

}  // namespace wide_test
