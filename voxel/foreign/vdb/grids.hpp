// SPDX-License-Identifier: Apache-2.0
// grids.hpp - the parts of quarry-vdb, the process that runs OpenVDB and NanoVDB: files to voxel streams
// (pipe/voxel_stream.hpp) and back. Damaged files make these libraries throw, abort or use all memory, so they never
// run in the program itself.
//
// In a level set, a voxel is a cell that is inside or whose centre is at most half a voxel from the surface. So solids
// stay solid, and open meshes stay surfaces. In any other grid of numbers, a voxel is an active cell above zero. In a
// mask, it is an active cell. A grid of vectors named as a colour colours the others.
// Literature: K. Museth, "VDB: High-Resolution Sparse Volumes with Dynamic Topology", 2013; "NanoVDB", 2021. Their leaf
// of 8^3 voxels on multiples of 8 is one brick.
#pragma once

#include <openvdb/openvdb.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "voxel/foreign/pipe/voxel_stream.hpp"

namespace quarry::vdb {

// The limit on bricks, which tiles make many of.
struct BrickLimit {
  uint64_t bricks;
  const char* why;  // "all that the memory limit allows; raise the limit or resample it coarser"
};

// Reads a file. Exceptions of the libraries and of streams pass through. Memory: some MiB, but all trees for .nvdb,
// and for .vdb of a file version below 224 or with grids that share a tree. Errors: malformed_input, unsupported;
// out_of_memory (too many bricks).
Result<void> read_file(const std::filesystem::path& file, BrickLimit limit, io::VoxelStreamWriter& out,
                       std::vector<std::string>& warnings);
// Gives the next bytes of a stream; how many, 0 at its end.
using ByteInput = std::function<size_t(std::span<uint8_t> out)>;
// Writes a stream, one grid with materials, into the existing `file`, as NanoVDB if `nano`. The client renames the
// file. Its bricks must be in the order of OpenVDB's trees: nodes of 4096^3 voxels rising by x, y, z, in each its nodes
// of 128^3, in each its bricks. Returns the file's length. Memory: some MiB, and as much again as the file on disk
// beside it; all trees for NanoVDB. Exceptions of the library pass through while trees are made. Errors: io, with the
// system's reason; malformed_input (the stream).
Result<uint64_t> write_file(const ByteInput& stream, const std::filesystem::path& file, bool nano);

// The grids that Quarry writes: density, linear colour, and the material's number in META quarry_materials.
constexpr const char* kDensity = "density";
constexpr const char* kColor = "Cd";
constexpr const char* kMaterial = "material";
constexpr const char* kMaterials = "quarry_materials";

// The NanoVDB part. It has its own source file because its headers and OpenVDB's are slow to compile.
std::vector<openvdb::GridBase::Ptr> read_nano(const std::filesystem::path& file, std::vector<std::string>& warnings);
void write_nano(const openvdb::FloatGrid& density, const openvdb::Vec3SGrid& color, std::ostream& out);

}  // namespace quarry::vdb
