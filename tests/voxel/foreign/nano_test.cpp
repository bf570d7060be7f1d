// SPDX-License-Identifier: Apache-2.0
// nano_test.cpp - what reads NanoVDB files from front to back: every type of grid in every codec against the values
// that the file was made of, and files that are cut off, damaged or in another order.
#include <catch2/catch.hpp>
#include <limits>
#include <random>

#include "tests/voxel/foreign/nano_seeds.hpp"

namespace nano_test {

using namespace quarry;
using namespace quarry::test;
using nano::Codec, nano::Type;

namespace {

constexpr Codec kCodecs[] = {Codec::none, Codec::zip, Codec::blosc};

// The least integer of a value says which it is.
int first_of(float v) { return int(v); }
int first_of(int32_t v) { return v; }
int first_of(const nano::Float3& v) { return int(v.x); }

struct Counted {
  std::vector<Int3> leaves;
  int wrong = 0, active_tiles = 0, tile_values = 0;
  uint64_t tile_voxels = 0;
};

template <class V>
Counted visited(const NanoInput& file, const NanoGrid& grid) {
  Counted out;
  NanoCursor<V> cursor(file, grid);
  cursor.visit(
      [&](const Int3& origin, const auto& leaf) {
        out.leaves.push_back(origin);
        for (uint32_t i = 0; i < 512; ++i)
          out.wrong += leaf.isValueOn(i) != (i % 3 == 0) || first_of(leaf.getValue(i)) != (i % 3 == 0 ? int(i % 2) : 0);
        return true;
      },
      [&](const Int3&, int edge, const V& value, bool active) {
        if (active) {
          ++out.active_tiles;
          out.tile_values += first_of(value);
          out.tile_voxels += uint64_t(edge) * uint64_t(edge) * uint64_t(edge);
        }
        return true;
      });
  return out;
}

template <class V>
void check_visited(const NanoInput& file, const NanoGrid& grid) {
  const Counted all = visited<V>(file, grid);
  CHECK(all.leaves == std::vector<Int3>{{0, 0, 0}, {120, 120, 120}, {3968, 3968, 3976}});
  CHECK(all.wrong == 0);
  CHECK(all.active_tiles == 3);
  CHECK(all.tile_values == 7 + 8 + 9);
  CHECK(all.tile_voxels == 512 + (uint64_t(1) << 21) + (uint64_t(1) << 36));

  NanoCursor<V> cursor(file, grid);
  const auto value_at = [&](const Int3& voxel) {
    cursor.seek({voxel.x & ~7, voxel.y & ~7, voxel.z & ~7});
    return first_of(cursor.value(voxel));
  };
  CHECK(value_at({-5000, 1, 1}) == 0);
  CHECK(value_at({-4096, 1, 1}) == 9);
  CHECK(value_at({-4096, 8, 1}) == 9);
  CHECK(value_at({0, 0, 28}) == 7);
  CHECK(value_at({120, 120, 123}) == 1);
  CHECK(value_at({0, 0, 641}) == 8);
  CHECK(value_at({3968, 3968, 3979}) == 1);
  CHECK(value_at({3968, 3968, 3992}) == 0);
  CHECK(value_at({5000, 3968, 3992}) == 0);
}

template <class V>
void check_ordered(const NanoInput& file, const NanoGrid& grid) {
  REQUIRE(NanoCursor<V>::in_order(file, grid));
  check_visited<V>(file, grid);
}

void check_grid(const NanoInput& file, const NanoGrid& grid) {
  switch (Type(grid.type)) {
    case Type::Int32: return check_ordered<int32_t>(file, grid);
    case Type::Vec3f: return check_ordered<nano::Float3>(file, grid);
    default: return check_ordered<float>(file, grid);
  }
}

// What the reader says of a file, all of whose grids it passes; empty if all is well.
std::string said(const NanoFileBytes& bytes) {
  const NanoInput file = nano_input(bytes);
  try {
    for (const NanoGrid& grid : nano_grids(file)) visited<float>(file, grid);
  } catch (const NanoDamage& e) {
    return e.what();
  }
  return "";
}

// The same of a file of one float grid, after a change of its buffer.
template <class T>
std::string said_with(uint64_t at, const T& value) {
  NanoFileBytes grid = nano_grid(Type::Float);
  std::memcpy(grid.data() + at, &value, sizeof value);
  return said(nano_file({grid}, Codec::none));
}

}  // namespace

TEST_CASE("nano: every type of grid in every codec has the voxels, tiles and values it was made of") {
  for (const Codec codec : kCodecs) {
    std::vector<NanoFileBytes> grids;
    for (const Type type : {Type::Float, Type::Int32, Type::Vec3f, Type::Fp8, Type::Fp16, Type::FpN})
      grids.push_back(nano_grid(type));
    const NanoFileBytes bytes = nano_file(grids, codec);
    const NanoInput file = nano_input(bytes);
    const auto found = nano_grids(file);
    REQUIRE(found.size() == grids.size());
    for (const NanoGrid& grid : found) {
      INFO("codec " << int(codec) << ", type " << grid.type);
      CHECK(grid.name == "g");
      CHECK(grid.grid_class == uint32_t(nano::Class::fog));
      CHECK(grid.matrix[4] == 0.5);
      CHECK(grid.translation[1] == 3);
      check_grid(file, grid);
    }
  }
}

TEST_CASE(
    "nano: several segments and a name too long for a grid's buffer are read, and a file may end in a few bytes") {
  const std::string name(300, 'n');
  NanoFileBytes bytes = nano_file({nano_grid(Type::Float, name)}, Codec::zip, name);
  const NanoFileBytes second = nano_file({nano_grid(Type::Int32)}, Codec::none);
  bytes.insert(bytes.end(), second.begin(), second.end());
  bytes.insert(bytes.end(), 15, 0);
  const NanoInput file = nano_input(bytes);
  const auto found = nano_grids(file);
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == name);
  CHECK(found[1].name == "g");
  for (const NanoGrid& grid : found) check_grid(file, grid);
}

