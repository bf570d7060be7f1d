// SPDX-License-Identifier: Apache-2.0
// qb_test.cpp - the Qubicle reader: the real file against the test's own decoding, colour formats, axes and runs on
// files made here, damaged files.
#include "voxel/io/grids/qb.hpp"

#include <map>

#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/grids/qb_seeds.hpp"
#include "voxel/io/formats.hpp"

namespace qb_test {

using namespace quarry;
using io::parse_qb;
using test::Bytes;
using test::QbBuilder;
namespace fs = std::filesystem;

namespace {
Result<Scene> parse(const Bytes& bytes, std::vector<std::string>* warnings) { return parse_qb(bytes, warnings); }

std::array<int, 4> colour_at(const Scene& scene, size_t volume, Int3 cell) {
  const uint8_t m = scene.volumes.at(volume).bricks.get(cell);
  if (!m) return {-1, -1, -1, -1};
  const Material& material = scene.palette.materials[m];
  return {material.r, material.g, material.b, material.a};
}

void says(const Bytes& bytes, const std::string& begin, const std::string& part) {
  test::check_refused(parse(bytes, nullptr), begin, part);
}
}  // namespace

TEST_CASE("qb: the real file has the known matrices and voxels, each with its colour and place") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no .qb file");
  const auto scene = io::read_scene(data / "other/chr_knight.qb");
  REQUIRE(scene);
  CHECK(scene->metadata.at("source_format") == "qb");
  CHECK(scene->volumes.size() == 17);
  CHECK(scene->instances.size() == 17);
  CHECK(test::voxels_of(*scene) == 2721);
  CHECK(scene->volumes[0].name == "K_Foot_Right");
  CHECK(scene->volumes[10].name == "K_Head");

  // This decodes the layout again by hand. The file is left-handed, RGBA, in runs, with visibility masks.
  const Bytes b = test::file_bytes(data / "other/chr_knight.qb");
  size_t at = 24;
  const auto word = [&] {
    uint32_t v;
    std::memcpy(&v, &b[at], 4);
    at += 4;
    return v;
  };
  std::map<std::array<int32_t, 3>, uint32_t> cells;
  for (int m = 0; m < 17; ++m) {
    at += 1 + b[at];
    const int32_t sx = int32_t(word()), sy = int32_t(word()), sz = int32_t(word()), px = int32_t(word()),
                  py = int32_t(word()), pz = int32_t(word());
    for (int32_t z = 0; z < sz; ++z)
      for (int32_t n = 0;;) {
        REQUIRE(at + 4 <= b.size());
        uint32_t v = word(), count = 1;
        if (v == 6) {
          REQUIRE(n == sx * sy);
          break;
        }
        if (v == 2) count = word(), v = word();
        for (; count > 0; --count, ++n)
          if (v >> 24) cells[{px + n % sx, py + n / sx, -1 - (pz + z)}] = v & 0xffffff;
      }
  }
  CHECK(at == b.size());
  const auto flat = flatten(*scene, true);
  REQUIRE(flat);
  CHECK(flat->voxel_count() == cells.size());
  size_t wrong = 0;
  for (const auto& [c, colour] : cells) {
    const Material& m = scene->palette.materials[flat->get({c[0], c[1], c[2]})];
    wrong += (uint32_t(m.r) | uint32_t(m.g) << 8 | uint32_t(m.b) << 16) != colour || m.a != 255 ||
             m.roughness != Material{}.roughness;
  }
  CHECK(wrong == 0);
}

TEST_CASE("qb: both colour formats give the colours that they say; alpha is transparency without masks only") {
  const std::vector<uint32_t> words{0xff302010, 0x80605040};
  const auto rgba = parse_qb(QbBuilder(0).matrix("m", {2, 1, 1}, {0, 0, 0}, words).bytes());
  REQUIRE(rgba);
  CHECK(colour_at(*rgba, 0, {0, 0, 0}) == std::array<int, 4>{0x10, 0x20, 0x30, 255});
  CHECK(colour_at(*rgba, 0, {1, 0, 0}) == std::array<int, 4>{0x40, 0x50, 0x60, 0x80});
  const auto bgra = parse_qb(QbBuilder(1, 1, 0, 1).matrix("m", {2, 1, 1}, {0, 0, 0}, words).bytes());
  REQUIRE(bgra);
  CHECK(colour_at(*bgra, 0, {0, 0, 0}) == std::array<int, 4>{0x30, 0x20, 0x10, 255});
  CHECK(colour_at(*bgra, 0, {1, 0, 0}) == std::array<int, 4>{0x60, 0x50, 0x40, 255});
}

