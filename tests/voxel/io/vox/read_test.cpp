// SPDX-License-Identifier: Apache-2.0
// read_test.cpp - the .vox reader: every real file against known counts and checksums by the test's own recount, the
// format's rules one by one on files made here, and all that a damaged or hostile file can contain.
#include "voxel/io/vox/read.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <unordered_map>

#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"
#include "tests/voxel/io/vox/known_files.hpp"

namespace read_test {

using namespace quarry;
using quarry::io::parse_vox;
using test::file_bytes;
using test::VoxBuilder;
using Pairs = VoxBuilder::Pairs;
namespace fs = std::filesystem;

namespace {

// The rules again, without the library's transforms: cells in the file's z-up axes, instance by instance.
struct Recount {
  uint64_t placed = 0, flat_visible = 0;
  std::unordered_map<uint64_t, std::pair<std::array<int32_t, 3>, uint8_t>> cells;
  std::set<uint8_t> colours;
  std::array<int32_t, 3> min{INT32_MAX, INT32_MAX, INT32_MAX}, max{INT32_MIN, INT32_MIN, INT32_MIN};
  uint64_t pos_sum = 0, col_sum = 0;
};

uint64_t mix(uint64_t h) {
  h ^= h >> 30, h *= 0xbf58476d1ce4e5b9ull, h ^= h >> 27, h *= 0x94d049bb133111ebull;
  return h ^ (h >> 31);
}

Recount recount(const Scene& scene) {
  Recount out;
  std::unordered_map<uint64_t, bool> visible_cells;
  const bool first_wins = scene.overlap == OverlapRule::first_instance_wins;
  for (const Instance& i : scene.instances) {
    const bool visible = !i.hidden && (i.layer < 0 || !scene.layers[size_t(i.layer)].hidden);
    for (const auto& [at, brick] : scene.volumes[i.volume].bricks.bricks())
      for (int32_t n = 0; n < 512; ++n) {
        const int32_t dx = n & 7, dy = n >> 3 & 7, dz = n >> 6;
        // Bit order of coords.hpp, written out again: octants of 4^3, two bits of each axis within.
        const uint32_t index =
            uint32_t(((dx >> 2) | (dy >> 2) << 1 | (dz >> 2) << 2) * 64 + ((dx & 3) | (dy & 3) << 2 | (dz & 3) << 4));
        const uint8_t colour = brick.materials[index];
        if (!colour) continue;
        const double local[3] = {at.x * 8 + dx + 0.5, at.y * 8 + dy + 0.5, at.z * 8 + dz + 0.5};
        double world[3];
        const int32_t offset[3] = {i.offset.x, i.offset.y, i.offset.z};
        for (size_t r = 0; r < 3; ++r) world[r] = i.rotation.sign[r] * local[i.rotation.axis[r]] + offset[r];
        const auto floor32 = [](double v) { return int32_t(std::floor(v)); };
        const std::array<int32_t, 3> c{floor32(world[0]), floor32(-world[2]), floor32(world[1])};
        ++out.placed;
        out.colours.insert(colour);
        const uint64_t key = mix(mix(mix(uint32_t(c[0]) + 0x9e3779b97f4a7c15ull) + uint32_t(c[1])) + uint32_t(c[2]));
        if (visible) visible_cells[key] = true;
        const auto [it, fresh] = out.cells.try_emplace(key, c, colour);
        if (!fresh && !first_wins) it->second.second = colour;
      }
  }
  out.flat_visible = visible_cells.size();
  for (const auto& [key, cell] : out.cells) {
    const Material& m = scene.palette.materials[cell.second];
    out.pos_sum += key;
    out.col_sum += mix(key + (uint32_t(m.r) | uint32_t(m.g) << 8 | uint32_t(m.b) << 16 | uint32_t(m.a) << 24));
    for (size_t a = 0; a < 3; ++a) {
      out.min[a] = std::min(out.min[a], cell.first[a]);
      out.max[a] = std::max(out.max[a], cell.first[a]);
    }
  }
  return out;
}

// One model of one voxel, for scene graphs.
VoxBuilder with_dot(uint32_t version = 200) { return VoxBuilder(version).model(1, 1, 1, {{0, 0, 0, 1}}); }

Scene parsed(const VoxBuilder& b, std::vector<std::string>* warnings = nullptr) {
  auto scene = parse_vox(b.bytes(), warnings);
  INFO((scene ? std::string() : scene.error().message));
  REQUIRE(scene);
  return std::move(*scene);
}
std::string error_of(const std::vector<uint8_t>& bytes) {
  const auto scene = parse_vox(bytes);
  REQUIRE_FALSE(scene);
  return scene.error().message;
}
std::array<int32_t, 3> file_cell(const Scene& scene) {
  const Recount r = recount(scene);
  REQUIRE(r.cells.size() == 1);
  return r.cells.begin()->second.first;
}

}  // namespace

TEST_CASE("vox: every real file gives the counts, bounds and checksums on which two other readers agreed") {
  for (const auto& [file, want] : test::known_vox_files()) {
    INFO(file);
    std::vector<std::string> warnings;
    const auto scene = parse_vox(file_bytes(file), &warnings);
    REQUIRE(scene);
    // These files lose only frames of animations.
    CHECK(warnings.size() == size_t(want["anim_transform"] != 0 || want["anim_model"] != 0));
    if (!warnings.empty())
      CHECK(warnings[0].find("it is animated: " + want["anim_transform"].dump() + " transforms and " +
                             want["anim_model"].dump() + " shapes") == 0);
    io::VoxFacts got;
    REQUIRE(io::vox_facts(*scene, &got));
    test::check_facts(got, want);
    CHECK(got.anim_transform == want["anim_transform"]);
    CHECK(got.anim_model == want["anim_model"]);
    const Recount r = recount(*scene);
    CHECK(r.placed == want["placed"]);
    CHECK(r.cells.size() == want["flat_all"]);
    CHECK(r.flat_visible == want["flat_visible"]);
    CHECK(r.placed - r.cells.size() == want["overlap"]);
    CHECK(r.colours.size() == want["colors_used"]);
    CHECK(nlohmann::json(r.min) == want["min"]);
    CHECK(nlohmann::json(r.max) == want["max"]);
    CHECK(test::hex64(r.pos_sum) == want["pos_sum"]);
    CHECK(test::hex64(r.col_sum) == want["col_sum"]);
    // The library's own count, which the program prints.
    const auto own = scene_facts(*scene, Axes::z_up);
    REQUIRE(own);
    test::check_facts(*own, want);
  }
}

TEST_CASE("vox: a volume fills [0, size) of its own y-up axes, whatever its pivot") {
  const Scene s = parsed(VoxBuilder().model(3, 5, 7, {{0, 0, 0, 1}, {2, 4, 6, 2}}));
  const Volume& v = s.volumes[0];
  CHECK(v.size == Int3{3, 7, 5});
  CHECK(v.bricks.get({0, 0, 4}) == 1);
  CHECK(v.bricks.get({2, 6, 0}) == 2);
  const Recount r = recount(s);
  CHECK(r.min == std::array<int32_t, 3>{-1, -2, -3});
  CHECK(r.max == std::array<int32_t, 3>{1, 2, 3});
}

TEST_CASE("vox: all 48 rotations and the 16 bytes that are none") {
  std::set<std::array<int32_t, 3>> distinct;
  int valid = 0;
  for (int bits = 0; bits < 128; ++bits) {
    const int a = bits & 3, b = bits >> 2 & 3;
    // A model of 4 x 6 x 8 with one voxel that breaks every symmetry, moved by (10, 20, 30).
    VoxBuilder f(200);
    f.model(4, 6, 8, {{3, 0, 7, 9}})
        .transform(0, 1, {{{"_r", std::to_string(bits)}, {"_t", "10 20 30"}}})
        .shape(1, {{0, {}}});
    std::vector<std::string> warnings;
    const Scene s = parsed(f, &warnings);
    const double v[3] = {3.5 - 2, 0.5 - 3, 7.5 - 4};
    std::array<int32_t, 3> want{};
    const bool ok = a != 3 && b != 3 && a != b;
    const int axis[3] = {ok ? a : 0, ok ? b : 1, ok ? 3 - a - b : 2};
    for (int r = 0; r < 3; ++r) {
      const double sign = ok && (bits >> (4 + r) & 1) ? -1 : 1;
      want[size_t(r)] = int32_t(std::floor(sign * v[axis[r]] + 10 * (r + 1)));
    }
    CHECK(file_cell(s) == want);
    CHECK(warnings.size() == (ok ? 0u : 1u));
    if (ok) ++valid, distinct.insert(want);
  }
  CHECK(valid == 48);
  CHECK(distinct.size() == 48);
  for (const char* bad : {"128", "255", "-1", "", "4x", "99999999999", "one"}) {
    VoxBuilder f = with_dot().transform(0, 1, {{{"_r", bad}}}).shape(1, {{0, {}}});
    CHECK(parsed(f).instances[0].rotation.identity());
  }
}

TEST_CASE("vox: nested transforms compose, outermost last") {
  // Rotation 17 = rows (y', ...): 0b0010001 is axis (1, 0, 2) with the first row negative: a quarter turn about z.
  VoxBuilder f = with_dot()
                     .transform(0, 1, {{{"_t", "100 0 0"}, {"_r", "17"}}}, {{"_name", "outer"}})
                     .group(1, {2})
                     .transform(2, 3, {{{"_t", "7 0 0"}}}, {{"_name", "dot"}})
                     .shape(3, {{0, {}}});
  const Scene s = parsed(f);
  // The voxel's centre (7.5, 0.5, 0.5) turned: (-0.5, 7.5, 0.5) + (100, 0, 0).
  CHECK(file_cell(s) == std::array<int32_t, 3>{99, 7, 0});
  CHECK(s.instances[0].name == "dot");
  CHECK(s.instances[0].group_path == "outer");
}

TEST_CASE("vox: hidden groups, hidden layers of groups and hidden instances hide what is below, and nothing else") {
  VoxBuilder f = with_dot();
  f.transform(0, 1, {{}}).group(1, {2, 5, 8, 11, 13});
  f.transform(2, 3, {{}}, {{"_hidden", "1"}, {"_name", "a/b"}}).group(3, {4}).transform(4, 20, {{}});
  f.transform(5, 6, {{}}, {}, 7).group(6, {7}).transform(7, 20, {{{"_t", "1 0 0"}}}, {}, 0);
  f.transform(8, 9, {{}}).group(9, {10}, {{"_hidden", "1"}}).transform(10, 20, {{{"_t", "2 0 0"}}});
  f.transform(11, 20, {{{"_t", "3 0 0"}}}, {{"_hidden", "1"}});
  f.transform(13, 20, {{{"_t", "4 0 0"}}}, {{"_hidden", "0"}}, 0).shape(20, {{0, {}}});
  f.dict_chunk("LAYR", 0, {{"_name", "shown"}}).dict_chunk("LAYR", 7, {{"_hidden", "1"}});
  const Scene s = parsed(f);
  REQUIRE(s.instances.size() == 5);
  std::vector<bool> hidden;
  for (const Instance& i : s.instances) hidden.push_back(i.hidden);
  CHECK(hidden == std::vector<bool>{true, true, true, true, false});
  CHECK(s.layers.size() == 2);
  CHECK(s.layers[0].name == "shown");
  CHECK(s.layers[1].hidden);
  CHECK(s.instances[4].layer == 0);
  CHECK(s.instances[0].group_path == "a_b");
  CHECK(s.instances[1].group_path == "#6");
  CHECK(s.instances[4].group_path.empty());
}

TEST_CASE("vox: the lower instance wins an overlap from version 200 on, the higher one before") {
  for (const uint32_t version : {150u, 199u, 200u, 201u}) {
    VoxBuilder f(version);
    f.model(1, 1, 1, {{0, 0, 0, 10}}).model(1, 1, 1, {{0, 0, 0, 20}});
    f.transform(0, 1, {{}})
        .group(1, {2, 4})
        .transform(2, 3, {{}})
        .shape(3, {{0, {}}})
        .transform(4, 5, {{}})
        .shape(5, {{1, {}}});
    CHECK(recount(parsed(f)).cells.begin()->second.second == (version >= 200 ? 10 : 20));
  }
}

TEST_CASE("vox: of an animation, frame 0 or the first after it is read") {
  VoxBuilder f(200);
  f.model(1, 1, 1, {{0, 0, 0, 1}}).model(1, 1, 1, {{0, 0, 0, 2}});
  f.transform(0, 1, {{{"_f", "9"}, {"_t", "9 0 0"}}, {{"_f", "4"}, {"_t", "4 0 0"}}})
      .shape(1, {{1, {{"_f", "3"}}}, {0, {{"_f", "5"}}}});
  const Scene s = parsed(f);
  CHECK(file_cell(s) == std::array<int32_t, 3>{4, 0, 0});
  CHECK(s.instances[0].volume == 1);
  io::VoxFacts facts;
  REQUIRE(io::vox_facts(s, &facts));
  CHECK(facts.anim_transform == 1);
  CHECK(facts.anim_model == 1);
}

// Up to version 0.1.1 none was placed, and the file looked empty.
TEST_CASE(
    "vox: several models without a scene graph are the frames of an old animation, of which the first is placed") {
  VoxBuilder::Bytes two;
  VoxBuilder::put(two, int64_t(2));
  std::vector<std::string> warnings;
  for (const bool packed : {true, false}) {
    warnings.clear();
    VoxBuilder f;
    if (packed) f.chunk("PACK", two);
    const Scene s = parsed(f.model(5, 6, 7, {{0, 0, 0, 1}}).model(1, 1, 1, {{0, 0, 0, 2}}), &warnings),
                alone = parsed(VoxBuilder().model(5, 6, 7, {{0, 0, 0, 1}}));
    CHECK(s.volumes.size() == 2);
    REQUIRE(s.instances.size() == 1);
    CHECK(s.instances[0].volume == 0);
    CHECK(file_cell(s) == file_cell(alone));  // the place of a single model
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0],
               Catch::Contains("2 models and no scene graph") && Catch::Contains("the first one is placed"));
  }
}

