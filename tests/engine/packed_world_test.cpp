// A packed world, and one that gave idle memory back, is drawn as any other is, to the byte: every kind of world, every sharing mode, passes
// that light and paths that scatter.
#include <array>
#include <catch2/catch.hpp>

#include "engine/path_tracer.hpp"
#include "engine/renderer.hpp"
#include "shaders/world_root.h"
#include "tests/engine/scene_world.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/test_data.hpp"

using namespace quarry;
using namespace quarry::engine;
using quarry::test::SceneWorld;

namespace {

View view_of(const Box3& bounds, uint32_t width, uint32_t height) {
  double position[3], target[3];
  fit_camera(bounds.empty() ? Box3{{0, 0, 0}, {8, 8, 8}} : bounds, 45, double(width) / height, 30, 25, position, target);
  return look_at(position, target, 45, width, height);
}

std::array<int32_t, 6> bounds_of(SceneWorld& world) {
  const QryWorldRoot& root = world.shared().root();
  std::array<int32_t, 6> bounds;
  std::copy_n(root.bounds_min, 3, bounds.begin());
  std::copy_n(root.bounds_max, 3, bounds.begin() + 3);
  return bounds;
}

const test::SceneKind& scene(const std::string& name) {
  for (const test::SceneKind& kind : test::scene_kinds())
    if (name == kind.name) return kind;
  FAIL("no scene " << name);
  return test::scene_kinds()[0];
}

}  // namespace

TEST_CASE("packed world: every kind of world looks the same to the byte, shaded and by material, packed, and turned back", "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  RenderSettings settings;
  settings.width = 128;
  settings.height = 72;
  for (const test::SceneKind& kind : test::scene_kinds()) {
    if (kind.quick_rays < 500) continue;
    INFO(kind.name);
    SceneWorld world(*device);
    REQUIRE(world.fill(kind));
    for (size_t i = 1; i < 40; ++i) world.palette.materials[i].transparency = 0.6f;  // rays go on through some
    const View view = view_of(world.world().bounds(), settings.width, settings.height);
    for (const DebugView what : {DebugView::shaded, DebugView::material}) {
      settings.view = what;
      REQUIRE(world.world().unpack());
      const auto editable = (*renderer)->render(world.shared(), world.world(), world.palette, view, settings);
      REQUIRE(editable);
      REQUIRE(world.world().pack());
      const auto packed = (*renderer)->render(world.shared(), world.world(), world.palette, view, settings);
      REQUIRE(packed);
      CHECK((packed->rgba == editable->rgba));
      REQUIRE(world.world().packed());  // drawing is reading
      REQUIRE(world.world().unpack());
      const auto again = (*renderer)->render(world.shared(), world.world(), world.palette, view, settings);
      REQUIRE(again);
      CHECK((again->rgba == editable->rgba));
    }
  }
}