TEST_CASE("qb: x runs fastest, then y, then z; a left-handed file's z is mirrored, position and all") {
  // 2 x 3 x 2.
  const std::vector<uint32_t> words{0xff000001, 0xff000002, 0, 0, 0, 0, 0, 0, 0xff000003, 0, 0, 0xff000004};
  const auto right = parse_qb(QbBuilder(0, 1).matrix("m", {2, 3, 2}, {10, 20, 30}, words).bytes());
  REQUIRE(right);
  CHECK(colour_at(*right, 0, {1, 0, 0})[0] == 2);
  CHECK(colour_at(*right, 0, {0, 1, 1})[0] == 3);
  CHECK(colour_at(*right, 0, {1, 2, 1})[0] == 4);
  CHECK(flatten(*right, true)->bounds() == Box3{{10, 20, 30}, {11, 22, 31}});
  const auto left = parse_qb(QbBuilder(0, 0).matrix("m", {2, 3, 2}, {10, 20, 30}, words).bytes());
  REQUIRE(left);
  CHECK(colour_at(*left, 0, {1, 0, 1})[0] == 2);
  CHECK(colour_at(*left, 0, {0, 1, 0})[0] == 3);
  CHECK(flatten(*left, true)->bounds() == Box3{{10, 20, -32}, {11, 22, -31}});
}

TEST_CASE("qb: runs give what the same voxels give one by one, and a later matrix wins an overlap") {
  const auto plain =
      parse_qb(QbBuilder(0, 1, 0, 0, 2)
                   .matrix("a", {3, 2, 2}, {0, 0, 0},
                           {0xff000005, 0xff000005, 0xff000005, 0xff000005, 0, 0xff000007, 0, 0, 0, 0, 0, 0})
                   .matrix("b", {1, 1, 1}, {0, 0, 0}, {0xff000009})
                   .bytes());
  const auto runs = parse_qb(QbBuilder(0, 1, 1, 0, 2)
                                 .matrix("a", {3, 2, 2}, {0, 0, 0}, {2, 4, 0xff000005, 0, 0xff000007, 6, 2, 6, 0, 6})
                                 .matrix("b", {1, 1, 1}, {0, 0, 0}, {0xff000009, 6})
                                 .bytes());
  REQUIRE(plain);
  REQUIRE(runs);
  for (size_t v = 0; v < 2; ++v) CHECK(plain->volumes[v].bricks == runs->volumes[v].bricks);
  CHECK(plain->palette == runs->palette);
  CHECK(test::voxels_of(*runs) == 6);
  const auto flat = flatten(*runs, true);
  REQUIRE(flat);
  CHECK(runs->palette.materials[flat->get({0, 0, 0})].r == 9);
}

TEST_CASE("qb: more than 255 colours become the nearest 255, with a warning that says how near") {
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < 4096; ++i)
    words.push_back(0xff000000 | (i & 15) * 17 | (i >> 4 & 15) * 17 << 8 | (i >> 8) * 17 << 16);
  std::vector<std::string> warnings;
  const auto scene = parse_qb(QbBuilder().matrix("m", {64, 64, 1}, {0, 0, 0}, words).bytes(), &warnings);
  REQUIRE(scene);
  CHECK(test::voxels_of(*scene) == 4096);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::StartsWith("4096 colours became 255 materials"));
  for (uint32_t i = 0; i < 4096; i += 97) {
    const auto c = colour_at(*scene, 0, {int32_t(i % 64), int32_t(i / 64), 0});
    CHECK(std::abs(c[0] - int(i & 15) * 17) + std::abs(c[1] - int(i >> 4 & 15) * 17) +
              std::abs(c[2] - int(i >> 8) * 17) <
          120);
  }
}

TEST_CASE("qb: a few bytes that claim a huge matrix are refused before memory is taken") {
  // Runs of 16384 x 16384 voxels in 12 bytes a slice: 64 slices would fill 33 million bricks.
  QbBuilder huge(0, 1, 1);
  std::vector<uint32_t> words;
  for (int z = 0; z < 64; ++z) words.insert(words.end(), {2, 16384u * 16384u, 0xff0000ff, 6});
  const auto scene = parse_qb(huge.matrix("m", {16384, 16384, 64}, {0, 0, 0}, words).bytes());
  REQUIRE_FALSE(scene);
  CHECK(scene.error().code == ErrorCode::unsupported);
  CHECK_THAT(scene.error().message, Catch::Contains("bricks"));
}

