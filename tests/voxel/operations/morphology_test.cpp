// SPDX-License-Identifier: Apache-2.0
// morphology_test.cpp - dilation, erosion and connected parts against the same, voxel by voxel, on plain maps and sets.
#include "voxel/operations/morphology.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "base/parallel.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/voxel/scene_cells.hpp"
#include "voxel/neighbours/one_brick.hpp"
#include "voxel/operations/connected_parts.hpp"

namespace morphology_test {

using namespace quarry;
using namespace quarry::test;

namespace {

constexpr Connectivity kAllKinds[] = {Connectivity::faces, Connectivity::edges, Connectivity::corners};

// In the order that gives the material: that of voxel/neighbours.
std::vector<Int3> neighbours_of(Connectivity kind) {
  std::vector<Int3> out;
  if (kind == Connectivity::faces) {
    for (uint32_t d = 0; d < 6; ++d) {
      const NeighbourStep step = step_of<Neighbourhood::faces>(d);
      out.push_back({step.x, step.y, step.z});
    }
    return out;
  }
  for (uint32_t d = 0; d < 26; ++d) {
    const NeighbourStep step = step_of<Neighbourhood::all>(d);
    if (kind == Connectivity::corners || !step.x || !step.y || !step.z) out.push_back({step.x, step.y, step.z});
  }
  return out;
}

Cells dilated(const Cells& cells, Connectivity kind) {
  Cells out = cells;
  const auto steps = neighbours_of(kind);
  for (const auto& [at, m] : cells)
    for (const Int3 way : steps) {
      const Int3 added = at + way;
      if (out.count(added)) continue;
      for (const Int3 step : steps)
        if (const auto it = cells.find(added + step); it != cells.end()) {
          out[added] = it->second;
          break;
        }
    }
  return out;
}

Cells eroded(const Cells& cells, Connectivity kind) {
  Cells out;
  const auto steps = neighbours_of(kind);
  for (const auto& [at, m] : cells) {
    bool stays = true;
    for (const Int3 step : steps) stays = stays && cells.count(at + step);
    if (stays) out[at] = m;
  }
  return out;
}

// The parts by flooding a set, in the order that is promised.
std::vector<Cells> parts_of(const Cells& cells, Connectivity kind) {
  const auto before = [](Int3 a, Int3 b) {
    const Int3 brick_a = brick_of(a), brick_b = brick_of(b);
    if (brick_a != brick_b) return brick_a < brick_b;
    return std::tuple(a.z, a.y, a.x) < std::tuple(b.z, b.y, b.x);
  };
  std::set<Int3, decltype(before)> left(before);
  for (const auto& [at, m] : cells) left.insert(at);
  const auto steps = neighbours_of(kind);
  std::vector<Cells> out;
  while (!left.empty()) {
    Cells part;
    std::vector<Int3> open{*left.begin()};
    left.erase(left.begin());
    while (!open.empty()) {
      const Int3 at = open.back();
      open.pop_back();
      part[at] = cells.at(at);
      for (const Int3 step : steps)
        if (left.erase(at + step)) open.push_back(at + step);
    }
    out.push_back(std::move(part));
  }
  std::stable_sort(out.begin(), out.end(), [](const Cells& a, const Cells& b) { return a.size() > b.size(); });
  return out;
}

ConnectedPart facts_of(const Cells& part) {
  ConnectedPart out;
  std::map<uint8_t, uint64_t> materials;
  for (const auto& [at, m] : part) {
    ++materials[m];
    out.box = united(out.box, {at, at});
  }
  out.voxels = part.size();
  for (const auto& [m, count] : materials)
    if (!out.material || count > materials[out.material]) out.material = m;
  return out;
}

// Clouds of a density of 1 / `one_of` in a box of `edge` voxels about a corner of eight bricks, or far from the origin.
Cells cloud(uint32_t seed, int32_t edge, uint32_t one_of, int materials = 4) {
  std::mt19937 random(seed);
  const Int3 corner = seed % 3 == 2 ? Int3{-500, 777, 123456} : Int3{-edge / 2, -edge / 2, -edge / 2};
  Cells out;
  for (int32_t x = 0; x < edge; ++x)
    for (int32_t y = 0; y < edge; ++y)
      for (int32_t z = 0; z < edge; ++z)
        if (random() % one_of == 0) out[corner + Int3{x, y, z}] = uint8_t(1 + random() % uint32_t(materials));
  return out;
}

Cells box_of(Int3 from, Int3 to, uint8_t material) {
  Cells out;
  for (int32_t x = from.x; x <= to.x; ++x)
    for (int32_t y = from.y; y <= to.y; ++y)
      for (int32_t z = from.z; z <= to.z; ++z) out[{x, y, z}] = material;
  return out;
}

// What volumes look like: nothing, one voxel at each place that matters, clouds thin and thick, blocks of full bricks.
std::vector<Cells> examples() {
  std::vector<Cells> out{{}};
  for (const int32_t x : {-8, -1, 0, 7})
    for (const int32_t y : {0, 7})
      for (const int32_t z : {-1, 3, 8}) out.push_back({{{x, y, z}, 9}});
  uint32_t seed = 0;
  // Sanitizers look at some of them.
  for (const uint32_t one_of : {200u, 30u, 6u, 3u, 2u, 1u})
    for (const int32_t edge : {2, 7, 8, 9, 16, 17})
      if (++seed; !test::kSanitized || seed % 4 == 1) out.push_back(cloud(seed - 1, edge, one_of));
  out.push_back(box_of({-8, -8, -8}, {15, 15, 15}, 3));    // 27 full bricks
  out.push_back(box_of({-9, -8, -7}, {16, 15, 14}, 200));  // not at bricks' faces
  Cells holed = box_of({-8, -8, -8}, {23, 15, 15}, 3);
  holed.erase({0, 0, 0}), holed.erase({7, 15, 15}), holed[{3, 3, 3}] = 4;
  out.push_back(holed);
  return out;
}

}  // namespace

TEST_CASE("dilate: each step adds the neighbours of what is there, in the material of the first in the stated order") {
  for (const Cells& cells : examples())
    for (const Connectivity kind : kAllKinds) {
      const BrickMap before = bricks_of(cells);
      Cells want = cells;
      for (uint32_t steps = 0; steps <= 2; ++steps) {
        const auto got = dilate(before, kind, steps);
        REQUIRE(got);
        CHECK(cells_of(*got) == want);
        if (steps < 2) want = dilated(want, kind);
      }
      CHECK(cells_of(before) == cells);
    }
  // Many steps reach far.
  const int32_t many = test::kSanitized ? 10 : 20;
  const auto far = dilate(bricks_of({{{0, 0, 0}, 1}}), Connectivity::corners, uint32_t(many));
  REQUIRE(far);
  CHECK(cells_of(*far) == box_of({-many, -many, -many}, {many, many, many}, 1));
}

TEST_CASE("erode: each step takes away what has an empty neighbour, and leaves the other materials") {
  for (const Cells& cells : examples())
    for (const Connectivity kind : kAllKinds) {
      Cells want = cells;
      for (uint32_t steps = 0; steps <= 2; ++steps) {
        const auto got = erode(bricks_of(cells), kind, steps);
        REQUIRE(got);
        CHECK(cells_of(*got) == want);
        if (steps < 2) want = eroded(want, kind);
      }
    }
  const int32_t many = test::kSanitized ? 10 : 20;
  const auto core =
      erode(bricks_of(box_of({-many, -many, -many}, {many, many, many}, 1)), Connectivity::faces, uint32_t(many));
  REQUIRE(core);
  CHECK(cells_of(*core) == Cells{{{0, 0, 0}, 1}});
}

TEST_CASE("dilate and erode share the bricks that they do not change") {
  Cells cells = box_of({-16, -16, -16}, {23, 23, 23}, 5);
  for (int32_t x = 0; x < 8; ++x) cells[{x, 1, 1}] = 6;  // a brick of two materials in the middle
  const BrickMap before = bricks_of(cells);
  const Int3 middle{0, 0, 0}, corner{-2, -2, -2};
  const auto more = dilate(before, Connectivity::corners, 3), less = erode(before, Connectivity::corners, 3);
  REQUIRE(more);
  REQUIRE(less);
  CHECK(more->share(middle).same_as(before.share(middle)));
  CHECK(more->share(corner).same_as(before.share(corner)));
  CHECK(less->share(middle).same_as(before.share(middle)));
  CHECK_FALSE(less->share(corner) == before.share(corner));
}

TEST_CASE("dilate: what would leave 32 bits is an error, and cancelled work says so") {
  BrickMap edge;
  edge.set({INT32_MAX - 1, 0, INT32_MIN + 1}, 1);
  CHECK(dilate(edge, Connectivity::corners, 1));
  const auto beyond = dilate(edge, Connectivity::corners, 2);
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == ErrorCode::out_of_bounds);
  CHECK(dilate(BrickMap{}, Connectivity::faces, UINT32_MAX)->empty());
  const std::atomic<bool> stop{true};
  Progress progress;
  progress.cancel = &stop;
  const auto more = dilate(edge, Connectivity::faces, 1, progress),
             less = erode(edge, Connectivity::faces, 1, progress);
  REQUIRE_FALSE(more);
  CHECK(more.error().code == ErrorCode::cancelled);
  REQUIRE_FALSE(less);
  CHECK(less.error().code == ErrorCode::cancelled);
  const auto parts = ConnectedParts::find(edge, Connectivity::faces, progress);
  REQUIRE_FALSE(parts);
  CHECK(parts.error().code == ErrorCode::cancelled);
}

