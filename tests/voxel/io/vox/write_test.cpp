// SPDX-License-Identifier: Apache-2.0
// write_test.cpp - the .vox writer: every real file through .quarry and back without a loss, volumes beyond a model's
// size, and every field of a Scene that a .vox file has no place for. The reader judges the written files. Its own
// tests are based on facts from other programs.
#include "voxel/io/vox/write.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <random>
#include <set>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"
#include "tests/voxel/io/vox/known_files.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/vox/read.hpp"

namespace write_test {

using namespace quarry;
using test::file_bytes;
namespace fs = std::filesystem;

namespace {

Scene read_back(const Scene& scene, const fs::path& file) {
  const auto done = io::write_scene(scene, file);
  INFO((done ? std::string() : done.error().message));
  REQUIRE(done);
  std::vector<std::string> warnings;
  auto back = io::parse_vox(file_bytes(file), &warnings);
  INFO((back ? std::string() : back.error().message));
  REQUIRE(back);
  for (const std::string& w : warnings) INFO(w);
  CHECK(warnings == std::vector<std::string>{});
  return std::move(*back);
}

// Every voxel of the scene at its place in an instance: a map made voxel by voxel, by cell transforms alone.
std::map<Int3, uint8_t> placed(const Scene& s) {
  std::map<Int3, uint8_t> cells;
  for (const Instance& i : s.instances)
    for (const auto& [at, brick] : s.volumes[i.volume].bricks.bricks())
      for (uint32_t n = 0; n < kVoxelsPerBrick; ++n)
        if (brick.materials[n]) {
          const Int3 cell = Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(n);
          cells.emplace(i.rotation.apply_to_cell(cell) + i.offset, brick.materials[n]);
        }
  return cells;
}

std::vector<Rotation> all_rotations() {
  std::vector<Rotation> out;
  std::array<uint8_t, 3> axes{0, 1, 2};
  do
    for (int signs = 0; signs < 8; ++signs)
      out.push_back({axes, {int8_t(signs & 1 ? -1 : 1), int8_t(signs & 2 ? -1 : 1), int8_t(signs & 4 ? -1 : 1)}});
  while (std::next_permutation(axes.begin(), axes.end()));
  return out;
}

}  // namespace

TEST_CASE("vox writer: every real file goes through .quarry and back with all that the reader sees") {
  const fs::path dir = test::scratch_dir("vox-write-real");
  for (const auto& [file, known] : test::known_vox_files()) {
    INFO(file);
    const auto first = io::read_scene(file);
    REQUIRE(first);
    REQUIRE(io::write_scene(*first, dir / "way.quarry"));
    const auto way = io::read_scene(dir / "way.quarry");
    REQUIRE(way);
    Scene last = read_back(*way, dir / "last.vox");
    // The file differs only in metadata: its source, its entries on frames, and a palette that is now written out.
    Scene want = *first;
    for (const char* key : {"source_file", "vox.anim_transform", "vox.anim_model", "vox.rgba_256"})
      want.metadata.erase(key), last.metadata.erase(key);
    for (const auto& [key, value] : want.metadata) {
      INFO(key);
      CHECK(last.metadata[key] == value);
    }
    CHECK(test::same_scene(want, last) == "");

    io::VoxFacts got;
    REQUIRE(io::vox_facts(last, &got));
    test::check_facts(got, known);
    const auto sums = scene_facts(last, Axes::z_up);
    REQUIRE(sums);
    test::check_facts(*sums, known);
    // Writing it again gives the same file, so nothing grows or drifts.
    const auto bytes = file_bytes(dir / "last.vox");
    REQUIRE(io::write_scene(*io::read_scene(dir / "last.vox"), dir / "again.vox"));
    CHECK(file_bytes(dir / "again.vox") == bytes);
  }
}

TEST_CASE("vox writer: every rotation of volumes with even and odd edges comes back as the same integers") {
  Scene s;
  std::mt19937 random(7);
  for (const Int3 size : {Int3{1, 1, 1}, Int3{4, 6, 8}, Int3{5, 7, 3}, Int3{2, 9, 256}}) {
    Volume v;
    v.name = "volume " + std::to_string(s.volumes.size());
    v.size = size;
    for (int i = 0; i < 20; ++i)
      v.bricks.set({int32_t(random() % uint32_t(size.x)), int32_t(random() % uint32_t(size.y)),
                    int32_t(random() % uint32_t(size.z))},
                   uint8_t(1 + random() % 255));
    s.volumes.push_back(v);
    for (const Rotation& r : all_rotations())
      s.instances.push_back(
          {uint32_t(s.volumes.size() - 1),
           r,
           {int32_t(random() % 2000) - 1000, int32_t(random() % 2000) - 1000, int32_t(random() % 2000) - 1000},
           -1,
           false,
           v.name,
           ""});
  }
  Scene back = read_back(s, test::scratch_dir("vox-write-rotations") / "r.vox");
  back.metadata.clear();
  CHECK(test::same_scene(s, back) == "");
}

TEST_CASE("vox writer: what is larger than a model becomes a group of models, with every voxel in its place") {
  std::mt19937 random(3);
  const fs::path dir = test::scratch_dir("vox-write-split");
  for (const Int3 span : {Int3{257, 1, 1}, Int3{600, 300, 270}, Int3{256, 256, 257}, Int3{3000, 2, 2}}) {
    Scene s;
    s.volumes.resize(2);
    s.volumes[0].name = "large";
    const Int3 corner{-77, 13, -300};
    for (int i = 0; i < 2000; ++i)
      s.volumes[0].bricks.set(corner + Int3{int32_t(random() % uint32_t(span.x)), int32_t(random() % uint32_t(span.y)),
                                            int32_t(random() % uint32_t(span.z))},
                              uint8_t(1 + random() % 255));
    s.volumes[0].bricks.set(corner, 1);
    s.volumes[0].bricks.set(corner + span - Int3{1, 1, 1}, 2);
    s.volumes[1].bricks.set({0, 0, 0}, 9);
    s.volumes[1].name = "dot";
    s.layers = {{"ground", false}, {"off", true}};
    s.instances.push_back({1, {}, {5, 5, 5}, -1, false, "before", ""});
    s.instances.push_back({0, {{2, 0, 1}, {-1, 1, -1}}, {10, 20, 30}, 1, true, "one", "town/street"});
    s.instances.push_back({0, {}, {-900, 0, 0}, 0, false, "", "town"});
    s.instances.push_back({1, {}, {0, 0, 0}, 0, false, "after", ""});
    Scene back = read_back(s, dir / "split.vox");
    CHECK(placed(back) == placed(s));
    for (const Volume& v : back.volumes) CHECK((v.size.x <= 256 && v.size.y <= 256 && v.size.z <= 256));
    const size_t pieces = back.volumes.size() - 1;
    CHECK(pieces >= 2);
    REQUIRE(back.instances.size() == 2 + 2 * pieces);
    CHECK(back.instances[0].name == "before");
    CHECK(back.instances.back().name == "after");
    for (size_t i = 0; i < pieces; ++i) {
      CHECK(back.instances[1 + i].group_path == "town/street/one");
      CHECK(back.instances[1 + i].hidden);
      CHECK(back.instances[1 + i].layer == 1);
      CHECK(back.instances[1 + pieces + i].group_path == "town/large");
      CHECK_FALSE(back.instances[1 + pieces + i].hidden);
    }
  }
}

TEST_CASE("vox writer: a world file that does not fit memory becomes the same .vox file, whatever room there is") {
  std::mt19937 random(4);
  const fs::path dir = test::scratch_dir("vox-write-world");
  Scene s;
  for (const Int3 span : {Int3{700, 300, 270}, Int3{200, 100, 90}, Int3{1, 1, 1}, Int3{}, Int3{40, 30, 600}}) {
    Volume& v = s.volumes.emplace_back();
    v.name = std::to_string(span.x);
    v.size = span.x == 200 ? Int3{190, 100, 90} : span;
    for (int i = 0; i < 3000 && span.x; ++i)
      v.bricks.set(Int3{int32_t(random() % uint32_t(span.x)), int32_t(random() % uint32_t(span.y)),
                        int32_t(random() % uint32_t(span.z))} -
                       Int3{span.x == 700 ? 77 : 0, 0, 3},
                   uint8_t(1 + random() % 255));
    s.instances.push_back({uint32_t(s.volumes.size() - 1), {}, {0, 9, 9}, -1, false, "", "group"});
  }
  s.instances.push_back({0, {{2, 0, 1}, {-1, 1, -1}}, {20'000, 1, 2}, -1, false, "beyond the world", ""});
  std::vector<VolumeSummary> volumes(s.volumes.size());
  for (size_t v = 0; v < volumes.size(); ++v) volumes[v].add(s.volumes[v].bricks);
  REQUIRE(io::write_scene(s, dir / "world.quarry"));
  REQUIRE(io::write_scene(s, dir / "whole.vox"));
  auto store = io::StoreReader::open(dir / "world.quarry");
  REQUIRE(store);
  uint64_t regions = 0;
  for (const uint64_t bytes : {uint64_t(1) << 30, uint64_t(500'000), uint64_t(0)}) {
    const auto room = [bytes] { return bytes; };
    const auto written = io::write_vox_of_world(*store, volumes, room, {dir / "parts.vox", true}, {});
    REQUIRE(written);
    CHECK((file_bytes(dir / "parts.vox") == file_bytes(dir / "whole.vox")));
    CHECK(written->regions > regions);  // less room, more of them
    regions = written->regions;
  }
  fs::remove(dir / "parts.vox");
  std::atomic<bool> stop{true};
  const Progress progress{.report = {}, .cancel = &stop};
  const auto stopped = io::write_vox_of_world(
      *store, volumes, [] { return uint64_t(0); }, dir / "parts.vox", progress);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
  CHECK(std::distance(fs::directory_iterator(dir), fs::directory_iterator()) == 2);
}

TEST_CASE("vox writer: a volume whose declared size does not hold its voxels loses none of them") {
  Scene s;
  s.volumes.resize(3);
  s.volumes[0].size = {4, 4, 4};
  s.volumes[0].bricks.set({-3, 9, 2}, 5);
  s.volumes[1].size = {500, 4, 4};
  s.volumes[1].bricks.set({3, 3, 3}, 6);
  s.volumes[2].size = {0, 3, 3};
  for (uint32_t v = 0; v < 3; ++v) s.instances.push_back({v, {}, {int32_t(v) * 20, 0, 0}, -1, false, "", ""});
  const Scene back = read_back(s, test::scratch_dir("vox-write-declared") / "d.vox");
  CHECK(back.volumes.size() == 3);
  CHECK(placed(back) == placed(s));
  CHECK(back.volumes[2].size == Int3{0, 3, 3});
}

TEST_CASE("vox writer: groups keep the instances' order, which decides overlaps") {
  Scene s;
  s.volumes.resize(2);
  s.volumes[0].bricks.set({0, 0, 0}, 1);
  s.volumes[1].bricks.set({0, 0, 0}, 2);
  for (Volume& v : s.volumes) v.size = {1, 1, 1}, v.name = "dot";
  const char* paths[] = {"a", "b/c", "a", "", "b", "b/c", "a/a/a", "#9", "#12345"};
  for (uint32_t i = 0; i < std::size(paths); ++i) s.instances.push_back({i & 1, {}, {}, -1, false, "dot", paths[i]});
  for (const OverlapRule rule : {OverlapRule::first_instance_wins, OverlapRule::last_instance_wins}) {
    s.overlap = rule;
    Scene back = read_back(s, test::scratch_dir("vox-write-groups") / "g.vox");
    back.metadata.clear();
    CHECK(test::same_scene(s, back) == "");
  }
}

TEST_CASE("vox writer: materials, names, layers and cameras that no reader of ours had made come back") {
  Scene s;
  s.volumes.resize(1);
  s.volumes[0].bricks.set({0, 0, 0}, 1);
  s.volumes[0].size = {1, 1, 1};
  s.volumes[0].name = "dot";
  s.instances.push_back({0, {}, {}, 1, false, "dot", ""});
  s.layers = {{"first", false}, {"layer 1", true}, {"odd \xff = %20\n", false}};
  auto& m = s.palette.materials;
  std::mt19937 random(11);
  for (size_t i = 1; i < 256; ++i) {
    const auto some = [&] { return random() % 3 ? float(random() % 1000) / 1000 : 0.0f; };
    m[i] = {uint8_t(random()),
            uint8_t(random()),
            uint8_t(random()),
            uint8_t(random()),
            some(),
            some(),
            some() * 9.7f,
            some(),
            1 + some(),
            {0, 0}};
    s.palette.names[i] = i % 5 ? "" : "colour " + std::to_string(i);
  }
  m[1].emission = 1234.5f;
  s.palette.names[0] = {};
  m[0] = Material{};
  s.cameras = {{"from above", {30, 40, -50}, {1, 2, 3}, 33}, {"camera 1", {0, 0, 10}, {0, 0, 0}, 60}};
  const fs::path file = test::scratch_dir("vox-write-materials") / "m.vox";
  Scene back = read_back(s, file);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(back.cameras[i].name == s.cameras[i].name);
    CHECK(back.cameras[i].vertical_fov_degrees == s.cameras[i].vertical_fov_degrees);
    for (size_t a = 0; a < 3; ++a) {
      CHECK(back.cameras[i].position[a] == Approx(s.cameras[i].position[a]).margin(1e-3));
      CHECK(back.cameras[i].target[a] == Approx(s.cameras[i].target[a]).margin(1e-3));
    }
  }
  s.cameras = back.cameras;
  back.metadata.clear();
  CHECK(test::same_scene(s, back) == "");

  SECTION("what was changed after reading is what is written, the rest of a dictionary stays") {
    using test::VoxBuilder;
    VoxBuilder f = VoxBuilder(200).model(1, 1, 1, {{0, 0, 0, 1}});
    f.dict_chunk("MATL", 1, {{"_type", "_media"}, {"_d", "0.05 %"}})
        .dict_chunk("MATL", 2, {{"_type", "_metal"}, {"_metal", "0.5"}, {"_sp", "1"}})
        .dict_chunk("MATL", 256, {{"_type", "_glass"}});
    f.dict_chunk("LAYR", 4, {{"_name", "old"}, {"_color", "1 2 3"}});
    auto scene = io::parse_vox(f.bytes());
    REQUIRE(scene);
    scene->palette.materials[2].metalness = 0.25f;
    scene->layers[0] = {"new", true};
    const Scene again = read_back(*scene, file);
    CHECK(again.palette == scene->palette);
    CHECK_THAT(again.metadata.at("vox.material_dicts"),
               Catch::Contains("1 _type=_media _d=0.05%20%25\n") && Catch::Contains("256 _type=_glass\n"));
    CHECK(again.metadata.at("vox.layer_dicts") == "4 _name=new _color=1%202%203 _hidden=1\n");
  }
}

TEST_CASE("vox writer: scenes without models or instances stay so") {
  const fs::path dir = test::scratch_dir("vox-write-empty");
  Scene s;
  Scene back = read_back(s, dir / "nothing.vox");
  CHECK(back.instances.empty());
  CHECK(back.volumes.size() == 1);
  CHECK(back.volumes[0].bricks.empty());
  s.volumes.resize(1);
  s.volumes[0].size = {2, 3, 4};
  s.volumes[0].bricks.set({1, 2, 3}, 4);
  back = read_back(s, dir / "unplaced.vox");
  CHECK(back.instances.empty());
  CHECK(back.volumes[0].bricks == s.volumes[0].bricks);
  s.volumes.push_back(s.volumes[0]);
  back = read_back(s, dir / "several.vox");
  CHECK(back.volumes.size() == 2);
  CHECK(back.instances.empty());
}

TEST_CASE("vox writer: the frames of an old animation stay so, through .quarry too, until one is moved or placed") {
  const fs::path dir = test::scratch_dir("vox-write-frames");
  const auto file = test::VoxBuilder(150)
                        .chunk("PACK", {3, 0, 0, 0})
                        .model(3, 4, 5, {{0, 1, 2, 7}})
                        .model(1, 1, 1, {{0, 0, 0, 2}})
                        .model(2, 2, 2, {});
  test::write_bytes(dir / "frames.vox", file.bytes());
  const auto frames = io::read_scene(dir / "frames.vox");
  REQUIRE(frames);
  REQUIRE(io::write_scene(*frames, dir / "frames.quarry"));
  const auto kept = io::read_scene(dir / "frames.quarry");
  REQUIRE(kept);
  REQUIRE(io::write_scene(*kept, dir / "again.vox"));
  const auto has_chunk = [&](const char* name) {
    return test::file_text(dir / "again.vox").find(name) != std::string::npos;
  };
  CHECK(has_chunk("PACK"));
  CHECK_FALSE(has_chunk("nTRN"));
  std::vector<std::string> warnings;
  const auto again = io::parse_vox(file_bytes(dir / "again.vox"), &warnings);
  REQUIRE(again);
  CHECK(warnings.size() == 1);  // it says that only the first one is placed
  CHECK(again->volumes.size() == 3);
  CHECK(placed(*again) == placed(*frames));
  REQUIRE(again->instances.size() == 1);
  CHECK(again->instances[0].offset == frames->instances[0].offset);
  REQUIRE(io::write_scene(*again, dir / "third.vox"));
  CHECK(file_bytes(dir / "third.vox") == file_bytes(dir / "again.vox"));

  for (const int change : {0, 1, 2, 3}) {
    Scene changed = *frames;
    if (change == 0) changed.instances[0].offset.x += 1;
    if (change == 1) changed.instances.push_back({}), changed.instances[1].volume = 1;
    if (change == 2) changed.instances[0].name = "first";
    if (change == 3) changed.instances[0].volume = 1;
    const Scene back = read_back(changed, dir / "again.vox");
    CHECK(has_chunk("nTRN"));
    CHECK_FALSE(has_chunk("PACK"));
    CHECK(placed(back) == placed(changed));
    CHECK(back.instances.size() == changed.instances.size());
  }
}

TEST_CASE("vox writer: what cannot be written leaves the old file and no other") {
  const fs::path dir = test::scratch_dir("vox-write-refused");
  const auto refused = [&](const Scene& s, ErrorCode code, const std::string& part, const Progress& progress = {}) {
    std::ofstream(dir / "old.vox") << "old";
    const auto done = io::write_scene(s, dir / "old.vox", progress);
    REQUIRE_FALSE(done);
    INFO(done.error().message);
    CHECK(done.error().code == code);
    CHECK_THAT(done.error().message, Catch::StartsWith((dir / "old.vox").string() + ": ") && Catch::Contains(part));
    CHECK(file_bytes(dir / "old.vox") == std::vector<uint8_t>{'o', 'l', 'd'});
    CHECK(std::distance(fs::directory_iterator(dir), fs::directory_iterator()) == 1);
  };
  refused(test::busy_scene(), ErrorCode::out_of_bounds, "from the origin");
  Scene s;
  s.volumes.resize(1);
  s.volumes[0].bricks.set({0, 0, 0}, 1);
  s.instances.resize(1);
  s.instances[0].volume = 3;
  refused(s, ErrorCode::invalid_argument, "volume 3");
  s.instances[0].volume = 0;
  std::atomic<bool> stop{true};
  Progress progress;
  progress.cancel = &stop;
  refused(s, ErrorCode::cancelled, "stopped", progress);
  const auto no_folder = io::write_scene(s, dir / "none" / "x.vox");
  REQUIRE_FALSE(no_folder);
  CHECK(no_folder.error().code == ErrorCode::not_found);
  if (fs::exists("/dev/full")) {
    // A device that is always full: the folder cannot hold a temporary file either, and nothing appears.
    CHECK_FALSE(io::write_scene(s, "/dev/full/x.vox"));
  }
}

}  // namespace write_test
