// SPDX-License-Identifier: Apache-2.0
// formats.cpp - the table of file formats, and reading and writing for programs that need not know the format.
#include "voxel/io/formats.hpp"

#include <algorithm>
#include <new>

#include "base/suggest.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/names.hpp"
#include "voxel/io/grids/binvox.hpp"
#include "voxel/io/grids/qb.hpp"
#include "voxel/io/grids/raw.hpp"
#include "voxel/io/grids/vdb.hpp"
#include "voxel/io/meshes/formats.hpp"
#include "voxel/io/minecraft/schematic.hpp"
#include "voxel/io/pictures/heightmap.hpp"
#include "voxel/io/points/cloud.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/vox/read.hpp"

namespace quarry::io {
namespace {

constexpr size_t kHeadBytes = 64;

// The order in which formats are listed, and tried on a file's first bytes. Mesh formats follow.
constexpr const Format* kOwnFormats[] = {
    &kQuarryFormat,    &kVoxFormat,       &kBinvoxFormat, &kRawFormat, &kQbFormat,  &kQbclFormat,
    &kHeightmapFormat, &kMinecraftFormat, &kLasFormat,    &kXyzFormat, &kVdbFormat, &kNvdbFormat,
};

// "did you mean .vox?", or the list of known extensions.
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
  return nearest.empty() ? std::string(writing ? "can be written: " : "can be read: ") + all
                         : "did you mean ." + nearest + "?";
}

std::string unknown_extension(const std::string& extension) {
  return extension.empty() ? std::string("the name has no extension that says which format it is; ")
                           : "unknown format '." + extension + "'; ";
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
    if (!recognises(f, head)) continue;
    if (f.weak_magic && named_so && named_so->read) return named_so;
    return &f;
  }
  if (named_so) return named_so;
  return fail(ErrorCode::unsupported, unknown_extension(extension) + advice(extension, false));
}

}  // namespace

std::span<const Format> formats() {
  static const std::vector<Format> all = [] {
    std::vector<Format> list;
    for (const Format* own : kOwnFormats) list.push_back(*own);
    const auto meshes = mesh_formats();
    list.insert(list.end(), meshes.begin(), meshes.end());
    return list;
  }();
  return all;
}

Result<const Format*> format_for_reading(const std::filesystem::path& file) {
  auto format = find_for_reading(file);
  if (format && !(*format)->read)
    format = fail(ErrorCode::unsupported, std::string((*format)->title) + " files can be written, but not read");
  return format.map_error([&](Error e) { return named(file, std::move(e)); });
}

Result<const Format*> format_for_writing(const std::filesystem::path& file) {
  const std::string extension = extension_of(file);
  const Format* format = by_extension(extension);
  if (!format)
    return tl::unexpected(
        named(file, {ErrorCode::unsupported, unknown_extension(extension) + advice(extension, true)}));
  if (!format->write)
    return tl::unexpected(named(file, {ErrorCode::unsupported, std::string(format->title) + " files (." + extension +
                                                                   ") are not written; " + advice("", true)}));
  return format;
}

void note_source(Scene& scene, const Format& format, const std::filesystem::path& file) {
  scene.metadata.try_emplace("source_format", format.name);
  scene.metadata.try_emplace("source_file", file.filename().string());
}

Result<Scene> read_scene(const std::filesystem::path& file, const ReadOptions& options) {
  QRY_TRY_ASSIGN(const auto format, format_for_reading(file));
  try {
    auto scene = format->read(file, options);
    if (!scene) return tl::unexpected(named(file, scene.error()));
    note_source(*scene, *format, file);
    return scene;
  } catch (const std::bad_alloc&) {
    return tl::unexpected(named(file, {ErrorCode::out_of_memory, "not enough memory to read it"}));
  }
}

Result<RegionsDone> read_scene_regions(const std::filesystem::path& file, const ReadOptions& options,
                                       const RegionSink& sink) {
  QRY_TRY_ASSIGN(const auto format, format_for_reading(file));
  if (!format->read_regions)
    return fail(ErrorCode::unsupported, file.string() + ": " + format->title + " files are not read region by region");
  RegionSink named_sink = sink;
  named_sink.begin = [&](const Scene& scene) {
    Scene with_source = scene;  // no bricks: small
    note_source(with_source, *format, file);
    return sink.begin(with_source);
  };
  try {
    return format->read_regions(file, options, named_sink).map_error([&](Error e) {
      return named(file, std::move(e));
    });
  } catch (const std::bad_alloc&) {
    return tl::unexpected(
        named(file, {ErrorCode::out_of_memory, "not enough memory to read it, even region by region"}));
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
