// SPDX-License-Identifier: Apache-2.0
// compare_test.cpp - `quarry diff` and `quarry validate` as a script uses them: exit codes, JSON, messages.
#include <catch2/catch.hpp>
#include <random>

#include "tests/app/program_output.hpp"
#include "tests/file_bytes.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/operations/diff.hpp"

namespace compare_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// A scene of one volume, shown at `offset`.
Scene shown_at(Int3 offset) {
  Scene scene;
  scene.volumes.resize(1);
  scene.instances.resize(1);
  scene.instances[0].offset = offset;
  return scene;
}

std::string saved(const Scene& scene, const fs::path& file) {
  REQUIRE(io::Store::save(scene, file));
  return file.string();
}

// What `quarry diff --json` says.
void check_counts(const json& report, const SceneDiff& expected) {
  CHECK(report["added"] == expected.added.voxels);
  CHECK(report["removed"] == expected.removed.voxels);
  CHECK(report["recoloured"] == expected.recoloured.voxels);
  CHECK(report["same"] == expected.same);
  CHECK(report["voxels_a"] == expected.voxels_a);
  CHECK(report["voxels_b"] == expected.voxels_b);
}

}  // namespace

TEST_CASE("quarry diff: 0 for equal, 1 for different, 2 for wrong usage and unreadable files") {
  const fs::path dir = scratch_dir("diff");
  const std::string a =
      write_bytes(dir / "a.vox", VoxBuilder().model(4, 4, 4, {{0, 0, 0, 1}, {1, 0, 0, 2}, {3, 3, 3, 3}}).bytes());
  const std::string b = write_bytes(
      dir / "b.vox", VoxBuilder().model(4, 4, 4, {{0, 0, 0, 1}, {1, 0, 0, 5}, {0, 3, 0, 3}, {0, 3, 1, 3}}).bytes());
  const std::string world = (dir / "a.quarry").string();
  REQUIRE(run_quarry({"convert", a, "-o", world}).code == 0);

  const Outcome same = run_quarry({"diff", a, world});
  CHECK(same.code == 0);
  CHECK(has(same.out, "are equal: 3 voxels"));
  const Outcome same_json = run_quarry({"diff", "--json", a, world});
  CHECK(same_json.code == 0);
  CHECK(json::parse(same_json.out)["equal"] == true);

  const Outcome other = run_quarry({"diff", a, b});
  CHECK(other.code == 1);
  CHECK(has(other.out, "differ"));
  CHECK(other.err.empty());
  const Outcome other_json = run_quarry({"diff", "--json", a, b});
  CHECK(other_json.code == 1);
  const json report = json::parse(other_json.out);
  CHECK(report["equal"] == false);
  CHECK(report["added"] == 2);
  CHECK(report["removed"] == 1);
  CHECK(report["recoloured"] == 1);
  CHECK(report["same"] == 1);
  CHECK(report["voxels_a"] == 3);
  CHECK(report["voxels_b"] == 4);
  // File (0,3,0) and (0,3,1), pivot 2: world (-2,-2,-2) and (-2,-1,-2).
  CHECK(report["bounds"]["added"] == json({{"min", {-2, -2, -2}}, {"max", {-2, -1, -2}}}));
  CHECK(report["bounds"]["recoloured"] == json({{"min", {-1, -2, 1}}, {"max", {-1, -2, 1}}}));
  CHECK(run_quarry({"diff", "--shape", a, b}).code == 1);

  for (const std::vector<std::string>& words : {std::vector<std::string>{"diff", a},
                                                {"diff"},
                                                {"diff", a, b, a},
                                                {"diff", "--jsno", a, b},
                                                {"diff", a, (dir / "none.vox").string()},
                                                {"diff", write_bytes(dir / "cut.vox", {'V', 'O', 'X', ' '}), a}}) {
    const Outcome outcome = run_quarry(words);
    CHECK(outcome.code == 2);
    CHECK_FALSE(outcome.err.empty());
    CHECK(outcome.out.empty());
  }
}

