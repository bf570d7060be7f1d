// SPDX-License-Identifier: Apache-2.0
// raw.hpp - a plain grid of voxels: bytes whose dimensions the caller gives, or an NRRD header (`.nrrd`: at the front;
// `.nhdr`: in a separate file).
// Axes: x runs fastest, then y (up), then z, as grids/write.hpp writes them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

constexpr int32_t kRawMaxEdge = 16384;  // the world's longest

// A voxel has one byte (its material, 0 empty, of the standard palette) or four (r, g, b, a; a = 0 empty). The number
// of bytes decides.
// Errors: malformed_input with the length that was expected, unsupported past a limit. Memory: at most 640 MiB + 100
// times the bytes given.
Result<Scene> parse_raw(std::span<const uint8_t> bytes, Int3 size, std::vector<std::string>* warnings = nullptr);
Result<Scene> parse_raw(ByteView& file, Int3 size, std::vector<std::string>* warnings, const BrickLimits& limits);
// Reads the grid of an NRRD file: three dimensions, uint8, encoding raw. It also reads the origin and the palette that
// Quarry writes, if present. `data` holds the grid's bytes if the header is in a separate file. If empty, they follow
// the header.
Result<Scene> parse_nrrd(std::span<const uint8_t> header, std::span<const uint8_t> data);
// `grid` is the file that holds the voxels. It begins with `header` unless `detached`.
Result<Scene> parse_nrrd(std::span<const uint8_t> header, ByteView& grid, bool detached, const BrickLimits& limits);
// Reads a grid by ReadOptions::raw_size if it is set, else by the header before the bytes or in the .nhdr of the same
// stem. A separate header (.nhdr) is read with the one data file that it names, which must be in its folder.
Result<Scene> read_raw(const std::filesystem::path& file, const ReadOptions& options);
Result<RegionsDone> read_raw_regions(const std::filesystem::path& file, const ReadOptions& options,
                                     const RegionSink& sink);

// The row of the table of formats.
extern const Format kRawFormat;

}  // namespace quarry::io
