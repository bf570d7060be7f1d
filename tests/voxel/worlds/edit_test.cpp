// SPDX-License-Identifier: Apache-2.0
// edit_test.cpp - edit shapes and modes against naive membership tests in long arithmetic, voxel by voxel.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "tests/app/sanitized.hpp"
#include "voxel/worlds/edit.hpp"

namespace edit_test {

using namespace quarry;

namespace {

// Distances in long double. Radii in the tests are such that no squared distance is within 1e-9 of the squared radius
// unless equal.
bool inside(const Edit& e, Int3 v) {
  const auto sq = [](long double d) { return d * d; };
  if (e.shape == Shape::box) {
    return v.x >= std::min(e.a.x, e.b.x) && v.x <= std::max(e.a.x, e.b.x) && v.y >= std::min(e.a.y, e.b.y) &&
           v.y <= std::max(e.a.y, e.b.y) && v.z >= std::min(e.a.z, e.b.z) && v.z <= std::max(e.a.z, e.b.z);
  }
  const long double p[3] = {(long double)v.x - e.a.x, (long double)v.y - e.a.y, (long double)v.z - e.a.z};
  long double d[3] = {0, 0, 0};
  if (e.shape == Shape::line)
    d[0] = (long double)e.b.x - e.a.x, d[1] = (long double)e.b.y - e.a.y, d[2] = (long double)e.b.z - e.a.z;
  const long double length2 = sq(d[0]) + sq(d[1]) + sq(d[2]);
  long double t = length2 > 0 ? (p[0] * d[0] + p[1] * d[1] + p[2] * d[2]) / length2 : 0;
  t = std::clamp(t, 0.0L, 1.0L);
  const long double distance2 = sq(p[0] - t * d[0]) + sq(p[1] - t * d[1]) + sq(p[2] - t * d[2]);
  return distance2 <= sq((long double)e.radius) + 1e-9L;
}

std::set<Int3> cells_of(const Edit& edit, Box3 bricks) {
  std::set<Int3> cells;
  for (int x = bricks.min.x; x <= bricks.max.x; ++x)
    for (int y = bricks.min.y; y <= bricks.max.y; ++y)
      for (int z = bricks.min.z; z <= bricks.max.z; ++z) {
        const BrickMask mask = edit_mask(edit, {x, y, z});
        for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
          if (mask[i >> 6] >> (i & 63u) & 1u) cells.insert(voxel_from_index(i) + Int3{x * 8, y * 8, z * 8});
      }
  return cells;
}

Edit make(Shape shape, Int3 a, Int3 b, double radius) {
  Edit edit;
  edit.shape = shape;
  edit.a = a;
  edit.b = b;
  edit.radius = radius;
  return edit;
}

Int3 random_voxel(std::mt19937& random, int reach) {
  std::uniform_int_distribution<int> pick(-reach, reach);
  return {pick(random), pick(random), pick(random)};
}

// Random edits over a shared small region, so that modes meet all kinds of voxels.
Edit random_edit(std::mt19937& random, int reach) {
  Edit edit =
      make(Shape(random() % 3), random_voxel(random, reach), random_voxel(random, reach), double(random() % 40) / 4);
  edit.mode = Mode(random() % 5);
  edit.material = uint8_t(random() % 5);
  edit.from = uint8_t(random() % 5);
  return edit;
}

BrickMap random_bricks(std::mt19937& random, int reach) {
  BrickMap map;
  for (int n = 0; n < 3000; ++n) map.set(random_voxel(random, reach), uint8_t(1 + random() % 4));
  return map;
}

}  // namespace

TEST_CASE("edit: boxes, spheres and lines hold the voxels whose centres are inside, and their bounds are tight",
          "[one-caller]") {
  std::mt19937 random(1);
  for (int round = 0; round < (test::kSanitized ? 15 : 60); ++round) {
    const double radius = round % 3 == 0 ? double(random() % 12) : std::sqrt(double(random() % 120) + 0.5);
    const Shape shape = Shape(round % 3);
    const Edit edit = make(shape, random_voxel(random, 20), random_voxel(random, 20),
                           shape == Shape::line ? std::max(radius, 0.5) : radius);
    const auto bounds = edit_bounds(edit);
    REQUIRE(bounds);
    const std::set<Int3> cells = cells_of(edit, {{-6, -6, -6}, {5, 5, 5}});
    Box3 tight;
    uint32_t wrong = 0;
    for (int x = -48; x < 48; ++x)
      for (int y = -48; y < 48; ++y)
        for (int z = -48; z < 48; ++z) {
          const bool expected = inside(edit, {x, y, z});
          wrong += expected != (cells.count({x, y, z}) == 1);
          if (expected) tight = united(tight, {{x, y, z}, {x, y, z}});
        }
    REQUIRE(wrong == 0);
    REQUIRE(*bounds == tight);
  }
}

TEST_CASE("edit: a radius that is the exact distance to a voxel takes it, the next smaller number does not") {
  for (const int d2 : {1, 2, 3, 5, 25, 1000001}) {
    // The smallest double whose exact square is at least d2.
    double radius = std::sqrt(double(d2));
    if (std::fma(radius, radius, -double(d2)) < 0) radius = std::nextafter(radius, 1e9);
    REQUIRE(std::fma(radius, radius, -double(d2)) >= 0);
    Int3 v{};  // some voxel at that distance
    for (int x = 0; x * x <= d2 && v == Int3{}; ++x)
      for (int y = 0; x * x + y * y <= d2 && v == Int3{}; ++y) {
        const int z = int(std::lround(std::sqrt(double(d2 - x * x - y * y))));
        if (x * x + y * y + z * z == d2) v = {x, y, z};
      }
    REQUIRE(v != Int3{});
    for (const Shape shape : {Shape::sphere, Shape::line}) {
      const auto has = [&](double r) {
        return (edit_mask(make(shape, {0, 0, 0}, {0, 0, -9}, r), brick_of(v))[octant_of(v)] >> bit_of(v) & 1u) != 0;
      };
      REQUIRE(has(radius));
      REQUIRE_FALSE(has(std::nextafter(radius, 0.0)));
    }
  }
  // Beside a diagonal segment: v = (1,-1,0) is sqrt(2) from the line along (1,1,0).
  const auto has = [](double r) {
    return (edit_mask(make(Shape::line, {-50, -50, 0}, {60, 60, 0}, r), {0, -1, 0})[octant_of({1, -1, 0})] >>
                bit_of({1, -1, 0}) &
            1u) != 0;
  };
  REQUIRE(has(std::nextafter(std::sqrt(2.0), 2.0)));
  REQUIRE_FALSE(has(std::nextafter(std::sqrt(2.0), 1.0)));
}

TEST_CASE("edit: a line of radius 0 is 6-connected from end to end, as short as can be, along its segment",
          "[one-caller]") {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const Edit edit = make(Shape::line, random_voxel(random, 40), random_voxel(random, 40), 0);
    const std::set<Int3> cells = cells_of(edit, {{-6, -6, -6}, {5, 5, 5}});
    const Int3 d = edit.b - edit.a;
    REQUIRE(cells.size() == size_t(std::abs(d.x) + std::abs(d.y) + std::abs(d.z)) + 1);
    REQUIRE(cells.count(edit.a) == 1);
    REQUIRE(cells.count(edit.b) == 1);
    std::set<Int3> reached = {edit.a};
    std::vector<Int3> next = {edit.a};
    while (!next.empty()) {
      const Int3 v = next.back();
      next.pop_back();
      for (const Int3 step : {Int3{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}})
        if (cells.count(v + step) && reached.insert(v + step).second) next.push_back(v + step);
    }
    REQUIRE(reached.size() == cells.size());
    // The segment passes through (or touches) every voxel's cube: slab test.
    for (const Int3 v : cells) {
      double enter = 0, leave = 1;
      const int at[3] = {v.x - edit.a.x, v.y - edit.a.y, v.z - edit.a.z}, along[3] = {d.x, d.y, d.z};
      for (size_t i = 0; i < 3; ++i) {
        if (along[i] == 0) continue;
        const double t0 = (at[i] - 0.5) / along[i], t1 = (at[i] + 0.5) / along[i];
        enter = std::max(enter, std::min(t0, t1));
        leave = std::min(leave, std::max(t0, t1));
      }
      REQUIRE(enter <= leave + 1e-12);
    }
  }
}

