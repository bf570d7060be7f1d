// SPDX-License-Identifier: Apache-2.0
// mesh_stream.hpp - the bytes between quarry-mesh-reader and its client: one mesh, or one error, and warnings.
//
// A section stream (section_stream.hpp) of magic "QRYMESH3"; sections in any order:
//   POSN f32 x 3n; TEXC f32 x 2n of each set; COLR u8 x 4n; INDX u32 x 3t; TMAT u32 x t;
//   MATL one material: MaterialRecord, name; IMAG one image: u32 width, u32 height, RGBA;
//   ASKD the absolute path of one file that was opened or looked for beside the mesh's own.
// The reading side takes the bytes as foreign: a reader that went mad, or was replaced, gives an error and never more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/byte_buffer.hpp"
#include "voxel/foreign/pipe/section_stream.hpp"
#include "voxel/voxelize/mesh.hpp"

namespace quarry {

using AccessedFiles = std::vector<std::filesystem::path>;
bool write_mesh_stream(const Mesh& mesh, const std::vector<std::string>& warnings, const AccessedFiles& accessed_files,
                       const ByteSink& sink);
bool write_error_stream(const Error& error, const std::vector<std::string>& warnings,
                        const AccessedFiles& accessed_files, const ByteSink& sink);

// The same, giving back each part's memory as it is sent: the other side's copy grows meanwhile.
bool write_mesh_stream(Mesh&& mesh, const std::vector<std::string>& warnings, const AccessedFiles& accessed_files,
                       const ByteSink& sink);

// The mesh, checked (check_mesh), or the error that the stream carries. A malformed or truncated stream is
// malformed_input. What was asked for is appended to `accessed_files`, if given, of a stream that carries an error too.
Result<Mesh> parse_mesh_stream(std::span<const uint8_t> bytes, std::vector<std::string>* warnings,
                               AccessedFiles* accessed_files = nullptr);
// The same, giving back the stream's memory as the mesh takes its place: never both are there whole.
Result<Mesh> parse_mesh_stream(ByteBuffer&& bytes, std::vector<std::string>* warnings,
                               AccessedFiles* accessed_files = nullptr);

}  // namespace quarry
