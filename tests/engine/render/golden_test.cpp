// SPDX-License-Identifier: Apache-2.0
// golden_test.cpp - compares with golden pictures that a person has found right. They are small, in
// tests/engine/golden.
// QUARRY_GOLDEN_WRITE=1 writes them anew; look at them before committing. QUARRY_GOLDEN_DIR is their folder when the
// binary runs away from its source tree. On failure the picture and the difference are written to one folder and their
// paths printed.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "engine/pictures/png_file.hpp"
#include "engine/render/ray_marcher.hpp"
#include "hashgrid/pairs/view.hpp"
#include "tests/engine/picture_compare.hpp"
#include "tests/engine/scene_world.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/test_data.hpp"

namespace golden_test {

using namespace quarry;
using namespace quarry::engine;
using quarry::test::SceneWorld;

namespace {

namespace fs = std::filesystem;

fs::path golden_dir() {
  if (const char* given = std::getenv("QUARRY_GOLDEN_DIR")) return given;
  return QRY_GOLDEN_DIR;
}

// A chequered floor with balls of every kind of material, and a wall.
void things(const test::Put& put) {
  for (int z = 0; z < 112; ++z)
    for (int x = 0; x < 112; ++x)
      for (int y = 0; y < 2; ++y) put({x, y, z}, ((x / 8 + z / 8) & 1) ? 1 : 2);
  const auto ball = [&](Int3 c, int r, uint8_t material) {
    for (int z = -r; z <= r; ++z)
      for (int y = -r; y <= r; ++y)
        for (int x = -r; x <= r; ++x)
          if (x * x + y * y + z * z <= r * r) put(c + Int3{x, y, z}, material);
  };
  ball({28, 18, 34}, 16, 3);
  ball({70, 18, 30}, 15, 4);
  ball({92, 14, 80}, 11, 5);
  ball({36, 12, 82}, 10, 6);
  ball({64, 20, 66}, 17, 7);
  for (int y = 2; y < 40; ++y)
    for (int z = 2; z < 14; ++z)
      for (int x = 100; x < 106; ++x) put({x, y, z}, 8);
}

Palette things_palette() {
  Palette palette = Palette::standard();
  const auto set = [&](int i, uint8_t r, uint8_t g, uint8_t b, float roughness, float metalness, float emission,
                       float transparency) {
    palette.materials[size_t(i)] = {r, g, b, 255, roughness, metalness, emission, transparency, 1.5f, {0, 0}};
  };
  set(1, 205, 190, 150, 0.95f, 0, 0, 0);
  set(2, 120, 100, 82, 0.95f, 0, 0, 0);
  set(3, 255, 200, 90, 0.3f, 1, 0, 0);        // gold
  set(4, 190, 235, 220, 0.05f, 0, 0, 0.85f);  // glass
  set(5, 200, 55, 45, 0.4f, 0, 0, 0);         // lacquer
  set(6, 255, 180, 80, 0.9f, 0, 5, 0);        // lamp
  set(7, 228, 230, 236, 0.15f, 1, 0, 0);      // steel
  set(8, 236, 238, 242, 0.9f, 0, 0, 0);
  return palette;
}

struct Golden {
  const char* name;
  const char* scene;  // "" : things
  DebugView view;
  float sun[3];
  bool highlight;
};

constexpr Golden kGolden[] = {
    {"things", "", DebugView::shaded, {-0.43f, 0.77f, -0.37f}, false},
    {"things_evening", "", DebugView::shaded, {-0.8f, 0.12f, 0.5f}, true},
    {"things_normals", "", DebugView::normals, {0, 1, 0}, false},
    {"things_albedo", "", DebugView::albedo, {0, 1, 0}, false},
    {"menger", "menger sponge", DebugView::shaded, {-0.43f, 0.77f, 0.6f}, false},
    {"hills_bricks", "hills", DebugView::bricks, {0, 1, 0}, false},
    {"hills_depth", "hills", DebugView::depth, {0, 1, 0}, false},
    {"hills_steps", "hills", DebugView::steps, {0, 1, 0}, false},
};

}  // namespace

TEST_CASE("golden: each scene and view looks as it did when a person found it right") {
  Device* device = test::test_device();
  if (!device) return;
  const bool write = std::getenv("QUARRY_GOLDEN_WRITE") != nullptr;
  if (!write && !fs::exists(golden_dir()))
    return test::skip("no golden pictures at " + golden_dir().string() + ": set QUARRY_GOLDEN_DIR");
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  for (const Golden& golden : kGolden) {
    INFO(golden.name);
    SceneWorld world(*device);
    const std::string_view name = golden.scene;
    if (!name.empty()) REQUIRE(world.fill(test::scene_kind(name)));
    else {
      REQUIRE(world.fill({"things", 0, things}));
      world.palette = things_palette();
    }
    RenderSettings settings;
    settings.width = 192;
    settings.height = 128;
    settings.samples = golden.view == DebugView::shaded ? 2 : 1;
    settings.view = golden.view;
    std::copy_n(golden.sun, 3, settings.sun_direction);
    settings.highlight = golden.highlight;
    settings.highlight_box = {{52, 2, 54}, {76, 40, 78}};
    glm::dvec3 position, target;
    fit_camera(world.world().bounds(), 40, 1.5, 35, 28, position, target);
    auto picture = (*renderer)->render(world.rendered(), look_at(position, target, 40, 192, 128), settings);
    REQUIRE(picture);
    const fs::path file = golden_dir() / (std::string(golden.name) + ".png");
    if (write) {
      REQUIRE(write_png(*picture, file));
      continue;
    }
    auto expected = read_png(file);
    REQUIRE(expected);
    const test::PictureDifference d = test::compare_pictures(*expected, *picture);
    // Another driver rounds differently. Single pixels at edges may differ, but not the picture.
    const bool same = d.mean < 0.6 && d.far < expected->width * expected->height / 100;
    if (!same) {
      const fs::path dir = fs::temp_directory_path();
      (void)write_png(*picture, dir / (std::string("quarry-golden-") + golden.name + "-got.png"));
      (void)write_png(test::difference_picture(*expected, *picture),
                      dir / (std::string("quarry-golden-") + golden.name + "-difference.png"));
      std::printf("golden %s: mean difference %.3f, %llu pixels far off; see %s/quarry-golden-%s-*.png\n", golden.name,
                  d.mean, static_cast<unsigned long long>(d.far), dir.c_str(), golden.name);
    }
    CHECK(same);
  }
}

TEST_CASE("golden: the probe-depth view shows each pixel in the colour of its brick's depth in the table") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  SceneWorld world(*device);
  REQUIRE(world.fill(test::scene_kind("hills")));
  RenderSettings settings;
  settings.width = settings.height = 96;
  settings.view = DebugView::probe_depth;
  glm::dvec3 position, target;
  fit_camera(world.world().bounds(), 40, 1, 35, 40, position, target);
  const View view = look_at(position, target, 40, 96, 96);
  auto picture = (*renderer)->render(world.rendered(), view, settings);
  REQUIRE(picture);
  std::vector<float> origins, directions;
  for (int y = 0; y < 96; ++y)
    for (int x = 0; x < 96; ++x) {
      const float a = (2 * (float(x) + 0.5f) / 96) - 1, b = 1 - (2 * (float(y) + 0.5f) / 96);
      float d[3], length = 0;
      for (int i = 0; i < 3; ++i) d[i] = view.forward[i] + a * view.right[i] + b * view.up[i];
      for (float v : d) length += v * v;
      for (int i = 0; i < 3; ++i) {
        origins.push_back(view.origin[i]);
        directions.push_back(d[i] / std::sqrt(length));
      }
    }
  auto hits = (*renderer)->trace(world.rendered(), origins, directions);
  REQUIRE(hits);
  const hashgrid::GridView grid = world.world().grid().view();
  int shown = 0, told_wrong = 0, blue_wrong = 0;
  for (size_t i = 0; i < hits->size(); ++i) {
    const Hit& hit = (*hits)[i];
    if (hit.t < 0) continue;
    ++shown;
    const hashgrid::Found found = hashgrid::find(grid, brick_key(brick_of(hit.voxel)));
    told_wrong += !found.hit || found.sectors != hit.probe_depth;
    const uint8_t* pixel = &picture->rgba[i * 4];
    // Depth 1 is blue, greater depths are not.
    blue_wrong += (found.sectors == 1) != (pixel[2] > pixel[0] && pixel[2] > pixel[1]);
  }
  CHECK(shown > 1000);
  CHECK(told_wrong == 0);
  CHECK(blue_wrong <= shown / 500);  // a pixel whose ray passes an edge may differ from the traced one
}

