// SPDX-License-Identifier: Apache-2.0
// regions_test.cpp - voxelising region by region against voxelising at once: the same scene to the last byte, whatever
// the mesh, the rules, the room and the threads.
#include "voxel/voxelize/regions.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "tests/app/sanitized.hpp"
#include "tests/test_data.hpp"
#include "voxel/foreign/mesh_client.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/voxelize/stage.hpp"

namespace regions_test {

using namespace quarry;

namespace {

constexpr uint64_t kMiB = uint64_t(1) << 20;

// A ball of many triangles with colours, or of one look; `hole`: without the triangles of one of its rings.
Mesh ball(int rings, bool coloured, bool hole = false) {
  Mesh m;
  m.materials.resize(1);
  for (int j = 0; j <= rings; ++j)
    for (int i = 0; i <= 2 * rings; ++i) {
      const double a = M_PI * j / rings, b = M_PI * i / rings;
      for (const double v : {1.7 * std::sin(a) * std::cos(b), std::cos(a), std::sin(a) * std::sin(b)})
        m.positions.push_back(float(v));
      if (coloured)
        for (const int c : {i * 7, j * 11, (i + j) * 5, 255}) m.colors.push_back(uint8_t(c));
    }
  const auto at = [&](int i, int j) { return uint32_t(j * (2 * rings + 1) + i); };
  for (int j = 0; j < rings; ++j)
    for (int i = 0; i < 2 * rings; ++i)
      if (!hole || j != rings / 3)
        for (const uint32_t v : {at(i, j), at(i, j + 1), at(i + 1, j), at(i + 1, j), at(i, j + 1), at(i + 1, j + 1)})
          m.indices.push_back(v);
  m.triangle_material.assign(m.indices.size() / 3, 0);
  return m;
}
// Long triangles that cross every seam, in all directions.
Mesh soup(uint32_t seed, int triangles) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> anywhere(0, 10);
  Mesh m;
  m.materials.resize(1);
  for (int i = 0; i < triangles * 9; ++i) m.positions.push_back(anywhere(random));
  for (uint32_t i = 0; i < uint32_t(triangles) * 3; ++i) m.indices.push_back(i);
  m.triangle_material.assign(size_t(triangles), 0);
  return m;
}
// An upright plate, one voxel wide in x at any resolution here: all of it lies in one slab. Closed.
Mesh plate() {
  Mesh m;
  m.materials.resize(1);
  for (int i = 0; i < 8; ++i)
    for (const float v : {float(i & 1) * 0.002f, float(i >> 1 & 1), float(i >> 2 & 1)}) m.positions.push_back(v);
  m.indices = {0, 1, 2, 1, 3, 2, 4, 6, 5, 5, 6, 7, 0, 4, 1, 1, 4, 5,
               2, 3, 6, 3, 7, 6, 0, 2, 4, 2, 6, 4, 1, 5, 3, 3, 5, 7};
  m.triangle_material.assign(12, 0);
  return m;
}

struct Gathered {
  Scene scene;
  RegionsDone done;
  size_t pieces = 0;
};

Result<Gathered> in_regions(const Mesh& mesh, const VoxelizeOptions& options, uint64_t available_bytes) {
  Gathered out;
  RegionSink sink;
  // Textured surfaces wait on disk, or are made twice: every other time.
  static const std::filesystem::path dir = test::scratch_dir("voxelize-regions-beside");
  static int calls = 0;
  if (++calls % 2) sink.beside = dir / "out";
  sink.available_bytes = [&] { return available_bytes; };
  sink.begin = [&](const Scene& scene) -> Result<void> {
    CHECK(out.scene.volumes.empty());
    CHECK(scene.volumes.at(0).bricks.empty());
    out.scene = scene;
    return {};
  };
  std::optional<Int3> last;
  sink.take = [&](uint32_t volume, BrickMap&& bricks) -> Result<void> {
    CHECK(volume == 0);
    ++out.pieces;
    // Whole chunks, rising: none comes twice, and each after all those before.
    std::set<Int3> chunks;
    for (const auto& [at, brick] : bricks.bricks()) chunks.insert({at.x >> 3, at.y >> 3, at.z >> 3});
    CHECK((!last || *last < *chunks.begin()));
    last = *chunks.rbegin();
    for (const auto& [at, brick] : bricks.bricks()) out.scene.volumes.at(0).bricks.put(at, brick);
    return {};
  };
  QRY_TRY_ASSIGN(auto done, voxelize_in_regions(mesh, options, sink));
  out.done = done;
  return out;
}

void same_as_at_once(const Mesh& mesh, const VoxelizeOptions& options, uint64_t available_bytes, size_t least_regions) {
  const auto whole = voxelize(mesh, options);
  const auto parts = in_regions(mesh, options, available_bytes);
  if (!parts) FAIL(parts.error().message);
  REQUIRE(whole);
  INFO("room " << available_bytes / kMiB << " MiB, resolution " << options.resolution << ", regions "
               << parts->done.regions << ", fill " << int(options.fill) << ", surface " << int(options.surface));
  CHECK(parts->done.regions >= least_regions);
  CHECK(parts->scene.palette == whole->palette);
  CHECK(parts->scene.metadata == whole->metadata);
  CHECK(parts->scene.volumes[0].name == whole->volumes[0].name);
  CHECK(parts->scene.instances.size() == whole->instances.size());
  CHECK(parts->scene.volumes[0].bricks == whole->volumes[0].bricks);
}

VoxelizeOptions options_of(int32_t resolution, FillRule fill = FillRule::none,
                           SurfaceVoxels surface = SurfaceVoxels::cover) {
  VoxelizeOptions o;
  o.resolution = resolution;
  o.fill = fill;
  o.surface = surface;
  o.executor = VoxelizeExecutor::host;
  return o;
}

}  // namespace

