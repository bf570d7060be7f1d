// SPDX-License-Identifier: Apache-2.0
// vdb_test.cpp - OpenVDB and NanoVDB: real files against the output of OpenVDB's own tool, a sphere against its
// equation, round trips, what is written against what OpenVDB writes, damaged files, and the stream between the
// processes as untrusted bytes.
#include "voxel/io/grids/vdb.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/program_place.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/foreign_file.hpp"
#include "voxel/foreign/pipe/voxel_stream.hpp"
#include "voxel/generate/scenes.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/visible_regions.hpp"
#if __has_include(<blosc.h>)
#include "tests/voxel/foreign/nano_seeds.hpp"
#endif

namespace vdb_test {

using namespace quarry;
using test::Bytes;
namespace fs = std::filesystem;

namespace {

std::string message_of(const Result<Scene>& scene) { return scene ? "" : scene.error().message; }

// The output of a shell command.
std::string printed(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  REQUIRE(pipe);
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, got);
  ::pclose(pipe);
  return out;
}

Scene colored_scene() {
  Scene scene;
  scene.palette = Palette::standard();
  scene.palette.materials[7].emission = 2.5f;
  scene.palette.materials[7].roughness = 0.1f;
  scene.palette.names[7] = "lamp; 50% red %3b";
  scene.palette.materials[255] = {};  // plain white, while the standard palette's one is emissive
  scene.palette.names[255] = "";
  BrickMap bricks;
  for (int32_t z = 0; z < 24; ++z)
    for (int32_t y = 0; y < 20; ++y)
      for (int32_t x = -9; x < 17; ++x)
        if (x * x + y * z > 40) bricks.set({x, y, z}, uint8_t(1 + (x + y + z + 20) % 250));
  // Whole bricks of one material.
  for (int32_t i = 0; i < 4096; ++i) bricks.set({64 + (i & 15), i >> 4 & 15, i >> 8}, 7);
  scene.volumes.push_back({"thing", bricks, {}});
  Instance instance;
  instance.offset = {3, -5, 100};
  instance.name = "thing";
  scene.instances.push_back(instance);
  return scene;
}

// Two upper nodes of OpenVDB's trees and more, of places below zero, with all kinds of tiles: of a leaf, of a node of
// 128^3, with and without one colour for several materials.
Scene scattered_scene() {
  Scene scene = colored_scene();
  for (const size_t i : {20, 21}) scene.palette.materials[i] = scene.palette.materials[7];
  BrickMap solid, sparse;
  Brick full;
  full.mask.fill(~uint64_t(0));
  for (int32_t i = 0; i < 4096 + 512; ++i) {
    full.materials.fill(i < 4096 ? uint8_t(9) : uint8_t(20 + i % 2));
    solid.put({(i >> 12) * 16 + (i & 15), i >> 4 & 15, i >> 8 & 15}, full);
  }
  std::mt19937 random(3);
  for (int i = 0; i < 6000; ++i)
    sparse.set({int32_t(random() % 700), int32_t(random() % 300), int32_t(random() % 300)}, uint8_t(1 + i % 30));
  scene.volumes.push_back({"solid", solid, {}});
  scene.volumes.push_back({"sparse", sparse, {}});
  const auto place = [&](uint32_t volume, Int3 offset, const Rotation& rotation = {}) {
    Instance instance;
    instance.volume = volume;
    instance.offset = offset;
    instance.rotation = rotation;
    scene.instances.push_back(instance);
  };
  place(1, {-256, 0, 128});
  place(1, {3979, 5, 9}, {{2, 1, 0}, {1, 1, -1}});
  place(2, {-300, 40, -5000});
  place(2, {100, 60, 200}, {{0, 2, 1}, {1, 1, -1}});
  place(0, {40'000'000, -3000, -50'000'000});
  return scene;
}

// The part of a .vdb that is one grid: its settings, metadata, topology and values.
Bytes grid_in(const Bytes& file, const std::string& name) {
  const std::string head = std::string(1, char(name.size())) + std::string(3, 0) + name;
  auto at = std::search(file.begin(), file.end(), head.begin(), head.end());
  REQUIRE(at != file.end());
  for (int text = 0; text < 3; ++text) {  // name, type, and no grid whose tree it shares
    uint32_t length = 0;
    std::memcpy(&length, &*at, 4);
    at += 4 + int64_t(length);
  }
  int64_t place[3];  // of the grid, its values, its end
  std::memcpy(place, &*at, sizeof place);
  REQUIRE(place[0] < place[1]);
  REQUIRE(place[1] <= place[2]);
  REQUIRE(place[2] <= int64_t(file.size()));
  return Bytes(file.begin() + place[0], file.begin() + place[2]);
}

Bytes sphere_stream(uint32_t value_bytes) {
  Bytes out;
  const ByteSink sink = [&](std::span<const uint8_t> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return true;
  };
  io::VoxelStreamWriter stream(sink);
  stream.warnings({"a warning"});
  stream.metadata("key", "text");
  stream.palette(Palette::standard());
  io::StreamGrid grid;
  grid.record.value_bytes = value_bytes;
  grid.name = "g";
  stream.grid(grid);
  for (int i = 0; i < 3; ++i) {
    BrickMask mask{};
    mask[size_t(i)] = 5;
    stream.brick({i, -i, 2 * i}, mask, Bytes(2 * value_bytes, uint8_t(9 + i)));
  }
  stream.active_voxels(6);
  REQUIRE(stream.finish());
  return out;
}

Result<int> count_bricks(const Bytes& bytes, size_t piece = SIZE_MAX / 2) {
  int bricks = 0;
  io::VoxelStreamEvents events;
  events.grid = [](const io::StreamGrid&) -> Result<void> { return {}; };
  events.brick = [&](Int3, const BrickMask&, std::span<const uint8_t>) -> Result<void> {
    ++bricks;
    return {};
  };
  std::vector<std::string> warnings;
  io::VoxelStreamParser parser("the test", events, &warnings);
  for (size_t at = 0; at < bytes.size(); at += piece)
    QRY_TRY(parser.push({bytes.data() + at, std::min(piece, bytes.size() - at)}));
  QRY_TRY(parser.end());
  return bricks;
}

}  // namespace

