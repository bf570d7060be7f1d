// SPDX-License-Identifier: Apache-2.0
// packed_world_test.cpp - a packed world, and a world that freed unused memory, give the same pictures as others, byte
// for byte. It tests every kind of world, every sharing mode, lighting passes and scattered paths.
#include <array>
#include <catch2/catch.hpp>

#include "engine/pictures/path_tracer.hpp"
#include "engine/render/ray_marcher.hpp"
#include "shaders/shared/world_root.h"
#include "tests/engine/scene_world.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/test_data.hpp"

namespace packed_world_test {

using namespace quarry;
using namespace quarry::engine;
using quarry::test::SceneWorld;
using quarry::test::view_of;

namespace {

std::array<float, 6> box_of(SceneWorld& world) {
  const QryWorldRoot& root = world.shared().root();
  std::array<float, 6> box;
  std::copy_n(root.box_low, 3, box.begin());
  std::copy_n(root.box_high, 3, box.begin() + 3);
  return box;
}

constexpr uint32_t kWidth = 128, kHeight = 72;

std::vector<uint8_t> picture(Renderer& renderer, SceneWorld& world, const View& view,
                             DebugView what = DebugView::shaded) {
  RenderSettings settings;
  settings.width = kWidth;
  settings.height = kHeight;
  settings.view = what;
  auto made = renderer.render(world.rendered(), view, settings);
  REQUIRE(made);
  return std::move(made->rgba);
}

}  // namespace

TEST_CASE(
    "packed world: every kind of world looks the same to the byte, shaded and by material, packed, and turned back",
    "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  for (const test::SceneKind& kind : test::scene_kinds()) {
    if (kind.quick_rays < 500) continue;
    INFO(kind.name);
    SceneWorld world(*device);
    REQUIRE(world.fill(kind));
    for (size_t i = 1; i < 40; ++i) world.palette.materials[i].transparency = 0.6f;  // rays pass through some materials
    const View view = view_of(world.world().bounds(), kWidth, kHeight);
    for (const DebugView what : {DebugView::shaded, DebugView::material}) {
      REQUIRE(world.world().unpack());
      const auto editable = picture(**renderer, world, view, what);
      REQUIRE(world.world().pack());
      CHECK((picture(**renderer, world, view, what) == editable));
      REQUIRE(world.world().packed());  // drawing only reads
      REQUIRE(world.world().unpack());
      CHECK((picture(**renderer, world, view, what) == editable));
    }
  }
}

TEST_CASE(
    "packed world: in every sharing mode an edit of a packed world is seen, and the device holds less while it "
    "is packed",
    "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  for (const SharingMode mode : test::possible_modes(*device)) {
    INFO(to_string(mode));
    SceneWorld packed(*device, mode), editable(*device, mode);
    const View view = view_of({{-100, 0, -100}, {350, 140, 160}}, kWidth, kHeight);
    const auto picture_of = [&](SceneWorld& world) { return picture(**renderer, world, view); };
    REQUIRE(packed.fill(test::scene_kind("hills")));
    REQUIRE(editable.fill(test::scene_kind("hills")));
    std::vector<uint8_t> last;
    for (int round = 0; round < 3; ++round) {
      INFO("round " << round);
      REQUIRE(packed.world().pack());
      std::vector<uint8_t> now = picture_of(packed);
      CHECK((now == picture_of(editable)));
      CHECK((now != last));
      CHECK((box_of(packed) == box_of(editable)));         // rays start at the boxes; they do not depend on the edits
      packed.shared().frame_completed(uint64_t(1) << 40);  // nothing is in flight
      editable.shared().frame_completed(uint64_t(1) << 40);
      CHECK((picture_of(packed) == now));
      CHECK(packed.shared().device_bytes() < editable.shared().device_bytes());
      last = std::move(now);
      std::vector<std::pair<Int3, uint8_t>> edit;
      for (int y = 0; y < 60; ++y)
        for (int z = 0; z < 12; ++z)
          for (int x = 0; x < 12; ++x)
            edit.push_back({{20 + x + 30 * round, y, 40 + z}, uint8_t(round == 1 ? 0 : 33 + round)});
      edit.push_back({{-300, 200, 3}, uint8_t(round == 0 ? 9 : 0)});  // the world grows and shrinks again
      REQUIRE(packed.set(edit));
      REQUIRE(editable.set(edit));
      REQUIRE_FALSE(packed.world().packed());
    }
  }
}

TEST_CASE(
    "fitted world: in every sharing mode it looks as before, before and after edits, and the device holds what "
    "the world does",
    "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  for (const SharingMode mode : test::possible_modes(*device)) {
    INFO(to_string(mode));
    SceneWorld fitted(*device, mode), other(*device, mode);
    const View view = view_of({{-100, 0, -100}, {350, 140, 160}}, kWidth, kHeight);
    const auto picture_of = [&](SceneWorld& world) { return picture(**renderer, world, view); };
    REQUIRE(fitted.fill(test::scene_kind("hills")));
    REQUIRE(other.fill(test::scene_kind("hills")));
    std::vector<uint8_t> last;
    for (int round = 0; round < 4; ++round) {
      INFO("round " << round);
      if (round % 2) (void)picture_of(fitted);  // the device has the world already, in memory that is about to be freed
      REQUIRE(fitted.world().shrink_to_fit());
      std::vector<uint8_t> now = picture_of(fitted);
      CHECK((now == picture_of(other)));
      CHECK((now != last));
      fitted.shared().frame_completed(uint64_t(1) << 40);  // nothing is in flight
      CHECK((picture_of(fitted) == now));
      CHECK(fitted.shared().device_bytes() <= fitted.world().size_bytes());
      last = std::move(now);
      std::vector<std::pair<Int3, uint8_t>> edit;  // adds bricks, and changes some in the last slab
      for (int y = 0; y < 60; ++y)
        for (int z = 0; z < 24; ++z)
          for (int x = 0; x < 12; ++x)
            edit.push_back({{20 + x + 30 * round, y, 40 + z}, uint8_t(round == 1 ? 0 : 33 + round)});
      REQUIRE(fitted.set(edit));
      REQUIRE(other.set(edit));
      CHECK((picture_of(fitted) == picture_of(other)));
    }
  }
}

TEST_CASE("packed world: traced paths are the same to the byte") {
  Device* device = test::test_device();
  if (!device) return;
  auto tracer = PathTracer::create(*device);
  REQUIRE(tracer);
  RenderSettings settings;
  settings.width = 64;
  settings.height = 36;
  SceneWorld world(*device);
  REQUIRE(world.fill(test::scene_kind("hills")));
  for (size_t i = 1; i < 60; ++i) world.palette.materials[i].transparency = 0.7f;
  const View view = view_of(world.world().bounds(), settings.width, settings.height);
  const auto editable = (*tracer)->render(world.rendered(), view, settings, 4, false);
  REQUIRE(editable);
  REQUIRE(world.world().pack());
  const auto packed = (*tracer)->render(world.rendered(), view, settings, 4, false);
  REQUIRE(packed);
  CHECK((packed->picture.rgba == editable->picture.rgba));
}

}  // namespace packed_world_test
