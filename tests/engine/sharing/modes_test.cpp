// SPDX-License-Identifier: Apache-2.0
// modes_test.cpp - one world in every sharing mode gives the same picture, also after edits, growth and removal. The
// look-up in GLSL agrees with the host's.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "engine/render/ray_marcher.hpp"
#include "engine/sharing/world_root.hpp"
#include "find_spirv.h"
#include "hashgrid/pairs/view.hpp"
#include "tests/engine/picture_compare.hpp"
#include "tests/engine/render/shader_find.hpp"
#include "tests/engine/scene_world.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/test_data.hpp"

namespace modes_test {

using namespace quarry;
using namespace quarry::engine;
using quarry::test::SceneWorld;
using quarry::test::view_of;

namespace {

// Edits that add bricks, remove bricks, change bytes in place, and make the hash grid grow past its first page.
std::vector<std::vector<std::pair<Int3, uint8_t>>> edits() {
  std::vector<std::vector<std::pair<Int3, uint8_t>>> all(4);
  for (int y = 0; y < 60; ++y)  // adds bricks
    for (int z = 0; z < 12; ++z)
      for (int x = 0; x < 12; ++x) all[0].push_back({{20 + x, y, 40 + z}, 33});
  for (int y = 20; y < 50; ++y)  // changes bytes in place
    for (int z = 0; z < 12; ++z)
      for (int x = 0; x < 12; ++x) all[1].push_back({{20 + x, y, 40 + z}, 90});
  for (int z = 90; z < 156; ++z)  // removes bricks
    for (int y = 0; y < 40; ++y)
      for (int x = 90; x < 156; ++x) all[2].push_back({{x, y, z}, 0});
  for (int z = 0; z < 18; ++z)  // 18^3 new bricks: the table grows
    for (int y = 0; y < 18; ++y)
      for (int x = 0; x < 18; ++x)
        all[3].push_back({{200 + x * 8, y * 8, -100 + z * 8}, uint8_t(1 + (x + y + z) % 255)});
  return all;
}

}  // namespace

TEST_CASE("sharing: every mode gives the same picture, before and after edits, removal and growth", "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  RenderSettings settings;
  settings.width = 160;
  settings.height = 90;
  std::vector<Picture> first;
  for (const SharingMode mode : test::possible_modes(*device)) {
    INFO(to_string(mode));
    SceneWorld world(*device, mode);
    REQUIRE(world.shared().mode() == mode);
    REQUIRE(world.fill(test::scene_kind("hills")));
    const View view = view_of({{-100, 0, -100}, {350, 140, 160}}, settings.width, settings.height);
    std::vector<Picture> pictures;
    const auto take = [&] {
      auto picture = (*renderer)->render(world.rendered(), view, settings);
      REQUIRE(picture);
      pictures.push_back(std::move(*picture));
    };
    take();
    for (const auto& edit : edits()) {
      REQUIRE(world.set(edit));
      take();
    }
    if (first.empty()) {
      first = pictures;
      // Each edit changes the picture.
      for (size_t i = 1; i < first.size(); ++i) CHECK(test::compare_pictures(first[i - 1], first[i]).differing > 0);
      continue;
    }
    for (size_t i = 0; i < first.size(); ++i) {
      INFO("picture " << i);
      CHECK(test::compare_pictures(first[i], pictures[i]).differing == 0);
    }
  }
}

TEST_CASE("sharing: publishing an unchanged world changes nothing, and a second world replaces the first") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  SceneWorld world(*device);
  REQUIRE(world.set({{{1, 2, 3}, 5}}));
  REQUIRE(world.rendered().publish());
  const uint64_t root = world.shared().root_address(), bytes = world.shared().device_bytes();
  REQUIRE(world.rendered().publish());
  CHECK(world.shared().root_address() == root);
  CHECK(world.shared().device_bytes() == bytes);
  auto other = World::create(world.shared().memory());
  REQUIRE(other);
  Brick brick;
  brick.set(0, 9);
  REQUIRE(other->write(std::vector<World::BrickWrite>{{{4, 0, 0}, brick}}));
  const std::vector<float> origins = {32.5f, 0.5f, -50, 1.5f, 2.5f, -50}, directions = {0, 0, 1, 0, 0, 1};
  auto hits = (*renderer)->trace({world.shared(), *other, world.palette}, origins, directions);
  REQUIRE(hits);
  CHECK((*hits)[0].material == 9);
  CHECK((*hits)[1].t < 0);
  hits = (*renderer)->trace(world.rendered(), origins, directions);
  REQUIRE(hits);
  CHECK((*hits)[0].t < 0);
  CHECK((*hits)[1].material == 5);
}

