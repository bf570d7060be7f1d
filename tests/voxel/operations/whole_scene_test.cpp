// SPDX-License-Identifier: Apache-2.0
// whole_scene_test.cpp - scene operations against the same operations voxel by voxel on plain maps.
#include "voxel/operations/whole_scene.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "tests/voxel/io/quarry/store_edits.hpp"
#include "tests/voxel/scene_cells.hpp"

namespace whole_scene_test {

using namespace quarry;
using namespace quarry::test;

TEST_CASE("crop: of every instance what lies in the box stays, with its place, name and material") {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Scene s = random_scene(seed);
    std::mt19937 random(seed);
    const auto some = [&] { return int32_t(random() % 40) - 20; };
    Box3 box{{some(), some(), some()}, {}};
    box.max = box.min + Int3{int32_t(random() % 25), int32_t(random() % 25), int32_t(random() % 25)};
    if (seed == 0) box = {{-100, -100, -100}, {100, 100, 100}};
    if (seed == 1) box = {{500, 500, 500}, {600, 600, 600}};
    if (seed == 2) box = {};
    const auto done = crop(s, box);
    REQUIRE(done);
    std::vector<std::pair<std::string, Cells>> want, got;
    const auto before = placed(s), after = placed(*done);
    for (size_t i = 0; i < before.size(); ++i) {
      Cells kept;
      for (const auto& [at, m] : before[i])
        if (at.x >= box.min.x && at.x <= box.max.x && at.y >= box.min.y && at.y <= box.max.y && at.z >= box.min.z &&
            at.z <= box.max.z)
          kept[at] = m;
      if (!kept.empty()) want.emplace_back(s.instances[i].name, kept);
    }
    for (size_t i = 0; i < after.size(); ++i) got.emplace_back(done->instances[i].name, after[i]);
    CHECK(got == want);
    std::set<uint32_t> shown;
    for (const Instance& i : done->instances) shown.insert(i.volume);
    CHECK(shown.size() == done->volumes.size());
    if (seed == 0) CHECK(done->volumes.size() == 3);  // uncut volumes stay shared
  }
}

