// SPDX-License-Identifier: Apache-2.0
// threads_test.cpp - tests the thread marks of quarry.h, under ThreadSanitizer in the preset `tsan`. Calls that may run
// at once run at once, and give the same results as one thread alone. It also tests quarry.hpp, used as its first
// comment says.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <quarry/quarry.hpp>

#include "tests/test_data.hpp"

namespace threads_test {

namespace {

qry_edit sphere(int32_t x, double radius, uint32_t material, uint32_t mode) {
  qry_edit edit = QRY_EDIT_INIT;
  edit.shape = QRY_SHAPE_SPHERE;
  edit.mode = mode;
  edit.a[0] = x;
  edit.radius = radius;
  edit.material = material;
  return edit;
}

// Makes a short history and returns the voxels at its end, which are the same every time. Catch's macros are not
// thread-safe, so a failure returns no voxels.
std::vector<uint8_t> work(qry::World& world, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    if (!world.edit(sphere(i * 3, 6.5, uint32_t(1 + i % 7), QRY_MODE_ADD)).ok()) return {};
    if (!world.edit(sphere(i * 3 + 2, 4, uint32_t(10 + i % 5), QRY_MODE_PAINT)).ok()) return {};
    const int32_t at[3] = {i, -20, i};
    const uint8_t one = 1;
    if (!world.set_voxels(at, &one, 1).ok() || !world.undo().ok()) return {};
    if (!world.state().ok() || !world.grid_stats().ok()) return {};
  }
  const int32_t min[3] = {-16, -24, -16}, max[3] = {79, 15, 63};
  std::vector<uint8_t> voxels(96 * 40 * 80);
  if (qry_world_read_region(world.get(), min, max, voxels.data(), voxels.size()) != QRY_OK) return {};
  return voxels;
}

qry::Context context_without_device() {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  info.device = QRY_DEVICE_NEVER;
  info.threads = 2;
  auto context = qry::Context::create(info);
  REQUIRE(context.ok());
  return std::move(*context);
}

}  // namespace

