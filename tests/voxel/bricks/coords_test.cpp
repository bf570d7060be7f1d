// SPDX-License-Identifier: Apache-2.0
// coords_test.cpp - the promises of voxel/bricks/coords.hpp and brick.hpp: packing, order inside a brick, boxes, and
// the group of 48 rotations, whose products and inverses are compared with plain 3x3 matrices.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "voxel/bricks/brick.hpp"
#include "voxel/bricks/coords.hpp"

namespace coords_test {

using namespace quarry;

namespace {

using Matrix = std::array<std::array<int, 3>, 3>;

std::vector<Rotation> all_rotations() {
  std::vector<Rotation> all;
  const uint8_t permutations[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& p : permutations)
    for (int signs = 0; signs < 8; ++signs) {
      Rotation r;
      for (size_t row = 0; row < 3; ++row) {
        r.axis[row] = p[row];
        r.sign[row] = int8_t((signs >> row & 1) ? -1 : 1);
      }
      all.push_back(r);
    }
  return all;
}

Matrix matrix_of(const Rotation& r) {
  Matrix m{};
  for (size_t row = 0; row < 3; ++row)
    m[row][r.axis[row]] = int(r.sign[row]);  // NOLINT(bugprone-signed-char-misuse): a number, -1 or 1
  return m;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix m{};
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j)
      for (size_t k = 0; k < 3; ++k) m[i][j] += a[i][k] * b[k][j];
  return m;
}

int determinant(const Matrix& m) {
  return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
         m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

Int3 random_voxel(std::mt19937& random, int reach) {
  std::uniform_int_distribution<int> pick(-reach, reach);
  return {pick(random), pick(random), pick(random)};
}

}  // namespace

TEST_CASE("coords: brick coordinates survive packing, and only the corner brick has the reserved key") {
  for (const int x : {-1024, -1, 0, 5, 1023})
    for (const int y : {-512, -1, 0, 7, 511})
      for (const int z : {-1024, -1, 0, 9, 1023}) {
        const uint32_t key = qry_pack_brick(x, y, z);
        CHECK(qry_brick_x(key) == x);
        CHECK(qry_brick_y(key) == y);
        CHECK(qry_brick_z(key) == z);
        CHECK((key == kQryReservedKey) == (x == 1023 && y == 511 && z == 1023));
      }
}

TEST_CASE("coords: a brick's key unpacks to the brick, at every corner and in between") {
  std::mt19937 random(1);
  std::vector<Int3> bricks = {{-1024, -512, -1024}, {1023, 511, 1022}, {1022, 511, 1023},
                              {1023, 510, 1023},    {0, 0, 0},         {-1, -1, -1}};
  for (int i = 0; i < 1000; ++i) {
    const Int3 v = random_voxel(random, 8191);
    bricks.push_back({v.x >> 3, v.y >> 4, v.z >> 3});
  }
  for (const Int3 b : bricks) {
    REQUIRE(brick_in_world(b));
    REQUIRE(brick_key(b) != kQryReservedKey);
    REQUIRE(brick_from_key(brick_key(b)) == b);
  }
}

TEST_CASE("coords: the reserved corner brick and everything beyond the faces is outside the world") {
  REQUIRE(brick_key({1023, 511, 1023}) == kQryReservedKey);
  for (const Int3 b :
       {Int3{1023, 511, 1023}, {1024, 0, 0}, {-1025, 0, 0}, {0, 512, 0}, {0, -513, 0}, {0, 0, 1024}, {0, 0, -1025}})
    REQUIRE_FALSE(brick_in_world(b));
  REQUIRE(voxel_in_world(kWorldMin));
  REQUIRE_FALSE(voxel_in_world(kWorldMax));
  REQUIRE(voxel_in_world(kWorldMax - Int3{8, 0, 0}));
}

TEST_CASE("coords: a voxel's index in its brick is a bijection that voxel_from_index undoes") {
  std::set<uint32_t> seen;
  for (int z = -8; z < 0; ++z)
    for (int y = -8; y < 0; ++y)
      for (int x = -8; x < 0; ++x) {
        const uint32_t index = voxel_index({x, y, z});
        REQUIRE(index < kVoxelsPerBrick);
        REQUIRE(seen.insert(index).second);
        REQUIRE(voxel_from_index(index) == Int3{x & 7, y & 7, z & 7});
      }
}

TEST_CASE("coords: united boxes hold both, intersected ones what is in both, and empty ones add nothing") {
  const Box3 a{{0, 0, 0}, {5, 6, 7}}, b{{3, -2, 7}, {9, 2, 9}}, apart{{6, 0, 0}, {7, 1, 1}};
  REQUIRE(united(a, b) == Box3{{0, -2, 0}, {9, 6, 9}});
  REQUIRE(intersected(a, b) == Box3{{3, 0, 7}, {5, 2, 7}});
  REQUIRE(intersected(a, apart).empty());
  REQUIRE(united(a, Box3{}) == a);
  REQUIRE(united(Box3{}, a) == a);
  REQUIRE(united(Box3{}, Box3{}).empty());
}

TEST_CASE("coords: the 48 rotations are a group, with the products, inverses and mirrors of their matrices") {
  const std::vector<Rotation> all = all_rotations();
  REQUIRE(all.size() == 48);
  int mirrors = 0;
  for (const Rotation& a : all) {
    REQUIRE(a.mirrored() == (determinant(matrix_of(a)) < 0));
    mirrors += a.mirrored();
    REQUIRE((a * a.inverse()).identity());
    REQUIRE((a.inverse() * a).identity());
    for (const Rotation& b : all) REQUIRE(matrix_of(a * b) == product(matrix_of(a), matrix_of(b)));
  }
  REQUIRE(mirrors == 24);
}

TEST_CASE("coords: a rotated cell is the cell around the rotated centre") {
  std::mt19937 random(2);
  for (const Rotation& r : all_rotations()) {
    for (int i = 0; i < 50; ++i) {
      const Int3 cell = random_voxel(random, 1000);
      const double centre[3] = {cell.x + 0.5, cell.y + 0.5, cell.z + 0.5};
      const Matrix m = matrix_of(r);
      int expected[3];
      for (size_t row = 0; row < 3; ++row)
        expected[row] = int(std::floor(m[row][0] * centre[0] + m[row][1] * centre[1] + m[row][2] * centre[2]));
      REQUIRE(r.apply_to_cell(cell) == Int3{expected[0], expected[1], expected[2]});
      REQUIRE(r.inverse().apply_to_cell(r.apply_to_cell(cell)) == cell);
      const Int3 v = r.apply_to_vector(cell);
      REQUIRE(v == Int3{m[0][0] * cell.x + m[0][1] * cell.y + m[0][2] * cell.z,
                        m[1][0] * cell.x + m[1][1] * cell.y + m[1][2] * cell.z,
                        m[2][0] * cell.x + m[2][1] * cell.y + m[2][2] * cell.z});
    }
  }
}

TEST_CASE("coords: products of rotations carry cells as the two rotations one after the other") {
  std::mt19937 random(3);
  const std::vector<Rotation> all = all_rotations();
  for (const Rotation& a : all)
    for (const Rotation& b : all) {
      const Int3 cell = random_voxel(random, 100);
      REQUIRE((a * b).apply_to_cell(cell) == a.apply_to_cell(b.apply_to_cell(cell)));
    }
}

TEST_CASE("brick: the bounds of a mask are those of its voxels one by one") {
  std::mt19937 random(4);
  std::uniform_int_distribution<uint32_t> index(0, 511);
  REQUIRE(voxel_bounds({3, 4, 5}, BrickMask{}).empty());
  for (int round = 0; round < 500; ++round) {
    Brick brick;
    Box3 expected;
    const Int3 at{round % 7 - 3, round % 5 - 2, round % 3 - 1};
    for (int n = 0; n <= round % 6; ++n) {
      const uint32_t i = index(random);
      brick.set(i, 7);
      const Int3 v = voxel_from_index(i) + Int3{at.x * 8, at.y * 8, at.z * 8};
      expected = united(expected, {v, v});
    }
    REQUIRE(voxel_bounds(at, brick.mask) == expected);
  }
}

TEST_CASE("brick: mask and materials agree after any sets") {
  std::mt19937 random(5);
  std::uniform_int_distribution<uint32_t> index(0, 511), material(0, 3);
  Brick brick;
  for (int n = 0; n < 3000; ++n) brick.set(index(random), uint8_t(material(random)));
  uint32_t set = 0;
  for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
    const bool in_mask = (brick.mask[i >> 6] >> (i & 63u) & 1u) != 0;
    REQUIRE(in_mask == (brick.get(i) != 0));
    set += in_mask;
  }
  REQUIRE(brick.count() == set);
  REQUIRE(brick.empty() == (set == 0));
}

}  // namespace coords_test