TEST_CASE("vox: a shared node is an instance for each way to it, a cycle is an error") {
  VoxBuilder dag = with_dot();
  dag.transform(0, 1, {{}})
      .group(1, {2, 2, 3})
      .transform(2, 9, {{{"_t", "1 0 0"}}})
      .transform(3, 9, {{{"_t", "2 0 0"}}})
      .shape(9, {{0, {}}});
  CHECK(parsed(dag).instances.size() == 3);
  CHECK_THAT(error_of(with_dot().transform(0, 1, {{}}).group(1, {2}).transform(2, 1, {{}}).bytes()),
             Catch::Contains("cycle") && Catch::StartsWith("byte "));
  CHECK_THAT(error_of(with_dot().transform(0, 0, {{}}).bytes()), Catch::Contains("cycle"));
  CHECK_THAT(error_of(with_dot().transform(5, 6, {{}}).group(6, {5}).bytes()), Catch::Contains("cycle"));
}

TEST_CASE("vox: graphs that describe more than any scene end at a stated limit, soon and in little memory") {
  // Forty groups that each contain the next one twice: 2^40 paths, with and without a shape at the end.
  for (const bool with_shape : {false, true}) {
    VoxBuilder f = with_dot();
    for (int i = 0; i < 40; ++i) f.group(i, {i + 1, i + 1});
    if (with_shape) f.shape(40, {{0, {}}});
    else f.group(40, {});
    const auto started = std::chrono::steady_clock::now();
    const auto s = parse_vox(f.bytes());
    REQUIRE_FALSE(s);
    CHECK(s.error().code == ErrorCode::unsupported);
    CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(20));
  }
  // A name of a megabyte, for a shape and for a group, each reached 2^20 times.
  for (const bool on_group : {false, true}) {
    VoxBuilder f = with_dot();
    const Pairs long_name{{"_name", std::string(1 << 20, 'n')}};
    for (int i = 0; i < 20; ++i) f.group(i, {i + 1, i + 1});
    f.transform(20, 21, {{}}, long_name);
    if (on_group) f.group(21, {});
    else f.shape(21, {{0, {}}});
    const auto s = parse_vox(f.bytes());
    REQUIRE_FALSE(s);
    CHECK(s.error().code == ErrorCode::unsupported);
    CHECK_THAT(s.error().message, Catch::Contains("64 MiB"));
  }
  // 20,000 nested groups.
  VoxBuilder deep = with_dot();
  for (int i = 0; i < 20000; ++i) deep.group(i, {i + 1});
  CHECK(parsed(deep.shape(20000, {{0, {}}})).instances.size() == 1);
  // Each brick of each model has one voxel: 1000 models of 32768 bricks would be 18 GiB.
  VoxBuilder sparse;
  std::vector<VoxBuilder::Voxel> corners;
  for (int i = 0; i < 32768; ++i) corners.push_back({uint8_t(i << 3), uint8_t(i >> 5 << 3), uint8_t(i >> 10 << 3), 1});
  for (int m = 0; m < 60; ++m) sparse.model(256, 256, 256, corners);
  const auto s = parse_vox(sparse.bytes());
  REQUIRE_FALSE(s);
  CHECK(s.error().code == ErrorCode::unsupported);
}

