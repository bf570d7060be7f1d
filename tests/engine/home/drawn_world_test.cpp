// SPDX-License-Identifier: Apache-2.0
// drawn_world_test.cpp - files opened to be drawn from a device's memory: what the host does not keep, and what is said
// when it cannot be.
#include <atomic>
#include <catch2/catch.hpp>

#include "engine/home/drawing.hpp"
#include "engine/home/drawn_world.hpp"
#include "engine/sharing/light_tree.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "voxel/generate/scenes.hpp"
#include "voxel/io/formats.hpp"

namespace drawn_world_test {

using namespace quarry;
using namespace quarry::engine;
namespace fs = std::filesystem;

namespace {

fs::path spheres(const char* name) {
  fs::path file = test::scratch_dir(name) / "spheres.quarry";
  const auto scene = generate("spheres", 64, 1);
  REQUIRE(scene);
  REQUIRE(io::write_scene(*scene, file));
  return file;
}

// The spheres once as they are, then turned and shifted, one over the other, and once hidden.
fs::path turned_spheres(const char* name) {
  fs::path file = test::scratch_dir(name) / "turned.quarry";
  auto scene = generate("spheres", 64, 1);
  REQUIRE(scene);
  for (int32_t i = 1; i < 12; ++i) {
    Instance instance = scene->instances[0];
    instance.rotation.axis = i % 2 ? std::array<uint8_t, 3>{2, 0, 1} : std::array<uint8_t, 3>{1, 0, 2};
    instance.rotation.sign = {int8_t(i % 3 ? 1 : -1), int8_t(i % 4 ? -1 : 1), 1};
    instance.offset = {i * 13 - 80, i % 3 * 8, 40 - i * 11};
    instance.hidden = i == 5;
    scene->instances.push_back(instance);
  }
  REQUIRE(io::write_scene(*scene, file));
  return file;
}

// A request that counts how often the file is read whole.
DrawnWorld::Request request_of(const fs::path& file, Home home, int* reads) {
  DrawnWorld::Request request;
  request.file = file;
  request.home = home;
  request.read = [file, reads](const BrickPool* pool, const DeviceSink* sink) {
    ++*reads;
    io::ReadOptions options;
    options.pool = pool;
    options.sink = sink;
    return io::read_scene(file, options);
  };
  request.check = [](const Scene&) -> Result<void> { return {}; };
  request.otherwise = "; stay at home";
  return request;
}

}  // namespace

TEST_CASE(
    "drawn world: at home on a device the file is not read whole, and the host keeps no brick that shaders read") {
  Device* device = test::test_device();
  if (!device) return;
  const fs::path file = spheres("drawn-straight");
  int reads = 0;
  const auto here = DrawnWorld::open(*device, request_of(file, Home::host, &reads), {}, nullptr);
  REQUIRE(here);
  CHECK(reads == 1);
  CHECK((*here)->home() == Home::host);
  const auto there = DrawnWorld::open(*device, request_of(file, Home::emulated, &reads), {}, nullptr);
  REQUIRE(there);
  CHECK(reads == 1);
  CHECK((*there)->home() == Home::emulated);
  CHECK((*there)->numbers().voxels == (*here)->numbers().voxels);
  CHECK((*there)->numbers().bricks == (*here)->numbers().bricks);
  CHECK((*there)->numbers().bounds == (*here)->numbers().bounds);
  CHECK((*there)->scene().palette == (*here)->scene().palette);
  // Where shaders read the memory of host threads there is no copy; else there is, and it is said.
  const bool copied = choose_sharing(*device)->mode != SharingMode::host_import;
  CHECK(((*there)->home_reason().find("a copy in host memory") != std::string::npos) == copied);
  CHECK((*there)->rendered().world.brick_count() == (copied ? (*here)->numbers().bricks : 0));
  CHECK((*there)->scene().volumes[0].bricks.empty() == !copied);
}

TEST_CASE("drawn world: a device flattens a .quarry of turned instances, of which the host reads no volume whole") {
  Device* device = test::test_device();
  if (!device) return;
  const fs::path file = turned_spheres("drawn-turned");
  int reads = 0;
  const auto here = DrawnWorld::open(*device, request_of(file, Home::host, &reads), {}, nullptr),
             there = DrawnWorld::open(*device, request_of(file, Home::emulated, &reads), {}, nullptr);
  REQUIRE((here && there));
  CHECK(reads == 1);  // by the host
  CHECK((*there)->home() == Home::emulated);
  CHECK((*there)->numbers().voxels == (*here)->numbers().voxels);
  CHECK((*there)->numbers().bricks == (*here)->numbers().bricks);
  CHECK((*there)->numbers().bounds == (*here)->numbers().bounds);
  CHECK((*there)->scene().volumes.size() == 1);
  CHECK((*there)->scene().instances.size() == 1);
  CHECK((*there)->scene().palette == (*here)->scene().palette);
}

TEST_CASE("drawn world: a device without enough memory is no home: who asks for it is told so, and what to do") {
  Device* device = test::test_device();
  if (!device) return;
  int reads = 0;
  DrawnWorld::Request request;
  // Refused at the first allocation, at the last that opening needs, and at all between.
  int refusals = 0;
  for (const fs::path& file : {spheres("drawn-full"), turned_spheres("drawn-full-turned")})
    for (int allowed = 0;; ++allowed) {
      request = request_of(file, Home::emulated, &reads);
      int made = 0;
      request.emulation.before = [&](device::DeviceCall call) {
        return call == device::DeviceCall::allocation && made++ == allowed ? device::Fault::no_memory
                                                                           : device::Fault::none;
      };
      const auto world = DrawnWorld::open(*device, request, {}, nullptr);
      if (made <= allowed) {
        CHECK(world);
        break;
      }
      if (world) continue;  // it went on with less
      ++refusals;
      INFO(world.error().message);
      CHECK(world.error().code == ErrorCode::out_of_memory);
      CHECK(world.error().message.starts_with("no home on a device: "));
      CHECK(world.error().message.ends_with("; stay at home"));
    }
  CHECK(refusals > 15);
  CHECK(reads == 0);
}

TEST_CASE(
    "drawn world: whichever page of a file is damaged, it is refused by the same words at every home, or by none") {
  Device* device = test::test_device();
  if (!device) return;
  const fs::path whole = spheres("drawn-damaged"), damaged = whole.parent_path() / "damaged.quarry";
  const std::vector<uint8_t> bytes = test::file_bytes(whole);
  constexpr size_t kPage = 4096;
  int refused = 0, of_chunks = 0;
  for (size_t page = 0; page < bytes.size() / kPage; ++page) {
    std::vector<uint8_t> changed = bytes;
    changed[page * kPage + kPage - 100] ^= 0x15;
    test::write_bytes(damaged, changed);
    int reads = 0;
    const auto here = DrawnWorld::open(*device, request_of(damaged, Home::host, &reads), {}, nullptr);
    const auto there = DrawnWorld::open(*device, request_of(damaged, Home::emulated, &reads), {}, nullptr);
    CHECK(reads == 1);
    REQUIRE(here.has_value() == there.has_value());
    if (here) continue;
    ++refused;
    of_chunks += here.error().message.find("chunk") != std::string::npos;
    CHECK(here.error().message == there.error().message);
    CHECK(here.error().code == there.error().code);
  }
  CHECK(refused > 3);
  CHECK(of_chunks > 0);
}

TEST_CASE("drawn world: opening tells its progress and is cancelled, at every home") {
  Device* device = test::test_device();
  if (!device) return;
  const fs::path file = spheres("drawn-cancelled");
  int reads = 0;
  std::atomic<bool> cancel{false};
  int reports = 0;
  Progress progress;
  progress.cancel = &cancel;
  progress.report = [&](std::string_view, double) { ++reports; };
  REQUIRE(DrawnWorld::open(*device, request_of(file, Home::emulated, &reads), progress, nullptr));
  CHECK(reports > 0);
  cancel = true;
  for (const Home home : {Home::host, Home::emulated}) {
    const auto world = DrawnWorld::open(*device, request_of(file, home, &reads), progress, nullptr);
    REQUIRE(!world);
    CHECK(world.error().code == ErrorCode::cancelled);
  }
}

TEST_CASE("drawn world: what the check of a scene refuses is not opened, and no other home is tried") {
  Device* device = test::test_device();
  if (!device) return;
  const fs::path file = spheres("drawn-checked");
  for (const Home home : {Home::automatic, Home::host, Home::emulated}) {
    int reads = 0, checks = 0;
    DrawnWorld::Request request = request_of(file, home, &reads);
    request.check = [&](const Scene& scene) -> Result<void> {
      ++checks;
      CHECK(scene.cameras.size() == 1);
      return fail(ErrorCode::bad_usage, "no such camera");
    };
    const auto world = DrawnWorld::open(*device, request, {}, nullptr);
    REQUIRE(!world);
    CHECK(world.error().message == "no such camera");
    CHECK(checks == 1);
    CHECK(reads == (home == Home::host || (home == Home::automatic && !may_be_on_device(home)) ? 1 : 0));
  }
}

TEST_CASE(
    "drawn world: of a device's world the host has only what glows and what touches it, and finds the same lights") {
  Device* device = test::test_device();
  if (!device) return;
  // Lamps of single voxels and of full bricks: inside of the rest, at its sides and corners, and beyond the world's
  // end.
  Scene scene;
  scene.palette.materials[9].emission = 2;
  scene.palette.materials[7].emission = 1;  // no voxel has it
  scene.volumes.push_back(Volume{"world", {}, {}});
  scene.instances.push_back(Instance{});
  uint32_t random = 7;
  const auto next = [&](uint32_t below) {
    random = random * 1664525u + 1013904223u;
    return (random >> 8) % below;
  };
  size_t lamps = 0;
  std::vector<BrickPut> puts;
  for (int32_t x = -5; x < 5; ++x)
    for (int32_t y = -5; y < 5; ++y)
      for (int32_t z = -5; z < 5; ++z) {
        BrickMaterials materials{};
        const uint32_t kind = next(40);
        if (kind < 4) continue;
        for (uint8_t& material : materials) material = kind == 4 ? 9 : kind < 20 ? 3 : uint8_t(next(3));
        if (kind == 21) materials[next(512)] = 9;
        lamps += kind == 4 || kind == 21;
        BrickMask mask{};
        for (uint32_t i = 0; i < 512; ++i) mask[i >> 6] |= uint64_t(materials[i] != 0) << (i & 63u);
        puts.push_back({{x, y, z}, BrickPool::loose().make(BrickView(mask, materials))});
      }
  scene.volumes[0].bricks.put(puts);
  const fs::path file = test::scratch_dir("drawn-lights") / "lamps.quarry";
  REQUIRE(io::write_scene(scene, file));

  int reads = 0;
  const auto here = DrawnWorld::open(*device, request_of(file, Home::host, &reads), {}, nullptr),
             there = DrawnWorld::open(*device, request_of(file, Home::emulated, &reads), {}, nullptr);
  REQUIRE((here && there));
  std::vector<uint8_t> images[2];
  for (const auto* const world : {&here, &there}) {
    REQUIRE((**world)->find_lights({}));
    const RenderedWorld drawn = (**world)->rendered();
    REQUIRE(drawn.publish());
    // Of a home whose memory shaders read it is an empty world that is looked at here.
    images[world == &there] = drawn.shared.update_lights(drawn.with_lights(), drawn.palette).image(4096);
  }
  CHECK(images[0].size() > 1000);
  CHECK((images[0] == images[1]));

  auto memory = home_memory(Home::emulated, nullptr, SharingMode::automatic);
  REQUIRE(memory);
  const auto home = DeviceHome::create(std::move(memory->executor), {scene, {}, 0, nullptr, {}}, 0, 0);
  REQUIRE(home);
  const auto document = Document::create(std::move(scene));
  REQUIRE(document);
  const auto part = glowing_part(**home, *document);
  REQUIRE((part && *part));
  CHECK((*part)->world().brick_count() > lamps);
  CHECK((*part)->world().brick_count() <= 7 * lamps);
  CHECK((*part)->world().brick_count() < puts.size() / 2);
}

}  // namespace drawn_world_test
