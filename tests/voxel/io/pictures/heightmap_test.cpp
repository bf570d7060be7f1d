// SPDX-License-Identifier: Apache-2.0
// heightmap_test.cpp - height maps: real pictures against a decoding by libpng's other interface, the sources of height
// and colour, damaged files.
#include "voxel/io/pictures/heightmap.hpp"

#include <png.h>

#include <cmath>

#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/pictures/heightmap_seeds.hpp"
#include "voxel/io/formats.hpp"

namespace heightmap_test {

using namespace quarry;
using io::parse_heightmap;
using test::Bytes;
using test::png_file;
namespace fs = std::filesystem;

namespace {
Result<Scene> parse(const Bytes& bytes, std::vector<std::string>* warnings) {
  return parse_heightmap(bytes, {}, {64, 1 << 24}, warnings);
}

// The highest voxel of a column, or -1 if there is none. `solid` becomes false if there is a hole below it.
int32_t top(const Scene& scene, int32_t x, int32_t z, bool* solid = nullptr) {
  int32_t highest = -1, count = 0;
  for (int32_t y = 0; y < scene.volumes[0].size.y + 8; ++y)
    if (scene.volumes[0].bricks.get({x, y, z})) highest = y, ++count;
  if (solid && count != highest + 1) *solid = false;
  return highest;
}
std::array<int, 3> colour(const Scene& scene, Int3 cell) {
  const Material& m = scene.palette.materials[scene.volumes[0].bricks.get(cell)];
  return {m.r, m.g, m.b};
}
}  // namespace

TEST_CASE("heightmap: real pictures give each pixel's column, as libpng's other interface decodes them") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no height maps");
  for (const auto& [name, from] : {std::pair<std::string, std::string>{"test-heightmap.png", "luminance"},
                                   {"test-heightmap-dm.png", "grey"},
                                   {"test-colored-heightmap.png", "alpha"}}) {
    INFO(name);
    const fs::path file = data / "other" / name;
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    REQUIRE(png_image_begin_read_from_file(&image, file.c_str()));
    image.format = PNG_FORMAT_RGBA;
    Bytes pixels(PNG_IMAGE_SIZE(image));
    REQUIRE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr));
    const auto scene = io::read_scene(file);
    REQUIRE(scene);
    CHECK(scene->metadata.at("heightmap.from") == from);
    int wrong = 0;
    bool solid = true;
    for (uint32_t z = 0; z < image.height; ++z)
      for (uint32_t x = 0; x < image.width; ++x) {
        const uint8_t* p = &pixels[(size_t(z) * image.width + x) * 4];
        const int bright = int(std::lround(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]));
        const int want = p[3] == 0 ? -1 : from == "alpha" ? p[3] : from == "grey" ? p[0] : bright;
        const int got = top(*scene, int32_t(x), int32_t(z), &solid);
        wrong += got != want;
        if (got >= 0 && scene->metadata.at("palette_rms_error") == "0.000")
          wrong += colour(*scene, {int32_t(x), got, int32_t(z)}) != std::array<int, 3>{p[0], p[1], p[2]};
      }
    CHECK(wrong == 0);
    CHECK(solid);
  }
}

TEST_CASE("heightmap: right is x, down is z, grey is height, clear pixels have no column") {
  const auto scene = parse_heightmap(png_file(3, 2, 8, 4, {0, 255, 1, 255, 2, 0, 100, 9, 200, 255, 255, 255}), {}, {});
  REQUIRE(scene);
  CHECK(top(*scene, 0, 0) == 0);
  CHECK(top(*scene, 1, 0) == 1);
  CHECK(top(*scene, 2, 0) == -1);
  CHECK(top(*scene, 0, 1) == 100);
  CHECK(top(*scene, 2, 1) == 255);
  CHECK(test::voxels_of(*scene) == 1 + 2 + 101 + 201 + 256);
  CHECK(scene->volumes[0].size == Int3{3, 256, 2});
  CHECK(colour(*scene, {1, 150, 1}) == std::array<int, 3>{200, 200, 200});
}