TEST_CASE("vox: duplicates, colour 0 and voxels outside the model's size") {
  std::vector<std::string> warnings;
  Scene s = parsed(VoxBuilder().model(2, 2, 2, {{0, 0, 0, 1}, {0, 0, 0, 7}}), &warnings);
  CHECK(s.volumes[0].bricks.get({0, 0, 1}) == 7);
  CHECK(warnings.empty());
  s = parsed(VoxBuilder().model(2, 2, 2, {{0, 0, 0, 1}, {0, 0, 0, 0}}), &warnings);
  CHECK(s.volumes[0].bricks.empty());
  CHECK(warnings.size() == 1);
  s = parsed(VoxBuilder().model(2, 2, 2, {{0, 0, 0, 1}, {2, 0, 0, 1}, {255, 255, 255, 1}}), &warnings);
  CHECK(s.volumes[0].bricks.voxel_count() == 1);
  CHECK_THAT(warnings.back(), Catch::Contains("2 voxels"));
  s = parsed(VoxBuilder().model(0, 3, 3, {}), &warnings);
  CHECK(s.volumes[0].bricks.empty());
  s = parsed(VoxBuilder().model(2048, 2048, 2048, {{255, 255, 255, 1}, {0, 0, 0, 2}}));
  CHECK(s.volumes[0].bricks.get({255, 255, 2047 - 255}) == 1);
  CHECK(s.volumes[0].bricks.get({0, 0, 2047}) == 2);
  CHECK_THAT(error_of(VoxBuilder().model(2049, 1, 1, {}).bytes()), Catch::Contains("size"));
  CHECK_THAT(error_of(VoxBuilder().model(-1, 1, 1, {}).bytes()), Catch::Contains("size"));
  CHECK_THAT(error_of(VoxBuilder().model(65536, 65536, 1, {{0, 1, 0, 1}}).bytes()), Catch::Contains("size"));
}

