// SPDX-License-Identifier: Apache-2.0
// vdb.hpp - OpenVDB (.vdb) and NanoVDB (.nvdb), read and written by quarry-vdb, a process of its own: the client side.
// What of a grid becomes a voxel is said in voxel/foreign/vdb/grids.hpp.
#pragma once

#include <filesystem>

#include "voxel/io/streams/format.hpp"

namespace quarry::io {

// Each grid of numbers or masks becomes a volume and an instance of its name, placed by its transform relative to the
// first. Cells keep their indices unless the world is too small for them; then all are moved, and metadata says by how
// much. A material for each colour, by ColorTable; files of ours give their materials back exactly. `options`: up ("z":
// world (x, y, z) = file (x, z, -y)), memory_limit_bytes, time_limit_s, progress.cancel, warnings. Errors: as
// run_reader's; malformed_input and unsupported of the library; out_of_bounds (a volume larger than the world).
Result<Scene> read_vdb(const std::filesystem::path& file, const ReadOptions& options);

// The visible scene flattened: float grid "density" (1 where a voxel is; a fog volume), vector grid "Cd" (linear
// colour), and in .vdb the integer grid "material" with all 255 materials in the file's metadata. Voxel size and origin
// come from the scene's metadata, if it has them.
// Errors: invalid_argument (no visible voxel), out_of_bounds (flatten), as run_reader's.
Result<void> write_vdb(const Scene& scene, const Destination& to, const Progress& progress);

// What a build without libopenvdb says in place of reading and writing; null if it can.
extern const char* const kVdbAbsent;

// The rows of the table of formats.
extern const Format kVdbFormat, kNvdbFormat;

}  // namespace quarry::io