TEST_CASE("nano: a grid whose nodes lie in another order is not in order, and one that points outside is damaged") {
  NanoPlaces at;
  NanoFileBytes grid = nano_grid<float>(Type::Float, "g", &at);
  using Upper = nano::NodeData<float, 5>;
  using Lower = nano::NodeData<float, 4>;
  const auto in_order = [&] {
    const NanoFileBytes bytes = nano_file({grid}, Codec::none);
    const NanoInput file = nano_input(bytes);
    return NanoCursor<float>::in_order(file, nano_grids(file)[0]);
  };
  CHECK(in_order());
  // The places of the first node's two leaves change places.
  uint8_t* const places = grid.data() + at.lowers + offsetof(Lower, places);
  std::swap_ranges(places, places + 8, places + 4095 * 8);
  CHECK_FALSE(in_order());
  CHECK_THAT(said(nano_file({grid}, Codec::zip)), Catch::Contains("not in order"));
  std::swap_ranges(places, places + 8, places + 4095 * 8);
  // And so do the two tiles of the root.
  uint8_t* const tiles = grid.data() + at.root_tiles;
  std::swap_ranges(tiles, tiles + sizeof(nano::RootTile<float>), tiles + sizeof(nano::RootTile<float>));
  CHECK_FALSE(in_order());
  std::swap_ranges(places, places + 8, places + 4095 * 8);
  for (const Codec codec : kCodecs) {
    const NanoFileBytes bytes = nano_file({grid}, codec);
    const NanoInput file = nano_input(bytes);
    NanoGrid whole = nano_grids(file)[0];
    CHECK_FALSE(NanoCursor<float>::in_order(file, whole));
    hold_whole(file, whole);
    check_visited<float>(file, whole);
  }
  std::copy_n(tiles, 8, tiles + sizeof(nano::RootTile<float>));
  const NanoFileBytes twice = nano_file({grid}, Codec::none);
  NanoGrid whole = nano_grids(nano_input(twice))[0];
  hold_whole(nano_input(twice), whole);
  CHECK_THROWS_WITH(NanoCursor<float>(nano_input(twice), whole), Catch::Contains("two nodes at one place"));

  for (const int64_t offset : {int64_t(1), int64_t(-1), int64_t(1) << 40, std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::min(), -int64_t(at.lowers)}) {
    INFO(offset);
    const auto expected = [&](const std::string& message) {
      return message == "a node is at a place where none can be" || message == "the nodes of a grid are not in order" ||
             message == "a grid ends within a node";
    };
    const std::string lower = said_with(at.uppers + offsetof(Upper, places), offset);
    CHECK(expected(lower));
    CHECK(expected(said_with(at.lowers + offsetof(Lower, places), offset)));
    CHECK(expected(said_with(at.root_tiles + 32 + 8, offset)));
    CHECK(expected(said_with(sizeof(nano::GridData) + 24, offset)));
  }
  CHECK_THAT(said_with(at.root + 24, UINT32_MAX),
             Catch::Contains("where none can be") || Catch::Contains("ends within"));
  CHECK_THAT(said_with(at.root_tiles, uint64_t(1) << 61), Catch::Contains("where none can be"));
}