TEST_CASE("edit: every mode changes exactly the voxels that it names, and says how many") {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const BrickMap before = random_bricks(random, 14);
    const Edit edit = random_edit(random, 16);
    BrickMap expected = before;
    uint64_t changed = 0;
    const std::set<Int3> line =
        edit.shape == Shape::line && edit.radius == 0 ? cells_of(edit, {{-4, -4, -4}, {3, 3, 3}}) : std::set<Int3>{};
    for (int x = -32; x < 32; ++x)
      for (int y = -32; y < 32; ++y)
        for (int z = -32; z < 32; ++z) {
          const Int3 v{x, y, z};
          if (edit.shape == Shape::line && edit.radius == 0 ? !line.count(v) : !inside(edit, v)) continue;
          const uint8_t old = before.get(v);
          uint8_t now = old;
          switch (edit.mode) {
            case Mode::add: now = old ? old : edit.material; break;
            case Mode::remove: now = 0; break;
            case Mode::paint: now = old ? edit.material : old; break;
            case Mode::replace: now = old && old == edit.from ? edit.material : old; break;
            case Mode::fill: now = edit.material; break;
          }
          changed += now != old;
          expected.set(v, now);
        }
    const auto record = plan_edit(before, edit);
    REQUIRE(record);
    REQUIRE(record->voxels_changed == changed);
    BrickMap after = before;
    for (size_t i = 0; i < record->changes.size(); ++i) {
      const BrickChange& change = record->changes[i];
      if (i) REQUIRE(record->changes[i - 1].last() < change.brick);
      REQUIRE_FALSE((change.before == change.after));
      for (uint32_t k = 0; k < change.count; ++k) {
        const auto there = before.find(change.at(k));
        REQUIRE((*change.before == (there ? *there : BrickView(Brick{}))));
        after.put(change.at(k), change.after);
      }
    }
    REQUIRE((after == expected));
  }
}

