// SPDX-License-Identifier: Apache-2.0
// fill_test.cpp - what is inside: solid voxels against the solid angle of the mesh, hand-made holes and overlaps, and
// the round trip through a mesh file.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <random>

#include "tests/test_data.hpp"
#include "voxel/foreign/mesh_client.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/voxelize/triangles.hpp"

namespace fill_test {

using namespace quarry;

namespace {

void add_box(Mesh& m, const float lo[3], const float hi[3], bool outwards = true) {
  const auto first = uint32_t(m.vertex_count());
  for (int i = 0; i < 8; ++i)
    for (int k = 0; k < 3; ++k) m.positions.push_back(i >> k & 1 ? hi[k] : lo[k]);
  // Two triangles a face, counter-clockwise from outside: x low, x high, y low, y high, z low, z high.
  for (const uint32_t v :
       {0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5, 0, 1, 5, 0, 5, 4, 2, 6, 7, 2, 7, 3, 0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6})
    m.indices.push_back(first + v);
  if (!outwards)
    for (size_t i = m.indices.size() - 36; i < m.indices.size(); i += 3) std::swap(m.indices[i], m.indices[i + 1]);
  m.triangle_material.resize(m.indices.size() / 3, 0);
  m.materials.resize(1);
}
Mesh cube(float edge) {
  Mesh m;
  const float lo[3] = {0, 0, 0}, hi[3] = {edge, edge, edge};
  add_box(m, lo, hi);
  return m;
}
void remove_triangle(Mesh& m, size_t t) {
  m.indices.erase(m.indices.begin() + std::ptrdiff_t(t * 3), m.indices.begin() + std::ptrdiff_t(t * 3 + 3));
  m.triangle_material.pop_back();
}

VoxelizeOptions solid(FillRule rule, double voxel_size, SurfaceVoxels surface = SurfaceVoxels::none,
                      uint32_t threads = 0) {
  VoxelizeOptions o;
  o.voxel_size = voxel_size;
  o.fill = rule;
  o.surface = surface;
  o.threads = threads;
  return o;
}
uint64_t count(const Result<Scene>& scene) {
  REQUIRE(scene);
  return scene->volumes[0].bricks.voxel_count();
}

// How often the mesh winds around a point: the sum of the triangles' solid angles over 4 pi (van Oosterom and Strackee,
// 1983).
long double winding_at(const Mesh& mesh, const long double p[3]) {
  long double sum = 0;
  for (size_t t = 0; t < mesh.triangle_count(); ++t) {
    long double r[3][3], length[3];
    for (size_t i = 0; i < 3; ++i) {
      for (size_t k = 0; k < 3; ++k)
        r[i][k] = (long double)mesh.positions[size_t(mesh.indices[t * 3 + i]) * 3 + k] - p[k];
      length[i] = std::sqrt(r[i][0] * r[i][0] + r[i][1] * r[i][1] + r[i][2] * r[i][2]);
    }
    const auto dot = [&](int i, int j) { return r[i][0] * r[j][0] + r[i][1] * r[j][1] + r[i][2] * r[j][2]; };
    const long double det = r[0][0] * (r[1][1] * r[2][2] - r[1][2] * r[2][1]) -
                            r[0][1] * (r[1][0] * r[2][2] - r[1][2] * r[2][0]) +
                            r[0][2] * (r[1][0] * r[2][1] - r[1][1] * r[2][0]);
    sum += 2 * std::atan2(det, length[0] * length[1] * length[2] + dot(0, 1) * length[2] + dot(0, 2) * length[1] +
                                   dot(1, 2) * length[0]);
  }
  return sum / (4 * M_PIl);
}

const FillRule kRules[] = {FillRule::parity, FillRule::winding};

}  // namespace

TEST_CASE("voxelize fill: a cube is full, alone and with its surface") {
  for (const FillRule rule : kRules)
    for (const int n : {1, 7, 8, 9, 40}) {
      CHECK(count(voxelize(cube(float(n)), solid(rule, 1))) == uint64_t(n) * uint64_t(n) * uint64_t(n));
      CHECK(count(voxelize(cube(float(n)), solid(rule, 1, SurfaceVoxels::cover))) ==
            uint64_t(n) * uint64_t(n) * uint64_t(n));
    }
}

TEST_CASE("voxelize fill: inside is where the solid angle says so, at random voxels of a closed mesh", "[one-caller]") {
  const auto data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  const auto mesh = read_mesh(data / "mesh/spot.obj", {});
  REQUIRE(mesh);
  VoxelizeOptions o = solid(FillRule::parity, 0);
  o.resolution = 180;
  const auto parity = voxelize(*mesh, o);
  o.fill = FillRule::winding;
  const auto winding = voxelize(*mesh, o);
  const auto frame = voxel_frame(*mesh, o);
  REQUIRE(parity);
  REQUIRE(winding);
  std::mt19937 random(3);
  size_t inside = 0, wrong = 0, unclear = 0;
  for (int i = 0; i < 1500; ++i) {
    const Int3 at{int32_t(random() % uint32_t(frame->dims.x)), int32_t(random() % uint32_t(frame->dims.y)),
                  int32_t(random() % uint32_t(frame->dims.z))};
    const long double p[3] = {(at.x + 0.5L) / frame->scale + frame->origin[0],
                              (at.y + 0.5L) / frame->scale + frame->origin[1],
                              (at.z + 0.5L) / frame->scale + frame->origin[2]};
    const long double turns = winding_at(*mesh, p);
    if (std::abs(turns - std::round(turns)) > 0.01) {  // the centre is all but on the surface
      ++unclear;
      continue;
    }
    const Int3 cell = at + frame->shift;
    inside += std::abs(turns) > 0.5;
    wrong += (std::abs(turns) > 0.5) != (winding->volumes[0].bricks.get(cell) != 0);
    wrong += (std::lround(turns) % 2 != 0) != (parity->volumes[0].bricks.get(cell) != 0);
  }
  CHECK(wrong == 0);
  CHECK(inside > 200);
  CHECK(unclear < 10);
}

TEST_CASE("voxelize fill: a hole is outvoted, wherever it is") {
  const uint64_t full = 20 * 20 * 20;
  for (const FillRule rule : kRules) {
    for (size_t t = 0; t < 12; ++t) {
      Mesh m = cube(20);
      remove_triangle(m, t);
      CHECK(count(voxelize(m, solid(rule, 1))) == full);
    }
    for (size_t face = 0; face < 6; ++face) {
      Mesh m = cube(20);
      remove_triangle(m, face * 2);
      remove_triangle(m, face * 2);
      CHECK(count(voxelize(m, solid(rule, 1))) == full);
    }
    // Two faces gone across from each other: lines along that axis meet nothing and say "outside", and are still two
    // against one.
    Mesh tube = cube(20);
    for (int i = 0; i < 4; ++i) remove_triangle(tube, 0);
    CHECK(count(voxelize(tube, solid(rule, 1))) == full);
    // A sheet encloses nothing.
    Mesh sheet = cube(20);
    while (sheet.triangle_count() > 2) remove_triangle(sheet, 2);
    sheet.indices.insert(sheet.indices.end(), {0, 7, 0});  // keeps the bounds
    sheet.triangle_material.push_back(0);
    const auto none = voxelize(sheet, solid(rule, 1));
    REQUIRE_FALSE(none);
    CHECK(none.error().code == ErrorCode::invalid_argument);
  }
}

TEST_CASE(
    "voxelize fill: overlapping bodies are one by winding and hollow where they overlap by parity; a cavity is "
    "hollow by both") {
  Mesh m = cube(20);
  const float lo[3] = {10, 10, 10}, hi[3] = {30, 30, 30};
  add_box(m, lo, hi);
  CHECK(count(voxelize(m, solid(FillRule::winding, 1))) == 2 * 8000 - 1000);
  CHECK(count(voxelize(m, solid(FillRule::parity, 1))) == 2 * 8000 - 2000);
  Mesh hollow = cube(20);
  const float in_lo[3] = {5, 5, 5}, in_hi[3] = {15, 15, 15};
  add_box(hollow, in_lo, in_hi, false);
  CHECK(count(voxelize(hollow, solid(FillRule::winding, 1))) == 8000 - 1000);
  CHECK(count(voxelize(hollow, solid(FillRule::parity, 1))) == 8000 - 1000);
  // A body turned inside out is as solid.
  Mesh turned;
  const float zero[3] = {0, 0, 0}, edge[3] = {20, 20, 20};
  add_box(turned, zero, edge, false);
  CHECK(count(voxelize(turned, solid(FillRule::winding, 1))) == 8000);
}

TEST_CASE("voxelize fill: solid is the surface and what is inside, the same whatever the threads") {
  const auto data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  const auto mesh = read_mesh(data / "mesh/bunny.ply", {});
  REQUIRE(mesh);
  for (const FillRule rule : kRules) {
    VoxelizeOptions o = solid(rule, 0, SurfaceVoxels::thin, 1);
    o.resolution = 150;
    const auto one = voxelize(*mesh, o);
    o.threads = 4;
    const auto four = voxelize(*mesh, o);
    o.fill = FillRule::none;
    const auto surface = voxelize(*mesh, o);
    o.fill = rule;
    o.surface = SurfaceVoxels::none;
    const auto inside = voxelize(*mesh, o);
    REQUIRE(one);
    REQUIRE(four);
    REQUIRE(surface);
    REQUIRE(inside);
    CHECK((one->volumes[0].bricks == four->volumes[0].bricks));
    uint64_t either = 0;
    const BrickMap &shell = surface->volumes[0].bricks, &core = inside->volumes[0].bricks;
    for (const auto& [at, brick] : one->volumes[0].bricks.bricks()) {
      const auto s = shell.find(at), c = core.find(at);
      for (size_t w = 0; w < 8; ++w) {
        const uint64_t expected = (s ? s->mask[w] : 0) | (c ? c->mask[w] : 0);
        REQUIRE(brick.mask[w] == expected);
        either += uint64_t(std::popcount(expected));
      }
    }
    CHECK(either > core.voxel_count());
    CHECK(core.voxel_count() > 20 * shell.voxel_count() / 10);
  }
}

TEST_CASE("voxelize fill: voxels written as a mesh and read back at the same grid are the same voxels",
          "[one-caller]") {
  const auto data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  const auto mesh = read_mesh(data / "mesh/stanford-bunny.obj", {});
  REQUIRE(mesh);
  VoxelizeOptions o;
  o.resolution = 100;
  const auto first = voxelize(*mesh, o);
  REQUIRE(first);
  const auto dir =
      std::filesystem::temp_directory_path() / ("voxelize_fill_test_" + std::to_string(std::random_device()()));
  std::filesystem::create_directories(dir);
  for (const char* name : {"again.obj", "again.ply", "again.glb"}) {
    // Hollow, so the surface has an inner side too.
    REQUIRE(io::write_scene(*first, dir / name));
    const auto read = read_mesh(dir / name, {});
    REQUIRE(read);
    for (const FillRule rule : kRules) {
      const auto again = voxelize(*read, solid(rule, 1));
      REQUIRE(again);
      const BrickMap &was = first->volumes[0].bricks, &is = again->volumes[0].bricks;
      CHECK(is.voxel_count() == was.voxel_count());
      // Both rest on y = 0; x and z are centred by the size, which may be off by the free margin of the first.
      const Int3 moved = was.bounds().min - is.bounds().min;
      size_t wrong = 0;
      for (const auto& [at, brick] : is.bricks())
        for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
          if (brick.get(i)) wrong += was.get(Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(i) + moved) == 0;
      CHECK(wrong == 0);
    }
  }
  std::filesystem::remove_all(dir);
}

TEST_CASE("voxelize fill: neither surface nor inside is refused") {
  const auto nothing = voxelize(cube(4), solid(FillRule::none, 1));
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == ErrorCode::invalid_argument);
}

}  // namespace fill_test
