// SPDX-License-Identifier: Apache-2.0
// beam_test.cpp - compares rays that start where their tile may first see something with rays from the eye. It tests
// every kind of world, from outside, inside, far away and along the axes.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "engine/render/ray_marcher.hpp"
#include "tests/engine/picture_compare.hpp"
#include "tests/engine/scene_world.hpp"
#include "tests/engine/test_device.hpp"

namespace beam_test {

using namespace quarry;
using namespace quarry::engine;
using quarry::test::SceneWorld;

namespace {

constexpr uint32_t kBeamWidth = 104, kBeamHeight = 72;  // neither a multiple of a tile

struct Eye {
  glm::dvec3 position, target;
};

// Cameras around a world, in it, at bricks of it, and along each axis. The last have tiles with rays in both directions
// of the other axes.
std::vector<Eye> cameras_of(const World& world, uint32_t seed) {
  const Box3 box = world.bounds();
  const double low[3] = {double(box.min.x), double(box.min.y), double(box.min.z)};
  const double size[3] = {box.max.x + 1 - low[0], box.max.y + 1 - low[1], box.max.z + 1 - low[2]};
  std::vector<Int3> bricks;
  world.for_each_brick([&](Int3 at, const Brick&) { bricks.push_back(at); });
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<Eye> all;
  Eye fitted;
  fit_camera(box, 45, double(kBeamWidth) / kBeamHeight, 30, 25, fitted.position, fitted.target);
  all.push_back(fitted);
  for (int i = 0; i < 9; ++i) {
    Eye c;
    const Int3 brick = bricks[random() % bricks.size()];
    const double corner[3] = {brick.x * 8.0, brick.y * 8.0, brick.z * 8.0};
    for (int a = 0; a < 3; ++a) {
      c.target[a] = corner[a] + 8 * unit(random);
      c.position[a] = i < 3   ? low[a] + size[a] * unit(random)
                      : i < 6 ? c.target[a] + 60 * (unit(random) - 0.5)
                              : c.target[a] - (a == i - 6 ? (i % 2 ? 50 : -400) : 0);
    }
    if (i == 7) c.target[0] += 1e-3;  // no way up can be told from straight down
    all.push_back(c);
  }
  return all;
}

}  // namespace

TEST_CASE("beams: rays that start there hit what rays from the eye hit, in every kind of world") {
  Device* device = test::test_device();
  if (!device) return;
  if (!device->info().beam_lanes) {
    WARN("this device has no arithmetic over subgroups: rays start at the eye");
    return;
  }
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  uint64_t pixels = 0, differing = 0, seen = 0;
  const auto compare = [&](SceneWorld& world, const char* name) {
    if (!world.world().brick_count()) return;
    uint32_t number = 0;
    for (const Eye& camera : cameras_of(world.world(), 7)) {
      INFO(name << ", camera " << number++);
      const View view = look_at(camera.position, camera.target, 60, kBeamWidth, kBeamHeight);
      RenderSettings settings;
      settings.width = kBeamWidth;
      settings.height = kBeamHeight;
      settings.view = DebugView::material;
      settings.ambient_rays = 0;  // so that a pixel at an edge changes no other
      settings.beams = Beams::always;
      auto beams = (*renderer)->render(world.rendered(), view, settings);
      settings.beams = Beams::never;
      auto eye = (*renderer)->render(world.rendered(), view, settings);
      REQUIRE(beams);
      REQUIRE(eye);
      const auto difference = test::compare_pictures(*beams, *eye);
      CHECK(difference.differing <= 12);
      differing += difference.differing;
      pixels += uint64_t(kBeamWidth) * kBeamHeight;
      for (size_t i = 0; i < eye->rgba.size(); i += 4) seen += std::memcmp(&eye->rgba[i], &eye->rgba[0], 4) != 0;
    }
  };
  for (const test::SceneKind& kind : test::scene_kinds()) {
    SceneWorld world(*device);
    REQUIRE(world.fill(kind));
    compare(world, kind.name);
  }
  // Single voxels as far apart as 3000, 7000 and 16000 voxels need larger cells at the top.
  for (const int reach : {1500, 3500, 8000}) {
    std::mt19937 random{uint32_t(reach)};
    std::vector<std::pair<Int3, uint8_t>> voxels;
    for (int i = 0; i < 300; ++i) {
      const auto within = [&](int most) { return int(random() % uint32_t(2 * most)) - most; };
      const Int3 at{within(reach), within(std::min(reach, 4000)), within(reach)};
      for (int k = 0; k < 64; ++k)
        voxels.push_back({{at.x + (k & 3), at.y + (k >> 2 & 3), at.z + (k >> 4)}, uint8_t(1 + i % 200)});
    }
    SceneWorld world(*device);
    REQUIRE(world.set(voxels));
    compare(world, "lone blocks");
  }
  INFO(differing << " of " << pixels << " pixels differ, " << seen << " are unlike the first");
  CHECK(double(differing) <= 0.0005 * double(pixels));
  CHECK(seen > pixels / 20);
}

}  // namespace beam_test
