// SPDX-License-Identifier: Apache-2.0
// cloud.hpp - converts point clouds to voxels: LAS, XYZ text, PLY without faces. Each voxel that holds a point is set,
// with the mean colour of its points. The grid begins at the points' lowest corner (kept in the metadata as
// "points.origin", in world axes).
// Axes: LAS and XYZ are z-up unless options.up says "y": world (x, y, z) = file (x, z, -y). PLY is y-up unless
// options.up says "z".
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "voxel/io/files/buffered_reader.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

constexpr int32_t kPointsMaxEdge = 1 << 20;  // voxels along an edge of the bounds

// All make voxels of options.voxel_size units, or options.resolution of them along the longest edge. Errors:
// malformed_input with the byte and what was expected; unsupported past a limit; invalid_argument for options that give
// more voxels than kPointsMaxEdge.
// Memory: at most 640 MiB + 60 times the bytes given (16 bytes a point, and the bricks). Files are read in pieces,
// twice. Region by region, the available memory is used for sorting the points. They wait in a file in the folder of
// the output (16 bytes a point, as much for each voxel). LAS 1.0 to 1.4, point formats 0-3 and 6-8.
Result<Scene> parse_las(std::span<const uint8_t> bytes, const ReadOptions& options);
// Parses lines of x y z, or x y z r g b (0 to 255).
Result<Scene> parse_xyz(std::span<const uint8_t> bytes, const ReadOptions& options);
// Parses Ascii, little- and big-endian.
Result<Scene> parse_ply_points(std::span<const uint8_t> bytes, const ReadOptions& options);
Result<Scene> read_las(const std::filesystem::path& file, const ReadOptions& options);
Result<Scene> read_xyz(const std::filesystem::path& file, const ReadOptions& options);
Result<Scene> read_ply_points(const std::filesystem::path& file, const ReadOptions& options);
Result<RegionsDone> read_las_regions(const std::filesystem::path& file, const ReadOptions& options,
                                     const RegionSink& sink);
Result<RegionsDone> read_xyz_regions(const std::filesystem::path& file, const ReadOptions& options,
                                     const RegionSink& sink);
Result<RegionsDone> read_ply_points_regions(const std::filesystem::path& file, const ReadOptions& options,
                                            const RegionSink& sink);
// True if the beginning of a PLY file holds its whole header, and the header lists vertices but no faces or strips.
bool ply_is_points(std::span<const uint8_t> head);

// Called for each point. It returns false to end the walk.
using PointVisitor = std::function<bool(const double position[3], uint32_t rgba)>;
struct PointCloud {
  // Visits every point, the same ones in each call. It is called twice, for bounds and for cells. Errors: the file's.
  std::function<Result<void>(const PointVisitor&)> walk;
  uint64_t points = 0;
  bool z_up = false;        // the points' axes
  uint64_t file_bytes = 0;  // the number of bricks is limited by it
  std::string color;        // "rgb", "intensity" or "none"
};
// The common part of the readers above.
Result<Scene> voxelize_points(const PointCloud& cloud, const ReadOptions& options);
Result<RegionsDone> voxelize_points_in_regions(const PointCloud& cloud, const std::filesystem::path& file,
                                               const ReadOptions& options, const RegionSink& sink);

// Returns a reader's file as a cloud. All of its bytes were read and are valid.
using CloudOfBytes = Result<PointCloud> (*)(BufferedReader& bytes, const ReadOptions& options);
Result<Scene> read_cloud(const std::filesystem::path& file, uint64_t limit, const ReadOptions& options,
                         CloudOfBytes cloud_of);
Result<RegionsDone> read_cloud_regions(const std::filesystem::path& file, uint64_t limit, const ReadOptions& options,
                                       const RegionSink& sink, CloudOfBytes cloud_of);

// The rows of the table of formats.
extern const Format kLasFormat, kXyzFormat;

}  // namespace quarry::io
