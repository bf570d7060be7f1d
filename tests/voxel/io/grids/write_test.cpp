// SPDX-License-Identifier: Apache-2.0
// write_test.cpp - grids of voxels as files, read back by the test's own decoder after the formats' specifications.
#include "voxel/io/grids/write.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "voxel/io/formats.hpp"

namespace write_test {

using namespace quarry;
using test::file_text;
namespace fs = std::filesystem;

namespace {

Scene scattered(Int3 low, Int3 span, int count, uint32_t seed) {
  std::mt19937 random(seed);
  Scene s;
  s.volumes.resize(1);
  for (int i = 0; i < count; ++i)
    s.volumes[0].bricks.set(low + Int3{int32_t(random() % uint32_t(span.x)), int32_t(random() % uint32_t(span.y)),
                                       int32_t(random() % uint32_t(span.z))},
                            uint8_t(1 + random() % 255));
  s.instances.resize(2);
  s.instances[1].offset = {1000, 0, 0};
  s.instances[1].hidden = true;
  return s;
}

struct Binvox {
  int64_t x = 0, y = 0, z = 0, scale = 0;
  int64_t dim[3] = {0, 0, 0};
  std::vector<uint8_t> cells;  // in the file's order
};
Binvox decode(const std::string& bytes) {
  Binvox out;
  std::istringstream in(bytes);
  std::string word;
  std::getline(in, word);
  REQUIRE(word == "#binvox 1");
  while (in >> word && word != "data") {
    if (word == "dim") in >> out.dim[0] >> out.dim[1] >> out.dim[2];
    else if (word == "translate") in >> out.x >> out.y >> out.z;
    else if (word == "scale") in >> out.scale;
    else FAIL("unknown word " + word);
  }
  REQUIRE(in.get() == '\n');
  for (size_t at = size_t(in.tellg()); at + 1 < bytes.size(); at += 2) {
    REQUIRE(uint8_t(bytes[at]) <= 1);
    REQUIRE(uint8_t(bytes[at + 1]) > 0);
    out.cells.insert(out.cells.end(), uint8_t(bytes[at + 1]), uint8_t(bytes[at]));
  }
  return out;
}

}  // namespace

TEST_CASE("binvox: every visible voxel is at its place in the cube, and nothing else") {
  const fs::path dir = test::scratch_dir("binvox-write");
  int n = 0;
  for (const auto& [low, span, count] :
       {std::tuple{Int3{0, 0, 0}, Int3{1, 1, 1}, 1}, std::tuple{Int3{-13, 7, 100}, Int3{30, 9, 17}, 900},
        std::tuple{Int3{-8, -8, -8}, Int3{16, 16, 16}, 40000}, std::tuple{Int3{0, 0, 0}, Int3{3, 70, 2}, 5}}) {
    const Scene s = scattered(low, span, count, uint32_t(++n));
    REQUIRE(io::write_scene(s, dir / "a.binvox"));
    const Binvox b = decode(file_text(dir / "a.binvox"));
    const Box3 box = s.volumes[0].bricks.bounds();
    const Int3 size = box.max - box.min + Int3{1, 1, 1};
    const int64_t edge = std::max({size.x, size.y, size.z});
    CHECK((b.dim[0] == edge && b.dim[1] == edge && b.dim[2] == edge && b.scale == edge));
    CHECK((b.x == box.min.x && b.y == box.min.y && b.z == box.min.z));
    REQUIRE(int64_t(b.cells.size()) == edge * edge * edge);
    uint64_t full = 0, wrong = 0;
    for (int64_t x = 0; x < edge; ++x)
      for (int64_t z = 0; z < edge; ++z)
        for (int64_t y = 0; y < edge; ++y) {
          const bool want = s.volumes[0].bricks.get(box.min + Int3{int32_t(x), int32_t(y), int32_t(z)}) != 0;
          const bool got = b.cells[size_t((x * edge + z) * edge + y)] != 0;
          wrong += want != got;
          full += got;
        }
    CHECK(wrong == 0);
    CHECK(full == s.volumes[0].bricks.voxel_count());
    // The program's own reader must agree.
    const auto back = io::read_scene(dir / "a.binvox");
    REQUIRE(back);
    CHECK(flatten(*back, true)->voxel_count() == full);
  }
}

TEST_CASE("raw: bytes in the order that the header says, with the header beside or in front") {
  const fs::path dir = test::scratch_dir("raw-write");
  const Scene s = scattered({-13, 7, -1}, {30, 9, 17}, 900, 4);
  REQUIRE(io::write_scene(s, dir / "a.raw"));
  REQUIRE(io::write_scene(s, dir / "a.raw"));  // our own header is replaced
  REQUIRE(io::write_scene(s, dir / "b.NRRD"));
  CHECK_FALSE(fs::exists(dir / "b.nhdr"));
  const std::string header = file_text(dir / "a.nhdr"), raw = file_text(dir / "a.raw"),
                    both = file_text(dir / "b.NRRD");
  const Box3 box = s.volumes[0].bricks.bounds();
  const Int3 size = box.max - box.min + Int3{1, 1, 1};
  REQUIRE(raw.size() == size_t(size.x) * size_t(size.y) * size_t(size.z));
  CHECK(both.substr(both.find("\n\n") + 2) == raw);
  CHECK(header.substr(0, 9) == "NRRD0004\n");
  CHECK_THAT(header, Catch::Contains("\ndata file: a.raw\n"));
  CHECK_THAT(both.substr(0, both.find("\n\n")), !Catch::Contains("data file"));
  std::istringstream sizes(header.substr(header.find("\nsizes: ") + 8));
  Int3 stated;
  sizes >> stated.x >> stated.y >> stated.z;
  CHECK(stated == size);
  CHECK_THAT(header, Catch::Contains("\nspace origin: (-12.5,7.5,-0.5)\n"));
  CHECK(box.min == Int3{-13, 7, -1});
  uint64_t wrong = 0;
  for (int32_t z = 0; z < size.z; ++z)
    for (int32_t y = 0; y < size.y; ++y)
      for (int32_t x = 0; x < size.x; ++x)
        wrong += s.volumes[0].bricks.get(box.min + Int3{x, y, z}) !=
                 uint8_t(raw[(size_t(z) * size_t(size.y) + size_t(y)) * size_t(size.x) + size_t(x)]);
  CHECK(wrong == 0);
  const std::string hex = header.substr(header.find("quarry_palette:=") + 16, 2048);
  const Material& m = s.palette.materials[245];
  char want[9];
  std::snprintf(want, sizeof want, "%02x%02x%02x%02x", m.r, m.g, m.b, m.a);
  CHECK(hex.substr(245 * 8, 8) == want);
}

TEST_CASE("grids: refused are empty scenes, more than 64 GiB, and a header of someone else; nothing is left behind") {
  const fs::path dir = test::scratch_dir("grid-refused");
  Scene empty, wide;
  wide.volumes.resize(1);
  wide.volumes[0].bricks.set({-8000, -4000, -8000}, 1);
  wide.volumes[0].bricks.set({8000, 4000, 8000}, 1);
  wide.instances.resize(1);
  for (const char* name : {"a.binvox", "a.raw", "a.nrrd"}) {
    const auto nothing = io::write_scene(empty, dir / name);
    REQUIRE_FALSE(nothing);
    CHECK(nothing.error().code == ErrorCode::invalid_argument);
    CHECK_THAT(nothing.error().message, Catch::Contains("no visible voxel"));
  }
  const auto large = io::write_scene(wide, dir / "a.raw");
  REQUIRE_FALSE(large);
  CHECK(large.error().code == ErrorCode::unsupported);
  CHECK_THAT(large.error().message, Catch::Contains("16001 x 8001 x 16001"));
  CHECK(fs::is_empty(dir));
  std::ofstream(dir / "a.nhdr") << "mine";
  const auto taken = io::write_scene(scattered({0, 0, 0}, {2, 2, 2}, 5, 1), dir / "a.raw");
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == ErrorCode::conflict);
  CHECK(file_text(dir / "a.nhdr") == "mine");
  CHECK_FALSE(fs::exists(dir / "a.raw"));
}

}  // namespace write_test
