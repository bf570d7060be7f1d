// SPDX-License-Identifier: Apache-2.0
// binvox_test.cpp - the .binvox reader: real files against known counts and a count of their runs in this test, the
// axes voxel by voxel, damaged files.
#include "voxel/io/grids/binvox.hpp"

#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/grids/binvox_seeds.hpp"
#include "voxel/io/formats.hpp"

namespace binvox_test {

using namespace quarry;
using io::parse_binvox;
using test::binvox_file;
using test::Bytes;
namespace fs = std::filesystem;

namespace {
Result<Scene> parse(const Bytes& bytes, std::vector<std::string>* warnings) { return parse_binvox(bytes, warnings); }

std::string message_of(const Bytes& bytes) {
  const auto scene = parse_binvox(bytes);
  REQUIRE_FALSE(scene);
  return scene.error().message;
}
}  // namespace

TEST_CASE("binvox: real files have the known counts, each voxel where the runs say") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no .binvox files");
  for (const auto& [name, voxels] :
       {std::pair<const char*, uint64_t>{"8a85.binvox", 14382}, {"chair_model.binvox", 1932}}) {
    INFO(name);
    const Bytes bytes = test::file_bytes(data / "other" / name);
    const auto scene = io::read_scene(data / "other" / name);
    REQUIRE(scene);
    CHECK(scene->metadata.at("source_format") == "binvox");
    REQUIRE(scene->volumes.size() == 1);
    CHECK(scene->volumes[0].bricks.voxel_count() == voxels);
    CHECK(scene->volumes[0].size == Int3{32, 32, 32});
    const std::string text(bytes.begin(), bytes.end());
    size_t at = text.find("\ndata\n") + 6;
    int32_t n = 0;
    bool same = true;
    for (; at + 1 < bytes.size(); at += 2)
      for (int i = 0; i < bytes[at + 1]; ++i, ++n)
        same = same && scene->volumes[0].bricks.get({n / 1024, n % 32, n / 32 % 32}) == bytes[at];
    CHECK(n == 32768);
    CHECK(same);
  }
}

TEST_CASE("binvox: y runs fastest, then z, then x; a value is a material") {
  // dim: x = 2, z = 3, y = 4. Voxel number 13 is x 1, z 0, y 1. Number 23 is the last.
  const auto scene = parse_binvox(
      binvox_file("#binvox 1\ndim 2 3 4\ntranslate -1 0.5 2\nscale 3.5\ndata\n", {0, 13, 9, 1, 0, 9, 255, 1}));
  REQUIRE(scene);
  const BrickMap& bricks = scene->volumes[0].bricks;
  CHECK(bricks.voxel_count() == 2);
  CHECK(bricks.get({1, 1, 0}) == 9);
  CHECK(bricks.get({1, 3, 2}) == 255);
  CHECK(scene->volumes[0].size == Int3{2, 4, 3});
  CHECK(scene->metadata.at("binvox.translate") == "-1 0.5 2");
  CHECK(scene->metadata.at("binvox.scale") == "3.5");
  CHECK(scene->instances.at(0).offset == Int3{});
}

TEST_CASE("binvox: every error names the byte and what was expected there") {
  const auto says = [](const std::string& header, const Bytes& runs, const std::string& begin,
                       const std::string& part) {
    const std::string message = message_of(binvox_file(header, runs));
    CHECK_THAT(message, Catch::StartsWith(begin));
    CHECK_THAT(message, Catch::Contains(part));
  };
  says("", {}, "byte 0: ", "empty");
  says("#vox 1\n", {}, "byte 0: ", "#binvox 1");
  says("#binvox 2\n", {}, "byte 8: ", "version 1");
  says("#binvox 1\ndata\n", {0, 1}, "byte 15: ", "'dim'");
  says("#binvox 1\ndim 1 2\ndata\n", {1, 2}, "byte 10: ", "three whole numbers");
  says("#binvox 1\ndim 1 2 x\ndata\n", {1, 2}, "byte 10: ", "three whole numbers");
  says("#binvox 1\ndim 1 2 99999999999\ndata\n", {1, 2}, "byte 10: ", "three whole numbers");
  says("#binvox 1\ndim 0 2 2\ndata\n", {1, 2}, "byte 10: ", "at least 1");
  says("#binvox 1\ndim 1 1 16385\ndata\n", {1, 2}, "byte 10: ", "16384");
  says("#binvox 1\ndim 16384 16384 16384\ndata\n", {1, 255}, "byte 37: ", "4398046511104 voxels");
  says("#binvox 1\ndim 2 2 2\ndata\n", {1, 9}, "byte 25: ", "longer than the 8");
  says("#binvox 1\ndim 2 2 2\ndata\n", {1, 6, 0}, "byte 27: ", "2 voxels that are missing");
  says("#binvox 1\ndim 2 2 2\n", {}, "byte 20: ", "no end of line");
}

TEST_CASE("binvox: what is odd is read with a warning") {
  std::vector<std::string> warnings;
  const auto scene = parse_binvox(binvox_file("#binvox 1\ndim 1 1 2\nwind 3\ndata\n", {1, 2, 0, 0, 1}), &warnings);
  REQUIRE(scene);
  CHECK(test::voxels_of(*scene) == 2);
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[0], Catch::Contains("'wind 3'"));
  CHECK_THAT(warnings[1], Catch::Contains("3 bytes after"));
}

TEST_CASE("binvox: a world's longest edge is placed so that it fits") {
  Bytes runs;
  for (int left = 16384; left > 0; left -= 255) runs.insert(runs.end(), {uint8_t(1), uint8_t(std::min(left, 255))});
  const auto scene = parse_binvox(binvox_file("#binvox 1\ndim 16384 1 1\ndata\n", runs));
  REQUIRE(scene);
  const auto flat = flatten(*scene, true);
  REQUIRE(flat);
  CHECK(flat->bounds() == Box3{{-8192, 0, 0}, {8191, 0, 0}});
}

TEST_CASE("binvox: cut after any byte, a file is an error that says so") {
  for (const auto& [name, bytes] : test::binvox_seeds()) test::check_cuts(bytes, parse);
  if (const fs::path data = test::data_dir(); !data.empty())
    test::check_cuts(test::file_bytes(data / "other/8a85.binvox"), parse, "byte ", 1000);
}

TEST_CASE("binvox: thousands of seeded mutations end in a whole scene or a clean error") {
  std::vector<Bytes> seeds = test::contents(test::binvox_seeds());
  if (const fs::path data = test::data_dir(); !data.empty())
    seeds.push_back(test::file_bytes(data / "other/chair_model.binvox"));
  test::check_mutations(seeds, parse, 4000);
}

}  // namespace binvox_test
