// SPDX-License-Identifier: Apache-2.0
// trace_test.cpp - the rays of host threads against a voxel-by-voxel traversal in double precision, and by their own
// promises. What shaders make of the same text is compared in tests/engine/render/traversal_test.cpp.
#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <span>

#include "base/parallel.hpp"
#include "tests/engine/flat_world.hpp"
#include "tests/engine/random_rays.hpp"
#include "tests/engine/scene_kinds.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/rays/on_cuda.hpp"
#include "voxel/rays/trace.hpp"

namespace trace_test {

using namespace quarry;
using quarry::test::FlatWorld;

namespace {

static_assert(sizeof(Ray) == 24 && sizeof(RayHit) == 32 && offsetof(RayHit, face) == 16);

World world_of(const std::function<void(const test::Put&)>& build) {
  auto world = World::create();
  REQUIRE(world);
  REQUIRE(world->write(test::writes_of(*world, build)));
  return std::move(*world);
}

Ray ray_of(const std::array<float, 3>& origin, const std::array<float, 3>& direction) {
  return {{origin[0], origin[1], origin[2]}, {direction[0], direction[1], direction[2]}};
}

std::array<uint32_t, 8> words_of(const RayHit& hit) { return std::bit_cast<std::array<uint32_t, 8>>(hit); }

Int3 voxel_of(const RayHit& hit) { return {hit.voxel[0], hit.voxel[1], hit.voxel[2]}; }

bool is_miss(const RayHit& hit) {
  return hit.t < 0 && voxel_of(hit) == Int3{} && hit.face == 0 && hit.material == 0 && hit.probe_depth == 0;
}

std::vector<Ray> list_of(const test::Rays& rays) {
  std::vector<Ray> list(rays.size());
  for (size_t i = 0; i < list.size(); ++i) {
    std::copy_n(&rays.origins[i * 3], 3, list[i].origin);
    std::copy_n(&rays.directions[i * 3], 3, list[i].direction);
  }
  return list;
}

std::vector<RayHit> traced_on_host(const RayWorld& world, const std::vector<Ray>& rays) {
  std::vector<RayHit> hits(rays.size());
  parallel_for(rays.size(), 256, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) hits[i] = trace_ray(world, rays[i]);
  });
  return hits;
}

}  // namespace

TEST_CASE("rays: 20 kinds of world x random rays give the voxel and depth of the brute-force traversal") {
  uint64_t rays_total = 0, near_edge_total = 0;
  for (const test::SceneKind& kind : test::scene_kinds()) {
    INFO(kind.name);
    const World world = world_of(kind.build);
    const FlatWorld flat(world);
    const Box3 bounds = world.bounds(), around = bounds.empty() ? Box3{{-8, -8, -8}, {7, 7, 7}} : bounds;
    const test::Rays rays = test::random_rays(world, around, test::rays_wanted(kind.quick_rays), 19);
    const std::vector<Ray> list = list_of(rays);
    const std::vector<RayHit> traced = traced_on_host(flat.rays, list);
    std::vector<test::FoundHit> hits;
    size_t ill_formed = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      const RayHit& hit = traced[i];
      hits.push_back({hit.t, voxel_of(hit), hit.material});
      // The face looks against the ray.
      const uint32_t axis = hit.face / 2;
      const bool well_formed =
          hit.t < 0 ? is_miss(hit) : axis < 3 && (list[i].direction[axis] < 0) == (hit.face % 2 != 0) && hit.steps > 0;
      ill_formed += !well_formed;
    }
    const test::Comparison c = test::compare(world, bounds, rays, hits);
    INFO(c.first_wrong);
    CHECK(c.wrong == 0);
    CHECK(c.near_edge <= 1 + rays.size() / 2000);
    CHECK((c.hits > 0) == (world.voxel_count() > 0));
    CHECK(ill_formed == 0);
    rays_total += rays.size();
    near_edge_total += c.near_edge;
  }
  CHECK(double(near_edge_total) <= 0.0005 * double(rays_total));
}