TEST_CASE("nano: a file that is cut off anywhere, or says something else of itself, is one error in words") {
  for (const Codec codec : kCodecs) {
    const NanoFileBytes whole = nano_file({nano_grid(Type::Float)}, codec);
    CHECK(said(whole).empty());
    for (const size_t length : {size_t(16), size_t(20), size_t(193), size_t(200), whole.size() / 2, whole.size() - 1}) {
      INFO("codec " << int(codec) << ", " << length << " bytes");
      CHECK_THAT(said(NanoFileBytes(whole.begin(), whole.begin() + int64_t(length))), Catch::Contains("ends within"));
    }
    NanoFileBytes longer = whole;
    longer.insert(longer.end(), 16, 1);
    CHECK_THAT(said(longer), Catch::Contains("do not end where they should"));
  }
  NanoFileBytes bytes = nano_file({nano_grid(Type::Float)}, Codec::zip);
  bytes[bytes.size() - 1] ^= 1;  // of the checksum
  CHECK_THAT(said(bytes), Catch::Contains("ZIP data of a grid are damaged"));
  bytes = nano_file({nano_grid(Type::Float)}, Codec::zip);
  bytes[16] -= 1;  // the buffer's length
  CHECK_THAT(said(bytes), Catch::Contains("longer than its file says") || Catch::Contains("where none can be"));
  bytes[16] += 2;
  CHECK_THAT(said(bytes), Catch::Contains("shorter than its file says"));
  bytes[14] = 3;
  CHECK_THAT(said(bytes), Catch::Contains("unknown codec"));
  bytes[11] = 8;
  CHECK_THAT(said(bytes), Catch::Contains("it is of NanoVDB 64, and 32 is read"));
  std::reverse(bytes.begin(), bytes.begin() + 8);
  CHECK_THAT(said(bytes), Catch::Contains("big-endian"));
  bytes[0] = 'x';
  CHECK_THAT(said(bytes), Catch::Contains("not a NanoVDB file"));
  bytes = nano_file({nano_grid(Type::Float)}, Codec::blosc);
  bytes[16 + 176 + 2 + 8 + 8] ^= 1;  // the length of a block
  CHECK_THAT(said(bytes), Catch::Contains("BLOSC data of a grid are damaged"));
}

TEST_CASE("nano: of a file with any bytes changed, what is read is read within its bounds") {
  std::mt19937 random(5);
  for (const auto& [name, seed] : nano_seeds()) {
    INFO(name);
    for (int round = 0; round < 60; ++round) {
      NanoFileBytes bytes = seed;
      for (int n = 0; n < 6; ++n)
        bytes[random() % (round % 2 ? bytes.size() : std::min<size_t>(bytes.size(), 1100))] = uint8_t(random());
      said(bytes);  // reads past the file's end throw
    }
  }
  SUCCEED();
}

}  // namespace nano_test
