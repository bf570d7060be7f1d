// SPDX-License-Identifier: Apache-2.0
// vdb.hpp - OpenVDB (.vdb) and NanoVDB (.nvdb): the client side. The separate process quarry-vdb reads and writes them.
// voxel/foreign/vdb/grids.hpp says which cells of a grid become voxels.
#pragma once

#include <filesystem>

#include "voxel/io/streams/format.hpp"

namespace quarry::io {

// Each grid of numbers or masks becomes a volume and an instance of its name, placed by its transform relative to the
// first grid. Cells keep their indices unless the world is too small for them. Then all are moved, and metadata says by
// how much. ColorTable makes a material for each colour. Files written by Quarry keep their materials exactly.
// `options` used: up ("z": world (x, y, z) = file (x, z, -y)), memory_limit_bytes, time_limit_s, progress.cancel,
// warnings. Errors: as run_reader's; malformed_input and unsupported of the library; out_of_bounds (a volume larger
// than the world).
Result<Scene> read_vdb(const std::filesystem::path& file, const ReadOptions& options);

// Reads the same scene region by region. Its bricks wait in a file without a name beside the sink's output. Memory:
// quarry-vdb (voxel/foreign/vdb/grids.hpp), and what the sink allows. Further errors: conflict (the file was changed
// while it was read); io (the waiting file).
Result<RegionsDone> read_vdb_regions(const std::filesystem::path& file, const ReadOptions& options,
                                     const RegionSink& sink);

// Writes the visible scene, flattened: float grid "density" (1 for each voxel; a fog volume), vector grid "Cd" (linear
// colour), and in .vdb the integer grid "material" with all 255 materials in the file's metadata. Voxel size and origin
// come from the scene's metadata, if it has them.
// Errors: invalid_argument (no visible voxel), out_of_bounds (flatten), as run_reader's.
Result<void> write_vdb(const Scene& scene, const Destination& to, const Progress& progress);
// Writes the same file from a scene that need not be in memory. Memory: quarry-vdb (voxel/foreign/vdb/grids.hpp), and a
// box of bricks that fits the rest of what `voxels` allows. Further errors: out_of_memory (no room for either).
Result<void> write_vdb_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);

// The message of a build without libopenvdb, which can neither read nor write; null if the build can.
extern const char* const kVdbAbsent;

// The rows of the table of formats.
extern const Format kVdbFormat, kNvdbFormat;

}  // namespace quarry::io