TEST_CASE("vdb: a stream between the processes gives what was sent; cut or changed anywhere, it is one error") {
  for (const uint32_t values : {0u, 1u, 4u}) {
    const Bytes whole = sphere_stream(values);
    const auto bricks = count_bricks(whole);
    REQUIRE(bricks);
    CHECK(*bricks == 3);
    for (const size_t piece : {1, 7, 16, 100}) {
      const auto in_pieces = count_bricks(whole, piece);
      REQUIRE(in_pieces);
      CHECK(*in_pieces == 3);
    }
    for (size_t n = 0; n < whole.size(); ++n) {
      const auto cut = count_bricks(Bytes(whole.begin(), whole.begin() + int64_t(n)));
      REQUIRE_FALSE(cut);
      REQUIRE_THAT(cut.error().message, Catch::StartsWith("the test sent something"));
    }
    for (size_t n = 0; n < whole.size(); ++n) {
      Bytes changed = whole;
      changed[n] ^= 0x10;
      REQUIRE_FALSE(count_bricks(changed));
      REQUIRE_FALSE(count_bricks(changed, 11));
    }
  }
}

TEST_CASE("vdb: a build without OpenVDB says so, and what to install") {
  const auto formats = io::formats();
  for (const char* name : {"vdb", "nvdb"}) {
    const auto row =
        std::find_if(formats.begin(), formats.end(), [&](const io::Format& f) { return std::string(f.name) == name; });
    REQUIRE(row != formats.end());
    CHECK((row->absent == nullptr) == (io::kVdbAbsent == nullptr));
  }
  if (!io::kVdbAbsent) return;
  const fs::path file = test::scratch_dir("vdb-absent") / "a.vdb";
  std::ofstream(file) << "x";
  CHECK_THAT(message_of(io::read_vdb(file, {})), Catch::Contains("libopenvdb-dev"));
  CHECK_THAT(io::write_vdb(colored_scene(), file, {}).error().message, Catch::Contains("libopenvdb-dev"));
}