TEST_CASE("voxelize_in_regions: a surface is the same in one region, some and many", "[one-caller]") {
  const Mesh plain = ball(40, false), coloured = ball(40, true);
  for (const SurfaceVoxels surface : {SurfaceVoxels::cover, SurfaceVoxels::thin}) {
    same_as_at_once(plain, options_of(220, FillRule::none, surface), 1000 * kMiB, 1);
    same_as_at_once(plain, options_of(220, FillRule::none, surface), 2 * kMiB, 3);
    same_as_at_once(plain, options_of(220, FillRule::none, surface), 1000 * 1024, 6);
    same_as_at_once(coloured, options_of(220, FillRule::none, surface), 5 * kMiB, 3);
    same_as_at_once(coloured, options_of(220, FillRule::none, surface), 2 * kMiB, 8);
  }
}

TEST_CASE(
    "voxelize_in_regions: what is inside is the same by both rules, with and without a surface, closed or with a hole",
    "[one-caller]") {
  for (const bool hole : {false, true})
    for (const bool coloured : {false, true}) {
      if (test::kSanitized && hole != coloured) continue;
      const Mesh mesh = ball(24, coloured, hole);
      for (const FillRule fill : {FillRule::parity, FillRule::winding})
        for (const SurfaceVoxels surface : {SurfaceVoxels::cover, SurfaceVoxels::thin, SurfaceVoxels::none}) {
          same_as_at_once(mesh, options_of(140, fill, surface), 1000 * kMiB, 1);
          same_as_at_once(mesh, options_of(140, fill, surface), 8 * kMiB, 3);
        }
      // Small enough that one slab is several regions.
      same_as_at_once(mesh, options_of(240, FillRule::parity), 13 * kMiB, 6);
      same_as_at_once(mesh, options_of(240, FillRule::winding), 13 * kMiB, 6);
    }
}

TEST_CASE("voxelize_in_regions: long triangles over every seam, and walls that fill one slab, are the same",
          "[one-caller]") {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    same_as_at_once(soup(seed, 12), options_of(260), 2 * kMiB, 2);
    same_as_at_once(soup(seed, 12), options_of(230, FillRule::winding), 20 * kMiB, 2);
    same_as_at_once(soup(seed, 12), options_of(230, FillRule::parity), 20 * kMiB, 2);
  }
  same_as_at_once(plate(), options_of(700), 4 * kMiB, 4);
  same_as_at_once(plate(), options_of(700), 700 * 1024, 40);  // rows are divided, too
}

