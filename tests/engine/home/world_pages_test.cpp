// SPDX-License-Identifier: Apache-2.0
// world_pages_test.cpp - worlds that do not fit the memory they may take, drawn from the parts that rays come to: the
// same pictures, byte for byte, within the budget.
#include "engine/home/world_pages.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <random>

#include "engine/home/drawn_world.hpp"
#include "engine/pictures/path_tracer.hpp"
#include "engine/render/frame_settings.hpp"
#include "engine/render/orbit_camera.hpp"
#include "engine/sharing/residency.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "voxel/generate/scenes.hpp"
#include "voxel/io/formats.hpp"

namespace world_pages_test {

using namespace quarry;
using namespace quarry::engine;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMiB = uint64_t(1) << 20;

fs::path write(const Scene& scene, const char* name) {
  fs::path file = test::scratch_dir(name) / "world.quarry";
  REQUIRE(io::write_scene(scene, file));
  return file;
}

// Hills with trees and water, some MiB of bricks over many pages. Made once.
const fs::path& hills() {
  static const fs::path file = [] {
    auto scene = generate("terrain", 512, 3);
    REQUIRE(scene);
    return write(*scene, "pages-hills");
  }();
  return file;
}

Result<std::unique_ptr<DrawnWorld>> open(Device& device, const fs::path& file, uint64_t memory_bytes,
                                         const Progress& progress = {}, Home home = Home::host,
                                         uint64_t memory_limit = 0) {
  DrawnWorld::Request request;
  request.file = file;
  request.home = home;
  (home == Home::host ? request.memory_bytes : request.device_memory_bytes) = memory_bytes;
  request.emulation.memory_limit = memory_limit;
  request.read = [file](const BrickPool* pool, const DeviceSink*) {
    io::ReadOptions options;
    options.pool = pool;
    return io::read_scene(file, options);
  };
  request.check = [](const Scene&) -> Result<void> { return {}; };
  return DrawnWorld::open(device, request, progress, nullptr);
}

View view_of(const DrawnWorld& world, double azimuth, double elevation, uint32_t width, uint32_t height) {
  app::OrbitCamera orbit;
  orbit.azimuth = azimuth;
  orbit.elevation = elevation;
  orbit.frame(world.numbers().bounds, double(width) / height);
  return look_at(orbit.position(), orbit.target, orbit.vertical_fov, width, height);
}

// What must hold after any picture.
void check_budget(const DrawnWorld& world, uint64_t budget) {
  REQUIRE(world.pages());
  const WorldPages::Counters& c = world.pages()->counters();
  CHECK(c.most_bytes <= budget);
  CHECK(c.there() <= c.pages);
  CHECK(c.brought > 0);
}

// Renders both worlds by quick shading and compares.
void check_same(Renderer& renderer, DrawnWorld& whole, DrawnWorld& in_parts, RenderSettings settings) {
  const std::vector<DebugView> views =
      test::kSanitized ? std::vector{DebugView::shaded}
                       : std::vector{DebugView::shaded, DebugView::depth, DebugView::steps, DebugView::material};
  for (const DebugView view : views) {
    settings.view = view;
    for (const double azimuth : test::kSanitized ? std::vector{20.0} : std::vector{20.0, 250.0}) {
      INFO("view " << int(view) << " from " << azimuth);
      const View from = view_of(whole, azimuth, view == DebugView::shaded ? 12 : 40, settings.width, settings.height);
      const auto a = renderer.render(whole.rendered(), from, settings),
                 b = renderer.render(in_parts.rendered(), from, settings);
      REQUIRE(a);
      INFO((b ? std::string() : b.error().message));
      REQUIRE(b);
      CHECK((a->rgba == b->rgba));
    }
  }
}

}  // namespace

TEST_CASE("pages: each page has the voxels of its number, and no two have the same") {
  uint32_t random = 1;
  for (uint32_t i = 0; i < 100'000; ++i) {
    random = random * 1664525u + 1013904223u;
    const uint32_t page = random >> 12;
    const Box3 voxels = voxels_of_page(page);
    REQUIRE(page_of(brick_of(voxels.min)) == page);
    REQUIRE(page_of(brick_of(voxels.max)) == page);
    REQUIRE(voxels.max == voxels.min + Int3{127, 127, 127});
    REQUIRE(intersected(voxels, {kWorldMin, kWorldMax}) == voxels);
  }
  CHECK(page_of(brick_of(kWorldMin)) == 0);
  CHECK(page_of(brick_of(kWorldMax)) == (1u << 20) - 1);
}