TEST_CASE(
    "vdb: the real files have the grids, active voxels and voxel sizes that are known, and a sphere is a sphere") {
  const fs::path data = test::data_dir();
  if (data.empty()) return test::skip("no .vdb files");
  if (io::kVdbAbsent) return test::skip(io::kVdbAbsent);
  const auto fog = io::read_scene(data / "vdb/bunny_fog128.vdb"),
             half = io::read_scene(data / "vdb/bunny_ls64_half_zip.vdb"),
             two = io::read_scene(data / "vdb/two_grids.vdb");
  INFO(message_of(fog) << message_of(half) << message_of(two));
  REQUIRE(fog);
  REQUIRE(half);
  REQUIRE(two);
  CHECK(test::voxels_of(*fog) == 174);
  CHECK_THAT(fog->metadata.at("vdb.grids"), Catch::Contains("fog volume") && Catch::Contains("174 active voxels"));
  CHECK(fog->volumes[0].bricks.bounds() == Box3{{-69, 27, -48}, {44, 146, 44}});
  CHECK_THAT(half->metadata.at("vdb.grids"), Catch::Contains("level set") && Catch::Contains("47636 active voxels"));
  CHECK(test::voxels_of(*half) > 5000);  // the surface of a mesh with holes
  CHECK_THAT(two->metadata.at("vdb.grids"),
             Catch::Contains("cube: level set") && Catch::Contains("11966 active voxels") &&
                 Catch::Contains("sphere: level set") && Catch::Contains("30254 active voxels"));
  REQUIRE(two->volumes.size() == 2);
  // The cube and the sphere about the origin must be solid and symmetric. The surface cells give the radius.
  const BrickMap& sphere = two->volumes[1].bricks;
  const int32_t r = sphere.bounds().max.x;
  CHECK(sphere.bounds() == Box3{{-r, -r, -r}, {r, r, r}});
  size_t wrong = 0;
  for (int32_t z = -r - 1; z <= r + 1; ++z)
    for (int32_t y = -r - 1; y <= r + 1; ++y)
      for (int32_t x = -r - 1; x <= r + 1; ++x) {
        const double d = std::sqrt(double(x * x + y * y + z * z));
        const bool there = sphere.get({x, y, z}) != 0;
        wrong += d < r - 1 ? !there : d > r + 1.5 ? there : 0;
      }
  CHECK(wrong == 0);
  const BrickMap& cube = two->volumes[0].bricks;
  const Box3 box = cube.bounds();
  const uint64_t edge = uint64_t(box.max.x - box.min.x) + 1;
  CHECK(cube.voxel_count() == edge * edge * edge);
}

TEST_CASE(
    "vdb: what is written is read back voxel by voxel with its materials, and OpenVDB's tools count the same voxels") {
  if (io::kVdbAbsent) return test::skip(io::kVdbAbsent);
  const fs::path dir = test::scratch_dir("vdb-round");
  const Scene scene = colored_scene();
  REQUIRE(io::write_scene(scene, dir / "a.vdb"));
  const auto back = io::read_scene(dir / "a.vdb");
  INFO(message_of(back));
  REQUIRE(back);
  const auto before = flatten(scene, true), after = flatten(*back, true);
  REQUIRE(before);
  REQUIRE(after);
  CHECK(*before == *after);
  CHECK(back->palette == scene.palette);
  CHECK(back->metadata.at("vdb.creator") == "Quarry");
  CHECK(std::distance(fs::directory_iterator(dir), {}) == 1);
  // The library would give each file random numbers of its own.
  REQUIRE(io::write_scene(scene, dir / "b.vdb"));
  CHECK(test::file_bytes(dir / "a.vdb") == test::file_bytes(dir / "b.vdb"));

  REQUIRE(io::write_scene(scene, dir / "a.nvdb"));
  const auto nano = io::read_scene(dir / "a.nvdb");
  INFO(message_of(nano));
  REQUIRE(nano);
  const auto shape = flatten(*nano, true);
  REQUIRE(shape);
  REQUIRE(shape->bricks().size() == before->bricks().size());
  size_t different = 0;
  for (const auto& [at, brick] : before->bricks()) {
    const auto other = shape->find(at);
    REQUIRE(other);
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
      const Material &m = scene.palette.materials[brick.get(i)], &n = nano->palette.materials[other->get(i)];
      different +=
          (brick.get(i) == 0) != (other->get(i) == 0) || (brick.get(i) && (m.r != n.r || m.g != n.g || m.b != n.b));
    }
  }
  CHECK(different == 0);

  const std::string count = std::to_string(before->voxel_count());
  if (std::system("command -v vdb_print >/dev/null") != 0) return test::skip("no vdb_print (libopenvdb-tools)");
  std::string list = printed("vdb_print -l '" + (dir / "a.vdb").string() + "'");
  list.erase(std::remove(list.begin(), list.end(), ','), list.end());
  CHECK_THAT(list, Catch::Contains("density") && Catch::Contains("Cd") && Catch::Contains("material"));
  size_t found = 0;
  for (size_t at = list.find("active voxels:"); at != std::string::npos; at = list.find("active voxels:", at + 1))
    found += list.find(count, at) < at + 60;
  CHECK(found >= 3);
}

