// SPDX-License-Identifier: Apache-2.0
// formats.cpp - the table of file formats, and the one way in and out for a program that does not care which it is.
#include "voxel/io/formats.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "voxel/io/grids/binvox.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/names.hpp"
#include "voxel/io/pictures/heightmap.hpp"
#include "voxel/io/minecraft/schematic.hpp"
#include "voxel/io/pictures/write.hpp"
#include "voxel/io/points/cloud.hpp"
#include "voxel/io/grids/qb.hpp"
#include "voxel/io/grids/raw.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/salvage.hpp"
#include "voxel/io/quarry/tables.hpp"
#include "voxel/io/grids/vdb.hpp"
#include "voxel/io/meshes/formats.hpp"
#include "voxel/io/grids/write.hpp"
#include "voxel/io/vox/read.hpp"
#include "voxel/io/vox/write.hpp"
#include "base/suggest.hpp"

namespace quarry::io {
namespace {

constexpr size_t kHeadBytes = 64;
constexpr uint64_t kMaxVoxFileBytes = (uint64_t(1) << 32) + 20;  // a chunk's length has 32 bits

template <size_t N>
bool begins_with(std::span<const uint8_t> head, const char (&text)[N]) {  // the terminating zero counts where it is written out
  return head.size() >= N - 1 && std::memcmp(head.data(), text, N - 1) == 0;
}

bool is_png(std::span<const uint8_t> head) { return begins_with(head, "\x89PNG\r\n\x1a\n"); }

// What a world beside a file of its own name is read with.
void note_companions(const std::filesystem::path& file, const ReadOptions& options) {
  for (const char* suffix : {"-wal", "-journal"}) options.note_asked_for(file.string() + suffix);
}

Result<Scene> read_quarry(const std::filesystem::path& file, const ReadOptions& options) {
  note_companions(file, options);
  // One that is smaller has no more than some thousand bricks, however densely it is packed.
  constexpr uintmax_t kCountedFrom = uintmax_t(1) << 14;
  std::error_code error;
  if (const uintmax_t size = std::filesystem::file_size(file, error); options.budget && !error && size >= kCountedFrom) {
    uint64_t bricks = 0;
    if (options.salvage) bricks = size / kBrickMemoryBytes;  // the file itself is read whole
    else if (const auto store = StoreReader::open(file)) bricks = store->bricks();
    QRY_TRY(options.budget->promise(bricks * kBrickMemoryBytes, "reading it"));
  }
  return options.salvage ? salvage_store(file, *options.salvage, options.warnings, options.progress) : Store::read(file, options.progress, nullptr, nullptr, options.warnings);
}

Result<RegionsDone> read_quarry_regions(const std::filesystem::path& file, const ReadOptions& options, const RegionSink& sink) {
  note_companions(file, options);
  QRY_TRY_ASSIGN(auto store, StoreReader::open(file, options.warnings));
  return store.read_all(sink, options.progress);
}

Result<Scene> read_vox(const std::filesystem::path& file, const ReadOptions& options) {
  QRY_TRY_ASSIGN(const auto bytes, read_input(file, kMaxVoxFileBytes, options.progress, options.budget));
  return parse_vox(bytes, options.warnings, options.salvage);
}

Result<RegionsDone> read_vox_in_regions(const std::filesystem::path& file, const ReadOptions& options, const RegionSink& sink) {
  return read_vox_regions(file, kMaxVoxFileBytes, options.warnings, options.progress, sink);
}

constexpr const char* kQuarryExtensions[] = {"quarry"};
constexpr const char* kVoxExtensions[] = {"vox"};
constexpr const char* kBinvoxExtensions[] = {"binvox"};
constexpr const char* kRawExtensions[] = {"raw", "nrrd"};
constexpr const char* kQbExtensions[] = {"qb"};
constexpr const char* kQbclExtensions[] = {"qbcl"};
constexpr const char* kHeightmapExtensions[] = {"png"};
constexpr const char* kMinecraftExtensions[] = {"schem", "litematic"};
constexpr const char* kLasExtensions[] = {"las"};
constexpr const char* kVdbExtensions[] = {"vdb"};
constexpr const char* kNvdbExtensions[] = {"nvdb"};
constexpr const char* kXyzExtensions[] = {"xyz", "asc"};
const Format kOwnFormats[] = {
    {"quarry", "Quarry world", kQuarryExtensions, [](std::span<const uint8_t> head) { return begins_with(head, "SQLite format 3\0"); }, read_quarry, Store::save, kKeepsAll, true, nullptr,
     read_quarry_regions, nullptr, true},
    {"vox", "MagicaVoxel scene", kVoxExtensions, [](std::span<const uint8_t> head) { return begins_with(head, "VOX "); }, read_vox, write_vox, kKeepsAll, true, nullptr,
     read_vox_in_regions, nullptr, true},
    {"binvox", "binvox occupancy", kBinvoxExtensions, [](std::span<const uint8_t> head) { return begins_with(head, "#binvox"); }, read_binvox, write_binvox, 0, false, nullptr, read_binvox_regions,
     write_binvox_regions, true},
    {"raw", "raw volume with NRRD header", kRawExtensions, [](std::span<const uint8_t> head) { return begins_with(head, "NRRD000"); }, read_raw, write_raw, kKeepsColours, false, nullptr, read_raw_regions,
     write_raw_regions},
    {"qb", "Qubicle matrices", kQbExtensions, looks_like_qb, read_qb, nullptr, 0, false, nullptr, read_qb_regions},
    {"qbcl", "Qubicle project", kQbclExtensions, [](std::span<const uint8_t> head) { return begins_with(head, "QBCL"); }, read_qbcl, nullptr, 0, false, nullptr, read_qbcl_regions},
    {"heightmap", "Height map read, view from above written", kHeightmapExtensions, is_png, read_heightmap, write_top_view, kKeepsColours, false, nullptr, read_heightmap_regions},
    {"minecraft", "Minecraft schematic or litematic", kMinecraftExtensions, nullptr, read_minecraft, nullptr, 0, false, nullptr, read_minecraft_regions},
    {"las", "LAS point cloud", kLasExtensions, [](std::span<const uint8_t> head) { return begins_with(head, "LASF"); }, read_las, nullptr, 0, false, nullptr, read_las_regions},
    {"xyz", "XYZ point cloud", kXyzExtensions, nullptr, read_xyz, nullptr, 0, false, nullptr, read_xyz_regions},
    {"vdb", "OpenVDB volume", kVdbExtensions, [](std::span<const uint8_t> head) { return begins_with(head, " BDV\0\0\0\0"); }, read_vdb, write_vdb,
     kKeepsColours | kKeepsSurfaces | kKeepsMaterialNames, false, kVdbAbsent},
    {"nvdb", "NanoVDB volume", kNvdbExtensions, [](std::span<const uint8_t> head) { return begins_with(head, "NanoVDB"); }, read_vdb, write_vdb, kKeepsColours, false, kVdbAbsent},
};

// "did you mean .vox?", or the list of what there is.
std::string advice(const std::string& extension, bool writing) {
  std::string all;
  std::vector<std::string> known;
  for (const Format& f : formats()) {
    if (writing ? !f.write : !f.read) continue;
    for (const char* e : f.extensions) {
      all += std::string(all.empty() ? "." : ", .") + e;
      known.emplace_back(e);
    }
  }
  const std::string nearest = nearest_name(extension, known);
  return nearest.empty() ? std::string(writing ? "can be written: " : "can be read: ") + all : "did you mean ." + nearest + "?";
}

std::string unknown_extension(const std::string& extension) {
  return extension.empty() ? std::string("the name has no extension that says which format it is; ") : "unknown format '." + extension + "'; ";
}

const Format* by_extension(const std::string& extension) {
  for (const Format& f : formats())
    if (std::any_of(f.extensions.begin(), f.extensions.end(), [&](const char* e) { return extension == e; })) return &f;
  return nullptr;
}

Error named(const std::filesystem::path& file, Error error) {
  const std::string prefix = file.string() + ": ";
  if (error.message.compare(0, prefix.size(), prefix) != 0) error.message.insert(0, prefix);
  return error;
}

Result<const Format*> find_for_reading(const std::filesystem::path& file) {
  QRY_TRY_ASSIGN(const auto head, read_file_head(file, kHeadBytes));
  const std::string extension = extension_of(file);
  const Format* named_so = by_extension(extension);
  for (const Format& f : formats()) {
    if (!f.sniff || !f.sniff(head)) continue;
    // Some small numbers are no magic: a raw grid may begin with those of a .qb file.
    if (f.sniff == looks_like_qb && named_so && named_so->read) return named_so;
    return &f;
  }
  if (named_so) return named_so;
  return fail(ErrorCode::unsupported, unknown_extension(extension) + advice(extension, false));
}

}  // namespace

std::span<const Format> formats() {
  static const std::vector<Format> all = [] {
    std::vector<Format> list(std::begin(kOwnFormats), std::end(kOwnFormats));
    const auto meshes = mesh_formats();
    list.insert(list.end(), meshes.begin(), meshes.end());
    return list;
  }();
  return all;
}

Result<const Format*> format_for_reading(const std::filesystem::path& file) {
  auto format = find_for_reading(file);
  if (format && !(*format)->read) format = fail(ErrorCode::unsupported, std::string((*format)->title) + " files can be written, but not read");
  return format.map_error([&](Error e) { return named(file, std::move(e)); });
}

Result<const Format*> format_for_writing(const std::filesystem::path& file) {
  const std::string extension = extension_of(file);
  const Format* format = by_extension(extension);
  if (!format) return tl::unexpected(named(file, {ErrorCode::unsupported, unknown_extension(extension) + advice(extension, true)}));
  if (!format->write)
    return tl::unexpected(named(file, {ErrorCode::unsupported, std::string(format->title) + " files (." + extension + ") are not written; " + advice("", true)}));
  return format;
}

Result<Scene> read_scene(const std::filesystem::path& file, const ReadOptions& options) {
  QRY_TRY_ASSIGN(const auto format, format_for_reading(file));
  try {
    auto scene = format->read(file, options);
    if (!scene) return tl::unexpected(named(file, scene.error()));
    scene->metadata.try_emplace("source_format", format->name);
    scene->metadata.try_emplace("source_file", file.filename().string());
    return scene;
  } catch (const std::bad_alloc&) {
    return tl::unexpected(named(file, {ErrorCode::out_of_memory, "not enough memory to read it"}));
  }
}

Result<RegionsDone> read_scene_regions(const std::filesystem::path& file, const ReadOptions& options, const RegionSink& sink) {
  QRY_TRY_ASSIGN(const auto format, format_for_reading(file));
  if (!format->read_regions) return fail(ErrorCode::unsupported, file.string() + ": " + format->title + " files are not read region by region");
  RegionSink named_sink = sink;
  named_sink.begin = [&](const Scene& scene) {
    Scene with_source = scene;  // no bricks: small
    with_source.metadata.try_emplace("source_format", format->name);
    with_source.metadata.try_emplace("source_file", file.filename().string());
    return sink.begin(with_source);
  };
  try {
    return format->read_regions(file, options, named_sink).map_error([&](Error e) { return named(file, std::move(e)); });
  } catch (const std::bad_alloc&) {
    return tl::unexpected(named(file, {ErrorCode::out_of_memory, "not enough memory to read it, even region by region"}));
  }
}

Result<void> write_scene(const Scene& scene, const Destination& to, const Progress& progress) {
  const std::filesystem::path& file = to.file;
  QRY_TRY_ASSIGN(const auto format, format_for_writing(file));
  try {
    return format->write(scene, to, progress).map_error([&](Error e) { return named(file, std::move(e)); });
  } catch (const std::bad_alloc&) {
    return tl::unexpected(named(file, {ErrorCode::out_of_memory, "not enough memory to write it"}));
  }
}

}  // namespace quarry::io