TEST_CASE("vox: colours, the default palette and materials") {
  const Scene plain = parsed(with_dot());
  const auto rgb = [](const Material& m) { return std::array<int, 4>{m.r, m.g, m.b, m.a}; };
  // Places that the format's own table of the default palette states.
  CHECK(rgb(plain.palette.materials[1]) == std::array<int, 4>{255, 255, 255, 255});
  CHECK(rgb(plain.palette.materials[2]) == std::array<int, 4>{255, 255, 0xcc, 255});
  CHECK(rgb(plain.palette.materials[7]) == std::array<int, 4>{255, 0xcc, 255, 255});
  CHECK(rgb(plain.palette.materials[37]) == std::array<int, 4>{0xcc, 255, 255, 255});
  CHECK(rgb(plain.palette.materials[215]) == std::array<int, 4>{0, 0, 0x33, 255});
  CHECK(rgb(plain.palette.materials[216]) == std::array<int, 4>{0xee, 0, 0, 255});
  CHECK(rgb(plain.palette.materials[226]) == std::array<int, 4>{0, 0xee, 0, 255});
  CHECK(rgb(plain.palette.materials[236]) == std::array<int, 4>{0, 0, 0xee, 255});
  CHECK(rgb(plain.palette.materials[255]) == std::array<int, 4>{0x11, 0x11, 0x11, 255});

  VoxBuilder f = with_dot().palette({{1, 2, 3, 4}, {5, 6, 7, 8}});
  f.dict_chunk("MATL", 1, {{"_type", "_metal"}, {"_metal", "0.75"}, {"_rough", "0.25"}});
  f.dict_chunk("MATL", 2, {{"_type", "_glass"}, {"_alpha", "0.4"}, {"_ri", "1.3"}, {"_rough", "0.1"}});
  f.dict_chunk("MATL", 3, {{"_type", "_emit"}, {"_emit", "0.5"}, {"_flux", "3"}});
  f.dict_chunk("MATL", 4, {{"_type", "_diffuse"}, {"_rough", "0.1"}});
  f.dict_chunk("MATL", 5, {{"_type", "_metal"}, {"_weight", "0.5"}, {"_rough", "nan"}, {"_ior", "0.4"}});
  f.dict_chunk("MATL", 6, {{"_type", "_emit"}, {"_emit", "1e999"}, {"_flux", "-7"}});
  f.dict_chunk("MATL", 256, {{"_type", "_metal"}}).dict_chunk("MATL", -1, {{"_type", "_metal"}});
  const Scene s = parsed(f);
  const auto& m = s.palette.materials;
  CHECK(rgb(m[1]) == std::array<int, 4>{1, 2, 3, 4});
  CHECK(rgb(m[2]) == std::array<int, 4>{5, 6, 7, 8});
  CHECK(m[1].metalness == Approx(0.75f));
  CHECK(m[1].roughness == Approx(0.25f));
  CHECK(m[2].transparency == Approx(0.4f));
  CHECK(m[2].ior == Approx(1.3f));
  CHECK(m[3].emission == Approx(2.0f));
  CHECK(m[4].roughness == Material{}.roughness);
  CHECK(m[5].metalness == Approx(0.5f));
  CHECK(m[5].ior == Approx(1.4f));
  CHECK(std::isfinite(m[6].emission));
  CHECK(m[255].metalness == 0);

  VoxBuilder::Bytes matt;
  VoxBuilder::put(matt, int64_t(9)), VoxBuilder::put(matt, int64_t(1));
  for (const uint32_t bits : {0x3f000000u /* weight 0.5 */, 2u /* roughness follows */, 0x3e800000u /* 0.25 */})
    VoxBuilder::put(matt, int64_t(bits));
  const Scene old = parsed(with_dot().chunk("MATT", matt));
  CHECK(old.palette.materials[9].metalness == Approx(0.5f));
  CHECK(old.palette.materials[9].roughness == Approx(0.25f));
}

