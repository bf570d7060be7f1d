// SPDX-License-Identifier: Apache-2.0
// tile_test.cpp - a picture made of tiles, each in its own submission, is bit for bit the picture made at once: in
// every view and with any cuts.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <random>

#include "engine/pictures/path_tracer.hpp"
#include "engine/render/offscreen.hpp"
#include "tests/engine/scene_world.hpp"
#include "tests/engine/test_device.hpp"

namespace tile_test {

using namespace quarry;
using namespace quarry::engine;
using quarry::test::SceneWorld;

namespace {

// Hills, glass, mirrors and lamps, so that every pass has something to do.
void tiled_things(const test::Put& put) {
  for (int z = 0; z < 72; ++z)
    for (int x = 0; x < 72; ++x)
      for (int y = 0; y < 2 + (x * x / 97 + z * z / 61) % 5; ++y)
        put({x, y, z}, uint8_t(((x / 8 + z / 8) & 1) ? 1 : 2));
  for (int z = 10; z < 60; ++z)
    for (int y = 6; y < 30; ++y)
      for (int x = 8; x < 12; ++x) put({x + 14 * ((z / 10) % 4), y, z}, uint8_t(3 + (z / 10) % 4));
}

Palette tiled_palette() {
  Palette palette = Palette::standard();
  const auto set = [&](size_t i, uint8_t r, uint8_t g, uint8_t b, float roughness, float metalness, float emission,
                       float transparency) {
    palette.materials[i] = {r, g, b, 255, roughness, metalness, emission, transparency, 1.5f, {0, 0}};
  };
  set(1, 205, 190, 150, 0.95f, 0, 0, 0);
  set(2, 120, 100, 82, 0.95f, 0, 0, 0);
  set(3, 255, 200, 90, 0.2f, 1, 0, 0);
  set(4, 190, 235, 220, 0.05f, 0, 0, 0.85f);
  set(5, 200, 55, 45, 0.1f, 0, 0, 0);
  set(6, 255, 180, 80, 0.9f, 0, 5, 0);
  return palette;
}

// Tiles cut at random places, in any order. Each pixel is in one tile. Corners are multiples of `grain`.
std::vector<Tile> cuts_of(uint32_t width, uint32_t height, uint32_t grain, std::mt19937& random) {
  std::vector<Tile> done, open{{0, 0, width, height}};
  while (!open.empty()) {
    const Tile t = open.back();
    open.pop_back();
    const bool wide = t.width >= t.height;
    const uint32_t side = wide ? t.width : t.height;
    if (side <= 2 * grain || uint64_t(t.width) * t.height < 400 ||
        (uint64_t(t.width) * t.height < 4000 && random() % 3 == 0)) {
      done.push_back(t);
      continue;
    }
    const uint32_t cut = grain * uint32_t(1 + random() % ((side - 1) / grain));
    open.push_back(wide ? Tile{t.x, t.y, cut, t.height} : Tile{t.x, t.y, t.width, cut});
    open.push_back(wide ? Tile{t.x + cut, t.y, t.width - cut, t.height}
                        : Tile{t.x, t.y + cut, t.width, t.height - cut});
  }
  std::shuffle(done.begin(), done.end(), random);
  return done;
}

// Records each of `tiles` into one image, in one submission each.
Result<Picture> in_tiles(Device& device, uint32_t width, uint32_t height, const std::vector<Tile>& tiles,
                         const std::function<Result<void>(VkCommandBuffer, VkImageView, const Tile&)>& record) {
  QRY_TRY_ASSIGN(auto offscreen, Offscreen::create(device, "a picture in tiles"));
  QRY_TRY_ASSIGN(auto image, TargetImage::create(device, width, height));
  QRY_TRY_ASSIGN(auto pixels, DeviceMemory::create(device, BufferMemory::host_readback, uint64_t(width) * height * 4,
                                                   "a picture in tiles"));
  const VulkanFunctions& vk = device.vk();
  for (size_t i = 0; i < tiles.size(); ++i) {
    QRY_TRY_ASSIGN(auto commands, offscreen->begin());
    image_barrier(vk, commands, image->image(), i ? VK_IMAGE_LAYOUT_GENERAL : VK_IMAGE_LAYOUT_UNDEFINED,
                  VK_IMAGE_LAYOUT_GENERAL, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                  VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT);
    QRY_TRY(record(commands, image->view(), tiles[i]));
    if (i + 1 == tiles.size()) {
      image_barrier(vk, commands, image->image(), VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                    VK_ACCESS_TRANSFER_READ_BIT);
      VkBufferImageCopy copy{};
      copy.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
      copy.imageExtent = {width, height, 1};
      vk.vkCmdCopyImageToBuffer(commands, image->image(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, pixels->buffer(), 1,
                                &copy);
      host_read_barrier(vk, commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
    }
    QRY_TRY(offscreen->submit_and_wait({}));
  }
  Picture picture;
  picture.width = width;
  picture.height = height;
  const auto* first = static_cast<const uint8_t*>(pixels->mapped());
  picture.rgba.assign(first, first + uint64_t(width) * height * 4);
  return picture;
}

size_t unlike(const Picture& a, const Picture& b) {
  size_t count = a.rgba.size() == b.rgba.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.rgba.size(), b.rgba.size()); i += 4)
    count += std::memcmp(&a.rgba[i], &b.rgba[i], 4) != 0;
  return count;
}

View view_from(const World& world, uint32_t width, uint32_t height) {
  glm::dvec3 position, target;
  fit_camera(world.bounds(), 40, double(width) / height, 35, 28, position, target);
  return look_at(position, target, 40, width, height);
}

struct Case {
  const char* name;
  std::function<void(RenderSettings&)> set;
};

const Case kCases[] = {
    {"shaded", [](RenderSettings&) {}},
    {"shaded, four rays a pixel", [](RenderSettings& s) { s.samples = 2; }},
    {"shaded, outline, soft shadows",
     [](RenderSettings& s) {
       s.highlight = true, s.highlight_box = {{20, 2, 20}, {40, 20, 44}}, s.shadow_rays = 3;
     }},
    {"shaded, ground, no background",
     [](RenderSettings& s) { s.ground = true, s.background = Background::none, s.samples = 2; }},
    {"shaded, fog, no ambient rays", [](RenderSettings& s) { s.fog_distance = 90, s.ambient_rays = 0; }},
    {"shaded, from beams", [](RenderSettings& s) { s.beams = Beams::always; }},
    {"albedo", [](RenderSettings& s) { s.view = DebugView::albedo; }},
    {"normals", [](RenderSettings& s) { s.view = DebugView::normals; }},
    {"depth", [](RenderSettings& s) { s.view = DebugView::depth; }},
    {"bricks", [](RenderSettings& s) { s.view = DebugView::bricks, s.samples = 2; }},
    {"probe depth", [](RenderSettings& s) { s.view = DebugView::probe_depth; }},
    {"steps", [](RenderSettings& s) { s.view = DebugView::steps; }},
    {"material", [](RenderSettings& s) { s.view = DebugView::material; }},
    {"load", [](RenderSettings& s) { s.view = DebugView::load; }},
};

}  // namespace

TEST_CASE("tiles: a picture made of them is the picture made at once, bit for bit, in every view and at odd sizes") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  std::mt19937 random(5);
  for (const SharingMode mode : test::possible_modes(*device)) {
    SceneWorld world(*device, mode);
    REQUIRE(world.fill({"things", 0, tiled_things}));
    world.palette = tiled_palette();
    size_t number = 0;
    for (const Case& c : kCases) {
      const bool odd = number++ % 2;
      RenderSettings settings;
      settings.width = odd ? 131 : 128;
      settings.height = odd ? 77 : 96;
      c.set(settings);
      INFO(c.name << ", sharing " << int(mode));
      const View view = view_from(world.world(), settings.width, settings.height);
      const auto whole = (*renderer)->render(world.rendered(), view, settings);
      REQUIRE(whole);
      const std::vector<Tile> tiles = cuts_of(settings.width, settings.height, 1, random);
      REQUIRE(tiles.size() > 2);
      const auto pieces =
          in_tiles(*device, settings.width, settings.height, tiles,
                   [&](VkCommandBuffer commands, VkImageView target, const Tile& tile) {
                     return (*renderer)->record(commands, world.shared(), view, settings, target, 0, tile);
                   });
      REQUIRE(pieces);
      CHECK(unlike(*whole, *pieces) == 0);
    }
  }
}

