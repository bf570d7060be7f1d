// SPDX-License-Identifier: Apache-2.0
// cloud_test.cpp - point clouds: the real LAS against the test's own reading of its records, every point format, text
// and PLY, grids, damaged files.
#include "voxel/io/points/cloud.hpp"

#include <cmath>
#include <map>
#include <set>

#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/points/cloud_seeds.hpp"
#include "voxel/io/formats.hpp"

namespace cloud_test {

using namespace quarry;
using test::Bytes;
using test::las_file;
using test::text_file;
namespace fs = std::filesystem;

namespace {
io::ReadOptions sized(double voxel_size) {
  io::ReadOptions options;
  options.voxel_size = voxel_size;
  return options;
}
std::array<int, 3> colour(const Scene& scene, Int3 cell) {
  const uint8_t m = scene.volumes.at(0).bricks.get(cell);
  if (!m) return {-1, -1, -1};
  return {scene.palette.materials[m].r, scene.palette.materials[m].g, scene.palette.materials[m].b};
}
void says(const Result<Scene>& scene, const std::string& part, const std::string& begin = "byte ") {
  test::check_refused(scene, begin, part);
}
}  // namespace

TEST_CASE("points: the real LAS fills the voxels that its records fall into, at either kind of size") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no .las file");
  const fs::path file = data / "points/autzen_trim.las";
  const Bytes b = test::file_bytes(file);
  const auto i32 = [&](size_t at) {
    int32_t v;
    std::memcpy(&v, &b[at], 4);
    return v;
  };
  uint32_t first;
  std::memcpy(&first, &b[96], 4);
  REQUIRE((b.size() - first) / 34 == 110000);
  int32_t low[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, high[3] = {INT32_MIN, INT32_MIN, INT32_MIN};
  for (size_t i = 0; i < 110000; ++i)
    for (size_t a = 0; a < 3; ++a)
      low[a] = std::min(low[a], i32(first + i * 34 + 4 * a)), high[a] = std::max(high[a], i32(first + i * 34 + 4 * a));
  CHECK(low[0] == 63600176);  // the known bounds, in hundredths
  CHECK(high[0] == 63717922);

  // Voxels of 4 units are 400 hundredths, a whole number. A point within rounding of a voxel's side may be on either
  // side.
  const auto scene = io::read_scene(file, sized(4));
  REQUIRE(scene);
  CHECK(scene->metadata.at("points") == "110000");
  CHECK(scene->metadata.at("points.color") == "rgb");
  CHECK(scene->metadata.at("source_format") == "las");
  std::set<std::array<int32_t, 3>> cells;
  int missing = 0;
  for (size_t i = 0; i < 110000; ++i) {
    const size_t at = first + i * 34;
    const int32_t d[3] = {i32(at) - low[0], i32(at + 8) - low[2], high[1] - i32(at + 4)};
    if (d[0] % 400 == 0 || d[1] % 400 == 0 || d[2] % 400 == 0) continue;
    cells.insert({d[0] / 400, d[1] / 400, d[2] / 400});
    missing += scene->volumes[0].bricks.get({d[0] / 400, d[1] / 400, d[2] / 400}) == 0;
  }
  CHECK(missing == 0);
  CHECK(test::voxels_of(*scene) >= cells.size());
  CHECK(test::voxels_of(*scene) < cells.size() + cells.size() / 20);
  CHECK(flatten(*scene, true));

  io::ReadOptions by_count;
  by_count.resolution = 300;
  const auto fine = io::read_scene(file, by_count);
  REQUIRE(fine);
  CHECK(std::max({fine->volumes[0].size.x, fine->volumes[0].size.y, fine->volumes[0].size.z}) == 300);
}

TEST_CASE("points: every LAS point format gives places, and colours or intensities; z is up") {
  // With scale 0.5 the points are 0, 0, 0 and 1, 2, 3 and, in the same voxel, 1.5, 2, 3 from the lowest corner.
  const std::vector<test::LasPoint> points{
      {{0, 0, 0}, 50, {0x1000, 0x2000, 0x3000}}, {{2, 4, 6}, 100, {0xff00, 0, 0}}, {{3, 4, 6}, 200, {0, 0xff00, 0}}};
  for (const int format : {0, 1, 2, 3, 6, 7, 8}) {
    INFO(format);
    const auto scene = io::parse_las(las_file(format, points, format >= 6 ? 4 : 2), sized(1));
    REQUIRE(scene);
    CHECK(scene->volumes[0].size == Int3{2, 4, 3});
    CHECK(test::voxels_of(*scene) == 2);
    const bool rgb = format == 2 || format == 3 || format >= 7;
    CHECK(colour(*scene, {0, 0, 2}) == (rgb ? std::array<int, 3>{0x10, 0x20, 0x30} : std::array<int, 3>{63, 63, 63}));
    CHECK(colour(*scene, {1, 3, 0}) == (rgb ? std::array<int, 3>{128, 128, 0} : std::array<int, 3>{191, 191, 191}));
    CHECK(scene->metadata.at("points.origin") == "100 300 -202");
  }
  const std::vector<test::LasPoint> bytes{{{0, 0, 0}, 0, {200, 100, 255}}};  // colours written as bytes
  const auto scene = io::parse_las(las_file(2, bytes), {});
  REQUIRE(scene);
  CHECK(colour(*scene, {0, 0, 0}) == std::array<int, 3>{200, 100, 255});
  io::ReadOptions up = sized(1);
  up.up = "y";
  CHECK(io::parse_las(las_file(0, points), up)->volumes[0].size == Int3{2, 3, 4});
}

TEST_CASE("points: lines of text with three numbers or six, whatever stands between them") {
  const auto plain = io::parse_xyz(text_file("# c\n// c\n\n1 2 3\n 2.5,+2;\t3 \r\n"), sized(1));
  REQUIRE(plain);
  CHECK(test::voxels_of(*plain) == 2);
  CHECK(colour(*plain, {1, 0, 0}) == std::array<int, 3>{200, 200, 200});
  const auto coloured = io::parse_xyz(text_file("x y z r g b\n0 0 0 1 2 3\n0 4 0 255 0 9 extra 7"), sized(1));
  REQUIRE(coloured);
  CHECK(colour(*coloured, {0, 0, 4}) == std::array<int, 3>{1, 2, 3});  // y of the file points to -z
  CHECK(colour(*coloured, {0, 0, 0}) == std::array<int, 3>{255, 0, 9});
  const auto counted = io::parse_xyz(text_file("2\n0 0 0 7\n1 0 0 7\n"), sized(1));  // a count, and intensities
  REQUIRE(counted);
  CHECK(test::voxels_of(*counted) == 2);
  says(io::parse_xyz({}, {}), "empty");
  says(io::parse_xyz(text_file("1 2 3\n1 2\n"), {}), "line 2", "byte 6: ");
  says(io::parse_xyz(text_file("1 2 3\n1 2 3x\n"), {}), "line 2", "byte 6: ");
  says(io::parse_xyz(text_file("nan nan inf\n"), {}), "finite");
}

TEST_CASE("points: PLY without faces is a cloud in all three encodings; with faces it stays a mesh") {
  for (const Bytes& bytes : {test::ply_text(), test::ply_binary(false), test::ply_binary(true)}) {
    CHECK(io::ply_is_points(bytes));
    const auto scene = io::parse_ply_points(bytes, sized(1));
    REQUIRE(scene);
    CHECK(scene->volumes[0].size == Int3{4, 2, 3});
    CHECK(colour(*scene, {0, 0, 0}) == std::array<int, 3>{10, 20, 30});
    CHECK(colour(*scene, {3, 1, 2}) == std::array<int, 3>{11, 20, 30});
  }
  const fs::path dir = test::scratch_dir("points-ply");
  const Bytes cloud = test::ply_text();
  test::write_bytes(dir / "cloud.ply", cloud);
  const auto read = io::read_scene(dir / "cloud.ply", sized(1));
  REQUIRE(read);
  CHECK(read->volumes[0].name == "cloud");
  CHECK(test::voxels_of(*read) == 2);
  if (const fs::path data = test::data_dir(); !data.empty())
    CHECK_FALSE(io::ply_is_points(test::file_bytes(data / "mesh/bunny.ply")));
  else test::skip("no .ply mesh");

  says(io::parse_ply_points(text_file("plx\n"), {}), "'ply'", "byte 0: ");
  says(io::parse_ply_points(text_file("ply\nelement vertex 1\nend_header\n"), {}), "'format'");
  says(
      io::parse_ply_points(text_file("ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n1\n"), {}),
      "x, y and z");
  says(io::parse_ply_points(text_file(test::ply_header("ascii", 1) + "1 2 3 4 five 6\n"), {}), "vertex 0");
  says(io::parse_ply_points(text_file(test::ply_header("binary_little_endian", 2000000000) + "123"), {}),
       "2000000000 vertices");
  says(io::parse_ply_points(
           text_file("ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar int x\nend_header\n1\n"), {}),
       "x, y and z");
}

// Up to version 0.1.1 both were rejected.
TEST_CASE("points: PLY vertices are found behind other elements and between their own lists, with any line end") {
  const std::string xyz = "property float x\nproperty float y\nproperty float z\n";
  const std::string file =
      "ply\nformat ascii 1.0\nelement camera 2\nproperty list uchar int i\nproperty int j\n"
      "element vertex 2\nproperty list uchar int near\n" +
      xyz + "end_header\n3 1 2 3 4\n0 5\n2 7 8 0 0 0\n0 3 1 2\n";
  for (const char* line_end : {"\n", "\r\n", "\r"}) {
    std::string text;
    for (const char c : file) c == '\n' ? text += line_end : text += c;
    CHECK(io::ply_is_points(text_file(text)));
    const auto scene = io::parse_ply_points(text_file(text), sized(1));
    REQUIRE(scene);
    CHECK(scene->volumes[0].size == Int3{4, 2, 3});
  }
  Bytes strips = text_file("ply\nformat ascii 1.0\nelement vertex 3\n" + xyz +
                           "element tristrips 1\nproperty list int int vertex_indices\nend_header\n");
  CHECK_FALSE(io::ply_is_points(strips));
}

TEST_CASE("points: a grid of more than 2^20 voxels along an edge is refused, and says so") {
  says(io::parse_xyz(text_file("0 0 0\n20000 0 0\n"), sized(0.01)), "more than 1048576", "voxels of 0.01");
  CHECK(io::parse_xyz(text_file("0 0 0\n1048575.5 0 0\n"), sized(1)));
  says(io::parse_xyz(text_file("0 0 0\n1048576 0 0\n"), sized(1)), "1048576", "voxels of 1 ");
  const auto single = io::parse_xyz(text_file("5 5 5\n5 5 5\n"), {});
  REQUIRE(single);
  CHECK(test::voxels_of(*single) == 1);
}

TEST_CASE("points: damaged LAS files are errors that name the byte") {
  const Bytes good = las_file(3, {{{1, 2, 3}, 4, {5, 6, 7}}});
  const auto with = [&](size_t at, uint8_t value) {
    Bytes b = good;
    b[at] = value;
    return io::parse_las(b, {});
  };
  REQUIRE(io::parse_las(good, {}));
  says(with(0, 'X'), "'LASF'", "byte 0: ");
  says(with(25, 7), "1.7", "byte 24: ");
  says(with(104, 4), "point format 4", "byte 104: ");
  says(with(104, 0x83), "LAZ", "byte 104: ");
  says(with(105, 20), "at least 34", "byte 105: ");
  says(with(99, 1), "outside the file", "byte 96: ");
  says(with(107, 0), "at least one point", "byte 107: ");
  says(with(107, 9), "9 points", "byte 107: ");
}

TEST_CASE("points: cut after any byte, LAS and binary PLY are errors that say so") {
  test::check_cuts(las_file(3, {{{1, 2, 3}, 4, {5, 6, 7}}, {{4, 2, 3}, 4, {5, 6, 7}}}),
                   [](const Bytes& b, auto*) { return io::parse_las(b, {}); });
  test::check_cuts(las_file(7, {{{1, 2, 3}, 4, {5, 6, 7}}}, 4),
                   [](const Bytes& b, auto*) { return io::parse_las(b, {}); });
  for (const bool big : {false, true})
    test::check_cuts(test::ply_binary(big), [](const Bytes& b, auto*) { return io::parse_ply_points(b, {}); });
}

TEST_CASE("points: thousands of seeded mutations end in a whole scene or a clean error") {
  std::vector<Bytes> seeds = test::contents(test::points_seeds());
  const auto parse = [](const Bytes& b, std::vector<std::string>* warnings) {
    io::ReadOptions options;
    options.warnings = warnings;
    const std::span<const uint8_t> rest = std::span(b).subspan(1);
    return b[0] == 0   ? io::parse_las(rest, options)
           : b[0] == 1 ? io::parse_xyz(rest, options)
                       : io::parse_ply_points(rest, options);
  };
  test::check_mutations(seeds, parse, 4000);
}

}  // namespace cloud_test