TEST_CASE("quarry validate: 0 for sound files, 1 for none, 3 for some, each bad one with its message") {
  const fs::path dir = scratch_dir("validate");
  const std::string good = write_bytes(dir / "good.vox", VoxBuilder().model(1, 1, 1, {{0, 0, 0, 1}}).bytes());
  const std::string odd =
      write_bytes(dir / "odd.vox", VoxBuilder().model(1, 1, 1, {{0, 0, 0, 1}, {7, 0, 0, 1}}).bytes());
  const std::string bad = write_bytes(dir / "bad.vox", {'V', 'O', 'X', ' ', 150, 0, 0, 0});
  const std::string far = write_bytes(dir / "far.vox", VoxBuilder(200)
                                                           .model(1, 1, 1, {{0, 0, 0, 1}})
                                                           .transform(0, 1, {{{"_t", "1100000000 0 0"}}})
                                                           .shape(1, {{0, {}}})
                                                           .bytes());
  CHECK(run_quarry({"validate", good}).code == 0);
  CHECK(run_quarry({"validate", good, odd}).code == 0);
  const Outcome strict = run_quarry({"validate", "--strict", good, odd});
  CHECK(strict.code == 3);
  CHECK(has(strict.err, "outside its size"));
  const Outcome none = run_quarry({"validate", bad, far});
  CHECK(none.code == 1);
  CHECK(has(none.err, "bad.vox"));
  CHECK(has(none.err, "far.vox"));
  CHECK(run_quarry({"validate"}).code == 2);
  const Outcome some = run_quarry({"validate", "--json", bad, good, odd, (dir / "none.vox").string()});
  CHECK(some.code == 3);
  const json report = json::parse(some.out);
  REQUIRE(report.size() == 4);
  CHECK(report[0]["ok"] == false);
  CHECK(has(report[0]["error"], "MAIN"));
  CHECK(report[1]["ok"] == true);
  CHECK(report[1]["format"] == "vox");
  CHECK(report[1]["voxels"] == 1);
  CHECK(report[2]["warnings"].size() == 1);
  CHECK(report[3]["format"].is_null());

  // A world file with one byte changed in a chunk's compressed data.
  const std::string world = small_world(dir / "w.quarry");
  CHECK(run_quarry({"validate", world}).code == 0);
  std::vector<uint8_t> bytes = file_bytes(world);
  const std::array magic{0x28, 0xb5, 0x2f, 0xfd};
  const auto frame = std::search(bytes.begin(), bytes.end(), magic.begin(), magic.end());
  REQUIRE(bytes.end() - frame > 20);
  frame[20] ^= 0x55;
  write_bytes(world, bytes);
  CHECK(run_quarry({"validate", world}).code == 1);
}

TEST_CASE(
    "quarry diff: world files are compared in pieces with the result of whole scenes, wherever their volumes are") {
  const fs::path dir = scratch_dir("diff-pieces");
  std::mt19937 random(7);
  const auto scattered = [&](Scene& scene, Int3 from, int count) {
    for (int i = 0; i < count; ++i)
      scene.volumes[0].bricks.set(
          from + Int3{int32_t(random() % 300) - 150, int32_t(random() % 300) - 150, int32_t(random() % 300) - 150},
          uint8_t(1 + random() % 3));
  };
  Scene base = shown_at({});
  scattered(base, {}, 4000);
  const std::string a = saved(base, dir / "a.quarry");
  // By whole chunks, by whole bricks, and by single voxels; the last two are read whole.
  for (const Int3 offset : {Int3{}, Int3{-128, 64, 640}, Int3{8, -16, 64}, Int3{3, 0, -1}}) {
    for (const int more : {0, 500}) {
      Scene other = shown_at(offset);
      for (const auto& [at, brick] : base.volumes[0].bricks.bricks())
        for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
          if (brick.get(i)) {
            const Int3 v = voxel_from_index(i);
            other.volumes[0].bricks.set(Int3{at.x * 8, at.y * 8, at.z * 8} + v - offset, brick.get(i));
          }
      scattered(other, Int3{} - offset, more);
      const std::string b = saved(other, dir / "b.quarry");
      const auto expected = diff_scenes(base, other);
      REQUIRE(expected);
      REQUIRE(expected->equal() == (more == 0));
      const Outcome outcome = run_quarry({"diff", "--json", a, b});
      CHECK(outcome.code == (more ? 1 : 0));
      const json report = json::parse(outcome.out);
      check_counts(report, *expected);
      const Box3 box = expected->bounds();
      CHECK(report["bounds"]["all"] ==
            (more ? json({{"min", {box.min.x, box.min.y, box.min.z}}, {"max", {box.max.x, box.max.y, box.max.z}}})
                  : json()));
    }
  }
}

