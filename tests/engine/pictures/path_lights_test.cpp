// SPDX-License-Identifier: Apache-2.0
// path_lights_test.cpp - checks that sampling lights gives the same picture as hitting them by chance, with less noise.
// The references are Lambert's formula for the light of a polygon, the other way, and the error of both.
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/render/offscreen.hpp"
#include "engine/sharing/light_tree.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/engine/traced.hpp"

namespace path_lights_test {

using namespace quarry;
using namespace quarry::engine;
using namespace quarry::test;

namespace {

// The light that a free cube voxel of radiance 1 above a floor sends to a point there, from the faces that see it.
double light_of_cube(Vec point, Int3 voxel) {
  const double x = voxel.x, y = voxel.y, z = voxel.z;
  const Vec up{0, 1, 0};
  double sum = form_factor(point, up, {{x, y, z}, {x + 1, y, z}, {x + 1, y, z + 1}, {x, y, z + 1}});
  for (const double side : {x, x + 1})
    if (side == x ? point[0] < x : point[0] > x + 1)
      sum += form_factor(point, up, {{side, y, z}, {side, y + 1, z}, {side, y + 1, z + 1}, {side, y, z + 1}});
  for (const double side : {z, z + 1})
    if (side == z ? point[2] < z : point[2] > z + 1)
      sum += form_factor(point, up, {{x, y, side}, {x + 1, y, side}, {x + 1, y + 1, side}, {x, y + 1, side}});
  return sum;
}

double rmse(const PathPicture& a, const PathPicture& b) {
  double sum = 0;
  for (size_t i = 0; i < a.radiance.size(); ++i) sum += std::pow(double(a.radiance[i]) - double(b.radiance[i]), 2);
  return std::sqrt(sum / double(a.radiance.size()));
}

// Chalk, rough metal, smooth lacquer and glass under lamps of three strengths, a glowing wall, and shadows of
// everything.
void furnish(SceneWorld& world) {
  fill_box(world, {0, 0, 0}, {39, 0, 29}, 1);
  fill_box(world, {0, 1, 0}, {39, 15, 0}, 1);
  fill_box(world, {6, 1, 6}, {11, 8, 11}, 2);
  fill_box(world, {17, 1, 10}, {22, 4, 16}, 3);
  fill_box(world, {28, 1, 4}, {33, 6, 8}, 4);
  fill_box(world, {0, 2, 6}, {0, 9, 20}, 5);
  fill_box(world, {14, 12, 12}, {14, 12, 12}, 6);
  fill_box(world, {30, 10, 20}, {31, 10, 20}, 6);
  fill_box(world, {24, 1, 22}, {24, 2, 22}, 7);
  world.palette.materials[1] = diffuse_white(200);
  world.palette.materials[2] = diffuse_white(220);
  world.palette.materials[2].metalness = 1;
  world.palette.materials[2].roughness = 0.4f;
  world.palette.materials[3] = diffuse_white(120);
  world.palette.materials[3].roughness = 0.15f;
  world.palette.materials[4] = diffuse_white();
  world.palette.materials[4].transparency = 0.9f;
  world.palette.materials[4].roughness = 0;
  world.palette.materials[5] = lamp(0.6f, 230);
  world.palette.materials[6] = lamp(8);
  world.palette.materials[7] = lamp(3, 180);
  world.palette.materials[7].r = 255;
}

}  // namespace

TEST_CASE("lights: small lamps light a floor as Lambert's formula says, and do after they were moved",
          "[shader-alone]") {
  Device* device = test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  fill_box(world, {-40, 0, -40}, {40, 0, 40}, 1);
  world.palette.materials[1] = diffuse_white(188);
  world.palette.materials[2] = lamp(50);
  world.palette.materials[3] = lamp(9);
  RenderSettings settings = furnace(8, 8);
  settings.sky_strength = 0;
  settings.bounces = 1;
  std::vector<std::pair<Int3, uint8_t>> lamps{{{-9, 8, 3}, 2}, {{12, 20, -7}, 3}, {{3, 3, 6}, 3}};
  const auto check = [&](const char* when) {
    const Vec point{0.5, 1, 0.5};
    double expected = 0;
    for (const auto& [voxel, material] : lamps)
      expected += linear(188) * double(world.palette.materials[material].emission) * light_of_cube(point, voxel);
    INFO(when);
    CHECK(mean_of(trace(world, down_at(0.5, 1, 0.5, 0.05, 8, 8), settings, 128)) == Approx(expected).epsilon(0.015));
  };
  REQUIRE(world.set(lamps));
  check("three lamps");
  CHECK(world.shared().lights().face_count() == 18);
  REQUIRE(world.set({{{-9, 8, 3}, 0}, {{-5, 12, -3}, 2}}));
  lamps[0].first = {-5, 12, -3};
  check("one lamp moved");
  REQUIRE(world.set({{{12, 20, -7}, 0}}));
  lamps.erase(lamps.begin() + 1);
  check("one taken away");
  world.palette.materials[3].emission = 27;
  check("one made brighter");
}

TEST_CASE("lights: whether they are asked for or found by chance, a picture converges to the same", "[shader-alone]") {
  Device* device = test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  furnish(world);
  RenderSettings settings = furnace(16, 12);
  settings.sky_strength = 0.02f;
  const View view = fitted(world, 16, 12);
  for (const float fog : {0.0f, 60.0f}) {
    settings.fog_distance = fog;
    // It traces by chance twice, so that its own noise is known. The two ways may not differ by more.
    settings.light_tree = false;
    settings.frame_seed = 1;
    const PathPicture chance = trace(world, view, settings, 1024);
    settings.frame_seed = 2;
    const PathPicture again = trace(world, view, settings, 1024);
    settings.light_tree = true;
    const PathPicture asked = trace(world, view, settings, 1024);
    const double noise = rmse(chance, again), difference = rmse(chance, asked);
    INFO("fog " << fog << ": by chance " << mean_of(chance) << " and " << mean_of(again) << ", differing by " << noise
                << "; asked " << mean_of(asked) << ", by " << difference);
    CHECK(mean_of(asked) == Approx((mean_of(chance) + mean_of(again)) / 2).epsilon(0.012));
    CHECK(difference < 1.1 * noise);
  }
}

TEST_CASE("lights: asked for, small lamps bring a quarter of the error with as many paths, or less", "[shader-alone]") {
  Device* device = test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  fill_box(world, {0, 0, 0}, {63, 0, 63}, 1);
  for (int32_t i = 0; i < 16; ++i)
    fill_box(world, {8 + 16 * (i % 4), 14, 8 + 16 * (i / 4)}, {8 + 16 * (i % 4), 14, 8 + 16 * (i / 4)}, 2);
  world.palette.materials[1] = diffuse_white(200);
  world.palette.materials[2] = lamp(30);
  RenderSettings settings = furnace(24, 24);
  settings.sky_strength = 0;
  const View view = down_at(32, 1, 32, 4, 24, 24);
  settings.frame_seed = 5;
  const PathPicture reference = trace(world, view, settings, 512);
  settings.frame_seed = 0;
  const double asked = rmse(trace(world, view, settings, 16), reference);
  settings.light_tree = false;
  const double chance = rmse(trace(world, view, settings, 16), reference);
  INFO("root mean square error with 16 paths: by chance " << chance << ", asked " << asked);
  CHECK(asked < chance / 4);
}

TEST_CASE("lights: a picture is the same bytes whole and path by path, and needs no list to be right") {
  Device* device = test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  furnish(world);
  RenderSettings settings = furnace(21, 13);
  settings.sky_strength = 0.1f;
  const View view = fitted(world, 21, 13);
  const PathPicture whole = trace(world, view, settings, 40);

  auto offscreen = Offscreen::create(*device, "test");
  REQUIRE(offscreen);
  const auto stepwise = [&](const Traced& by) {
    auto ready = world.rendered().publish();
    REQUIRE(ready);
    Picture picture;
    for (uint32_t path = 0; path < 40; ++path) {
      auto commands = (*offscreen)->begin();
      REQUIRE(commands);
      auto target = (*offscreen)->begin_image(settings.width, settings.height);
      REQUIRE(target);
      REQUIRE(by.tracer->record(*commands, world.shared(), view, settings, 16 * path, 16, *target, path % 3));
      REQUIRE((*offscreen)->read_image());
      REQUIRE((*offscreen)->submit_and_wait(*ready));
      picture = (*offscreen)->picture();
    }
    return picture.rgba;
  };
  CHECK(stepwise(trace) == whole.picture.rgba);
  // A tracer that was never told of the lights finds them by chance.
  const Traced untold(*device);
  settings.light_tree = false;
  const PathPicture by_chance = trace(world, view, settings, 40);
  settings.light_tree = true;
  CHECK(stepwise(untold) == by_chance.picture.rgba);
  REQUIRE(untold.tracer->prepare(world.rendered()));
  CHECK(stepwise(untold) == whole.picture.rgba);
}

}  // namespace path_lights_test