TEST_CASE("turn: every cell's middle is carried by the matrix, and four quarter turns are none") {
  std::mt19937 random(4);
  for (int n = 0; n < 30; ++n) {
    const Scene s = random_scene(uint32_t(n));
    const Rotation r = some_rotation(random);
    const auto done = turn(s, r);
    REQUIRE(done);
    const auto before = placed(s), after = placed(*done);
    for (size_t i = 0; i < before.size(); ++i) {
      Cells want;
      for (const auto& [at, m] : before[i]) {
        const double in[3] = {at.x + 0.5, at.y + 0.5, at.z + 0.5};
        int32_t out[3];
        for (size_t row = 0; row < 3; ++row) out[row] = int32_t(std::floor(r.sign[row] * in[r.axis[row]]));
        want[{out[0], out[1], out[2]}] = m;
      }
      CHECK(after[i] == want);
    }
    CHECK(test::same_scene(*turn(*done, r.inverse()), s) == "");
  }
  const Rotation quarter{{2, 1, 0}, {1, 1, -1}};
  const Scene s = random_scene(1);
  const auto four = turn(*turn(*turn(*turn(s, quarter), quarter), quarter), quarter);
  CHECK(test::same_scene(*four, s) == "");
  CHECK_FALSE(turn(s, Rotation{{0, 0, 1}, {1, 1, 1}}));
  Scene far = s;
  far.instances[0].offset = {INT32_MIN, 0, 0};
  const auto refused = turn(far, Rotation{{0, 1, 2}, {-1, 1, 1}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::out_of_bounds);
}

TEST_CASE("merge: all voxels of all scenes in their colours, order and layers") {
  Scene a = random_scene(1), b = random_scene(2, 200), c = random_scene(3);
  for (size_t m = 1; m < 256; ++m)
    b.palette.materials[m] = {uint8_t(m), uint8_t(m * 7), uint8_t(255 - m), 255, 0.5f, 0, 0, 0, 1.5f, {0, 0}};
  b.palette.materials[3] = a.palette.materials[2];
  b.overlap = OverlapRule::last_instance_wins;
  const Scene* list[] = {&a, &b, &c};
  PaletteError error;
  const auto done = merge(list, &error);
  REQUIRE(done);
  CHECK(error.rms == 0);
  CHECK(error.before == error.after);
  CHECK(done->layers.size() == 6);
  CHECK(done->cameras.size() == 3);
  REQUIRE(done->instances.size() == 18);
  std::vector<Cells> after = placed(*done);
  std::reverse(after.begin() + 6, after.begin() + 12);  // b's rule was the other one
  for (size_t s = 0; s < 3; ++s) {
    const auto before = placed(*list[s]);
    int wrong = 0;
    for (size_t i = 0; i < 6; ++i) {
      REQUIRE(before[i].size() == after[s * 6 + i].size());
      for (const auto& [at, m] : before[i])
        wrong += !(list[s]->palette.materials[m] == done->palette.materials[after[s * 6 + i].at(at)]);
    }
    CHECK(wrong == 0);
  }
  // The first scene's own indices stay.
  CHECK(cells_of(done->volumes[0].bricks) == cells_of(a.volumes[0].bricks));
  CHECK(done->instances[6].layer == b.instances[5].layer + 2);
  // Merging one scene returns it unchanged; scenes with more than 255 materials together fit, with a reported error.
  const Scene* one[] = {&a};
  CHECK(test::same_scene(*merge(one), a) == "");
  Scene d = random_scene(5, 255);
  const Scene* many[] = {&d, &b};
  const auto tight = merge(many, &error);
  REQUIRE(tight);
  CHECK(error.before > 255);
  CHECK(error.after == 255);
  CHECK(error.rms > 0);
  CHECK(error.rms < 10);
  CHECK_FALSE(merge({}));
}

TEST_CASE("quantise: no more than so many materials, the stated error is the real one, and lone colours stay exact") {
  const Scene s = random_scene(9, 255);
  double last = -1;
  for (const uint32_t count : {255u, 100u, 16u, 3u, 1u}) {
    PaletteError error;
    const auto done = quantise(s, count, &error);
    REQUIRE(done);
    std::set<uint8_t> used;
    double squares = 0, worst = 0;
    uint64_t voxels = 0;
    for (size_t v = 0; v < s.volumes.size(); ++v) {
      const Cells was = cells_of(s.volumes[v].bricks), is = cells_of(done->volumes[v].bricks);
      REQUIRE(was.size() == is.size());
      for (const auto& [at, m] : was) {
        const uint8_t n = is.at(at);
        used.insert(n);
        const Material &x = s.palette.materials[m], &y = done->palette.materials[n];
        const double square = (x.r - y.r) * (x.r - y.r) + (x.g - y.g) * (x.g - y.g) + (x.b - y.b) * (x.b - y.b);
        squares += square, worst = std::max(worst, std::sqrt(square)), ++voxels;
      }
    }
    CHECK(used.size() == std::min(count, error.before));
    CHECK(error.after == used.size());
    CHECK(error.rms == Approx(std::sqrt(squares / double(voxels))));
    CHECK(error.worst == Approx(worst));
    CHECK(error.rms >= last);
    last = error.rms;
    if (count == 255) CHECK(test::same_scene(*done, s) == "");
  }
  // Two near greens and a red: the greens become one.
  Scene t;
  t.volumes.resize(1);
  t.palette.materials[1] = {0, 200, 0, 255, 0.9f, 0, 0, 0, 1.5f, {0, 0}};
  t.palette.materials[2] = {0, 210, 0, 255, 0.9f, 0, 0, 0, 1.5f, {0, 0}};
  t.palette.materials[3] = {255, 0, 0, 255, 0.9f, 0, 0, 0, 1.5f, {0, 0}};
  for (int32_t x = 0; x < 9; ++x) t.volumes[0].bricks.set({x, 0, 0}, uint8_t(x < 6 ? 1 : x < 8 ? 2 : 3));
  const auto two = quantise(t, 2);
  REQUIRE(two);
  CHECK(two->volumes[0].bricks.get({7, 0, 0}) == 1);
  CHECK(two->volumes[0].bricks.get({8, 0, 0}) == 3);
  CHECK(two->palette.materials[3] == t.palette.materials[3]);
  CHECK(int(two->palette.materials[1].g) == 203);  // (6 * 200 + 2 * 210) / 8 = 202.5
  CHECK_FALSE(quantise(t, 0));
  CHECK_FALSE(quantise(t, 256));
}

namespace {
Cells blob(uint32_t seed, Int3 low) {
  std::mt19937 random(seed);
  Cells out;
  for (int n = 0; n < 6; ++n) {
    const double c[3] = {double(random() % 24), double(random() % 24), double(random() % 24)},
                 r = 3 + double(random() % 6);
    for (int32_t x = 0; x < 24; ++x)
      for (int32_t y = 0; y < 24; ++y)
        for (int32_t z = 0; z < 24; ++z)
          if ((x - c[0]) * (x - c[0]) + (y - c[1]) * (y - c[1]) + (z - c[2]) * (z - c[2]) < r * r)
            out[low + Int3{x, y, z}] = uint8_t(1 + (x + y) % 3);
  }
  return out;
}
constexpr Int3 kSix[6] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
Scene scene_of(const Cells& cells) {
  Scene s;
  s.volumes.resize(1);
  s.volumes[0].bricks = bricks_of(cells);
  s.instances.resize(1);
  return s;
}
}  // namespace

TEST_CASE("hollow: what is deeper than the shell goes, nothing else") {
  for (uint32_t seed = 0; seed < 4; ++seed)
    for (const uint32_t thickness : {1u, 2u, 5u}) {
      const Cells cells = blob(seed, {-11, 5, -3});
      Cells deep = cells;
      for (uint32_t i = 0; i < thickness; ++i) {
        Cells next;
        for (const auto& [at, m] : deep)
          if (std::all_of(std::begin(kSix), std::end(kSix),
                          [&, here = at](Int3 d) { return deep.count(here + d) == 1; }))
            next[at] = m;
        deep = next;
      }
      Cells want;
      for (const auto& [at, m] : cells)
        if (!deep.count(at)) want[at] = m;
      CHECK(cells_of(hollow(scene_of(cells), thickness)->volumes[0].bricks) == want);
    }
  CHECK_FALSE(hollow(Scene{}, 0));
}

TEST_CASE("fill: cavities that the outside does not reach through faces are filled, and only these") {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    Cells cells = cells_of(hollow(scene_of(blob(seed, {-11, 5, -3})))->volumes[0].bricks);
    std::mt19937 random(seed);
    if (seed >= 3)  // holes: some cavities are open
      for (int i = 0; i < 40; ++i) cells.erase(std::next(cells.begin(), int64_t(random() % cells.size())));
    // The outside of a box around everything, flooded voxel by voxel.
    std::set<Int3> outside;
    std::vector<Int3> todo{{-13, 3, -5}};
    while (!todo.empty()) {
      const Int3 at = todo.back();
      todo.pop_back();
      if (at.x < -13 || at.y < 3 || at.z < -5 || at.x > 14 || at.y > 30 || at.z > 22 || cells.count(at) ||
          !outside.insert(at).second)
        continue;
      for (const Int3 d : kSix) todo.push_back(at + d);
    }
    for (const uint8_t material : {uint8_t(77), uint8_t(0)}) {
      std::map<uint8_t, int> counts;
      for (const auto& [at, m] : cells) ++counts[m];
      uint8_t most = 1;
      for (const auto& [m, n] : counts)
        if (n > counts[most]) most = m;
      Cells want = cells;
      for (int32_t x = -13; x <= 14; ++x)
        for (int32_t y = 3; y <= 30; ++y)
          for (int32_t z = -5; z <= 22; ++z)
            if (!outside.count({x, y, z}) && !cells.count({x, y, z})) want[{x, y, z}] = material ? material : most;
      CHECK(cells_of(fill(scene_of(cells), material)->volumes[0].bricks) == want);
      if (seed < 3) CHECK(want.size() > cells.size());
    }
  }
  // Across empty bricks: a hollow cube of edge 60.
  Cells cube;
  for (int32_t x = 0; x < 60; ++x)
    for (int32_t y = 0; y < 60; ++y)
      for (int32_t z = 0; z < 60; ++z)
        if (x == 0 || y == 0 || z == 0 || x == 59 || y == 59 || z == 59) cube[{x, y, z}] = 1;
  CHECK(fill(scene_of(cube))->volumes[0].bricks.voxel_count() == 60 * 60 * 60);
  cube.erase({30, 59, 30});
  CHECK(fill(scene_of(cube))->volumes[0].bricks.voxel_count() == cube.size());
  Scene far;
  far.volumes.resize(1);
  far.volumes[0].bricks.set({INT32_MIN, 0, 0}, 1);
  far.volumes[0].bricks.set({INT32_MAX, INT32_MAX, 0}, 1);
  const auto refused = fill(far);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::unsupported);
}

