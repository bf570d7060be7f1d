// SPDX-License-Identifier: Apache-2.0
// schematic.hpp - Minecraft builds: Sponge schematics (.schem, versions 1 to 3) and Litematica (.litematic), both
// gzip'd NBT.
// Axes: Minecraft's y is up and its system right-handed (x east, z south), as here, so cells are kept. A block is a
// voxel, whatever its shape. A schematic is one volume at the origin. Each region of a litematic is a volume and an
// instance at the region's place.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

constexpr int64_t kMinecraftMaxEdge = 16384;        // of a region: the world's longest
constexpr int64_t kMinecraftMaxPosition = 1 << 24;  // in both directions
constexpr int64_t kMinecraftMaxPaletteId = (1 << 20) - 1;

// Parses both kinds, which it distinguishes by their content. `memory_limit_bytes` limits the inflated file. Errors:
// malformed_input with the byte (of the inflated data, once it is inflated) and what was expected; unsupported past a
// limit or BrickBudget's.
// Memory: at most 640 MiB + 60 times the inflated bytes. These are at most 1032 times the file's, and within the limit.
Result<Scene> parse_minecraft(std::span<const uint8_t> bytes, uint64_t memory_limit_bytes,
                              std::vector<std::string>* warnings = nullptr);
Result<Scene> read_minecraft(const std::filesystem::path& file, const ReadOptions& options);
Result<RegionsDone> read_minecraft_regions(const std::filesystem::path& file, const ReadOptions& options,
                                           const RegionSink& sink);

// The row of the table of formats.
extern const Format kMinecraftFormat;

}  // namespace quarry::io
