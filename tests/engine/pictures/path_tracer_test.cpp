// SPDX-License-Identifier: Apache-2.0
// path_tracer_test.cpp - checks that the light is right, by results known without a renderer: a furnace in which
// everything must look like its walls, Lambert's formula for the light of a polygon, the sun on a floor. It also checks
// how the error falls.
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/pictures/path_tracer.hpp"
#include "engine/render/offscreen.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/engine/traced.hpp"

namespace path_tracer_test {

using namespace quarry;
using namespace quarry::engine;
using namespace quarry::test;

TEST_CASE("paths: in a furnace a white box cannot be told from the walls, chalk or mirror or glass", "[shader-alone]") {
  Device* device = test::test_device();
  if (!device) return;
  const Traced trace(*device);
  Material mirror = diffuse_white(), glass = diffuse_white(), coated = diffuse_white();
  mirror.metalness = 1;
  mirror.roughness = 0;
  glass.transparency = 1;
  glass.roughness = 0;
  coated.roughness = 0.02f;
  for (const Material& material : {diffuse_white(), mirror, glass, coated}) {
    SceneWorld world(*device);
    fill_box(world, {-5, 0, -3}, {6, 9, 4}, 1);
    world.palette.materials[1] = material;
    RenderSettings settings = furnace(24, 16);
    settings.sky_strength = 0.7f;
    INFO("roughness " << material.roughness << ", metalness " << material.metalness << ", transparency "
                      << material.transparency);
    CHECK(worst_of(trace(world, fitted(world, 24, 16), settings, 64), 0.7) < 0.004);
  }
}

TEST_CASE("paths: in a furnace no material sends out more light than falls on it, whatever its roughness and metalness",
          "[shader-alone]") {
  Device* device = test::test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  fill_box(world, {-5, 0, -3}, {6, 9, 4}, 1);
  RenderSettings settings = furnace(24, 16);
  const View view = fitted(world, 24, 16);
  for (const float metalness : {0.0f, 0.5f, 1.0f})
    for (const float roughness : {0.0f, 0.1f, 0.3f, 0.5f, 0.7f, 0.9f, 1.0f}) {
      world.palette.materials[1] = diffuse_white();
      world.palette.materials[1].roughness = roughness;
      world.palette.materials[1].metalness = metalness;
      const PathPicture picture = trace(world, view, settings, 256);
      const double mean = mean_of(picture);
      INFO("roughness " << roughness << ", metalness " << metalness << ": " << mean);
      CHECK(mean < 1.002);
      // Light between facets is traced only once. So rough metal loses the light reflected back and forth there. No
      // other material loses much.
      CHECK(mean > (metalness == 0 ? 0.99 : roughness < 0.2f ? 0.999 : 0.7));
    }
}

TEST_CASE("paths: in a furnace a white sponge glows like the walls once light may bounce often, and never brighter",
          "[shader-alone]") {
  Device* device = test::test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  for (const test::SceneKind& kind : test::scene_kinds())
    if (std::string_view(kind.name) == "menger sponge") REQUIRE(world.fill(kind));
  world.palette.materials.fill(diffuse_white());
  RenderSettings settings = furnace(24, 16);
  const View view = fitted(world, 24, 16);
  double before = 0;
  for (const uint32_t bounces : {1u, 4u, 128u}) {
    settings.bounces = bounces;
    const double mean = mean_of(trace(world, view, settings, 32));
    INFO(bounces << " bounces");
    CHECK(mean > before);
    CHECK(mean < 1.02);
    before = mean;
  }
  CHECK(before > 0.98);
}

TEST_CASE("paths: white fog in a furnace cannot be seen", "[shader-alone]") {
  Device* device = test::test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  fill_box(world, {-5, 0, -3}, {6, 9, 4}, 1);
  world.palette.materials[1] = diffuse_white();
  RenderSettings settings = furnace(16, 12);
  settings.fog_distance = 12;
  settings.bounces = 256;
  CHECK(mean_of(trace(world, fitted(world, 16, 12), settings, 256)) == Approx(1).margin(0.03));
}

TEST_CASE("paths: a glowing wall lights a floor as Lambert's formula says", "[shader-alone]") {
  Device* device = test::test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  fill_box(world, {0, 0, 0}, {63, 0, 63}, 1);
  fill_box(world, {-1, 1, 20}, {-1, 24, 43}, 2);
  world.palette.materials[1] = diffuse_white(188);
  world.palette.materials[2] = diffuse_white();
  world.palette.materials[2].emission = 4;
  RenderSettings settings = furnace(8, 8);
  settings.sky_strength = 0;
  settings.bounces = 1;
  const std::vector<Vec> wall{{0, 1, 20}, {0, 25, 20}, {0, 25, 44}, {0, 1, 44}};
  for (const double x : {6.5, 16.5, 40.5}) {
    const double expected = linear(188) * 4 * form_factor({x, 1, 32}, {0, 1, 0}, wall);
    const double got = mean_of(trace(world, down_at(x, 1, 32, 0.05, 8, 8), settings, 1024));
    INFO("at x = " << x);
    CHECK(got == Approx(expected).epsilon(0.015));
  }
}

TEST_CASE(
    "paths: the sun on a floor is its strength times the cosine, in a block's shadow nothing, behind glass what "
    "it lets through",
    "[shader-alone]") {
  Device* device = test::test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  fill_box(world, {0, 0, 0}, {95, 0, 31}, 1);
  fill_box(world, {4, 12, 4}, {27, 12, 27}, 2);   // an awning of glass
  fill_box(world, {68, 12, 4}, {91, 12, 27}, 1);  // and an opaque one
  world.palette.materials[1] = diffuse_white(188);
  world.palette.materials[2] = diffuse_white();
  world.palette.materials[2].transparency = 0.75f;
  world.palette.materials[2].roughness = 0;
  RenderSettings settings = furnace(4, 4);
  settings.sky_strength = 0;
  settings.bounces = 0;
  settings.sun_strength = 2.5f;
  const float sun[3] = {0, 0.8f, 0.6f};
  std::copy_n(sun, 3, settings.sun_direction);
  const auto at = [&](double x) {
    // The view is from the side, under the awnings.
    return mean_of(trace(world, look_at({x, 6, 150}, {x, 1, 15}, 0.02, 4, 4), settings, 256));
  };
  const double open = linear(188) * 2.5 * 0.8;
  CHECK(at(48) == Approx(open).epsilon(0.003));
  CHECK(at(80) == Approx(0).margin(1e-6));
  // A. Fresnel's formulae. Light reflected back and forth between a pane's two faces leaves in the end.
  const double inside = std::sqrt(1 - 0.36 / 2.25), across = (0.8 - 1.5 * inside) / (0.8 + 1.5 * inside),
               along = (1.5 * 0.8 - inside) / (1.5 * 0.8 + inside);
  const double back = (across * across + along * along) / 2;
  CHECK(at(16) == Approx(open * 0.75 * (1 - back) / (1 + back)).epsilon(0.003));
}

TEST_CASE("paths: sixteen times the paths have a quarter of the error, or less", "[shader-alone]") {
  Device* device = test::test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  fill_box(world, {0, 0, 0}, {31, 0, 31}, 1);
  fill_box(world, {6, 1, 6}, {13, 9, 13}, 1);
  fill_box(world, {20, 1, 18}, {24, 4, 22}, 2);
  world.palette.materials[1] = diffuse_white(200);
  world.palette.materials[2] = diffuse_white();
  world.palette.materials[2].emission = 3;
  RenderSettings settings;
  settings.width = 24;
  settings.height = 16;
  const View view = fitted(world, 24, 16);
  settings.frame_seed = 99;
  const PathPicture reference = trace(world, view, settings, 2048);
  settings.frame_seed = 0;
  const auto error = [&](uint32_t paths) {
    const PathPicture picture = trace(world, view, settings, paths);
    double sum = 0;
    for (size_t i = 0; i < picture.radiance.size(); ++i)
      sum += std::pow(double(picture.radiance[i]) - double(reference.radiance[i]), 2);
    return std::sqrt(sum / double(picture.radiance.size()));
  };
  const double few = error(8), many = error(128);
  INFO("root mean square error with 8 paths " << few << ", with 128 " << many);
  CHECK(many < few / 3.6);
}

TEST_CASE("paths: a picture is the same bytes whole, again, and put together step by step as the editor does") {
  Device* device = test::test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  for (const test::SceneKind& kind : test::scene_kinds())
    if (std::string_view(kind.name) == "hills") REQUIRE(world.fill(kind));
  RenderSettings settings;
  settings.width = 37;
  settings.height = 22;  // no multiple of a workgroup
  const View view = fitted(world, 37, 22);
  const PathPicture whole = trace(world, view, settings, 3);
  CHECK(trace(world, view, settings, 3).picture.rgba == whole.picture.rgba);

  auto offscreen = Offscreen::create(*device, "test");
  REQUIRE(offscreen);
  auto ready = world.rendered().publish();
  REQUIRE(ready);
  // One whole path, one in sixteen steps, one whole path.
  std::vector<uint32_t> cuts{16};
  cuts.insert(cuts.end(), 16, 1);
  cuts.push_back(16);
  uint32_t done = 0;
  Picture stepwise;
  for (const uint32_t steps : cuts) {
    auto commands = (*offscreen)->begin();
    REQUIRE(commands);
    auto target = (*offscreen)->begin_image(settings.width, settings.height);
    REQUIRE(target);
    REQUIRE(trace.tracer->record(*commands, world.shared(), view, settings, done, steps, *target, done % 3));
    REQUIRE((*offscreen)->read_image());
    REQUIRE((*offscreen)->submit_and_wait(*ready));
    stepwise = (*offscreen)->picture();
    done += steps;
  }
  CHECK(stepwise.rgba == whole.picture.rgba);
  CHECK_FALSE(trace.tracer->record(VK_NULL_HANDLE, world.shared(), view, settings, 8, 16, VK_NULL_HANDLE, 0));
}

TEST_CASE("paths: layers tell distance, colour and direction of what is seen, and a picture can be stopped") {
  Device* device = test::test_device();
  if (!device) return;
  const Traced trace(*device);
  SceneWorld world(*device);
  fill_box(world, {-20, 0, -20}, {20, 3, 20}, 1);
  world.palette.materials[1] = diffuse_white(188);
  RenderSettings settings = furnace(8, 8);
  const PathPicture picture = trace(world, down_at(0, 4, 0, 1, 8, 8), settings, 4, true);
  REQUIRE(picture.depth.size() == 64);
  for (size_t i = 0; i < 64; ++i) {
    CHECK(picture.depth[i] == Approx(200).epsilon(1e-3));
    CHECK(picture.normal[3 * i + 1] == Approx(1));
    CHECK(picture.albedo[3 * i] == Approx(linear(188)).epsilon(1e-4));
  }
  const std::atomic<bool> stop{true};
  Progress progress;
  progress.cancel = &stop;
  auto stopped = trace.tracer->render(world.rendered(), fitted(world, 8, 8), settings, 4, false, progress);
  REQUIRE(!stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
}

}  // namespace path_tracer_test