TEST_CASE("boolean: union, intersection and difference of what is visible, in the first scene's materials") {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    Scene a = random_scene(seed), b = random_scene(seed + 50);
    for (Material& m : b.palette.materials) m.b ^= 1;  // never equal to a's
    const Cells in_a = flat(a), in_b = flat(b);
    for (const BooleanKind kind : {BooleanKind::union_of, BooleanKind::intersection, BooleanKind::difference}) {
      const auto done = boolean(a, b, kind);
      REQUIRE(done);
      CHECK(done->volumes.size() == 1);
      const Cells got = flat(*done);
      std::map<Int3, Material> want;
      for (const auto& [at, m] : in_a)
        if (kind == BooleanKind::union_of || (kind == BooleanKind::intersection) == (in_b.count(at) == 1))
          want[at] = a.palette.materials[m];
      if (kind == BooleanKind::union_of)
        for (const auto& [at, m] : in_b) want.emplace(at, b.palette.materials[m]);
      REQUIRE(got.size() == want.size());
      int wrong = 0;
      for (const auto& [at, material] : want)
        wrong += !got.count(at) || !(done->palette.materials[got.at(at)] == material);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("boolean of bricks: the first one's materials where it has the voxel, and what stays as it is is shared") {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const Scene one = random_scene(seed), two = random_scene(seed + 50);
    const BrickMap a = *flatten(one, true), b = *flatten(two, true);
    const Cells in_a = flat(one), in_b = flat(two);
    for (const BooleanKind kind : {BooleanKind::union_of, BooleanKind::intersection, BooleanKind::difference}) {
      Cells want;
      for (const auto& [at, m] : in_a)
        if (kind == BooleanKind::union_of || (kind == BooleanKind::intersection) == (in_b.count(at) == 1)) want[at] = m;
      if (kind == BooleanKind::union_of) want.insert(in_b.begin(), in_b.end());
      const BrickMap got = *boolean(a, b, kind);
      CHECK(got.voxel_count() == want.size());
      int wrong = 0;
      for (const auto& [at, m] : want) wrong += got.get(at) != m;
      CHECK(wrong == 0);
      const std::atomic<bool> stop{true};
      const auto stopped = boolean(a, b, kind, Progress{{}, &stop});
      REQUIRE_FALSE(stopped);
      CHECK(stopped.error().code == ErrorCode::cancelled);
    }
    const BrickMap same = *boolean(a, a, BooleanKind::union_of);
    CHECK(same == a);
    int copied = 0;
    for (auto it = same.bricks().begin(); it != same.bricks().end(); ++it)
      copied += !a.share(it->first).same_as(it.shared());
    CHECK(copied == 0);
    CHECK(differences(a, same).empty());
  }
}

TEST_CASE("dilate and erode: each volume by itself, whatever shows it; places, names and layers stay") {
  const Scene s = random_scene(3);
  for (const Connectivity kind : {Connectivity::faces, Connectivity::edges, Connectivity::corners}) {
    const auto more = dilate(s, kind, 2), less = erode(*more, kind, 1);
    REQUIRE(more);
    REQUIRE(less);
    for (size_t v = 0; v < s.volumes.size(); ++v) {
      CHECK(more->volumes[v].bricks == *dilate(s.volumes[v].bricks, kind, 2));
      CHECK(less->volumes[v].bricks == *erode(more->volumes[v].bricks, kind, 1));
    }
    Scene back = *less;
    for (size_t v = 0; v < s.volumes.size(); ++v) back.volumes[v].bricks = s.volumes[v].bricks;
    CHECK(test::same_scene(back, s) == "");
  }
  Scene far = s;
  far.volumes[1].bricks.set({INT32_MAX, 0, 0}, 1);
  const auto refused = dilate(far, Connectivity::faces, 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::out_of_bounds);
  CHECK(refused.error().message.find("volume 1") != std::string::npos);
}

TEST_CASE("connected parts of a scene: what is visible counts, across instances; hidden instances and layers go") {
  // Two halves of a bar by two instances of one volume, a crumb, and what nobody sees.
  Scene s;
  s.layers = {{"seen", false}, {"unseen", true}};
  s.volumes.resize(2);
  for (int32_t x = 0; x < 10; ++x) s.volumes[0].bricks.set({x, 0, 0}, 4);
  s.volumes[1].bricks.set({0, 0, 0}, 9);
  s.instances = {{0, {}, {0, 0, 0}, 0, false, "left", ""},
                 {0, {}, {10, 0, 0}, 0, false, "right", ""},
                 {1, {}, {5, 5, 5}, 0, false, "crumb", ""},
                 {1, {}, {7, 5, 5}, 1, false, "ghost", ""}};
  const auto parts = split_parts(s, Connectivity::faces);
  REQUIRE(parts);
  REQUIRE(parts->size() == 2);
  CHECK((*parts)[0].name == "part-1");
  CHECK((*parts)[1].name == "part-2");
  CHECK(flat((*parts)[0].scene).size() == 20);
  CHECK(flat((*parts)[1].scene) == Cells{{{5, 5, 5}, 9}});

  const auto clean = keep_parts(s, {Connectivity::faces, UINT64_MAX, 2});
  REQUIRE(clean);
  CHECK(flat(*clean) == flat((*parts)[0].scene));
  CHECK(clean->volumes.size() == 1);
  CHECK(clean->layers.empty());
  CHECK(flat(*keep_parts(s, {Connectivity::faces, 1, 0})) == flat(*clean));
  CHECK(flat(*keep_parts(s, {Connectivity::faces, 2, 0})) == flat(s));
  CHECK(flat(*keep_parts(s, {Connectivity::faces, UINT64_MAX, 21})).empty());

  // One volume that is shown as it is keeps its name, its instance and its layers.
  Scene single = s;
  single.instances.resize(1);
  single.volumes[0].name = "bar";
  single.volumes[0].bricks.set({20, 0, 0}, 1);
  const auto kept = keep_parts(single, {Connectivity::faces, 1, 0});
  REQUIRE(kept);
  CHECK(kept->volumes[0].name == "bar");
  CHECK(kept->instances[0].name == "left");
  CHECK(kept->layers.size() == 2);
  CHECK(cells_of(kept->volumes[0].bricks).size() == 10);

  // Of random scenes the parts together are what is seen, and no two share a voxel.
  for (uint32_t seed = 0; seed < 5; ++seed) {
    const Scene r = random_scene(seed);
    Cells together;
    size_t voxels = 0;
    const auto all = split_parts(r, Connectivity::faces);
    REQUIRE(all);
    for (const ScenePart& part : *all) {
      const Cells own = flat(part.scene);
      voxels += own.size();
      together.insert(own.begin(), own.end());
    }
    CHECK(together == flat(r));
    CHECK(voxels == together.size());
  }
}

TEST_CASE("operations: an instance of a volume that is not there is an error, not a crash") {
  Scene s;
  s.instances.resize(1);
  const Scene* list[] = {&s};
  CHECK_FALSE(crop(s, {{0, 0, 0}, {1, 1, 1}}));
  CHECK_FALSE(turn(s, {}));
  CHECK_FALSE(merge(list));
  CHECK_FALSE(quantise(s, 5));
  CHECK_FALSE(hollow(s));
  CHECK_FALSE(fill(s));
  CHECK_FALSE(shrink(s, 2));
  for (const BooleanKind kind : {BooleanKind::union_of, BooleanKind::intersection, BooleanKind::difference}) {
    CHECK_FALSE(boolean(s, Scene{}, kind));
    CHECK_FALSE(boolean(Scene{}, s, kind));
  }
}

}  // namespace whole_scene_test