namespace {

// The bricks of a page as shaders read them: by number of the page's record, each brick's material, 0: none.
std::vector<uint8_t> read_coarse(const CoarseLevel& level, uint32_t number) {
  std::vector<uint8_t> materials(kPageBricks);
  const QryCoarsePage& page = level.pages()[number];
  const uint64_t outline = uint64_t(page.high) << 32 | page.low;
  for (uint32_t at = 0; at < 64; ++at) {
    const uint32_t value = page.cells[at];
    CHECK((value != 0) == ((outline >> at & 1u) != 0));
    for (uint32_t bit = 0; value && bit < 64; ++bit) {
      if (value < kQryCoarseCells) {
        materials[at * 64 + bit] = uint8_t(value);
        continue;
      }
      const QryCoarseCell& cell = level.cells()[value - kQryCoarseCells];
      if ((uint64_t(cell.high) << 32 | cell.low) >> bit & 1u)
        materials[at * 64 + bit] = uint8_t(cell.materials[bit / 4] >> (bit % 4 * 8));
    }
  }
  return materials;
}

}  // namespace

TEST_CASE("pages: the coarse level has each brick's material, and what a frame may read stays until that is done") {
  std::mt19937 random(3);
  CoarseLevel level;
  std::array<std::vector<uint8_t>, 5> expected;
  for (auto& page : expected) page.resize(kPageBricks);
  struct Frame {
    uint64_t number;
    std::array<uint32_t, 5> records;
    std::array<std::vector<uint8_t>, 5> content;
  };
  std::deque<Frame> frames;
  uint64_t recorded = 0, done = 0;
  size_t records = 0;
  for (int step = 0; step < 600; ++step) {
    // Some cells of a page become others: empty, of one material, or of several.
    const auto page = uint32_t(random() % 5);
    const uint64_t of = uint64_t(random()) << 32 | random();
    CoarseCells cells;
    for (uint32_t at = 0; at < 64; ++at) {
      if (!(of >> at & 1u)) continue;
      const auto kind = random() % 3;
      CoarseCell& cell = cells[page << 6 | at];
      const auto one = uint8_t(1 + random() % 255);
      for (uint32_t bit = 0; bit < 64; ++bit) {
        const bool there = kind == 1 || (kind == 2 && random() % 2 == 0);
        cell.materials[bit] = kind == 1 ? one : uint8_t(1 + random() % 255);
        cell.bricks |= uint64_t(there) << bit;
        expected[page][at * 64 + bit] = there ? cell.materials[bit] : 0;
      }
      if (kind == 0 && random() % 2 == 0) cells.erase(page << 6 | at);
    }
    level.put(page, of, cells);
    if (step == 50) level.follow();
    if (step > 50 && random() % 3 == 0) {  // a publish, and a frame after it
      level.set_frames(recorded, done);
      Frame frame{++recorded, {}, expected};
      for (uint32_t i = 0; i < 5; ++i) frame.records[i] = level.number(i);
      frames.push_back(std::move(frame));
      while (frames.size() > 3) done = frames.front().number, frames.pop_front();
    }
    for (uint32_t i = 0; i < 5; ++i) REQUIRE(read_coarse(level, level.number(i)) == expected[i]);
    if (step % 10 == 0)
      for (const Frame& frame : frames)
        for (uint32_t i = 0; i < 5; ++i) REQUIRE(read_coarse(level, frame.records[i]) == frame.content[i]);
    if (step == 300) records = level.pages().size() + level.cells().size();
  }
  CHECK(level.pages().size() + level.cells().size() < 2 * records);  // what no frame can read is used again
  level.put(2, ~uint64_t(0), {});
  CHECK(level.outline(2) == 0);
}

TEST_CASE("pages: a world that does not fit its memory makes the same pictures, and never takes more") {
  Device* device = test::test_device();
  if (!device) return;
  const fs::path& file = hills();
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  RenderSettings settings;
  settings.width = 96;
  settings.height = 56;
  settings.samples = 2;
  const auto whole = open(*device, file, UINT64_MAX);
  REQUIRE(whole);
  CHECK(!(*whole)->pages());
  const std::vector<uint64_t> budgets = test::kSanitized ? std::vector{16 * kMiB} : std::vector{16 * kMiB, 24 * kMiB};
  for (const uint64_t budget : budgets) {
    const auto in_parts = open(*device, file, budget);
    REQUIRE(in_parts);
    CHECK((*in_parts)->home() == Home::host);
    CHECK((*in_parts)->numbers().bounds == (*whole)->numbers().bounds);
    CHECK((*in_parts)->numbers().voxels == (*whole)->numbers().voxels);
    CHECK((*in_parts)->numbers().bricks == (*whole)->numbers().bricks);
    check_same(**renderer, **whole, **in_parts, settings);
    check_budget(**in_parts, budget);
    CHECK((*in_parts)->pages()->counters().left > 0);
    // What left is free again: bricks, grid and pyramid of all that came would not fit.
    CHECK((*in_parts)->rendered().world.size_bytes() < budget + budget / 2);
  }
}