TEST_CASE("golden: the load view shows each pixel in the colour of how full its brick's page is") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  for (const int bricks : {40, 2000}) {
    SceneWorld world(*device);
    std::vector<std::pair<Int3, uint8_t>> voxels;
    voxels.reserve(size_t(bricks));
    for (int i = 0; i < bricks; ++i) voxels.push_back({{i % 50 * 8, 0, i / 50 * 8}, 1});
    REQUIRE(world.set(voxels));
    const hashgrid::GridView grid = world.world().grid().view();
    REQUIRE(grid.page_count == 1);
    RenderSettings settings;
    settings.width = settings.height = 5;
    settings.view = DebugView::load;
    // Looks straight down at one voxel, whose upper face is seen.
    const glm::dvec3 eye(8.5, 60, 0.5), at(8.5, 0, 0.5);
    auto picture = (*renderer)->render(world.rendered(), look_at(eye, at, 0.2, 5, 5), settings);
    REQUIRE(picture);
    // The colour is between the first two or the fourth and fifth colours of shaders/library/ramp.glsl. The face's
    // brightness is 0.72 + 0.28 * 0.84/|(0.35, 0.84, 0.42)|.
    const float stops[8][3] = {{0.05f, 0.03f, 0.20f}, {0.12f, 0.20f, 0.62f}, {0.05f, 0.46f, 0.63f},
                               {0.12f, 0.62f, 0.38f}, {0.56f, 0.75f, 0.18f}, {0.95f, 0.78f, 0.15f},
                               {0.97f, 0.45f, 0.15f}, {1, 0.92f, 0.88f}};
    const double place = double(bricks) / 4064 * 7, part = place - int(place),
                 shape = 0.72 + 0.28 * 0.84 / std::sqrt(0.35 * 0.35 + 0.84 * 0.84 + 0.42 * 0.42);
    for (size_t c = 0; c < 3; ++c) {
      const double ramp = stops[int(place)][c] * (1 - part) + stops[int(place) + 1][c] * part;
      const double light = (ramp <= 0.04045 ? ramp / 12.92 : std::pow((ramp + 0.055) / 1.055, 2.4)) * shape;
      const double shown = 255 * (light <= 0.0031308 ? light * 12.92 : 1.055 * std::pow(light, 1 / 2.4) - 0.055);
      INFO(bricks << " bricks, channel " << c);
      CHECK(std::abs(picture->rgba[(2 * 5 + 2) * 4 + c] - shown) < 1.6);
    }
  }
}

