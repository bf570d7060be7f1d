// format.hpp - the registry of file formats: one row per format, one file per reader or writer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "hashgrid/result.hpp"
#include "voxel/progress.hpp"
#include "voxel/scene.hpp"

namespace quarry::io {

struct ReadOptions {
  int32_t resolution = 256;      // meshes: voxels along the longest edge of the bounds
  double voxel_size = 0;         // meshes: edge of a voxel in the file's units; wins over `resolution` if > 0
  std::string up = "";           // meshes: "y", "z" or "" for what the format says
  uint64_t memory_limit_bytes = uint64_t(1) << 30;  // of the mesh reading process
  double time_limit_s = 120;     // of the mesh reading process
  uint32_t threads = 0;
  Progress progress;
  std::vector<std::string>* warnings = nullptr;  // what was skipped or mended, one sentence each
};

struct Format {
  const char* name;              // "vox"
  const char* title;             // "MagicaVoxel scene"
  std::span<const char* const> extensions;  // lower case, without the dot
  bool (*sniff)(std::span<const uint8_t> head);  // first 64 bytes; null: by extension only
  Result<Scene> (*read)(const std::filesystem::path& file, const ReadOptions& options);  // null: not readable
  Result<void> (*write)(const Scene& scene, const std::filesystem::path& file, const Progress& progress);  // null: not writable
};

std::span<const Format> formats();
// By content first, then by extension. not_found names the file; unsupported has the nearest known extension.
Result<const Format*> format_for_reading(const std::filesystem::path& file);
Result<const Format*> format_for_writing(const std::filesystem::path& file);

// Reads any known file. Every error message begins with the file's name.
Result<Scene> read_scene(const std::filesystem::path& file, const ReadOptions& options = {});
// The file appears whole or not at all (written beside, then renamed).
Result<void> write_scene(const Scene& scene, const std::filesystem::path& file, const Progress& progress = {});

}  // namespace quarry::io