TEST_CASE(
    "vdb: a grid that is written leaf by leaf has the bytes that OpenVDB itself writes of a tree in memory, with tiles "
    "of any size and many nodes") {
  if (io::kVdbAbsent) return test::skip(io::kVdbAbsent);
  if (std::system("command -v vdb_tool >/dev/null") != 0) return test::skip("no vdb_tool (libopenvdb-tools)");
  const fs::path dir = test::scratch_dir("vdb-leaves");
  int number = 0;
  for (const Scene& scene : {colored_scene(), scattered_scene()}) {
    const fs::path ours = dir / (std::to_string(number) + ".vdb"), theirs = dir / (std::to_string(number) + "t.vdb");
    ++number;
    REQUIRE(io::write_scene(scene, ours));
    printed("vdb_tool -read '" + ours.string() + "' -write '" + theirs.string() + "'");
    REQUIRE(fs::exists(theirs));
    const Bytes a = test::file_bytes(ours), b = test::file_bytes(theirs);
    for (const char* grid : {"density", "Cd", "material"}) CHECK((grid_in(a, grid) == grid_in(b, grid)));
  }
}

TEST_CASE(
    "vdb: a NanoVDB file that is written brick by brick has the bytes that NanoVDB itself writes of trees in memory, "
    "with tiles of any size and many nodes") {
  if (io::kVdbAbsent) return test::skip(io::kVdbAbsent);
  const fs::path dir = test::scratch_dir("vdb-nano");
  const auto program = find_program("quarry-vdb", "QUARRY_VDB", "reads and writes volumes");
  REQUIRE(program);
  // The same program with the library's own writer, and with memory for it.
  const fs::path whole = dir / "whole";
  std::ofstream(whole) << "#!/bin/sh\nshift 2\nfor word; do\n  shift\n"
                          "  [ \"$word\" = write-nano ] && word=write-nano-whole\n  set -- \"$@\" \"$word\"\ndone\n"
                       << "exec '" << program->string() << "' --memory 8000000000 \"$@\"\n";
  fs::permissions(whole, fs::perms::owner_all);
  const Scene colored = colored_scene(), scattered = scattered_scene();
  const auto sponge = generate("menger", 81, 0);
  REQUIRE(sponge);
  int number = 0;
  for (const Scene* scene : {&*sponge, &colored, &scattered}) {
    const fs::path ours = dir / (std::to_string(number) + ".nvdb"), theirs = dir / (std::to_string(number) + "t.nvdb");
    INFO(number++);
    REQUIRE(io::write_scene(*scene, ours));
    const char* set = std::getenv("QUARRY_VDB");
    const std::string before = set ? set : "";
    ::setenv("QUARRY_VDB", whole.c_str(), 1);
    const auto written = io::write_scene(*scene, theirs);
    set ? ::setenv("QUARRY_VDB", before.c_str(), 1) : ::unsetenv("QUARRY_VDB");
    REQUIRE(written);
    CHECK((test::file_bytes(ours) == test::file_bytes(theirs)));
  }
}