TEST_CASE("rays: a ray along a face belongs to the voxel on its upper side, and says which face it entered by") {
  // Four voxels: one at the origin and its next neighbour on each axis.
  const World world = world_of([](const test::Put& put) {
    put({0, 0, 0}, 1);
    put({1, 0, 0}, 2);
    put({0, 1, 0}, 3);
    put({0, 0, 1}, 4);
  });
  const FlatWorld flat(world);
  struct Expected {
    std::array<float, 3> origin, direction;
    Int3 voxel;
    float t;
    uint32_t face;
  };
  const Expected expected[] = {
      {{-5, 0, 0}, {1, 0, 0}, {0, 0, 0}, 5, 0},       // along an edge of the grid
      {{-5, 1, 0.5f}, {1, 0, 0}, {0, 1, 0}, 5, 0},    // along the face between y 0 and 1
      {{7, 0, 0.5f}, {-1, 0, 0}, {1, 0, 0}, 5, 1},    // backwards
      {{7, 0, 0.5f}, {-2, 0, 0}, {1, 0, 0}, 2.5, 1},  // t counts lengths of the direction
      {{0, -3, 0}, {0, 1, 0}, {0, 0, 0}, 3, 2},         {{0.5f, 6, 0}, {0, -1, 0}, {0, 1, 0}, 4, 3},
      {{0, 0, -9}, {0, 0, 1}, {0, 0, 0}, 9, 4},         {{0, 0, 9}, {0, 0, -1}, {0, 0, 1}, 7, 5},
      {{0.5f, 0.5f, 0.5f}, {0, 0, 1}, {0, 0, 0}, 0, 4},  // from inside
      {{1, 0.5f, 0.5f}, {1, 0, 0}, {1, 0, 0}, 0, 0},     // from a face
      {{0, 0, 0}, {-1, -1, -1}, {0, 0, 0}, 0, 1},        // from a corner: it belongs to the voxel
  };
  for (const Expected& e : expected) {
    INFO("ray " << &e - expected);
    const RayHit hit = trace_ray(flat.rays, ray_of(e.origin, e.direction));
    CHECK(voxel_of(hit) == e.voxel);
    CHECK(hit.t == e.t);
    CHECK(hit.face == e.face);
    CHECK(hit.material == world.get(e.voxel));
    CHECK(hit.probe_depth == 0);
  }
}

TEST_CASE("rays: rays that cannot hit end, whatever their numbers") {
  const World world = world_of([](const test::Put& put) {
    put({3, 3, 3}, 1);
    put({-8192, -4096, -8192}, 2);
    put({8191, 4095, 8183}, 3);
  });
  const FlatWorld flat(world);
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const Ray& ray :
       {ray_of({0, 0, 0}, {nan, 0, 0}), ray_of({inf, 0, 0}, {-1, 0, 0}), ray_of({0, 0, 0}, {1, nan, 0}),
        ray_of({0, 0, 0}, {1e-30f, -1e-30f, 1e-38f}), ray_of({1e30f, 0, 0}, {-1, 0, 0}),
        ray_of({nan, nan, nan}, {nan, nan, nan}), ray_of({0, 0, 0}, {inf, inf, inf})})
    CHECK(is_miss(trace_ray(flat.rays, ray)));
  const RayHit inside =
      trace_ray(flat.rays, ray_of({3.5f, 3.5f, 3.5f}, {0, 0, 0}));  // no direction, but inside a voxel
  CHECK(inside.t == 0);
  CHECK(inside.material == 1);
}

TEST_CASE("rays: an empty world, and one that was emptied, are hit by nothing") {
  World world = world_of([](const test::Put&) {});
  CHECK(is_miss(trace_ray(FlatWorld(world).rays, ray_of({-9000, 0.5f, 0.5f}, {1, 0, 0}))));
  REQUIRE(world.write(test::writes_of(world, [](const test::Put& put) { put({0, 0, 0}, 9); })));
  CHECK(trace_ray(FlatWorld(world).rays, ray_of({-9000, 0.5f, 0.5f}, {1, 0, 0})).t == 9000);
  REQUIRE(world.write(test::writes_of(world, [](const test::Put& put) { put({0, 0, 0}, 0); })));
  CHECK(is_miss(trace_ray(FlatWorld(world).rays, ray_of({-9000, 0.5f, 0.5f}, {1, 0, 0}))));
}

TEST_CASE("rays: CUDA gives every ray the host's hit, bit for bit") {
  for (const test::SceneKind& kind : test::scene_kinds()) {
    INFO(kind.name);
    const World world = world_of(kind.build);
    const FlatWorld flat(world);
    const Box3 bounds = world.bounds(), around = bounds.empty() ? Box3{{-8, -8, -8}, {7, 7, 7}} : bounds;
    const std::vector<Ray> rays = list_of(test::random_rays(world, around, test::rays_wanted(20000), 23));
    const auto traced = test::trace_on_first_device(flat.rays, flat.nodes, flat.masks, flat.materials, rays);
    if (!traced && (traced.error().code == ErrorCode::not_found || traced.error().code == ErrorCode::unsupported)) {
      test::skip(traced.error().message);
      return;
    }
    REQUIRE(traced);
    const std::vector<RayHit> expected = traced_on_host(flat.rays, rays);
    size_t differing = 0;
    for (size_t i = 0; i < rays.size(); ++i) differing += words_of(traced->hits[i]) != words_of(expected[i]);
    std::printf("%-24s %zu rays in %.3f ms on CUDA, %.0f million a second\n", kind.name, rays.size(),
                traced->milliseconds, double(rays.size()) / traced->milliseconds / 1e3);
    CHECK(differing == 0);
  }
}

}  // namespace trace_test
