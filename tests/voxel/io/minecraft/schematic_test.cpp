// SPDX-License-Identifier: Apache-2.0
// schematic_test.cpp - Minecraft builds: real files against known counts, each version and packing block by block,
// block colours, hostile NBT.
#include "voxel/io/minecraft/schematic.hpp"

#include <zlib.h>

#include <set>

#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "tests/voxel/io/minecraft/schematic_seeds.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/minecraft/blocks.hpp"
#include "voxel/io/minecraft/nbt.hpp"
#include "voxel/io/streams/inflate.hpp"

namespace schematic_test {

using namespace quarry;
using io::parse_minecraft;
using test::Bytes;
using test::NbtBuilder;
namespace fs = std::filesystem;

namespace {
constexpr uint64_t kLimit = 64 << 20;
Result<Scene> parse(const Bytes& bytes, std::vector<std::string>* warnings) {
  return parse_minecraft(bytes, kLimit, warnings);
}

std::string block_at(const Scene& scene, size_t volume, Int3 cell) {
  return scene.palette.names[scene.volumes.at(volume).bricks.get(cell)];
}

Bytes gzipped(const Bytes& plain) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  Bytes out(deflateBound(&z, uLong(plain.size())));
  z.next_in = const_cast<Bytef*>(plain.data());
  z.avail_in = uInt(plain.size());
  z.next_out = out.data();
  z.avail_out = uInt(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

void says(const Bytes& bytes, const std::string& part) { test::check_refused(parse(bytes, nullptr), "byte ", part); }
}  // namespace

TEST_CASE("minecraft: the real schematic has the known size, palette and blocks") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no .schem file");
  const auto scene = io::read_scene(data / "other/smallhouse1.schem");
  REQUIRE(scene);
  CHECK(scene->metadata.at("source_format") == "schem");
  CHECK(scene->metadata.at("minecraft.schematic_version") == "2");
  CHECK(scene->metadata.at("minecraft.offset") == "224 4 -127");
  REQUIRE(scene->volumes.size() == 1);
  CHECK(scene->volumes[0].name == "smallhouse1");
  CHECK(scene->volumes[0].size == Int3{21, 28, 20});
  CHECK(test::voxels_of(*scene) == 3201);
  CHECK(flatten(*scene, true));
  std::set<std::string> names;
  for (const std::string& name : scene->palette.names)
    if (!name.empty()) CHECK(names.insert(name).second);
  CHECK(std::to_string(names.size()) == scene->metadata.at("minecraft.states"));
  CHECK(names.size() <= 172);
  CHECK(names.size() > 100);
  CHECK(names.count("minecraft:stone_brick_stairs[facing=east,half=top,shape=straight,waterlogged=false]"));
}

TEST_CASE("minecraft: the real litematic has the known region, and as many blocks as its own metadata says") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no .litematic file");
  const auto scene = io::read_scene(data / "other/test.litematic");
  REQUIRE(scene);
  CHECK(scene->metadata.at("source_format") == "litematic");
  CHECK(scene->metadata.at("minecraft.Name") == "house_39");
  REQUIRE(scene->volumes.size() == 1);
  CHECK(scene->volumes[0].name == "house_39");
  CHECK(scene->volumes[0].size == Int3{79, 29, 70});
  CHECK(scene->instances[0].offset == Int3{0, 0, 0});
  CHECK(test::voxels_of(*scene) == 11722);
}

TEST_CASE("minecraft: all three versions of schematics give each block its place and its name") {
  for (const int version : {1, 2, 3}) {
    INFO(version);
    for (const Bytes& bytes : {test::schematic_file(version), gzipped(test::schematic_file(version))}) {
      const auto scene = parse_minecraft(bytes, kLimit);
      REQUIRE(scene);
      CHECK(scene->volumes[0].size == Int3{2, 3, 2});
      CHECK(test::voxels_of(*scene) == 6);
      CHECK(block_at(*scene, 0, {1, 0, 0}) == "minecraft:oak_stairs[facing=east]");
      CHECK(block_at(*scene, 0, {0, 0, 1}) == "minecraft:stone");
      CHECK(block_at(*scene, 0, {0, 1, 1}) == "minecraft:torch");
      CHECK(block_at(*scene, 0, {1, 2, 1}) == "minecraft:oak_stairs[facing=east]");
      CHECK(scene->metadata.at("minecraft.offset") == "5 -6 7");
      CHECK(scene->metadata.at("minecraft.data_version") == "2584");
    }
  }
}

