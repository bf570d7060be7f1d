// SPDX-License-Identifier: Apache-2.0
// grids.hpp - the parts of quarry-vdb, the process that runs OpenVDB and NanoVDB: files to voxel streams
// (pipe/voxel_stream.hpp) and back. Files that are damaged make these libraries throw, abort or take all memory, so
// they never run in the program itself.
//
// A voxel is: of a level set, a cell inside or with the surface at most half a voxel from its centre (so solids come
// out solid, and the surfaces of meshes that are not closed come out as surfaces); of any other grid of numbers, an
// active cell above zero; of a mask, an active cell. A grid of vectors named as a colour colours the others.
// Literature: K. Museth, "VDB: High-Resolution Sparse Volumes with Dynamic Topology", 2013; "NanoVDB", 2021. A leaf of
// theirs is 8^3 voxels on multiples of 8: a brick of ours.
#pragma once

#include <openvdb/openvdb.h>

#include <filesystem>
#include <string>
#include <vector>

#include "voxel/foreign/pipe/voxel_stream.hpp"

namespace quarry::vdb {

// Exceptions of the libraries pass through. `max_bricks` bounds what tiles are broken into. Errors: malformed_input,
// unsupported.
Result<void> read_file(const std::filesystem::path& file, uint64_t max_bricks, io::VoxelStreamWriter& out,
                       std::vector<std::string>& warnings);
// `stream`: one grid with materials. Writes into `file`, which is there (the client renames it), as NanoVDB if `nano`.
// Gives how long it is then. Errors: io, with the system's reason.
Result<uint64_t> write_file(std::span<const uint8_t> stream, const std::filesystem::path& file, bool nano);

// Our own grids: what is there, in which linear colour, and which material of META quarry_materials.
constexpr const char* kDensity = "density";
constexpr const char* kColor = "Cd";
constexpr const char* kMaterial = "material";
constexpr const char* kMaterials = "quarry_materials";

// NanoVDB's side, in a file of its own since its headers and OpenVDB's are slow to compile.
std::vector<openvdb::GridBase::Ptr> read_nano(const std::filesystem::path& file, std::vector<std::string>& warnings);
void write_nano(const openvdb::FloatGrid& density, const openvdb::Vec3SGrid& color, std::ostream& out);

}  // namespace quarry::vdb