TEST_CASE("pages: a world that does not fit a device's memory is drawn from its part of that, by the same bytes") {
  Device* device = test::test_device();
  if (!device) return;
  if (choose_sharing(*device)->mode != SharingMode::host_import) {
    WARN("SKIPPED: shaders of this device do not read what host threads write in its place");
    return;
  }
  const fs::path& file = hills();
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  RenderSettings settings;
  settings.width = 96;
  settings.height = 56;
  const auto whole = open(*device, file, UINT64_MAX);
  REQUIRE(whole);
  // Memory in which all of the world finds no place.
  constexpr uint64_t kLimit = 80 * kMiB;
  const auto refused = open(*device, file, UINT64_MAX, {}, Home::emulated, kLimit);
  REQUIRE(!refused);
  INFO(refused.error().message);
  CHECK(refused.error().code == ErrorCode::out_of_memory);
  const auto in_parts = open(*device, file, 16 * kMiB, {}, Home::emulated, kLimit);
  INFO((in_parts ? std::string() : in_parts.error().message));
  REQUIRE(in_parts);
  CHECK((*in_parts)->home() == Home::emulated);
  CHECK((*in_parts)->numbers().bounds == (*whole)->numbers().bounds);
  CHECK((*in_parts)->rendered().world.brick_count() == 0);  // nothing of it on the host
  check_same(**renderer, **whole, **in_parts, settings);
  check_budget(**in_parts, 16 * kMiB);
  CHECK((*in_parts)->pages()->counters().left > 0);
}

TEST_CASE("pages: in the memory of a CUDA device, too, a part of a world makes the same pictures, and light paths") {
  Device* device = test::test_device();
  if (!device) return;
  if (const auto there = home_memory(Home::device, device, SharingMode::automatic); !there)
    return test::skip("no CUDA device's memory: " + there.error().message);
  const fs::path& file = hills();
  auto renderer = Renderer::create(*device);
  auto tracer = PathTracer::create(*device);
  REQUIRE((renderer && tracer));
  RenderSettings settings;
  settings.width = 96;
  settings.height = 56;
  settings.samples = 2;
  settings.bounces = 3;
  const auto whole = open(*device, file, UINT64_MAX, {}, Home::device);
  REQUIRE(whole);
  CHECK(!(*whole)->pages());
  for (const uint64_t budget : {16 * kMiB, 24 * kMiB}) {
    const auto in_parts = open(*device, file, budget, {}, Home::device);
    INFO((in_parts ? std::string() : in_parts.error().message));
    REQUIRE(in_parts);
    CHECK((*in_parts)->home() == Home::device);
    CHECK((*in_parts)->numbers().bounds == (*whole)->numbers().bounds);
    CHECK((*in_parts)->rendered().world.brick_count() == 0);  // nothing of it on the host
    check_same(**renderer, **whole, **in_parts, settings);
    const View view = view_of(**whole, 35, 25, settings.width, settings.height);
    REQUIRE(((*whole)->find_lights({}) && (*in_parts)->find_lights({})));
    const auto a = (*tracer)->render((*whole)->rendered(), view, settings, 2, true),
               b = (*tracer)->render((*in_parts)->rendered(), view, settings, 2, true);
    INFO((a ? std::string() : a.error().message) << (b ? std::string() : b.error().message));
    REQUIRE((a && b));
    CHECK((a->radiance == b->radiance));
    check_budget(**in_parts, budget);
    CHECK((*in_parts)->pages()->counters().left > 0);
  }
}