TEST_CASE("minecraft: regions of a litematic lie where they say, a negative size reaching back") {
  const auto scene = parse_minecraft(test::litematic_file(), kLimit);
  REQUIRE(scene);
  REQUIRE(scene->volumes.size() == 2);
  CHECK(scene->instances[0].offset == Int3{8, 5, 0});
  CHECK(scene->instances[1].offset == Int3{0, 0, -9});
  CHECK(block_at(*scene, 0, {0, 0, 0}) == "minecraft:stone");
  CHECK(block_at(*scene, 0, {2, 0, 0}) == "minecraft:glass");
  CHECK(block_at(*scene, 0, {0, 0, 1}) == "minecraft:oak_log[axis=y,waterlogged=false]");
  CHECK(block_at(*scene, 0, {2, 1, 1}) == "minecraft:stone");
  CHECK(block_at(*scene, 1, {0, 0, 0}) == "minecraft:stone");
  CHECK(test::voxels_of(*scene) == 6);
  const size_t glass = scene->volumes[0].bricks.get({2, 0, 0});
  CHECK(scene->palette.materials[glass].transparency > 0.5f);
}

TEST_CASE("minecraft: blocks that straddle two longs are put together") {
  // 33 states take 6 bits: block 10 has bits 60 to 65.
  NbtBuilder b;
  b.open("")
      .open("Regions")
      .open("r")
      .xyz("Position", {0, 0, 0})
      .xyz("Size", {12, 1, 1})
      .list("BlockStatePalette", 10, 33);
  for (int i = 0; i < 33; ++i) b.text("Name", i ? "mod:block" + std::to_string(i) : "minecraft:air").close();
  std::vector<uint64_t> words(2);
  const auto put = [&](uint64_t cell, uint64_t v) {
    for (uint64_t bit = 0; bit < 6; ++bit)
      if (v >> bit & 1) words[(cell * 6 + bit) / 64] |= uint64_t(1) << (cell * 6 + bit) % 64;
  };
  put(9, 31);
  put(10, 32);
  put(11, 17);
  const auto scene = parse_minecraft(b.longs("BlockStates", words).close().close().close().done(), kLimit);
  REQUIRE(scene);
  CHECK(test::voxels_of(*scene) == 3);
  CHECK(block_at(*scene, 0, {9, 0, 0}) == "mod:block31");
  CHECK(block_at(*scene, 0, {10, 0, 0}) == "mod:block32");
  CHECK(block_at(*scene, 0, {11, 0, 0}) == "mod:block17");
}

TEST_CASE("minecraft: blocks have sensible colours, unknown ones the same on every machine") {
  const auto m = [](const char* name) { return io::block_material(name); };
  CHECK(m("minecraft:grass_block[snowy=false]").g > m("minecraft:grass_block[snowy=false]").r);
  CHECK(m("minecraft:red_wool").r > 2 * m("minecraft:red_wool").b);
  CHECK(m("minecraft:light_blue_concrete") == m("minecraft:light_blue_wool"));
  CHECK_FALSE(m("minecraft:red_sand") == m("minecraft:red_wool"));
  CHECK(m("minecraft:dark_oak_leaves[distance=1]") == m("minecraft:oak_leaves"));
  CHECK(m("minecraft:redstone_lamp[lit=true]").emission > 0);
  CHECK(m("minecraft:redstone_lamp[lit=false]").emission == 0);
  CHECK(m("minecraft:fire_coral").emission == 0);
  CHECK(m("minecraft:oak_fence[waterlogged=true]").transparency == 0);
  CHECK(m("minecraft:water").transparency > 0);
  const Material unknown = m("mod:qqq");
  CHECK(unknown == m("mod:qqq[a=b]"));
  CHECK_FALSE(unknown == m("mod:qqx"));
  for (const char* air :
       {"minecraft:air", "minecraft:cave_air", "air", "minecraft:void_air", "minecraft:structure_void"})
    CHECK(io::block_is_empty(air));
  CHECK_FALSE(io::block_is_empty("minecraft:stairs"));
  CHECK(io::block_name("minecraft:a[b=c]") == "minecraft:a");
}

