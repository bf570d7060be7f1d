// SPDX-License-Identifier: Apache-2.0
// schematic_seeds.hpp - writes NBT, and with it small uncompressed schematics and litematics: first inputs of the
// fuzzer, and of the tests' mutations.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quarry::test {

class NbtBuilder {
 public:
  NbtBuilder& open(const std::string& name) { return head(10, name); }
  NbtBuilder& close() { return put(0, 1); }
  NbtBuilder& i16(const std::string& name, int64_t v) { return head(2, name).put(v, 2); }
  NbtBuilder& i32(const std::string& name, int64_t v) { return head(3, name).put(v, 4); }
  NbtBuilder& text(const std::string& name, const std::string& v) { return head(8, name).string(v); }
  NbtBuilder& bytes(const std::string& name, const std::vector<uint8_t>& v) {
    head(7, name).put(int64_t(v.size()), 4);
    out_.insert(out_.end(), v.begin(), v.end());
    return *this;
  }
  NbtBuilder& ints(const std::string& name, const std::vector<int32_t>& v) {
    head(11, name).put(int64_t(v.size()), 4);
    for (const int32_t i : v) put(i, 4);
    return *this;
  }
  NbtBuilder& longs(const std::string& name, const std::vector<uint64_t>& v) {
    head(12, name).put(int64_t(v.size()), 4);
    for (const uint64_t i : v) put(int64_t(i), 8);
    return *this;
  }
  NbtBuilder& list(const std::string& name, uint8_t type, int64_t count) {
    return head(9, name).put(type, 1).put(count, 4);
  }
  NbtBuilder& xyz(const std::string& name, std::array<int32_t, 3> v) {
    return open(name).i32("x", v[0]).i32("y", v[1]).i32("z", v[2]).close();
  }
  NbtBuilder& put(int64_t v, int count) {
    for (int i = count - 1; i >= 0; --i) out_.push_back(uint8_t(v >> 8 * i));
    return *this;
  }
  NbtBuilder& string(const std::string& v) {
    put(int64_t(v.size()), 2);
    out_.insert(out_.end(), v.begin(), v.end());
    return *this;
  }
  const std::vector<uint8_t>& done() const { return out_; }

 private:
  NbtBuilder& head(uint8_t type, const std::string& name) { return put(type, 1).string(name); }
  std::vector<uint8_t> out_;
};

// A file of 2 x 3 x 2 blocks. Number 300 takes two bytes.
inline std::vector<uint8_t> schematic_file(int version) {
  NbtBuilder b;
  const std::vector<uint8_t> data{0, 1, 2, 0, 0, 0, 0xac, 2, 0, 0, 1, 1, 1};
  if (version == 3) b.open("").open("Schematic");
  else b.open("Schematic");
  b.i32("Version", version)
      .i16("Width", 2)
      .i16("Height", 3)
      .i16("Length", 2)
      .i32("DataVersion", 2584)
      .ints("Offset", {5, -6, 7});
  if (version == 3) b.open("Blocks");
  b.open("Palette")
      .i32("minecraft:air", 0)
      .i32("minecraft:oak_stairs[facing=east]", 1)
      .i32("minecraft:stone", 2)
      .i32("minecraft:torch", 300)
      .close();
  b.bytes(version == 3 ? "Data" : "BlockData", data);
  b.list("BlockEntities", 10, 1).i16("odd", 3).close();
  if (version == 3) b.close().close();
  return b.close().done();
}

// A file with one region of 3 x 2 x 2 that extends backwards from its position, with five states (three bits each), and
// one region of a single block.
inline std::vector<uint8_t> litematic_file() {
  NbtBuilder b;
  b.open("")
      .i32("MinecraftDataVersion", 3578)
      .i32("Version", 6)
      .open("Metadata")
      .text("Name", "two")
      .text("Author", "nobody")
      .close()
      .open("Regions");
  b.open("back").xyz("Position", {10, 5, 0}).xyz("Size", {-3, 2, 2}).list("BlockStatePalette", 10, 5);
  for (const char* name : {"minecraft:air", "minecraft:stone", "minecraft:dirt", "minecraft:glass"})
    b.text("Name", name).close();
  b.text("Name", "minecraft:oak_log").open("Properties").text("waterlogged", "false").text("axis", "y").close().close();
  uint64_t word = 0;
  const int entries[12] = {1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 1};
  for (int i = 0; i < 12; ++i) word |= uint64_t(entries[i]) << 3 * i;
  b.longs("BlockStates", {word}).close();
  b.open("dot")
      .xyz("Position", {0, 0, -9})
      .xyz("Size", {1, 1, 1})
      .list("BlockStatePalette", 10, 1)
      .text("Name", "minecraft:stone")
      .close()
      .longs("BlockStates", {0})
      .close();
  return b.close().close().done();
}

inline std::vector<std::pair<std::string, std::vector<uint8_t>>> minecraft_seeds() {
  return {{"v1.schem", schematic_file(1)},
          {"v2.schem", schematic_file(2)},
          {"v3.schem", schematic_file(3)},
          {"two.litematic", litematic_file()}};
}

}  // namespace quarry::test
