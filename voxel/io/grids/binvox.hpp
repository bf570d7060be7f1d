// SPDX-License-Identifier: Apache-2.0
// binvox.hpp - .binvox, the format of Patrick Min's voxeliser: a text header, then occupancy in runs of (value, count).
// Axes: the file's y is up and its system right-handed, as here, so cell (x, y, z) stays (x, y, z). In the file y runs
// fastest, then z, then x.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

constexpr int32_t kBinvoxMaxEdge = 16384;  // the world's longest

// A voxel of value v gets material v of the standard palette (plain files use only 0 and 1). Errors: malformed_input
// with the byte offset and what was expected there; unsupported for edges above the limit or more bricks than
// BrickBudget allows.
// Memory: at most 640 MiB + 40 times the bytes given.
Result<Scene> parse_binvox(std::span<const uint8_t> bytes, std::vector<std::string>* warnings = nullptr);
Result<Scene> parse_binvox(ByteView& file, std::vector<std::string>* warnings, const BrickLimits& limits);
Result<Scene> read_binvox(const std::filesystem::path& file, const ReadOptions& options);
Result<RegionsDone> read_binvox_regions(const std::filesystem::path& file, const ReadOptions& options,
                                        const RegionSink& sink);

// The row of the table of formats.
extern const Format kBinvoxFormat;

}  // namespace quarry::io
