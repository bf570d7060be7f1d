// SPDX-License-Identifier: Apache-2.0
// format.hpp - what a file format is: its names, how it is recognised, its reader and its writer, and what of a scene
// it keeps. A format is a Format beside its reader and a line in the table of all formats, voxel/io/formats.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/streams/salvage.hpp"
#include "voxel/voxelize/options.hpp"
#include "voxel/worlds/region_sink.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

class ByteView;      // file_bytes.hpp: the bytes of a file as they come
struct BrickLimits;  // volume_builder.hpp: where bricks go

struct ReadOptions {
  int32_t resolution = 256;  // meshes: voxels along the longest edge of the bounds
  double voxel_size = 0;     // meshes: edge of a voxel in the file's units; wins over `resolution` if > 0
  SurfaceVoxels surface = SurfaceVoxels::cover;             // meshes: which voxels a surface sets, and
  FillRule fill = FillRule::none;                           // whether and how what is inside is added, and
  VoxelizeExecutor executor = VoxelizeExecutor::automatic;  // who does it: voxelize/triangles.hpp
  std::string up = "";                                      // meshes: "y", "z" or "" for what the format says
  // Of one reading process, one decoded picture, one inflated file; less where `budget` has less room.
  uint64_t memory_limit_bytes = uint64_t(1) << 30;
  // Of the whole command, its children included; what does not fit is refused before it is read. Null: no limit.
  const MemoryBudget* budget = nullptr;
  double time_limit_s = 120;        // of the mesh reading process
  int32_t height = 256;             // height maps: voxels from the lowest to the highest possible value
  std::filesystem::path color_map;  // height maps: a PNG with their colours; empty: the map's own
  Int3 raw_size{};                  // raw grids: voxels along x, y, z; {0,0,0}: as an NRRD header says
  uint32_t threads = 0;
  Progress progress;
  // Files beside the input that reading opened or looked for, absolute; also of a file that is refused.
  std::vector<std::filesystem::path>* accessed_files = nullptr;
  std::vector<std::string>* warnings = nullptr;  // what was skipped or mended, one sentence each
  // Given: read what is whole of a damaged file, if the format's row says that it can; counts what is lost.
  Salvage* salvage = nullptr;

  // For readers: `file` is opened or looked for.
  void note_access(const std::filesystem::path& file) const {
    if (accessed_files) {
      std::error_code ignored;
      accessed_files->push_back(std::filesystem::absolute(file, ignored).lexically_normal());
    }
  }
};

// What of a Scene a written file can hold (export_loss.hpp counts the rest).
enum Keeps : uint32_t {
  kKeepsScene = 1,  // volumes and instances as such, also hidden and unplaced ones
  kKeepsNames = 2,  // of volumes and instances
  kKeepsLayers = 4,
  kKeepsCameras = 8,
  kKeepsColours = 16,
  kKeepsSurfaces = 32,  // roughness, metalness, emission, transparency of materials
  kKeepsMaterialNames = 64,
  kKeepsAll = 127,
};

class VisibleRegions;

// What a file of a format holds.
enum class FormatKind : uint8_t {
  world,    // a Quarry world: edited in place, with its history
  scene,    // voxels of several objects and their materials
  grid,     // voxels, one grid or several
  volume,   // densities, from which voxels are made
  picture,  // a height map
  points,
  mesh,  // surfaces; perhaps points alone (ply_is_points)
};

// What reading and writing take, for each byte of the file or brick of the scene. Estimates: they only decide what runs
// side by side at first, and what is said to be too large; app/batch/tasks.cpp watches the memory really in use and
// stops and repeats what was estimated wrong.
struct FormatCost {
  double memory_per_byte = 20, bricks_per_byte = 0;  // no bricks: their number does not follow from the file's size
  double work_per_byte = 0.1;                        // microseconds of one core
  double memory_per_written_brick = 0;               // beside the scene
};

// The extensions of a format's files: lower case, without the dot, the usual one first.
struct Extensions {
  const char* names[4];  // null after the last

  constexpr const char* const* begin() const { return names; }
  constexpr const char* const* end() const { return std::find(std::begin(names), std::end(names), nullptr); }
  constexpr bool empty() const { return begin() == end(); }
  constexpr const char* front() const { return names[0]; }
};

// A row of the table of formats. It stands beside the format's reader, which its header declares.
struct Format {
  const char* name;   // "vox"
  const char* title;  // "MagicaVoxel scene"
  FormatKind kind;
  Extensions extensions;
  // How its first 64 bytes are told from other formats': what they begin with, or `sniff` where that is not enough.
  // Neither: by extension only.
  std::string_view magic = {};
  bool (*sniff)(std::span<const uint8_t> head) = nullptr;
  bool weak_magic = false;  // other formats' files may begin so too: an extension that is known says more
  Result<Scene> (*read)(const std::filesystem::path& file, const ReadOptions& options) = nullptr;  // null: not readable
  // Reads the same scene region by region, in as much memory as the sink says there is. Null: only as a whole.
  Result<RegionsDone> (*read_regions)(const std::filesystem::path& file, const ReadOptions& options,
                                      const RegionSink& sink) = nullptr;
  // Null: not writable. Leaves the whole new file or what was there before (atomic_file.hpp).
  Result<void> (*write)(const Scene& scene, const Destination& to, const Progress& progress) = nullptr;
  // Writes the same file from a scene of which only some layers are in memory at once (visible_regions.hpp). Null: only
  // from a whole one.
  Result<void> (*write_regions)(const VisibleRegions& voxels, const Destination& to,
                                const Progress& progress) = nullptr;
  uint32_t keeps = 0;     // Keeps, of what is written
  bool salvages = false;  // the reader heeds ReadOptions::salvage
  // Reading leaves nothing out unsaid, and what is written is read as the same voxels at the same place: an editor may
  // save into the file that it opened. Not what is made into voxels first (meshes, points, densities).
  bool returns = false;
  bool has_vox_facts = false;  // a scene read from it answers vox_facts() (vox/read.hpp)
  bool z_up = false;           // what is told of a file's sizes is told in its own axes, of which the third is up
  FormatCost cost = {};
  // Why this build can neither read nor write it, and what to do; null: it can do what it can.
  const char* absent = nullptr;
};

// Whether a file's first bytes are such a file's.
inline bool recognises(const Format& format, std::span<const uint8_t> head) {
  if (format.sniff) return format.sniff(head);
  return !format.magic.empty() && head.size() >= format.magic.size() &&
         std::equal(format.magic.begin(), format.magic.end(), head.begin(),
                    [](char c, uint8_t byte) { return uint8_t(c) == byte; });
}

}  // namespace quarry::io