TEST_CASE(
    "quarry diff and validate: world files of several volumes, turned, hidden and overlapping, are compared and "
    "counted layer by layer with the result of whole scenes") {
  const fs::path dir = scratch_dir("diff-layers");
  std::mt19937 random(11);
  const auto below = [&](uint32_t count) { return int32_t(random() % count); };
  Scene base;
  base.layers = {{"seen", false}, {"hidden", true}};
  for (int v = 0; v < 3; ++v) {
    base.volumes.push_back({"volume", {}, {}});
    for (int i = 0; i < 3000; ++i)
      base.volumes.back().bricks.set({below(90), below(70) - 20, below(50)}, uint8_t(1 + below(5)));
  }
  // More than 64 layers of bricks apart, so that they are not all looked at together.
  for (int i = 0; i < 12; ++i) {
    Instance instance;
    instance.volume = uint32_t(i % 3);
    const size_t axis = size_t(below(3));
    instance.rotation.axis = {uint8_t(axis), uint8_t((axis + 1) % 3), uint8_t((axis + 2) % 3)};
    instance.rotation.sign[size_t(below(3))] = -1;
    instance.offset = {(i / 2 - 3) * 250 + below(40), below(60), below(60)};
    instance.layer = i % 5 == 4 ? 1 : 0;
    instance.hidden = i == 7;
    base.instances.push_back(instance);
  }
  const std::string a = saved(base, dir / "a.quarry");
  // Equal; with voxels that one volume has more, in all its instances; without an instance; far to one side of it.
  for (int kind = 0; kind < 4; ++kind) {
    Scene other = base;
    if (kind == 1)
      for (int i = 0; i < 400; ++i)
        other.volumes[1].bricks.set({below(90), below(70) - 20, below(50)}, uint8_t(below(6)));
    if (kind == 2) other.instances.erase(other.instances.begin() + 3);
    if (kind == 3)
      for (Instance& instance : other.instances) instance.offset.x += 3000;
    const std::string b = saved(other, dir / "b.quarry");
    for (const bool hidden : {false, true}) {
      const auto expected = diff_scenes(base, other, {.visible_only = !hidden});
      REQUIRE(expected);
      REQUIRE(expected->equal() == (kind == 0));
      const Outcome outcome =
          hidden ? run_quarry({"diff", "--json", "--hidden", a, b}) : run_quarry({"diff", "--json", a, b});
      CHECK(outcome.code == (kind ? 1 : 0));
      check_counts(json::parse(outcome.out), *expected);
    }
    const Outcome valid = run_quarry({"validate", "--json", b});
    CHECK(valid.code == 0);
    const auto flat = flatten(other, false);
    REQUIRE(flat);
    CHECK(json::parse(valid.out)[0]["voxels"] == flat->voxel_count());
  }
  // At the end of where a scene may reach, where a chunk goes beyond and no voxel does; and where voxels do.
  for (const int32_t beyond : {0, 1}) {
    Scene edge = base;
    edge.instances.resize(2);
    for (Instance& instance : edge.instances) {
      instance.rotation = {};
      instance.offset = {(1 << 30) - 1 - 89 + beyond, 0, 0};
      instance.hidden = false;
      instance.layer = -1;
    }
    for (Volume& volume : edge.volumes) volume.bricks.set({89, 0, 0}, 1);
    const std::string far = saved(edge, dir / "edge.quarry");
    const Outcome valid = run_quarry({"validate", "--json", far});
    CHECK(valid.code == beyond);
    if (!beyond) CHECK(json::parse(valid.out)[0]["voxels"] == flatten(edge, false)->voxel_count());
    CHECK(run_quarry({"diff", far, far}).code == (beyond ? 2 : 0));
  }
}