TEST_CASE("packed world: in every sharing mode an edit of a packed world is seen, and the device holds less while it is packed", "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  RenderSettings settings;
  settings.width = 128;
  settings.height = 72;
  for (const SharingMode mode : {SharingMode::host_import, SharingMode::staged, SharingMode::zero_copy}) {
    if (auto choice = choose_sharing(*device, mode); !choice) {
      test::skip(choice.error().message);
      continue;
    }
    INFO(to_string(mode));
    SceneWorld packed(*device, mode), editable(*device, mode);
    const View view = view_of({{-100, 0, -100}, {350, 140, 160}}, settings.width, settings.height);
    const auto picture_of = [&](SceneWorld& world) {
      auto picture = (*renderer)->render(world.shared(), world.world(), world.palette, view, settings);
      REQUIRE(picture);
      return std::move(picture->rgba);
    };
    REQUIRE(packed.fill(scene("hills")));
    REQUIRE(editable.fill(scene("hills")));
    std::vector<uint8_t> last;
    for (int round = 0; round < 3; ++round) {
      INFO("round " << round);
      REQUIRE(packed.world().pack());
      std::vector<uint8_t> picture = picture_of(packed);
      CHECK((picture == picture_of(editable)));
      CHECK((picture != last));
      CHECK((bounds_of(packed) == bounds_of(editable)));  // rays start at them: whatever the edits were
      packed.shared().frame_completed(uint64_t(1) << 40);  // nothing is under way
      editable.shared().frame_completed(uint64_t(1) << 40);
      CHECK((picture_of(packed) == picture));
      CHECK(packed.shared().device_bytes() < editable.shared().device_bytes());
      last = std::move(picture);
      std::vector<std::pair<Int3, uint8_t>> edit;
      for (int y = 0; y < 60; ++y)
        for (int z = 0; z < 12; ++z)
          for (int x = 0; x < 12; ++x) edit.push_back({{20 + x + 30 * round, y, 40 + z}, uint8_t(round == 1 ? 0 : 33 + round)});
      edit.push_back({{-300, 200, 3}, uint8_t(round == 0 ? 9 : 0)});  // the world becomes larger, and smaller again
      REQUIRE(packed.set(edit));
      REQUIRE(editable.set(edit));
      REQUIRE_FALSE(packed.world().packed());
    }
  }
}

TEST_CASE("fitted world: in every sharing mode it looks as before, before and after edits, and the device holds what the world does", "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  RenderSettings settings;
  settings.width = 128;
  settings.height = 72;
  for (const SharingMode mode : {SharingMode::host_import, SharingMode::staged, SharingMode::zero_copy}) {
    if (auto choice = choose_sharing(*device, mode); !choice) {
      test::skip(choice.error().message);
      continue;
    }
    INFO(to_string(mode));
    SceneWorld fitted(*device, mode), other(*device, mode);
    const View view = view_of({{-100, 0, -100}, {350, 140, 160}}, settings.width, settings.height);
    const auto picture_of = [&](SceneWorld& world) {
      auto picture = (*renderer)->render(world.shared(), world.world(), world.palette, view, settings);
      REQUIRE(picture);
      return std::move(picture->rgba);
    };
    REQUIRE(fitted.fill(scene("hills")));
    REQUIRE(other.fill(scene("hills")));
    std::vector<uint8_t> last;
    for (int round = 0; round < 4; ++round) {
      INFO("round " << round);
      if (round % 2) (void)picture_of(fitted);  // the device has it already, in the memory that it is about to leave
      REQUIRE(fitted.world().fit());
      std::vector<uint8_t> picture = picture_of(fitted);
      CHECK((picture == picture_of(other)));
      CHECK((picture != last));
      fitted.shared().frame_completed(uint64_t(1) << 40);  // nothing is under way
      CHECK((picture_of(fitted) == picture));
      CHECK(fitted.shared().device_bytes() <= fitted.world().size_bytes());
      last = std::move(picture);
      std::vector<std::pair<Int3, uint8_t>> edit;  // adds bricks, and changes some that lie in the last slab
      for (int y = 0; y < 60; ++y)
        for (int z = 0; z < 24; ++z)
          for (int x = 0; x < 12; ++x) edit.push_back({{20 + x + 30 * round, y, 40 + z}, uint8_t(round == 1 ? 0 : 33 + round)});
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
  REQUIRE(world.fill(scene("hills")));
  for (size_t i = 1; i < 60; ++i) world.palette.materials[i].transparency = 0.7f;
  const View view = view_of(world.world().bounds(), settings.width, settings.height);
  const auto editable = (*tracer)->render(world.shared(), world.world(), world.palette, view, settings, 4, false);
  REQUIRE(editable);
  REQUIRE(world.world().pack());
  const auto packed = (*tracer)->render(world.shared(), world.world(), world.palette, view, settings, 4, false);
  REQUIRE(packed);
  CHECK((packed->picture.rgba == editable->picture.rgba));
}
