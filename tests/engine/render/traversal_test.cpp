// SPDX-License-Identifier: Apache-2.0
// traversal_test.cpp - compares the ray-marcher with a voxel-by-voxel traversal in double precision. Voxel and depth
// must be the same for every kind of world and ray.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <limits>

#include "engine/render/ray_marcher.hpp"
#include "hashgrid/pairs/view.hpp"
#include "tests/engine/flat_world.hpp"
#include "tests/engine/random_rays.hpp"
#include "tests/engine/scene_world.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/test_data.hpp"
#include "voxel/rays/trace.hpp"

namespace traversal_test {

using namespace quarry;
using namespace quarry::engine;
using quarry::test::SceneWorld;

namespace {

using test::Comparison;
using test::random_rays;
using test::Rays;
using test::rays_wanted;

Comparison compare(const World& world, const Box3& bounds, const Rays& rays, const std::vector<Hit>& hits) {
  std::vector<test::FoundHit> found;
  for (const Hit& hit : hits) found.push_back({hit.t, hit.voxel, hit.material});
  return test::compare(world, bounds, rays, found);
}

}  // namespace

TEST_CASE("traverse: 20 kinds of world x random rays give the voxel and depth of the brute-force traversal") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  uint64_t rays_total = 0, near_edge_total = 0;
  for (const test::SceneKind& kind : test::scene_kinds()) {
    INFO(kind.name);
    SceneWorld scene(*device);
    REQUIRE(scene.fill(kind));
    const Box3 bounds = scene.world().bounds();
    const Box3 around = bounds.empty() ? Box3{{-8, -8, -8}, {7, 7, 7}} : bounds;
    const Rays rays = random_rays(scene.world(), around, rays_wanted(kind.quick_rays), 7);
    const auto start = std::chrono::steady_clock::now();
    auto hits = (*renderer)->trace(scene.rendered(), rays.origins, rays.directions);
    const auto traced = std::chrono::steady_clock::now();
    REQUIRE(hits);
    REQUIRE(hits->size() == rays.size());
    const Comparison c = compare(scene.world(), bounds, rays, *hits);
    const auto compared = std::chrono::steady_clock::now();
    INFO(c.first_wrong);
    std::printf("%-24s %7zu rays %7llu hits %4llu differ at an edge %4llu wrong; traced in %.2f s, walked in %.2f s\n",
                kind.name, rays.size(), static_cast<unsigned long long>(c.hits),
                static_cast<unsigned long long>(c.near_edge), static_cast<unsigned long long>(c.wrong),
                std::chrono::duration<double>(traced - start).count(),
                std::chrono::duration<double>(compared - traced).count());
    std::fflush(stdout);
    CHECK(c.wrong == 0);
    CHECK(c.near_edge <= 1 + rays.size() / 2000);
    CHECK((c.hits > 0) == (scene.world().voxel_count() > 0));
    rays_total += rays.size();
    near_edge_total += c.near_edge;
  }
  CHECK(double(near_edge_total) <= 0.0005 * double(rays_total));
}

TEST_CASE("traverse: shaders and host threads walk the same way: the same voxels, faces, materials and steps") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  uint64_t rays_total = 0, differing_total = 0, steps_differ_total = 0;
  for (const test::SceneKind& kind : test::scene_kinds()) {
    INFO(kind.name);
    SceneWorld scene(*device);
    REQUIRE(scene.fill(kind));
    const Box3 bounds = scene.world().bounds();
    const Box3 around = bounds.empty() ? Box3{{-8, -8, -8}, {7, 7, 7}} : bounds;
    const Rays rays = random_rays(scene.world(), around, rays_wanted(4000), 31);
    auto hits = (*renderer)->trace(scene.rendered(), rays.origins, rays.directions);
    REQUIRE(hits);
    const test::FlatWorld flat(scene.world());
    for (size_t i = 0; i < rays.size(); ++i) {
      quarry::Ray ray{};
      std::copy_n(&rays.origins[i * 3], 3, ray.origin);
      std::copy_n(&rays.directions[i * 3], 3, ray.direction);
      const RayHit host = trace_ray(flat.rays, ray);
      const Hit& shader = (*hits)[i];
      const bool same = (host.t < 0) == (shader.t < 0) &&
                        std::abs(host.t - shader.t) <= 1e-6f * (1 + std::abs(host.t)) &&
                        Int3{host.voxel[0], host.voxel[1], host.voxel[2]} == shader.voxel && host.face == shader.face &&
                        host.material == shader.material;
      differing_total += !same;
      steps_differ_total += host.steps != shader.steps;
      ++rays_total;
    }
  }
  std::printf("%llu rays: %llu hits and %llu numbers of steps differ between shader and host\n",
              static_cast<unsigned long long>(rays_total), static_cast<unsigned long long>(differing_total),
              static_cast<unsigned long long>(steps_differ_total));
  CHECK(differing_total <= rays_total / 2000);
  CHECK(steps_differ_total <= rays_total / 500);
}

