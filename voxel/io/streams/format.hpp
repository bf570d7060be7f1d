// SPDX-License-Identifier: Apache-2.0
// format.hpp - the description of a file format: its names, its recognition, its reader and writer, and the parts of a
// scene that it keeps. A format has a Format in its reader's source and a line in the table of all formats,
// voxel/io/formats.cpp.
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
#include "voxel/voxelize/device_sink.hpp"
#include "voxel/voxelize/options.hpp"
#include "voxel/worlds/region_sink.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

class ByteView;      // file_bytes.hpp: the bytes of a file, loaded as needed
struct BrickLimits;  // volume_builder.hpp: the limits on bricks

struct ReadOptions {
  int32_t resolution = 256;  // meshes: voxels along the longest edge of the bounds
  double voxel_size = 0;     // meshes: edge of a voxel in the file's units; replaces `resolution` if > 0
  SurfaceVoxels surface = SurfaceVoxels::cover;             // meshes: which voxels a surface sets, and
  FillRule fill = FillRule::none;                           // whether and how the inside is added, and
  VoxelizeExecutor executor = VoxelizeExecutor::automatic;  // where that runs, and, region by region,
  uint32_t devices = 1;                                     // on how many CUDA devices: voxelize/triangles.hpp
  std::string up = "";                                      // meshes: "y", "z" or "" for the format's own axis
  // The limit of one reading process, one decoded picture, one inflated file; less if `budget` has less room.
  uint64_t memory_limit_bytes = uint64_t(1) << 30;
  // The budget of the whole command, including its child processes. Input that does not fit is rejected before it is
  // read. Null: no limit.
  const MemoryBudget* budget = nullptr;
  double time_limit_s = 120;        // of the mesh reading process
  int32_t height = 256;             // height maps: voxels from the lowest to the highest possible value
  std::filesystem::path color_map;  // height maps: a PNG with their colours; empty: the map's own
  Int3 raw_size{};                  // raw grids: voxels along x, y, z; {0,0,0}: as an NRRD header says
  uint32_t threads = 0;
  Progress progress;
  // The absolute paths of other files that reading opened or looked for, even if the input is rejected.
  std::vector<std::filesystem::path>* accessed_files = nullptr;
  std::vector<std::string>* warnings = nullptr;  // one sentence for each thing skipped or repaired
  // Of the world that will show the scene: what can make its bricks there does so, and they are not copied. May be
  // null.
  const BrickPool* pool = nullptr;
  // Of the world that will show the scene, on a CUDA device: meshes whose voxels CUDA makes leave them there, and the
  // scene's volume has none. May be null.
  const DeviceSink* sink = nullptr;
  // If given, the whole parts of a damaged file are read, provided that the format's row allows it. It counts the
  // losses.
  Salvage* salvage = nullptr;

  // Readers call it when they open or look for `file`.
  void note_access(const std::filesystem::path& file) const {
    if (accessed_files) {
      std::error_code ignored;
      accessed_files->push_back(std::filesystem::absolute(file, ignored).lexically_normal());
    }
  }
};

// The parts of a Scene that a written file can hold (export_loss.hpp counts the rest).
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
class StoreReader;

// The content of a format's files.
enum class FormatKind : uint8_t {
  world,    // a Quarry world: edited in place, with its history
  scene,    // voxels of several objects and their materials
  grid,     // voxels, one grid or several
  volume,   // densities that are converted to voxels
  picture,  // a height map
  points,
  mesh,  // surfaces; perhaps points alone (ply_is_points)
};

// The cost of reading and writing, for each byte of the file or brick of the scene. These are estimates. They only
// decide which tasks first run in parallel, and which input is reported as too large. app/batch/tasks.cpp watches the
// memory in use, and stops and repeats tasks with wrong estimates.
struct FormatCost {
  double memory_per_byte = 20, bricks_per_byte = 0;  // no bricks: their number does not follow from the file's size
  double work_per_byte = 0.1;                        // microseconds of one core
  double memory_per_written_brick = 0;               // in addition to the scene
  uint64_t memory_to_write = 0;                      // the same whatever the scene, of a process that writes
};

// The extensions of a format's files, in lower case, without the dot, the usual one first.
struct Extensions {
  const char* names[4];  // null after the last

  constexpr const char* const* begin() const { return names; }
  constexpr const char* const* end() const { return std::find(std::begin(names), std::end(names), nullptr); }
  constexpr bool empty() const { return begin() == end(); }
  constexpr const char* front() const { return names[0]; }
};

// A row of the table of formats. It is defined in the format's reader and declared in its header.
struct Format {
  const char* name;   // "vox"
  const char* title;  // "MagicaVoxel scene"
  FormatKind kind;
  Extensions extensions;
  // The recognition by the first 64 bytes: their beginning, or `sniff` if that is not enough. Without both, only the
  // extension counts.
  std::string_view magic = {};
  bool (*sniff)(std::span<const uint8_t> head) = nullptr;
  bool weak_magic = false;  // other formats' files may begin so too, so a known extension takes precedence
  Result<Scene> (*read)(const std::filesystem::path& file, const ReadOptions& options) = nullptr;  // null: not readable
  // Reads the same scene region by region, in the memory that the sink allows. Null: only as a whole.
  Result<RegionsDone> (*read_regions)(const std::filesystem::path& file, const ReadOptions& options,
                                      const RegionSink& sink) = nullptr;
  // Null: not writable. It leaves the whole new file or the old one (atomic_file.hpp).
  Result<void> (*write)(const Scene& scene, const Destination& to, const Progress& progress) = nullptr;
  // Writes the same file from a scene of which only some layers are in memory at once (visible_regions.hpp). Null: only
  // from a whole one.
  Result<void> (*write_regions)(const VisibleRegions& voxels, const Destination& to,
                                const Progress& progress) = nullptr;
  // The same for a format that keeps volumes apart: from a world file, of whose bricks only some are in memory at once.
  // `volumes`: what each has. Null: not so.
  Result<RegionsDone> (*write_volumes)(StoreReader& store, const std::vector<VolumeSummary>& volumes,
                                       const std::function<uint64_t()>& available_bytes, const Destination& to,
                                       const Progress& progress) = nullptr;
  uint32_t keeps = 0;             // flags of Keeps, for written files
  bool salvages = false;          // the reader uses ReadOptions::salvage
  bool salvages_regions = false;  // so does read_regions
  // Reading leaves nothing out without a warning, and a written file is read as the same voxels at the same place. So
  // an editor may save into the file that it opened. False for data that is first converted to voxels (meshes, points,
  // densities).
  bool returns = false;
  bool has_vox_facts = false;  // vox_facts() works on a scene read from it (vox/read.hpp)
  bool z_up = false;           // a file's sizes are reported in its own axes, of which the third is up
  FormatCost cost = {};
  // Why this build can neither read nor write it, and what to do. Null: the row's functions work.
  const char* absent = nullptr;
};

// Whether `head`, a file's first bytes, fits the format.
inline bool recognises(const Format& format, std::span<const uint8_t> head) {
  if (format.sniff) return format.sniff(head);
  return !format.magic.empty() && head.size() >= format.magic.size() &&
         std::equal(format.magic.begin(), format.magic.end(), head.begin(),
                    [](char c, uint8_t byte) { return uint8_t(c) == byte; });
}

}  // namespace quarry::io