TEST_CASE("vdb: a NanoVDB file of any codec and number of bits is the scene that NanoVDB itself reads of it") {
  if (io::kVdbAbsent) return test::skip(io::kVdbAbsent);
  if (std::system("command -v vdb_tool >/dev/null") != 0) return test::skip("no vdb_tool (libopenvdb-tools)");
  const fs::path dir = test::scratch_dir("vdb-nano-tool");
  const fs::path nano = dir / "a.nvdb", same = dir / "a.vdb";
  const auto compare = [&] {
    printed("vdb_tool -read '" + nano.string() + "' -write '" + same.string() + "'");
    REQUIRE(fs::exists(same));
    const auto a = io::read_vdb(nano, {}), b = io::read_vdb(same, {});
    INFO(message_of(a) << message_of(b));
    REQUIRE(a);
    REQUIRE(b);
    REQUIRE(a->volumes.size() == b->volumes.size());
    for (size_t i = 0; i < a->volumes.size(); ++i) {
      CHECK(a->volumes[i].name == b->volumes[i].name);
      CHECK(a->volumes[i].bricks == b->volumes[i].bricks);
    }
    CHECK(a->palette == b->palette);
    for (const char* key : {"vdb.grids", "vdb.origin", "voxel_size"}) CHECK(a->metadata.at(key) == b->metadata.at(key));
    fs::remove(nano);
    fs::remove(same);
  };
  for (const char* packed : {"codec=none bits=32", "codec=zip bits=16", "codec=blosc bits=8", "codec=blosc bits=N"}) {
    INFO(packed);
    printed(std::string("vdb_tool -sphere dim=40 name=ball -write ") + packed + " '" + nano.string() + "'");
    REQUIRE(fs::exists(nano));
    compare();
  }
  REQUIRE(io::write_scene(scattered_scene(), nano));
  compare();
}

TEST_CASE("vdb: written from a world of which little is in memory at once, a file has the bytes of the whole scene") {
  if (io::kVdbAbsent) return test::skip(io::kVdbAbsent);
  const fs::path dir = test::scratch_dir("vdb-write-regions");
  const Scene scene = scattered_scene();
  REQUIRE(io::write_scene(scene, dir / "world.quarry"));
  std::vector<Box3> bounds;
  for (const Volume& volume : scene.volumes) bounds.push_back(volume.bricks.bounds());
  auto store = io::StoreReader::open(dir / "world.quarry");
  REQUIRE(store);
  for (const std::string extension : {".vdb", ".nvdb"}) {
    INFO(extension);
    const fs::path all = dir / ("whole" + extension), parts = dir / ("parts" + extension);
    REQUIRE(io::write_scene(scene, all));
    const auto whole = io::read_scene(all);
    REQUIRE(whole);
    const auto before = flatten(scene, true), after = flatten(*whole, true);
    REQUIRE(before);
    REQUIRE(after);
    if (extension == ".vdb") CHECK(*before == *after);
    CHECK(before->voxel_count() == after->voxel_count());
    uint64_t before_less_room = 0;
    for (const uint64_t room_mib : {4096, 68, 66}) {
      const auto voxels = io::VisibleRegions::of(*store, bounds, [&] { return room_mib << 20; }, {});
      REQUIRE(voxels);
      REQUIRE(io::write_vdb_regions(*voxels, parts, {}));
      CHECK(voxels->read_regions() > before_less_room);
      before_less_room = voxels->read_regions();
      CHECK((test::file_bytes(parts) == test::file_bytes(all)));
      fs::remove(parts);
    }
    fs::remove(all);
    CHECK(std::distance(fs::directory_iterator(dir), {}) == 1);
    const auto little = io::VisibleRegions::of(*store, bounds, [] { return uint64_t(50) << 20; }, {});
    REQUIRE(little);
    const auto refused = io::write_vdb_regions(*little, parts, {});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::out_of_memory);
    CHECK_THAT(refused.error().message, Catch::Contains("takes at least 65 MiB, and 50 MiB are left"));
    CHECK(std::distance(fs::directory_iterator(dir), {}) == 1);
  }
}