TEST_CASE("traverse: a ray along a face belongs to the voxel on its upper side, for every axis and direction") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  SceneWorld scene(*device);
  // Four voxels: one at the origin and its next neighbour on each axis.
  REQUIRE(scene.set({{{0, 0, 0}, 1}, {{1, 0, 0}, 2}, {{0, 1, 0}, 3}, {{0, 0, 1}, 4}}));
  Rays rays;
  std::vector<Int3> expected;
  std::vector<float> depth;
  const auto expect = [&](double ox, double oy, double oz, double dx, double dy, double dz, Int3 voxel, float t) {
    rays.add(ox, oy, oz, dx, dy, dz);
    expected.push_back(voxel);
    depth.push_back(t);
  };
  expect(-5, 0, 0, 1, 0, 0, {0, 0, 0}, 5);    // along an edge of the grid
  expect(-5, 1, 0.5, 1, 0, 0, {0, 1, 0}, 5);  // along the face between y 0 and 1
  expect(7, 0, 0.5, -1, 0, 0, {1, 0, 0}, 5);  // backwards
  expect(0, -3, 0, 0, 1, 0, {0, 0, 0}, 3);
  expect(0.5, 6, 0, 0, -1, 0, {0, 1, 0}, 4);
  expect(0, 0, 9, 0, 0, -1, {0, 0, 1}, 7);
  expect(0.5, 0.5, 0.5, 0, 0, 1, {0, 0, 0}, 0);  // from inside
  expect(1, 0.5, 0.5, 1, 0, 0, {1, 0, 0}, 0);    // from a face
  expect(0, 0, 0, -1, -1, -1, {0, 0, 0}, 0);     // from a corner, outwards: the corner belongs to the voxel
  auto hits = (*renderer)->trace(scene.rendered(), rays.origins, rays.directions);
  REQUIRE(hits);
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("ray " << i);
    CHECK((*hits)[i].voxel == expected[i]);
    CHECK((*hits)[i].t == Approx(depth[i]).margin(1e-6));
    CHECK((*hits)[i].material == scene.world().get(expected[i]));
  }
  CHECK((*hits)[0].face == 0);
  CHECK((*hits)[2].face == 1);
  CHECK((*hits)[5].face == 5);
}

TEST_CASE("traverse: rays that cannot hit end, whatever their numbers") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  SceneWorld scene(*device);
  REQUIRE(scene.set({{{3, 3, 3}, 1}, {{-8192, -4096, -8192}, 2}, {{8191, 4095, 8183}, 3}}));
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> origins = {0, 0, 0, nan, 0, 0, inf, 0, 0, 0, 0, 0, 0, 0, 0, 1e30f, 0, 0, 3.5f, 3.5f, 3.5f};
  const std::vector<float> directions = {0, 0,      0,       1,      0,  0, -1, 0, 0, nan, 1,
                                         0, 1e-30f, -1e-30f, 1e-38f, -1, 0, 0,  0, 0, 0};
  auto hits = (*renderer)->trace(scene.rendered(), origins, directions);
  REQUIRE(hits);
  for (size_t i = 0; i + 1 < hits->size(); ++i) CHECK((*hits)[i].t < 0);
  CHECK(hits->back().t == 0);  // no direction, but inside a voxel
}

TEST_CASE("traverse: more than 128 MiB of materials read right on both sides of every slab's seam") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  SceneWorld scene(*device);
  // A plain of 520 x 520 bricks, one voxel in each: 132 MiB of materials in 9 slabs.
  constexpr int kEdge = 520;
  std::vector<World::BrickWrite> writes;
  for (int z = 0; z < kEdge; ++z)
    for (int x = 0; x < kEdge; ++x) {
      World::BrickWrite write{{x - 200, -3, z - 300}, {}};
      write.value.set(uint32_t(x * 7 + z * 13) % kVoxelsPerBrick, uint8_t(1 + (x * 3 + z * 5) % 255));
      writes.push_back(write);
    }
  REQUIRE(scene.world().write(writes));
  REQUIRE(scene.world().pool().size_bytes() > (128u << 20));
  Rays rays;
  std::vector<Int3> expected;
  for (const World::BrickWrite& write : writes) {
    const uint32_t index = hashgrid::find(scene.world().grid().view(), brick_key(write.brick)).value;
    const uint32_t in_slab = index % kBricksPerSlab;
    if (in_slab > 2 && in_slab < kBricksPerSlab - 3 && index % 97 != 0) continue;
    uint32_t bit = 0;
    while (!write.value.get(bit)) ++bit;
    const Int3 voxel = Int3{write.brick.x * 8, write.brick.y * 8, write.brick.z * 8} + voxel_from_index(bit);
    expected.push_back(voxel);
    rays.add(voxel.x + 0.5, 100.5, voxel.z + 0.5, 0, -1, 0);
  }
  CHECK(expected.size() > 2700);
  auto hits = (*renderer)->trace(scene.rendered(), rays.origins, rays.directions);
  REQUIRE(hits);
  size_t wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    wrong += (*hits)[i].voxel != expected[i] || (*hits)[i].material != scene.world().get(expected[i]);
  CHECK(wrong == 0);
}

