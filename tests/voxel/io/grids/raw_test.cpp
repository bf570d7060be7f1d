// SPDX-License-Identifier: Apache-2.0
// raw_test.cpp - raw grids: with a given size, with NRRD headers, and written and read back.
#include "voxel/io/grids/raw.hpp"

#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/grids/raw_seeds.hpp"
#include "voxel/io/formats.hpp"

namespace raw_test {

using namespace quarry;
using test::Bytes;
namespace fs = std::filesystem;

namespace {
Result<Scene> parse(const Bytes& bytes, std::vector<std::string>*) { return io::parse_nrrd(bytes, {}); }
void says(const Result<Scene>& scene, const std::string& part) {
  REQUIRE_FALSE(scene);
  CHECK_THAT(scene.error().message, Catch::Contains(part));
}
Bytes text(const std::string& s) { return {s.begin(), s.end()}; }
}  // namespace

TEST_CASE("raw: bytes are materials or colours, x fastest, then y, then z") {
  const auto materials = io::parse_raw(Bytes{0, 1, 2, 3, 4, 255, 0, 0, 0, 0, 0, 7}, {2, 3, 2});
  REQUIRE(materials);
  CHECK(test::voxels_of(*materials) == 6);
  CHECK(materials->volumes[0].bricks.get({1, 0, 0}) == 1);
  CHECK(materials->volumes[0].bricks.get({0, 1, 0}) == 2);
  CHECK(materials->volumes[0].bricks.get({1, 2, 1}) == 7);
  const auto colours = io::parse_raw(Bytes{1, 2, 3, 255, 9, 9, 9, 0, 4, 5, 6, 128}, {1, 1, 3});
  REQUIRE(colours);
  CHECK(test::voxels_of(*colours) == 2);
  const Material& m = colours->palette.materials[colours->volumes[0].bricks.get({0, 0, 2})];
  CHECK((m.r == 4 && m.g == 5 && m.b == 6 && m.a == 128));
  says(io::parse_raw(Bytes(7), {2, 3, 2}), "12 bytes (materials) or 48 (r, g, b, a), but the file has 7");
  says(io::parse_raw({}, {0, 1, 1}), "at least 1");
  says(io::parse_raw(Bytes(7), {16385, 1, 1}), "16384");
  says(io::parse_raw(Bytes(7), {16384, 16384, 16384}), "4398046511104 bytes");
}

TEST_CASE("raw: what is written comes back in its place with its colours, header in front or beside") {
  const fs::path dir = test::scratch_dir("raw-read");
  Scene scene;
  scene.volumes.emplace_back();
  scene.instances.emplace_back();
  scene.palette.materials[200] = Material{1, 2, 3, 4};
  scene.palette.materials[255] = Material{9, 9, 9};  // the standard palette's one is emissive
  for (const Int3 cell : {Int3{-5, -1, 0}, Int3{3, 9, -20}, Int3{0, 0, 0}}) scene.volumes[0].bricks.set(cell, 200);
  const auto flat = flatten(scene, true);
  REQUIRE(flat);
  for (const char* name : {"a.raw", "b.nrrd"}) {
    INFO(name);
    REQUIRE(io::write_scene(scene, dir / name));
    const auto back = io::read_scene(dir / name);
    REQUIRE(back);
    CHECK(*flatten(*back, true) == *flat);
    CHECK(back->palette.materials[200].g == 2);
    CHECK(back->palette.materials[200].a == 4);
    CHECK(back->palette.materials[255] == scene.palette.materials[255]);
    CHECK(back->palette.names[255].empty());
  }
  // The two files can be read by the header's name as well as by the grid's.
  const auto detached = io::read_scene(dir / "a.nhdr");
  REQUIRE(detached);
  CHECK(*flatten(*detached, true) == *flat);
  CHECK(detached->palette.materials[200].a == 4);
  fs::remove(dir / "a.nhdr");
  says(io::read_scene(dir / "a.raw"), "WIDTHxHEIGHTxDEPTH");
  io::ReadOptions options;
  options.raw_size = {9, 11, 21};
  const auto sized = io::read_scene(dir / "a.raw", options);
  REQUIRE(sized);
  CHECK(test::voxels_of(*sized) == 3);
  CHECK(sized->volumes[0].bricks.get({8, 10, 0}) == 200);
}

TEST_CASE("raw: a header of its own reads one file in its own folder and no other") {
  const fs::path dir = test::scratch_dir("raw-detached");
  fs::create_directories(dir / "in");
  for (const fs::path& file : {dir / "grid.raw", dir / "in/grid.raw"}) std::ofstream(file) << "\5\6";
  std::ofstream(dir / "in/empty.raw").close();
  fs::create_symlink("../grid.raw", dir / "in/link.raw");
  const auto read = [&](const std::string& field) {
    std::ofstream(dir / "in/a.nhdr") << "NRRD0004\ntype: uint8\nsizes: 2 1 1\nencoding: raw\n" + field;
    return io::read_scene(dir / "in/a.nhdr");
  };
  for (const char* field : {"data file: grid.raw\n", "datafile: grid.raw", "data file: grid.raw\r\n\r\n"}) {
    const auto scene = read(field);
    REQUIRE(scene);
    CHECK(scene->volumes[0].bricks.get({1, 0, 0}) == 6);
  }
  says(read("data file: ../grid.raw\n"), "own folder");
  says(read("data file: " + (dir / "grid.raw").string() + "\n"), "own folder");
  says(read("data file: ..\n"), "own folder");
  says(read("data file: link.raw\n"), "own folder");
  says(read("data file: LIST\n"), "several files");
  says(read("data file: slice%03d.raw 0 9 1\n"), "several files");
  says(read("data file: empty.raw\n"), "is empty");
  says(read("data file: nothing.raw\n"), "nothing.raw");
  says(read("sizes: 3 1 1\ndata file: grid.raw\n"), "expected 3 bytes");
}

TEST_CASE("raw: NRRD headers that say something else are refused") {
  const std::string good = "NRRD0004\ntype: uint8\nsizes: 1 1 1\nencoding: raw\n";
  CHECK(parse(text(good + "\n\5"), nullptr));
  says(parse(text("NRR"), nullptr), "'NRRD000'");
  says(parse(text(good + "type: float\n\n\5"), nullptr), "type uint8");
  says(parse(text(good + "encoding: gzip\n\n\5"), nullptr), "encoding raw");
  says(parse(text(good + "dimension: 4\n\n\5"), nullptr), "dimension 3");
  says(parse(text(good + "sizes: 1 1\n\n\5"), nullptr), "three whole numbers");
  says(parse(text(good + "sizes: 1 1 1e9\n\n\5"), nullptr), "three whole numbers");
  says(parse(text(good + "sizes: 1 1 nan\n\n\5"), nullptr), "three whole numbers");
  says(parse(text(good + "space origin: (1,2,1e30)\n\n\5"), nullptr), "2^24");
  says(parse(text(good + "quarry_palette:=00\n\n\5"), nullptr), "256 colours");
  says(parse(text(good + "\n\5\5"), nullptr), "expected 1 bytes");
  says(parse(text("NRRD0004\n\n\5"), nullptr), "type, encoding and sizes");
}

TEST_CASE("raw: cuts and thousands of seeded mutations end in a whole scene or a clean error") {
  const std::vector<Bytes> seeds = test::contents(test::raw_seeds());
  for (const Bytes& bytes : seeds) test::check_cuts(bytes, parse);
  test::check_mutations(seeds, parse, 3000);
}

}  // namespace raw_test
