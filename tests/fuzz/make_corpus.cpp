// SPDX-License-Identifier: Apache-2.0
// make_corpus.cpp - writes the fuzzers' first inputs: small files that contain a little of everything.
#include <draco/compression/encode.h>
#include <draco/mesh/triangle_soup_mesh_builder.h>
#include <meshoptimizer.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "tests/file_bytes.hpp"
#include "tests/voxel/foreign/gltf_seeds.hpp"
#include "tests/voxel/foreign/nano_seeds.hpp"
#include "tests/voxel/foreign/ply_builder.hpp"
#include "tests/voxel/io/grids/binvox_seeds.hpp"
#include "tests/voxel/io/grids/qb_seeds.hpp"
#include "tests/voxel/io/grids/qbcl_seeds.hpp"
#include "tests/voxel/io/grids/raw_seeds.hpp"
#include "tests/voxel/io/minecraft/schematic_seeds.hpp"
#include "tests/voxel/io/pictures/heightmap_seeds.hpp"
#include "tests/voxel/io/points/cloud_seeds.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"
#include "voxel/foreign/pipe/mesh_stream.hpp"
#include "voxel/foreign/pipe/voxel_stream.hpp"
#include "voxel/io/quarry/store.hpp"

using namespace quarry;
using test::file_bytes, test::VoxBuilder, test::write_bytes;
namespace fs = std::filesystem;