TEST_CASE("voxelize_in_regions: the same for every number of threads") {
  const Mesh mesh = ball(30, true);
  for (const uint32_t threads : {1u, 2u, 5u}) {
    VoxelizeOptions options = options_of(170, FillRule::parity);
    options.threads = threads;
    same_as_at_once(mesh, options, 10 * kMiB, 3);
  }
}

TEST_CASE("voxelize_in_regions: CUDA devices, one or all that are there, make the same regions") {
  VoxelizeOptions options = options_of(64);
  options.executor = VoxelizeExecutor::cuda;
  if (const auto tried = voxelize(ball(8, false), options); !tried) {
    REQUIRE((tried.error().code == ErrorCode::not_found || tried.error().code == ErrorCode::unsupported));
    return test::skip(tried.error().message);
  }
  const auto same = [](const Mesh& mesh, VoxelizeOptions how, uint64_t available_bytes, size_t least_regions) {
    for (const uint32_t devices : {1u, 0u}) {
      how.executor = VoxelizeExecutor::host;
      const auto whole = voxelize(mesh, how);
      how.executor = VoxelizeExecutor::cuda;
      how.devices = devices;
      const auto parts = in_regions(mesh, how, available_bytes);
      if (!parts) FAIL(parts.error().message);
      REQUIRE(whole);
      INFO("resolution " << how.resolution << ", regions " << parts->done.regions << ", devices " << devices);
      CHECK(parts->done.regions >= least_regions);
      CHECK(parts->scene.palette == whole->palette);
      CHECK(parts->scene.metadata == whole->metadata);
      CHECK(parts->scene.volumes[0].bricks == whole->volumes[0].bricks);
    }
  };
  for (const SurfaceVoxels surface : {SurfaceVoxels::cover, SurfaceVoxels::thin}) {
    same(ball(40, false), options_of(220, FillRule::none, surface), 1000 * kMiB, 5);
    same(ball(40, true), options_of(220, FillRule::none, surface), 20 * kMiB, 5);
    same(ball(24, true), options_of(140, FillRule::parity, surface), 100 * kMiB, 2);
  }
  same(ball(24, true, true), options_of(140, FillRule::winding, SurfaceVoxels::none), 100 * kMiB, 2);
  for (uint32_t seed = 1; seed <= 4; ++seed) same(soup(seed, 12), options_of(900), 400 * kMiB, 5);
  same(plate(), options_of(700), 20 * kMiB, 5);

  options = options_of(300);
  options.executor = VoxelizeExecutor::cuda;
  options.devices = 1000;
  const auto missing = in_regions(ball(30, true), options, 100 * kMiB);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK(missing.error().message.find("1000 CUDA devices") != std::string::npos);
  options.devices = 0;
  std::atomic<bool> cancel{true};
  options.progress.cancel = &cancel;
  CHECK(in_regions(ball(30, true), options, 100 * kMiB).error().code == ErrorCode::cancelled);
}