TEST_CASE("quarry diff: a layer of chunks that has more bricks than are held at a time is compared row by row") {
  const fs::path dir = scratch_dir("diff-rows");
  // Two layers across x: 8 * 96 * 96 full bricks, more than 2^16, and one brick far behind them.
  const auto slab = [](uint8_t material) {
    Scene scene = shown_at({});
    std::vector<BrickPut> puts;
    for (int32_t x = 0; x < 8; ++x)
      for (int32_t y = 0; y < 96; ++y)
        for (int32_t z = 0; z < 96; ++z) puts.push_back({{x, y, z}, SharedBrick::full(material)});
    puts.push_back({{500, 1, 1}, SharedBrick::full(material)});
    scene.volumes[0].bricks.put(puts);
    return scene;
  };
  const Scene before = slab(1);
  Scene after = slab(1);
  const std::string a = saved(before, dir / "a.quarry");
  CHECK(run_quarry({"diff", a, saved(after, dir / "b.quarry")}).code == 0);
  after.volumes[0].bricks.put({3, 95, 40}, SharedBrick());
  after.volumes[0].bricks.put({7, 0, 95}, SharedBrick::full(2));
  after.volumes[0].bricks.set({4000, 15, 15}, 3);
  after.volumes[0].bricks.set({-1, 0, 0}, 3);
  const Outcome outcome = run_quarry({"diff", "--json", a, saved(after, dir / "b.quarry")});
  CHECK(outcome.code == 1);
  const json report = json::parse(outcome.out);
  CHECK(report["same"] == 8 * 96 * 96 * 512 - 2 * 512 + 511);
  CHECK(report["removed"] == 512);
  CHECK(report["recoloured"] == 513);
  CHECK(report["added"] == 1);
  CHECK(report["bounds"]["removed"] == json({{"min", {24, 760, 320}}, {"max", {31, 767, 327}}}));
  CHECK(report["bounds"]["added"] == json({{"min", {-1, 0, 0}}, {"max", {-1, 0, 0}}}));
}

TEST_CASE("quarry diff: a chunk that is damaged or missing in a world file is trouble, in either place") {
  const fs::path dir = scratch_dir("diff-damaged");
  const std::string good = small_world(dir / "good.quarry"), bad = (dir / "bad.quarry").string();
  std::vector<uint8_t> bytes = file_bytes(good);
  const std::array magic{0x28, 0xb5, 0x2f, 0xfd};
  const auto frame = std::search(bytes.begin(), bytes.end(), magic.begin(), magic.end());
  REQUIRE(bytes.end() - frame > 20);
  frame[20] ^= 0x55;
  write_bytes(bad, bytes);
  for (const auto& words : {std::vector<std::string>{"diff", good, bad}, {"diff", bad, good}}) {
    const Outcome outcome = run_quarry(words);
    CHECK(outcome.code == 2);
    CHECK(has(outcome.err, "bad.quarry"));
    CHECK(has(outcome.err, "checksum"));
    CHECK(outcome.out.empty());
  }
}

TEST_CASE("quarry validate: world files are judged by chunks as by whole scenes: counts, overlaps, bounds") {
  const fs::path dir = scratch_dir("validate-chunks");
  Scene scene = shown_at({16, -8, 0});
  scene.volumes[0].bricks.put({0, 0, 0}, SharedBrick::full(4));
  scene.volumes[0].bricks.set({100, 100, 100}, 2);
  const auto voxels = [&](const std::string& file) {
    const Outcome outcome = run_quarry({"validate", "--json", file});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out)[0]["voxels"].get<uint64_t>();
  };
  CHECK(voxels(saved(scene, dir / "one.quarry")) == 513);
  // A volume that no instance shows is checked, but is no voxel of the world.
  Scene spare = scene;
  spare.volumes.resize(2);
  spare.volumes[1].bricks.set({5, 5, 5}, 1);
  CHECK(voxels(saved(spare, dir / "spare.quarry")) == 513);
  // Two instances half over each other.
  Scene twice = scene;
  twice.instances.push_back(twice.instances[0]);
  twice.instances[1].offset.x += 4;
  CHECK(voxels(saved(twice, dir / "twice.quarry")) == 512 + 256 + 2);
  // Its far voxel is beyond the world that one grid holds; then beyond what any file's scene may reach.
  scene.instances[0].offset = {8120, 0, 0};
  CHECK(voxels(saved(scene, dir / "far.quarry")) == 513);
  scene.instances[0].offset = {1 << 30, 0, 0};
  const Outcome far = run_quarry({"validate", saved(scene, dir / "farther.quarry")});
  CHECK(far.code == 1);
  CHECK(has(far.err, "farther out than 2^30"));
  scene.instances[0].offset = {8080, 0, 0};
  CHECK(voxels(saved(scene, dir / "near.quarry")) == 513);
}

}  // namespace compare_test