TEST_CASE(
    "traverse: rays that share one direction to the sun meet what rays that each find their own ray setup do, in "
    "every octant",
    "[shader-alone]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  constexpr float kSuns[][3] = {{-0.43f, 0.77f, -0.37f},
                                {0.43f, 0.77f, -0.37f},
                                {-0.43f, 0.77f, 0.37f},
                                {0.43f, 0.2f, 0.37f},
                                {-0.43f, -0.77f, -0.37f},
                                {0.43f, -0.77f, -0.1f},
                                {-0.43f, -0.3f, 0.37f},
                                {0.43f, -0.77f, 0.37f},
                                {0, 1, 0},
                                {0, -1, 0},
                                {-1, 0, 0},
                                {0, 0.6f, 0.8f}};
  RenderSettings settings;
  settings.width = 192;
  settings.height = 128;
  settings.uniform_sky = true;
  for (float& c : settings.sky_color) c = 0.05f;
  settings.ambient_rays = 0;
  settings.sun_radius = 0;
  for (const char* name : {"hills", "menger sponge", "dense dust", "far dust"}) {
    SceneWorld scene(*device);
    REQUIRE(scene.fill(test::scene_kind(name)));
    const Box3 bounds = scene.world().bounds();
    const double low[3] = {double(bounds.min.x), double(bounds.min.y), double(bounds.min.z)},
                 high[3] = {bounds.max.x + 1.0, bounds.max.y + 1.0, bounds.max.z + 1.0};
    size_t lit = 0, dark = 0;
    for (const float(&sun)[3] : kSuns) {
      INFO(name << ", sun at " << sun[0] << ", " << sun[1] << ", " << sun[2]);
      // The view is from near the sun, so that sunlit faces are seen.
      const double beside[3] = {0.5, -0.25, 0.35};
      glm::dvec3 position, target;
      for (int i = 0; i < 3; ++i) {
        target[i] = (low[i] + high[i]) / 2;
        position[i] = target[i] + (high[i] - low[i]) * 1.1 * (double(sun[i]) + beside[i]);
      }
      const View view = look_at(position, target, 50, settings.width, settings.height);
      std::copy_n(sun, 3, settings.sun_direction);
      std::vector<uint8_t> pictures[3];
      for (uint32_t rays = 0; rays < 3; ++rays) {
        settings.shadow_rays = rays;
        auto made = (*renderer)->render(scene.rendered(), view, settings);
        REQUIRE(made);
        pictures[rays] = std::move(made->rgba);
      }
      size_t differing = 0;
      for (size_t i = 0; i < pictures[0].size(); i += 4) {
        const auto same = [&](const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
          return std::equal(&a[i], &a[i] + 4, &b[i]);
        };
        differing += !same(pictures[1], pictures[2]);
        (same(pictures[1], pictures[0]) ? lit : dark) += 1;
      }
      CHECK(differing <= 1 + pictures[0].size() / 4 / 2000);
    }
    std::printf("%-24s %zu pixels in a shadow, %zu not\n", name, dark, lit);
    CHECK(dark > 1000);
  }
}

TEST_CASE("traverse: a list of many pieces gives each ray the hit that it has alone, and a second list does, too") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  SceneWorld scene(*device);
  REQUIRE(scene.set({{{0, 0, 0}, 1}, {{5, 1, 2}, 2}, {{-4, 3, 1}, 3}, {{2, -2, -3}, 4}}));
  // A few directions, as many times as makes several pieces and a part of one.
  const Rays few = random_rays(scene.world(), {{-8, -8, -8}, {7, 7, 7}}, 101, 3);
  const auto alone = (*renderer)->trace(scene.rendered(), few.origins, few.directions);
  REQUIRE(alone);
  const auto same = [](const Hit& a, const Hit& b) {
    return a.t == b.t && a.voxel == b.voxel && a.face == b.face && a.material == b.material && a.steps == b.steps;
  };
  for (const size_t count : {size_t(4) * 524288 + 77, size_t(524288), size_t(1)}) {
    INFO(count << " rays");
    size_t filled = 0, taken = 0, wrong = 0;
    const auto traced = (*renderer)->trace(
        scene.rendered(), count,
        [&](size_t first, std::span<engine::Ray> to) {
          REQUIRE(first == filled);
          filled += to.size();
          for (size_t i = 0; i < to.size(); ++i) {
            const size_t ray = (first + i) % few.size();
            std::copy_n(&few.origins[ray * 3], 3, to[i].origin);
            std::copy_n(&few.directions[ray * 3], 3, to[i].direction);
          }
        },
        [&](size_t first, std::span<const Hit> hits) {
          REQUIRE(first == taken);
          taken += hits.size();
          for (size_t i = 0; i < hits.size(); ++i) wrong += !same(hits[i], (*alone)[(first + i) % few.size()]);
        });
    REQUIRE(traced);
    CHECK(filled == count);
    CHECK(taken == count);
    CHECK(wrong == 0);
  }
}

}  // namespace traversal_test