TEST_CASE(
    "edit: the connected voxels of one material are those that steps through faces reach, in every mode, and nothing "
    "begins in an empty one") {
  std::mt19937 random(31);
  for (int round = 0; round < 40; ++round) {
    // From caves of one material to dust of several, across the seams of bricks; some bricks full of one material.
    BrickMap before;
    const uint32_t holes = 1 + uint32_t(round % 8) * 8, materials = 1 + uint32_t(round % 3);
    for (int x = -13; x < 13; ++x)
      for (int y = -11; y < 11; ++y)
        for (int z = -12; z < 14; ++z)
          if (random() % 100 >= holes) before.set({x, y, z}, uint8_t(1 + random() % materials));
    if (round % 4 == 0) before.put({0, 0, 0}, SharedBrick::full(1)), before.put({-1, 0, 0}, SharedBrick::full(1));
    Edit edit = make(Shape::connected, random_voxel(random, 9), {}, 0);
    edit.mode = Mode(round % 5);
    edit.material = 7;
    edit.from = before.get(edit.a);
    std::set<Int3> cells;
    std::vector<Int3> next;
    if (before.get(edit.a)) cells.insert(edit.a), next.push_back(edit.a);
    while (!next.empty()) {
      const Int3 v = next.back();
      next.pop_back();
      for (const Int3 step : {Int3{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}})
        if (before.get(v + step) == before.get(edit.a) && cells.insert(v + step).second) next.push_back(v + step);
    }
    BrickMap expected = before;
    if (edit.mode != Mode::add)
      for (const Int3 v : cells) expected.set(v, edit.mode == Mode::remove ? uint8_t(0) : uint8_t(7));
    for (const uint32_t threads : {1u, 3u}) {
      const auto record = plan_edit(before, edit, threads);
      REQUIRE(record);
      REQUIRE(record->voxels_changed == (edit.mode == Mode::add ? 0 : cells.size()));
      BrickMap after = before;
      for (const BrickChange& change : record->changes)
        for (uint32_t k = 0; k < change.count; ++k) after.put(change.at(k), change.after);
      REQUIRE((after == expected));
    }
  }
}

