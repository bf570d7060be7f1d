// SPDX-License-Identifier: Apache-2.0
// traversal_test.cpp - compares the ray-marcher with a voxel-by-voxel traversal in double precision. Voxel and depth
// must be the same for every kind of world and ray.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>

#include "base/parallel.hpp"
#include "engine/render/ray_marcher.hpp"
#include "hashgrid/pairs/view.hpp"
#include "tests/engine/ray_reference.hpp"
#include "tests/engine/scene_world.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/test_data.hpp"

using namespace quarry;
using namespace quarry::engine;
using quarry::test::SceneWorld;

namespace {

struct Rays {
  std::vector<float> origins, directions;
  size_t size() const { return origins.size() / 3; }
  void add(double ox, double oy, double oz, double dx, double dy, double dz) {
    const double length = std::sqrt(dx * dx + dy * dy + dz * dz);
    for (double v : {ox, oy, oz}) origins.push_back(float(v));
    for (double v : {dx, dy, dz}) directions.push_back(float(v / length));
  }
};

// Rays at a world: from around its bounds, from inside them (inside solids too), parallel to axes and nearly so. Every
// second ray goes towards an existing brick, so that distant bricks are hit.
Rays random_rays(const World& world, const Box3& bounds, size_t count, uint32_t seed) {
  std::vector<Int3> bricks;
  world.for_each_brick([&](Int3 at, const Brick&) { bricks.push_back(at); });
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  std::normal_distribution<double> normal;
  Rays rays;
  const double low[3] = {double(bounds.min.x), double(bounds.min.y), double(bounds.min.z)};
  const double size[3] = {double(bounds.max.x) + 1 - low[0], double(bounds.max.y) + 1 - low[1],
                          double(bounds.max.z) + 1 - low[2]};
  const double reach = std::max({size[0], size[1], size[2]});
  while (rays.size() < count) {
    const size_t kind = rays.size() % 8;
    double target[3], origin[3], d[3];
    for (int i = 0; i < 3; ++i) target[i] = low[i] + unit(random) * size[i];
    if (!bricks.empty() && (rays.size() / 8) % 2) {
      const Int3 at = bricks[random() % bricks.size()];
      const int32_t corner[3] = {at.x * 8, at.y * 8, at.z * 8};
      for (int i = 0; i < 3; ++i) target[i] = corner[i] - 1 + 10 * unit(random);
    }
    double n[3] = {normal(random), normal(random), normal(random)};
    if (kind < 3) {  // from outside, around
      for (int i = 0; i < 3; ++i) origin[i] = low[i] + size[i] / 2 + n[i] * reach;
    } else if (kind < 5) {  // from inside
      for (int i = 0; i < 3; ++i) origin[i] = low[i] + unit(random) * size[i];
    } else if (kind == 5) {  // along an axis
      for (int i = 0; i < 3; ++i) origin[i] = target[i];
      origin[rays.size() / 8 % 3] -= reach * (unit(random) - 0.3);
    } else if (kind == 6) {  // in a plane of two axes
      for (int i = 0; i < 3; ++i) origin[i] = low[i] + size[i] / 2 + n[i] * reach;
      const size_t axis = rays.size() / 8 % 3;
      origin[axis] = target[axis];
    } else {  // nearly along an axis
      for (int i = 0; i < 3; ++i) origin[i] = target[i] + n[i] * 1e-3;
      origin[rays.size() / 8 % 3] -= reach;
    }
    double length = 0;
    for (int i = 0; i < 3; ++i) d[i] = target[i] - origin[i];
    for (double v : d) length += v * v;
    if (length < 1e-9) continue;
    rays.add(origin[0], origin[1], origin[2], d[0], d[1], d[2]);
  }
  return rays;
}

struct Comparison {
  uint64_t hits = 0, near_edge = 0, wrong = 0;
  std::string first_wrong;
};

Comparison compare(const World& world, const Box3& bounds, const Rays& rays, const std::vector<Hit>& hits) {
  std::vector<test::ReferenceHit> expected(rays.size());
  parallel_for(rays.size(), 256, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      expected[i] = test::trace_reference(world, bounds, &rays.origins[i * 3], &rays.directions[i * 3]);
  });
  Comparison out;
  for (size_t i = 0; i < rays.size(); ++i) {
    const auto& e = expected[i];
    const Hit& h = hits[i];
    out.hits += e.hit;
    const bool same =
        e.hit == (h.t >= 0) &&
        (!e.hit || (e.voxel == h.voxel && std::abs(e.t - h.t) < 1e-3 + 1e-6 * e.t && world.get(e.voxel) == h.material));
    if (same) continue;
    if (e.edge_distance < 1e-3) {
      ++out.near_edge;
      continue;
    }
    if (!out.wrong++) {
      const auto text = [](Int3 v) {
        return std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z);
      };
      char rays_text[200];
      std::snprintf(rays_text, sizeof rays_text, "ray %zu o=(%.9g %.9g %.9g) d=(%.9g %.9g %.9g) edge %.3g", i,
                    double(rays.origins[i * 3]), double(rays.origins[i * 3 + 1]), double(rays.origins[i * 3 + 2]),
                    double(rays.directions[i * 3]), double(rays.directions[i * 3 + 1]),
                    double(rays.directions[i * 3 + 2]), e.edge_distance);
      out.first_wrong = std::string(rays_text) + ": expected " +
                        (e.hit ? text(e.voxel) + " at " + std::to_string(e.t) : "nothing") + ", got " +
                        (h.t >= 0 ? text(h.voxel) + " at " + std::to_string(h.t) : "nothing");
    }
  }
  return out;
}

// QUARRY_LONG=1 gives 100,000 rays a world (minutes on two cores). A larger number gives that many rays.
size_t rays_wanted(size_t quick) {
  const char* text = std::getenv("QUARRY_LONG");
  const size_t number = text ? std::strtoull(text, nullptr, 10) : 0;
  return number == 0 ? quick : number == 1 ? 100000 : number;
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
    "every octant") {
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
        [&](size_t first, std::span<Ray> to) {
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