TEST_CASE("qb: every error names the byte and what was expected there") {
  says({}, "byte 0: ", "version number");
  says({2, 0, 0, 0}, "byte 4: ", "colour format");
  says(QbBuilder(3).bytes(), "byte 4: ", "colour format");
  says(QbBuilder(0, 1, 0, 0, 0).bytes(), "byte 20: ", "at least one matrix");
  says(QbBuilder(0, 1, 0, 0, 1000).bytes(), "byte 20: ", "1000 matrices");
  says(QbBuilder().matrix("m", {1, 1, 16385}, {0, 0, 0}, {1}).bytes(), "byte 26: ", "16384");
  says(QbBuilder().matrix("m", {1, 1, 1}, {0, 1 << 25, 0}, {1}).bytes(), "byte 38: ", "position");
  says(QbBuilder().matrix("m", {100, 100, 100}, {0, 0, 0}, {1}).bytes(), "byte 26: ", "4000000 bytes");
  says(QbBuilder(0, 1, 1).matrix("m", {2, 2, 1}, {0, 0, 0}, {2, 5, 0xff000001, 6}).bytes(),
       "byte 50: ", "longer than the 4");
  says(QbBuilder(0, 1, 1).matrix("m", {2, 2, 1}, {0, 0, 0}, {2, 3, 0xff000001, 6}).bytes(),
       "byte 62: ", "after 3 voxels");
  std::vector<std::string> warnings;
  CHECK(parse_qb(QbBuilder().matrix("m", {1, 1, 1}, {0, 0, 0}, {0xff000001, 7}).bytes(), &warnings));
  CHECK(warnings.size() == 1);
}

// 6 of 34 real files have version 3.1.2.0. Up to version 0.1.1 they were rejected, like everything except 1.1.
TEST_CASE("qb: a file of any version is read, and a version that no program is known to write is said") {
  const Bytes good = QbBuilder().matrix("m", {1, 1, 2}, {0, 0, 0}, {0xff0000ff, 0xff00ff00}).bytes();
  for (const auto& [version, known] : {std::pair<std::array<uint8_t, 4>, bool>{{1, 1, 0, 0}, true},
                                       {{3, 1, 2, 0}, true},
                                       {{1, 1, 1, 0}, true},
                                       {{1, 1, 0, 1}, true},
                                       {{1, 0, 0, 0}, false},
                                       {{1, 2, 0, 0}, false},
                                       {{1, 3, 0, 0}, false},
                                       {{2, 0, 0, 0}, false},
                                       {{0, 0, 1, 1}, false},
                                       {{0, 1, 1, 0}, false},
                                       {{0, 0, 0, 0}, false},
                                       {{255, 255, 255, 255}, false}}) {
    Bytes b = good;
    std::copy(version.begin(), version.end(), b.begin());
    std::vector<std::string> warnings;
    const auto scene = parse_qb(b, &warnings);
    REQUIRE(scene);
    CHECK(test::voxels_of(*scene) == 2);
    REQUIRE(warnings.size() == (known ? 0 : 1));
    if (!known)
      CHECK_THAT(warnings[0], Catch::StartsWith("byte 0: version " + std::to_string(version[0]) + "." +
                                                std::to_string(version[1]) + ".") &&
                                  Catch::Contains("read as 1.1.0.0"));
    CHECK(io::looks_like_qb(b) == known);  // others are recognised by their name
  }
}

TEST_CASE("qb: cut after any byte, a file is an error that says so") {
  for (const auto& [name, bytes] : test::qb_seeds()) test::check_cuts(bytes, parse);
  if (const fs::path data = test::data_dir(); !data.empty())
    test::check_cuts(test::file_bytes(data / "other/chr_knight.qb"), parse, "byte ", 1000);
}

TEST_CASE("qb: thousands of seeded mutations end in a whole scene or a clean error") {
  std::vector<Bytes> seeds = test::contents(test::qb_seeds());
  if (const fs::path data = test::data_dir(); !data.empty())
    seeds.push_back(test::file_bytes(data / "other/chr_knight.qb"));
  test::check_mutations(seeds, parse, 3000);
}

}  // namespace qb_test
