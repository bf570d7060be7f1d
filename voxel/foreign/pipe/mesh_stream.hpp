// SPDX-License-Identifier: Apache-2.0
// mesh_stream.hpp - the bytes between quarry-mesh-reader and its client: one mesh, or one error, and warnings.
//
// A section stream (section_stream.hpp) of magic "QRYMESH3"; sections in any order:
//   POSN f32 x 3n; TEXC f32 x 2n of each set; COLR u8 x 4n; INDX u32 x 3t; TMAT u32 x t;
//   MATL one material: MaterialRecord, name; IMAG one image: u32 width, u32 height, RGBA;
//   ASKD the absolute path of one file that was opened or looked for, other than the mesh's own.
// The receiving side does not trust the bytes: a faulty or replaced reader causes an error and nothing else.
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

// Does the same, and frees each part's memory once it is sent, because the other side's copy grows meanwhile.
bool write_mesh_stream(Mesh&& mesh, const std::vector<std::string>& warnings, const AccessedFiles& accessed_files,
                       const ByteSink& sink);

// Returns the mesh, checked (check_mesh), or the error that the stream carries. A malformed or truncated stream is
// malformed_input. The files that were asked for are appended to `accessed_files`, if given. This also holds for a
// stream with an error.
Result<Mesh> parse_mesh_stream(std::span<const uint8_t> bytes, std::vector<std::string>* warnings,
                               AccessedFiles* accessed_files = nullptr);
// Does the same, and frees the stream's memory while the mesh grows, so both are never in memory whole.
Result<Mesh> parse_mesh_stream(ByteBuffer&& bytes, std::vector<std::string>* warnings,
                               AccessedFiles* accessed_files = nullptr);

}  // namespace quarry
