// SPDX-License-Identifier: Apache-2.0
// ply.hpp - PLY meshes: faces, polygons and triangle strips, colours, texture coordinates. Files without faces are
// point clouds, which io/points/ply.cpp reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "voxel/foreign/meshes/readers.hpp"
#include "voxel/io/files/buffered_reader.hpp"

namespace quarry::mesh_reader {

// Whether a file begins like a PLY file.
bool is_ply(const std::filesystem::path& file);

// Reads a PLY mesh. `z_up` tells the file's axes. The file is read in pieces. Memory: the mesh's own, and some 40 bytes
// per corner if faces have their own colours or texture coordinates. Errors: those of read_file (meshes/readers.hpp),
// with the byte and what was expected there; unsupported past a limit.
Result<Mesh> read_ply(const std::filesystem::path& file, bool z_up, std::vector<std::string>& warnings,
                      ReferencedFiles& files);
// Does the same for a stream of bytes at its beginning. `file` tells where to look for pictures.
Result<Mesh> parse_ply(io::BufferedReader& bytes, const std::filesystem::path& file, bool z_up,
                       std::vector<std::string>& warnings, ReferencedFiles& files);

}  // namespace quarry::mesh_reader