namespace {

void vox_files(const fs::path& dir) {
  const auto dot = [] { return VoxBuilder(200).model(2, 3, 4, {{0, 0, 0, 1}, {1, 2, 3, 255}}); };
  write_bytes(dir / "plain.vox", dot().bytes());
  VoxBuilder::Bytes own_content = dot().bytes();  // MAIN calls its chunks its own content
  std::swap_ranges(own_content.begin() + 12, own_content.begin() + 16, own_content.begin() + 16);
  write_bytes(dir / "own-content.vox", own_content);
  write_bytes(dir / "old-animation.vox", dot().model(1, 1, 1, {}).chunk("PACK", {2, 0, 0, 0}).bytes());
  VoxBuilder::Bytes matt;
  for (const int64_t v : {9, 1, 0x3f000000, 127, 0, 0, 0, 0, 0, 0, 0}) VoxBuilder::put(matt, v);
  write_bytes(dir / "materials.vox",
              dot()
                  .palette({{1, 2, 3, 4}})
                  .dict_chunk("MATL", 1, {{"_type", "_metal"}, {"_metal", "0.5"}, {"_rough", "0.1"}})
                  .dict_chunk("MATL", 2, {{"_type", "_glass"}, {"_alpha", "0.5"}, {"_ri", "1.3"}})
                  .dict_chunk("MATL", 3, {{"_type", "_emit"}, {"_emit", "0.9"}, {"_flux", "2"}})
                  .chunk("MATT", matt)
                  .chunk("IMAP", VoxBuilder::Bytes(256, 7))
                  .bytes());
  VoxBuilder graph = dot().model(1, 1, 1, {{0, 0, 0, 9}});
  graph.transform(0, 1, {{}}, {{"_name", "root"}}).group(1, {2, 4, 2}, {{"_hidden", "1"}});
  graph.transform(2, 3, {{{"_r", "40"}, {"_t", "-5 3 2"}, {"_f", "0"}}, {{"_f", "7"}}}, {{"_name", "first"}}, 0)
      .shape(3, {{0, {{"_f", "0"}}}, {1, {{"_f", "4"}}}});
  graph.transform(4, 5, {{{"_t", "1 0 0"}}}, {{"_hidden", "1"}}, 1).shape(5, {{1, {}}});
  graph.dict_chunk("LAYR", 0, {{"_name", "zero"}})
      .dict_chunk("LAYR", 1, {{"_hidden", "1"}})
      .dict_chunk("rCAM", 0, {{"_focus", "0 1 2"}, {"_angle", "30 45 0"}, {"_radius", "9"}, {"_fov", "45"}});
  write_bytes(dir / "graph.vox", graph.chunk("rOBJ", {0, 0, 0, 0}).chunk("NOTE", {1}).bytes());
}

bool run(sqlite3* db, const std::string& sql) {
  return sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

// Writes databases as edits leave them, in pages of 512 bytes, because fuzzers mostly try small inputs.
bool store_files(const fs::path& dir) {
  const fs::path file = dir / "tmp.quarry", small = dir / "small.quarry";
  const auto add = [&](const char* name, uint8_t which, const std::vector<uint8_t>& bytes, size_t count = 0) {
    std::vector<uint8_t> input{which, uint8_t(count), uint8_t(count >> 8)};
    input.insert(input.end(), bytes.begin(), bytes.end());
    write_bytes(dir / name, input);
  };
  sqlite3* db = nullptr;
  const auto shrink = [&] {
    fs::remove(small);
    const bool done = sqlite3_open(file.c_str(), &db) == SQLITE_OK &&
                      run(db, "PRAGMA page_size=512; VACUUM INTO '" + small.string() + "'");
    sqlite3_close(db);
    return done;
  };
  if (!io::Store::save(Scene{}, file) || !shrink()) return false;
  add("empty", 0, file_bytes(small));
  test::EditScenario scenario;
  Scene scene = scenario.scene();
  scene.layers = {{"layer", true}};
  scene.cameras.resize(1);
  if (!io::Store::save(scene, file)) return false;
  {
    auto store = io::Store::open(file);
    if (!store) return false;
    for (int i = 0; i < 4; ++i)
      if (!scenario.next(&*store)) return false;
  }
  if (!shrink()) return false;
  add("story", 0, file_bytes(small));
  // A stroke of two edits and a change of the palette.
  {
    auto store = io::Store::open(file);
    if (!store || !scenario.next(&*store)) return false;
    scene = scenario.scene();
    UndoRecord more;
    more.label = "more";
    more.continues = true;
    Palette other = scene.palette;
    other.materials[2].roughness = 0.5f;
    other.names[200] = "lamp";
    const UndoRecord palette = plan_palette_change(scene.palette, other);
    scene.palette = other;
    if (!store->commit_edit(scene, more) || !store->commit_edit(scene, palette)) return false;
  }
  if (!shrink()) return false;
  add("steps", 0, file_bytes(small));
  // Rows of bricks that are full of one material, in a record and in chunks.
  {
    auto store = io::Store::open(file);
    if (!store) return false;
    BrickMap wanted = scene.volumes[0].bricks;
    for (int32_t z = -2; z < 9; ++z) wanted.put({3, 1, z}, SharedBrick::full(z < 4 ? 7 : 8));
    const UndoRecord row = test::make_record(scene, 0, wanted, "row");
    test::apply_record(&scene, row, true);
    if (!store->commit_edit(scene, row)) return false;
  }
  if (!shrink()) return false;
  add("rows", 0, file_bytes(small));
  // The database with its sidecar in the middle of a change: first SQLite's rollback journal, then its log.
  for (const char* mode : {"delete", "wal"}) {
    if (sqlite3_open(small.c_str(), &db) != SQLITE_OK ||
        !run(db, std::string("PRAGMA journal_mode=") + mode +
                     "; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=2; PRAGMA cache_spill=2"))
      return false;
    const bool wal = mode[0] == 'w';
    if (!run(db, wal ? "DELETE FROM chunks WHERE volume = 0 AND x < 0; UPDATE palette SET name = 'x' WHERE id = 3"
                     : "BEGIN; DELETE FROM chunks WHERE volume = 0; UPDATE palette SET name = 'y'"))
      return false;
    std::vector<uint8_t> bytes = file_bytes(small);
    const std::vector<uint8_t> sidecar = file_bytes(small.string() + (wal ? "-wal" : "-journal"));
    bytes.insert(bytes.end(), sidecar.begin(), sidecar.end());
    add(mode, 4, bytes, sidecar.size() / 8);
    if (wal) {  // the log with the file as it would be after closing, and a log with another number than the file's
      std::vector<uint8_t> closed = bytes;
      closed[18] = closed[19] = 1;
      add("closed", 4, closed, sidecar.size() / 8);
      const std::vector<uint8_t> file_then = file_bytes(small);
      if (!run(db, "UPDATE state SET value = value + 1 WHERE key = 'log_number'")) return false;
      const std::vector<uint8_t> other = file_bytes(small.string() + "-wal");
      std::vector<uint8_t> numbered = file_then;
      numbered.insert(numbered.end(), other.begin(), other.end());
      add("numbered", 4, numbered, other.size() / 8);
    }
    if (!wal && !run(db, "ROLLBACK")) return false;
    sqlite3_close(db);
  }
  {  // in the middle of the last step
    auto store = io::Store::open(file);
    if (!store) return false;
    const uint64_t length = store->history_length();
    const auto rest = [&]() -> Result<io::Store::Later> {
      io::Store::Later later;
      later.position = length;
      return later;
    };
    const auto bricks = [&](uint32_t, std::span<const Int3>) -> Result<const BrickMap*> {
      return &scene.volumes[0].bricks;
    };
    if (!store->commit_later(scene,
                             {length, io::all_of({}), rest, bricks, io::UnfinishedStep{int64_t(length) - 1, true}}))
      return false;
  }
  if (!shrink()) return false;
  add("unfinished", 0, file_bytes(small));
  fs::remove(small);
  fs::remove(file);
  // Chunks and parts in the layout of docs/formats.md: two bricks of one voxel each; one change of one brick.
  std::vector<uint8_t> chunk{2, 0}, part{1, 0, 0, 0};
  for (const uint8_t place : {uint8_t(3), uint8_t(200)}) {
    chunk.insert(chunk.end(), {place, 0, 1});
    chunk.insert(chunk.end(), 63, 0);
    chunk.push_back(place);
  }
  part.insert(part.end(), 12, 1);
  part.insert(part.end(), 64, 0);
  part.push_back(1);
  part.insert(part.end(), 63, 0);
  part.push_back(42);
  add("chunk", 1, chunk, 2);
  add("part", 2, part, 1);
  // The same, of full bricks: one of a chunk; a row of three that come to be.
  std::vector<uint8_t> row{1, 0, 0, 0x80};
  row.insert(row.end(), 12, 1);
  row.insert(row.end(), {3, 0, 0, 0, 0});
  row.insert(row.end(), 64, 0);
  row.push_back(42);
  add("full_chunk", 1, {1, 0x80, 200, 0, 42}, 1);
  add("row_part", 2, row, 1);
  std::vector<uint8_t> materials{1, 0, 0, 0, 12};
  for (int side = 0; side < 2; ++side) {
    materials.insert(materials.end(), 4 + 7 * 4, uint8_t(side));
    materials.insert(materials.end(), {1, 0, 0, 0, 'n'});
  }
  add("materials", 2, materials, 1);
  add("frame", 3, {0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x03, 0x19, 0x00, 0x00, 1, 2, 3}, 3);
  return true;
}

// The first byte selects the kind: stream_fuzz.cpp.
void stream_files(const fs::path& dir) {
  fs::create_directories(dir);
  std::vector<uint8_t> bytes;
  const ByteSink sink = [&](std::span<const uint8_t> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return true;
  };
  Mesh mesh;
  mesh.positions = {0, 0, 0, 1, 0, 0, 0, 1, 0};
  mesh.uvs = {0, 0, 1, 0, 0, 1};
  mesh.colors.assign(12, 200);
  mesh.indices = {0, 1, 2};
  mesh.triangle_material = {0};
  mesh.images.push_back({1, 1, {1, 2, 3, 4}});
  mesh.materials.emplace_back();
  mesh.materials[0].base_color_image = 0;
  bytes = {1};
  write_mesh_stream(mesh, {"a warning"}, {"/there/a picture.png"}, sink);
  write_bytes(dir / "mesh", bytes);
  bytes = {1};
  write_error_stream({ErrorCode::malformed_input, "an error"}, {}, {}, sink);
  write_bytes(dir / "error", bytes);
  for (const uint32_t values : {0u, 1u, 4u}) {
    bytes = {0};
    io::VoxelStreamWriter stream(sink);
    stream.metadata("key", "text");
    stream.palette(Palette::standard());
    io::StreamGrid grid;
    grid.record.value_bytes = values;
    stream.grid(grid);
    stream.brick({1, -2, 3}, BrickMask{5}, std::vector<uint8_t>(2 * values, 7));
    stream.finish();
    write_bytes(dir / ("voxels" + std::to_string(values)), bytes);
  }
}

using Files = std::vector<std::pair<std::string, std::vector<uint8_t>>>;

void seeds(const fs::path& dir, const Files& files) {
  fs::create_directories(dir);
  for (const auto& [name, bytes] : files) write_bytes(dir / name, bytes);
}

// Adds the first byte that selects the kind of an input: heightmap_fuzz.cpp, raw_fuzz.cpp, text_fuzz.cpp.
Files kind(uint8_t which, Files files) {
  for (auto& [name, bytes] : files) bytes.insert(bytes.begin(), which);
  return files;
}

void picture_files(const fs::path& dir) {
  seeds(dir, kind(0, test::heightmap_seeds()));
  // A picture with a stated width of 839 million pixels.
  seeds(dir, kind(0, {{"wide", {0x89, 'P',  'N', 'G', '\r', '\n', 0x1a, '\n', 0,   0,   0,   13, 'I', 'H', 'D',
                                'R',  0x32, 0,   0,   0x49, 0x44, 0x41, 0x54, 2,   8,   6,   0,  0,   0,   0,
                                0,    0,    0,   0,   0,    0,    0,    'I',  'D', 'A', 'T', 0,  0,   0,   0}}}));
  // Width, height, bits, colour type, interlaced. Then come the rows, each after the number of its filter.
  seeds(dir, kind(1, {{"rows-grey", {3, 2, 8, 0, 0, 0, 1, 2, 3, 1, 4, 5, 6}},
                      {"rows-palette", {4, 2, 8, 3, 0, 0, 1, 2, 3, 0, 2, 3, 2, 1, 0}},
                      {"rows-two-bits", {9, 3, 2, 3, 0, 0, 0x1b, 0x1b, 0x40, 1, 1, 2, 3, 2, 4, 5, 6}},
                      {"rows-deep", {2, 2, 16, 4, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 4, 1, 2, 3, 4, 5, 6, 7, 8}},
                      {"rows-interlaced", {5, 5, 8, 2, 1, 0, 9, 9, 9, 0, 8, 8, 8, 0, 7, 7, 7, 1, 1, 2, 3, 4, 5, 6}}}));
  seeds(dir, kind(3, {{"rows-colours", {2, 2, 8, 6, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 8, 7, 6, 5, 4, 3, 2, 0}}}));
}

// Writes the box in a buffer view compressed by meshopt's codec, and by Draco's.
void compressed_gltf_files(const fs::path& dir) {
  const auto corners = test::box_corners();
  const auto triangles = test::box_triangles();
  for (const char* filter : {"NONE", "EXPONENTIAL"}) {
    std::vector<float> positions;
    for (const auto& corner : corners)
      for (const double value : corner) positions.push_back(float(value));
    std::vector<uint32_t> filtered(positions.size());
    meshopt_encodeFilterExp(filtered.data(), 8, 12, 15, positions.data());
    test::Gltf g = test::gltf_box();
    const auto pack = [&](size_t view, const std::vector<uint8_t>& bytes, const char* mode, size_t count,
                          size_t stride) {
      const size_t packed = g.view(bytes);
      test::GltfJson how = g.json["bufferViews"][packed];
      g.json["bufferViews"].erase(packed);
      how.update({{"mode", mode}, {"count", count}, {"byteStride", stride}});
      if (stride == 12) how["filter"] = filter;
      g.json["bufferViews"][view]["extensions"]["EXT_meshopt_compression"] = how;
    };
    std::vector<uint8_t> vertices(meshopt_encodeVertexBufferBound(8, 12)),
        indices(meshopt_encodeIndexBufferBound(36, 8));
    vertices.resize(meshopt_encodeVertexBuffer(
        vertices.data(), vertices.size(),
        filter[0] == 'N' ? static_cast<const void*>(positions.data()) : filtered.data(), 8, 12));
    indices.resize(meshopt_encodeIndexBuffer(indices.data(), indices.size(), triangles.data(), 36));
    pack(0, vertices, "ATTRIBUTES", 8, 12);
    pack(1, indices, "TRIANGLES", 36, 2);
    write_bytes(dir / (std::string("meshopt-") + filter + ".glb"), g.glb());
  }
  draco::TriangleSoupMeshBuilder builder;
  builder.Start(12);
  const int position = builder.AddAttribute(draco::GeometryAttribute::POSITION, 3, draco::DT_FLOAT32);
  for (uint32_t f = 0; f < 12; ++f) {
    float at[3][3];
    for (size_t k = 0; k < 3; ++k)
      for (size_t c = 0; c < 3; ++c) at[k][c] = float(corners[triangles[f * 3 + k]][c]);
    builder.SetAttributeValuesForFace(position, draco::FaceIndex(f), at[0], at[1], at[2]);
  }
  const auto mesh = builder.Finalize();
  for (const int method : {draco::MESH_SEQUENTIAL_ENCODING, draco::MESH_EDGEBREAKER_ENCODING}) {
    draco::Encoder encoder;
    encoder.SetEncodingMethod(method);
    encoder.SetAttributeQuantization(draco::GeometryAttribute::POSITION, 14);
    draco::EncoderBuffer packed;
    if (!mesh || !encoder.EncodeMeshToBuffer(*mesh, &packed).ok()) continue;
    test::Gltf g = test::gltf_box();
    const auto* bytes = reinterpret_cast<const uint8_t*>(packed.data());
    g.json["meshes"][0]["primitives"][0]["extensions"]["KHR_draco_mesh_compression"] = {
        {"bufferView", g.view({bytes, bytes + packed.size()})}, {"attributes", {{"POSITION", 0}}}};
    write_bytes(dir / ("draco-" + std::to_string(method) + ".glb"), g.glb());
  }
}

void raw_files(const fs::path& dir) {
  seeds(dir, kind(0, test::raw_seeds()));
  const std::string header = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 4 4\nencoding: raw\n\n";
  std::vector<uint8_t> apart(header.begin(), header.end());
  apart.resize(128, '\n');
  seeds(dir, kind(1, {{"apart", apart}}));
  seeds(dir, kind(2, {{"plain", {2, 2, 1, 0, 1, 2, 3}}, {"colours", {1, 2, 1, 9, 8, 7, 255, 1, 2, 3, 0}}}));
}

void text_files(const fs::path& dir) {
  const auto text = [&](const char* name, uint8_t which, const std::string& words) {
    seeds(dir, kind(which, {{name, {words.begin(), words.end()}}}));
  };
  text("script", 0,
       "# a comment\nsphere add 1 2.5 -3 4 7\nbox remove 0 0 0 5 5 5 1\nline paint 1 1 1 9 9 9 2 3\n"
       "undo\ncamera 30 45\ntype two words\nquit\n");
  text("list", 1, "# inputs\n\nhouse_vox\r\nhouse_vox\n two words \n");
  text("resume needs", 2,
       "{\"job\":\"a\",\"hash\":\"b\",\"needs\":{\"files\":[\"t.png\"],\"hash\":\"c\"},\"outputs\":[{\"file\":\"c."
       "glb\",\"bytes\":12,\"time\":-3}]}\n");
  text("resume", 2,
       "{\"job\":\"a\",\"hash\":\"b\",\"outputs\":[{\"file\":\"c.glb\",\"bytes\":12,\"time\":-3}]}\n"
       "{\"job\":\"a\",\"hash\"");
  text("template", 3, "out/{dir}/{{{stem}}}-{index}{part}.{ext}");
  text("head", 4, "ply\nformat ascii 1.0\n");
}

// As nvdb_fuzz.cpp takes them: files as they are, and changes of each: none, the codec, a place in the root, and a
// place and masks of nodes (in the seeds that are not packed).
void nvdb_files(const fs::path& dir) {
  seeds(dir, kind(0, test::nano_seeds()));
  uint8_t which = 1;
  for (const auto& [name, file] : test::nano_seeds()) {
    seeds(dir, kind(which, {{"same " + name, {200, 0, 0, 0, 'n'}},
                            {"codec " + name, {14, 0, 0, 0, 1}},
                            {"root " + name, {0xcc, 3, 0, 7, 32, 0, 0, 0, 0, 0, 0, 0}},
                            {"nodes " + name, {0xe0, 0x24, 0, 7, 0, 8, 0, 0, 0, 0, 0, 0, 0xe0, 0x24, 4, 1, 1, 1}}}));
    which = uint8_t(which + 2);
  }
}

bool all_files(const fs::path& dir) {
  fs::create_directories(dir / "vox");
  fs::create_directories(dir / "store");
  vox_files(dir / "vox");
  seeds(dir / "qb", test::qb_seeds());
  seeds(dir / "qbcl", test::qbcl_seeds());
  nvdb_files(dir / "nvdb");
  seeds(dir / "gltf", test::gltf_seeds());
  compressed_gltf_files(dir / "gltf");
  picture_files(dir / "heightmap");
  seeds(dir / "minecraft", test::minecraft_seeds());
  seeds(dir / "ply", test::ply_seeds());
  seeds(dir / "points", test::points_seeds());
  raw_files(dir / "raw");
  text_files(dir / "text");
  seeds(dir / "binvox", test::binvox_seeds());
  stream_files(dir / "stream");
  return store_files(dir / "store");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: make_corpus FOLDER\n"), 2;
  try {
    return all_files(argv[1]) ? 0 : 1;
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "make_corpus: %s\n", e.what()), 1;
  }
}