TEST_CASE("tiles: what lies outside the tile is left as it is") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  SceneWorld world(*device);
  REQUIRE(world.fill({"things", 0, tiled_things}));
  RenderSettings settings;
  settings.width = 96;
  settings.height = 64;
  const View view = view_from(world.world(), settings.width, settings.height),
             other = look_at({-90, 70, -80}, {36, 8, 36}, 50, 96, 64);
  const auto before = (*renderer)->render(world.rendered(), view, settings);
  const auto after = (*renderer)->render(world.rendered(), other, settings);
  REQUIRE((before && after));
  const Tile tile{21, 13, 37, 29};
  // Records the whole picture first, then one tile with another view.
  const auto mixed = in_tiles(
      *device, 96, 64, {{0, 0, 96, 64}, tile}, [&](VkCommandBuffer commands, VkImageView target, const Tile& t) {
        return (*renderer)->record(commands, world.shared(), t == tile ? other : view, settings, target, 0, t);
      });
  REQUIRE(mixed);
  size_t wrong = 0;
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 96; ++x) {
      const bool inside = x >= tile.x && y >= tile.y && x < tile.x + tile.width && y < tile.y + tile.height;
      const size_t at = (size_t(y) * 96 + x) * 4;
      wrong += std::memcmp(&mixed->rgba[at], &(inside ? *after : *before).rgba[at], 4) != 0;
    }
  CHECK(wrong == 0);
}