#if __has_include(<blosc.h>)
namespace {

// Two leaves of the first node of 128^3 change places, and what points to them.
void disorder(Bytes& grid) {
  using Lower = vdb::nano::NodeData<float, 4>;
  using Leaf = vdb::nano::LeafData<float>;
  vdb::nano::TreeData tree;
  std::memcpy(&tree, grid.data() + sizeof(vdb::nano::GridData), sizeof tree);
  uint8_t* const lower = grid.data() + sizeof(vdb::nano::GridData) + tree.node_at[1];
  std::vector<uint32_t> children;
  const auto node = std::make_unique<test::NanoPart<Lower>>();
  std::memcpy(node->operator->(), lower, sizeof(Lower));
  for (uint32_t j = 0; j < Lower::kPlaces && children.size() < 2; ++j)
    if ((*node)->has_child(j)) children.push_back(j);
  REQUIRE(children.size() == 2);
  uint8_t* const leaves[] = {lower + (*node)->places[children[0]].child, lower + (*node)->places[children[1]].child};
  std::swap_ranges(leaves[0], leaves[0] + sizeof(Leaf), leaves[1]);
  const auto place_of = [&](uint32_t j) { return lower + offsetof(Lower, places) + j * 8; };
  std::swap_ranges(place_of(children[0]), place_of(children[0]) + 8, place_of(children[1]));
}

}  // namespace

TEST_CASE("vdb: a NanoVDB file is the same scene by any codec, and whole if its nodes are not in the tree's order") {
  if (io::kVdbAbsent) return test::skip(io::kVdbAbsent);
  const fs::path dir = test::scratch_dir("vdb-nano-codecs");
  REQUIRE(io::write_scene(scattered_scene(), dir / "a.nvdb"));
  const auto scene = io::read_vdb(dir / "a.nvdb", {});
  REQUIRE(scene);
  const Bytes zip = test::file_bytes(dir / "a.nvdb");
  const vdb::NanoInput file = test::nano_input(zip);
  std::vector<Bytes> grids;
  for (const vdb::NanoGrid& grid : vdb::nano_grids(file)) {
    grids.emplace_back(grid.bytes);
    vdb::NanoBytes::open(file, grid)->read(grids.back().data(), grid.bytes);
  }
  REQUIRE(grids.size() == 2);
  test::write_bytes(dir / "none.nvdb", test::nano_file(grids, vdb::nano::Codec::none));
  test::write_bytes(dir / "blosc.nvdb", test::nano_file(grids, vdb::nano::Codec::blosc));
  disorder(grids[0]);
  test::write_bytes(dir / "disorder.nvdb", test::nano_file(grids, vdb::nano::Codec::zip));
  const Bytes disordered = test::file_bytes(dir / "disorder.nvdb");
  CHECK_FALSE(
      vdb::NanoCursor<float>::in_order(test::nano_input(disordered), vdb::nano_grids(test::nano_input(disordered))[0]));
  for (const char* name : {"none.nvdb", "blosc.nvdb", "disorder.nvdb"}) {
    INFO(name);
    const auto same = io::read_vdb(dir / name, {});
    INFO(message_of(same));
    REQUIRE(same);
    REQUIRE(same->volumes.size() == scene->volumes.size());
    CHECK(same->volumes[0].bricks == scene->volumes[0].bricks);
    CHECK(same->palette == scene->palette);
    CHECK(same->metadata == scene->metadata);
  }
}
#endif

