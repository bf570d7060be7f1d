// SPDX-License-Identifier: Apache-2.0
// triangles_test.cpp - the voxeliser against counts worked out by hand, an independent clipping test, direct texture
// look-ups, and itself on other threads.
#include "voxel/voxelize/triangles.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "tests/app/sanitized.hpp"
#include "tests/test_data.hpp"
#include "voxel/foreign/mesh_client.hpp"
#include "voxel/io/meshes/formats.hpp"
#include "voxel/voxelize/overlap.hpp"
#include "voxel/voxelize/palette.hpp"

namespace triangles_test {

using namespace quarry;

namespace {

Mesh with_material(std::vector<float> positions, std::vector<uint32_t> indices) {
  Mesh m;
  m.positions = std::move(positions);
  m.indices = std::move(indices);
  m.triangle_material.assign(m.indices.size() / 3, 0);
  m.materials.resize(1);
  return m;
}
Mesh box(float x, float y, float z) {
  return with_material(
      {0, 0, 0, x, 0, 0, 0, y, 0, x, y, 0, 0, 0, z, x, 0, z, 0, y, z, x, y, z},
      {0, 1, 2, 1, 3, 2, 4, 6, 5, 5, 6, 7, 0, 4, 1, 1, 4, 5, 2, 3, 6, 3, 7, 6, 0, 2, 4, 2, 6, 4, 1, 5, 3, 3, 5, 7});
}
Mesh ball(float radius, int rings) {
  Mesh m = with_material({}, {});
  for (int j = 0; j <= rings; ++j)
    for (int i = 0; i <= 2 * rings; ++i) {
      const double a = M_PI * j / rings, b = M_PI * i / rings;
      for (const double v : {std::sin(a) * std::cos(b), std::cos(a), std::sin(a) * std::sin(b)})
        m.positions.push_back(float(v * radius));
    }
  const auto at = [&](int i, int j) { return uint32_t(j * (2 * rings + 1) + i); };
  for (int j = 0; j < rings; ++j)
    for (int i = 0; i < 2 * rings; ++i)
      for (const uint32_t v : {at(i, j), at(i, j + 1), at(i + 1, j), at(i + 1, j), at(i, j + 1), at(i + 1, j + 1)})
        m.indices.push_back(v);
  m.triangle_material.assign(m.indices.size() / 3, 0);
  return m;
}
VoxelizeOptions at_resolution(int32_t n, uint32_t threads = 0) {
  VoxelizeOptions o;
  o.resolution = n;
  o.threads = threads;
  return o;
}
VoxelizeOptions of_size(double size) {
  VoxelizeOptions o;
  o.voxel_size = size;
  return o;
}
const BrickMap& voxels(const Result<Scene>& scene) { return scene->volumes[0].bricks; }

// An independent witness: does the part of the triangle inside the box [lo, hi] exist? By clipping in long double.
bool clipped_part_exists(const long double t[3][3], const long double lo[3], const long double hi[3]) {
  std::vector<std::array<long double, 3>> ring;
  for (int i = 0; i < 3; ++i) ring.push_back({t[i][0], t[i][1], t[i][2]});
  for (size_t k = 0; k < 3; ++k)
    for (int side = 0; side < 2; ++side) {
      std::vector<std::array<long double, 3>> kept;
      const auto inside = [&](const std::array<long double, 3>& p) { return side ? hi[k] - p[k] : p[k] - lo[k]; };
      for (size_t i = 0; i < ring.size(); ++i) {
        const auto &a = ring[i], &b = ring[(i + 1) % ring.size()];
        const long double da = inside(a), db = inside(b);
        if (da >= 0) kept.push_back(a);
        if ((da < 0) != (db < 0)) {
          const long double f = da / (da - db);
          kept.push_back({a[0] + f * (b[0] - a[0]), a[1] + f * (b[1] - a[1]), a[2] + f * (b[2] - a[2])});
        }
      }
      ring = kept;
      if (ring.empty()) return false;
    }
  return true;
}

// Every set voxel is touched by a triangle (grown by a hair), and every voxel that a triangle clearly touches is set.
void check_against_clipping(const Mesh& mesh, int32_t n) {
  const auto frame = voxel_frame(mesh, at_resolution(n));
  const auto scene = voxelize(mesh, at_resolution(n));
  REQUIRE(frame);
  REQUIRE(scene);
  const long double hair = 1.0L / 16384;  // snapping moves a vertex by at most 1 / 65536 on each axis
  const int32_t shift[3] = {frame->shift.x, frame->shift.y, frame->shift.z};
  std::set<Int3> touched;
  uint64_t missing = 0;
  for (size_t t = 0; t < mesh.triangle_count(); ++t) {
    long double q[3][3];
    int32_t lo[3], hi[3];
    for (size_t k = 0; k < 3; ++k) {
      for (size_t i = 0; i < 3; ++i)
        q[i][k] =
            ((long double)mesh.positions[mesh.indices[t * 3 + i] * 3 + k] - frame->origin[k]) * frame->scale + shift[k];
      lo[k] = int32_t(std::floor(std::min({q[0][k], q[1][k], q[2][k]}) - hair));
      hi[k] = int32_t(std::floor(std::max({q[0][k], q[1][k], q[2][k]}) + hair));
    }
    for (int32_t z = lo[2]; z <= hi[2]; ++z)
      for (int32_t y = lo[1]; y <= hi[1]; ++y)
        for (int32_t x = lo[0]; x <= hi[0]; ++x) {
          const long double a[3] = {x - hair, y - hair, z - hair}, b[3] = {x + 1 + hair, y + 1 + hair, z + 1 + hair};
          if (!clipped_part_exists(q, a, b)) continue;
          touched.insert({x, y, z});
          const long double c[3] = {x + hair, y + hair, z + hair}, d[3] = {x + 1 - hair, y + 1 - hair, z + 1 - hair};
          if (clipped_part_exists(q, c, d) && !voxels(scene).get({x, y, z})) ++missing;
        }
  }
  uint64_t explained = 0;
  for (const Int3 v : touched) explained += voxels(scene).get(v) != 0;
  CHECK(missing == 0);
  CHECK(explained == voxels(scene).voxel_count());
}

}  // namespace

TEST_CASE("voxelize: a box is the shell of its voxels, exactly") {
  for (const int32_t n : {1, 2, 3, 8, 17, 100}) {
    const auto scene = voxelize(box(1, 1, 1), at_resolution(n));
    REQUIRE(scene);
    const uint64_t inner = n > 2 ? uint64_t(n - 2) * uint64_t(n - 2) * uint64_t(n - 2) : 0;
    CHECK(voxels(scene).voxel_count() == uint64_t(n) * uint64_t(n) * uint64_t(n) - inner);
    const Int3 low{-(n / 2), 0, -(n / 2)};
    CHECK(voxels(scene).bounds() == Box3{low, low + Int3{n - 1, n - 1, n - 1}});
  }
  // With a voxel size, faces lie exactly between voxels: the lower one belongs to the first layer, the upper one to the
  // last inside.
  const auto scene = voxelize(box(20, 10, 5), of_size(1));
  REQUIRE(scene);
  CHECK(voxels(scene).voxel_count() == 20 * 10 * 5 - 18 * 8 * 3);
  CHECK(voxels(scene).bounds() == Box3{{-10, 0, -2}, {9, 9, 2}});
}

TEST_CASE("voxelize: a plane is one layer, a tilted one covers the cells that its line crosses") {
  const Mesh flat = with_material({0, 0, 0, 64, 0, 0, 0, 0, 64, 64, 0, 64}, {0, 1, 2, 1, 3, 2});
  const auto layer = voxelize(flat, of_size(1));
  REQUIRE(layer);
  CHECK(voxels(layer).voxel_count() == 64 * 64);
  // Height from 0.25 to 15.75 over 64 cells of x: worked out cell by cell for the line of each column.
  const Mesh slope = with_material({0, 0.25f, 0, 64, 15.75f, 0, 0, 0.25f, 8, 64, 15.75f, 8, 0, 0, 0, 0, 0, 8},
                                   {0, 1, 2, 1, 3, 2, 0, 4, 5});
  const auto ramp = voxelize(slope, of_size(1));
  REQUIRE(ramp);
  uint64_t expected = 0;
  for (int x = 0; x < 64; ++x)
    expected += uint64_t(std::floor(0.25 + 15.5 * (x + 1) / 64) - std::floor(0.25 + 15.5 * x / 64) + 1) * 8;
  CHECK(voxels(ramp).voxel_count() == expected);
}

TEST_CASE("voxelize: a sphere has no hole and no voxel away from its surface") {
  const int32_t n = 64;
  const auto scene = voxelize(ball(1, 96), at_resolution(n));
  REQUIRE(scene);
  const double radius = (n - 0.5) / 2;
  for (int32_t z = -n / 2; z < n / 2; ++z)
    for (int32_t y = 0; y < n; ++y)
      for (int32_t x = -n / 2; x < n / 2; ++x) {
        // Least and greatest distance of the cell from the centre (0, n / 2, 0).
        double least = 0, most = 0;
        const int32_t above = y - n / 2;
        for (const double c : {double(x), double(above), double(z)}) {
          const double near = c > 0 ? c : c + 1 < 0 ? -(c + 1) : 0, far = std::max(std::abs(c), std::abs(c + 1));
          least += near * near;
          most += far * far;
        }
        const bool set = voxels(scene).get({x, y, z}) != 0;
        // The facets lie up to r (1 - cos(pi / 192)) inside the sphere.
        const double slack = radius * 0.0006 + 1e-3;
        if (std::sqrt(least) > radius + 1e-3 || std::sqrt(most) < radius - slack) REQUIRE_FALSE(set);
        if (std::sqrt(least) < radius - slack && std::sqrt(most) > radius + 1e-3) REQUIRE(set);
      }
}

TEST_CASE("voxelize: agrees with clipping in long double, triangle by triangle", "[one-caller]") {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> in(0, 1), little(-0.05f, 0.05f);
  Mesh soup = with_material({}, {});
  for (uint32_t t = 0; t < 60; ++t) {
    const float x = in(random), y = in(random), z = in(random);
    for (int i = 0; i < 3; ++i)
      // Some long, most short.
      for (const float c : {x, y, z}) soup.positions.push_back(t % 4 == 0 ? in(random) : c + little(random));
    for (uint32_t i = 0; i < 3; ++i) soup.indices.push_back(t * 3 + i);
    soup.triangle_material.push_back(0);
  }
  check_against_clipping(soup, 57);
  // Slivers, segments and points: a triangle with no area still touches cells.
  check_against_clipping(
      with_material({0, 0, 0, 1, 0.7f, 0.3f, 0.5f, 0.35f, 0.15f, 0.2f, 0.9f, 0.1f, 0.2f, 0.9f, 0.1f, 0.2f, 0.9f, 0.1f},
                    {0, 1, 2, 3, 4, 5, 0, 1, 5}),
      40);
  check_against_clipping(ball(1, 9), 33);
  const auto data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  const auto bunny = read_mesh(data / "mesh/bunny.ply", {});
  REQUIRE(bunny);
  check_against_clipping(*bunny, 48);
}

TEST_CASE("voxelize: the exact test takes every triangle size: small, beyond 16 voxels, and across the whole world") {
  using namespace voxelize_detail;
  // The same triangle scaled by powers of two touches cells scaled likewise; 64- and 128-bit arithmetic must agree
  // where both apply.
  std::mt19937 random(3);
  std::uniform_int_distribution<int32_t> place(0, (1 << 18) - 1);  // within 8 voxels
  for (int round = 0; round < 500; ++round) {
    FixedTriangle t;
    for (auto& vertex : t.v)
      for (int32_t& c : vertex) c = place(random) | 1;
    std::set<std::array<int, 3>> narrow, wide;
    visit_cells(t, kFractionBits, cells_of(t, kFractionBits), [&](int x, int y, int z) { narrow.insert({x, y, z}); });
    // At 2^11 times the size (128-bit), with cells that much larger too. The odd unit becomes 2^11, still off every
    // face.
    FixedTriangle big = t;
    for (auto& vertex : big.v)
      for (int32_t& c : vertex) c *= 1 << 11;
    visit_cells(big, kFractionBits + 11, cells_of(big, kFractionBits + 11), [&](int x, int y, int z) {
      wide.insert({x, y, z});
    });
    REQUIRE(narrow == wide);
  }
  Mesh huge = with_material({0, 0, 0, 1, 0.01f, 0, 0, 0, 1}, {0, 1, 2});
  const auto frame = voxel_frame(huge, at_resolution(16384));
  REQUIRE(frame);
  CHECK(frame->dims == Int3{16384, 165, 16384});
}

TEST_CASE("voxelize: the bunny has the known number of voxels") {
  const auto data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  const auto mesh = read_mesh(data / "mesh/stanford-bunny.obj", {});
  REQUIRE(mesh);
  struct Known {
    int32_t n;
    double count;
  };
  for (const Known k : {Known{128, 55707}, Known{256, 223585}, Known{512, 896366}}) {
    const auto scene = voxelize(*mesh, at_resolution(k.n));
    REQUIRE(scene);
    // One other program's counts; its arithmetic is not ours.
    CHECK(std::abs(double(voxels(scene).voxel_count()) - k.count) <= k.count * 2e-5 + 3);
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(used.ru_maxrss < 200 * 1024);  // of the whole test program so far, in KiB
#endif
}

TEST_CASE("voxelize: the same voxels and colours whatever the threads and the order of the triangles") {
  constexpr int kEdge = test::kThreadSanitized ? 40 : 96;
  const auto data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  for (const char* file : {"mesh/spot.obj", "gltf/DamagedHelmet.glb"}) {
    auto mesh = read_mesh(data / file, {});
    REQUIRE(mesh);
    const auto one = voxelize(*mesh, at_resolution(kEdge, 1)), four = voxelize(*mesh, at_resolution(kEdge, 4));
    REQUIRE(one);
    REQUIRE(four);
    CHECK((voxels(one) == voxels(four)));
    CHECK(one->palette == four->palette);
    // Triangles in another order.
    std::vector<size_t> order(mesh->triangle_count());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(5));
    Mesh other = *mesh;
    for (size_t i = 0; i < order.size(); ++i) {
      for (size_t k = 0; k < 3; ++k) other.indices[i * 3 + k] = mesh->indices[order[i] * 3 + k];
      other.triangle_material[i] = mesh->triangle_material[order[i]];
    }
    const auto shuffled = voxelize(other, at_resolution(kEdge));
    REQUIRE(shuffled);
    CHECK((voxels(one) == voxels(shuffled)));
    CHECK(one->palette == shuffled->palette);
  }
}

TEST_CASE("voxelize: spot's colours are those of its texture at random points of the surface") {
  const auto data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  const auto mesh = read_mesh(data / "mesh/spot.obj", {});
  REQUIRE(mesh);
  REQUIRE(mesh->images.size() == 1);
  const auto frame = voxel_frame(*mesh, at_resolution(400));
  const auto scene = voxelize(*mesh, at_resolution(400));
  REQUIRE(frame);
  REQUIRE(scene);
  const Image& image = mesh->images[0];
  std::mt19937 random(11);
  std::uniform_real_distribution<double> in(0, 1);
  size_t close = 0, points = 2000;
  double squares = 0;
  for (size_t i = 0; i < points; ++i) {
    const size_t t = random() % mesh->triangle_count();
    double a = in(random), b = in(random);
    if (a + b > 1) a = 1 - a, b = 1 - b;
    const double w[3] = {1 - a - b, a, b};
    double p[3] = {0, 0, 0}, u = 0, v = 0;
    for (size_t k = 0; k < 3; ++k) {
      const size_t vertex = mesh->indices[t * 3 + k];
      for (size_t c = 0; c < 3; ++c) p[c] += w[k] * mesh->positions[vertex * 3 + c];
      u += w[k] * mesh->uvs[vertex * 2];
      v += w[k] * mesh->uvs[vertex * 2 + 1];
    }
    const Int3 voxel{int32_t(std::floor((p[0] - frame->origin[0]) * frame->scale)) + frame->shift.x,
                     int32_t(std::floor((p[1] - frame->origin[1]) * frame->scale)) + frame->shift.y,
                     int32_t(std::floor((p[2] - frame->origin[2]) * frame->scale)) + frame->shift.z};
    const uint8_t index = voxels(scene).get(voxel);
    REQUIRE(index != 0);
    // Pictures repeat.
    const auto texel_of = [](double at, uint32_t size) {
      return std::min(size - 1, uint32_t((at - std::floor(at)) * size));
    };
    const uint32_t x = texel_of(u, image.width), y = texel_of(v, image.height);
    const uint8_t* texel = &image.rgba[(size_t(y) * image.width + x) * 4];
    const Material& m = scene->palette.materials[index];
    const int far =
        std::max({std::abs(int(texel[0]) - m.r), std::abs(int(texel[1]) - m.g), std::abs(int(texel[2]) - m.b)});
    close += far <= 12;
    squares += far * far;
  }
  // The texture is mostly flat; what is left are voxels on the edge of a spot.
  CHECK(close >= points * 95 / 100);
  CHECK(std::sqrt(squares / double(points)) < 15);
}

TEST_CASE("voxelize: colours come through unchanged while the palette has room") {
  Mesh m = box(1, 1, 1);
  m.materials.resize(3);
  m.materials[1].base_color[0] = m.materials[1].base_color[1] = 0;
  m.materials[2].base_color[0] = m.materials[2].base_color[1] = m.materials[2].base_color[2] = 1;
  m.materials[2].emission[0] = 4;
  m.materials[2].emission[1] = 2;
  for (size_t t = 0; t < 12; ++t) m.triangle_material[t] = uint32_t(t / 2 % 3);
  const auto scene = voxelize(m, at_resolution(9));
  REQUIRE(scene);
  // Face z = 0 is white, z = 8 is blue, y = 0 glows. The middles of faces belong to one material.
  const auto at = [&](Int3 v) { return scene->palette.materials[voxels(scene).get(v)]; };
  const Material white = at({0, 4, -4}), blue = at({0, 4, 4}), lamp = at({0, 0, 0});
  CHECK((white.r == 255 && white.g == 255 && white.b == 255 && white.emission == 0));
  CHECK((blue.r == 0 && blue.g == 0 && blue.b == 255));
  CHECK(lamp.emission == Approx(4).epsilon(0.03));
  CHECK((lamp.r == 255 && lamp.b == 0));
  CHECK(lamp.g == 188);  // half of the red, linear, as an sRGB byte
  CHECK(white.roughness == Approx(0.9).margin(0.002));
  CHECK(scene->metadata.at("palette_rms_error") == "0.000");
}

TEST_CASE("voxelize: vertex colours are interpolated, and too many colours are quantised with a small stated error") {
  Mesh m = with_material({0, 0, 0, 256, 0, 0, 0, 0, 256, 256, 0, 256}, {0, 1, 2, 1, 3, 2});
  m.colors = {0, 0, 0, 255, 255, 0, 0, 255, 0, 255, 0, 255, 255, 255, 0, 255};
  const auto scene = voxelize(m, of_size(1));
  REQUIRE(scene);
  CHECK(std::stoul(scene->metadata.at("palette_distinct")) > 255);
  CHECK(std::stod(scene->metadata.at("palette_rms_error")) < 8);
  const auto at = [&](Int3 v) { return scene->palette.materials[voxels(scene).get(v)]; };
  CHECK(at({127, 0, -128}).r > 235);
  CHECK(at({127, 0, -128}).g < 40);
  CHECK(at({-128, 0, 127}).g > 235);
  // Half way along in linear light.
  CHECK(int(at({0, 0, -128}).r) == Approx(188).margin(14));
}

TEST_CASE("voxelize: the palette is exact up to 255 looks and near the best beyond") {
  using namespace voxelize_detail;
  std::vector<MaterialCount> materials;
  for (uint64_t i = 0; i < 255; ++i) materials.push_back({i * 2654435761u % 0xFFFFFF | 0xFF000000u, i + 1});
  std::sort(materials.begin(), materials.end(), [](auto a, auto b) { return a.material < b.material; });
  const Quantised exact = quantise(materials, 2);
  CHECK(exact.rms_error == 0);
  for (const MaterialCount& l : materials)
    CHECK(exact.palette.materials[exact.of(l.material)] == material_of(l.material));
  // A cube of 16^3 colours: 255 cells of it have an error near that of a lattice, 255 / 16 / sqrt(12) * (4096 /
  // 255)^(1/3) / 2.
  materials.clear();
  for (uint64_t r = 0; r < 16; ++r)
    for (uint64_t g = 0; g < 16; ++g)
      for (uint64_t b = 0; b < 16; ++b) materials.push_back({r * 17 | g * 17 << 8 | b * 17 << 16 | 0xFF000000u, 1});
  const Quantised many = quantise(materials, 2);
  CHECK(many.rms_error > 5);
  CHECK(many.rms_error < 14);
  for (const MaterialCount& l : materials) CHECK(many.of(l.material) != 0);
}

TEST_CASE("voxelize: what cannot be voxelised is refused with a reason") {
  const auto refused = [](const Mesh& m, const VoxelizeOptions& o, ErrorCode code) {
    const auto scene = voxelize(m, o);
    REQUIRE_FALSE(scene);
    CHECK(scene.error().code == code);
    CHECK(scene.error().message.size() > 20);
  };
  refused(with_material({}, {}), at_resolution(8), ErrorCode::invalid_argument);
  refused(with_material({0, 0, 0, 1, 1, NAN, 0, 1, 0}, {0, 1, 2}), at_resolution(8), ErrorCode::invalid_argument);
  refused(with_material({0, 0, 0, 1, 1, 1, 0, 1, 0}, {0, 1, 3}), at_resolution(8), ErrorCode::invalid_argument);
  refused(with_material({2, 2, 2, 2, 2, 2, 2, 2, 2}, {0, 1, 2}), at_resolution(8), ErrorCode::invalid_argument);
  refused(box(1, 1, 1), at_resolution(0), ErrorCode::invalid_argument);
  refused(box(1, 1, 1), at_resolution(9000), ErrorCode::out_of_bounds);  // as tall as no world
  // What is too tall to rest on the ground is about it.
  CHECK(voxel_frame(box(1, 4, 1), at_resolution(4096))->shift == Int3{-512, 0, -512});
  CHECK(voxel_frame(box(1, 4, 1), at_resolution(4097))->shift.y == -2048);
  const auto widest = voxel_frame(box(4, 1.9f, 4), at_resolution(16384));
  REQUIRE(widest);
  CHECK(widest->shift.x == -8192);
  CHECK(widest->shift.y == -widest->dims.y / 2);
  refused(box(1, 1, 1), of_size(1e-30), ErrorCode::out_of_bounds);
  const std::atomic<bool> cancel{true};
  VoxelizeOptions o = at_resolution(64);
  o.progress.cancel = &cancel;
  refused(box(1, 1, 1), o, ErrorCode::cancelled);
}

TEST_CASE("voxelize: far and tiny meshes keep their shape") {
  Mesh m = box(1e-6f, 1e-6f, 1e-6f);
  CHECK(voxels(voxelize(m, at_resolution(10))).voxel_count() == 488);
  m = box(1e30f, 1e30f, 1e30f);
  CHECK(voxels(voxelize(m, at_resolution(10))).voxel_count() == 488);
  m = box(64, 64, 64);
  for (size_t i = 0; i < m.positions.size(); i += 3) m.positions[i] += 1e6f;
  CHECK(voxels(voxelize(m, at_resolution(10))).voxel_count() == 488);
}

TEST_CASE("mesh formats: every mesh of the shared data becomes a scene named after its file") {
  const auto data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  for (const char* name : {"mesh/20mm-xyz-cube.stl", "mesh/BoxTextured.ply", "mesh/ballA.off",
                           "mesh/dragon_vrip_res4.ply", "mesh/spot.obj", "gltf/BoxTextured.glb", "gltf/Duck.glb"}) {
    const std::filesystem::path file = data / name;
    const std::string extension = file.extension().string().substr(1);
    const io::Format* format = nullptr;
    for (const io::Format& f : io::mesh_formats())
      for (const char* e : f.extensions)
        if (e == extension) format = &f;
    REQUIRE(format);
    io::ReadOptions options;
    options.resolution = 64;
    const auto scene = format->read(file, options);
    REQUIRE(scene);
    CHECK(scene->volumes.size() == 1);
    CHECK(scene->volumes[0].name == file.stem().string());
    CHECK(scene->instances.size() == 1);
    CHECK(scene->volumes[0].bricks.bounds().min.y == 0);
    CHECK(scene->metadata.at("source_format") == extension);
    CHECK(std::stod(scene->metadata.at("voxel_size")) > 0);
  }
}

}  // namespace triangles_test