TEST_CASE("tiles: light paths in tiles are the light paths of the whole picture, step by step") {
  Device* device = test::test_device();
  if (!device) return;
  auto tracer = PathTracer::create(*device);
  REQUIRE(tracer);
  SceneWorld world(*device);
  REQUIRE(world.fill({"things", 0, tiled_things}));
  world.palette = tiled_palette();
  RenderSettings settings;
  settings.width = 61;
  settings.height = 47;
  settings.bounces = 3;
  const View view = view_from(world.world(), settings.width, settings.height);
  const auto ready = world.rendered().publish();
  REQUIRE(ready);
  REQUIRE((*tracer)->prepare(world.rendered()));
  std::mt19937 random(11);
  // Nine single steps come first, so that some pixels have a path and some show a neighbour's. Then the rest of two
  // paths follows, then a whole path.
  for (const uint32_t single : {9u, 32u}) {
    const uint32_t path = PathTracer::kStepsAPath;
    const auto picture = [&](bool tiled) {
      std::vector<Tile> all;
      std::vector<uint32_t> first, count;
      const auto add = [&](uint32_t first_step, uint32_t steps) {
        for (const Tile& tile : tiled ? cuts_of(settings.width, settings.height, 4, random)
                                      : std::vector<Tile>{{0, 0, settings.width, settings.height}})
          all.push_back(tile), first.push_back(first_step), count.push_back(steps);
      };
      for (uint32_t step = 0; step < single; ++step) add(step, 1);
      if (single % path == 0) add(single, path);
      size_t at = 0;
      return in_tiles(*device, settings.width, settings.height, all,
                      [&](VkCommandBuffer commands, VkImageView target, const Tile& tile) {
                        const size_t now = at++;
                        return (*tracer)->record(commands, world.shared(), view, settings, first[now], count[now],
                                                 target, 0, tiled ? std::optional(tile) : std::nullopt);
                      });
    };
    const auto whole = picture(false), pieces = picture(true);
    REQUIRE(whole);
    REQUIRE(pieces);
    INFO(single << " single steps");
    CHECK(unlike(*whole, *pieces) == 0);
  }
}

TEST_CASE(
    "tiles: one that is no part of the picture is refused, and so is one of light paths that cuts a block of pixels") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  auto tracer = PathTracer::create(*device);
  REQUIRE((renderer && tracer));
  SceneWorld world(*device);
  REQUIRE(world.fill({"things", 0, tiled_things}));
  RenderSettings settings;
  settings.width = 64;
  settings.height = 48;
  const View view = view_from(world.world(), 64, 48);
  REQUIRE(world.rendered().publish());
  for (const Tile& tile :
       {Tile{0, 0, 65, 1}, Tile{0, 0, 0, 4}, Tile{64, 0, 1, 1}, Tile{60, 40, 4, 9}, Tile{8, 8, ~0u, 8}}) {
    const auto refused = (*renderer)->record(VK_NULL_HANDLE, world.shared(), view, settings, VK_NULL_HANDLE, 0, tile);
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::invalid_argument);
    CHECK(refused.error().message.find("64x48") != std::string::npos);
  }
  for (const Tile& tile : {Tile{2, 0, 8, 8}, Tile{0, 0, 10, 48}, Tile{0, 4, 64, 45}})
    CHECK(!(*tracer)->record(VK_NULL_HANDLE, world.shared(), view, settings, 0, 1, VK_NULL_HANDLE, 0, tile));
}

}  // namespace tile_test