TEST_CASE("heightmap: sixteen bits are used whole, and the height asked for is what the highest value gives") {
  const Bytes deep = png_file(3, 1, 16, 0, {0, 0, 0x80, 0x00, 0xff, 0xff});
  const auto scene = parse_heightmap(deep, {}, {8192, 1 << 24});
  REQUIRE(scene);
  CHECK(top(*scene, 0, 0) == 0);
  CHECK(top(*scene, 1, 0) == 4096);
  CHECK(top(*scene, 2, 0) == 8191);
  const auto flat = flatten(*scene, true);
  REQUIRE(flat);
  CHECK(flat->bounds() == Box3{{0, -4096, 0}, {2, 4095, 0}});
  const auto wrong = parse_heightmap(deep, {}, {8193, 1 << 24});
  REQUIRE_FALSE(wrong);
  CHECK_THAT(wrong.error().message, Catch::Contains("8192"));
}

TEST_CASE("heightmap: a coloured picture without alpha is as high as it is bright") {
  const auto scene = parse_heightmap(png_file(2, 1, 8, 2, {255, 0, 0, 0, 255, 0}), {}, {});
  REQUIRE(scene);
  CHECK(scene->metadata.at("heightmap.from") == "luminance");
  CHECK(top(*scene, 0, 0) == 76);
  CHECK(top(*scene, 1, 0) == 150);
  CHECK(colour(*scene, {1, 3, 0}) == std::array<int, 3>{0, 255, 0});
}

TEST_CASE("heightmap: a colour map is laid over the whole map, from a file of its own") {
  const Bytes map = png_file(4, 2, 8, 0, {9, 9, 9, 9, 9, 9, 9, 9});
  const Bytes colours = png_file(2, 1, 8, 2, {255, 0, 0, 0, 0, 255});
  const auto scene = parse_heightmap(map, colours, {});
  REQUIRE(scene);
  for (int32_t x = 0; x < 4; ++x)
    for (int32_t z = 0; z < 2; ++z)
      CHECK(colour(*scene, {x, 9, z}) == (x < 2 ? std::array<int, 3>{255, 0, 0} : std::array<int, 3>{0, 0, 255}));

  const fs::path dir = test::scratch_dir("heightmap");
  test::write_bytes(dir / "map.png", map);
  test::write_bytes(dir / "colours.png", colours);
  io::ReadOptions options;
  options.color_map = dir / "colours.png";
  options.height = 128;
  const auto read = io::read_scene(dir / "map.png", options);
  REQUIRE(read);
  CHECK(read->volumes[0].name == "map");
  CHECK(top(*read, 0, 0) == 4);
  CHECK(colour(*read, {3, 0, 1}) == std::array<int, 3>{0, 0, 255});
  options.color_map = dir / "none.png";
  const auto missing = io::read_scene(dir / "map.png", options);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK_THAT(missing.error().message, Catch::Contains("none.png"));
}

TEST_CASE("heightmap: a picture that claims to be huge is refused before memory is taken") {
  Bytes huge = png_file(16384, 16384, 8, 6, {});
  const auto scene = parse_heightmap(huge, {}, {});
  REQUIRE_FALSE(scene);
  CHECK(scene.error().code == ErrorCode::unsupported);
  CHECK_THAT(scene.error().message, Catch::Contains("MiB"));
  const auto wide = parse_heightmap(png_file(16385, 1, 8, 0, Bytes(16385)), {}, {});
  REQUIRE_FALSE(wide);
  CHECK_THAT(wide.error().message, Catch::StartsWith("byte 16: ") && Catch::Contains("16385 x 1"));
}

TEST_CASE("heightmap: cut after any byte, a file is an error that says so") {
  for (const auto& [name, bytes] : test::heightmap_seeds()) test::check_cuts(bytes, parse);
  if (const fs::path data = test::data_dir(); !data.empty())
    test::check_cuts(test::file_bytes(data / "other/test-heightmap.png"), parse);
}

TEST_CASE("heightmap: thousands of seeded mutations end in a whole scene or a clean error") {
  std::vector<Bytes> seeds = test::contents(test::heightmap_seeds());
  if (const fs::path data = test::data_dir(); !data.empty())
    seeds.push_back(test::file_bytes(data / "other/test-colored-heightmap.png"));
  test::check_mutations(seeds, parse, 3000, 10);  // checksums catch most
}

}  // namespace heightmap_test
