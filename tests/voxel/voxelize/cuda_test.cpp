// SPDX-License-Identifier: Apache-2.0
// cuda_test.cpp - CUDA against the host: the same bricks, materials, palette and facts for every kind of mesh that
// takes another way through the kernels.
#include <catch2/catch.hpp>

#include <cmath>
#include <random>
#include <thread>

#include "tests/test_data.hpp"
#include "voxel/foreign/mesh_client.hpp"
#include "voxel/voxelize/triangles.hpp"

namespace cuda_test {

using namespace quarry;

namespace {

bool no_device() {
  Mesh m;
  m.positions = {0, 0, 0, 1, 0, 0, 0, 1, 0};
  m.indices = {0, 1, 2};
  m.triangle_material = {0};
  m.materials.resize(1);
  VoxelizeOptions o;
  o.resolution = 8;
  o.executor = VoxelizeExecutor::cuda;
  const auto scene = voxelize(m, o);
  if (scene) return false;
  // Whatever else goes wrong is a failure, not a reason to skip.
  REQUIRE((scene.error().code == ErrorCode::not_found || scene.error().code == ErrorCode::unsupported));
  test::skip(scene.error().message);
  return true;
}

void check_same(const Mesh& mesh, VoxelizeOptions o) {
  o.executor = VoxelizeExecutor::host;
  const auto host = voxelize(mesh, o);
  o.executor = VoxelizeExecutor::cuda;
  const auto cuda = voxelize(mesh, o);
  REQUIRE(host.has_value() == cuda.has_value());
  if (!host) return;
  CHECK((host->volumes[0].bricks == cuda->volumes[0].bricks));
  CHECK(host->palette == cuda->palette);
  CHECK(host->metadata == cuda->metadata);
}
void check_all(const Mesh& mesh, int32_t n) {
  VoxelizeOptions o;
  o.resolution = n;
  for (const SurfaceVoxels surface : {SurfaceVoxels::cover, SurfaceVoxels::thin}) {
    o.surface = surface;
    check_same(mesh, o);
  }
  o.fill = FillRule::winding;
  check_same(mesh, o);
}

// Triangles of all sizes; materials, vertex colours and a texture with every way of wrapping, far outside [0, 1] too.
Mesh soup(uint32_t seed, size_t triangles, float size, bool coloured) {
  Mesh m;
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> place(0, 1), step(-size, size), uv(-3, 3);
  m.materials.resize(coloured ? 4 : 1);
  for (size_t t = 0; t < triangles; ++t) {
    const float x = place(random), y = place(random), z = place(random);
    for (int i = 0; i < 3; ++i) {
      for (const float c : {x, y, z})
        m.positions.push_back(t % 7 == 6 && i == 2 ? m.positions[m.positions.size() - 3] : c + step(random));
      if (!coloured) continue;
      for (int k = 0; k < 2; ++k) m.uvs.push_back(t % 50 == 0 ? uv(random) * 1e7f : uv(random));
      for (int k = 0; k < 4; ++k) m.colors.push_back(uint8_t(random()));
    }
    for (uint32_t i = 0; i < 3; ++i) m.indices.push_back(uint32_t(t * 3) + i);
    m.triangle_material.push_back(uint32_t(t % m.materials.size()));
  }
  if (!coloured) return m;
  for (const auto& [width, height] : {std::pair<uint32_t, uint32_t>{64, 48}, {5, 7}}) {
    Image& image = m.images.emplace_back();
    image.width = width;
    image.height = height;
    for (size_t i = 0; i < size_t(width) * height * 4; ++i) image.rgba.push_back(uint8_t(random()));
  }
  m.materials[1].base_color_image = 0;
  m.materials[1].base_color_place.wrap_u = Wrap::mirror;
  m.materials[1].base_color_place.wrap_v = Wrap::clamp;
  m.materials[2].metal_rough_image = 1;
  m.materials[2].base_color[1] = 0.25f;
  m.materials[3].emission_image = 0;
  m.materials[3].emission[0] = 5;
  m.materials[3].emission[2] = 0.01f;
  return m;
}

}  // namespace

TEST_CASE("voxelize cuda: triangle soups from specks to the whole world's size are the same voxels as on the host") {
  if (no_device()) return;
  check_all(soup(1, 4000, 0.002f, false), 100);  // many triangles in a voxel
  check_all(soup(2, 3000, 0.03f, false), 300);
  check_all(soup(3, 60, 0.5f, false), 700);  // cells of 8 and 64 bricks
  // Cells of 512 bricks, 128-bit products, more cells than there is room for at first.
  check_all(soup(4, 3, 0.9f, false), 3000);
}

TEST_CASE("voxelize cuda: more large triangles than there is room for at first are the same voxels as on the host") {
  if (no_device()) return;
  // What memory holds afterwards is no list of triangles: nobody may read of a list what was not written.
  check_all(soup(8, 20000, 0.004f, true), 200);
  Mesh slivers;
  slivers.materials.resize(1);
  std::mt19937 random(9);
  std::uniform_real_distribution<float> place(0.1f, 0.9f), step(-0.08f, 0.08f);
  for (uint32_t t = 0; t < 30000; ++t) {
    const float from[3] = {place(random), place(random), place(random)};
    for (int i = 0; i < 3; ++i)
      for (const float c : from) slivers.positions.push_back(i == 0 ? c : i == 1 ? c + step(random) : c + 1e-6f);
    for (uint32_t i = 0; i < 3; ++i) slivers.indices.push_back(t * 3 + i);
    slivers.triangle_material.push_back(0);
  }
  VoxelizeOptions o;
  o.resolution = 3000;
  check_same(slivers, o);
}

TEST_CASE("voxelize cuda: textures, vertex colours, factors and glow are the same colours as on the host") {
  if (no_device()) return;
  check_all(soup(5, 2000, 0.03f, true), 150);
  check_all(soup(6, 100, 0.4f, true), 260);
  check_all(soup(7, 20000, 0.004f, true), 60);
}

TEST_CASE("voxelize cuda: real meshes are the same as on the host") {
  if (no_device()) return;
  const auto data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  for (const auto& [file, n] : {std::pair{"mesh/spot.obj", 400},
                                {"gltf/DamagedHelmet.glb", 256},
                                {"mesh/stanford-bunny.obj", 600},
                                {"gltf/Duck.glb", 200}}) {
    const auto mesh = read_mesh(data / file, {});
    if (!mesh && mesh.error().code == ErrorCode::not_found) continue;
    REQUIRE(mesh);
    check_all(*mesh, n);
  }
}

TEST_CASE("voxelize cuda: jobs from several threads get their own voxels") {
  if (no_device()) return;
  std::vector<int> wrong(4, 1);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < wrong.size(); ++i)
      threads.emplace_back([i, &wrong] {
        const Mesh mesh = soup(uint32_t(10 + i), 500, 0.05f, i % 2 == 0);
        VoxelizeOptions o;
        o.resolution = 120;
        o.threads = 1;
        o.executor = VoxelizeExecutor::host;
        const auto host = voxelize(mesh, o);
        o.executor = VoxelizeExecutor::cuda;
        for (int round = 0; round < 3; ++round) {
          const auto cuda = voxelize(mesh, o);
          wrong[i] = !host || !cuda || !(host->volumes[0].bricks == cuda->volumes[0].bricks);
          if (wrong[i]) return;
        }
      });
  }
  for (const int w : wrong) CHECK(w == 0);
}

TEST_CASE("voxelize cuda: a job that is cancelled says so, and asking for a device that is not there is an error") {
  const Mesh mesh = soup(1, 200, 0.1f, false);
  VoxelizeOptions o;
  o.resolution = 64;
  o.executor = VoxelizeExecutor::cuda;
  const std::atomic<bool> cancel{true};
  o.progress.cancel = &cancel;
  const auto stopped = voxelize(mesh, o);
  REQUIRE_FALSE(stopped);
  CHECK((stopped.error().code == ErrorCode::cancelled || stopped.error().code == ErrorCode::not_found ||
         stopped.error().code == ErrorCode::unsupported));
  o.progress.cancel = nullptr;
  o.executor = VoxelizeExecutor::automatic;  // never an error where only the device is missing
  CHECK(voxelize(mesh, o));
}

}  // namespace cuda_test