TEST_CASE("minecraft: more than 255 states share materials by name, and no block is lost") {
  const auto build = [](int names, int states) {
    NbtBuilder b;
    Bytes data;
    b.open("Schematic")
        .i32("Version", 2)
        .i16("Width", names * states)
        .i16("Height", 1)
        .i16("Length", 1)
        .open("Palette");
    for (int i = 0; i < names * states; ++i) {
      b.i32("m:b" + std::to_string(i / states) + "[s=" + std::to_string(i % states) + "]", i);
      for (int v = i;; v >>= 7) {
        data.push_back(uint8_t((v & 127) | (v > 127 ? 128 : 0)));
        if (v <= 127) break;
      }
    }
    return b.close().bytes("BlockData", data).close().done();
  };
  std::vector<std::string> warnings;
  const auto few = parse_minecraft(build(20, 20), kLimit, &warnings);
  REQUIRE(few);
  CHECK(test::voxels_of(*few) == 400);
  CHECK(warnings.size() == 1);
  CHECK(block_at(*few, 0, {0, 0, 0}) == "m:b0");
  CHECK(block_at(*few, 0, {399, 0, 0}) == "m:b19");
  warnings.clear();
  const auto many = parse_minecraft(build(300, 1), kLimit, &warnings);
  REQUIRE(many);
  CHECK(test::voxels_of(*many) == 300);
  CHECK(warnings.size() == 2);
  CHECK(block_at(*many, 0, {254, 0, 0}) == "m:b254");
}

TEST_CASE("minecraft: every error names the byte and what was expected there") {
  const auto schem = [](const char* width_name, int64_t width, int64_t version, const Bytes& data, int64_t id = 1) {
    NbtBuilder b;
    return b.open("Schematic")
        .i32("Version", version)
        .i16(width_name, width)
        .i16("Height", 1)
        .i16("Length", 1)
        .open("Palette")
        .i32("minecraft:stone", id)
        .close()
        .bytes("BlockData", data)
        .close()
        .done();
  };
  REQUIRE(parse_minecraft(schem("Width", 2, 2, {1, 1}), kLimit));
  says({}, "empty");
  says({1, 2, 3}, "compound tag (10)");
  says({200}, "0 to 12");
  says(schem("Weight", 2, 2, {1, 1}), "found neither");
  says(schem("Width", 0, 2, {1, 1}), "at least 1");
  says(schem("Width", -1, 2, {1, 1}), "65535");
  says(schem("Width", 3, 2, {1, 1}), "3 blocks");
  says(schem("Width", 2, 4, {1, 1}), "version 1 to 3");
  says(schem("Width", 2, 3, {1, 1}), "'Blocks'");
  says(schem("Width", 2, 2, {1, 2}), "palette does not have");
  says(schem("Width", 2, 2, {1, 0x81}), "ends after 1");
  says(schem("Width", 2, 2, {1, 1, 1}), "1 bytes more");
  says(schem("Width", 1, 2, {0xff, 0xff, 0xff, 0xff, 0xff, 1}), "longer than five");
  says(schem("Width", 2, 2, {1, 1}, 1 << 20), "1048575");
  says(schem("Width", 2, 2, {1, 1}, -1), "1048575");
}

TEST_CASE("minecraft: deep, long and bomb-like files are refused without their memory being taken") {
  Bytes deep{10, 0, 0};
  for (int i = 0; i < 100000; ++i) deep.insert(deep.end(), {10, 0, 0});
  says(deep, "deeper than 512");
  Bytes lists{10, 0, 0, 9, 0, 0};
  for (int i = 0; i < 100000; ++i) lists.insert(lists.end(), {9, 0, 0, 0, 1});
  says(lists, "deeper than 512");
  NbtBuilder b;
  says(b.open("").list("l", 10, 0x7fffffff).done(), "more than the");
  NbtBuilder negative;
  says(negative.open("").list("l", 1, -1).done(), "-1");
  const Bytes bomb = gzipped(Bytes(80 << 20));
  CHECK(bomb.size() < (1 << 20));
  const auto scene = parse_minecraft(bomb, kLimit);
  REQUIRE_FALSE(scene);
  CHECK(scene.error().code == ErrorCode::unsupported);
  CHECK_THAT(scene.error().message, Catch::Contains("more than 64 MiB"));
}

TEST_CASE("minecraft: cut after any byte, a file is an error that says so") {
  for (const auto& [name, bytes] : test::minecraft_seeds()) test::check_cuts(bytes, parse);
  test::check_cuts(gzipped(test::litematic_file()), parse);
  if (const fs::path data = test::data_dir(); !data.empty())
    test::check_cuts(test::file_bytes(data / "other/smallhouse1.schem"), parse, "byte ", 500);
}

TEST_CASE("minecraft: thousands of seeded mutations end in a whole scene or a clean error") {
  std::vector<Bytes> seeds = test::contents(test::minecraft_seeds());
  if (const fs::path data = test::data_dir(); !data.empty()) {
    const auto plain = io::inflated(test::file_bytes(data / "other/smallhouse1.schem"), kLimit);
    REQUIRE(plain);
    seeds.emplace_back(plain->span().begin(), plain->span().end());
    seeds.push_back(test::file_bytes(data / "other/smallhouse1.schem"));
  }
  test::check_mutations(seeds, parse, 4000);
}

}  // namespace schematic_test