TEST_CASE("pages: turned, shifted, overlapping and hidden instances are drawn in parts as they are as a whole") {
  Device* device = test::test_device();
  if (!device) return;
  auto scene = generate("spheres", 128, 1);
  REQUIRE(scene);
  for (int32_t i = 1; i < 60; ++i) {
    Instance instance = scene->instances[0];
    instance.rotation.axis = i % 2 ? std::array<uint8_t, 3>{2, 0, 1} : std::array<uint8_t, 3>{1, 0, 2};
    instance.rotation.sign = {int8_t(i % 3 ? 1 : -1), int8_t(i % 4 ? -1 : 1), 1};
    instance.offset = {i % 6 * 93 - 280, i % 3 * 41, i / 6 * 87 - 411};
    instance.hidden = i == 5;
    scene->instances.push_back(instance);
  }
  const fs::path file = write(*scene, "pages-turned");
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  RenderSettings settings;
  settings.width = 80;
  settings.height = 48;
  const auto whole = open(*device, file, UINT64_MAX), in_parts = open(*device, file, 16 * kMiB);
  REQUIRE((whole && in_parts));
  CHECK((*in_parts)->numbers().bounds == (*whole)->numbers().bounds);
  check_same(**renderer, **whole, **in_parts, settings);
  check_budget(**in_parts, 16 * kMiB);
}

TEST_CASE("pages: light paths through a world in parts, lamps and glass in it, add up to the same light") {
  Device* device = test::test_device();
  if (!device) return;
  auto scene = generate("city", 1024, 2);
  REQUIRE(scene);
  for (size_t i = 1; i < scene->palette.materials.size(); i += 7) scene->palette.materials[i].transparency = 0.6f;
  const fs::path file = write(*scene, "pages-paths");
  auto tracer = PathTracer::create(*device);
  REQUIRE(tracer);
  RenderSettings settings;
  settings.width = test::kSanitized ? 32 : 48;
  settings.height = test::kSanitized ? 20 : 32;
  settings.bounces = 3;
  settings.sky_strength = 0.3f;
  const auto whole = open(*device, file, UINT64_MAX), in_parts = open(*device, file, 24 * kMiB);
  REQUIRE((whole && in_parts));
  PathPicture pictures[2];
  for (DrawnWorld* const world : {whole->get(), in_parts->get()}) {
    REQUIRE(world->find_lights({}));
    const View view = view_of(**whole, 35, 25, settings.width, settings.height);
    auto picture = (*tracer)->render(world->rendered(), view, settings, test::kSanitized ? 1 : 4, true);
    INFO((picture ? std::string() : picture.error().message));
    REQUIRE(picture);
    pictures[world == in_parts->get()] = std::move(*picture);
  }
  CHECK((pictures[0].picture.rgba == pictures[1].picture.rgba));
  CHECK((pictures[0].radiance == pictures[1].radiance));
  CHECK((pictures[0].albedo == pictures[1].albedo));
  CHECK((pictures[0].normal == pictures[1].normal));
  CHECK((pictures[0].depth == pictures[1].depth));
  check_budget(**in_parts, 24 * kMiB);
  CHECK((*in_parts)->pages()->counters().left > 0);
}

TEST_CASE("pages: a world that fits its memory is there as a whole, whatever the budget is called") {
  Device* device = test::test_device();
  if (!device) return;
  const auto scene = generate("spheres", 64, 1);
  REQUIRE(scene);
  const auto world = open(*device, write(*scene, "pages-fits"), 64 * kMiB);
  REQUIRE(world);
  CHECK(!(*world)->pages());
}