TEST_CASE("edit: the record is the same with 1, 2 and 8 threads") {
  std::mt19937 random(4);
  const BrickMap map = random_bricks(random, 60);
  for (int round = 0; round < 10; ++round) {
    Edit edit = random_edit(random, 60);
    edit.radius += 10;
    const auto one = plan_edit(map, edit, 1);
    REQUIRE(one);
    for (const uint32_t threads : {2u, 8u}) {
      const auto many = plan_edit(map, edit, threads);
      REQUIRE(many);
      REQUIRE(many->voxels_changed == one->voxels_changed);
      REQUIRE(many->changes.size() == one->changes.size());
      for (size_t i = 0; i < one->changes.size(); ++i)
        REQUIRE((many->changes[i].brick == one->changes[i].brick && many->changes[i].count == one->changes[i].count &&
                 many->changes[i].before == one->changes[i].before && many->changes[i].after == one->changes[i].after));
    }
  }
}

TEST_CASE("edit: large shapes over a small volume touch only what is there, whatever their size") {
  BrickMap map;
  for (int n = 0; n < 50; ++n) map.set({n * 97, n * 31, -n * 71}, 3);
  Edit edit = make(Shape::sphere, {0, 0, 0}, {}, 4096);
  edit.mode = Mode::remove;
  const auto removed = plan_edit(map, edit);
  REQUIRE(removed);
  uint64_t expected = 0;
  for (int64_t n = 0; n < 50; ++n) expected += n * n * (97 * 97 + 31 * 31 + 71 * 71) <= int64_t(4096) * 4096;
  REQUIRE(removed->voxels_changed == expected);
  edit = make(Shape::line, {-16000, -16000, -16000}, {16000, 16000, 16000}, 4096);
  edit.mode = Mode::paint;
  edit.material = 7;
  REQUIRE(plan_edit(map, edit));
}

TEST_CASE("edit: a long diagonal line visits only bricks near it") {
  const Edit edit = make(Shape::line, {-8000, -3993, -8000}, {8000, 4000, 7991}, 1.5);
  const auto record = plan_edit(BrickMap{}, edit);
  REQUIRE(record);
  REQUIRE(record->changes.size() < 12000);
  // Its direction has no common factors, so the number of voxels approximates its volume.
  REQUIRE(double(record->voxels_changed) ==
          Approx(3.14159265 * 1.5 * 1.5 * std::sqrt(16000.0 * 16000.0 + 7993.0 * 7993.0 + 15991.0 * 15991.0))
              .epsilon(0.01));
}

TEST_CASE("edit: what cannot be is refused with the reason") {
  const BrickMap map;
  const auto code = [&](const Edit& edit) {
    const auto record = plan_edit(map, edit);
    REQUIRE_FALSE(record);
    REQUIRE_FALSE(record.error().message.empty());
    return record.error().code;
  };
  REQUIRE(code(make(Shape::sphere, {}, {}, -1)) == ErrorCode::invalid_argument);
  REQUIRE(code(make(Shape::sphere, {}, {}, 4096.5)) == ErrorCode::invalid_argument);
  REQUIRE(code(make(Shape::line, {}, {5, 5, 5}, std::nan(""))) == ErrorCode::invalid_argument);
  REQUIRE(code(make(Shape::line, {-20000, 0, 0}, {20000, 0, 0}, 1)) == ErrorCode::invalid_argument);
  REQUIRE(code(make(Shape::sphere, {2147483647, 0, 0}, {}, 1)) == ErrorCode::out_of_bounds);
  REQUIRE(code(make(Shape::box, {-4000, -4000, -4000}, {4000, 4000, 4000}, 0)) == ErrorCode::full);
  REQUIRE(
      plan_edit(map, make(Shape::box, {2147483647, 2147483647, 2147483647}, {2147483647, 2147483647, 2147483647}, 0)));
}

}  // namespace edit_test
