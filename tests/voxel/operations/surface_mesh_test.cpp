// SPDX-License-Identifier: Apache-2.0
// surface_mesh_test.cpp - the surface mesh against the voxels, face by face: complete, no duplicates, closed edge by
// edge, of the right volume.
#include "voxel/operations/surface_mesh.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <tuple>

#include "voxel/generate/scenes.hpp"

namespace surface_mesh_test {

using namespace quarry;

namespace {

Palette test_palette() {
  Palette p = Palette::standard();
  for (Material& m : p.materials) m.transparency = 0;
  p.materials[7].transparency = 0.5f;  // clear voxels
  p.materials[8].transparency = 1;
  return p;
}

int kind_of(const Palette& p, uint8_t material) {
  return material == 0 ? 0 : p.materials[material].transparency > 0 ? 2 : 1;
}

struct Vec {
  int64_t x, y, z;
};
Vec vec(Int3 a, Int3 b) { return {int64_t(b.x) - a.x, int64_t(b.y) - a.y, int64_t(b.z) - a.z}; }
Vec cross(Vec a, Vec b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }

// Expected from the voxels, one by one: the faces of each material in each of six directions.
using Areas = std::map<std::tuple<uint8_t, int, int>, int64_t>;  // material, axis, sign -> faces
Areas areas_of(const BrickMap& bricks, const Palette& palette, std::array<uint64_t, 3>& voxels_of_kind) {
  Areas out;
  voxels_of_kind = {};
  for (const auto& [at, brick] : bricks.bricks())
    for (uint32_t n = 0; n < kVoxelsPerBrick; ++n) {
      if (!brick.materials[n]) continue;
      const Int3 v = Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(n);
      const int kind = kind_of(palette, brick.materials[n]);
      ++voxels_of_kind[size_t(kind)];
      for (int axis = 0; axis < 3; ++axis)
        for (int sign : {-1, 1}) {
          const Int3 next = v + Int3{axis == 0 ? sign : 0, axis == 1 ? sign : 0, axis == 2 ? sign : 0};
          if (kind_of(palette, bricks.get(next)) != kind) ++out[{brick.materials[n], axis, sign}];
        }
    }
  return out;
}

// "" if the mesh is the surface of the voxels, else the fault.
std::string judged(const SurfaceMesh& mesh, const BrickMap& bricks, const Palette& palette) {
  std::array<uint64_t, 3> voxels{};
  const Areas want = areas_of(bricks, palette, voxels);
  Areas twice;  // doubled areas
  std::array<int64_t, 3> six_volumes{};
  std::map<std::tuple<int, uint32_t, uint32_t>, int64_t> edges;  // kind, from, to
  for (const SurfaceMesh::Part& part : mesh.parts) {
    const int kind = kind_of(palette, part.material);
    if (part.indices.size() % 3) return "indices";
    for (size_t t = 0; t < part.indices.size(); t += 3) {
      const uint32_t i[3] = {part.indices[t], part.indices[t + 1], part.indices[t + 2]};
      for (const uint32_t index : i)
        if (index >= mesh.positions.size()) return "an index";
      const Int3 a = mesh.positions[i[0]], b = mesh.positions[i[1]], c = mesh.positions[i[2]];
      const Vec n = cross(vec(a, b), vec(a, c));
      const int axes = (n.x != 0) + (n.y != 0) + (n.z != 0);
      if (axes != 1) return "a triangle without area, or not along an axis";
      const int axis = n.x ? 0 : n.y ? 1 : 2;
      const int64_t doubled = n.x + n.y + n.z;
      twice[{part.material, axis, doubled > 0 ? 1 : -1}] += std::abs(doubled);
      six_volumes[size_t(kind)] += int64_t(a.x) * n.x + int64_t(a.y) * n.y + int64_t(a.z) * n.z;
      for (int e = 0; e < 3; ++e) ++edges[{kind, i[e], i[(e + 1) % 3]}];
    }
  }
  if (twice.size() != want.size()) return "which materials have faces where";
  for (const auto& [key, area] : want)
    if (twice[key] != 2 * area) return "the area of material " + std::to_string(std::get<0>(key));
  for (int kind : {1, 2})
    if (six_volumes[size_t(kind)] != int64_t(6 * voxels[size_t(kind)])) return "the volume";
  for (const auto& [edge, count] : edges) {
    const auto& [kind, from, to] = edge;
    const auto back = edges.find({kind, to, from});
    if (back == edges.end() || back->second != count) return "an open edge";
  }
  uint64_t faces = 0;
  for (const auto& [key, area] : want) faces += uint64_t(area);
  return faces == mesh.faces ? "" : "the count of faces";
}

SurfaceMesh made(const BrickMap& bricks, const Palette& palette, uint32_t threads = 0) {
  SurfaceMeshOptions options;
  options.threads = threads;
  auto mesh = surface_mesh(bricks, palette, options);
  REQUIRE(mesh);
  return std::move(*mesh);
}

}  // namespace

TEST_CASE("surface mesh: a box of one material is six rectangles, wherever bricks end") {
  const Palette palette = test_palette();
  for (const Int3 low : {Int3{0, 0, 0}, Int3{-5, 3, -17}, Int3{8184, 4088, -8192}}) {
    BrickMap bricks;
    for (int32_t x = 0; x < 7; ++x)
      for (int32_t y = 0; y < 5; ++y)
        for (int32_t z = 0; z < 12; ++z) bricks.set(low + Int3{x, y, z}, 3);
    const SurfaceMesh mesh = made(bricks, palette);
    CHECK(mesh.rectangles == 6);
    CHECK(mesh.positions.size() == 8);
    CHECK(mesh.triangle_count() == 12);
    CHECK(judged(mesh, bricks, palette) == "");
  }
}

TEST_CASE("surface mesh: no voxels, no surface") {
  const SurfaceMesh mesh = made({}, test_palette());
  CHECK(mesh.positions.empty());
  CHECK(mesh.parts.empty());
}

TEST_CASE(
    "surface mesh: random voxels of every density and of clear and opaque materials are covered exactly once and "
    "closed") {
  const Palette palette = test_palette();
  std::mt19937 random(17);
  for (const int per_mille : {5, 100, 500, 900, 1000})
    for (const int materials : {1, 2, 9}) {
      BrickMap bricks;
      const Int3 low{int32_t(random() % 40) - 20, int32_t(random() % 40) - 20, int32_t(random() % 40) - 20};
      for (int32_t x = 0; x < 19; ++x)
        for (int32_t y = 0; y < 17; ++y)
          for (int32_t z = 0; z < 21; ++z)
            if (int(random() % 1000) < per_mille)
              bricks.set(low + Int3{x, y, z}, uint8_t(1 + random() % uint32_t(materials)));
      INFO(per_mille << " of 1000, " << materials << " materials");
      CHECK(judged(made(bricks, palette), bricks, palette) == "");
    }
}

TEST_CASE("surface mesh: glass beside stone has a face of each, and each is closed by itself") {
  Palette palette = test_palette();
  BrickMap bricks;
  bricks.set({0, 0, 0}, 1);
  bricks.set({1, 0, 0}, 7);
  bricks.set({2, 0, 0}, 8);
  const SurfaceMesh mesh = made(bricks, palette);
  CHECK(mesh.faces == 6 + 5 + 5);
  CHECK(judged(mesh, bricks, palette) == "");
}

TEST_CASE("surface mesh: every face's middle lies in one triangle of its own material, seen from outside") {
  const Palette palette = test_palette();
  std::mt19937 random(5);
  BrickMap bricks;
  for (int i = 0; i < 900; ++i)
    bricks.set({int32_t(random() % 12), int32_t(random() % 12), int32_t(random() % 12)}, uint8_t(1 + random() % 3));
  const SurfaceMesh mesh = made(bricks, palette);
  int faces = 0;
  for (int32_t x = 0; x < 12; ++x)
    for (int32_t y = 0; y < 12; ++y)
      for (int32_t z = 0; z < 12; ++z)
        for (int axis = 0; axis < 3; ++axis)
          for (const int sign : {-1, 1}) {
            const Int3 cell{x, y, z};
            const uint8_t material = bricks.get(cell);
            const Int3 next = cell + Int3{axis == 0 ? sign : 0, axis == 1 ? sign : 0, axis == 2 ? sign : 0};
            const bool face = material && !bricks.get(next);
            // In hundredths of a voxel, off every diagonal that a triangle of this small mesh can have.
            int64_t p[3] = {x * 100 + 37, y * 100 + 53, z * 100 + 71};
            p[axis] = (axis == 0 ? x : axis == 1 ? y : z) * 100 + (sign > 0 ? 100 : 0);
            int found = 0;
            for (const SurfaceMesh::Part& part : mesh.parts)
              for (size_t t = 0; t < part.indices.size(); t += 3) {
                const Int3 c[3] = {mesh.positions[part.indices[t]], mesh.positions[part.indices[t + 1]],
                                   mesh.positions[part.indices[t + 2]]};
                const Vec n = cross(vec(c[0], c[1]), vec(c[0], c[2]));
                const int64_t along[3] = {n.x, n.y, n.z};
                const int64_t plane[3] = {c[0].x, c[0].y, c[0].z};
                if (along[axis] * sign <= 0 || plane[axis] * 100 != p[axis]) continue;
                bool inside = true;
                for (int e = 0; e < 3 && inside; ++e) {
                  const Int3 a = c[e], b = c[(e + 1) % 3];
                  const Vec side = cross(vec(a, b), {p[0] - a.x * 100, p[1] - a.y * 100, p[2] - a.z * 100});
                  inside = side.x * n.x + side.y * n.y + side.z * n.z > 0;
                }
                if (inside && ++found) CHECK(part.material == material);
              }
            CHECK(found == (face ? 1 : 0));
            faces += face;
          }
  CHECK(faces > 500);
}

TEST_CASE("surface mesh: the same whatever the number of threads; cancelled, it says so") {
  const auto scene = generate("terrain", 96, 3);
  REQUIRE(scene);
  const auto bricks = flatten(*scene, true);
  REQUIRE(bricks);
  const SurfaceMesh one = made(*bricks, scene->palette, 1), four = made(*bricks, scene->palette, 4);
  CHECK(one.positions == four.positions);
  REQUIRE(one.parts.size() == four.parts.size());
  for (size_t i = 0; i < one.parts.size(); ++i) {
    CHECK(one.parts[i].material == four.parts[i].material);
    CHECK(one.parts[i].indices == four.parts[i].indices);
  }
  CHECK(one.rectangles * 3 < one.faces * 2);
  CHECK(judged(one, *bricks, scene->palette) == "");
  const std::atomic<bool> stop{true};
  SurfaceMeshOptions options;
  options.progress.cancel = &stop;
  const auto stopped = surface_mesh(*bricks, scene->palette, options);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
}

}  // namespace surface_mesh_test
