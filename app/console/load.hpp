// SPDX-License-Identifier: Apache-2.0
// load.hpp - reading a file for a command: the options that all commands share, progress, and warnings on stderr.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/console/arguments.hpp"
#include "voxel/io/formats.hpp"

namespace quarry::app {

// Adds --resolution, --voxel-size, --surface, --solid, --executor, --up, --memory-limit, --time-limit, --map-height,
// --color-map and --raw-size to a command; --gpus too, if it can read region by region.
struct LoadOptions {
  int64_t resolution = 256;
  double voxel_size = 0;
  SurfaceVoxels surface = SurfaceVoxels::cover;  // the three: valid after check()
  FillRule fill = FillRule::none;
  VoxelizeExecutor executor = VoxelizeExecutor::automatic;
  int64_t gpus = 1;  // 0: all
  std::string up;
  int64_t memory_limit_mib = 1024;
  double time_limit_s = 120;
  int64_t map_height = 256;
  std::string color_map, raw_size;

  void add_to(Arguments& arguments, bool with_gpus = false);
  // Parses the values. Returns the exit code if one is wrong. Call it after parse().
  std::optional<int> check(const Arguments& arguments);
  io::ReadOptions read_options() const;  // without threads, progress and warnings
  std::string text() const;              // equal texts mean equal voxels of the same file

 private:
  std::string surface_ = "26", solid_ = "none", executor_ = "auto";
};

// Reads any known file. Prints warnings, not the error. `pool`, `sink`: see io::ReadOptions.
Result<Scene> load_scene(const std::filesystem::path& file, const LoadOptions& options, const BrickPool* pool = nullptr,
                         const DeviceSink* sink = nullptr);

// The error of a damaged file. If `quarry convert --salvage` can read something of it, the message says so.
Error with_salvage_hint(const std::filesystem::path& file, Error error);

// Prints the error of a command's only input and returns the exit code.
int failed(const std::filesystem::path& file, const Error& error);

}  // namespace quarry::app
