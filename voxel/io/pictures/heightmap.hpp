// SPDX-License-Identifier: Apache-2.0
// heightmap.hpp - a PNG as terrain: one column of voxels for each pixel, from the ground up.
// Axes: the picture's right is +x, its down is +z, height is y. Seen from above with north (-z) up, the terrain looks
// like the picture.
//
// The source of the height:
//   grey picture (or R = G = B everywhere)   the grey; a pixel with alpha 0 has no column
//   coloured, with shades of alpha           the alpha, 0 for no column; the colour is the column's
//   other coloured                           the luminance (Rec. 601), alpha 0 for no column; the colour is the
//   column's
// Colours are the pixel's own, or those of a second picture stretched over the whole map (nearest pixel).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

class SpilledBricks;

struct HeightmapOptions {
  // The cells from the lowest to the highest possible value, 1..8192. Value v of b bits becomes cells
  // 0 .. floor(v * height / 2^b).
  int32_t height = 256;
  uint64_t memory_limit_bytes = uint64_t(1) << 30;  // of the decoded pictures
  const MemoryBudget* budget = nullptr;             // for them and the bricks; may be null
  SpilledBricks* spill = nullptr;                   // receives bricks that do not fit it; may be null
};

// `color_map` holds the bytes of a PNG, or is empty. Errors: malformed_input with the byte offset, unsupported past a
// limit.
// Memory: at most 640 MiB + 40 times the decoded picture (4 bytes a pixel), and the decoded pictures.
Result<Scene> parse_heightmap(std::span<const uint8_t> png, std::span<const uint8_t> color_map,
                              const HeightmapOptions& options, std::vector<std::string>* warnings = nullptr);
// Uses ReadOptions::height and ReadOptions::color_map.
Result<Scene> read_heightmap(const std::filesystem::path& file, const ReadOptions& options);
Result<RegionsDone> read_heightmap_regions(const std::filesystem::path& file, const ReadOptions& options,
                                           const RegionSink& sink);

// The row of the table of formats.
extern const Format kHeightmapFormat;

}  // namespace quarry::io