TEST_CASE("vox: what a Scene has no field for stays in the metadata, cameras become cameras") {
  VoxBuilder::Bytes map(256);
  for (size_t i = 0; i < 256; ++i) map[i] = uint8_t(255 - i);
  VoxBuilder f = with_dot()
                     .chunk("IMAP", map)
                     .dict_chunk("MATL", 3, {{"_type", "_media"}, {"_d", "0.05 %"}})
                     .chunk("ZZZZ", {1, 2, 3})
                     .chunk("NOTE", {9});
  f.dict_chunk("rCAM", 4, {{"_focus", "1 2 3"}, {"_radius", "10"}, {"_fov", "60"}, {"_angle", "0 0 0"}});
  std::vector<std::string> warnings;
  const Scene s = parsed(f, &warnings);
  CHECK(s.metadata.at("vox.index_map").substr(0, 6) == "fffefd");
  CHECK(s.metadata.at("vox.material_dicts") == "3 _type=_media _d=0.05%20%25\n");
  REQUIRE(s.cameras.size() == 1);
  CHECK(s.cameras[0].vertical_fov_degrees == 60);
  CHECK(s.cameras[0].target[0] == 1);
  CHECK(s.cameras[0].target[1] == 3);
  CHECK(s.cameras[0].target[2] == -2);
  CHECK(s.cameras[0].position[2] == 8);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Contains("'ZZZZ'"));
}

