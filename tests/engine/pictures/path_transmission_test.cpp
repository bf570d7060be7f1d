// SPDX-License-Identifier: Apache-2.0
// path_transmission_test.cpp - checks that transparent voxels refract, reflect and absorb light correctly. The
// references are a furnace, and the formulae of Snell, Fresnel and Beer for slabs.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/engine/test_device.hpp"
#include "tests/engine/traced.hpp"

namespace path_transmission_test {

using namespace quarry;
using namespace quarry::engine;
using namespace quarry::test;

namespace {

Material glass(float ior, float roughness = 0) {
  Material m = diffuse_white();
  m.transparency = 1;
  m.roughness = roughness;
  m.ior = ior;
  return m;
}

// The share of light from the air at this cosine that an interface reflects. A. Fresnel, 1823.
double thrown_back(double cosine, double ior) {
  const double inside = std::sqrt(1 - (1 - cosine * cosine) / (ior * ior));
  const double across = (cosine - ior * inside) / (cosine + ior * inside),
               along = (ior * cosine - inside) / (ior * cosine + inside);
  return (across * across + along * along) / 2;
}

void ball(SceneWorld& world, int32_t radius, uint8_t material) {
  std::vector<std::pair<Int3, uint8_t>> voxels;
  for (int32_t z = -radius; z <= radius; ++z)
    for (int32_t y = -radius; y <= radius; ++y)
      for (int32_t x = -radius; x <= radius; ++x)
        if (x * x + y * y + z * z <= radius * radius) voxels.push_back({{x, y, z}, material});
  REQUIRE(world.set(voxels));
}

// A view so narrow that it is one ray, along `d` through `at`.
View ray(Vec at, Vec d, double from) { return look_at(at - from * d, at, 0.02, 4, 4); }

}  // namespace

TEST_CASE("transmission: in a furnace a clear ball cannot be told from the walls, whatever its index",
          "[shader-alone]") {
  Device* device = test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  ball(world, 9, 1);
  RenderSettings settings = furnace(20, 20);
  settings.bounces = 32;
  settings.sky_strength = 0.7f;
  const View view = fitted(world, 20, 20);
  for (const Material& material : {glass(1), glass(1.33f), glass(1.5f), glass(2.4f), glass(1.5f, 0.3f)}) {
    world.palette.materials[1] = material;
    const PathPicture picture = trace(world, view, settings, 32);
    INFO("index " << material.ior << ", roughness " << material.roughness);
    CHECK(worst_of(picture, 0.7) < 0.004);
  }
  // Half glass, half diffuse_white, with a core of diffuse_white: still white.
  ball(world, 5, 2);
  world.palette.materials[1] = glass(1.5f);
  world.palette.materials[1].transparency = 0.6f;
  world.palette.materials[2] = diffuse_white();
  settings.bounces = 200;
  const double mean = mean_of(trace(world, view, settings, 64));
  CHECK(mean <= 0.7 * 1.001);
  CHECK(mean > 0.7 * 0.99);
  // Coloured glass absorbs some of the light. Thicker glass absorbs more.
  world.palette.materials[1] = glass(1.5f);
  world.palette.materials[1].g = 120;
  const PathPicture tinted = trace(world, view, settings, 16);
  for (size_t i = 0; i < tinted.radiance.size(); i += 4)
    REQUIRE(tinted.radiance[i + 1] <= tinted.radiance[i] * 1.0001f);
}

TEST_CASE("transmission: a slab moves what lies behind it aside as Snell's law says", "[shader-alone]") {
  Device* device = test_device();
  if (!device) return;
  const Traced trace(*device);
  constexpr int32_t kThick = 24;
  const double slope = std::sqrt(0.5);
  for (const float ior : {1.0f, 1.33f, 1.5f, 2.0f}) {
    SceneWorld world(*device);
    fill_box(world, {-60, 20, -12}, {60, 20 + kThick - 1, 12}, 1);
    // Straight on, the ray through (0.5, 44) would come down at x = 44.5. The refracted ray comes down earlier.
    const double inside = slope / double(ior), shift = kThick * (1 - inside / std::sqrt(1 - inside * inside)),
                 x = 44.5 - shift;
    const auto column = int32_t(std::floor(x));
    fill_box(world, {-80, -1, -12}, {80, -1, 12}, 3);
    fill_box(world, {column, -1, -12}, {column, -1, 12}, 2);
    world.palette.materials[1] = glass(ior);
    world.palette.materials[2] = lamp(1);
    world.palette.materials[3] = diffuse_white(0);
    RenderSettings settings = furnace(4, 4);
    settings.sky_strength = 0;
    INFO("index " << ior << ": comes down at x = " << x);
    REQUIRE(std::abs(x - column - 0.5) < 0.45);
    const double seen = mean_of(trace(world, ray({0.5, 20 + kThick, 0.5}, {slope, -slope, 0}, 40), settings, 512));
    const double back = ior > 1 ? thrown_back(slope, double(ior)) : 0;
    // Light reflected back and forth moves further on, past the column.
    CHECK(seen == Approx((1 - back) * (1 - back)).epsilon(0.03));
  }
}

TEST_CASE(
    "transmission: light that came in by the top cannot leave by a side, and a slab swallows as much as its "
    "thickness says",
    "[shader-alone]") {
  Device* device = test_device();
  if (!device) return;
  const Traced trace(*device);
  {
    SceneWorld world(*device);
    fill_box(world, {0, 2, 0}, {15, 30, 15}, 1);
    fill_box(world, {-60, 0, -60}, {90, 0, 90}, 2);  // a glowing floor
    fill_box(world, {18, 1, -30}, {18, 30, 45}, 3);  // and a brighter glowing wall, as high as the glass
    world.palette.materials[1] = glass(1.5f);
    world.palette.materials[2] = lamp(1);
    world.palette.materials[3] = lamp(100);
    RenderSettings settings = furnace(4, 4);
    settings.sky_strength = 0;
    settings.bounces = 0;  // no scattered light: only the view through the glass
    const double slope = std::sqrt(0.5), back = thrown_back(slope, 1.5);
    // Straight on it would hit the side 4 voxels below the top, and then the wall behind it.
    const double seen = mean_of(trace(world, ray({12.4, 31, 8.3}, {slope, -slope, 0}, 5), settings, 1024));
    CHECK(seen == Approx((1 - back) / (1 + back)).epsilon(0.02));
  }
  for (const int32_t thick : {2, 20}) {
    SceneWorld world(*device);
    fill_box(world, {-20, 10, -20}, {20, 9 + thick, 20}, 1);
    fill_box(world, {-20, 0, -20}, {20, 0, 20}, 2);
    world.palette.materials[1] = glass(1.5f);
    world.palette.materials[1].r = world.palette.materials[1].g = world.palette.materials[1].b = 90;
    world.palette.materials[2] = lamp(1);
    RenderSettings settings = furnace(4, 4);
    settings.sky_strength = 0;
    settings.bounces = 0;
    const double back = 0.04, inside = std::pow(linear(90), 0.06 * thick),
                 expected =
                     (1 - back) * (1 - back) * std::pow(linear(90), 0.1) * inside / (1 - back * back * inside * inside);
    INFO(thick << " voxels thick");
    CHECK(mean_of(trace(world, ray({0.3, 10.0 + thick, 0.4}, {0, -1, 0}, 30), settings, 2048)) ==
          Approx(expected).epsilon(0.02));
  }
}

}  // namespace path_transmission_test