TEST_CASE(
    "golden: views of labels show the world's shape: the foot of a wall is darker than the open floor, unless no "
    "rays are asked for") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  SceneWorld world(*device);
  std::vector<std::pair<Int3, uint8_t>> voxels;
  for (int z = 0; z < 32; ++z)
    for (int x = 0; x < 96; ++x)
      for (int y = 0; y <= (x < 8 ? 40 : 0); ++y) voxels.push_back({{x, y, z}, 1});
  REQUIRE(world.set(voxels));
  RenderSettings settings;
  settings.width = settings.height = 8;
  const auto seen = [&](double x) {
    const glm::dvec3 eye(x, 90, 12.5), at(x, 0, 12.5);  // straight down at the middle of a brick
    auto picture = (*renderer)->render(world.rendered(), look_at(eye, at, 0.3, 8, 8), settings);
    REQUIRE(picture);
    int sum = 0;
    for (size_t i = 0; i < picture->rgba.size(); ++i) sum += i % 4 == 3 ? 0 : picture->rgba[i];
    return sum;
  };
  for (const DebugView view : {DebugView::material, DebugView::probe_depth, DebugView::load}) {
    INFO(debug_view_names()[size_t(view)]);
    settings.view = view;
    settings.ambient_rays = 4;
    CHECK(seen(8.5) < 0.9 * seen(76.5));
    settings.ambient_rays = 0;
    CHECK(seen(8.5) == seen(76.5));
  }
  // Steps, colours and distances are shown unchanged.
  settings.view = DebugView::albedo;
  settings.ambient_rays = 4;
  CHECK(seen(8.5) == seen(76.5));
}

TEST_CASE("golden: the views are told apart by name, and a wrong name gets the nearest right one") {
  for (size_t i = 0; i < debug_view_names().size(); ++i) {
    auto view = debug_view_from_name(debug_view_names()[i]);
    REQUIRE(view);
    CHECK(size_t(*view) == i);
  }
  auto wrong = debug_view_from_name("normal");
  REQUIRE(!wrong);
  CHECK(wrong.error().code == ErrorCode::bad_usage);
  CHECK(wrong.error().message.find("'normals'") != std::string::npos);
}

}  // namespace golden_test