TEST_CASE("vox: every structural lie is an error that says the byte and what was expected") {
  const auto says = [](const std::vector<uint8_t>& bytes, const std::string& text) {
    const std::string message = error_of(bytes);
    INFO(message);
    CHECK_THAT(message, Catch::StartsWith("byte "));
    CHECK_THAT(message, Catch::Contains(text));
  };
  says({}, "empty");
  says({'V', 'O', 'X', ' ', 150, 0, 0, 0}, "MAIN");
  says({'P', 'K', 3, 4, 0, 0, 0, 0}, "'VOX '");
  says(VoxBuilder().bytes(), "at least one model");
  says(VoxBuilder().voxels({}).bytes(), "SIZE");
  const auto graph = [](auto&& add) {
    VoxBuilder f = with_dot();
    add(f);
    return f.bytes();
  };
  says(graph([](VoxBuilder& f) { f.transform(0, 5, {{}}); }), "child 5");
  says(graph([](VoxBuilder& f) { f.group(0, {1, -2147483648LL}); }), "not in the file");
  says(graph([](VoxBuilder& f) { f.shape(0, {{7, {}}}); }), "model 7");
  says(graph([](VoxBuilder& f) { f.shape(0, {{-7, {}}}); }), "-7");
  says(graph([](VoxBuilder& f) { f.group(0, {}).group(0, {}); }), "once");
  says(graph([](VoxBuilder& f) { f.transform(0, 1, {{{"_t", "1 2"}}}); }), "three whole numbers");
  says(graph([](VoxBuilder& f) { f.transform(0, 1, {{{"_t", "1 2 99999999999"}}}); }), "three whole numbers");
  says(graph([](VoxBuilder& f) {
         f.transform(0, 1, {{{"_t", "1 2 2147483647"}}}).shape(1, {{0, {}}});
       }),
       "from the origin");
  VoxBuilder::Bytes lie;
  VoxBuilder::put(lie, int64_t(0)), VoxBuilder::put(lie, int64_t(0x7fffffff));
  for (const char* id : {"nTRN", "nGRP", "nSHP", "LAYR", "MATL", "rCAM"}) says(with_dot().chunk(id, lie).bytes(), id);
  says(with_dot().chunk("XYZI", lie).bytes(), "SIZE");
  says(with_dot().chunk("RGBA", lie).bytes(), "256 colours");
  says(with_dot().size(1, 1, 1).chunk("XYZI", {255, 255, 255, 255, 0, 0, 0, 1}).bytes(), "4294967295 voxels");
}