TEST_CASE("pages: what cannot be drawn in parts is refused with what to do, and the world is drawn again after it") {
  Device* device = test::test_device();
  if (!device) return;
  const fs::path& file = hills();
  const auto none = open(*device, file, kMiB);
  REQUIRE(!none);
  CHECK(none.error().code == ErrorCode::invalid_argument);
  CHECK(none.error().message.find("8 MiB at least") != std::string::npos);

  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  RenderSettings settings;
  settings.width = 40;
  settings.height = 24;
  // Along the ground one pixel's rays come to more than fits.
  const auto small = open(*device, file, WorldPages::kLeastBytes);
  REQUIRE(small);
  const auto full = (*renderer)->render((*small)->rendered(), view_of(**small, 35, 8, 40, 24), settings);
  REQUIRE(!full);
  CHECK(full.error().code == ErrorCode::out_of_memory);
  CHECK(full.error().message.find("allow more") != std::string::npos);

  const auto world = open(*device, file, 16 * kMiB);
  REQUIRE(world);
  const View view = view_of(**world, 35, 25, settings.width, settings.height);
  for (const DebugView grid : {DebugView::load, DebugView::probe_depth}) {
    settings.view = grid;
    const auto refused = (*renderer)->render((*world)->rendered(), view, settings);
    REQUIRE(!refused);
    INFO(refused.error().message);
    CHECK(refused.error().code == ErrorCode::unsupported);
    CHECK(refused.error().message.find("allow more memory") != std::string::npos);
  }
  const float ray[3] = {0, 0, 1};
  const auto list = (*renderer)->trace((*world)->rendered(), ray, ray);
  REQUIRE(!list);
  CHECK(list.error().code == ErrorCode::unsupported);

  // Cancelled while pages come; then the picture is made.
  std::atomic<bool> cancel{true};
  Progress progress;
  progress.cancel = &cancel;
  settings.view = DebugView::shaded;
  const auto stopped = (*renderer)->render((*world)->rendered(progress), view, settings);
  REQUIRE(!stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
  CHECK((*renderer)->render((*world)->rendered(), view, settings));

  const auto cancelled = open(*device, file, 16 * kMiB, progress);
  REQUIRE(!cancelled);
  CHECK(cancelled.error().code == ErrorCode::cancelled);

  // An instance beyond the world's end.
  auto far = generate("terrain", 512, 3);
  REQUIRE(far);
  far->instances[0].offset = {2'000'000'000, 0, 0};
  const auto beyond = open(*device, write(*far, "pages-beyond"), 16 * kMiB);
  REQUIRE(!beyond);
  CHECK(beyond.error().code == ErrorCode::out_of_bounds);
  CHECK(beyond.error().message.find("reaches outside the world") != std::string::npos);
}

TEST_CASE("pages: whichever page of a file is damaged, it is refused by the same words in parts and as a whole") {
  Device* device = test::test_device();
  if (!device) return;
  const fs::path& whole = hills();
  const fs::path damaged = test::scratch_dir("pages-damaged") / "damaged.quarry";
  const std::vector<uint8_t> bytes = test::file_bytes(whole);
  constexpr size_t kPage = 4096;
  const size_t pages = bytes.size() / kPage, step = std::max<size_t>(1, pages / (test::kSanitized ? 5 : 16));
  int refused = 0, of_chunks = 0;
  for (size_t page = 0; page < pages; page += page < 6 ? 1 : step) {
    std::vector<uint8_t> changed = bytes;
    changed[page * kPage + kPage - 100] ^= 0x15;
    test::write_bytes(damaged, changed);
    const auto here = open(*device, damaged, UINT64_MAX), in_parts = open(*device, damaged, 16 * kMiB);
    REQUIRE(here.has_value() == in_parts.has_value());
    if (here) continue;
    ++refused;
    of_chunks += here.error().message.find("chunk") != std::string::npos;
    CHECK(in_parts.error().message == here.error().message);
    CHECK(in_parts.error().code == here.error().code);
  }
  CHECK(refused > 3);
  CHECK(of_chunks > 0);
}

TEST_CASE("paged tiles: they cover the picture, each unit is made, and what does not fit one unit is said") {
  for (const uint32_t unit : {1u, 4u})
    for (const auto& [width, height] : {std::pair{1u, 1u}, {130u, 67u}, {4u, 200u}}) {
      std::vector<uint8_t> made(size_t(width) * height);
      PagedTiles tiles(width, height, unit, 32);
      uint32_t calls = 0;
      while (const Tile* const tile = tiles.next()) {
        ++calls;
        REQUIRE((tile->width > 0 && tile->height > 0));
        REQUIRE((tile->x % unit == 0 && tile->y % unit == 0));
        REQUIRE(((tile->x + tile->width) % unit == 0 || tile->x + tile->width == width));
        if (calls % 5 == 0) {
          const Tile before = *tile;
          REQUIRE(tiles.settle(PagesBrought::some));
          REQUIRE(*tiles.next() == before);
          continue;
        }
        if (calls % 3 == 0 && (tile->width > unit || tile->height > unit)) {
          REQUIRE(tiles.settle(PagesBrought::too_many));
          continue;
        }
        for (uint32_t y = tile->y; y < tile->y + tile->height; ++y)
          for (uint32_t x = tile->x; x < tile->x + tile->width; ++x) ++made[size_t(y) * width + x];
        REQUIRE(tiles.settle(PagesBrought::none_missing));
      }
      CHECK(std::ranges::all_of(made, [](uint8_t times) { return times == 1; }));
    }
  PagedTiles tiles(4, 4, 4, 32);
  const auto full = tiles.settle(PagesBrought::too_many);
  REQUIRE(!full);
  CHECK(full.error().code == ErrorCode::out_of_memory);
}

}  // namespace world_pages_test