TEST_CASE("voxelize_in_regions: CUDA counts the bricks that triangles touch in each chunk as the exact test does") {
  using namespace voxelize_detail;
  const auto same = [](const Mesh& mesh, int32_t resolution) {
    const VoxelizeOptions options = options_of(resolution);
    const auto frame = checked_frame(mesh, options);
    REQUIRE(frame);
    VoxelizeJob job(mesh, options, *frame);
    const auto makers = makers_on_cuda(job, 1);
    if (!makers) {
      REQUIRE((makers.error().code == ErrorCode::not_found || makers.error().code == ErrorCode::unsupported));
      test::skip(makers.error().message);
      return false;
    }
    const Box3 chunks = chunks_of(all_bricks(job));
    const auto counted = makers->front()->count_pairs();
    REQUIRE(counted);
    const FixedMesh fixed = fixed_mesh(job);
    std::map<Int3, uint32_t> expected;
    for (size_t t = 0; t < mesh.triangle_count(); ++t) {
      const FixedTriangle triangle = fixed.triangle(t);
      visit_cells(triangle, kBrickShift, cells_of(triangle, kBrickShift), [&](int32_t x, int32_t y, int32_t z) {
        ++expected[{x >> 3, y >> 3, z >> 3}];
      });
    }
    size_t at = 0, wrong = 0, chunks_with_bricks = 0;
    for (int32_t x = chunks.min.x; x <= chunks.max.x; ++x)
      for (int32_t y = chunks.min.y; y <= chunks.max.y; ++y)
        for (int32_t z = chunks.min.z; z <= chunks.max.z; ++z, ++at) {
          const auto found = expected.find({x, y, z});
          const uint32_t wanted = found == expected.end() ? 0 : found->second;
          chunks_with_bricks += wanted != 0;
          wrong += counted->at(at) != wanted;
        }
    CHECK(at == counted->size());
    CHECK(wrong == 0);
    CHECK(chunks_with_bricks == expected.size());
    return true;
  };
  if (!same(ball(40, false), 220)) return;
  same(ball(6, false), 1500);
  same(plate(), 700);
  for (uint32_t seed = 1; seed <= 3; ++seed) same(soup(seed, 40), 4000);
  same(soup(4, 4000), 3000);  // more large triangles than their lists have room for at first
}

TEST_CASE("voxelize_in_regions: real meshes, one with a texture, are the same", "[one-caller]") {
  const auto dir = test::data_dir() / "mesh";
  if (!std::filesystem::exists(dir / "spot.obj")) return test::skip("no meshes in the test data");
  for (const auto& [name, resolution, fill, available_bytes] :
       {std::tuple{"spot.obj", 300, FillRule::none, 6 * kMiB},
        {"spot.obj", 200, FillRule::parity, 24 * kMiB},
        {"stanford-bunny.obj", 400, FillRule::none, 4 * kMiB},
        {"stanford-bunny.obj", 200, FillRule::winding, 20 * kMiB},
        {"20mm-xyz-cube.stl", 200, FillRule::parity, 16 * kMiB}}) {
    INFO(name);
    const auto mesh = read_mesh(dir / name, {});
    if (!mesh) FAIL(mesh.error().message);
    same_as_at_once(*mesh, options_of(resolution, fill), available_bytes, 3);
  }
}

TEST_CASE(
    "voxelize_in_regions: too little room is said with numbers, an error of the sink ends it, and it stops when told "
    "to") {
  const Mesh mesh = ball(30, true);
  const auto small = in_regions(mesh, options_of(300), 100);
  REQUIRE(!small);
  CHECK(small.error().code == ErrorCode::out_of_memory);
  CHECK(small.error().message.find("MiB") != std::string::npos);
  CHECK(in_regions(mesh, options_of(300, FillRule::parity), 4 * kMiB).error().code == ErrorCode::out_of_memory);

  int taken = 0;
  RegionSink sink;
  sink.available_bytes = [] { return 3 * kMiB; };
  sink.begin = [](const Scene&) -> Result<void> { return {}; };
  sink.take = [&](uint32_t, BrickMap&&) -> Result<void> {
    return ++taken == 2 ? fail(ErrorCode::io, "the disk is full") : Result<void>();
  };
  const auto full = voxelize_in_regions(mesh, options_of(300), sink);
  REQUIRE(!full);
  CHECK(full.error().message == "the disk is full");
  CHECK(taken == 2);

  std::atomic<bool> cancel{false};
  VoxelizeOptions options = options_of(300);
  options.progress.cancel = &cancel;
  sink.take = [&](uint32_t, BrickMap&&) -> Result<void> {
    cancel = true;
    return {};
  };
  CHECK(voxelize_in_regions(mesh, options, sink).error().code == ErrorCode::cancelled);

  std::vector<double> fractions;
  options.progress = {};
  options.progress.report = [&](std::string_view, double fraction) { fractions.push_back(fraction); };
  sink.take = [](uint32_t, BrickMap&&) -> Result<void> { return {}; };
  CHECK(voxelize_in_regions(mesh, options, sink));
  CHECK(fractions.size() > 3);
  CHECK(std::is_sorted(fractions.begin(), fractions.end()));
  CHECK(fractions.back() == 1);
}

}  // namespace regions_test