TEST_CASE("vox: the broken files end as stated: a clean error, or voxels and a warning") {
  const fs::path data = test::data_dir();
  if (data.empty() || !fs::exists(data / "broken-vox")) return test::skip("no broken .vox files");
  // Voxels wanted: -1 = an error; -2 = either.
  const std::map<std::string, int> want{
      {"chunk_len_neg", -1},    {"deep_nesting_3000", 2}, {"dict_len_max", -1},   {"empty", -1},
      {"groups_mut_seed0", -2}, {"groups_mut_seed3", -2}, {"grp_cycle", -1},      {"header_only", -1},
      {"knight_trunc_50", -1},  {"knight_trunc_99", -1},  {"size_2048", -2},      {"size_overflow_issue87", -1},
      {"trn_bad_rot", 2},       {"unknown_chunk", 2},     {"xyzi_count_max", -1}, {"xyzi_dup", 1},
      {"xyzi_oob", 1}};
  for (const auto& [name, voxels] : want) {
    INFO(name);
    const fs::path file = data / "broken-vox" / (name + ".vox");
    REQUIRE(fs::exists(file));
    std::vector<std::string> warnings;
    const auto scene = parse_vox(file_bytes(file), &warnings);
    if (voxels == -1) {
      REQUIRE_FALSE(scene);
      CHECK_THAT(scene.error().message, Catch::StartsWith("byte "));
    } else if (voxels >= 0) {
      REQUIRE(scene);
      uint64_t total = 0;
      for (const Volume& v : scene->volumes) total += v.bricks.voxel_count();
      CHECK(total == uint64_t(voxels));
      if (name == "trn_bad_rot" || name == "xyzi_oob") CHECK_FALSE(warnings.empty());
      if (name == "xyzi_dup") CHECK(scene->volumes[0].bricks.get({0, 0, 1}) == 7);
    }
  }
}

