// SPDX-License-Identifier: Apache-2.0
// load.hpp - how commands read a file: the options that all of them share, progress, and warnings on stderr.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/console/arguments.hpp"
#include "voxel/io/formats.hpp"

namespace quarry::app {

// Adds --resolution, --voxel-size, --surface, --solid, --executor, --up, --memory-limit, --time-limit, --map-height,
// --color-map and --raw-size to a command.
struct LoadOptions {
  int64_t resolution = 256;
  double voxel_size = 0;
  SurfaceVoxels surface = SurfaceVoxels::cover;  // these three: valid after check()
  FillRule fill = FillRule::none;
  VoxelizeExecutor executor = VoxelizeExecutor::automatic;
  std::string up;
  int64_t memory_limit_mib = 1024;
  double time_limit_s = 120;
  int64_t map_height = 256;
  std::string color_map, raw_size;

  void add_to(Arguments& arguments);
  // Understands what was said; the exit code if a value is wrong. After parse().
  std::optional<int> check(const Arguments& arguments);
  io::ReadOptions read_options() const;  // without threads, progress and warnings
  std::string text() const;              // the same text, the same voxels of the same file

 private:
  std::string surface_ = "26", solid_ = "none", executor_ = "auto";
};

// Reads any known file. Prints warnings, not the error.
Result<Scene> load_scene(const std::filesystem::path& file, const LoadOptions& options);

// The error of a damaged file, with the way out where there is one (`quarry convert --salvage`, and something left for
// it).
Error with_salvage_hint(const std::filesystem::path& file, Error error);

// Prints the error of a command's one input and gives the exit code.
int failed(const std::filesystem::path& file, const Error& error);

}  // namespace quarry::app
