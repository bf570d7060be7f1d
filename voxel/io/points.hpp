// points.hpp - point clouds to voxels: LAS, XYZ text, PLY without faces. Each voxel that holds a point is there, with the mean colour
// of its points. The grid begins at the points' lowest corner (kept in the metadata as "points.origin", in world axes).
// Axes: LAS and XYZ are z-up unless options.up says "y": world (x, y, z) = file (x, z, -y). PLY is y-up unless options.up says "z".
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "hashgrid/result.hpp"
#include "voxel/io/format.hpp"
#include "voxel/scene.hpp"

namespace quarry::io {

constexpr int32_t kPointsMaxEdge = 16384;  // voxels along an edge of the bounds: the world's longest

// All: voxels of options.voxel_size units, or options.resolution of them along the longest edge. Errors: malformed_input with the byte
// and what was expected; unsupported past a limit; invalid_argument for options that give more voxels than fit a world.
// Memory: at most 640 MiB + 60 times the bytes given (16 bytes a point, and the bricks).
Result<Scene> parse_las(std::span<const uint8_t> bytes, const ReadOptions& options);         // LAS 1.0 to 1.4, point formats 0-3 and 6-8
Result<Scene> parse_xyz(std::span<const uint8_t> bytes, const ReadOptions& options);         // lines of x y z, or x y z r g b (0 to 255)
Result<Scene> parse_ply_points(std::span<const uint8_t> bytes, const ReadOptions& options);  // ascii, little- and big-endian
Result<Scene> read_las(const std::filesystem::path& file, const ReadOptions& options);
Result<Scene> read_xyz(const std::filesystem::path& file, const ReadOptions& options);
Result<Scene> read_ply_points(const std::filesystem::path& file, const ReadOptions& options);
// True if the beginning of a PLY file holds its whole header, and that says that there are vertices but no faces or strips.
bool ply_is_points(std::span<const uint8_t> head);

using PointVisitor = std::function<void(const double position[3], uint32_t rgba)>;
// Gives every point, the same each time it is called (twice: bounds, then cells).
using PointWalk = std::function<void(const PointVisitor&)>;
// `z_up`: the points' axes. `file_bytes` pay for bricks. What the readers above share.
Result<Scene> voxelize_points(const PointWalk& walk, uint64_t points, bool z_up, uint64_t file_bytes, const ReadOptions& options);

}  // namespace quarry::io