namespace {
VoxBuilder rich_file() {
  VoxBuilder f(200);
  f.model(5, 6, 7, {{0, 0, 0, 1}, {4, 5, 6, 255}, {1, 2, 3, 80}}).model(20, 1, 9, {{19, 0, 8, 3}, {0, 0, 0, 4}});
  f.transform(0, 1, {{}}, {{"_name", "root"}}).group(1, {2, 4, 6});
  f.transform(2, 3, {{{"_t", "-5 3 2"}, {"_r", "17"}}}, {{"_name", "first"}}, 0).shape(3, {{0, {}}});
  f.transform(4, 5, {{{"_t", "1 0 0"}, {"_f", "0"}}, {{"_f", "8"}}}, {{"_hidden", "1"}}, 1)
      .shape(5, {{1, {{"_f", "0"}}}, {0, {{"_f", "3"}}}});
  f.transform(6, 7, {{{"_r", "40"}}}).group(7, {2}, {{"_hidden", "0"}});
  f.dict_chunk("LAYR", 0, {{"_name", "zero"}})
      .dict_chunk("LAYR", 1, {{"_hidden", "1"}})
      .palette({{255, 0, 0, 255}, {0, 255, 0, 255}});
  f.dict_chunk("MATL", 1, {{"_type", "_glass"}, {"_alpha", "0.5"}})
      .dict_chunk("rCAM", 0, {{"_focus", "0 0 0"}})
      .chunk("IMAP", VoxBuilder::Bytes(256, 1));
  return f;
}
}  // namespace

TEST_CASE("vox: cut after any byte, a file is an error that says so") {
  const std::vector<uint8_t> whole = rich_file().bytes();
  REQUIRE(parse_vox(whole));
  for (size_t n = 0; n < whole.size(); ++n) {
    // It has its own allocation, so that sanitizers see its end.
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + int64_t(n));
    const auto scene = parse_vox(cut);
    if (scene || scene.error().message.rfind("byte ", 0) != 0) FAIL("cut after byte " << n);
  }
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no real file to cut");
  const std::vector<uint8_t> real = file_bytes(data / "vox/mmmm/obj_mushroom1.vox");
  REQUIRE(parse_vox(real));
  for (size_t n = 0; n < real.size(); ++n)
    if (parse_vox(std::vector<uint8_t>(real.begin(), real.begin() + int64_t(n)))) FAIL("cut after byte " << n);
}

TEST_CASE("vox: thousands of seeded mutations end in a whole scene or a clean error") {
  std::vector<std::vector<uint8_t>> seeds{rich_file().bytes()};
  if (const fs::path data = test::data_dir(); !data.empty())
    for (const char* name : {"vox/crabby.vox", "vox/robo.vox", "vox/hierarchy.vox"})
      seeds.push_back(file_bytes(data / name));
  test::check_mutations(
      seeds, [](const test::Bytes& bytes, std::vector<std::string>* warnings) { return parse_vox(bytes, warnings); },
      6000);
}

}  // namespace read_test
