// SPDX-License-Identifier: Apache-2.0
// pick_test.cpp - the promise of picking: it finds the same voxel, face and ground as a test of every voxel, for random
// rays and worlds.
#include "app/editor/session/pick.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <glm/geometric.hpp>
#include <random>

#include "voxel/worlds/document.hpp"

namespace pick_test {

using namespace quarry;
using namespace quarry::app;
using quarry::app::Ray;  // there is a ray of the renderer, too

namespace {

Document document_of(const std::vector<Int3>& voxels) {
  Scene scene;
  scene.volumes.push_back({"v", {}, {}});
  for (size_t i = 0; i < voxels.size(); ++i) scene.volumes[0].bricks.set(voxels[i], uint8_t(1 + i % 255));
  scene.instances.push_back({});
  return std::move(*Document::create(std::move(scene)));
}

// Tests every voxel against the ray by the slab method, which is slow and surely right. The caller handles equal
// distances (edges).
double nearest_by_slabs(const std::vector<Int3>& voxels, const Ray& ray, Int3* found) {
  double best = 1e300;
  for (const Int3& v : voxels) {
    const int32_t low[3] = {v.x, v.y, v.z};
    double enter = 0, leave = 1e300;
    for (int i = 0; i < 3; ++i) {
      const double a = (low[i] - ray.origin[i]) / ray.direction[i], b = (low[i] + 1 - ray.origin[i]) / ray.direction[i];
      enter = std::max(enter, std::min(a, b));
      leave = std::min(leave, std::max(a, b));
    }
    if (enter < leave && enter < best) best = enter, *found = v;
  }
  return best;
}

Ray ray_from(double x, double y, double z, double dx, double dy, double dz) {
  return {{x, y, z}, glm::normalize(glm::dvec3(dx, dy, dz))};
}

}  // namespace

TEST_CASE("pick: finds the same voxel as testing every voxel, for random rays and worlds") {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> place(-30, 30);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<Int3> voxels;
  for (int i = 0; i < 400; ++i) voxels.push_back({place(random), place(random), place(random)});
  const Document document = document_of(voxels);
  int hits = 0;
  for (int i = 0; i < 3000; ++i) {
    const double aim[3] = {place(random) + real(random), place(random) + real(random), place(random) + real(random)};
    const double from[3] = {80 * real(random), 80 * real(random), 80 * real(random)};
    const Ray ray = ray_from(from[0], from[1], from[2], aim[0] - from[0], aim[1] - from[1], aim[2] - from[2]);
    Int3 expected;
    const double t = nearest_by_slabs(voxels, ray, &expected);
    const auto hit = pick_voxel(document.world(), ray);
    REQUIRE(hit.has_value() == (t < 1e300));
    if (!hit) continue;
    ++hits;
    CHECK(hit->t == Approx(t).margin(1e-6));
    CHECK(hit->voxel == expected);
    CHECK(hit->material == document.world().get(expected));
  }
  CHECK(hits > 300);
}

TEST_CASE("pick: names the face that the ray enters through") {
  const Document document = document_of({{0, 0, 0}});
  const struct {
    Ray ray;
    Int3 normal;
  } cases[] = {
      {ray_from(-5, 0.5, 0.5, 1, 0, 0), {-1, 0, 0}}, {ray_from(5, 0.5, 0.5, -1, 0, 0), {1, 0, 0}},
      {ray_from(0.5, 9, 0.5, 0, -1, 0), {0, 1, 0}},  {ray_from(0.5, -9, 0.5, 0, 1, 0), {0, -1, 0}},
      {ray_from(0.5, 0.5, 9, 0, 0, -1), {0, 0, 1}},  {ray_from(0.5, 0.5, -9, 0, 0, 1), {0, 0, -1}},
  };
  for (const auto& one : cases) {
    const auto hit = pick_voxel(document.world(), one.ray);
    REQUIRE(hit);
    CHECK(hit->voxel == Int3{0, 0, 0});
    CHECK(hit->normal == one.normal);
  }
}

TEST_CASE(
    "pick: an empty world answers with the ground where the ray meets y = 0, and with nothing above the horizon") {
  const Document document = document_of({});
  const auto down = [&](const Ray& ray) { return or_ground(pick_voxel(document.world(), ray), ray); };
  const auto hit = down(ray_from(0.5, 10, 0.5, 1, -1, 0));
  REQUIRE(hit);
  CHECK(hit->ground);
  CHECK(hit->voxel == Int3{10, -1, 0});
  CHECK(hit->normal == Int3{0, 1, 0});
  CHECK_FALSE(down(ray_from(0, 10, 0, 1, 0.1, 0)));
  CHECK_FALSE(down(ray_from(0, -10, 0, 1, -1, 0)));
}

TEST_CASE("pick: works at the corners of the world") {
  const std::vector<Int3> corners{{-8192, -4096, -8192}, {8191, -4096, -8192}, {-8192, 4095, 8191}};
  const Document document = document_of(corners);
  for (const Int3& v : corners) {
    const double aim[3] = {v.x + 0.5, v.y + 0.5, v.z + 0.5};
    const auto hit = pick_voxel(document.world(), ray_from(0, 0, 0, aim[0], aim[1], aim[2]));
    REQUIRE(hit);
    CHECK(hit->voxel == v);
  }
}

}  // namespace pick_test
