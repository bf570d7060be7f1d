// SPDX-License-Identifier: Apache-2.0
// exact_test.cpp - which voxels are set, decided again by other exact arithmetic: edges against boxes and box edges
// against triangles in 128-bit rationals, orientation determinants, and floods that look for leaks.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <tuple>

#include "tests/test_data.hpp"
#include "voxel/foreign/mesh_client.hpp"
#include "voxel/voxelize/triangles.hpp"

namespace exact_test {

using namespace quarry;

namespace {

__extension__ typedef __int128 Wide;
constexpr int64_t kOne = 65536;  // a voxel
using Point = std::array<int64_t, 3>;

struct FixedPointTriangle {
  std::array<Point, 3> corners;
  Point low, high;  // its bounds, closed
};

// The mesh as the header says it is snapped, in voxel coordinates of the scene.
std::vector<FixedPointTriangle> fixed_point_triangles(const Mesh& mesh, const VoxelFrame& frame) {
  const int32_t dims[3] = {frame.dims.x, frame.dims.y, frame.dims.z},
                shift[3] = {frame.shift.x, frame.shift.y, frame.shift.z};
  std::vector<FixedPointTriangle> out(mesh.triangle_count());
  for (size_t t = 0; t < out.size(); ++t) {
    for (size_t i = 0; i < 3; ++i)
      for (size_t k = 0; k < 3; ++k) {
        const double voxels =
            (double(mesh.positions[size_t(mesh.indices[t * 3 + i]) * 3 + k]) - frame.origin[k]) * frame.scale;
        const int64_t odd = 2 * int64_t(std::floor(voxels * 32768)) + 1;
        out[t].corners[i][k] = std::clamp<int64_t>(odd, 1, dims[k] * kOne - 1) + shift[k] * kOne;
      }
    const auto& c = out[t].corners;
    for (size_t k = 0; k < 3; ++k) std::tie(out[t].low[k], out[t].high[k]) = std::minmax({c[0][k], c[1][k], c[2][k]});
  }
  return out;
}

// Whether the triangle's bounds and the cell, both closed, share a point: without one the triangle and the cell share
// none.
bool bounds_meet(const FixedPointTriangle& t, const Int3& cell) {
  return t.low[0] <= (cell.x + 1) * kOne && t.high[0] >= cell.x * kOne && t.low[1] <= (cell.y + 1) * kOne &&
         t.high[1] >= cell.y * kOne && t.low[2] <= (cell.z + 1) * kOne && t.high[2] >= cell.z * kOne;
}

// A closed segment and a closed box share a point: the parameters at which it is between each pair of faces overlap.
bool segment_meets_box(const Point& a, const Point& b, const Point& lo, const Point& hi) {
  // t in [from / from_of, to / to_of], denominators positive.
  Wide from = 0, from_of = 1, to = 1, to_of = 1;
  for (size_t k = 0; k < 3; ++k) {
    const int64_t d = b[k] - a[k];
    if (d == 0) {
      if (a[k] < lo[k] || a[k] > hi[k]) return false;
      continue;
    }
    const int64_t enter = d > 0 ? lo[k] - a[k] : a[k] - hi[k], leave = d > 0 ? hi[k] - a[k] : a[k] - lo[k],
                  of = std::abs(d);
    if (Wide(enter) * from_of > from * of) from = enter, from_of = of;
    if (Wide(leave) * to_of < to * of) to = leave, to_of = of;
  }
  return from * to_of <= to * from_of;
}

int orientation(const Point& a, const Point& b, const Point& c, const Point& d) {
  Wide m[3][3];
  for (size_t k = 0; k < 3; ++k) {
    m[0][k] = b[k] - a[k];
    m[1][k] = c[k] - a[k];
    m[2][k] = d[k] - a[k];
  }
  const Wide det = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
                   m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
                   m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
  return det > 0 ? 1 : det < 0 ? -1 : 0;
}

// A closed segment crosses a closed triangle's plane at one point, and that point is in the triangle.
bool segment_pierces(const std::array<Point, 3>& t, const Point& a, const Point& b) {
  const int at_a = orientation(t[0], t[1], t[2], a), at_b = orientation(t[0], t[1], t[2], b);
  if (at_a * at_b > 0 || (at_a == 0 && at_b == 0)) return false;
  const int s[3] = {orientation(a, b, t[0], t[1]), orientation(a, b, t[1], t[2]), orientation(a, b, t[2], t[0])};
  return (s[0] >= 0 && s[1] >= 0 && s[2] >= 0) || (s[0] <= 0 && s[1] <= 0 && s[2] <= 0);
}

// A triangle and a box share a point if a corner or an edge of the triangle does, or an edge of the box pierces the
// triangle.
bool triangle_meets_cell(const std::array<Point, 3>& t, const Int3& cell) {
  const Point lo{cell.x * kOne, cell.y * kOne, cell.z * kOne}, hi{lo[0] + kOne, lo[1] + kOne, lo[2] + kOne};
  for (size_t i = 0; i < 3; ++i)
    if (segment_meets_box(t[i], t[(i + 1) % 3], lo, hi)) return true;
  for (size_t k = 0; k < 3; ++k)
    for (int corner = 0; corner < 4; ++corner) {
      Point a = lo;
      const size_t u = (k + 1) % 3, v = (k + 2) % 3;
      if (corner & 1) a[u] = hi[u];
      if (corner & 2) a[v] = hi[v];
      Point b = a;
      b[k] = hi[k];
      if (segment_pierces(t, a, b)) return true;
    }
  return false;
}

bool triangle_meets_crosshair(const std::array<Point, 3>& t, const Int3& cell) {
  const Point centre{cell.x * kOne + kOne / 2, cell.y * kOne + kOne / 2, cell.z * kOne + kOne / 2};
  for (size_t k = 0; k < 3; ++k) {
    Point a = centre, b = centre;
    a[k] -= kOne / 2;
    b[k] += kOne / 2;
    if (segment_pierces(t, a, b)) return true;
  }
  return false;
}

bool sets(const FixedPointTriangle& t, const Int3& cell, SurfaceVoxels surface) {
  if (!bounds_meet(t, cell)) return false;
  return surface == SurfaceVoxels::thin ? triangle_meets_crosshair(t.corners, cell)
                                        : triangle_meets_cell(t.corners, cell);
}

VoxelizeOptions wanted(int32_t n, SurfaceVoxels surface = SurfaceVoxels::cover) {
  VoxelizeOptions o;
  o.resolution = n;
  o.surface = surface;
  return o;
}

// Random cells on the surface and beside it: set exactly if some triangle says so.
void check_random_cells(const Mesh& mesh, const VoxelizeOptions& options, size_t cells, uint32_t seed) {
  const auto scene = voxelize(mesh, options);
  const auto frame = voxel_frame(mesh, options);
  REQUIRE(scene);
  REQUIRE(frame);
  const BrickMap& bricks = scene->volumes[0].bricks;
  const auto triangles = fixed_point_triangles(mesh, *frame);
  std::mt19937 random(seed);
  size_t set = 0, missing = 0, extra = 0;
  for (size_t i = 0; i < cells; ++i) {
    // A point of a random triangle, moved by up to a voxel and a half.
    const auto& t = triangles[random() % triangles.size()].corners;
    const double a = std::uniform_real_distribution<double>(0, 1)(random),
                 b = std::uniform_real_distribution<double>(0, 1 - a)(random);
    int32_t at[3];
    for (size_t k = 0; k < 3; ++k) {
      const double p = double(t[0][k]) * (1 - a - b) + double(t[1][k]) * a + double(t[2][k]) * b;
      at[k] = int32_t(std::floor(p / kOne + std::uniform_real_distribution<double>(-1.5, 1.5)(random)));
    }
    const Int3 cell{at[0], at[1], at[2]};
    const bool expected = std::any_of(triangles.begin(), triangles.end(), [&](const FixedPointTriangle& other) {
      return sets(other, cell, options.surface);
    });
    const bool is = bricks.get(cell) != 0;
    set += is;
    missing += expected && !is;
    extra += is && !expected;
  }
  CHECK(missing == 0);
  CHECK(extra == 0);
  CHECK(set > cells / 8);
  CHECK(set < cells * 7 / 8);
}

Mesh soup(uint32_t seed, size_t triangles, float size) {
  Mesh m;
  m.materials.resize(1);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> place(0, 1), step(-size, size);
  for (size_t t = 0; t < triangles; ++t) {
    const float x = place(random), y = place(random), z = place(random);
    for (int i = 0; i < 3; ++i)
      for (const float c : {x, y, z}) m.positions.push_back(c + step(random));
    for (uint32_t i = 0; i < 3; ++i) m.indices.push_back(uint32_t(t * 3) + i);
    m.triangle_material.push_back(0);
  }
  return m;
}

// A ring (torus), turned off the axes; closed.
Mesh ring(int around, int across) {
  Mesh m;
  m.materials.resize(1);
  for (int i = 0; i < around; ++i)
    for (int j = 0; j < across; ++j) {
      const double a = 2 * M_PI * i / around, b = 2 * M_PI * j / across, r = 3 + std::cos(b);
      const double x = r * std::cos(a), y = std::sin(b), z = r * std::sin(a);
      m.positions.push_back(float(0.8 * x + 0.6 * y));
      m.positions.push_back(float(-0.6 * x + 0.8 * y + 0.1 * z));
      m.positions.push_back(float(z));
    }
  const auto at = [&](int i, int j) { return uint32_t((i % around) * across + j % across); };
  for (int i = 0; i < around; ++i)
    for (int j = 0; j < across; ++j)
      for (const uint32_t v : {at(i, j), at(i, j + 1), at(i + 1, j), at(i + 1, j), at(i, j + 1), at(i + 1, j + 1)})
        m.indices.push_back(v);
  m.triangle_material.assign(m.indices.size() / 3, 0);
  return m;
}

// Empty cells of the bounds that are not reached from outside of them by steps over faces (6) or over faces, edges and
// corners (26).
size_t kept_dry(const BrickMap& bricks, int steps) {
  const Box3 box = bricks.bounds();
  const Int3 low = box.min - Int3{1, 1, 1}, size = box.max - box.min + Int3{3, 3, 3};  // with a layer of air around
  const auto index = [&](const Int3& at) {
    return (size_t(at.z - low.z) * size_t(size.y) + size_t(at.y - low.y)) * size_t(size.x) + size_t(at.x - low.x);
  };
  enum : uint8_t { dry, wet, solid };
  std::vector<uint8_t> cells(size_t(size.x) * size_t(size.y) * size_t(size.z), dry);
  for (int32_t z = box.min.z; z <= box.max.z; ++z)
    for (int32_t y = box.min.y; y <= box.max.y; ++y)
      for (int32_t x = box.min.x; x <= box.max.x; ++x)
        if (bricks.get({x, y, z}) != 0) cells[index({x, y, z})] = solid;
  std::deque<Int3> todo{low};
  cells[index(low)] = wet;
  while (!todo.empty()) {
    const Int3 at = todo.front();
    todo.pop_front();
    for (int32_t z = -1; z <= 1; ++z)
      for (int32_t y = -1; y <= 1; ++y)
        for (int32_t x = -1; x <= 1; ++x) {
          if (steps == 6 && std::abs(x) + std::abs(y) + std::abs(z) != 1) continue;
          const Int3 next = at + Int3{x, y, z};
          if (next.x < low.x || next.y < low.y || next.z < low.z || next.x >= low.x + size.x ||
              next.y >= low.y + size.y || next.z >= low.z + size.z)
            continue;
          uint8_t& cell = cells[index(next)];
          if (cell != dry) continue;
          cell = wet;
          todo.push_back(next);
        }
  }
  return size_t(std::count(cells.begin(), cells.end(), dry));
}

}  // namespace

TEST_CASE(
    "voxelize exact: random cells of triangle soups agree with rationals and determinants, small triangles and large") {
  for (const SurfaceVoxels surface : {SurfaceVoxels::cover, SurfaceVoxels::thin}) {
    check_random_cells(soup(1, 300, 0.05f), wanted(120, surface), 3000, 2);
    check_random_cells(soup(3, 20, 0.8f), wanted(200, surface), 3000, 4);  // hundreds of voxels long
    check_random_cells(soup(5, 8, 0.9f), wanted(2500, surface), 1000, 6);  // beyond 64-bit products
  }
}

TEST_CASE("voxelize exact: corners on voxel faces, centres and edges are decided as the header says") {
  // Vertices on multiples of half a voxel: snapping alone decides, and every tie must fall the same way in both
  // arithmetics.
  Mesh m;
  m.materials.resize(1);
  std::mt19937 random(9);
  m.positions = {0, 0, 0, 24, 24, 24};
  for (uint32_t t = 0; t < 120; ++t) {
    for (int i = 0; i < 9; ++i) m.positions.push_back(float(random() % 49) / 2);
    for (uint32_t i = 0; i < 3; ++i) m.indices.push_back(2 + t * 3 + i);
    m.triangle_material.push_back(0);
  }
  m.indices.insert(m.indices.end(), {0, 1, 0});  // the bounds: a segment
  m.triangle_material.push_back(0);
  for (const SurfaceVoxels surface : {SurfaceVoxels::cover, SurfaceVoxels::thin}) {
    VoxelizeOptions o;
    o.voxel_size = 1;
    o.surface = surface;
    const auto scene = voxelize(m, o);
    const auto frame = voxel_frame(m, o);
    REQUIRE(scene);
    const auto triangles = fixed_point_triangles(m, *frame);
    size_t wrong = 0;
    for (int32_t z = 0; z < 24; ++z)
      for (int32_t y = 0; y < 24; ++y)
        for (int32_t x = 0; x < 24; ++x) {
          const Int3 cell = Int3{x, y, z} + frame->shift;
          const bool expected = std::any_of(triangles.begin(), triangles.end(),
                                            [&](const FixedPointTriangle& t) { return sets(t, cell, surface); });
          wrong += expected != (scene->volumes[0].bricks.get(cell) != 0);
        }
    CHECK(wrong == 0);
  }
}

TEST_CASE("voxelize exact: random cells of the bunny agree at 1024") {
  const auto data = test::data_dir();
  if (data.empty()) return test::skip("no test data");
  const auto mesh = read_mesh(data / "mesh/stanford-bunny.obj", {});
  REQUIRE(mesh);
  check_random_cells(*mesh, wanted(1024), 1500, 21);
  check_random_cells(*mesh, wanted(1024, SurfaceVoxels::thin), 1500, 22);
}

TEST_CASE("voxelize exact: what is 26-separating lets no step through, what is 6-separating no step over faces") {
  std::vector<Mesh> closed{ring(48, 20), ring(5, 3)};
  if (const auto data = test::data_dir(); !data.empty()) {
    auto spot = read_mesh(data / "mesh/spot.obj", {});
    REQUIRE(spot);
    closed.push_back(std::move(*spot));
  }
  for (const Mesh& mesh : closed) {
    const auto cover = voxelize(mesh, wanted(44)), thin = voxelize(mesh, wanted(44, SurfaceVoxels::thin));
    REQUIRE(cover);
    REQUIRE(thin);
    const BrickMap &thick = cover->volumes[0].bricks, &fine = thin->volumes[0].bricks;
    const size_t dry = kept_dry(thick, 26);
    CHECK(dry > 500);
    CHECK(kept_dry(fine, 6) > dry);  // thinner: more is inside
    CHECK(kept_dry(fine, 26) == 0);  // and it is as thin as it should be: steps over corners get through
    CHECK(fine.voxel_count() < thick.voxel_count() * 3 / 4);
    // Every thin voxel is touched, so it is among the others.
    size_t outside = 0;
    for (const auto& [at, brick] : fine.bricks()) {
      const auto other = thick.find(at);
      REQUIRE(other);
      for (size_t w = 0; w < 8; ++w) outside += (brick.mask[w] & ~other->mask[w]) != 0;
    }
    CHECK(outside == 0);
  }
}

}  // namespace exact_test
