// SPDX-License-Identifier: Apache-2.0
// ply.hpp - PLY meshes: faces, polygons and triangle strips, colours, texture coordinates. Files without faces are
// points and are read elsewhere (io/points/ply.cpp).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "voxel/foreign/meshes/readers.hpp"
#include "voxel/io/files/buffered_reader.hpp"

namespace quarry::mesh_reader {

// Whether a file's first bytes are a PLY file's.
bool is_ply(const std::filesystem::path& file);

// `z_up`: the file's axes. Read in pieces: takes the mesh's own memory, and some 40 bytes a corner where faces have
// colours or texture coordinates of their own. Errors: those of read_file (meshes/readers.hpp), with the byte and what
// was expected there; unsupported past a limit.
Result<Mesh> read_ply(const std::filesystem::path& file, bool z_up, std::vector<std::string>& warnings,
                      ReferencedFiles& files);
// The same of bytes that stand at their beginning; `file` says where pictures may lie.
Result<Mesh> parse_ply(io::BufferedReader& bytes, const std::filesystem::path& file, bool z_up,
                       std::vector<std::string>& warnings, ReferencedFiles& files);

}  // namespace quarry::mesh_reader