TEST_CASE("connected parts: those that a flood finds, the largest first, with their boxes and commonest materials") {
  std::vector<Cells> all = examples();
  // Two combs that reach through each other's bricks without touching, a spiral, and a board of loose voxels.
  Cells combs, spiral, board;
  for (int32_t x = -10; x < 20; ++x)
    for (int32_t y = 0; y < 20; ++y) {
      combs[{x, y, 0}] = 1, combs[{x, y, 24}] = 2;
      if (x % 4 == 0)
        for (int32_t z = 0; z < 23; ++z) combs[{x, y, z}] = 1, combs[{x + 2, y, 24 - z}] = 2;
    }
  for (int32_t z = -8; z < 16; z += 2)
    for (int32_t x = 0; x < 16; ++x)
      for (int32_t y = 0; y < 16; ++y) {
        const bool turn = (z / 2) % 2 == 0;
        if (y % 4 == 0 || x == (y / 4 % 2 ? 0 : 15)) spiral[{x, y, z}] = 7;
        if (x == (turn ? 0 : 15) && y == 0) spiral[{x, y, z + 1}] = 8;
      }
  for (int32_t x = 0; x < 16; ++x)
    for (int32_t y = 0; y < 16; ++y)
      for (int32_t z = 0; z < 16; ++z)
        if ((x + y + z) % 2 == 0) board[{x, y, z}] = uint8_t(1 + x % 3);
  all.insert(all.end(), {combs, spiral, board});
  for (const Cells& cells : all)
    for (const Connectivity kind : kAllKinds) {
      const auto found = ConnectedParts::find(bricks_of(cells), kind);
      REQUIRE(found);
      const auto want = parts_of(cells, kind);
      REQUIRE(found->parts().size() == want.size());
      bool same = true;
      for (size_t i = 0; i < want.size(); ++i) same = same && found->parts()[i] == facts_of(want[i]);
      CHECK(same);
      // The bricks of each, and of the largest together.
      const size_t some = std::min<size_t>(want.size(), 40);
      const auto each = found->each(some);
      REQUIRE(each.size() == some);
      Cells together;
      for (size_t i = 0; i < some; ++i) {
        same = same && cells_of(each[i]) == want[i];
        together.insert(want[i].begin(), want[i].end());
      }
      CHECK(same);
      CHECK(cells_of(found->first(some)) == together);
      CHECK(cells_of(found->first(want.size() + 1)) == cells);
      CHECK(found->first(0).empty());
      for (const uint64_t size : {0, 1, 2, 3, 100}) {
        const auto larger = std::count_if(want.begin(), want.end(), [&](const Cells& c) { return c.size() >= size; });
        CHECK(found->at_least(size) == size_t(larger));
      }
    }
}