TEST_CASE(
    "c_api: contexts on different threads, and worlds of one context on different threads, do not disturb each "
    "other") {
  std::vector<uint8_t> alone;
  {
    qry::Context context = context_without_device();
    auto world = context.create_world();
    REQUIRE(world.ok());
    alone = work(*world, 12);
    REQUIRE_FALSE(alone.empty());
  }
  qry::Context shared = context_without_device();
  std::vector<std::vector<uint8_t>> results(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < results.size(); ++t)
    threads.emplace_back([&, t] {
      qry::Context own;
      qry::Context* context = &shared;
      if (t % 2 == 0) {
        qry_context_info info = QRY_CONTEXT_INFO_INIT;
        info.device = QRY_DEVICE_NEVER;
        auto made = qry::Context::create(info);
        if (!made.ok()) return;
        own = std::move(*made);
        context = &own;
      }
      auto world = context->create_world();
      if (world.ok()) results[t] = work(*world, 12);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) CHECK(result == alone);
}

TEST_CASE("c_api: many threads read one world at once") {
  qry::Context context = context_without_device();
  auto world = context.create_world();
  REQUIRE(world.ok());
  const std::vector<uint8_t> expected = work(*world, 12);
  REQUIRE_FALSE(expected.empty());
  const auto folder = quarry::test::scratch_dir("c_api_threads");
  std::vector<int> good(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < good.size(); ++t)
    threads.emplace_back([&, t] {
      const int32_t min[3] = {-16, -24, -16}, max[3] = {79, 15, 63};
      std::vector<uint8_t> voxels(expected.size());
      qry_grid_stats stats = QRY_GRID_STATS_INIT;
      qry_material material;
      uint64_t bricks = 0;
      int32_t xyz[3] = {3, 0, 0};
      uint8_t voxel = 0;
      const std::string file = (folder / ("world" + std::to_string(t) + ".quarry")).string();
      qry_save_info save = QRY_SAVE_INFO_INIT;
      save.path = file.c_str();
      good[t] = qry_world_read_region(world->get(), min, max, voxels.data(), voxels.size()) == QRY_OK &&
                voxels == expected && qry_world_get_grid_stats(world->get(), &stats) == QRY_OK &&
                qry_world_get_voxels(world->get(), xyz, &voxel, 1) == QRY_OK && voxel != 0 &&
                qry_world_get_materials(world->get(), 1, 1, &material) == QRY_OK &&
                qry_world_list_bricks(world->get(), nullptr, &bricks) == QRY_INCOMPLETE && bricks == stats.live &&
                qry_world_save(world->get(), &save) == QRY_OK;
    });
  for (std::thread& thread : threads) thread.join();
  for (const int g : good) CHECK(g == 1);
}

TEST_CASE("c_api: each thread has its own last error") {
  REQUIRE(qry_world_undo(nullptr, nullptr) == QRY_ERROR_INVALID_ARGUMENT);
  const std::string mine = qry_last_error();
  std::string before, after;
  std::thread([&] {
    before = qry_last_error();
    qry_world_redo(nullptr, nullptr);
    after = qry_last_error();
  }).join();
  CHECK(before.empty());
  CHECK(after.find("qry_world_redo") != std::string::npos);
  CHECK(qry_last_error() == mine);
  CHECK(mine.find("qry_world_undo") != std::string::npos);
}

TEST_CASE("c_api: a message that is cut stays UTF-8 and within its 1023 bytes") {
  qry::Context context = context_without_device();
  for (size_t length : {300u, 301u, 302u, 600u}) {  // a cut at each place within a three-byte character
    std::string path = "/nowhere/";
    path.append(length % 3, 'x');
    for (size_t i = 0; i < length; ++i) path += "\xE2\x82\xAC";
    path += ".vox";
    auto world = context.open_world(path.c_str());
    REQUIRE_FALSE(world.ok());
    const std::string& message = world.message();
    CHECK(message.size() <= 1023);
    for (size_t i = 0; i < message.size(); ++i)
      if (static_cast<unsigned char>(message[i]) == 0xE2) {
        REQUIRE(i + 2 < message.size());
        i += 2;
      } else {
        REQUIRE(static_cast<unsigned char>(message[i]) < 0x80);
      }
  }
}

TEST_CASE("c_api: worlds of one context render on two threads at once, each its own picture") {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  info.device = QRY_DEVICE_NOW;
  info.prefer_device = std::getenv("QUARRY_TEST_DEVICE");
  auto context = qry::Context::create(info);
  if (context.code() == QRY_ERROR_NOT_FOUND || context.code() == QRY_ERROR_MISSING_FEATURE) {
    quarry::test::skip(context.message());
    return;
  }
  INFO(context.message());
  REQUIRE(context.ok());
  const auto picture = [&](uint32_t material, int rounds) -> std::vector<uint8_t> {
    auto world = context->create_world();
    if (!world.ok()) return {};
    std::vector<uint8_t> last;
    for (int i = 0; i < rounds; ++i) {
      if (!world->edit(sphere(i, 5, material, QRY_MODE_FILL)).ok()) return {};
      qry_render_info render = QRY_RENDER_INFO_INIT;
      render.width = render.height = 24;
      render.view = QRY_VIEW_ALBEDO;
      auto camera = world->fit_camera(45, 1, 20, 30);
      if (!camera.ok()) return {};
      render.camera = *camera;
      auto rendered = world->render(render);
      if (!rendered.ok()) return {};
      last = std::move(*rendered);
    }
    return last;
  };
  const std::vector<uint8_t> red = picture(3, 5), blue = picture(90, 5);
  REQUIRE(red.size() == 24 * 24 * 4);
  REQUIRE(red != blue);
  std::vector<uint8_t> first, second;
  std::thread other([&] { second = picture(90, 5); });
  first = picture(3, 5);
  other.join();
  CHECK(first == red);
  CHECK(second == blue);
}

TEST_CASE(
    "c_api: paths of two worlds are traced on two threads at once, a pack and an edit between them, and many "
    "threads read one picture") {
  auto context = qry::Context::create();
  INFO(context.message());
  REQUIRE(context.ok());
  if (const auto device = context->device();
      device.code() == QRY_ERROR_NOT_FOUND || device.code() == QRY_ERROR_MISSING_FEATURE) {
    quarry::test::skip(device.message());
    return;
  }
  const auto trace = [&](qry::Paths& paths, uint32_t material) -> bool {
    auto world = context->create_world();
    if (!world.ok() || !world->edit(sphere(0, 6, material, QRY_MODE_FILL)).ok()) return false;
    qry_paths_info info = QRY_PATHS_INFO_INIT;
    info.width = info.height = 24;
    info.samples = 3;
    info.flags = QRY_PATHS_LAYERS;
    auto camera = world->fit_camera(45, 1, 20, 30);
    if (!camera.ok()) return false;
    info.camera = *camera;
    if (!world->trace_paths(paths, info).ok() || !world->pack().ok() || !world->trace_paths(paths, info).ok())
      return false;
    if (paths.state()->samples != 6) return false;
    return world->edit(sphere(4, 6, material, QRY_MODE_FILL)).ok() && world->trace_paths(paths, info).ok() &&
           paths.state()->samples == 3;
  };
  std::vector<qry::Paths> paths;
  for (int i = 0; i < 4; ++i) {
    auto made = context->create_paths();
    REQUIRE(made.ok());
    CHECK_FALSE(made->color().ok());  // no picture yet
    paths.push_back(std::move(*made));
  }
  REQUIRE(trace(paths[0], 3));
  REQUIRE(trace(paths[1], 90));
  bool good = false;
  std::thread other([&] { good = trace(paths[2], 90); });
  REQUIRE(trace(paths[3], 3));
  other.join();
  REQUIRE(good);
  const auto red = paths[0].radiance(), blue = paths[1].radiance();
  REQUIRE(red.ok());
  CHECK(*red != *blue);
  CHECK(*red == *paths[3].radiance());
  CHECK(*blue == *paths[2].radiance());
  CHECK(*paths[1].albedo() == *paths[2].albedo());
  CHECK(paths[1].normals()->size() == 24 * 24 * 3);
  CHECK(paths[1].depth()->size() == 24 * 24);
  std::vector<int> same(4, 0);
  std::vector<std::thread> readers;
  for (size_t t = 0; t < same.size(); ++t)
    readers.emplace_back([&, t] {
      same[t] =
          *paths[0].radiance() == *red && paths[0].color()->size() == 24 * 24 * 4 && paths[0].state()->samples == 3;
    });
  for (std::thread& reader : readers) reader.join();
  CHECK(same == std::vector<int>(4, 1));
}

TEST_CASE("c_api: the C++ handles free what they hold, once, in any order, and move") {
  auto context = qry::Context::create();
  REQUIRE(context.ok());
  auto world = context->create_world();
  REQUIRE(world.ok());
  qry::World moved = std::move(*world);
  CHECK(world->get() == nullptr);
  REQUIRE(moved.get() != nullptr);
  *context = qry::Context();  // the context is destroyed first
  const int32_t at[3] = {1, 2, 3};
  const uint8_t material = 5;
  auto changed = moved.set_voxels(at, &material, 1);
  REQUIRE(changed.ok());
  CHECK(*changed == 1);
  uint8_t got = 0;
  CHECK(moved.get_voxels(at, &got, 1).ok());
  CHECK(got == 5);
  CHECK(*moved.undo() == 1);
  const auto nothing = moved.undo();
  CHECK(nothing.ok());
  CHECK(nothing.code() == QRY_NOTHING_TO_DO);
  CHECK(*moved.redo() == 1);
  CHECK(moved.state()->voxel_count == 1);
  const auto refused = moved.save("");
  CHECK_FALSE(refused);
  CHECK(std::string(refused.name()) == "QRY_ERROR_INVALID_ARGUMENT");
  CHECK(refused.message().find("path is empty") != std::string::npos);
  const auto missing = qry::Context::create()->open_world("/nowhere/at_all.vox");
  CHECK_FALSE(missing);
  CHECK(missing->get() == nullptr);
}

}  // namespace threads_test