TEST_CASE("vdb: region by region, a file is the same scene as whole, whatever grids it has") {
  if (io::kVdbAbsent) return test::skip(io::kVdbAbsent);
  const fs::path dir = test::scratch_dir("vdb-regions");
  REQUIRE(io::write_scene(colored_scene(), dir / "own.vdb"));
  REQUIRE(io::write_scene(colored_scene(), dir / "colours.nvdb"));
  // Without the list of materials, the colours are those of the grid "Cd".
  Bytes bytes = test::file_bytes(dir / "own.vdb");
  const std::string key = "quarry_materials";
  const auto name = std::search(bytes.begin(), bytes.end(), key.begin(), key.end());
  REQUIRE(name != bytes.end());
  *name = 'Q';
  test::write_bytes(dir / "colours.vdb", bytes);
  std::vector<fs::path> files{dir / "own.vdb", dir / "colours.nvdb", dir / "colours.vdb"};
  if (const fs::path data = test::data_dir(); data.empty()) test::skip("the real .vdb files");
  else
    for (const char* real : {"bunny_fog128", "bunny_ls64_half_zip", "two_grids"})
      files.push_back(data / "vdb" / (real + std::string(".vdb")));
  for (const fs::path& file : files) {
    INFO(file);
    for (const char* up : {"", "z"}) {
      io::ReadOptions options;
      options.up = up;
      const auto whole = io::read_vdb(file, options);
      INFO(message_of(whole));
      REQUIRE(whole);
      Scene parts;
      RegionSink sink;
      sink.beside = dir / "out";
      sink.available_bytes = [] { return uint64_t(1) << 20; };
      sink.begin = [&](const Scene& scene) -> Result<void> {
        parts = scene;
        return {};
      };
      sink.take = [&](uint32_t volume, BrickMap&& bricks) -> Result<void> {
        for (const auto& [at, brick] : bricks.bricks()) {
          CHECK_FALSE(parts.volumes[volume].bricks.find(at));
          parts.volumes[volume].bricks.put(at, brick.copy());
        }
        return {};
      };
      const auto done = io::read_vdb_regions(file, options, sink);
      REQUIRE(done);
      CHECK(done->regions >= whole->volumes.size());
      REQUIRE(parts.volumes.size() == whole->volumes.size());
      for (size_t i = 0; i < parts.volumes.size(); ++i) {
        CHECK(parts.volumes[i].name == whole->volumes[i].name);
        CHECK(parts.volumes[i].bricks == whole->volumes[i].bricks);
        const Instance &part = parts.instances[i], &all = whole->instances[i];
        CHECK(part.volume == all.volume);
        CHECK(part.offset == all.offset);
        CHECK(part.rotation == all.rotation);
      }
      CHECK(parts.palette == whole->palette);
      CHECK(parts.metadata == whole->metadata);
    }
  }
}

TEST_CASE("vdb: damaged files and files that are something else are one error each, and the reader's limits hold") {
  if (io::kVdbAbsent) return test::skip(io::kVdbAbsent);
  const fs::path dir = test::scratch_dir("vdb-damage");
  REQUIRE(io::write_scene(colored_scene(), dir / "a.vdb"));
  REQUIRE(io::write_scene(colored_scene(), dir / "a.nvdb"));
  for (const char* name : {"a.vdb", "a.nvdb"}) {
    const Bytes whole = test::file_bytes(dir / name);
    std::mt19937 random(7);
    for (int round = 0; round < 24; ++round) {
      Bytes bytes = whole;
      if (round < 8) bytes.resize(whole.size() * size_t(round) / 8);
      else
        for (int n = 0; n < 8; ++n) bytes[random() % (round < 16 ? 600 : bytes.size())] = uint8_t(random());
      const fs::path file = dir / ("broken" + fs::path(name).extension().string());
      test::write_bytes(file, bytes);
      io::ReadOptions options;
      options.time_limit_s = 20;
      options.memory_limit_bytes = uint64_t(256) << 20;
      const auto scene = io::read_scene(file, options);
      if (scene) continue;  // damage to a value or a name
      REQUIRE_THAT(scene.error().message, Catch::StartsWith(file.string()));
      REQUIRE(scene.error().message.size() > file.string().size() + 10);
    }
  }
  std::ofstream(dir / "text.vdb") << "this is no volume";
  CHECK_FALSE(io::read_scene(dir / "text.vdb"));
  CHECK_FALSE(io::write_vdb(Scene{}, dir / "empty.vdb", {}));
  CHECK_FALSE(fs::exists(dir / "empty.vdb"));
}

}  // namespace vdb_test