TEST_CASE("connected parts: bricks that lose no voxel are shared") {
  Cells cells = box_of({-16, -16, -16}, {23, 23, 23}, 5);
  cells[{0, 0, 0}] = 6;
  cells[{26, 0, 0}] = 1;
  const BrickMap before = bricks_of(cells);
  const auto found = ConnectedParts::find(before, Connectivity::corners);
  REQUIRE(found);
  REQUIRE(found->parts().size() == 2);
  CHECK(found->parts()[1] == ConnectedPart{1, {{26, 0, 0}, {26, 0, 0}}, 1});
  const BrickMap kept = found->first(1);
  CHECK(kept.share({0, 0, 0}).same_as(before.share({0, 0, 0})));
  CHECK(found->each(1)[0].share({0, 0, 0}).same_as(before.share({0, 0, 0})));
  CHECK_FALSE(kept.share({3, 0, 0}));
}

TEST_CASE("morphology and parts are the same for any number of threads") {
  // Bricks enough for many pieces.
  const BrickMap bricks = bricks_of(cloud(7, std::getenv("QUARRY_LONG") ? 200 : 72, 5));
  for (const Connectivity kind : kAllKinds) {
    const auto run = [&] {
      auto parts = ConnectedParts::find(bricks, kind);
      return std::tuple(*dilate(bricks, kind, 2), *erode(*dilate(bricks, kind, 2), kind, 1),
                        std::vector(parts->parts().begin(), parts->parts().end()), parts->first(3));
    };
    const auto many = run();
    const ThreadShare one(1);
    CHECK(run() == many);
  }
}

}  // namespace morphology_test