TEST_CASE("sharing: rays start at the tight box of all voxels, however many bricks lie on the world's faces") {
  Device* device = test::test_device();
  if (!device) return;
  SceneWorld scene(*device);
  auto world = World::create(scene.shared().memory());
  REQUIRE(world);
  // A floor of 70,225 bricks, each with a voxel in its middle, and one that reaches farther down and out.
  Brick middle, corner;
  middle.set(voxel_index(Int3{4, 3, 5}), 7);
  corner.set(voxel_index(Int3{2, 1, 6}), 9);
  const SharedBrick shared(middle), last(corner);
  std::vector<BrickPut> puts;
  for (int32_t x = 0; x < 265; ++x)
    for (int32_t z = 0; z < 265; ++z) puts.push_back({{x, 0, z}, x == 0 && z == 264 ? last : shared});
  REQUIRE(world->write(puts));
  REQUIRE(scene.shared().publish(*world, scene.palette));
  const QryWorldRoot& root = scene.shared().root();
  const auto box = [&] {
    std::array<float, 6> both;
    std::copy_n(root.box_low, 3, both.begin());
    std::copy_n(root.box_high, 3, both.begin() + 3);
    return both;
  };
  const Box3 tight = world->bounds();
  CHECK(tight == Box3{{2, 1, 5}, {264 * 8 + 4, 3, 264 * 8 + 6}});
  const auto margin = float(kQryBoxMargin);
  const std::array<float, 6> expected{float(tight.min.x) - margin,     float(tight.min.y) - margin,
                                      float(tight.min.z) - margin,     float(tight.max.x) + 1 + margin,
                                      float(tight.max.y) + 1 + margin, float(tight.max.z) + 1 + margin};
  CHECK((box() == expected));
}

TEST_CASE("sharing: a world in other memory is refused where the device cannot read it") {
  Device* device = test::test_device();
  if (!device) return;
  auto shared = SharedWorld::create(*device, SharingMode::staged);
  REQUIRE(shared);
  auto world = World::create();
  REQUIRE(world);
  auto point = (*shared)->publish(*world, Palette::standard());
  REQUIRE(!point);
  CHECK(point.error().code == ErrorCode::invalid_argument);
  CHECK(point.error().message.find("SharedWorld::memory()") != std::string::npos);
}

TEST_CASE(
    "grid_find: GLSL and host answer alike, value and sectors read, for present, absent and erased keys in "
    "crowded pages",
    "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  test::ShaderFind<QryFindPush> find_in_shader(*device, k_find_spirv);
  for (const SharingMode mode : test::possible_modes(*device)) {
    INFO(to_string(mode));
    SceneWorld scene_world(*device, mode);
    World& world = scene_world.world();
    // Adds bricks until pages are as full as the grid allows. Then it removes a third of them.
    std::mt19937 random(5);
    std::vector<uint32_t> keys;
    Brick one;
    one.set(0, 1);
    std::vector<World::BrickWrite> writes;
    for (int i = 0; i < 6000; ++i) {
      const Int3 at{int(random() % 2048) - 1024, int(random() % 1024) - 512, int(random() % 2048) - 1024};
      if (!brick_in_world(at) || std::find(keys.begin(), keys.end(), brick_key(at)) != keys.end()) continue;
      keys.push_back(brick_key(at));
      writes.push_back({at, one});
    }
    REQUIRE(world.write(writes));
    std::vector<World::BrickWrite> gone;
    for (size_t i = 0; i < writes.size(); i += 3) gone.push_back({writes[i].brick, Brick{}});
    REQUIRE(world.write(gone));
    const size_t present = keys.size();
    for (size_t i = 0; i < 6000; ++i) keys.push_back(uint32_t(random()));
    keys.push_back(0);
    keys.push_back(kQryReservedKey);
    const auto ready = scene_world.shared().publish(world, scene_world.palette);
    REQUIRE(ready);
    const std::vector<uint32_t> found = find_in_shader({scene_world.shared().root_address(), 0, 0, 0}, keys, *ready);
    REQUIRE(found.size() == 2 * keys.size());
    const hashgrid::GridView grid = world.grid().view();
    uint32_t deepest = 0, hits = 0;
    bool alike = true;
    for (size_t i = 0; i < keys.size(); ++i) {
      const hashgrid::Found host = hashgrid::find(grid, keys[i]);
      alike = alike && found[2 * i] == host.value && found[2 * i + 1] == host.sectors;
      deepest = std::max(deepest, found[2 * i + 1]);
      hits += host.hit;
    }
    CHECK(alike);
    CHECK(hits >= present - gone.size());
    CHECK(deepest >= 2);  // otherwise the test had no full bucket
  }
}

}  // namespace modes_test
